/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_BENCH_LOAD_H
#define SCR_BENCH_LOAD_H

/* The load of SCR's benchmarks: one file per rank and checkpoint. For one source file per
 * program. */

#include "count.h"
#include "simulate.h"

#include <scr.h>

typedef struct load {
    const bench *b;
    MPI_Comm comm;  /* ranks that take part */
    int rank, turn; /* turn: number of the next checkpoint */
    size_t size;
    char *data;
    double writing; /* seconds that the program itself spent writing in the last
                       checkpoint */
    counts done;    /* by the last checkpoint on this rank */
} load;

static inline load load_new(const bench *b, MPI_Comm comm, size_t size)
{
    load l = {.b = b, .comm = comm, .size = size, .data = malloc(size)};
    bench_require(b, l.data != NULL, "no memory");
    bench_fill(l.data, size);
    MPI_Comm_rank(comm, &l.rank);
    return l;
}

static inline int load_write(const load *l, const char *path, int sync)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) return 0;
    int ok = write(fd, l->data, l->size) == (ssize_t)l->size;
    if (sync) ok &= fsync(fd) == 0;
    return close(fd) == 0 && ok;
}

/* Measures a checkpoint from SCR_Start_output to SCR_Complete_output. */
static inline double load_checkpoint(void *arg)
{
    load *l = arg;
    char dataset[64], name[96], path[SCR_MAX_FILENAME];
    snprintf(dataset, sizeof dataset, "%zu.%d", l->size, l->turn++);
    snprintf(name, sizeof name, "%s/rank_%d", dataset, l->rank);
    double start = bench_mpi_start(l->comm);
    counts before = *count_now();
    int rc = SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT);
    if (rc == SCR_SUCCESS) rc = SCR_Route_file(name, path);
    double writing = bench_now();
    int ok = rc == SCR_SUCCESS && load_write(l, path, 0);
    writing = bench_now() - writing;
    rc = SCR_Complete_output(ok);
    double seconds = bench_now() - start;
    counts after = *count_now();
    l->done =
        (counts){after.syncs - before.syncs, after.collectives - before.collectives};
    bench_require(l->b, rc == SCR_SUCCESS, SCR_Strerror(rc));
    l->writing = bench_mpi_slowest(l->comm, writing);
    return bench_mpi_slowest(l->comm, seconds);
}

#endif
