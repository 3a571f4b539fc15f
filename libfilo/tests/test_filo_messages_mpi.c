/* SPDX-License-Identifier: BSD-3-Clause */
/* The use of MPI by a flush and a fetch, counted between libfilo and MPI for 4 to 32
 * ranks. The messages of a rank depend on its files, the width and log P, not on the
 * number of ranks. Everything else is a fixed number of MPI's own collective calls. The
 * communicator of the application is only duplicated, and used for one agreement about
 * that. */
#include "count_mpi.h"
#include "lists.h"

#include <kvtree/kvtree_mpi.h>

enum { FILES = 2, WIDTH = 3 };

/* Collective calls of a leader if not all leaders copy at once, which takes two of them;
 * other ranks make fewer. */
enum { FLUSH_NODES_MOST = 34 };

enum {
    CHECK_NAMES,
    FLUSH,
    FLUSH_AGAIN,
    FLUSH_PACKED,
    FLUSH_NODES,
    READ_MAP,
    FETCH,
    FAIL,
    CALLS
};

static const char *const names[CALLS] = {"check_names",
                                         "flush, directories missing",
                                         "flush, directories there",
                                         "flush, packed",
                                         "flush, nodes",
                                         "read_map",
                                         "fetch",
                                         "flush, one fails"};

typedef struct job {
    MPI_Comm comm;
    int rank, ranks, log; /* log: 2^log ranks */
    char prefix[128];
    list l;
    tally t[CALLS];
} job;

static char folder[64];
static filo_error err;

/* ---- the calls ---- */

static void begin(const job *j)
{
    err.text[0] = 0;
    begin_counting(j->comm);
}

static void end(job *j, int call, int rc, int expected)
{
    j->t[call] = end_counting(j->comm);
    CHECK_INT(rc, expected);
    if (!expected) CHECK_STR(err.text, "");
}

static void check_names(job *j)
{
    begin(j);
    int rc = filo_check_names(j->comm, FILES, j->l.files, &err);
    end(j, CHECK_NAMES, rc, 0);
}

static void flush(job *j, int call, uint64_t container, uint64_t align, int expected)
{
    char node[32];
    snprintf(node, sizeof node, "node %d", align ? j->rank / 2 : j->rank);
    const filo_options options = {
        .width = WIDTH, .container = container, .align = align, .node = node};
    begin(j);
    int rc = filo_flush(j->comm, j->prefix, NULL, FILES, j->l.files, &options, &err);
    end(j, call, rc, expected);
}

static void flush_failing(job *j)
{
    j->l.files[0].has_crc = j->rank == WIDTH;
    j->l.files[0].crc = 0xdeadbeef;
    flush(j, FAIL, 0, 0, -EIO);
}

static void fetch(job *j)
{
    const filo_options options = {.width = WIDTH};
    int ranks, count;
    filo_file *files;
    begin(j);
    int rc = filo_read_map(j->comm, j->prefix, NULL, &ranks, &count, &files, NULL, &err);
    end(j, READ_MAP, rc, 0);
    list_adopt(&j->l, count, files);
    begin(j);
    rc = filo_fetch(j->comm, j->prefix, count, files, &options, &err);
    end(j, FETCH, rc, 0);
    filo_files_free(count, files);
}

/* ---- limits ---- */

/* Each name goes to one rank, which compares it; directories go to one rank in each of
 * log P + 1 steps; flow control takes up to WIDTH messages; and the map is one message.
 */
static long most_sends(const job *j, int call)
{
    const long compared = FILES, folders = j->log + 1, gate = WIDTH, map = 1;
    switch (call) {
    case CHECK_NAMES:
        return compared;
    case FLUSH:
    case FLUSH_AGAIN:
        return compared + folders + gate + map;
    case FLUSH_PACKED:
    case FLUSH_NODES:
        return compared + gate + map;
    case FETCH:
        return gate;
    case FAIL:
        return compared + folders + gate;
    default:
        return 0;
    }
}

/* The application's communicator is duplicated, at its first use a second time by
 * libkvtree; all ranks agree that they have a duplicate, and nothing else happens on it.
 */
static void check(const job *j, int call, int first)
{
    const tally *t = &j->t[call];
    CHECK_INT(t->own[SEEN], 0);
    CHECK_INT(t->own[SHARED], 1 + first);
    CHECK_INT(t->own[DUPLICATED], 1 + first);
    if (call == READ_MAP) /* one rank has the whole map, which is small */
        CHECK(t->sum[SENDS] <= j->ranks);
    else
        CHECK(t->own[SENDS] <= most_sends(j, call));
}

static void print_rows(const job *j)
{
    for (int i = 0; i < CALLS; i++)
        printf("| %5d | %-22s | %4ld | %6.1f | %11ld |\n", j->ranks, names[i],
               j->t[i].most[SENDS], (double)j->t[i].sum[SENDS] / j->ranks,
               j->t[i].most[COLLECTIVES]);
}

/* ---- one number of ranks ---- */

static void make_list(job *j)
{
    list_create(&j->l, folder, j->rank, FILES);
    for (int f = 0; f < FILES; f++)
        snprintf(j->l.name[f], sizeof j->l.name[f], "shared/deep.%d/rank_%d", f, j->rank);
}

static void with_ranks(job *j, long expected[CALLS])
{
    int into;
    make_list(j);
    application = j->comm;
    MPI_Request request = watch(j->comm, &into);
    check_names(j);
    flush(j, FLUSH, 0, 0, 0);
    flush(j, FLUSH_AGAIN, 0, 0, 0);
    fetch(j);
    flush(j, FLUSH_PACKED, 1000, 0, 0);
    flush(j, FLUSH_NODES, 0, 4096, 0);
    flush_failing(j);
    nothing_was_seen(j->comm, &request);
    application = MPI_COMM_NULL;
    for (int i = 0; i < CALLS; i++) {
        check(j, i, i == CHECK_NAMES);
        if (i != FLUSH_NODES) same_collectives(j->comm, &j->t[i], &expected[i]);
    }
    CHECK_INT(j->t[FLUSH].own[COLLECTIVES], j->t[FLUSH_AGAIN].own[COLLECTIVES]);
    CHECK(j->t[FLUSH_NODES].own[COLLECTIVES] <= FLUSH_NODES_MOST);
    if (j->rank == 0) print_rows(j);
    list_unlink(&j->l);
}

int main(int argc, char **argv)
{
    long expected[CALLS];
    check_begin(&argc, &argv);
    check_folder(folder);
    for (int i = 0; i < CALLS; i++)
        expected[i] = -1;
    if (check_rank == 0)
        printf("| ranks | call                   | most |   mean | collectives |\n"
               "| ----: | ---------------------- | ---: | -----: | ----------: |\n");
    for (int log = 2; 1 << log <= check_ranks; log++) {
        job j = {.ranks = 1 << log, .rank = check_rank, .log = log};
        snprintf(j.prefix, sizeof j.prefix, "%s/%d", folder, j.ranks);
        PMPI_Comm_split(MPI_COMM_WORLD, j.rank < j.ranks, j.rank, &j.comm);
        if (j.rank < j.ranks) with_ranks(&j, expected);
        PMPI_Comm_free(&j.comm);
        rest();
    }
    check_remove(folder);
    return check_end();
}
