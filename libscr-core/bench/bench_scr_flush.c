/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of flushes and restarts: four ranks on four simulated nodes, XOR, two
 * checkpoints kept. The prefix directory is in memory, too. */
#include "limit.h"

enum { RANKS = 4 };

/* ---- flush ---- */

enum { NONE, SYNC, ASYNC, KINDS };

typedef struct phase {
    load l;
    double computing; /* seconds of computing after the last checkpoint */
} phase;

/* Computes long enough for the flush to complete. */
static double compute(void)
{
    double start = bench_now(), x = 1;
    volatile double result;
    for (int i = 0; i < 150 * 1000 * 1000; i++)
        x = x * 0.999999 + 1e-7;
    result = x;
    (void)result;
    return bench_now() - start;
}

/* Measures a checkpoint and the computing phase after it. */
static double checkpoint_and_compute(void *arg)
{
    phase *p = arg;
    double seconds = load_checkpoint(&p->l);
    p->computing = bench_mpi_slowest(p->l.comm, compute());
    for (int i = 0, flag; i < 40; i++) { /* the rest of the flush continues here */
        SCR_Should_exit(&flag);
        usleep(10000);
    }
    return seconds;
}

static double computing(void *arg)
{
    const phase *p = arg;
    return p->computing;
}

static void measure_flush(bench *b, MPI_Comm comm, int kind, double t[2])
{
    phase p = {.l = load_new(b, comm, 16 * (size_t)MiB)};
    const bench_case cases[] = {{checkpoint_and_compute, &p}, {computing, &p}};
    simulate_nodes(b, comm, "XOR");
    simulate_set("SCR_FLUSH", kind == NONE ? "0" : "1");
    simulate_set("SCR_FLUSH_ASYNC", kind == ASYNC ? "1" : "0");
    simulate_set("SCR_PREFIX_SIZE", "2");
    bench_require(b, SCR_Init_comm(comm) == SCR_SUCCESS, "SCR_Init_comm failed");
    for (int i = 0; i < 2; i++)
        checkpoint_and_compute(&p);
    bench_measure(b, 2, cases, t);
    SCR_Finalize();
    free(p.l.data);
}

static void flush(bench *b, MPI_Comm comm)
{
    static const char *const names[] = {"none", "sync", "async"};
    double t[KINDS][2];
    for (int i = 0; i < KINDS; i++)
        measure_flush(b, comm, i, t[i]);
    for (int i = 0; i < KINDS; i++) {
        double ratio = t[i][0] / t[NONE][0];
        bench_text(b, names[i]);
        bench_number(b, 1e3 * t[i][0]);
        bench_number(b, ratio);
        simulate_goal(b, ratio, i == ASYNC ? 1.1 : NAN);
        bench_number(b, 1e3 * t[i][1]);
        bench_number(b, 1e3 * (t[i][0] + t[i][1] - t[NONE][0] - t[NONE][1]));
    }
}

/* ---- restart ---- */

typedef struct restart {
    load l;
    int lose;     /* loses the node of rank 1 */
    double start; /* seconds of SCR_Init in the last run */
    limit limit;
} restart;

/* Measures SCR_Init to SCR_Have_restart with two checkpoints that an earlier run left. */
static double run_restart(void *arg)
{
    restart *r = arg;
    char path[128], name[SCR_MAX_FILENAME];
    int flag = 0;
    snprintf(path, sizeof path, "%s/n1", r->l.b->folder);
    if (r->lose && r->l.rank == 1) bench_remove(path);
    double start = bench_mpi_start(r->l.comm);
    int rc = SCR_Init_comm(r->l.comm);
    r->start = bench_mpi_slowest(r->l.comm, bench_now() - start);
    if (rc == SCR_SUCCESS) rc = SCR_Have_restart(&flag, name);
    double seconds = bench_mpi_slowest(r->l.comm, bench_now() - start);
    bench_require(r->l.b, rc == SCR_SUCCESS && flag, "nothing to restart from");
    SCR_Finalize();
    return seconds;
}

/* Returns the time of SCR_Init in the last restart. */
static double init_alone(void *arg)
{
    const restart *r = arg;
    return r->start;
}

/* Moves the bytes of a rebuild of one checkpoint. Each remaining rank reads its file and
 * adds it to a checksum, and receives and sends the bytes of the lost rank with its
 * redundancy file. The lost rank writes these bytes. */
