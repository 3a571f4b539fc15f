/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a checkpoint with SCR, from SCR_Start_output to SCR_Complete_output: one
 * file per rank, four simulated nodes, two checkpoints kept. It is compared with the same
 * program without SCR, which writes and syncs its files and removes the last but one. The
 * limit is the same program that also moves the bytes which the scheme must move and, for
 * small files, makes the same number of agreements and writes the same number of
 * records. */
#include "limit.h"

enum { WITHOUT, LIMIT, WITH, BEYOND, COLLECTIVE, CASES };

/* A scheme in sets of four members. sent and written: bytes that each rank must send and
 * write, as a multiple of the size of its file. Each byte is also read and added to a
 * checksum. */
typedef struct scheme {
    const char *name;
    double sent, written, most; /* most: maximum of with/without SCR */
    bool unsummed;              /* without checksums */
} scheme;

/* A checkpoint without SCR, and the work that a scheme adds. */
typedef struct work {
    load *load;
    scheme scheme;
    limit limit;
} work;

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

static double at_limit(void *arg)
{
    const work *w = arg;
    const load *l = w->load;
    const double size = (double)l->size;
    char path[64], redundancy[64];
    int ranks;
    MPI_Comm_size(l->comm, &ranks);
    snprintf(path, sizeof path, "plain.%d.%d", l->turn, l->rank);
    snprintf(redundancy, sizeof redundancy, "redundancy.%d", l->rank);
    double seconds = without_scr(w->load), start = bench_mpi_start(l->comm);
    bool ok = w->scheme.unsummed || limit_read(&w->limit, path, l->size);
    limit_send(&w->limit, (l->rank + 1) % ranks, (l->rank + ranks - 1) % ranks,
               w->scheme.sent * size);
    ok = ok && limit_write(&w->limit, redundancy, w->scheme.written * size);
    seconds += bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, ok, path);
    return seconds;
}

/* Small files: adds two records per rank, and the number of agreements that SCR makes. */
static double at_limit_small(void *arg)
{
    const work *w = arg;
    const load *l = w->load;
    char path[64], record[2][64];
    long facts[8] = {0};
    snprintf(path, sizeof path, "plain.%d.%d", l->turn, l->rank);
    for (int i = 0; i < 2; i++)
        snprintf(record[i], sizeof record[i], "record.%d.%d", i, l->rank);
    double seconds = without_scr(w->load), start = bench_mpi_start(l->comm);
    bool ok = limit_read(&w->limit, path, l->size);
    for (int i = 0; i < 2; i++)
        ok = limit_record(&w->limit, record[i]) && ok;
    for (int i = 0; i < l->done.collectives; i++)
        MPI_Allreduce(MPI_IN_PLACE, facts, 8, MPI_LONG, MPI_MAX, l->comm);
    seconds += bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, ok, path);
    return seconds;
}

/* Returns the time that the program itself spent writing in the last checkpoint. */
static double beyond(void *arg)
{
    const load *l = arg;
    return l->writing;
}

/* Measures an agreement of all ranks; a checkpoint has several. */
static double collective(void *arg)
{
    int one = 1, sum;
    const load *l = arg;
    double start = bench_mpi_start(l->comm);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, l->comm);
    return bench_mpi_slowest(l->comm, bench_now() - start);
}

static void measure(load *l, const scheme *s, double t[CASES])
{
    work w = {l, *s, limit_new(l)};
    const bench_case cases[] = {{without_scr, l},
                                {l->size > KiB ? at_limit : at_limit_small, &w},
                                {load_checkpoint, l},
                                {beyond, l},
                                {collective, l}};
    simulate_nodes(l->b, l->comm, s->name);
    simulate_set("SCR_CRC_ON_COPY", s->unsummed ? "0" : "1");
    bench_require(l->b, SCR_Init_comm(l->comm) == SCR_SUCCESS, "SCR_Init_comm failed");
    for (int i = 0; i < 2; i++) { /* from here on, each checkpoint removes an older one */
        without_scr(l);
        load_checkpoint(l);
    }
    bench_measure(l->b, CASES, cases, t);
    SCR_Finalize();
    limit_free(&w.limit);
}

