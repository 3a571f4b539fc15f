/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends trees of file names and sizes between 2 to 16 ranks, and compares this with MPI
 * moving the same packed bytes: bcast with MPI_Bcast, exchange of equal shares among all
 * ranks with MPI_Alltoallv, and write_gather with read_scatter with one barrier and with
 * writing the same files without any tree. */
#include "bench_mpi.h"

#include <dirent.h>
#include <kvtree/kvtree_mpi.h>
#include <kvtree/kvtree_util.h>

enum { MAX_RANKS = 16, MAX_FILES = 64 };

typedef struct load {
    const bench *b;
    MPI_Comm comm;
    int rank, ranks, entries;
    kvtree *tree, *send; /* all entries of this rank; <rank> -> its share of them */
    char *packed, *out, *in;
    int size;                                  /* of packed, the tree of rank 0 */
    int sent[MAX_RANKS], sent_at[MAX_RANKS];   /* bytes of out for each rank, and their
                                                * offsets */
    int taken[MAX_RANKS], taken_at[MAX_RANKS]; /* bytes of in from each rank, and their
                                                * offsets */
    char gathered[96], plain[96];              /* directories */
    int files;                                 /* files written by write_gather */
    int file_size[MAX_FILES];                  /* sizes of these files */
    char *content;
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

/* ---- gather and scatter ---- */

static double gather(void *arg)
{
    load *l = arg;
    char path[128];
    snprintf(path, sizeof path, "%s/root", l->gathered);
    double start = bench_mpi_start(l->comm);
    int rc = kvtree_write_gather(path, l->tree, l->comm);
    double seconds = bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, rc == 0, "write_gather failed");
    return seconds;
}

static double scatter(void *arg)
{
    load *l = arg;
    char path[128];
    kvtree *back = kvtree_new();
    snprintf(path, sizeof path, "%s/root", l->gathered);
    double start = bench_mpi_start(l->comm);
    int rc = kvtree_read_scatter(path, back, l->comm);
    double seconds = bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, rc == 0 && kvtree_size(back) == l->entries,
                  "read_scatter failed");
    kvtree_delete(&back);
    return seconds;
}

static double barrier(void *arg)
{
    load *l = arg;
    double start = bench_mpi_start(l->comm);
    MPI_Barrier(l->comm);
    return bench_mpi_slowest(l->comm, bench_now() - start);
}

static int write_one(const load *l, int i)
{
    char path[128], temporary[136];
    snprintf(path, sizeof path, "%s/%d", l->plain, i);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    size_t size = (size_t)l->file_size[i];
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
    int ok = fd >= 0 && write(fd, l->content, size) == (ssize_t)size && fsync(fd) == 0;
    return ok && close(fd) == 0 && rename(temporary, path) == 0;
}

/* Writes the same number of files with the same sizes, spread over the ranks; they are
 * synced and renamed as well. */
static double write_plain(void *arg)
{
    load *l = arg;
    int ok = 1;
    double start = bench_mpi_start(l->comm);
    for (int i = 0; i < l->files; i++)
        if (i * l->ranks / l->files == l->rank) ok &= write_one(l, i);
    double seconds = bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, ok, "the plain files cannot be written");
    return seconds;
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

/* Creates the bytes that the references move. */
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

/* Lists the sizes of the files in folder, as rank 0 finds them. */
static void list_files(load *l)
{
    DIR *dir = l->rank ? NULL : opendir(l->gathered);
    struct stat st;
    size_t most = 1;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (fstatat(dirfd(dir), entry->d_name, &st, 0) || !S_ISREG(st.st_mode)) continue;
        bench_require(l->b, l->files < MAX_FILES, "too many files");
        l->file_size[l->files++] = (int)st.st_size;
    }
    if (dir) closedir(dir);
    MPI_Bcast(&l->files, 1, MPI_INT, 0, l->comm);
    MPI_Bcast(l->file_size, MAX_FILES, MPI_INT, 0, l->comm);
    bench_require(l->b, l->files > 0, "write_gather made no files");
    for (int i = 0; i < l->files; i++)
        if ((size_t)l->file_size[i] > most) most = (size_t)l->file_size[i];
    l->content = need(l, most);
    bench_fill(l->content, most);
}

static void begin(load *l)
{
    MPI_Comm_rank(l->comm, &l->rank);
    MPI_Comm_size(l->comm, &l->ranks);
    snprintf(l->gathered, sizeof l->gathered, "%s/gathered", l->b->folder);
    snprintf(l->plain, sizeof l->plain, "%s/plain", l->b->folder);
    int made = l->rank || (mkdir(l->gathered, 0700) == 0 && mkdir(l->plain, 0700) == 0);
    bench_require(l->b, made, "a directory cannot be made");
    make_trees(l);
    make_bytes(l);
    gather(l);
    list_files(l);
}

static void end(load *l)
{
    MPI_Barrier(l->comm);
    if (l->rank == 0) bench_remove(l->gathered);
    if (l->rank == 0) bench_remove(l->plain);
    kvtree_delete(&l->tree);
    kvtree_delete(&l->send);
    free(l->packed);
    free(l->out);
    free(l->in);
    free(l->content);
}

typedef struct row {
    const char *operation;
    double seconds;
    const char *reference;
    double plain; /* seconds of the reference */
    double bound; /* target for the ratio; NAN: none */
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
    enum { BCAST, BYTES, EXCHANGE, SHARES, GATHER, SCATTER, BARRIER, WRITES, CASES };
    load l = {.b = b, .comm = comm, .entries = entries};
    const bench_case cases[CASES] = {
        {bcast, &l},  {bcast_bytes, &l}, {exchange, &l}, {exchange_bytes, &l},
        {gather, &l}, {scatter, &l},     {barrier, &l},  {write_plain, &l}};
    double t[CASES];
    begin(&l);
    bench_measure(b, CASES, cases, t);
    double files = t[GATHER] + t[SCATTER], plain = 30 * t[BARRIER] + t[WRITES];
    tell(b, &l, (row){"bcast", t[BCAST], "MPI_Bcast", t[BYTES], 3});
    tell(b, &l, (row){"exchange", t[EXCHANGE], "MPI_Alltoallv", t[SHARES], 5});
    tell(b, &l, (row){"write_gather", t[GATHER], "plain files", t[WRITES], NAN});
    tell(b, &l, (row){"read_scatter", t[SCATTER], "barrier", t[BARRIER], NAN});
    tell(b, &l, (row){"both", files, "30 barriers + plain files", plain, 1});
    end(&l);
}

/* Measures with the first ranks of the job, while the others wait. */
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
    b.rounds = b.rounds * 4 < BENCH_ROUNDS ? b.rounds * 4 : BENCH_ROUNDS; /* rounds are
                                                                           * short */
    for (int ranks = 2; ranks <= MAX_RANKS; ranks *= 2)
        measure_with(&b, ranks);
    return bench_mpi_end(&b);
}
