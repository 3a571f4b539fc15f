/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees from some processes to some. */
#include "build_tree.h"
#include "check.h"
#include "fail_malloc.h"
#include "src/kvtree_mpi_private.h"

static int issends;

/* Counts the messages of this rank. */
int MPI_Issend(const void *buf, int count, MPI_Datatype type, int to, int tag,
               MPI_Comm comm, MPI_Request *request)
{
    issends++;
    return PMPI_Issend(buf, count, type, to, tag, comm, request);
}

/* Who sends to whom, in each pattern. */
enum pattern { NONE, SELF, RING, ALL, GATHER, SCATTER, SCATTERED, PATTERNS };

static int sends(enum pattern pattern, int round, int from, int to)
{
    switch (pattern) {
    case SELF:
        return from == to;
    case RING:
        return to == (from + 1) % check_ranks;
    case ALL:
        return 1;
    case GATHER:
        return to == round % check_ranks;
    case SCATTER:
        return from == round % check_ranks;
    case SCATTERED:
        return (from * 7 + to * 13 + round * 3) % 5 == 0;
    default:
        return 0;
    }
}

static void put_letter(kvtree *send, int round, int from, int to)
{
    char key[16];
    snprintf(key, sizeof key, "%d", to);
    kvtree *letter = kvtree_set(send, key, NULL);
    kvtree_util_set_int(letter, "FROM", from);
    kvtree_util_set_int(letter, "TO", to);
    kvtree_util_set_int(letter, "ROUND", round);
    for (int i = 0; i < (from + to + round) % 4; i++)
        kvtree_set_kv_int(letter, "MORE", i);
}

static void one_round(enum pattern pattern, int round, int limit)
{
    kvtree *send = kvtree_new(), *got = kvtree_new(), *expected = kvtree_new();
    for (int rank = check_ranks - 1; rank >= 0; rank--)
        if (sends(pattern, round, check_rank, rank))
            put_letter(send, round, check_rank, rank);
    CHECK_INT(kvtree_mpi_exchange(send, got, MPI_COMM_WORLD, limit), 0);
    for (int rank = 0; rank < check_ranks; rank++) {
        char key[16];
        kvtree *one = kvtree_new();
        if (!sends(pattern, round, rank, check_rank)) {
            kvtree_delete(&one);
            continue;
        }
        put_letter(one, round, rank, check_rank);
        snprintf(key, sizeof key, "%d", check_rank);
        kvtree *letter = kvtree_extract(one, key);
        snprintf(key, sizeof key, "%d", rank);
        kvtree_set(expected, key, letter);
        kvtree_delete(&one);
    }
    CHECK(same_tree(got, expected)); /* in the order of ranks, whatever came first */
    kvtree_delete(&send);
    kvtree_delete(&got);
    kvtree_delete(&expected);
}

static void every_pattern(void)
{
    static const int limits[] = {MESSAGE_LIMIT, MESSAGE_HEADER, 17};
    for (int pattern = NONE; pattern < PATTERNS; pattern++)
        for (int i = 0; i < 3; i++)
            one_round((enum pattern)pattern, i, limits[i]);
}

/* Consecutive exchanges, with ranks that come early and late. */
static void back_to_back(void)
{
    unsigned random = 17u * (unsigned)check_rank + 1;
    for (int round = 0; round < 200; round++) {
        random = random * 1103515245u + 12345u;
        if (random >> 24 < 40) usleep(random >> 16 & 0xfff);
        one_round(round % 2 ? SCATTERED : RING, round, round % 3 ? MESSAGE_LIMIT : 20);
    }
}

static void messages_follow_the_partners(void)
{
    issends = 0;
    one_round(NONE, 0, MESSAGE_LIMIT);
    CHECK_INT(issends, 0);
    one_round(RING, 0, MESSAGE_LIMIT);
    CHECK_INT(issends, 1);
}

