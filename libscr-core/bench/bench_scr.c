/* SPDX-License-Identifier: BSD-3-Clause */
/* What a checkpoint costs with SCR: SCR_Start_output to SCR_Complete_output of one file
 * per rank, on four simulated nodes, two checkpoints kept, beside the same program that
 * writes and syncs its files, and removes the last but one, without SCR. */
#include "load.h"

enum { WITHOUT, WITH, BEYOND, COLLECTIVE, CASES };

static double without_scr(void *arg)
{
    const load *l = arg;
    char old[64], path[64];
    snprintf(old, sizeof old, "plain.%d.%d", l->turn - 2, l->rank);
    snprintf(path, sizeof path, "plain.%d.%d", l->turn, l->rank);
    double start = bench_mpi_start(l->comm);
    unlink(old);
    int ok = load_write(l, path, 1);
    double seconds = bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, ok, path);
    return seconds;
}

/* Of the last checkpoint, what the program did not do itself. */
static double beyond(void *arg)
{
    const load *l = arg;
    return l->writing;
}

/* What an agreement of all ranks costs here, of which a checkpoint has several. */
static double collective(void *arg)
{
    int one = 1, sum;
    const load *l = arg;
    double start = bench_mpi_start(l->comm);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, l->comm);
    return bench_mpi_slowest(l->comm, bench_now() - start);
}

static void measure(load *l, const char *scheme, double t[CASES])
{
    const bench_case cases[] = {
        {without_scr, l}, {load_checkpoint, l}, {beyond, l}, {collective, l}};
    simulate_nodes(l->b, l->comm, scheme);
    bench_require(l->b, SCR_Init_comm(l->comm) == SCR_SUCCESS, "SCR_Init_comm failed");
    for (int i = 0; i < 2; i++) { /* from here on each one removes another */
        without_scr(l);
        load_checkpoint(l);
    }
    bench_measure(l->b, CASES, cases, t);
    SCR_Finalize();
}

/* What goes through memory: times are beside those without SCR. */
static void measure_large(bench *b, MPI_Comm comm, const char *scheme, double most)
{
    double t[CASES];
    int ranks;
    MPI_Comm_size(comm, &ranks);
    load l = load_new(b, comm, 64 * (size_t)MiB);
    measure(&l, scheme, t);
    free(l.data);
    bench_number(b, ranks);
    bench_text(b, scheme);
    bench_number(b, 1e3 * t[WITHOUT]);
    bench_number(b, 1e3 * t[WITH]);
    bench_number(b, 1e3 * (t[WITH] - t[BEYOND]));
    bench_number(b, t[WITH] / t[WITHOUT]);
    simulate_goal(b, t[WITH] / t[WITHOUT], most);
}

/* What does not: times stand alone. */
static void measure_small(bench *b, MPI_Comm comm, const char *scheme, double most)
{
    double t[CASES];
    int ranks;
    load l = load_new(b, comm, KiB);
    measure(&l, scheme, t);
    free(l.data);
    int done[2] = {l.done.syncs, l.done.collectives};
    MPI_Allreduce(MPI_IN_PLACE, done, 2, MPI_INT, MPI_MAX, comm);
    MPI_Comm_size(comm, &ranks);
    bench_number(b, ranks);
    bench_text(b, scheme);
    bench_number(b, 1e3 * t[WITHOUT]);
    bench_number(b, 1e3 * t[WITH]);
    simulate_goal(b, 1e3 * t[WITH], most);
    bench_number(b, 1e3 * t[COLLECTIVE]);
    bench_number(b, done[1]);
    bench_number(b, done[0]);
    simulate_goal(b, done[0], 4);
}

int main(int argc, char **argv)
{
    static const char *const large[] = {"ranks",
                                        "scheme",
                                        "without SCR [ms]",
                                        "with SCR [ms]",
                                        "beyond writes [ms]",
                                        "with/without",
                                        "goal",
                                        "verdict",
                                        NULL};
    static const char *const small[] = {
        "ranks",      "scheme",       "without SCR [ms]",   "with SCR [ms]",
        "goal [ms]",  "verdict",      "one Allreduce [ms]", "collectives/rank",
        "fsync/rank", "goal [fsync]", "verdict [fsync]",    NULL};
    static const struct {
        const char *scheme;
        double most;
    } goals[] = {{"SINGLE", 1.1}, {"PARTNER", 1.9}, {"XOR", 1.7}, {"RS", 2.3}};
    bench b;
    int rank;
    MPI_Comm four;
    bench_mpi_begin(&b, &argc, &argv, large);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 4, rank, &four);
    for (size_t i = 0; i < sizeof goals / sizeof goals[0]; i++) {
        if (rank < 4) measure_large(&b, four, goals[i].scheme, goals[i].most);
        bench_mpi_rest(MPI_COMM_WORLD);
        measure_large(&b, MPI_COMM_WORLD, goals[i].scheme, goals[i].most);
    }
    bench_table(&b, small);
    if (rank < 4) measure_small(&b, four, "SINGLE", 1.0);
    if (rank < 4) measure_small(&b, four, "XOR", 1.5);
    bench_mpi_rest(MPI_COMM_WORLD);
    measure_small(&b, MPI_COMM_WORLD, "SINGLE", NAN);
    measure_small(&b, MPI_COMM_WORLD, "XOR", NAN);
    MPI_Comm_free(&four);
    return bench_mpi_end(&b);
}
