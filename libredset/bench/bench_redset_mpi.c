/* SPDX-License-Identifier: BSD-3-Clause */
/* Protecting one file per rank in memory, each rank a node of its own: SINGLE and XOR
 * encode, and XOR rebuild after one rank lost everything, beside all ranks together
 * copying their files by read and write in the same memory. */
#include "bench_mpi.h"

#include <redset/redset_mpi.h>

enum { COPY_BUFFER = 128 * KiB }; /* as cp takes */

typedef struct load {
    const bench *b;
    MPI_Comm comm;
    int rank, ranks, lost; /* lost: the rank that loses its files */
    size_t size;           /* of each rank's file */
    char folder[96];
    redset *single, *xor_set;
    char err[REDSET_ERROR_SIZE];
} load;

static char *path_of(const load *l, const char *name, char path[192])
{
    snprintf(path, 192, "%s/%s", l->folder, name);
    return path;
}

/* The name of this rank's redundancy file. */
static char *redundancy_of(const load *l, const redset *set, char name[REDSET_NAME_SIZE])
{
    int rc = redset_file_name(redset_get_place(set), name);
    bench_require(l->b, rc == 0, "a redundancy file has no name");
    return name;
}

static int pump(int in, int out)
{
    static char buffer[COPY_BUFFER];
    ssize_t n;
    while ((n = read(in, buffer, sizeof buffer)) > 0)
        if (write(out, buffer, (size_t)n) != n) return 0;
    return n == 0;
}

static double copy(void *arg)
{
    const load *l = arg;
    char from[192], to[192];
    path_of(l, "data", from);
    path_of(l, "copy", to);
    double start = bench_mpi_start(l->comm);
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
    int ok = in >= 0 && out >= 0 && pump(in, out);
    ok &= close(in) == 0 && close(out) == 0;
    double seconds = bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, ok && unlink(to) == 0, "a file cannot be copied");
    return seconds;
}

static double encode(load *l, redset *set)
{
    char name[REDSET_NAME_SIZE], path[192];
    redset_file file = {.name = "data"};
    unlink(path_of(l, redundancy_of(l, set, name), path)); /* of the round before */
    double start = bench_mpi_start(l->comm);
    int rc = redset_encode(set, l->folder, NULL, 1, &file, l->err);
    double seconds = bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, rc == 0, l->err);
    return seconds;
}

static double encode_single(void *arg)
{
    load *l = arg;
    return encode(l, l->single);
}

static double encode_xor(void *arg)
{
    load *l = arg;
    return encode(l, l->xor_set);
}

/* As after a restart: the sets are found again, then the lost files are made. */
static double rebuild(void *arg)
{
    load *l = arg;
    int lost = l->rank == l->lost, rebuilt = 0;
    char name[REDSET_NAME_SIZE], path[192];
    redset *set = NULL;
    redset_manifest *manifest = NULL;
    redundancy_of(l, l->xor_set, name);
    if (lost) unlink(path_of(l, name, path));
    if (lost) unlink(path_of(l, "data", path));
    double start = bench_mpi_start(l->comm);
    int rc = redset_recover(l->comm, l->folder, lost ? NULL : name, &set, l->err);
    if (rc == 0) rc = redset_rebuild(set, l->folder, &manifest, &rebuilt, l->err);
    double seconds = bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, rc == 0, l->err);
    bench_require(l->b, rebuilt == lost, "the wrong rank was rebuilt");
    redset_manifest_free(manifest);
    redset_free(set);
    return seconds;
}

static redset *create(load *l, redset_scheme scheme)
{
    char node[32];
    redset *set = NULL;
    snprintf(node, sizeof node, "node%d", l->rank);
    redset_config config = {
        .scheme = scheme, .set_size = l->ranks, .failure_group = node};
    int rc = redset_create(l->comm, &config, &set, l->err);
    bench_require(l->b, rc == 0, l->err);
    return set;
}

static void begin(load *l)
{
    char path[192];
    MPI_Comm_rank(l->comm, &l->rank);
    MPI_Comm_size(l->comm, &l->ranks);
    l->lost = l->ranks / 2;
    snprintf(l->folder, sizeof l->folder, "%s/%d", l->b->folder, l->rank);
    bench_require(l->b, mkdir(l->folder, 0700) == 0, l->folder);
    bench_make_file(l->b, path_of(l, "data", path), l->size);
    l->single = create(l, REDSET_SINGLE);
    l->xor_set = create(l, REDSET_XOR);
}

/* KiB of this rank's redundancy file. */
static double added(const load *l, const redset *set)
{
    char name[REDSET_NAME_SIZE], path[192];
    struct stat st;
    int rc = stat(path_of(l, redundancy_of(l, set, name), path), &st);
    bench_require(l->b, rc == 0, path);
    return (double)st.st_size / KiB;
}

static void measure(bench *b, MPI_Comm comm, size_t size)
{
    enum { COPY, SINGLE, XOR, REBUILD, CASES };
    static const char *const names[] = {"copy", "SINGLE encode", "XOR encode",
                                        "XOR rebuild"};
    load l = {.b = b, .comm = comm, .size = size};
    const bench_case cases[] = {
        {copy, &l}, {encode_single, &l}, {encode_xor, &l}, {rebuild, &l}};
    double t[CASES];
    begin(&l);
    bench_measure(b, CASES, cases, t);
    double written[CASES] = {(double)size / KiB, added(&l, l.single),
                             added(&l, l.xor_set),
                             (double)size / KiB + added(&l, l.xor_set)};
    for (int i = 0; i < CASES; i++) {
        bench_number(b, l.ranks);
        bench_number(b, (double)size / MiB);
        bench_text(b, names[i]);
        bench_number(b, 1e3 * t[i]);
        bench_number(b, 1e-6 * (double)size * l.ranks / t[i]);
        bench_number(b, t[i] / t[COPY]);
        bench_number(b, written[i]);
    }
    redset_free(l.single);
    redset_free(l.xor_set);
    bench_remove(l.folder);
}

/* With the first ranks of the job; the others rest. */
static void measure_with(bench *b, int ranks)
{
    int rank;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks, rank, &comm);
    if (rank < ranks) measure(b, comm, 16 * (size_t)MiB);
    if (rank < ranks) measure(b, comm, 64 * (size_t)MiB);
    MPI_Comm_free(&comm);
    bench_mpi_rest(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {
        "ranks",     "MiB/rank",           "step", "ms", "MB/s",
        "time/copy", "written [KiB/rank]", NULL};
    bench b;
    bench_mpi_begin(&b, &argc, &argv, columns);
    measure_with(&b, 4);
    measure_with(&b, 8);
    return bench_mpi_end(&b);
}