/* Large files, limited by memory bandwidth: compares times with those without SCR. */
static void measure_large(bench *b, MPI_Comm comm, const scheme *s)
{
    double t[CASES];
    int ranks;
    MPI_Comm_size(comm, &ranks);
    load l = load_new(b, comm, 64 * (size_t)MiB);
    measure(&l, s, t);
    free(l.data);
    bench_number(b, ranks);
    bench_text(b, s->unsummed ? "SINGLE, no checksums" : s->name);
    bench_number(b, 1e3 * t[WITHOUT]);
    bench_number(b, 1e3 * t[LIMIT]);
    bench_number(b, 1e3 * t[WITH]);
    bench_number(b, 1e3 * (t[WITH] - t[BEYOND]));
    bench_number(b, t[WITH] / t[LIMIT]);
    bench_number(b, t[WITH] / t[WITHOUT]);
    simulate_goal(b, t[WITH] / t[WITHOUT], s->most);
}

/* Small files, limited by other costs: reports absolute times. */
static void measure_small(bench *b, MPI_Comm comm, const char *name, double most)
{
    double t[CASES];
    int ranks;
    load l = load_new(b, comm, KiB);
    measure(&l, &(scheme){.name = name}, t);
    free(l.data);
    int done[2] = {l.done.syncs, l.done.collectives};
    MPI_Allreduce(MPI_IN_PLACE, done, 2, MPI_INT, MPI_MAX, comm);
    MPI_Comm_size(comm, &ranks);
    bench_number(b, ranks);
    bench_text(b, name);
    bench_number(b, 1e3 * t[WITHOUT]);
    bench_number(b, 1e3 * t[LIMIT]);
    bench_number(b, 1e3 * t[WITH]);
    bench_number(b, t[WITH] / t[LIMIT]);
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
                                        "limit [ms]",
                                        "with SCR [ms]",
                                        "beyond writes [ms]",
                                        "with/limit",
                                        "with/without",
                                        "goal",
                                        "verdict",
                                        NULL};
    static const char *const small[] = {"ranks",
                                        "scheme",
                                        "without SCR [ms]",
                                        "limit [ms]",
                                        "with SCR [ms]",
                                        "with/limit",
                                        "goal [ms]",
                                        "verdict",
                                        "one Allreduce [ms]",
                                        "collectives/rank",
                                        "fsync/rank",
                                        "goal [fsync]",
                                        "verdict [fsync]",
                                        NULL};
    static const scheme schemes[] = {{"SINGLE", 0, 0, 1.05, true},
                                     {"SINGLE", 0, 0, 1.05, false},
                                     {"PARTNER", 1, 1, 1.8, false},
                                     {"XOR", 1, 1. / 3, 1.6, false},
                                     {"RS", 1.5, 1, 2.0, false}};
    bench b;
    int rank;
    MPI_Comm four;
    bench_mpi_begin(&b, &argc, &argv, large);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 4, rank, &four);
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (rank < 4) measure_large(&b, four, &schemes[i]);
        bench_mpi_rest(MPI_COMM_WORLD);
        measure_large(&b, MPI_COMM_WORLD, &schemes[i]);
    }
    bench_table(&b, small);
    if (rank < 4) measure_small(&b, four, "SINGLE", 1.0);
    if (rank < 4) measure_small(&b, four, "XOR", 1.2);
    bench_mpi_rest(MPI_COMM_WORLD);
    measure_small(&b, MPI_COMM_WORLD, "SINGLE", NAN);
    measure_small(&b, MPI_COMM_WORLD, "XOR", NAN);
    MPI_Comm_free(&four);
    return bench_mpi_end(&b);
}
