/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees between two processes. */
#include "build_tree.h"
#include "check.h"
#include "fail_malloc.h"
#include "src/kvtree_mpi_private.h"

#include <limits.h>

static int next, previous;

/* A tree that names its sender. */
static kvtree *tree_from(int rank)
{
    kvtree *tree = sample_tree();
    kvtree_util_set_int(tree, "FROM", rank);
    return tree;
}

static void check_from(kvtree *tree, int rank)
{
    kvtree *expected = tree_from(rank);
    CHECK(same_tree(tree, expected));
    kvtree_delete(&expected);
}

static void around_the_ring(void)
{
    static const int limits[] = {MESSAGE_LIMIT, MESSAGE_HEADER, MESSAGE_HEADER + 1, 100};
    for (int i = 0; i < 4; i++) {
        kvtree *mine = tree_from(check_rank), *got = kvtree_new();
        CHECK_INT(
            kvtree_mpi_sendrecv(mine, next, got, previous, MPI_COMM_WORLD, limits[i]), 0);
        check_from(got, previous);
        check_from(mine, check_rank);
        kvtree_delete(&mine);
        kvtree_delete(&got);
    }
}

static void large_trees(void)
{
    kvtree *wide = wide_tree(100000 + check_rank), *got = kvtree_new();
    kvtree *expected = wide_tree(100000 + previous);
    CHECK(message_size(wide) > 10 * MESSAGE_LIMIT);
    CHECK_INT(kvtree_sendrecv(wide, next, got, previous, MPI_COMM_WORLD), 0);
    CHECK(same_tree(got, expected));
    kvtree_delete(&wide);
    kvtree_delete(&got);
    kvtree_delete(&expected);
}

/* Sizes at which the last piece is full, or holds one byte. */
static void sizes_around_the_limit(void)
{
    char key[64];
    memset(key, 'k', sizeof key);
    for (size_t len = 1; len < sizeof key; len++) {
        kvtree *tree = kvtree_new(), *got = kvtree_new();
        key[len] = 0;
        kvtree_set(tree, key, NULL);
        CHECK_INT(kvtree_mpi_sendrecv(tree, next, got, previous, MPI_COMM_WORLD, 16), 0);
        CHECK(same_tree(tree, got));
        key[len] = 'k';
        kvtree_delete(&tree);
        kvtree_delete(&got);
    }
}

/* Even ranks send to odd ones. */
static void one_way(void)
{
    kvtree *mine = tree_from(check_rank), *got = kvtree_new();
    if (check_rank % 2 == 0 && next) {
        CHECK_INT(kvtree_send(mine, next, MPI_COMM_WORLD), 0);
        CHECK_INT(kvtree_send(NULL, next, MPI_COMM_WORLD), 0);
        CHECK_INT(kvtree_send(mine, next, MPI_COMM_WORLD), 0);
    } else if (check_rank % 2 == 1) {
        CHECK_INT(kvtree_recv(got, previous, MPI_COMM_WORLD), 0);
        check_from(got, previous);
        CHECK_INT(kvtree_recv(got, previous, MPI_COMM_WORLD), 0);
        CHECK_INT(kvtree_size(got), 0);
        CHECK_INT(kvtree_recv(NULL, previous, MPI_COMM_WORLD), 0);
    }
    kvtree_delete(&mine);
    kvtree_delete(&got);
}

