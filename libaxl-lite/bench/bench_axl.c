/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies one large file, some medium files and many small files from memory to memory and
 * to disk, by each transfer method, with and without checksums, and compares this with
 * `cp -r` of the same directory (to disk: followed by a sync of its file system). The
 * limit is a loop that does for each file only what a transfer promises. Also measures
 * adding files to a transfer with a state file. */
#include "bench.h"

#include "common/crc32.h"

#include <axl/axl.h>
#include <stdbool.h>

typedef struct load {
    const bench *b;
    int files;
    size_t size; /* of each file */
    unsigned flags;
    double (*copy)(const struct load *l); /* returns the seconds */
    const char *method;                   /* method of a transfer */
    int synced;                           /* cp: its copies are synced */
    char source[128], destination[128];
} load;

static void count_all(const load *l)
{
    char path[160];
    struct stat st;
    for (int i = 0; i < l->files; i++) {
        snprintf(path, sizeof path, "%s/f%d", l->destination, i);
        bench_require(l->b, stat(path, &st) == 0 && (size_t)st.st_size == l->size, path);
    }
}

/* Checks that all copies exist, and removes them, so that the next run starts anew and
 * waits for nothing of this run. */
static void check(const load *l)
{
    count_all(l);
    bench_remove(l->destination);
    if (l->synced) sync();
}

static int add_all(const load *l, axl_transfer *transfer, axl_error *err)
{
    char from[160], to[160];
    int rc = 0;
    for (int i = 0; i < l->files && rc == 0; i++) {
        snprintf(from, sizeof from, "%s/f%d", l->source, i);
        snprintf(to, sizeof to, "%s/f%d", l->destination, i);
        rc = axl_add(transfer, from, to, err);
    }
    return rc;
}

static double run_axl(const load *l)
{
    axl_transfer *transfer = NULL;
    const axl_options options = {.flags = l->flags};
    axl_error err = {""};
    double start = bench_now();
    int rc = axl_create(l->method, &options, &transfer, &err);
    if (rc == 0) rc = add_all(l, transfer, &err);
    if (rc == 0) rc = axl_dispatch(transfer, &err);
    if (rc == 0) rc = axl_wait(transfer, &err);
    axl_free(transfer);
    double seconds = bench_now() - start;
    bench_require(l->b, rc == 0, err.text);
    return seconds;
}

static double run_cp(const load *l)
{
    double start = bench_now();
    bench_copy(l->b, l->source, l->destination, l->synced);
    return bench_now() - start;
}

enum { PIECE = 256 * KiB };

/* Copies a file to a temporary name. Returns its descriptor, or -1. */
static int limit_copy(const load *l, const char *from, const char *part)
{
    static unsigned char piece[PIECE];
    static volatile uint32_t result;
    uint32_t crc = 0;
    ssize_t n = 1;
    int in = open(from, O_RDONLY), out = open(part, O_WRONLY | O_CREAT | O_EXCL, 0600);
    bool ok = in >= 0 && out >= 0;
    while (ok && n > 0) {
        n = read(in, piece, PIECE);
        ok = n >= 0 && write(out, piece, (size_t)n) == n;
        if (ok && l->flags & AXL_CHECKSUM) crc = crc32_add(crc, piece, (size_t)n);
    }
    result = crc;
    (void)result;
    if (in >= 0) close(in);
    if (!ok && out >= 0) close(out);
    return ok ? out : -1;
}

/* Syncs and renames each file, and finally syncs the directory. */
static double run_limit(const load *l)
{
    char from[160], part[160], to[160];
    double start = bench_now();
    bool ok = mkdir(l->destination, 0700) == 0;
    for (int i = 0; i < l->files && ok; i++) {
        snprintf(from, sizeof from, "%s/f%d", l->source, i);
        snprintf(part, sizeof part, "%s/.part%d", l->destination, i);
        snprintf(to, sizeof to, "%s/f%d", l->destination, i);
        int fd = limit_copy(l, from, part);
        ok = fd >= 0 && fsync(fd) == 0 && rename(part, to) == 0;
        if (fd >= 0) close(fd);
    }
    int folder = open(l->destination, O_RDONLY | O_DIRECTORY);
    ok = folder >= 0 && fsync(folder) == 0 && ok;
    if (folder >= 0) close(folder);
    double seconds = bench_now() - start;
    bench_require(l->b, ok, l->destination);
    return seconds;
}

