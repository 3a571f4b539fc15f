/* SPDX-License-Identifier: BSD-3-Clause */
/* Protects one file per rank in memory; each rank is a node of its own, and all ranks are
 * one set. Measures encode and rebuild of every scheme, compared with all ranks copying
 * their files by read and write in the same memory, and with the basic operations that
 * the work consists of. */
#include "bench_mpi.h"

#include <redset/redset_mpi.h>

enum {
    COPY_BUFFER = 128 * KiB /* as in cp */,
    MESSAGE = MiB,
    FOLDER_SIZE = 128,
    PATH_SIZE = 256
};

typedef struct load {
    const bench *b;
    MPI_Comm comm;
    int rank, ranks;
    size_t size; /* of each rank's file */
    char data[96];
    char *memory, *other; /* size bytes each */
} load;

/* A scheme with its own directory, in which the files have additional names. */
typedef struct subject {
    const load *l;
    char folder[FOLDER_SIZE], name[REDSET_NAME_SIZE]; /* of the redundancy file */
    redset *set;
    redset_error err;
} subject;

static char *path_of(const subject *s, const char *name, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%.*s/%.*s", FOLDER_SIZE, s->folder, REDSET_NAME_SIZE,
             name);
    return path;
}

/* ---- basic operations ---- */

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
    char to[128];
    snprintf(to, sizeof to, "%s.copy", l->data);
    double start = bench_mpi_start(l->comm);
    int in = open(l->data, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
    int ok = in >= 0 && out >= 0 && pump(in, out);
    ok &= close(in) == 0 && close(out) == 0;
    double seconds = bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, ok && unlink(to) == 0, "a file cannot be copied");
    return seconds;
}

static double move_memory(void *arg)
{
    const load *l = arg;
    double start = bench_mpi_start(l->comm);
    memcpy(l->other, l->memory, l->size);
    return bench_mpi_slowest(l->comm, bench_now() - start);
}

static double write_file(void *arg)
{
    const load *l = arg;
    char to[128];
    snprintf(to, sizeof to, "%s.written", l->data);
    double start = bench_mpi_start(l->comm);
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL, 0600), ok = fd >= 0;
    for (size_t done = 0; ok && done < l->size; done += COPY_BUFFER)
        ok = write(fd, l->memory + done, COPY_BUFFER) == COPY_BUFFER;
    ok = ok && close(fd) == 0;
    double seconds = bench_mpi_slowest(l->comm, bench_now() - start);
    bench_require(l->b, ok && unlink(to) == 0, "a file cannot be written");
    return seconds;
}

/* Sends all bytes between pairs of ranks, in one direction and then back. */
static double ping_pong(void *arg)
{
    const load *l = arg;
    int other = l->rank ^ 1, first = l->rank < other;
    double start = bench_mpi_start(l->comm);
    for (int way = 0; way < 2; way++)
        for (size_t done = 0; done < l->size; done += MESSAGE)
            if (way == first)
                MPI_Recv(l->other + done, MESSAGE, MPI_BYTE, other, 0, l->comm,
                         MPI_STATUS_IGNORE);
            else
                MPI_Send(l->memory + done, MESSAGE, MPI_BYTE, other, 0, l->comm);
    return bench_mpi_slowest(l->comm, bench_now() - start);
}

/* ---- schemes ---- */

static double encode(void *arg)
{
    subject *s = arg;
    char path[PATH_SIZE];
    redset_file file = {.name = "data"};
    unlink(path_of(s, s->name, path)); /* from the previous round */
    double start = bench_mpi_start(s->l->comm);
    int rc = redset_encode(s->set, s->folder, NULL, 1, &file, &s->err);
    double seconds = bench_mpi_slowest(s->l->comm, bench_now() - start);
    bench_require(s->l->b, rc == 0, s->err.text);
    return seconds;
}

/* Works as after a restart: the sets are located, then the lost files are rebuilt. */
static double rebuild(const subject *of, int lose)
{
    subject copy = *of, *s = &copy;
    int middle = s->l->ranks / 2, rebuilt = 0;
    int lost = s->l->rank >= middle && s->l->rank < middle + lose;
    char path[PATH_SIZE];
    redset *set = NULL;
    redset_manifest *manifest = NULL;
    if (lost) unlink(path_of(s, s->name, path));
    if (lost) unlink(path_of(s, "data", path));
    double start = bench_mpi_start(s->l->comm);
    int rc = redset_recover(s->l->comm, s->folder, lost ? NULL : s->name, &set, &s->err);
    if (rc == 0) rc = redset_rebuild(set, s->folder, &manifest, &rebuilt, &s->err);
    double seconds = bench_mpi_slowest(s->l->comm, bench_now() - start);
    bench_require(s->l->b, rc == 0, s->err.text);
    bench_require(s->l->b, rebuilt == lost, "the wrong rank was rebuilt");
    redset_manifest_free(manifest);
    redset_free(set);
    return seconds;
}

static double rebuild_one(void *arg)
{
    return rebuild(arg, 1);
}

static double rebuild_two(void *arg)
{
    return rebuild(arg, 2);
}

static void begin_subject(subject *s, const load *l, redset_scheme scheme, int failures)
{
    char node[32], path[PATH_SIZE];
    *s = (subject){.l = l};
    snprintf(s->folder, sizeof s->folder, "%s.%d.%d", l->data, scheme, failures);
    int made =
        mkdir(s->folder, 0700) == 0 && link(l->data, path_of(s, "data", path)) == 0;
    bench_require(l->b, made, "a directory cannot be made");
    snprintf(node, sizeof node, "node%d", l->rank);
    redset_config config = {.scheme = scheme,
                            .set_size = l->ranks,
                            .failure_group = node,
                            .failures = failures};
    int rc = redset_create(l->comm, &config, &s->set, &s->err);
    bench_require(l->b, rc == 0, s->err.text);
    redset_file_name(redset_get_place(s->set), s->name);
}