static bool limit_rebuild(const restart *r, const char *mine)
{
    const load *l = &r->l;
    const double bytes = 4. / 3 * (double)l->size;
    char made[64];
    bool ok = true;
    int next = l->rank == 0 ? MPI_PROC_NULL : l->rank - 1,
        before = l->rank == RANKS - 1 ? MPI_PROC_NULL : l->rank + 1;
    snprintf(made, sizeof made, "made.%d", l->rank);
    if (l->rank) ok = limit_read(&r->limit, mine, l->size);
    limit_send(&r->limit, next, before, bytes);
    if (!l->rank) ok = limit_write(&r->limit, made, bytes);
    unlink(made);
    return ok;
}

/* Moves the bytes of a restart without SCR. If nothing is lost, each rank reads its file
 * and a third of that size for its redundancy file, with checksums. If a node is lost,
 * two checkpoints are rebuilt. */
static double at_limit(void *arg)
{
    const restart *r = arg;
    char mine[64];
    bool ok = true;
    snprintf(mine, sizeof mine, "mine.%d", r->l.rank);
    double start = bench_mpi_start(r->l.comm);
    if (!r->lose)
        ok = limit_read(&r->limit, mine, r->l.size) &&
             limit_read(&r->limit, mine, r->l.size / 3);
    for (int i = 0; i < 2 && r->lose; i++)
        ok = limit_rebuild(r, mine) && ok;
    double seconds = bench_mpi_slowest(r->l.comm, bench_now() - start);
    bench_require(r->l.b, ok, mine);
    return seconds;
}

enum { RESTART, INIT, LIMIT, CASES };

static void report(bench *b, const char *lost, const double t[CASES], double most)
{
    bench_text(b, lost);
    bench_number(b, 1e3 * t[INIT]);
    bench_number(b, 1e3 * t[RESTART]);
    bench_number(b, 1e3 * t[LIMIT]);
    bench_number(b, t[RESTART] / t[LIMIT]);
    simulate_goal(b, 1e3 * t[RESTART], most);
}

static void restarts(bench *b, MPI_Comm comm)
{
    restart whole = {.l = load_new(b, comm, 64 * (size_t)MiB)};
    whole.limit = limit_new(&whole.l);
    restart lost = whole;
    const bench_case cases[] = {{run_restart, &whole}, {init_alone, &whole},
                                {at_limit, &whole},    {run_restart, &lost},
                                {init_alone, &lost},   {at_limit, &lost}};
    double t[2 * CASES];
    char mine[64];
    lost.lose = 1;
    lost.limit.load = &lost.l;
    simulate_nodes(b, comm, "XOR");
    snprintf(mine, sizeof mine, "mine.%d", whole.l.rank);
    bench_require(b, load_write(&whole.l, mine, 0), mine);
    bench_require(b, SCR_Init_comm(comm) == SCR_SUCCESS, "SCR_Init_comm failed");
    load_checkpoint(&whole.l);
    load_checkpoint(&whole.l);
    SCR_Finalize();
    simulate_set("SCR_CACHE_PURGE", "0");
    bench_measure(b, 2 * CASES, cases, t);
    limit_free(&whole.limit);
    free(whole.l.data);
    report(b, "nothing", t, 10);
    report(b, "a node", t + CASES, 100);
}

int main(int argc, char **argv)
{
    static const char *const flushes[] = {"flush",
                                          "checkpoint [ms]",
                                          "with/without",
                                          "goal",
                                          "verdict",
                                          "computing after it [ms]",
                                          "taken from the program [ms]",
                                          NULL};
    static const char *const lost[] = {"lost",
                                       "SCR_Init [ms]",
                                       "SCR_Init to SCR_Have_restart [ms]",
                                       "limit [ms]",
                                       "with/limit",
                                       "goal [ms]",
                                       "verdict",
                                       NULL};
    bench b;
    int rank;
    MPI_Comm comm;
    bench_mpi_begin(&b, &argc, &argv, flushes);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < RANKS, rank, &comm);
    if (rank < RANKS) flush(&b, comm);
    bench_table(&b, lost);
    if (rank < RANKS) restarts(&b, comm);
    bench_mpi_rest(MPI_COMM_WORLD);
    MPI_Comm_free(&comm);
    return bench_mpi_end(&b);
}
