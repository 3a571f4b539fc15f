/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of all ranks, flushed from memory to memory and to disk, plain and packed, and
 * fetched back to memory, compared with `cp -r` of the same files by one process. To
 * disk, `cp` is followed by a sync of its file system, because a flush syncs. */
#include "bench_filo.h"

/* Goals apply to disk only: to memory, cp needs no sync. */
static const way ways[] = {
    {"cp", run_cp, {0}, 0, NAN},
    {"flush", run_flush, {.method = "sync"}, 0, 1.1},
    {"flush, checksum", run_flush, {.method = "sync", .checksum = 1}, 0, 1.1},
    {"flush, pthread", run_flush, {.method = "pthread", .workers = 2}, 0, 1.1},
    {"flush, packed",
     run_flush,
     {.checksum = 1, .container = 256 * (uint64_t)MiB},
     0,
     NAN},
    {"fetch, checksum", run_fetch, {.checksum = 1}, 0, NAN},
    {"fetch, packed",
     run_fetch,
     {.checksum = 1, .container = 256 * (uint64_t)MiB},
     0,
     NAN},
};

enum { WAYS = sizeof ways / sizeof ways[0] };

static void measure(bench *b, const char *name, int writers, int files, size_t size,
                    const char *disk)
{
    load l = {.b = b, .writers = writers, .files = files, .size = size};
    way to_reach[WAYS];
    timing t[WAYS];
    memcpy(to_reach, ways, sizeof ways);
    for (int i = 0; i < WAYS && !disk; i++)
        to_reach[i].most = NAN;
    take_times(b, &l, disk, WAYS, to_reach, t);
    report(b, &l, name, WAYS, to_reach, t, 0);
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
    make_disk(&b, sizeof disk, disk);
    measure_all(&b, NULL);
    measure_all(&b, disk);
    if (rank == 0) bench_remove(disk);
    return bench_mpi_end(&b);
}
