/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_BENCH_MPI_H
#define TESTS_BENCH_MPI_H

/* bench.h for MPI programs: every rank measures, rank 0 prints, and the time of a step is
 * that of its slowest rank. All ranks run on one machine. */

#include "bench.h"
#include <mpi.h>

static inline void bench_mpi_begin(bench *b, int *argc, char ***argv,
                                   const char *const columns[])
{
    int rank;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    bench_begin(b, *argc, *argv, columns);
    if (rank != 0) rmdir(b->folder); /* all ranks use that of rank 0 */
    MPI_Bcast(b->folder, sizeof b->folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    b->quiet = rank != 0;
}

static inline int bench_mpi_end(bench *b)
{
    MPI_Barrier(MPI_COMM_WORLD);
    int rc = bench_end(b);
    MPI_Finalize();
    return rc;
}

/* All ranks of comm start together ... */
static inline double bench_mpi_start(MPI_Comm comm)
{
    MPI_Barrier(comm);
    return bench_now();
}

/* ... and the slowest rank counts. */
static inline double bench_mpi_slowest(MPI_Comm comm, double seconds)
{
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm);
    return seconds;
}

/* Waits for all ranks of comm without taking processor time from working ranks. */
static inline void bench_mpi_rest(MPI_Comm comm)
{
    const struct timespec nap = {0, 5000000};
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(comm, &request);
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
         MPI_Test(&request, &done, MPI_STATUS_IGNORE))
        nanosleep(&nap, NULL);
}

#endif
