/* SPDX-License-Identifier: BSD-3-Clause */
/* Resources of the process. Communicators are counted through MPI's profiling interface:
 * the functions below precede those of MPI, also for the libraries. */
#include "probe.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

static int communicators;

int probe_communicators(void)
{
    return communicators;
}

static int count_made(int rc, const MPI_Comm *made)
{
    if (rc == MPI_SUCCESS && *made != MPI_COMM_NULL) communicators++;
    return rc;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    return count_made(PMPI_Comm_dup(comm, made), made);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    return count_made(PMPI_Comm_split(comm, color, key, made), made);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
    return count_made(PMPI_Comm_split_type(comm, type, key, info, made), made);
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made)
{
    return count_made(PMPI_Comm_create(comm, group, made), made);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
    return count_made(PMPI_Comm_create_group(comm, group, tag, made), made);
}

int MPI_Comm_free(MPI_Comm *comm)
{
    int rc = PMPI_Comm_free(comm);
    if (rc == MPI_SUCCESS) communicators--;
    return rc;
}

/* Belongs to a sanitizer's allocator, if there is one: that of the C library is then
 * unused. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

long probe_allocated(void)
{
    if (__sanitizer_get_current_allocated_bytes)
        return (long)__sanitizer_get_current_allocated_bytes();
    struct mallinfo2 m = mallinfo2();
    return (long)(m.uordblks + m.hblkhd);
}

long probe_resident(void)
{
    long size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &size, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}
