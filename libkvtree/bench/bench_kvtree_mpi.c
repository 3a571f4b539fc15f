/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees of file names and sizes between 2 to 16 ranks, beside MPI moving the same packed
 * bytes: bcast beside MPI_Bcast, exchange of equal shares with everyone beside
 * MPI_Alltoallv. */
#include "bench_mpi.h"

#include <kvtree/kvtree_mpi.h>
#include <kvtree/kvtree_util.h>

enum { MAX_RANKS = 16 };

typedef struct load {
    const bench *b;
    MPI_Comm comm;
    int rank, ranks, entries;
    kvtree *tree, *send; /* all entries of this rank, and <rank> -> its share of them */
    char *packed, *out, *in;
    int size;                                  /* of packed, which is rank 0's tree */
    int sent[MAX_RANKS], sent_at[MAX_RANKS];   /* bytes of out for each rank, and ... */
    int taken[MAX_RANKS], taken_at[MAX_RANKS]; /* ... of in from each */
} load;

static void add_entry(kvtree *tree, int rank, int i)
{
    char name[32];
    snprintf(name, sizeof name, "rank_%d.%d", rank, i);
    kvtree_util_set_bytecount(tree, name, 524288UL + (unsigned long)i);
}

/* ---- bcast ---- */

static double bcast(void *arg)
{
    load *l = arg;
    kvtree *tree = l->rank ? kvtree_new() : l->tree;
    double start = bench_mpi_start(l->comm);
    int rc = kvtree_bcast(tree, 0, l->comm);
    double seconds = bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, rc == 0 && kvtree_size(tree) == l->entries, "bcast failed");
    if (l->rank) kvtree_delete(&tree);
    return seconds;
}

static double bcast_bytes(void *arg)
{
    load *l = arg;
    double start = bench_mpi_start(l->comm);
    MPI_Bcast(l->packed, l->size, MPI_BYTE, 0, l->comm);
    return bench_mpi_slowest(l->comm, bench_now() - start);
}

/* ---- exchange ---- */

static double exchange(void *arg)
{
    load *l = arg;
    kvtree *got = kvtree_new();
    double start = bench_mpi_start(l->comm);
    int rc = kvtree_exchange(l->send, got, l->comm);
    double seconds = bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, rc == 0 && kvtree_size(got) == l->ranks, "exchange failed");
    kvtree_delete(&got);
    return seconds;
}

static double exchange_bytes(void *arg)
{
    load *l = arg;
    double start = bench_mpi_start(l->comm);
    MPI_Alltoallv(l->out, l->sent, l->sent_at, MPI_BYTE, l->in, l->taken, l->taken_at,
                  MPI_BYTE, l->comm);
    return bench_mpi_slowest(l->comm, bench_now() - start);
}

/* ---- one number of ranks and entries ---- */

static void *need(const load *l, size_t size)
{
    void *memory = malloc(size ? size : 1);
    bench_require(l->b, memory != NULL, "no memory");
    return memory;
}

static void make_trees(load *l)
{
    char key[16];
    l->tree = kvtree_new();
    l->send = kvtree_new();
    for (int i = 0; i < l->entries; i++) {
        add_entry(l->tree, l->rank, i);
        snprintf(key, sizeof key, "%d", (int)((long)i * l->ranks / l->entries));
        kvtree *share = kvtree_get(l->send, key);
        add_entry(share ? share : kvtree_set(l->send, key, NULL), l->rank, i);
    }
    bench_require(l->b, kvtree_size(l->tree) == l->entries, "a tree cannot be built");
}

/* The bytes that the references move. */
static void make_bytes(load *l)
{
    kvtree_elem *e = kvtree_elem_first(l->send);
    int out = 0, in = 0;
    l->size = (int)kvtree_pack_size(l->tree);
    MPI_Bcast(&l->size, 1, MPI_INT, 0, l->comm);
    l->packed = need(l, l->rank ? (size_t)l->size : kvtree_pack_size(l->tree));
    if (l->rank == 0) kvtree_pack(l->packed, l->tree);
    for (int i = 0; i < l->ranks; i++, e = kvtree_elem_next(e))
        l->sent[i] = (int)kvtree_pack_size(kvtree_elem_hash(e));
    MPI_Alltoall(l->sent, 1, MPI_INT, l->taken, 1, MPI_INT, l->comm);
    for (int i = 0; i < l->ranks; i++) {
        l->sent_at[i] = out;
        l->taken_at[i] = in;
        out += l->sent[i];
        in += l->taken[i];
    }
    l->out = need(l, (size_t)out);
    l->in = need(l, (size_t)in);
    e = kvtree_elem_first(l->send);
    for (int i = 0; i < l->ranks; i++, e = kvtree_elem_next(e))
        kvtree_pack(l->out + l->sent_at[i], kvtree_elem_hash(e));
}

static void begin(load *l)
{
    MPI_Comm_rank(l->comm, &l->rank);
    MPI_Comm_size(l->comm, &l->ranks);
    make_trees(l);
    make_bytes(l);
}

static void end(load *l)
{
    kvtree_delete(&l->tree);
    kvtree_delete(&l->send);
    free(l->packed);
    free(l->out);
    free(l->in);
}

typedef struct row {
    const char *operation;
    double seconds;
    const char *reference;
    double plain; /* seconds of the reference */
    double bound; /* of their ratio; NAN: none */
} row;

static void tell(bench *b, const load *l, row r)
{
    char text[32];
    double ratio = r.seconds / r.plain;
    snprintf(text, sizeof text, "at most %g", r.bound);
    bench_number(b, l->ranks);
    bench_number(b, l->entries);
    bench_text(b, r.operation);
    bench_number(b, 1e3 * r.seconds);
    bench_text(b, r.reference);
    bench_number(b, 1e3 * r.plain);
    bench_number(b, ratio);
    bench_text(b, isnan(r.bound) ? "-" : text);
    bench_text(b, isnan(r.bound) ? "-" : ratio <= r.bound ? "reached" : "missed");
}

static void measure(bench *b, MPI_Comm comm, int entries)
{
    enum { BCAST, BYTES, EXCHANGE, SHARES, CASES };
    load l = {.b = b, .comm = comm, .entries = entries};
    const bench_case cases[CASES] = {
        {bcast, &l}, {bcast_bytes, &l}, {exchange, &l}, {exchange_bytes, &l}};
    double t[CASES];
    begin(&l);
    bench_measure(b, CASES, cases, t);
    tell(b, &l, (row){"bcast", t[BCAST], "MPI_Bcast", t[BYTES], 3});
    tell(b, &l, (row){"exchange", t[EXCHANGE], "MPI_Alltoallv", t[SHARES], 5});
    end(&l);
}

/* With the first ranks of the job; the others rest. */
static void measure_with(bench *b, int ranks)
{
    int rank;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks, rank, &comm);
    if (rank < ranks) measure(b, comm, 1000);
    if (rank < ranks) measure(b, comm, 10000);
    MPI_Comm_free(&comm);
    bench_mpi_rest(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {
        "ranks",          "entries", "operation", "ms",     "reference",
        "reference [ms]", "ratio",   "to reach",  "result", NULL};
    bench b;
    bench_mpi_begin(&b, &argc, &argv, columns);
    b.rounds = b.rounds * 4 < BENCH_ROUNDS ? b.rounds * 4 : BENCH_ROUNDS; /* short ones */
    for (int ranks = 2; ranks <= MAX_RANKS; ranks *= 2)
        measure_with(&b, ranks);
    return bench_mpi_end(&b);
}
