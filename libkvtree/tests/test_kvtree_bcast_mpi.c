/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees from one process to all. */
#include "build_tree.h"
#include "check.h"
#include "fail_malloc.h"
#include "src/kvtree_mpi_private.h"

static void from_each_root(void)
{
    static const int limits[] = {MESSAGE_LIMIT, 1, 7, 64};
    kvtree *expected = sample_tree();
    for (int i = 0; i < 4 * check_ranks; i++) {
        int root = i / 4;
        kvtree *tree = check_rank == root ? sample_tree() : kvtree_new();
        CHECK_INT(kvtree_mpi_bcast(tree, root, MPI_COMM_WORLD, limits[i % 4]), 0);
        CHECK(same_tree(tree, expected));
        kvtree_delete(&tree);
    }
    kvtree_delete(&expected);
}

static void empty_null_large_and_replaced(void)
{
    kvtree *tree = kvtree_new();
    CHECK_INT(kvtree_bcast(tree, 0, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(tree), 0);
    CHECK_INT(kvtree_bcast(NULL, 0, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_bcast(check_rank ? tree : NULL, 0, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(tree), 0);
    kvtree_util_set_int(tree, "ALL", check_rank);
    for (int i = 0; check_rank && i < 20; i++)
        kvtree_set_kv_int(tree, "MINE", i);
    kvtree_set_kv_int(tree, "ROOT", 0);
    CHECK_INT(kvtree_bcast(check_rank == 0 ? tree : NULL, 0, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_bcast(tree, 0, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(tree), 2);
    CHECK_INT(kvtree_size(kvtree_get(tree, "ALL")), 1);
    CHECK(kvtree_get_kv_int(tree, "ALL", 0) != NULL);
    CHECK_INT(kvtree_bcast(check_rank ? tree : NULL, 0, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(tree), check_rank ? 0 : 2);
    kvtree_delete(&tree);

    kvtree *wide = wide_tree(150000), *got = kvtree_new();
    CHECK(kvtree_pack_size(wide) > 2 * MESSAGE_LIMIT);
    CHECK_INT(kvtree_bcast(check_rank ? got : wide, 0, MPI_COMM_WORLD), 0);
    if (check_rank) CHECK(same_tree(wide, got));
    kvtree_delete(&wide);
    kvtree_delete(&got);
}

/* Trees that just fit, or just do not fit, into the piece with the header. */
static void around_the_first_piece(void)
{
    enum { FIRST = 4096, ALONE = 4 + 1 + 4 }; /* bytes of a tree with one empty key */
    char key[FIRST];
    for (int more = -2; more <= 2; more++) {
        size_t len = (size_t)(FIRST - MESSAGE_HEADER - ALONE + more);
        memset(key, 'k', len);
        key[len] = 0;
        kvtree *tree = kvtree_new(), *expected = kvtree_new();
        kvtree_set(expected, key, NULL);
        CHECK_INT(kvtree_pack_size(expected), FIRST - MESSAGE_HEADER + more);
        if (check_rank == 0) kvtree_merge(tree, expected);
        CHECK_INT(kvtree_bcast(tree, 0, MPI_COMM_WORLD), 0);
        CHECK(same_tree(tree, expected));
        kvtree_delete(&tree);
        kvtree_delete(&expected);
    }
}

static void refused_roots(void)
{
    kvtree *tree = kvtree_new();
    CHECK_INT(kvtree_bcast(tree, -1, MPI_COMM_WORLD), -EINVAL);
    CHECK_INT(kvtree_bcast(tree, check_ranks, MPI_COMM_WORLD), -EINVAL);
    kvtree_delete(&tree);
}

static void no_communicator(void)
{
    kvtree *tree = kvtree_new();
    CHECK_INT(kvtree_bcast(tree, 0, MPI_COMM_NULL), -EINVAL);
    CHECK_INT(kvtree_exchange(tree, tree, MPI_COMM_NULL), -EINVAL);
    CHECK_INT(kvtree_send(tree, 0, MPI_COMM_NULL), -EINVAL);
    CHECK_INT(kvtree_recv(tree, 0, MPI_COMM_NULL), -EINVAL);
    CHECK_INT(kvtree_sendrecv(tree, 0, tree, 0, MPI_COMM_NULL), -EINVAL);
    CHECK_INT(kvtree_write_gather("none", tree, MPI_COMM_NULL), -EINVAL);
    CHECK_INT(kvtree_read_scatter("none", tree, MPI_COMM_NULL), -EINVAL);
    kvtree_delete(&tree);
}

static void between_groups(void)
{
    if (check_ranks < 2) return;
    MPI_Comm half, both;
    kvtree *tree = kvtree_new(), *got = kvtree_new();
    int side = check_rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 1, &both);
    kvtree_set_kv(tree, "0", "data");
    CHECK_INT(kvtree_bcast(tree, 0, both), -EINVAL);
    CHECK_INT(kvtree_exchange(tree, got, both), -EINVAL);
    CHECK_INT(kvtree_size(got), 0);
    kvtree_delete(&tree);
    kvtree_delete(&got);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

/* Whichever rank has no memory, every rank gets the same result and keeps its tree, and
 * the next call works. */
static void without_memory(void)
{
    if (!can_fail_malloc()) return;
    for (int who = 0; who < check_ranks; who++) {
        kvtree *wide = wide_tree(20000), *got = check_rank ? kvtree_new() : wide;
        size_t size = kvtree_pack_size(wide);
        if (check_rank && who % 2) kvtree_set(got, "KEPT", NULL);
        if (check_rank == who) fail_sizes(size - 1000, size);
        CHECK_INT(kvtree_mpi_bcast(got, 0, MPI_COMM_WORLD, 1000), -ENOMEM);
        fail_sizes(0, 0);
        CHECK_INT(kvtree_size(got), check_rank ? who % 2 : 20000);
        CHECK_INT(kvtree_mpi_bcast(got, 0, MPI_COMM_WORLD, 1000), 0);
        CHECK_INT(kvtree_size(got), 20000);
        if (check_rank) kvtree_delete(&got);
        kvtree_delete(&wide);
    }
}

/* One rank has no memory for the private communicator: no rank gets one, and the next
 * call tries again. */
static void without_a_channel(void)
{
    if (!can_fail_malloc()) return;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    kvtree *tree = check_rank ? kvtree_new() : sample_tree();
    if (check_rank == check_ranks - 1)
        fail_sizes(sizeof(struct channel), sizeof(struct channel));
    CHECK_INT(kvtree_bcast(tree, 0, comm), -ENOMEM);
    fail_sizes(0, 0);
    CHECK_INT(kvtree_bcast(tree, 0, comm), 0);
    CHECK_INT(kvtree_size(tree), 1);
    kvtree_delete(&tree);
    MPI_Comm_free(&comm);
}

/* Creates and frees communicators: on few ranks, where this is quick, more of them than
 * MPICH can have at once (2048), to detect one that is not freed. */
static void many_communicators(void)
{
    int times = check_ranks <= 2 ? 2200 : 100;
    for (int i = 0; i < times; i++) {
        MPI_Comm half;
        int rank;
        MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half);
        MPI_Comm_rank(half, &rank);
        kvtree *tree = kvtree_new();
        if (rank == 0) kvtree_util_set_int(tree, "HALF", check_rank % 2);
        CHECK_INT(kvtree_bcast(tree, 0, half), 0);
        int value = -1;
        CHECK_INT(kvtree_util_get_int(tree, "HALF", &value), 0);
        CHECK_INT(value, check_rank % 2);
        kvtree_delete(&tree);
        MPI_Comm_free(&half);
    }
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    from_each_root();
    empty_null_large_and_replaced();
    around_the_first_piece();
    refused_roots();
    no_communicator();
    between_groups();
    without_memory();
    without_a_channel();
    many_communicators();
    return check_end();
}
