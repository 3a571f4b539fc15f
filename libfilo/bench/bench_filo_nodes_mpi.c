/* SPDX-License-Identifier: BSD-3-Clause */
/* Containers of nodes, flushed and fetched, compared with files, and with the limit: one
 * process per node does only the necessary work. It writes the files of all ranks of the
 * node into one file, each rank's at a multiple of the alignment, or reads them from
 * there, with the same syncs. Each half of the ranks is a node. With two ranks on two
 * cores each leader has a core of its own; a node has the same files as with eight. */
#include "bench_filo.h"
#include "common/crc32.h"

enum { NODES = 2, TOGETHER = 8, ALIGN = 16 * MiB, BUFFER = 256 * KiB };

static char node[32];

/* ---- the limit ---- */

static int is_leader(void)
{
    return rank % (ranks / NODES) == 0;
}

static void copy(const load *l, int in, off_t from, int out, off_t to)
{
    static char buffer[BUFFER];
    static volatile uint32_t result;
    uint32_t crc = 0;
    for (size_t done = 0; done < l->size;) {
        size_t n = l->size - done < BUFFER ? l->size - done : BUFFER;
        ssize_t got = pread(in, buffer, n, from + (off_t)done);
        bench_require(l->b, got > 0, "read");
        bench_require(l->b, pwrite(out, buffer, (size_t)got, to + (off_t)done) == got,
                      "write");
        if (l->options.checksum) crc = crc32_add(crc, buffer, (size_t)got);
        done += (size_t)got;
    }
    result = crc;
    (void)result;
}

static int open_container(const load *l, int flags)
{
    char path[160];
    snprintf(path, sizeof path, "%s/box.%d", l->prefix, rank);
    int fd = open(path, flags, 0600);
    bench_require(l->b, fd >= 0, path);
    return fd;
}

/* Offset of the bytes of a rank in the container. */
static off_t offset_of(const load *l, int of)
{
    size_t bytes = (size_t)l->files * l->size;
    return (off_t)((bytes + ALIGN - 1) / ALIGN * ALIGN * (size_t)(of - rank));
}

static void sync_folder(const load *l, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    bench_require(l->b, fd >= 0 && fsync(fd) == 0 && close(fd) == 0, path);
}

static void write_container(const load *l)
{
    int out = open_container(l, O_WRONLY | O_CREAT | O_EXCL);
    for (int of = rank; of < rank + ranks / NODES; of++)
        for (int i = 0; i < l->files; i++) {
            char *path = path_of(l, of, i);
            int in = open(path, O_RDONLY);
            bench_require(l->b, in >= 0, path);
            copy(l, in, 0, out, offset_of(l, of) + (off_t)((size_t)i * l->size));
            close(in);
            free(path);
        }
    bench_require(l->b, fsync(out) == 0 && close(out) == 0, "fsync");
    sync_folder(l, l->prefix);
}

/* Like a fetch, writes new files, syncs and renames them. */
static void read_container(const load *l)
{
    int in = open_container(l, O_RDONLY);
    for (int of = rank; of < rank + ranks / NODES; of++)
        for (int i = 0; i < l->files; i++) {
            char temporary[200], *path = path_of(l, of, i);
            snprintf(temporary, sizeof temporary, "%s.tmp", path);
            int out = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
            bench_require(l->b, out >= 0, temporary);
            copy(l, in, offset_of(l, of) + (off_t)((size_t)i * l->size), out, 0);
            bench_require(l->b, fsync(out) == 0 && close(out) == 0, temporary);
            bench_require(l->b, rename(temporary, path) == 0, path);
            free(path);
        }
    close(in);
    sync_folder(l, l->local);
}

static void make_prefix(const load *l)
{
    if (rank == 0) bench_require(l->b, mkdir(l->prefix, 0700) == 0, l->prefix);
    MPI_Barrier(MPI_COMM_WORLD);
}

static double run_writer(void *arg)
{
    load *l = arg;
    make_prefix(l);
    double start = bench_mpi_start(MPI_COMM_WORLD), cpu = bench_cpu(), seconds = 0;
    if (is_leader()) {
        write_container(l);
        seconds = bench_now() - start;
    }
    return end_of_some(l, seconds, bench_cpu() - cpu);
}

static double run_reader(void *arg)
{
    load *l = arg;
    make_prefix(l);
    if (is_leader()) write_container(l);
    double start = bench_mpi_start(MPI_COMM_WORLD), cpu = bench_cpu(), seconds = 0;
    if (is_leader()) {
        read_container(l);
        seconds = bench_now() - start;
    }
    return end_of_some(l, seconds, bench_cpu() - cpu);
}

/* ---- cases ---- */

static const way ways[] = {
    {"cp", run_cp, {0}, 1, NAN},
    {"one writer per node", run_writer, {0}, 1, NAN},
    {"flush, files", run_flush, {.checksum = 1}, 1, NAN},
    {"flush, nodes", run_flush, {.align = ALIGN}, 1, 1.1},
    {"flush, nodes, checksum", run_flush, {.checksum = 1, .align = ALIGN}, 1, 1.1},
    {"one reader per node", run_reader, {0}, 5, NAN},
    {"one reader per node, checksum", run_reader, {.checksum = 1}, 5, NAN},
    {"fetch, files", run_fetch, {.checksum = 1}, 5, NAN},
    {"fetch, nodes, checksum", run_fetch, {.checksum = 1, .align = ALIGN}, 5, 1.1},
};

enum { WAYS = sizeof ways / sizeof ways[0] };

/* Measures times * TOGETHER files of this size. */
static void measure(bench *b, int times, size_t size, const char *disk)
{
    char name[32], text[32] = "";
    const int files = times * TOGETHER / ranks, large = size >= (size_t)MiB;
    if (files > 1) snprintf(text, sizeof text, "%d x ", files);
    snprintf(name, sizeof name, "%d x %s%zu %s", ranks, text,
             size / (large ? (size_t)MiB : (size_t)KiB), large ? "MiB" : "KiB");
    load l = {.b = b,
              .writers = ranks,
              .files = files,
              .size = size,
              .options = {.node = node}};
    timing t[WAYS];
    take_times(b, &l, disk, WAYS, ways, t);
    report(b, &l, name, WAYS, ways, t, 1);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {
        "to",         "files",     "by",       "MB/s",   "time/cp", "time/limit",
        "most/limit", "all/limit", "to reach", "result", NULL};
    char disk[] = "/var/tmp/bench-nodes-XXXXXX";
    bench b;
    bench_mpi_begin(&b, &argc, &argv, columns);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bench_require(&b, ranks % NODES == 0 && TOGETHER % ranks == 0,
                  "2, 4 or 8 ranks are needed");
    snprintf(node, sizeof node, "node %d", rank / (ranks / NODES));
    make_disk(&b, sizeof disk, disk);
    for (int to = 0; to < 2; to++) {
        measure(&b, 1, 64 * (size_t)MiB, to ? disk : NULL);
        measure(&b, 250, 64 * (size_t)KiB, to ? disk : NULL);
    }
    if (rank == 0) bench_remove(disk);
    return bench_mpi_end(&b);
}