static void end_subject(subject *s)
{
    redset_free(s->set);
    bench_remove(s->folder);
}

/* ---- tables ---- */

enum { SINGLE, PARTNER, XOR, RS1, RS2, SUBJECTS };

/* A step: what its time is compared with, and the maximum multiple of that time. */
typedef struct step {
    const char *name;
    double (*run)(void *arg);
    int subject; /* -1: the load itself */
    int beside;
    double bound; /* NAN: none */
} step;

enum {
    COPY,
    ENCODE_PARTNER = 5,
    ENCODE_XOR = 7,
    ENCODE_RS1 = 9,
    ENCODE_RS2 = 11,
    STEPS = 14
};

static const step steps[STEPS] = {
    [COPY] = {"copy", copy, -1, COPY, NAN},
    {"memcpy", move_memory, -1, COPY, NAN},
    {"write", write_file, -1, COPY, NAN},
    {"ping-pong", ping_pong, -1, COPY, NAN},
    {"SINGLE encode", encode, SINGLE, COPY, NAN},
    [ENCODE_PARTNER] = {"PARTNER encode", encode, PARTNER, COPY, 1.0},
    {"PARTNER rebuild of 1", rebuild_one, PARTNER, ENCODE_PARTNER, 1.0},
    [ENCODE_XOR] = {"XOR encode", encode, XOR, COPY, 0.7},
    {"XOR rebuild of 1", rebuild_one, XOR, ENCODE_XOR, 1.0},
    [ENCODE_RS1] = {"RS k=1 encode", encode, RS1, COPY, 0.9},
    {"RS k=1 rebuild of 1", rebuild_one, RS1, ENCODE_RS1, 1.0},
    [ENCODE_RS2] = {"RS k=2 encode", encode, RS2, COPY, 1.3},
    {"RS k=2 rebuild of 1", rebuild_one, RS2, ENCODE_RS2, 1.0},
    {"RS k=2 rebuild of 2", rebuild_two, RS2, ENCODE_RS2, 1.3},
};

static void tell(bench *b, const load *l, const double t[])
{
    for (int i = 0; i < STEPS; i++) {
        const step *s = &steps[i];
        double ratio = t[i] / t[s->beside];
        char bound[32];
        snprintf(bound, sizeof bound, "at most %g x %s", s->bound,
                 s->beside == COPY ? "copy" : "encode");
        bench_number(b, l->ranks);
        bench_number(b, (double)l->size / MiB);
        bench_text(b, s->name);
        bench_number(b, 1e3 * t[i]);
        bench_number(b, 1e-6 * (double)l->size * l->ranks / t[i]);
        bench_number(b, t[i] / t[COPY]);
        bench_text(b, isnan(s->bound) ? "-" : bound);
        bench_text(b, isnan(s->bound) ? "-" : ratio <= s->bound ? "reached" : "missed");
    }
}

static void begin(load *l)
{
    MPI_Comm_rank(l->comm, &l->rank);
    MPI_Comm_size(l->comm, &l->ranks);
    snprintf(l->data, sizeof l->data, "%s/%d", l->b->folder, l->rank);
    bench_make_file(l->b, l->data, l->size);
    l->memory = malloc(l->size);
    l->other = malloc(l->size);
    bench_require(l->b, l->memory && l->other, "no memory");
    bench_fill(l->memory, l->size);
    memset(l->other, 0, l->size);
}

static void measure(bench *b, MPI_Comm comm, size_t size)
{
    load l = {.b = b, .comm = comm, .size = size};
    subject subjects[SUBJECTS];
    bench_case cases[STEPS];
    double t[STEPS];
    begin(&l);
    begin_subject(&subjects[SINGLE], &l, REDSET_SINGLE, 0);
    begin_subject(&subjects[PARTNER], &l, REDSET_PARTNER, 1);
    begin_subject(&subjects[XOR], &l, REDSET_XOR, 1);
    begin_subject(&subjects[RS1], &l, REDSET_RS, 1);
    begin_subject(&subjects[RS2], &l, REDSET_RS, 2);
    for (int i = 0; i < STEPS; i++) {
        int of = steps[i].subject;
        cases[i] = (bench_case){steps[i].run, of < 0 ? (void *)&l : &subjects[of]};
    }
    bench_measure(b, STEPS, cases, t);
    tell(b, &l, t);
    for (int i = 0; i < SUBJECTS; i++)
        end_subject(&subjects[i]);
    unlink(l.data);
    free(l.memory);
    free(l.other);
}

/* Measures with the first ranks of the job; the other ranks sleep. */
static void measure_with(bench *b, int ranks)
{
    int rank;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks, rank, &comm);
    if (rank < ranks) measure(b, comm, 64 * (size_t)MiB);
    if (rank < ranks) measure(b, comm, 256 * (size_t)MiB);
    MPI_Comm_free(&comm);
    bench_mpi_rest(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {"ranks",     "MiB/rank", "step",   "ms", "MB/s",
                                          "time/copy", "to reach", "result", NULL};
    bench b;
    bench_mpi_begin(&b, &argc, &argv, columns);
    measure_with(&b, 4);
    measure_with(&b, 8);
    return bench_mpi_end(&b);
}