static double run(void *arg)
{
    const load *l = arg;
    double seconds = l->copy(l);
    check(l);
    return seconds;
}

/* The cases. memory and disk are the most time a case may take, relative to cp. */
static const struct way {
    const char *name;
    double (*copy)(const load *l);
    const char *method;
    unsigned flags;
    double memory, disk;
    int limit; /* index of the case to compare with, in memory */
} ways[] = {
    {"cp", run_cp, NULL, 0, NAN, NAN, 5},
    {"sync", run_axl, "sync", 0, NAN, 1.05, 5},
    {"sync, checksum", run_axl, "sync", AXL_CHECKSUM, 1.1, 1.05, 6},
    {"pthread", run_axl, "pthread", 0, 0.9, 1.05, 5},
    {"pthread, checksum", run_axl, "pthread", AXL_CHECKSUM, 1.1, 1.05, 6},
    {"limit", run_limit, NULL, 0, NAN, NAN, 5},
    {"limit, checksum", run_limit, NULL, AXL_CHECKSUM, NAN, NAN, 6},
};

/* On disk the limit is not measured: it would wait for the disk file by file. */
enum { WAYS = sizeof ways / sizeof ways[0], WAYS_ON_DISK = 5 };

static int count_ways(const load *l)
{
    return l->synced ? WAYS_ON_DISK : WAYS;
}

static void report(bench *b, const load *l, const char *name, const double t[WAYS])
{
    double megabytes = 1e-6 * (double)l->size * l->files;
    for (int i = 0; i < count_ways(l); i++) {
        char text[32];
        double most = l->synced ? ways[i].disk : ways[i].memory;
        snprintf(text, sizeof text, "at most %g", most);
        bench_text(b, l->synced ? "disk" : "memory");
        bench_text(b, name);
        bench_text(b, ways[i].name);
        bench_number(b, megabytes / t[i]);
        bench_number(b, t[i] / t[0]);
        bench_number(b, l->synced ? NAN : t[i] / t[ways[i].limit]);
        bench_text(b, isnan(most) ? "-" : text);
        bench_text(b, isnan(most) ? "-" : t[i] <= most * t[0] ? "reached" : "missed");
    }
}

/* disk: the directory of the copies, or NULL: to memory. */
static void measure(bench *b, const char *name, int files, size_t size, const char *disk)
{
    load loads[WAYS],
        first = {.b = b, .files = files, .size = size, .synced = disk != NULL};
    bench_case cases[WAYS];
    char path[160];
    double t[WAYS];
    snprintf(first.source, sizeof first.source, "%s/from", b->folder);
    snprintf(first.destination, sizeof first.destination, "%s/to",
             disk ? disk : b->folder);
    bench_require(b, mkdir(first.source, 0700) == 0, first.source);
    for (int i = 0; i < files; i++) {
        snprintf(path, sizeof path, "%s/f%d", first.source, i);
        bench_make_file(b, path, size);
    }
    for (int i = 0; i < count_ways(&first); i++) {
        loads[i] = first;
        loads[i].copy = ways[i].copy;
        loads[i].method = ways[i].method;
        loads[i].flags = ways[i].flags;
        cases[i] = (bench_case){run, &loads[i]};
    }
    bench_measure(b, count_ways(&first), cases, t);
    bench_remove(first.source);
    report(b, &first, name, t);
}

static void measure_all(bench *b, const char *disk)
{
    measure(b, "1 x 1 GiB", 1, 1024 * (size_t)MiB, disk);
    measure(b, "64 x 16 MiB", 64, 16 * (size_t)MiB, disk);
    measure(b, "2000 x 64 KiB", 2000, 64 * (size_t)KiB, disk);
}

/* ---- many files ---- */

