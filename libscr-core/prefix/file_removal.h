/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FILE_REMOVAL_H
#define SCR_FILE_REMOVAL_H

/* Removes the files of one dataset, for prefix/retention.c. Rank 0 takes the files one by
 * one in the order of the map, and hands them out in pieces to a limited number of ranks.
 * If the files lie in directories of the application, other datasets may use the same
 * names: a file that differs from the map stays. */

#include "job/job.h"
#include <filo/filo.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Verdict: all is done, but files stay that differ from the map. */
#define SCR_FILE_REMOVAL_KEPT 4

enum { SCR_FILE_REMOVAL_PIECE = 8192 };

/* Number of files that are gone, which another thread reads. */
typedef _Atomic uint64_t scr_file_count;

typedef struct scr_file_removal {
    const scr_job *job;
    int dir;        /* open directory that the names are relative to */
    int64_t shared; /* other users who chose names, as from others_put_below */
    bool compares;  /* removes only files that match the map; otherwise, all files with
                       these names, and directories that are then empty */
    int helpers;    /* ranks 1 to helpers remove files; 0: rank 0 does */
    int next;       /* the helper that gets the next piece */
    scr_file_count *gone; /* counted on rank 0, where a file handed to a helper counts at
                             once; or NULL */
    size_t used;
    int count; /* files in the piece */
    char piece[SCR_FILE_REMOVAL_PIECE];
    int rc; /* the first failure, or SCR_FILE_REMOVAL_KEPT, and its text */
    kvtree_error err;
} scr_file_removal;

/* Begins a removal on every rank. All ranks pass the same width, the maximum number of
 * ranks that remove files, and the approximate number of files. */
void scr_file_removal_begin(scr_file_removal *removal, int width, int64_t files);

/* Whether this rank needs the directory: it removes files, or is rank 0. */
bool scr_file_removal_takes_part(const scr_file_removal *removal);

/* Rank 0: takes a file. */
void scr_file_removal_take(scr_file_removal *removal, const filo_file *file);

/* Every rank: waits until all files that rank 0 took are done. Returns the result of this
 * rank: 0, -errno or SCR_FILE_REMOVAL_KEPT, with a text. */
int scr_file_removal_end(scr_file_removal *removal, kvtree_error *err);

#endif
