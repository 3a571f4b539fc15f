/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_BENCH_FILO_H
#define FILO_BENCH_FILO_H

/* What the benchmarks of flushes share: files of all ranks in memory, copied to memory or
 * to disk and back, in several ways that take turns. */

#include "bench_mpi.h"
#include <filo/filo_mpi.h>

static int rank, ranks;

typedef struct load {
    const bench *b;
    int writers, files; /* files of each of the first ranks */
    size_t size;        /* of a file */
    int disk;
    char local[128], prefix[128]; /* directories */
    filo_options options;
    int count; /* of this rank */
    filo_file *list;
    double most[BENCH_ROUNDS + 1]; /* of each run: processor time of the rank that used
                                      most, ... */
    double all[BENCH_ROUNDS + 1];  /* ... and of all ranks together */
    int runs;
} load;

/* A way to copy. limit: index of the way that it is compared with; most: the maximum
 * time, as a multiple of the time of the limit. */
typedef struct way {
    const char *name;
    double (*run)(void *arg);
    filo_options options;
    int limit;
    double most;
} way;

enum { WAYS_MAX = 9 };

/* Medians of a way: seconds; processor time of the rank that used most, and of all ranks.
 */
typedef struct timing {
    double seconds, most, all;
} timing;

/* Returns the path of file i of a rank. */
static inline char *path_of(const load *l, int of, int i)
{
    char *path;
    bench_require(l->b, asprintf(&path, "%s/r%d.%d", l->local, of, i) > 0, "no memory");
    return path;
}

static inline void make_list(load *l)
{
    l->count = rank < l->writers ? l->files : 0;
    l->list = calloc((size_t)l->count + 1, sizeof *l->list);
    bench_require(l->b, l->list != NULL, "no memory");
    for (int i = 0; i < l->count; i++) {
        l->list[i].local = path_of(l, rank, i);
        l->list[i].name = strdup(strrchr(l->list[i].local, '/') + 1);
        l->list[i].size = l->size;
        bench_make_file(l->b, l->list[i].local, l->size);
    }
}

/* Rank 0 removes the directory. All writing has ended when clear returns. */
static inline void clear(const load *l, const char *folder)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) bench_remove(folder);
    if (rank == 0 && l->disk) sync();
    bench_mpi_rest(MPI_COMM_WORLD);
}

/* ---- ways ---- */

