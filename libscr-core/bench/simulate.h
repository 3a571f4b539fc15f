/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_BENCH_SIMULATE_H
#define SCR_BENCH_SIMULATE_H

/* Four simulated nodes for SCR's benchmarks, each with its own cache directory in
 * memory. */

#include "bench_mpi.h"

enum { SIMULATED_NODES = 4 };

/* Prints the maximum for a measured value, and whether it was reached: two columns. */
static inline void simulate_goal(bench *b, double value, double most)
{
    char text[32];
    snprintf(text, sizeof text, "at most %g", most);
    bench_text(b, isnan(most) ? "-" : text);
    bench_text(b, isnan(most) ? "-" : value <= most ? "reached" : "missed");
}

static inline void simulate_set(const char *name, const char *value)
{
    setenv(name, value, 1);
}

/* Sets the parameters that SCR_Init reads: the scheme, two datasets in the cache, no
 * flush. Nothing of an earlier call is found again. Changes to the prefix directory. */
static inline void simulate_nodes(const bench *b, MPI_Comm comm, const char *scheme)
{
    int rank, ranks;
    char node[16], path[128];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    snprintf(node, sizeof node, "n%d", rank * SIMULATED_NODES / ranks);
    simulate_set("SCR_NODE_NAME", node);
    simulate_set("SCR_COPY_TYPE", scheme);
    simulate_set("SCR_CACHE_SIZE", "2");
    simulate_set("SCR_CACHE_PURGE", "1");
    simulate_set("SCR_FLUSH", "0");
    simulate_set("SCR_FLUSH_ASYNC", "0");
    simulate_set("SCR_JOB_ID", "benchmark");
    snprintf(path, sizeof path, "%s/%s", b->folder, node);
    simulate_set("SCR_CACHE_BASE", path);
    simulate_set("SCR_CNTL_BASE", path);
    snprintf(path, sizeof path, "%s/prefix", b->folder);
    simulate_set("SCR_PREFIX", path);
    mkdir(path, 0700);
    bench_require(b, chdir(path) == 0, path);
}

/* Syncs a file, as a program without SCR does. */
static inline int simulate_sync(const char *path)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0) return 0;
    int ok = fsync(fd) == 0;
    return close(fd) == 0 && ok;
}

#endif
