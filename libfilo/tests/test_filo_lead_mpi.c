/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts that ranks send to the leader of their node: all of them arrive in the order of
 * ranks, or, if the lists are longer than MPI can count, none, and no rank waits forever.
 */
#include "check.h"
#include "src/filo_private_mpi.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 3 };

static char folder[64];

/* Parts r.0, r.1, ... of a file of rank r. */
static void list_parts(filo_job *job)
{
    char source[100], destination[100];
    struct stat seen;
    snprintf(source, sizeof source, "%s/%d", folder, check_rank);
    FILE *file = fopen(source, "w");
    CHECK(file && fputs("abc", file) >= 0 && fclose(file) == 0);
    CHECK_INT(axl_look(source, &seen, NULL), 0);
    for (int i = 0; i < PARTS; i++) {
        snprintf(destination, sizeof destination, "%s/%d.%d", folder, check_rank, i);
        const axl_part part = {.source = source,
                               .source_offset = (uint64_t)i,
                               .destination = destination,
                               .length = 1,
                               .seen = &seen};
        CHECK_INT(filo_lead_add(job, &part), 0);
    }
}

static void check_parts(const axl_transfer *transfer)
{
    CHECK_INT(axl_count(transfer), PARTS * check_ranks);
    for (int i = 0; i < PARTS * check_ranks; i++) {
        axl_file part;
        char destination[100];
        snprintf(destination, sizeof destination, "%s/%d.%d", folder, i / PARTS,
                 i % PARTS);
        CHECK_INT(axl_get(transfer, (size_t)i, &part), 0);
        CHECK_STR(part.destination, destination);
    }
}

/* Sends the parts of all ranks, with a limit. Returns the bytes of all lists. */
static int hand(int most, int expected)
{
    const filo_options options = {.align = 4096, .node = "one"};
    const axl_options plain = {.flags = 0};
    axl_transfer *transfer = NULL;
    filo_error err = {""};
    filo_job job;
    int wish = check_rank;
    CHECK_INT(filo_job_begin(&job, MPI_COMM_WORLD, folder, NULL, &options), 0);
    CHECK_INT(filo_job_agree(&job, 0), 0);
    CHECK_INT(filo_lead_meet(&job), 0);
    CHECK_INT(filo_lead_begin(&job, &wish), 0);
    CHECK_INT(wish, check_ranks - 1);
    if (check_rank == 0) CHECK_INT(axl_create("sync", &plain, &transfer, &job.err), 0);
    list_parts(&job);
    int bytes = (int)job.lead.told_size, all;
    MPI_Allreduce(&bytes, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int rc = filo_lead_hand(&job, 0, most, transfer);
    CHECK_INT(rc, check_rank == 0 ? expected : 0);
    CHECK_INT(filo_job_agree(&job, rc), expected);
    if (expected) CHECK(strstr(job.err.text, strerror(-expected)));
    if (check_rank == 0 && !expected) check_parts(transfer);
    if (check_rank == 0 && expected) CHECK_INT(axl_count(transfer), 0);
    axl_free(transfer);
    CHECK_INT(filo_job_end(&job, expected, &err), expected);
    return all;
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(folder);
    int all = hand(INT_MAX, 0);
    hand(all, 0);
    hand(all - 1, -EFBIG);
    hand(1, -EFBIG);
    check_remove(folder);
    return check_end();
}