static inline void note_cpu(load *l, double cpu)
{
    bench_require(l->b, l->runs <= BENCH_ROUNDS, "too many rounds");
    MPI_Allreduce(&cpu, &l->most[l->runs], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&cpu, &l->all[l->runs++], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Ends a run in which only some ranks work and the others sleep. */
static inline double end_of_some(load *l, double seconds, double cpu)
{
    bench_mpi_rest(MPI_COMM_WORLD);
    note_cpu(l, cpu);
    seconds = bench_mpi_slowest(MPI_COMM_WORLD, seconds);
    clear(l, l->prefix);
    return seconds;
}

static inline double run_cp(void *arg)
{
    load *l = arg;
    double seconds = 0;
    if (rank == 0) {
        double start = bench_now();
        bench_copy(l->b, l->local, l->prefix, l->disk);
        seconds = bench_now() - start;
    }
    return end_of_some(l, seconds, 0); /* another process copies */
}

static inline void flush(const load *l)
{
    filo_error err = {""};
    int rc =
        filo_flush(MPI_COMM_WORLD, l->prefix, NULL, l->count, l->list, &l->options, &err);
    bench_require(l->b, rc == 0, err.text);
}

static inline double run_flush(void *arg)
{
    load *l = arg;
    double start = bench_mpi_start(MPI_COMM_WORLD), cpu = bench_cpu();
    flush(l);
    double seconds = bench_now() - start;
    note_cpu(l, bench_cpu() - cpu);
    seconds = bench_mpi_slowest(MPI_COMM_WORLD, seconds);
    clear(l, l->prefix);
    return seconds;
}

/* Fetches the flushed files back to the local directory. Only reading the map and the
 * files is measured. */
static inline double run_fetch(void *arg)
{
    load *l = arg;
    filo_error err = {""};
    int all, count = 0;
    filo_file *files = NULL;
    flush(l);
    double start = bench_mpi_start(MPI_COMM_WORLD), cpu = bench_cpu();
    int rc =
        filo_read_map(MPI_COMM_WORLD, l->prefix, NULL, &all, &count, &files, NULL, &err);
    for (int i = 0; i < count && rc == 0; i++)
        files[i].local = path_of(l, rank, i);
    if (rc == 0)
        rc = filo_fetch(MPI_COMM_WORLD, l->prefix, count, files, &l->options, &err);
    double seconds = bench_now() - start;
    note_cpu(l, bench_cpu() - cpu);
    seconds = bench_mpi_slowest(MPI_COMM_WORLD, seconds);
    bench_require(l->b, rc == 0 && count == l->count, err.text);
    filo_files_free(count, files);
    clear(l, l->prefix);
    return seconds;
}

/* ---- measuring ---- */

/* Prints the rows of the table: times relative to the first way, and, with_limit, times
 * and processor times relative to the limit of each way. */
static inline void report(bench *b, const load *l, const char *name, int count,
                          const way ways[], const timing t[], int with_limit)
{
    double megabytes = 1e-6 * (double)l->size * l->files * l->writers;
    for (int i = 0; i < count; i++) {
        char text[32];
        const double most = ways[i].most;
        const timing *limit = &t[ways[i].limit];
        snprintf(text, sizeof text, "at most %g", most);
        bench_text(b, l->disk ? "disk" : "memory");
        bench_text(b, name);
        bench_text(b, ways[i].name);
        bench_number(b, megabytes / t[i].seconds);
        bench_number(b, t[i].seconds / t[0].seconds);
        if (with_limit) {
            bench_number(b, t[i].seconds / limit->seconds);
            bench_number(b, t[i].most > 0 ? t[i].most / limit->most : NAN);
            bench_number(b, t[i].all > 0 ? t[i].all / limit->all : NAN);
        }
        bench_text(b, isnan(most) ? "-" : text);
        const int reached = t[i].seconds <= most * limit->seconds;
        bench_text(b, isnan(most) ? "-" : reached ? "reached" : "missed");
    }
}

/* Measures count ways, with the node of l->options. disk: directory of the copies, or
 * NULL: in memory. */
static inline void take_times(bench *b, load *l, const char *disk, int count,
                              const way ways[], timing t[])
{
    bench_require(b, count <= WAYS_MAX, "too many ways");
    load loads[WAYS_MAX];
    bench_case cases[WAYS_MAX];
    double seconds[WAYS_MAX];
    l->disk = disk != NULL;
    snprintf(l->local, sizeof l->local, "%s/local", b->folder);
    snprintf(l->prefix, sizeof l->prefix, "%s/prefix", disk ? disk : b->folder);
    if (rank == 0) bench_require(b, mkdir(l->local, 0700) == 0, l->local);
    MPI_Barrier(MPI_COMM_WORLD);
    make_list(l);
    for (int i = 0; i < count; i++) {
        loads[i] = *l;
        loads[i].runs = 0;
        loads[i].options = ways[i].options;
        loads[i].options.node = l->options.node;
        cases[i] = (bench_case){ways[i].run, &loads[i]};
    }
    bench_measure(b, count, cases, seconds);
    for (int i = 0; i < count; i++)
        t[i] = (timing){seconds[i], bench_median(b->rounds, loads[i].most + 1),
                        bench_median(b->rounds, loads[i].all + 1)};
    clear(l, l->local);
    l->list = filo_files_free(l->count, l->list);
}

/* Creates a directory on disk, and sends its path to all ranks. */
static inline void make_disk(const bench *b, size_t size, char disk[])
{
    if (rank == 0) bench_require(b, mkdtemp(disk) != NULL, disk);
    MPI_Bcast(disk, (int)size, MPI_CHAR, 0, MPI_COMM_WORLD);
}

#endif
