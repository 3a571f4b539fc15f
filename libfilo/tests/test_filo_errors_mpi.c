/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI cannot split a communicator: the order of ranks that copy, nodes, leaders and their
 * groups. All ranks get one error, nobody waits, and what was there stays; then all goes
 * well. */
#include "flushed.h"

enum { PER_RANK = 4 };

static int left; /* the split that fails is so many calls away; 0: it has failed */

/* Other ranks wait for this one, so the call is done. */
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    int rc = PMPI_Comm_split(comm, color, key, made);
    if (rc != MPI_SUCCESS || left == 0 || --left > 0) return rc;
    if (*made != MPI_COMM_NULL) PMPI_Comm_free(made);
    return MPI_ERR_INTERN;
}

/* The n-th split fails, on all ranks that have so many, or on one of those whose others
 * are told; n == 0: none does. */
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
    CHECK_INT(rc, -EIO);
    list_expect_text(err.text, "MPI failed");
    if (one < 0) return;
    snprintf(who, sizeof who, "rank %d: ", one);
    list_expect_text(err.text, who);
}

/* 1: a split failed; 0: there are fewer. */
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

/* splits: of a flush, on the rank that has most. */
static void each_split(const char *name, const filo_options *options, int one, int splits)
{
    list l;
    int n = 1;
    flushed_begin(&l, name, PER_RANK);
    CHECK_INT(flush(&l, options), 0);
    while (fail_flush(&l, options, n, one))
        n++;
    CHECK_INT(n - 1, splits);
    n = 1;
    while (fail_fetch(&l, options, n, one))
        n++;
    CHECK_INT(n - 1, options->width > 0);
    list_unlink(&l);
}

int main(int argc, char **argv)
{
    char node[32];
    check_begin(&argc, &argv);
    check_folder(folder);
    snprintf(node, sizeof node, "node %d", check_rank % 3);
    const filo_options turns = {.checksum = 1, .width = 1, .turn = check_rank % 2},
                       packed = {.checksum = 1, .container = 100000, .node = node},
                       led = {.checksum = 1, .align = 512, .node = node},
                       led_in_turns = {.checksum = 1,
                                       .align = 512,
                                       .nodes = 2,
                                       .node = node,
                                       .width = 1,
                                       .turn = check_rank % 2};
    each_split("turns", &turns, -1, 1);
    each_split("first", &turns, 0, 1);
    each_split("last", &turns, check_ranks - 1, 1);
    each_split("packed", &packed, -1, 2);
    each_split("led", &led, -1, 3);
    each_split("led in turns", &led_in_turns, -1, 4);
    check_remove(folder);
    return check_end();
}
