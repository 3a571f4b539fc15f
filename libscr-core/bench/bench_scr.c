/* SPDX-License-Identifier: BSD-3-Clause */
/* What a checkpoint costs with SCR: SCR_Start_output to SCR_Complete_output of one file
 * per rank, eight ranks on four simulated nodes, two checkpoints kept, beside the same
 * program that writes and syncs its files, and removes the last but one, without SCR. */
#include "simulate.h"

#include <scr.h>
#include <sys/syscall.h>

typedef struct load {
    const bench *b;
    int rank, turn; /* turn: number of the next checkpoint */
    size_t size;
    char *data;
    double beyond;  /* seconds of the last checkpoint besides the program's own writing */
    unsigned syncs; /* of the last checkpoint, on this rank */
} load;

/* Counts the calls of fsync in this process. */
static unsigned *sync_count(void)
{
    static unsigned count;
    return &count;
}

int fsync(int fd)
{
    ++*sync_count();
    return (int)syscall(SYS_fsync, fd);
}

static int write_data(const load *l, const char *path, int sync)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) return 0;
    int ok = write(fd, l->data, l->size) == (ssize_t)l->size;
    if (sync) ok &= fsync(fd) == 0;
    return close(fd) == 0 && ok;
}

static void plain_path(const load *l, int turn, char path[64])
{
    snprintf(path, 64, "plain.%d.%d", turn, l->rank);
}

static double without_scr(void *arg)
{
    load *l = arg;
    char old[64], path[64];
    plain_path(l, l->turn - 2, old);
    plain_path(l, l->turn, path);
    double start = bench_mpi_start(MPI_COMM_WORLD);
    unlink(old);
    int ok = write_data(l, path, 1);
    double seconds = bench_mpi_slowest(MPI_COMM_WORLD, bench_now() - start);
    bench_require(l->b, ok, path);
    return seconds;
}

static double with_scr(void *arg)
{
    load *l = arg;
    char dataset[64], name[96], path[SCR_MAX_FILENAME];
    snprintf(dataset, sizeof dataset, "%zu.%d", l->size, l->turn++);
    snprintf(name, sizeof name, "%s/rank_%d", dataset, l->rank);
    unsigned syncs = *sync_count();
    double start = bench_mpi_start(MPI_COMM_WORLD);
    int rc = SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT);
    if (rc == SCR_SUCCESS) rc = SCR_Route_file(name, path);
    double writing = bench_now();
    int ok = rc == SCR_SUCCESS && write_data(l, path, 0);
    writing = bench_now() - writing;
    rc = SCR_Complete_output(ok);
    double seconds = bench_now() - start;
    l->syncs = *sync_count() - syncs;
    bench_require(l->b, rc == SCR_SUCCESS, SCR_Strerror(rc));
    seconds = bench_mpi_slowest(MPI_COMM_WORLD, seconds);
    l->beyond = seconds - bench_mpi_slowest(MPI_COMM_WORLD, writing);
    return seconds;
}

static double beyond(void *arg)
{
    const load *l = arg;
    return l->beyond;
}

static void add_row(bench *b, const char *scheme, const load *l, const double t[3])
{
    unsigned syncs = l->syncs;
    MPI_Allreduce(MPI_IN_PLACE, &syncs, 1, MPI_UNSIGNED, MPI_MAX, MPI_COMM_WORLD);
    bench_text(b, scheme);
    bench_number(b, (double)l->size / KiB);
    for (int i = 0; i < 3; i++)
        bench_number(b, 1e3 * t[i]);
    bench_number(b, t[1] / t[0]);
    bench_number(b, syncs);
}

static void measure(bench *b, const char *scheme, size_t size)
{
    load l = {.b = b, .size = size, .data = malloc(size)};
    const bench_case cases[] = {{without_scr, &l}, {with_scr, &l}, {beyond, &l}};
    double t[3];
    bench_require(b, l.data != NULL, "no memory");
    bench_fill(l.data, size);
    MPI_Comm_rank(MPI_COMM_WORLD, &l.rank);
    simulate_nodes(b, scheme);
    bench_require(b, SCR_Init() == SCR_SUCCESS, "SCR_Init failed");
    for (int i = 0; i < 2; i++) { /* from here on each one removes another */
        without_scr(&l);
        with_scr(&l);
    }
    bench_measure(b, 3, cases, t);
    add_row(b, scheme, &l, t);
    SCR_Finalize();
    free(l.data);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {
        "scheme",        "KiB/rank",     "without SCR [ms]", "with SCR",
        "beyond writes", "with/without", "fsync/rank",       NULL};
    bench b;
    bench_mpi_begin(&b, &argc, &argv, columns);
    measure(&b, "SINGLE", KiB);
    measure(&b, "XOR", KiB);
    measure(&b, "SINGLE", 16 * (size_t)MiB);
    measure(&b, "XOR", 16 * (size_t)MiB);
    return bench_mpi_end(&b);
}
