/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of redundancy sets, counted between libredset and MPI for 4 to 32 ranks,
 * in sets of four and in one set of all ranks. The bytes that a process sends to encode
 * depend on its data and on the scheme, not on the number of ranks, and all members of a
 * set send equally much. Everything else is a fixed number of MPI's own collective calls.
 * The communicator of the application is only duplicated.
 *
 * With N members, f of which may be lost, L bytes of the largest member, and chunks of C
 * = ceil(L / (N-f)) bytes, schedule.h implies:
 *
 *     encode, XOR and RS    every member sends its N-f chunks, and f-1 sums for other
 *                           members: (N-1) C bytes
 *     encode, PARTNER       every member sends its own bytes f times
 *     rebuild of one member, XOR and RS    N flows with N-f sources and one sum:
 *                           N (N-f) C bytes by all together, and at most N C by each
 *     rebuild of one member, PARTNER       the files of f+1 members, once each */
#include "count_mpi.h"
#include "job_mpi.h"
#include "src/set/flow_engine.h"

/* Bytes of a rank. So every message with data is large, and no other message is. */
enum { DATA = 300001 };

enum { CREATE, ENCODE, RECOVER, RECOVER_LOST, REBUILD_LOST, CALLS };

static const char *const names[CALLS] = {"create", "encode", "recover, nothing lost",
                                         "recover, one lost", "rebuild, one lost"};

/* A scheme over some ranks, with the tallies of each call. */
typedef struct trial {
    job *j;
    redset_shape shape; /* of this rank's set */
    int set_size, member, sets;
    long chunk; /* bytes of a chunk of a coded set */
    char name[REDSET_NAME_SIZE];
    tally t[CALLS];
} trial;

static void begin_call(const trial *t)
{
    begin_counting(t->j->comm);
}

static void end_call(trial *t, int call, int rc, const char *err)
{
    t->t[call] = end_counting(t->j->comm);
    CHECK_INT(rc, 0);
    CHECK_STR(err, "");
}

/* ---- the calls ---- */

static redset *create(trial *t, redset_scheme scheme, int failures)
{
    char node[32];
    redset_error err = {""};
    redset *set = NULL;
    snprintf(node, sizeof node, "node%d", t->j->rank);
    const redset_config config = {.scheme = scheme,
                                  .set_size = t->set_size,
                                  .failure_group = node,
                                  .failures = failures};
    begin_call(t);
    int rc = redset_create(t->j->comm, &config, &set, &err);
    end_call(t, CREATE, rc, err.text);
    const redset_place *place = redset_get_place(set);
    t->shape = redset_place_shape(place);
    t->member = place->member;
    t->sets = place->sets;
    CHECK_INT(place->members, t->set_size);
    CHECK_INT(place->failures, failures);
    return set;
}

static long ceil_div(long a, long b)
{
    return a / b + (a % b != 0);
}

static long own_bytes(const trial *t)
{
    long bytes = 0;
    for (int i = 0; i < t->j->count; i++)
        bytes += (long)t->j->files[i].size;
    return bytes;
}

static void encode(trial *t, redset *set)
{
    redset_error err = {""};
    long largest = 0, own = own_bytes(t);
    PMPI_Allreduce(&own, &largest, 1, MPI_LONG, MPI_MAX, t->j->comm);
    t->chunk = ceil_div(largest, t->shape.members - t->shape.failures);
    begin_call(t);
    int rc = job_encode(t->j, set, &err);
    end_call(t, ENCODE, rc, err.text);
    job_name(set, t->name);
}

static redset *recover(trial *t, int call, int lost)
{
    redset_error err = {""};
    redset *set = NULL;
    begin_call(t);
    int rc = redset_recover(t->j->comm, t->j->folder, lost ? NULL : t->name, &set, &err);
    end_call(t, call, rc, err.text);
    return set;
}

static void rebuild(trial *t, redset *set, int lost)
{
    redset_error err = {""};
    redset_manifest *m = NULL;
    int rebuilt = -1;
    begin_call(t);
    int rc = redset_rebuild(set, t->j->folder, &m, &rebuilt, &err);
    end_call(t, REBUILD_LOST, rc, err.text);
    CHECK_INT(rebuilt, lost);
    CHECK(job_intact(t->j));
    redset_manifest_free(m);
}

/* ---- limits ---- */

/* Messages other than data are the lists of files, which go to f neighbors twice. */
static void check_encode(const trial *t)
{
    const tally *c = &t->t[ENCODE];
    long n = t->shape.members, f = t->shape.failures, piece = REDSET_PIECE;
    if (redset_shape_is_coded(&t->shape)) {
        /* its own data, and, of the sums that it computes, those of the f-1 others: not f
         * times the data */
        CHECK_INT(c->own[LARGE_BYTES], (n - 1) * t->chunk);
        CHECK_INT(c->own[LARGE], (n - 1) * ceil_div(t->chunk, piece));
        CHECK_INT(c->most[LARGE_BYTES], c->own[LARGE_BYTES]);
    } else {
        CHECK_INT(c->own[LARGE_BYTES], f * own_bytes(t));
        CHECK_INT(c->own[LARGE], f * ceil_div(own_bytes(t), piece));
    }
    CHECK_INT(c->most[COLLECTIVES], 4); /* three agreements, and the largest of a set */
    CHECK_INT(c->own[SENDS] - c->own[LARGE], 2 * f);
    CHECK(c->own[BYTES] - c->own[LARGE_BYTES] < 2 * f * 1024);
}

