/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_TESTS_FLUSHED_H
#define FILO_TESTS_FLUSHED_H

/* For tests of the result of a flush by all ranks, and of the fetch back. A test has its
 * own directory, `prefix` below `folder`, and the list of this rank. */

#include "lists.h"

static char folder[64], prefix[128];
static filo_error err;

static inline void flushed_begin(list *l, const char *name, int count)
{
    err.text[0] = 0;
    snprintf(prefix, sizeof prefix, "%s/%s", folder, name);
    list_create(l, folder, check_rank, count);
}

/* Whether this is the rank that fails, in tests where one rank fails. */
static inline int is_culprit(void)
{
    return check_rank == check_ranks - 1;
}

static inline int flush(list *l, const filo_options *options)
{
    return filo_flush(MPI_COMM_WORLD, prefix, NULL, l->count, l->files, options, &err);
}

/* The files of this rank in the map, and their number. */
static inline filo_file *flushed_read_map(int *ranks, int *count)
{
    filo_file *files = NULL;
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, ranks, count, &files, NULL, &err), 0);
    return files;
}

static inline int fetch(int count, filo_file *files, const filo_options *options)
{
    return filo_fetch(MPI_COMM_WORLD, prefix, count, files, options, &err);
}

/* Fetches the files of the list, which were removed, and checks their bytes. */
static inline void flushed_fetch_all(list *l)
{
    int ranks, count;
    const filo_options options = {.checksum = 1};
    list_unlink(l);
    filo_file *files = flushed_read_map(&ranks, &count);
    list_adopt(l, count, files);
    CHECK_INT(fetch(count, files, &options), 0);
    list_expect(l, check_rank);
    filo_files_free(count, files);
}

#endif
