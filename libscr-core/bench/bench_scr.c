/* SPDX-License-Identifier: BSD-3-Clause */
/* What a checkpoint costs with SCR: SCR_Start_output to SCR_Complete_output of one file
 * per rank, eight ranks on four simulated nodes, two checkpoints kept, beside the same
 * program that writes and syncs its files, and removes the last but one, without SCR. */
#include "count.h"
#include "simulate.h"

#include <scr.h>

enum { WITHOUT, WITH, BEYOND, COLLECTIVE, CASES };

typedef struct load {
    const bench *b;
    int rank, turn; /* turn: number of the next checkpoint */
    size_t size;
    char *data;
    double beyond; /* seconds of the last checkpoint besides the program's own writing */
    counts done;   /* by the last checkpoint on this rank */
} load;

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
    double start = bench_mpi_start(MPI_COMM_WORLD);
    counts before = *count_now();
    int rc = SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT);
    if (rc == SCR_SUCCESS) rc = SCR_Route_file(name, path);
    double writing = bench_now();
    int ok = rc == SCR_SUCCESS && write_data(l, path, 0);
    writing = bench_now() - writing;
    rc = SCR_Complete_output(ok);
    double seconds = bench_now() - start;
    counts after = *count_now();
    l->done =
        (counts){after.syncs - before.syncs, after.collectives - before.collectives};
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

/* What an agreement of all ranks costs here, of which a checkpoint has several. */
static double collective(void *arg)
{
    int one = 1, sum;
    (void)arg;
    double start = bench_mpi_start(MPI_COMM_WORLD);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return bench_mpi_slowest(MPI_COMM_WORLD, bench_now() - start);
}

static void add_row(bench *b, const char *scheme, const load *l, const double t[])
{
    int most[2] = {l->done.syncs, l->done.collectives};
    MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    bench_text(b, scheme);
    bench_number(b, (double)l->size / KiB);
    for (int i = 0; i < CASES; i++)
        bench_number(b, 1e3 * t[i]);
    bench_number(b, t[WITH] / t[WITHOUT]);
    bench_number(b, most[0]);
    bench_number(b, most[1]);
}

static void measure(bench *b, const char *scheme, size_t size)
{
    load l = {.b = b, .size = size, .data = malloc(size)};
    const bench_case cases[] = {
        {without_scr, &l}, {with_scr, &l}, {beyond, &l}, {collective, NULL}};
    double t[CASES];
    bench_require(b, l.data != NULL, "no memory");
    bench_fill(l.data, size);
    MPI_Comm_rank(MPI_COMM_WORLD, &l.rank);
    simulate_nodes(b, scheme);
    bench_require(b, SCR_Init() == SCR_SUCCESS, "SCR_Init failed");
    for (int i = 0; i < 2; i++) { /* from here on each one removes another */
        without_scr(&l);
        with_scr(&l);
    }
    bench_measure(b, CASES, cases, t);
    add_row(b, scheme, &l, t);
    SCR_Finalize();
    free(l.data);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {"scheme",
                                          "KiB/rank",
                                          "without SCR [ms]",
                                          "with SCR [ms]",
                                          "beyond writes [ms]",
                                          "one Allreduce [ms]",
                                          "with/without",
                                          "fsync/rank",
                                          "collectives/rank",
                                          NULL};
    bench b;
    bench_mpi_begin(&b, &argc, &argv, columns);
    measure(&b, "SINGLE", KiB);
    measure(&b, "XOR", KiB);
    measure(&b, "SINGLE", 16 * (size_t)MiB);
    measure(&b, "XOR", 16 * (size_t)MiB);
    return bench_mpi_end(&b);
}
