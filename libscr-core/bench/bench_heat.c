/* SPDX-License-Identifier: BSD-3-Clause */
/* The time of a checkpoint of the demonstration program, compared with the same program
 * that writes and syncs its state without SCR: eight ranks on four simulated nodes with
 * XOR. The program is examples/heat.c itself with another main function. */
#include "simulate.h"

int heat_main(int argc, char **argv);

#define main heat_main
#include "examples/heat.c"
#undef main

typedef struct load {
    const bench *b;
    struct plate plate;
    int turn; /* number of the next checkpoint */
} load;

static double step(void *arg)
{
    load *l = arg;
    double start = bench_mpi_start(MPI_COMM_WORLD);
    plate_step(&l->plate);
    return bench_mpi_slowest(MPI_COMM_WORLD, bench_now() - start);
}

static double without_scr(void *arg)
{
    load *l = arg;
    char old[64], path[64];
    snprintf(old, sizeof old, "plain.%d.%d", l->turn - 2, l->plate.rank);
    snprintf(path, sizeof path, "plain.%d.%d", l->turn, l->plate.rank);
    double start = bench_mpi_start(MPI_COMM_WORLD);
    unlink(old);
    int ok = transfer_state(path, "wb", &l->plate, &l->turn) && simulate_sync(path);
    double seconds = bench_mpi_slowest(MPI_COMM_WORLD, bench_now() - start);
    bench_require(l->b, ok, path);
    return seconds;
}

static double with_scr(void *arg)
{
    load *l = arg;
    double start = bench_mpi_start(MPI_COMM_WORLD);
    int ok = checkpoint(&l->plate, l->turn++);
    double seconds = bench_mpi_slowest(MPI_COMM_WORLD, bench_now() - start);
    bench_require(l->b, ok, "a checkpoint failed");
    return seconds;
}

static void measure(bench *b, int side)
{
    enum { STEP, PLAIN, SCR, CASES };
    load l = {.b = b};
    const bench_case cases[] = {{step, &l}, {without_scr, &l}, {with_scr, &l}};
    double t[CASES];
    plate_init(&l.plate, side);
    simulate_nodes(b, MPI_COMM_WORLD, "XOR");
    bench_require(b, SCR_Init() == SCR_SUCCESS, "SCR_Init failed");
    for (int i = 0; i < 2; i++) { /* from here on, each checkpoint removes an older one */
        without_scr(&l);
        with_scr(&l);
    }
    bench_measure(b, CASES, cases, t);
    bench_number(b, side);
    bench_number(b, 8.0 * (l.plate.rows + 2) * (l.plate.cols + 2) / KiB);
    for (int i = 0; i < CASES; i++)
        bench_number(b, 1e3 * t[i]);
    bench_number(b, t[SCR] / t[PLAIN]);
    SCR_Finalize();
    plate_done(&l.plate);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {"points per side",
                                          "KiB/rank",
                                          "time step [ms]",
                                          "state without SCR [ms]",
                                          "checkpoint with SCR [ms]",
                                          "with/without",
                                          NULL};
    bench b;
    bench_mpi_begin(&b, &argc, &argv, columns);
    measure(&b, 1024);
    measure(&b, 4096);
    return bench_mpi_end(&b);
}
