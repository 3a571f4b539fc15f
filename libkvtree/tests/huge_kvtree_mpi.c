/* SPDX-License-Identifier: BSD-3-Clause */
/* A tree larger than an int can count, from rank 0 to others.
 *
 * usage: mpiexec -n RANKS huge_kvtree_mpi [BYTES]
 *
 * The packed tree has more than BYTES bytes. Each rank that sends or receives takes twice
 * as much memory; two ranks are enough. In every run of the tests it is 1 MB in pieces of
 * a thousand bytes. */
#include "check.h"
#include "huge_tree.h"
#include "src/kvtree_mpi_private.h"
#include <sys/resource.h>

static size_t bytes = 1000000;
static int pair_limit = 1000, collective_limit = 1000;

/* A tree on rank 0, and an empty one on all others. */
static kvtree *tree_of_first(void)
{
    kvtree *tree = check_rank == 0 ? huge_tree(bytes) : kvtree_new();
    CHECK(tree != NULL);
    return tree;
}

static void to_the_last_rank(void)
{
    kvtree *tree = tree_of_first();
    int last = check_ranks - 1;
    int to = check_rank == 0 ? last : MPI_PROC_NULL;
    int from = check_rank == last ? 0 : MPI_PROC_NULL;
    kvtree *got = last == 0 ? kvtree_new() : tree; /* one rank has both roles */
    CHECK_INT(kvtree_mpi_sendrecv(tree, to, got, from, MPI_COMM_WORLD, pair_limit), 0);
    if (check_rank == last) CHECK(is_huge_tree(got, bytes));
    if (got != tree) kvtree_delete(&got);
    kvtree_delete(&tree);
}

static void to_all(void)
{
    kvtree *tree = tree_of_first();
    CHECK_INT(kvtree_mpi_bcast(tree, 0, MPI_COMM_WORLD, collective_limit), 0);
    CHECK(is_huge_tree(tree, bytes));
    kvtree_delete(&tree);
}

/* Rank 0 sends the large tree to the last rank, and all ranks send a small one to the
 * next rank. */
static void among_all(void)
{
    kvtree *send = kvtree_new(), *got = kvtree_new();
    int last = check_ranks - 1, next = (check_rank + 1) % check_ranks;
    int previous = (check_rank + last) % check_ranks;
    char key[16];
    snprintf(key, sizeof key, "%d", last);
    if (check_rank == 0) CHECK(kvtree_set(send, key, huge_tree(bytes)) != NULL);
    snprintf(key, sizeof key, "%d", next);
    if (check_rank != 0 || next != last) kvtree_set_kv(send, key, "small");
    CHECK_INT(kvtree_mpi_exchange(send, got, MPI_COMM_WORLD, collective_limit), 0);
    kvtree_delete(&send);
    if (check_rank == last) CHECK(is_huge_tree(kvtree_get(got, "0"), bytes));
    snprintf(key, sizeof key, "%d", previous);
    if (check_rank != last || previous != 0)
        CHECK(kvtree_get_kv(got, key, "small") != NULL);
    CHECK_INT(kvtree_size(got), check_rank == last && previous != 0 ? 2 : 1);
    kvtree_delete(&got);
}

static void tell(double seconds)
{
    struct rusage usage;
    long mine, all = 0;
    getrusage(RUSAGE_SELF, &usage);
    mine = usage.ru_maxrss / 1024;
    MPI_Reduce(&mine, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (check_rank == 0)
        printf("%zu bytes packed: %.0f s, at most %ld MiB of memory on all ranks\n",
               huge_tree_size(bytes), seconds, all);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    if (argc > 1) {
        bytes = strtoull(argv[1], NULL, 10);
        pair_limit = MESSAGE_LIMIT;
        collective_limit = MESSAGE_LIMIT;
    }
    double start = MPI_Wtime();
    to_the_last_rank();
    to_all();
    among_all();
    tell(MPI_Wtime() - start);
    return check_end();
}