static void nobody_and_oneself(void)
{
    kvtree *mine = tree_from(check_rank), *got = kvtree_new();
    CHECK_INT(kvtree_send(mine, MPI_PROC_NULL, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_recv(got, MPI_PROC_NULL, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_sendrecv(mine, MPI_PROC_NULL, got, MPI_PROC_NULL, MPI_COMM_WORLD),
              0);
    CHECK_INT(kvtree_size(got), 0);
    CHECK_INT(kvtree_sendrecv(mine, check_rank, got, check_rank, MPI_COMM_WORLD), 0);
    check_from(got, check_rank);
    /* a chain: the first receives nothing, the last sends nothing */
    int to = next ? next : MPI_PROC_NULL, from = check_rank ? previous : MPI_PROC_NULL;
    kvtree_unset_all(got);
    CHECK_INT(kvtree_sendrecv(mine, to, got, from, MPI_COMM_WORLD), 0);
    if (check_rank)
        check_from(got, previous);
    else
        CHECK_INT(kvtree_size(got), 0);
    kvtree_delete(&mine);
    kvtree_delete(&got);
}

/* Ranks that a communicator does not have are refused by the library; MPI would end the
 * program. */
static void nobody_there(MPI_Comm comm, int ranks, int partner)
{
    const int none[] = {-1000, ranks, INT_MAX, MPI_ANY_SOURCE};
    kvtree *mine = tree_from(check_rank), *got = kvtree_new();
    for (int i = 0; i < 4; i++) {
        CHECK_INT(kvtree_send(mine, none[i], comm), -EINVAL);
        CHECK_INT(kvtree_sendrecv(mine, none[i], got, partner, comm), -EINVAL);
        if (none[i] == MPI_ANY_SOURCE) continue;
        CHECK_INT(kvtree_recv(got, none[i], comm), -EINVAL);
        CHECK_INT(kvtree_sendrecv(mine, partner, got, none[i], comm), -EINVAL);
    }
    CHECK_INT(kvtree_size(got), 0);
    CHECK_INT(kvtree_sendrecv(mine, partner, got, MPI_ANY_SOURCE, comm), 0);
    CHECK_INT(kvtree_size(got), 2); /* nothing else was under way */
    kvtree_delete(&mine);
    kvtree_delete(&got);
}

/* Between rank 0 and all others, whose sizes differ: the far side counts. */
static void ranks_of_the_other_side(void)
{
    MPI_Comm side, between;
    if (check_ranks < 2) return;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank > 0, check_rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, check_rank > 0 ? 0 : 1, 1, &between);
    if (check_rank < 2) nobody_there(between, check_rank ? 1 : check_ranks - 1, 0);
    MPI_Comm_free(&between);
    MPI_Comm_free(&side);
}

static void empty_trees_and_others_before(void)
{
    kvtree *empty = kvtree_new(), *got = kvtree_new();
    CHECK_INT(kvtree_sendrecv(empty, next, got, previous, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(got), 0);
    kvtree_set_kv(got, "KEPT", "1");
    kvtree *mine = tree_from(check_rank);
    CHECK_INT(kvtree_sendrecv(mine, next, got, previous, MPI_COMM_WORLD), 0);
    check_from(got, previous);
    CHECK_INT(kvtree_sendrecv(NULL, next, got, previous, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(got), 0);
    kvtree_delete(&mine);
    kvtree_delete(&empty);
    kvtree_delete(&got);
}

/* Ranks without memory get an error, and the next message arrives normally. */
static void without_memory(void)
{
    if (!can_fail_malloc()) return;
    kvtree *wide = wide_tree(20000), *small = tree_from(check_rank), *got = kvtree_new();
    size_t size = kvtree_pack_size(wide);
    int fails = check_rank == 0, sender_fails = previous == 0;

    if (fails) fail_sizes(size, size); /* the receiver's copy */
    CHECK_INT(kvtree_sendrecv(wide, next, got, previous, MPI_COMM_WORLD),
              fails ? -ENOMEM : 0);
    fail_sizes(0, 0);
    CHECK_INT(kvtree_size(got), fails ? 0 : 20000);

    kvtree_unset_all(got);
    if (fails) fail_sizes(MESSAGE_HEADER + size, MESSAGE_HEADER + size);
    CHECK_INT(kvtree_sendrecv(wide, next, got, previous, MPI_COMM_WORLD),
              fails || sender_fails ? -ENOMEM : 0);
    fail_sizes(0, 0);
    CHECK_INT(kvtree_size(got), sender_fails ? 0 : 20000);

    kvtree_unset_all(got);
    CHECK_INT(kvtree_sendrecv(small, next, got, previous, MPI_COMM_WORLD), 0);
    check_from(got, previous);
    kvtree_delete(&wide);
    kvtree_delete(&small);
    kvtree_delete(&got);
}

/* Messages of another program with our tag are refused. */
static void foreign_messages(void)
{
    char header[2][MESSAGE_HEADER + 4] = {{0}};
    message_put_header(header[0], 1000); /* truncated */
    message_put_header(header[1], 4);    /* a tree of one element without the element */
    header[1][MESSAGE_HEADER + 3] = 1;
    const struct {
        const char *bytes;
        int size;
    } cases[] = {{header[0], MESSAGE_HEADER + 4},
                 {header[1], MESSAGE_HEADER + 4},
                 {header[0], 3},
                 {header[0], 0}};
    kvtree *got = kvtree_new();
    for (int i = 0; i < 8; i++) {
        MPI_Request request;
        if (i == 4) kvtree_set(got, "KEPT", NULL);
        MPI_Isend(cases[i % 4].bytes, cases[i % 4].size, MPI_BYTE, check_rank, KVTREE_TAG,
                  MPI_COMM_WORLD, &request);
        CHECK_INT(kvtree_recv(got, check_rank, MPI_COMM_WORLD), -EBADMSG);
        CHECK_INT(kvtree_size(got), i / 4);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    kvtree_delete(&got);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    next = (check_rank + 1) % check_ranks;
    previous = (check_rank + check_ranks - 1) % check_ranks;
    around_the_ring();
    large_trees();
    sizes_around_the_limit();
    one_way();
    nobody_and_oneself();
    nobody_there(MPI_COMM_WORLD, check_ranks, check_rank);
    ranks_of_the_other_side();
    empty_trees_and_others_before();
    without_memory();
    foreign_messages();
    return check_end();
}