typedef struct list {
    const bench *b;
    int files;
} list;

static double run_list(void *arg)
{
    const list *l = arg;
    axl_transfer *t = NULL;
    char state[128], to[64];
    axl_error err = {""};
    snprintf(state, sizeof state, "%s/state", l->b->folder);
    const axl_options options = {.state = state};
    double start = bench_now();
    int rc = axl_create("sync", &options, &t, &err);
    for (int i = 0; i < l->files && rc == 0; i++) {
        snprintf(to, sizeof to, "/folder/of/many/files/%d", i);
        rc = axl_add(t, "/source", to, &err);
    }
    double seconds = bench_now() - start;
    axl_free(t);
    bench_require(l->b, rc == 0, err.text);
    return seconds;
}

static void measure_lists(bench *b)
{
    list lists[] = {{b, 1000}, {b, 10000}, {b, 100000}};
    bench_case cases[] = {
        {run_list, &lists[0]}, {run_list, &lists[1]}, {run_list, &lists[2]}};
    double t[3];
    bench_measure(b, 3, cases, t);
    for (int i = 0; i < 3; i++) {
        bench_number(b, lists[i].files);
        bench_number(b, 1e9 * t[i] / lists[i].files);
    }
}

/* ---- limits ---- */

/* Runs a transfer with a limit once, for about ten seconds. Returns the use per second.
 */
static double run_limited(const load *l, const axl_options *options)
{
    axl_transfer *t = NULL;
    axl_error err = {""};
    double start = bench_now(), cpu = bench_cpu();
    int rc = axl_create("pthread", options, &t, &err);
    if (rc == 0) rc = add_all(l, t, &err);
    if (rc == 0) rc = axl_dispatch(t, &err);
    if (rc == 0) rc = axl_wait(t, &err);
    axl_free(t);
    double seconds = bench_now() - start;
    cpu = bench_cpu() - cpu; /* without the removal */
    bench_require(l->b, rc == 0, err.text);
    check(l);
    if (options->percent > 0) return 100 * cpu / seconds;
    return (double)l->size * l->files / seconds;
}

static void measure_limits(bench *b)
{
    const axl_options limits[] = {{.bandwidth = 1e8, .flags = AXL_CHECKSUM},
                                  {.percent = 5, .flags = AXL_CHECKSUM}};
    load l = {.b = b, .files = 64, .size = 16 * (size_t)MiB};
    char path[160];
    snprintf(l.source, sizeof l.source, "%s/from", b->folder);
    snprintf(l.destination, sizeof l.destination, "%s/to", b->folder);
    bench_require(b, mkdir(l.source, 0700) == 0, l.source);
    for (int i = 0; i < l.files; i++) {
        snprintf(path, sizeof path, "%s/f%d", l.source, i);
        bench_make_file(b, path, l.size);
    }
    for (int i = 0; i < 2; i++) {
        double limit = i == 0 ? limits[i].bandwidth : limits[i].percent;
        double used = run_limited(&l, &limits[i]);
        bench_text(b, i == 0 ? "bytes per second" : "percent of a processor");
        bench_number(b, limit);
        bench_number(b, used);
        bench_number(b, used / limit);
        bench_text(b, used > 0.9 * limit && used < 1.1 * limit ? "reached" : "missed");
    }
    bench_remove(l.source);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {
        "to", "files", "by", "MB/s", "time/cp", "time/limit", "to reach", "result", NULL};
    static const char *const limit_columns[] = {"limit",      "is",     "used",
                                                "used/limit", "result", NULL};
    static const char *const list_columns[] = {"files", "add [ns per file]", NULL};
    char disk[] = "/var/tmp/bench-axl-XXXXXX";
    bench b;
    bench_begin(&b, argc, argv, columns);
    bench_require(&b, mkdtemp(disk) != NULL, disk);
    measure_all(&b, NULL);
    measure_all(&b, disk);
    bench_remove(disk);
    bench_table(&b, list_columns);
    measure_lists(&b);
    bench_table(&b, limit_columns);
    measure_limits(&b);
    return bench_end(&b);
}
