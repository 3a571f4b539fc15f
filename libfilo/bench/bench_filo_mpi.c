/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of all ranks flushed from memory to memory and to disk, plain and packed, and
 * fetched back to memory, beside `cp -r` of the same files by one process; to disk `cp`
 * is followed by a sync of its file system, as a flush syncs. */
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
} load;

/* ---- lists ---- */

static char *path_of(const load *l, const char *format, const char *folder, int i)
{
    char *path;
    bench_require(l->b, asprintf(&path, format, folder, rank, i) > 0, "no memory");
    return path;
}

static void make_list(load *l)
{
    l->count = rank < l->writers ? l->files : 0;
    l->list = calloc((size_t)l->count + 1, sizeof *l->list);
    bench_require(l->b, l->list != NULL, "no memory");
    for (int i = 0; i < l->count; i++) {
        l->list[i].local = path_of(l, "%s/r%d.%d", l->local, i);
        l->list[i].name = path_of(l, "%.0sr%d.%d", "", i);
        l->list[i].size = l->size;
        bench_make_file(l->b, l->list[i].local, l->size);
    }
}

static void free_list(load *l)
{
    l->list = filo_files_free(l->count, l->list);
}

/* Rank 0 alone does it, and nothing of it goes on afterwards. */
static void clear(const load *l, const char *folder)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) bench_remove(folder);
    if (rank == 0 && l->disk) sync();
    bench_mpi_rest(MPI_COMM_WORLD);
}

/* ---- what is measured ---- */

static double run_cp(void *arg)
{
    const load *l = arg;
    double seconds = 0;
    if (rank == 0) {
        double start = bench_now();
        bench_copy(l->b, l->local, l->prefix, l->disk);
        seconds = bench_now() - start;
    }
    bench_mpi_rest(MPI_COMM_WORLD);
    seconds = bench_mpi_slowest(MPI_COMM_WORLD, seconds);
    clear(l, l->prefix);
    return seconds;
}

static void flush(const load *l)
{
    filo_error err = {""};
    int rc =
        filo_flush(MPI_COMM_WORLD, l->prefix, NULL, l->count, l->list, &l->options, &err);
    bench_require(l->b, rc == 0, err.text);
}

static double run_flush(void *arg)
{
    const load *l = arg;
    double start = bench_mpi_start(MPI_COMM_WORLD);
    flush(l);
    double seconds = bench_mpi_slowest(MPI_COMM_WORLD, bench_now() - start);
    clear(l, l->prefix);
    return seconds;
}

/* What was flushed comes back to the local directory: its map is read, its files are. */
static double run_fetch(void *arg)
{
    const load *l = arg;
    filo_error err = {""};
    int all, count = 0;
    filo_file *files = NULL;
    flush(l);
    double start = bench_mpi_start(MPI_COMM_WORLD);
    int rc =
        filo_read_map(MPI_COMM_WORLD, l->prefix, NULL, &all, &count, &files, NULL, &err);
    for (int i = 0; i < count && rc == 0; i++)
        files[i].local = path_of(l, "%s/r%d.%d", l->local, i);
    if (rc == 0)
        rc = filo_fetch(MPI_COMM_WORLD, l->prefix, count, files, &l->options, &err);
    double seconds = bench_mpi_slowest(MPI_COMM_WORLD, bench_now() - start);
    bench_require(l->b, rc == 0 && count == l->count, err.text);
    filo_files_free(count, files);
    clear(l, l->prefix);
    return seconds;
}

/* What is measured, with the most time that it may take, in that of cp. */
static const struct way {
    const char *name;
    double (*run)(void *arg);
    filo_options options;
    double disk;
} ways[] = {
    {"cp", run_cp, {0}, NAN},
    {"flush", run_flush, {.method = "sync"}, 1.1},
    {"flush, checksum", run_flush, {.method = "sync", .checksum = 1}, 1.1},
    {"flush, pthread", run_flush, {.method = "pthread", .workers = 2}, 1.1},
    {"flush, packed", run_flush, {.checksum = 1, .container = 256 * (uint64_t)MiB}, NAN},
    {"fetch, checksum", run_fetch, {.checksum = 1}, NAN},
    {"fetch, packed", run_fetch, {.checksum = 1, .container = 256 * (uint64_t)MiB}, NAN},
};

enum { WAYS = sizeof ways / sizeof ways[0] };

static void report(bench *b, const load *l, const char *name, const double t[WAYS])
{
    double megabytes = 1e-6 * (double)l->size * l->files * l->writers;
    for (int i = 0; i < WAYS; i++) {
        char text[32];
        double most = l->disk ? ways[i].disk : NAN;
        snprintf(text, sizeof text, "at most %g", most);
        bench_text(b, l->disk ? "disk" : "memory");
        bench_text(b, name);
        bench_text(b, ways[i].name);
        bench_number(b, megabytes / t[i]);
        bench_number(b, t[i] / t[0]);
        bench_text(b, isnan(most) ? "-" : text);
        bench_text(b, isnan(most) ? "-" : t[i] <= most * t[0] ? "reached" : "missed");
    }
}

/* disk: where the copies go, or NULL: to memory. */
static void measure(bench *b, const char *name, int writers, int files, size_t size,
                    const char *disk)
{
    load loads[WAYS], first = {.b = b, .writers = writers, .files = files, .size = size};
    bench_case cases[WAYS];
    double t[WAYS];
    first.disk = disk != NULL;
    snprintf(first.local, sizeof first.local, "%s/local", b->folder);
    snprintf(first.prefix, sizeof first.prefix, "%s/prefix", disk ? disk : b->folder);
    if (rank == 0) bench_require(b, mkdir(first.local, 0700) == 0, first.local);
    MPI_Barrier(MPI_COMM_WORLD);
    make_list(&first);
    for (int i = 0; i < WAYS; i++) {
        loads[i] = first;
        loads[i].options = ways[i].options;
        cases[i] = (bench_case){ways[i].run, &loads[i]};
    }
    bench_measure(b, WAYS, cases, t);
    clear(&first, first.local);
    free_list(&first);
    report(b, &first, name, t);
}

static void measure_all(bench *b, const char *disk)
{
    measure(b, "4 x 64 MiB", 4, 1, 64 * (size_t)MiB, disk);
    measure(b, "8 x 64 MiB", 8, 1, 64 * (size_t)MiB, disk);
    measure(b, "8 x 250 x 64 KiB", 8, 250, 64 * (size_t)KiB, disk);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {"to",      "files",    "by",     "MB/s",
                                          "time/cp", "to reach", "result", NULL};
    char disk[] = "/var/tmp/bench-filo-XXXXXX";
    bench b;
    bench_mpi_begin(&b, &argc, &argv, columns);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bench_require(&b, ranks >= 8, "8 ranks are needed");
    if (rank == 0) bench_require(&b, mkdtemp(disk) != NULL, disk);
    MPI_Bcast(disk, sizeof disk, MPI_CHAR, 0, MPI_COMM_WORLD);
    measure_all(&b, NULL);
    measure_all(&b, disk);
    if (rank == 0) bench_remove(disk);
    return bench_mpi_end(&b);
}
