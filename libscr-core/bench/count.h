/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_BENCH_COUNT_H
#define SCR_BENCH_COUNT_H

/* Counts calls in this process, whichever code makes them: fsync and collective calls of
 * MPI. The functions here replace those of the C library and of MPI. For one source file
 * per program. */

#include <mpi.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct counts {
    int syncs, collectives;
} counts;

/* Returns the counts since the program began. */
static inline counts *count_now(void)
{
    static counts now;
    return &now;
}

int fsync(int fd)
{
    count_now()->syncs++;
    return (int)syscall(SYS_fsync, fd);
}

int MPI_Barrier(MPI_Comm comm)
{
    count_now()->collectives++;
    return PMPI_Barrier(comm);
}

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    count_now()->collectives++;
    return PMPI_Bcast(data, count, type, root, comm);
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    count_now()->collectives++;
    return PMPI_Allreduce(in, out, count, type, op, comm);
}

int MPI_Exscan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm)
{
    count_now()->collectives++;
    return PMPI_Exscan(in, out, count, type, op, comm);
}

#endif
