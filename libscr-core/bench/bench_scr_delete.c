/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of deleting n datasets on the prefix directory: four ranks on four simulated
 * nodes, one file per rank. The counts are those of rank 0, which reads and writes the
 * index. */
#include "load.h"

#include <stdarg.h>
#include <stdbool.h>

enum { RANKS = 4 };

/* ---- counts of calls; these functions replace those of the C library ---- */

static struct {
    long opens, index,
        writes; /* opens of any file, opens of the index, writes of the index */
} done;

static bool is_index(const char *path)
{
    const char *name = strrchr(path, '/');
    return strcmp(name ? name + 1 : path, "index.scr") == 0;
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, unsigned) : 0;
    va_end(args);
    done.opens++;
    done.index += is_index(path);
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

int renameat(int from, const char *old, int to, const char *new)
{
    done.writes += is_index(new);
    return (int)syscall(SYS_renameat2, from, old, to, new, 0);
}

/* ---- the three ways to delete ---- */

/* Makes n checkpoints on the prefix directory. */
static void write_datasets(load *l, int n)
{
    for (int i = 0; i < n; i++)
        load_checkpoint(l);
}

static void init(const load *l)
{
    char name[SCR_MAX_FILENAME];
    int flag;
    bench_require(l->b, SCR_Init_comm(l->comm) == SCR_SUCCESS, "SCR_Init_comm failed");
    SCR_Have_restart(&flag, name);
}

/* SCR_PREFIX_SIZE: the flush of the next checkpoint deletes all older ones. */
static void by_retention(load *l)
{
    simulate_set("SCR_PREFIX_SIZE", "1");
    init(l);
    load_checkpoint(l);
    SCR_Finalize();
    simulate_set("SCR_PREFIX_SIZE", "0");
}

/* SCR_PREFIX_PURGE: SCR_Init deletes all datasets. */
static void by_purge(load *l)
{
    simulate_set("SCR_PREFIX_PURGE", "1");
    init(l);
    SCR_Finalize();
    simulate_set("SCR_PREFIX_PURGE", "0");
}

/* SCR_Delete, once per dataset, the oldest first. */
static void by_call(load *l, int first, int n)
{
    char name[64];
    init(l);
    for (int i = first; i < first + n; i++) {
        snprintf(name, sizeof name, "%zu.%d", l->size, i);
        bench_require(l->b, SCR_Delete(name) == SCR_SUCCESS, name);
    }
    SCR_Finalize();
}

static void measure(bench *b, load *l, const char *way, int n)
{
    int first = l->turn;
    init(l);
    write_datasets(l, n);
    SCR_Finalize();
    memset(&done, 0, sizeof done);
    double start = bench_mpi_start(l->comm);
    if (strcmp(way, "SCR_PREFIX_SIZE") == 0)
        by_retention(l);
    else if (strcmp(way, "SCR_PREFIX_PURGE") == 0)
        by_purge(l);
    else
        by_call(l, first, n);
    double seconds = bench_mpi_slowest(l->comm, bench_now() - start);
    bench_text(b, way);
    bench_number(b, (double)n);
    bench_number(b, (double)done.index);
    bench_number(b, (double)done.writes);
    bench_number(b, (double)done.opens / n);
    bench_number(b, 1e3 * seconds / n);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {
        "deleted by",    "datasets",   "index opens", "index writes",
        "opens/dataset", "ms/dataset", NULL};
    static const char *const ways[] = {"SCR_PREFIX_SIZE", "SCR_PREFIX_PURGE",
                                       "SCR_Delete"};
    bench b;
    int rank;
    MPI_Comm comm;
    bench_mpi_begin(&b, &argc, &argv, columns);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < RANKS, rank, &comm);
    if (rank < RANKS) {
        load l = load_new(&b, comm, 1024);
        simulate_nodes(&b, comm, "SINGLE");
        simulate_set("SCR_FLUSH", "1");
        for (int i = 0; i < 3; i++) {
            for (int n = 10; n <= 1000; n *= 10)
                measure(&b, &l, ways[i], n);
        }
        free(l.data);
    }
    bench_mpi_rest(MPI_COMM_WORLD);
    MPI_Comm_free(&comm);
    return bench_mpi_end(&b);
}
