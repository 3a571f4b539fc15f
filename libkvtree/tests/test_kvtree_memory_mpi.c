/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank has no memory, at each allocation of a collective call: all ranks get the
 * error, none waits, no tree is changed on any rank, and in files there is the earlier
 * set, or none. */
#include "gather.h"
#include "nth_each_mpi.h"

static kvtree_gather set;
static char path[128], file[160];

/* An empty tree, created whatever memory is left. */
static kvtree *fresh_tree(void)
{
    int held = nth_hold();
    kvtree *tree = kvtree_new();
    countdown = held;
    return tree;
}

/* The data that every rank sends to all: its own tree. */
static kvtree *letters(void)
{
    int held = nth_hold();
    kvtree *all = kvtree_new();
    for (int rank = 0; rank < check_ranks; rank++)
        CHECK(kvtree_set(kvtree_set_kv_int(all, "TO", rank), "TREE",
                         gather_tree(check_rank, 5)) != NULL);
    kvtree *send = kvtree_new();
    CHECK_INT(kvtree_merge(send, kvtree_get(all, "TO")), 0);
    kvtree_delete(&all);
    countdown = held;
    return send;
}

static int do_bcast(void *arg)
{
    kvtree *tree = fresh_tree(), *same = fresh_tree();
    int held = nth_hold(), root = check_ranks - 1;
    kvtree *sent = gather_tree(root, 20);
    if (check_rank == root) CHECK_INT(kvtree_merge(tree, sent), 0);
    if (check_rank == root) CHECK_INT(kvtree_merge(same, sent), 0);
    countdown = held;
    int rc = kvtree_bcast(tree, root, MPI_COMM_WORLD);
    held = nth_hold();
    CHECK(same_tree(tree, rc ? same : sent));
    kvtree_delete(&sent);
    kvtree_delete(&same);
    kvtree_delete(&tree);
    countdown = held;
    return rc;
}

typedef int exchange(const kvtree *send, kvtree *recv, MPI_Comm comm);

static int check_exchange(exchange *call, MPI_Comm comm)
{
    kvtree *send = letters(), *recv = fresh_tree();
    int rc = call(send, recv, comm), held = nth_hold();
    CHECK_INT(kvtree_size(recv), rc ? 0 : check_ranks);
    kvtree_delete(&send);
    kvtree_delete(&recv);
    countdown = held;
    return rc;
}

static int do_exchange(void *arg)
{
    return check_exchange(kvtree_exchange, MPI_COMM_WORLD);
}

/* Not collective: a message that could not be queued is not there, and nothing else has
 * changed. */
static int do_sendq(void *arg)
{
    int held = nth_hold(), all;
    kvtree *send = kvtree_new(), *message = gather_tree(check_rank, 5);
    CHECK_INT(kvtree_exchange_sendq(send, 0, message), 0);
    countdown = held;
    int rc = kvtree_exchange_sendq(send, 1, message);
    held = nth_hold();
    CHECK_INT(kvtree_size(send), rc ? 1 : 2);
    CHECK(same_tree(kvtree_get(send, "0"), message));
    CHECK(rc || same_tree(kvtree_get(send, "1"), message));
    MPI_Allreduce(&rc, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    kvtree_delete(&message);
    kvtree_delete(&send);
    countdown = held;
    return all;
}

/* The first call on a communicator creates the kept duplicate. */
static int do_first(void *arg)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int rc = check_exchange(kvtree_exchange, comm);
    MPI_Comm_free(&comm);
    return rc;
}

static int do_write(void *arg)
{
    kvtree_error *err = &nth_text;
    int held = nth_hold();
    kvtree *tree = gather_tree(check_rank, 30);
    countdown = held;
    int rc = kvtree_gather_write(&set, tree, err);
    held = nth_hold();
    CHECK_INT(err->text[0] != 0, rc != 0);
    kvtree_delete(&tree);
    countdown = held;
    return rc;
}

static int do_read(void *arg)
{
    kvtree_error *err = &nth_text;
    kvtree *trees = fresh_tree();
    int ranks = -1, rc = kvtree_scatter_read(&set, &ranks, trees, err), held = nth_hold();
    CHECK_INT(ranks, rc ? -1 : check_ranks);
    CHECK_INT(kvtree_size(trees), rc ? 0 : 1);
    CHECK_INT(err->text[0] != 0, rc != 0);
    kvtree_delete(&trees);
    countdown = held;
    return rc;
}

static int do_files(void *arg)
{
    int held = nth_hold();
    kvtree *tree = gather_tree(check_rank, 5), *back = kvtree_new();
    countdown = held;
    int rc = kvtree_write_gather(file, tree, MPI_COMM_WORLD);
    if (!rc) rc = kvtree_read_scatter(file, back, MPI_COMM_WORLD);
    held = nth_hold();
    CHECK(rc ? kvtree_size(back) == 0 : same_tree(back, tree));
    kvtree_delete(&back);
    kvtree_delete(&tree);
    countdown = held;
    return rc;
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(gather_base);
    gather_begin(&set, path, "set");
    set.limit = 600; /* several levels of files */
    snprintf(file, sizeof file, "%s/all.scr", path);
    nth_each("bcast", do_bcast, NULL, 30);
    nth_each("exchange", do_exchange, NULL, 30);
    nth_each("sendq", do_sendq, NULL, 30);
    nth_each("first exchange", do_first, NULL, 30);
    nth_each("gather write", do_write, NULL, 30);
    nth_each("scatter read", do_read, NULL, 30);
    nth_each("write and read", do_files, NULL, 30);
    gather_finish(&set);
    check_remove(gather_base);
    return check_end();
}