static void check_rebuild(const trial *t, int lost)
{
    const tally *c = &t->t[REBUILD_LOST];
    long n = t->shape.members, f = t->shape.failures, data = n * (n - f) * t->chunk;
    if (redset_shape_is_coded(&t->shape)) {
        CHECK_INT(c->sum[LARGE_BYTES], t->sets * data);
        CHECK(c->most[LARGE_BYTES] <= n * t->chunk);
    } else {
        CHECK_INT(c->sum[LARGE_BYTES], t->sets * (f + 1) * DATA);
        CHECK_INT(c->most[LARGE_BYTES], DATA);
    }
    if (lost) CHECK_INT(c->own[SENDS], 0);
    if (f == 1 && redset_shape_is_coded(&t->shape) && !lost)
        CHECK_INT(c->own[LARGE_BYTES], n * t->chunk);
    CHECK(c->own[SENDS] - c->own[LARGE] <= 1); /* lists, and only to the lost one */
}

static void check_small_calls(const trial *t)
{
    CHECK_INT(t->t[CREATE].own[SENDS], 0);
    CHECK_INT(t->t[RECOVER].own[SENDS], 1); /* a greeting to the right neighbor */
    CHECK(t->t[RECOVER_LOST].own[SENDS] <= 2);
    CHECK_INT(t->t[RECOVER].own[LARGE] + t->t[RECOVER_LOST].own[LARGE], 0);
}

/* The application's communicator is duplicated, all ranks agree that they have a
 * duplicate, and nothing else happens on it. */
static void check_shared(const trial *t)
{
    for (int i = 0; i < CALLS; i++) {
        const int duplicates = i == CREATE || i == RECOVER || i == RECOVER_LOST;
        CHECK_INT(t->t[i].own[SEEN], 0);
        CHECK_INT(t->t[i].own[SHARED], duplicates);
        CHECK_INT(t->t[i].own[DUPLICATED], duplicates);
    }
}

/* ---- trials ---- */

static void print_rows(const trial *t)
{
    double ranks = t->j->ranks;
    for (int i = 0; i < CALLS; i++)
        printf(
            "| %5d | %3d | %-7s | %d | %-21s | %4ld | %6.1f | %7ld | %9.1f | %11ld |\n",
            t->j->ranks, t->set_size, redset_scheme_name(t->shape.scheme),
            t->shape.failures, names[i], t->t[i].most[SENDS],
            (double)t->t[i].sum[SENDS] / ranks, t->t[i].most[BYTES],
            (double)t->t[i].sum[BYTES] / ranks, t->t[i].most[COLLECTIVES]);
}

/* One member of each set is lost. */
static void test_messages_follow_from_data(job *j, redset_scheme scheme, int failures,
                                           int set_size)
{
    trial t = {.j = j, .set_size = set_size};
    redset *set = create(&t, scheme, failures);
    encode(&t, set);
    redset_free(set);
    redset_free(recover(&t, RECOVER, 0));
    int lost = t.member == set_size / 2;
    if (lost) job_lose(j);
    set = recover(&t, RECOVER_LOST, lost);
    rebuild(&t, set, lost);
    redset_free(set);
    check_encode(&t);
    check_rebuild(&t, lost);
    check_small_calls(&t);
    check_shared(&t);
    static long expected[CALLS] = {-1, -1, -1, -1, -1};
    for (int i = 0; i < CALLS; i++)
        same_collectives(j->comm, &t.t[i], &expected[i]);
    if (j->rank == 0) print_rows(&t);
}

/* Members with different amounts of data: none, half or all. Members of coded sets still
 * work evenly. */
static void test_uneven_data_is_even_work(job *j, redset_scheme scheme, int failures)
{
    trial t = {.j = j, .set_size = j->ranks};
    j->count = j->rank % 3 > 0;
    j->files[0].size = DATA / (size_t)(j->rank % 3 + (j->rank % 3 == 0));
    job_write(j, 0);
    redset *set = create(&t, scheme, failures);
    encode(&t, set);
    redset_free(set);
    check_encode(&t);
    job_lose(j);
    j->count = 1;
    j->files[0].size = DATA;
    job_write(j, 0);
}

static void with_ranks(job *j)
{
    static const struct {
        redset_scheme scheme;
        int failures;
    } kinds[] = {{REDSET_XOR, 1},
                 {REDSET_PARTNER, 1},
                 {REDSET_PARTNER, 2},
                 {REDSET_RS, 1},
                 {REDSET_RS, 2}};
    int into;
    application = j->comm;
    MPI_Request request = watch(j->comm, &into);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        test_messages_follow_from_data(j, kinds[i].scheme, kinds[i].failures, 4);
        if (j->ranks > 4)
            test_messages_follow_from_data(j, kinds[i].scheme, kinds[i].failures,
                                           j->ranks);
        if (j->ranks == 8)
            test_uneven_data_is_even_work(j, kinds[i].scheme, kinds[i].failures);
    }
    nothing_was_seen(j->comm, &request);
    application = MPI_COMM_NULL;
}

int main(int argc, char **argv)
{
    job j;
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    job_lose(&j);
    j.count = 0;
    job_add(&j, "data", DATA);
    job_write(&j, 0);
    if (check_rank == 0)
        printf("| ranks | set | scheme  | f | call                  | most |   mean |   "
               "bytes |      mean | collectives |\n"
               "| ----: | --: | ------- | - | --------------------- | ---: | -----: | "
               "------: | --------: | ----------: |\n");
    for (j.ranks = 4; j.ranks <= check_ranks; j.ranks *= 2) {
        PMPI_Comm_split(MPI_COMM_WORLD, j.rank < j.ranks, j.rank, &j.comm);
        if (j.rank < j.ranks) with_ranks(&j);
        PMPI_Comm_free(&j.comm);
        rest();
    }
    job_end(&j);
    return check_end();
}
