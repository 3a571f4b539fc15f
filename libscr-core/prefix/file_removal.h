/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FILE_REMOVAL_H
#define SCR_FILE_REMOVAL_H

/* Removes the files of one dataset, for prefix/retention.c: rank 0 takes them one by one,
 * as the map has them, and hands them out in pieces to a limited number of ranks. Where
 * they lie in directories of the application, others use the same names: what is not the
 * file of the map stays. */

#include "job/job.h"
#include <filo/filo.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Verdict: all is done, but files stay that are not those of the map. */
#define SCR_FILE_REMOVAL_KEPT 4

enum { SCR_FILE_REMOVAL_PIECE = 8192 };

/* Of files that are gone, for another thread. */
typedef _Atomic uint64_t scr_file_count;

typedef struct scr_file_removal {
    const scr_job *job;
    int dir;              /* the open directory that the names are below */
    int64_t shared;       /* others who chose names, as of others_put_below */
    bool compares;        /* only files of the map go; otherwise what has their names, and
                             directories that are empty then */
    int helpers;          /* ranks 1 to helpers remove files; 0: rank 0 does */
    int next;             /* the helper to get the next piece */
    scr_file_count *gone; /* counted on rank 0; what helpers got counts; or NULL */
    size_t used;
    int count; /* of files in the piece */
    char piece[SCR_FILE_REMOVAL_PIECE];
    int rc; /* the first failure, or SCR_FILE_REMOVAL_KEPT, and its text */
    kvtree_error err;
} scr_file_removal;

/* Every rank, with the same width, the most ranks that remove files, and about how many
 * files there are. */
void scr_file_removal_begin(scr_file_removal *removal, int width, int64_t files);

/* Whether this rank needs the directory: it removes files, or is rank 0. */
bool scr_file_removal_takes_part(const scr_file_removal *removal);

/* Rank 0. */
void scr_file_removal_take(scr_file_removal *removal, const filo_file *file);

/* Every rank: until all that rank 0 took is done. The result of this rank: 0, -errno or
 * SCR_FILE_REMOVAL_KEPT, with a text. */
int scr_file_removal_end(scr_file_removal *removal, kvtree_error *err);

#endif
