/* SPDX-License-Identifier: BSD-3-Clause */
/* A program for KVTree 1.5 between processes; see test_kvtree_compat.c. */
#include <kvtree_mpi.h>
#include <kvtree_util.h>

#include "check.h"
#include "kvtree_set.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char path[128];

static int int_of(const kvtree *tree, const char *key)
{
    int value = -1;
    return kvtree_util_get_int(tree, key, &value) == KVTREE_SUCCESS ? value : -1;
}

/* All ranks but root have other keys, and other values of the same key. */
static void a_broadcast_replaces(void)
{
    kvtree *tree = kvtree_new();
    kvtree_util_set_int(tree, "ONE", check_rank);
    kvtree_util_set_int(tree, check_rank ? "OTHER" : "TWO", 2);
    CHECK_INT(kvtree_bcast(tree, 0, MPI_COMM_WORLD), KVTREE_SUCCESS);
    CHECK_INT(kvtree_size(tree), 2);
    CHECK_INT(int_of(tree, "ONE"), 0);
    CHECK_INT(int_of(tree, "TWO"), 2);
    if (check_rank == 0) kvtree_unset_all(tree);
    CHECK_INT(kvtree_bcast(tree, 0, MPI_COMM_WORLD), KVTREE_SUCCESS);
    CHECK_INT(kvtree_size(tree), 0);
    kvtree_delete(&tree);
}

/* Around the ring, into the tree that was received before. */
static void a_receiver_keeps_nothing(void)
{
    int next = (check_rank + 1) % check_ranks;
    int previous = (check_rank + check_ranks - 1) % check_ranks;
    kvtree *mine = kvtree_new(), *got = kvtree_new();
    for (int round = 0; round < 3; round++) {
        char key[16];
        snprintf(key, sizeof key, "ROUND%d", round);
        kvtree_unset_all(mine);
        kvtree_util_set_int(mine, key, check_rank);
        if (round == 0) {
            CHECK_INT(kvtree_sendrecv(mine, next, got, previous, MPI_COMM_WORLD), 0);
        } else if (check_rank % 2) {
            CHECK_INT(kvtree_recv(got, previous, MPI_COMM_WORLD), 0);
            CHECK_INT(kvtree_send(mine, next, MPI_COMM_WORLD), 0);
        } else {
            CHECK_INT(kvtree_send(mine, next, MPI_COMM_WORLD), 0);
            CHECK_INT(kvtree_recv(got, previous, MPI_COMM_WORLD), 0);
        }
        CHECK_INT(kvtree_size(got), 1);
        CHECK_INT(int_of(got, key), previous);
    }
    kvtree_delete(&got);
    kvtree_delete(&mine);
}

static void messages_are_queued_and_exchanged(void)
{
    static const kvtree_exchange_enum directions[] = {KVTREE_EXCHANGE_RIGHT,
                                                      KVTREE_EXCHANGE_LEFT};
    int next = (check_rank + 1) % check_ranks;
    char from[16];
    snprintf(from, sizeof from, "%d", (check_rank + check_ranks - 1) % check_ranks);
    kvtree *send = kvtree_new(), *message = kvtree_new();
    kvtree_util_set_int(message, "NUMBER", 100 + check_rank);
    CHECK_INT(kvtree_exchange_sendq(send, next, message), KVTREE_SUCCESS);
    kvtree_delete(&message);
    for (int i = 0; i < 3; i++) {
        kvtree *got = kvtree_new();
        if (i < 2)
            CHECK_INT(kvtree_exchange_direction(send, got, MPI_COMM_WORLD, directions[i]),
                      0);
        else
            CHECK_INT(kvtree_exchange(send, got, MPI_COMM_WORLD), 0);
        CHECK_INT(int_of(kvtree_get(got, from), "NUMBER"),
                  100 + (check_rank + check_ranks - 1) % check_ranks);
        CHECK_INT(kvtree_size(got), 1);
        kvtree_delete(&got);
    }
    kvtree_delete(&send);
}

/* All ranks write; each rank reads its part, and one rank reads all. */
static void ranks_in_files(void)
{
    kvtree *mine = kvtree_new(), *got = kvtree_new(), *all = kvtree_new();
    kvtree_util_set_int(mine, check_rank % 2 ? "ODD" : "EVEN", check_rank);
    CHECK_INT(kvtree_write_gather(path, mine, MPI_COMM_WORLD), KVTREE_SUCCESS);
    CHECK_INT(kvtree_read_scatter(path, got, MPI_COMM_WORLD), KVTREE_SUCCESS);
    CHECK_INT(kvtree_size(got), 1);
    CHECK_INT(int_of(got, check_rank % 2 ? "ODD" : "EVEN"), check_rank);
    CHECK_INT(kvtree_read_scatter_single(path, all), KVTREE_SUCCESS);
    CHECK_INT(kvtree_size(all), check_ranks);
    CHECK_INT(int_of(kvtree_get(all, "0"), "EVEN"), 0);
    CHECK(kvtree_read_scatter(NULL, NULL, MPI_COMM_WORLD) != KVTREE_SUCCESS);
    kvtree_delete(&all);
    kvtree_delete(&got);
    kvtree_delete(&mine);
}

static void ranks_in_files_of_kvtree(void)
{
    for (int deep = 0; deep < 2; deep++) {
        kvtree *got = kvtree_new();
        if (check_rank == 0)
            CHECK(deep ? kvtree_set_deep(path, check_ranks)
                       : kvtree_set_flat(path, check_ranks));
        CHECK_INT(kvtree_read_scatter(path, got, MPI_COMM_WORLD), KVTREE_SUCCESS);
        CHECK_INT(kvtree_size(got), 1);
        CHECK_INT(int_of(got, "VALUE"), check_rank);
        kvtree_delete(&got);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Each rank writes the same for all, at the same time. */
static void all_write_the_same(void)
{
    char key[16], lower[160];
    kvtree *all = kvtree_new(), *got = kvtree_new();
    for (int rank = 0; rank < check_ranks; rank++) {
        snprintf(key, sizeof key, "%d", rank);
        kvtree_util_set_str(all, key, "data");
    }
    CHECK_INT(kvtree_write_to_gather(path, all, check_ranks), KVTREE_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(kvtree_read_scatter_single(path, got), KVTREE_SUCCESS);
    CHECK_INT(kvtree_size(got), check_ranks);
    CHECK(strcmp(kvtree_get_val(got, "0"), "data") == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(lower, sizeof lower, "%s.0.0", path);
    if (check_rank == 0) CHECK_INT(unlink(lower), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(kvtree_read_scatter_single(path, got) != KVTREE_SUCCESS);
    kvtree_delete(&got);
    kvtree_delete(&all);
}

int main(int argc, char **argv)
{
    char folder[64];
    check_begin(&argc, &argv);
    check_folder(folder);
    snprintf(path, sizeof path, "%s/PREFIX", folder);
    a_broadcast_replaces();
    a_receiver_keeps_nothing();
    messages_are_queued_and_exchanged();
    ranks_in_files();
    ranks_in_files_of_kvtree();
    all_write_the_same();
    check_remove(folder);
    return check_end();
}
