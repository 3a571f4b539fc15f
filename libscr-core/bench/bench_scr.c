/* SPDX-License-Identifier: BSD-3-Clause */
/* What a checkpoint costs with SCR: SCR_Start_output to SCR_Complete_output of one file
 * per rank, on four simulated nodes, two checkpoints kept, beside the same program that
 * writes and syncs its files, and removes the last but one, without SCR. The limit is the
 * same program that also moves the bytes which the scheme has to move. */
#include "load.h"

#include "common/crc32.h"
#include "common/io.h"

enum { WITHOUT, LIMIT, WITH, BEYOND, COLLECTIVE, CASES };

/* A scheme in sets of four members. What each rank must send, and write, of the bytes of
 * its file; each byte is read and summed. */
typedef struct scheme {
    const char *name;
    double sent, written, most; /* most: goal, with/without */
    bool unsummed;              /* the scheme alone, without checksums */
} scheme;

/* The work of a checkpoint as a load without SCR. */
typedef struct limit {
    load *load;
    scheme scheme;
    unsigned char *piece, *other; /* MiB each */
    uint32_t crc;                 /* of the file */
} limit;

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

static bool limit_read(const limit *m, const char *path)
{
    uint32_t crc = 0;
    size_t done = 0;
    ssize_t n = 1;
    int fd = open(path, O_RDONLY);
    for (; fd >= 0 && n > 0 && done < m->load->size; done += (size_t)n) {
        n = read(fd, m->piece, MiB);
        if (n > 0) crc = crc32_add(crc, m->piece, (size_t)n);
    }
    return close(fd) == 0 && crc == m->crc;
}

/* To the right, from the left. */
static void limit_send(const limit *m, int ranks)
{
    const int right = (m->load->rank + 1) % ranks,
              left = (m->load->rank + ranks - 1) % ranks;
    const double bytes = m->scheme.sent * (double)m->load->size;
    for (double done = 0; done < bytes; done += MiB)
        MPI_Sendrecv(m->piece, MiB, MPI_BYTE, right, 0, m->other, MiB, MPI_BYTE, left, 0,
                     m->load->comm, MPI_STATUS_IGNORE);
}

/* Over those of the checkpoint before, as new pages cost more. */
static bool limit_write(const limit *m)
{
    char path[64];
    bool ok = true;
    const double bytes = m->scheme.written * (double)m->load->size;
    snprintf(path, sizeof path, "redundancy.%d", m->load->rank);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    for (double done = 0; ok && done < bytes; done += MiB)
        ok = write(fd, m->other, MiB) == MiB;
    return close(fd) == 0 && ok;
}

static double at_limit(void *arg)
{
    const limit *m = arg;
    char path[64];
    int ranks;
    snprintf(path, sizeof path, "plain.%d.%d", m->load->turn, m->load->rank);
    MPI_Comm_size(m->load->comm, &ranks);
    double seconds = without_scr(m->load), start = bench_mpi_start(m->load->comm);
    bool ok = m->scheme.unsummed || limit_read(m, path);
    limit_send(m, ranks);
    ok = ok && limit_write(m);
    seconds += bench_mpi_slowest(m->load->comm, bench_now() - start);
    bench_require(m->load->b, ok, path);
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

static void measure(load *l, const scheme *s, double t[CASES])
{
    limit m = {l, *s, io_buffer(MiB), io_buffer(MiB), crc32_add(0, l->data, l->size)};
    const bench_case cases[] = {{without_scr, l},
                                {at_limit, &m},
                                {load_checkpoint, l},
                                {beyond, l},
                                {collective, l}};
    bench_require(l->b, m.piece && m.other, "no memory");
    simulate_nodes(l->b, l->comm, s->name);
    simulate_set("SCR_CRC_ON_COPY", s->unsummed ? "0" : "1");
    bench_require(l->b, SCR_Init_comm(l->comm) == SCR_SUCCESS, "SCR_Init_comm failed");
    for (int i = 0; i < 2; i++) { /* from here on each one removes another */
        without_scr(l);
        load_checkpoint(l);
    }
    bench_measure(l->b, CASES, cases, t);
    SCR_Finalize();
    free(m.piece);
    free(m.other);
}

/* What goes through memory: times are beside those without SCR. */
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

/* What does not: times stand alone. */
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
                                        "limit [ms]",
                                        "with SCR [ms]",
                                        "beyond writes [ms]",
                                        "with/limit",
                                        "with/without",
                                        "goal",
                                        "verdict",
                                        NULL};
    static const char *const small[] = {
        "ranks",      "scheme",       "without SCR [ms]",   "with SCR [ms]",
        "goal [ms]",  "verdict",      "one Allreduce [ms]", "collectives/rank",
        "fsync/rank", "goal [fsync]", "verdict [fsync]",    NULL};
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