static void large_null_and_merged(void)
{
    char to[16], from[16];
    snprintf(to, sizeof to, "%d", (check_rank + 1) % check_ranks);
    snprintf(from, sizeof from, "%d", (check_rank + check_ranks - 1) % check_ranks);
    kvtree *send = kvtree_new(), *got = kvtree_new(), *wide = wide_tree(150000);
    kvtree_merge(kvtree_set(send, to, NULL), wide);
    CHECK_INT(kvtree_exchange(send, got, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(got), 1);
    CHECK(same_tree(kvtree_get(got, from), wide));
    kvtree_unset_all(got);
    kvtree_set_kv(got, "KEPT", "1");
    kvtree_set_kv(got, from, "before");
    kvtree_set(kvtree_set(send, to, NULL), "after", NULL);
    CHECK_INT(kvtree_exchange(send, got, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(got), 2);
    CHECK(kvtree_getf(got, "%s before", from) && kvtree_getf(got, "%s after", from));
    CHECK_INT(kvtree_exchange(send, NULL, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_exchange(NULL, NULL, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_exchange(NULL, got, MPI_COMM_WORLD), 0);
    kvtree_delete(&send);
    kvtree_delete(&got);
    kvtree_delete(&wide);
}

static void in_either_direction(void)
{
    char to[16];
    snprintf(to, sizeof to, "%d", (check_rank + 1) % check_ranks);
    kvtree *send = kvtree_new(), *got = kvtree_new(), *expected = kvtree_new();
    kvtree_set(send, to, sample_tree());
    CHECK_INT(kvtree_exchange(send, expected, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(expected), 1);
    for (int direction = -1; direction <= 2; direction++) {
        int known =
            direction == KVTREE_EXCHANGE_LEFT || direction == KVTREE_EXCHANGE_RIGHT;
        kvtree_unset_all(got);
        CHECK_INT(kvtree_exchange_direction(send, got, MPI_COMM_WORLD,
                                            (kvtree_exchange_enum)direction),
                  known ? 0 : -EINVAL);
        CHECK_INT(same_tree(got, expected), known);
    }
    kvtree_delete(&send);
    kvtree_delete(&got);
    kvtree_delete(&expected);
}

/* Messages for one rank are merged; queued messages are copies. */
static void queued_messages(void)
{
    char from[16];
    int next = (check_rank + 1) % check_ranks;
    snprintf(from, sizeof from, "%d", (check_rank + check_ranks - 1) % check_ranks);
    kvtree *send = kvtree_new(), *got = kvtree_new(), *message = kvtree_new();
    kvtree_util_set_int(message, "FIRST", check_rank);
    CHECK_INT(kvtree_exchange_sendq(send, next, message), 0);
    kvtree_unset_all(message);
    kvtree_util_set_int(message, "SECOND", check_rank);
    CHECK_INT(kvtree_exchange_sendq(send, next, message), 0);
    CHECK_INT(kvtree_exchange_sendq(send, next, NULL), 0);
    CHECK_INT(kvtree_exchange_sendq(send, -1, message), -EINVAL);
    CHECK_INT(kvtree_exchange_sendq(NULL, next, message), -EINVAL);
    CHECK_INT(kvtree_size(send), 1);
    CHECK_INT(kvtree_exchange(send, got, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(got), 1);
    CHECK_INT(kvtree_size(kvtree_get(got, from)), 2);
    CHECK(kvtree_getf(got, "%s FIRST %s", from, from) != NULL);
    CHECK(kvtree_getf(got, "%s SECOND %s", from, from) != NULL);
    kvtree_delete(&send);
    kvtree_delete(&got);
    kvtree_delete(&message);
}

/* One rank names a rank that does not exist: all ranks get the error, none waits. */
static void refused_keys(void)
{
    char beyond[16];
    snprintf(beyond, sizeof beyond, "%d", check_ranks);
    const char *const keys[] = {"-1", beyond, "one", "00", "", "99999999999"};
    for (int i = 0; i < 6; i++) {
        kvtree *send = kvtree_new(), *got = kvtree_new();
        put_letter(send, i, check_rank, 0);
        if (check_rank == i % check_ranks) kvtree_set(send, keys[i], NULL);
        if (i % 2) kvtree_set(got, "KEPT", NULL);
        CHECK_INT(kvtree_exchange(send, got, MPI_COMM_WORLD), -EINVAL);
        CHECK_INT(kvtree_size(got), i % 2);
        kvtree_delete(&send);
        kvtree_delete(&got);
    }
    one_round(ALL, 0, MESSAGE_LIMIT);
}

static void without_memory(void)
{
    if (!can_fail_malloc()) return;
    for (int who = 0; who < check_ranks; who++) {
        char to[16];
        snprintf(to, sizeof to, "%d", (check_rank + 1) % check_ranks);
        kvtree *send = kvtree_new(), *got = kvtree_new(), *wide = wide_tree(20000);
        size_t size = kvtree_pack_size(wide);
        kvtree_set(send, to, wide);
        for (size_t header = 0; header <= MESSAGE_HEADER; header += MESSAGE_HEADER) {
            if (check_rank == who) fail_sizes(size + header, size + header);
            CHECK_INT(kvtree_mpi_exchange(send, got, MPI_COMM_WORLD, 1000), -ENOMEM);
            fail_sizes(0, 0);
            CHECK_INT(kvtree_size(got), 0);
        }
        CHECK_INT(kvtree_mpi_exchange(send, got, MPI_COMM_WORLD, 1000), 0);
        CHECK_INT(kvtree_size(got), 1);
        kvtree_delete(&send);
        kvtree_delete(&got);
    }
}

/* Messages of the application that are under way during a collective call, and a receive
 * that would match anything, match each other and nothing else. */
static void messages_of_the_application(void)
{
    int next = (check_rank + 1) % check_ranks, sent[2] = {check_rank, 42}, got[2];
    MPI_Request receive, send[2];
    MPI_Status status;
    MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
    one_round(ALL, 1, MESSAGE_LIMIT);
    kvtree *tree = check_rank ? kvtree_new() : sample_tree();
    CHECK_INT(kvtree_bcast(tree, 0, MPI_COMM_WORLD), 0);
    kvtree_unset_all(tree);
    MPI_Isend(&sent[0], 1, MPI_INT, next, 1, MPI_COMM_WORLD, &send[0]);
    MPI_Isend(&sent[1], 1, MPI_INT, next, KVTREE_TAG, MPI_COMM_WORLD, &send[1]);
    one_round(ALL, 2, MESSAGE_LIMIT);
    CHECK_INT(kvtree_bcast(tree, 0, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(tree), 0);
    MPI_Wait(&receive, &status);
    CHECK_INT(got[0], (check_rank + check_ranks - 1) % check_ranks);
    CHECK_INT(status.MPI_TAG, 1);
    MPI_Recv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK_INT(got[1], 42);
    CHECK_INT(status.MPI_TAG, KVTREE_TAG);
    MPI_Wait(&send[0], MPI_STATUS_IGNORE);
    MPI_Wait(&send[1], MPI_STATUS_IGNORE);
    kvtree_delete(&tree);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    every_pattern();
    back_to_back();
    messages_follow_the_partners();
    large_null_and_merged();
    in_either_direction();
    queued_messages();
    refused_keys();
    without_memory();
    messages_of_the_application();
    return check_end();
}
