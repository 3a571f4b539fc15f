/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI cannot create a communicator, on all ranks or on one rank only: the duplicate of
 * the application's communicator, the order of ranks that copy, nodes, leaders and their
 * groups. All ranks get the same error, no rank blocks, and existing files stay; then the
 * next try succeeds. */
#include "flushed.h"

enum { PER_RANK = 4 };

static int left; /* number of calls until the one that fails; 0: it has failed */

/* Makes the call in any case, because other ranks wait for this one, and then returns an
 * error. */
static int result(int rc, MPI_Comm *made)
{
    if (rc != MPI_SUCCESS || left == 0 || --left > 0) return rc;
    if (*made != MPI_COMM_NULL) PMPI_Comm_free(made);
    return MPI_ERR_INTERN;
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    return result(PMPI_Comm_split(comm, color, key, made), made);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
    return result(PMPI_Comm_split_type(comm, type, key, info, made), made);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    return result(PMPI_Comm_dup(comm, made), made);
}

/* The n-th communicator fails, on all ranks that create that many, or on one rank; n ==
 * 0: none fails. */
static void arm(int n, int one)
{
    left = one < 0 || one == check_rank ? n : 0;
}

/* Collective: whether a call failed somewhere. */
static int fired(int n, int one)
{
    int hit = n > 0 && left == 0 && (one < 0 || one == check_rank);
    left = 0;
    MPI_Allreduce(MPI_IN_PLACE, &hit, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return hit;
}

static void expect_failed(int rc, int one)
{
    char who[32];
    CHECK(rc == -EIO || rc == -ECOMM);
    list_expect_text(err.text, "MPI");
    if (one < 0) return;
    snprintf(who, sizeof who, "rank %d: ", one);
    list_expect_text(err.text, who);
}

/* Returns 1 if a communicator failed; 0 if there are fewer than n. */
static int fail_flush(list *l, const filo_options *options, int n, int one)
{
    uint64_t before = list_folder_sum(prefix);
    arm(n, one);
    int rc = flush(l, options);
    if (!fired(n, one)) {
        CHECK_INT(rc, 0);
        return 0;
    }
    expect_failed(rc, one);
    CHECK(list_folder_sum(prefix) == before);
    CHECK(!list_exists(prefix, ".scr/stage"));
    return 1;
}

static int fail_fetch(list *l, const filo_options *options, int n, int one)
{
    int ranks, count;
    filo_file *files = flushed_read_map(&ranks, &count);
    list_unlink(l);
    list_adopt(l, count, files);
    arm(n, one);
    int rc = fetch(count, files, options);
    int hit = fired(n, one);
    if (hit) {
        expect_failed(rc, one);
        list_expect_none(l);
    } else {
        CHECK_INT(rc, 0);
        list_expect(l, check_rank);
    }
    filo_files_free(count, files);
    return hit;
}

/* made: number of communicators of a flush, on the rank that creates most. */
static void each(const char *name, const filo_options *options, int one, int made)
{
    list l;
    int n = 1;
    flushed_begin(&l, name, PER_RANK);
    CHECK_INT(flush(&l, options), 0);
    while (fail_flush(&l, options, n, one))
        n++;
    CHECK_INT(n - 1, made);
    n = 1;
    while (fail_fetch(&l, options, n, one))
        n++;
    CHECK_INT(n - 1, 1 + (options->width > 0));
    list_unlink(&l);
}

/* Fails on all ranks, on a rank that is the first of its node if nodes have names, and on
 * a rank that never is. all, first, other: numbers of communicators in these cases. */
static void each_rank(const char *name, const filo_options *options, int all, int first,
                      int other)
{
    const int one[] = {-1, 1, 3}, made[] = {all, first, other};
    for (int i = 0; i < 3; i++) {
        char named[64];
        snprintf(named, sizeof named, "%s.%d", name, i);
        each(named, options, one[i], made[i]);
    }
}

int main(int argc, char **argv)
{
    char node[32];
    check_begin(&argc, &argv);
    check_folder(folder);
    snprintf(node, sizeof node, "node %d", check_rank % 3);
    const filo_options turns = {.checksum = 1, .width = 1, .turn = check_rank % 2},
                       packed = {.checksum = 1, .container = 100000, .node = node},
                       packed_here = {.checksum = 1, .container = 100000},
                       led = {.checksum = 1, .align = 512, .node = node},
                       led_here = {.checksum = 1, .align = 512},
                       led_in_turns = {.checksum = 1,
                                       .align = 512,
                                       .nodes = 2,
                                       .node = node,
                                       .width = 1,
                                       .turn = check_rank % 2};
    each_rank("turns", &turns, 2, 2, 2);
    each_rank("packed", &packed, 2, 2, 2);
    each_rank("packed here", &packed_here, 2, 2, 2);
    each_rank("led", &led, 4, 4, 3);
    each_rank("led here", &led_here, 4, 3, 3);
    each_rank("led in turns", &led_in_turns, 5, 5, 3);
    check_remove(folder);
    return check_end();
}
