/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_MATCH_H
#define SCR_MATCH_H

/* Which file of a dataset a name means. At a restart the current folder may differ from
 * that at output, so a file is found, in this order, by its place below the prefix
 * folder, by the name that it was given at output, and by the end of its path: "rank_3",
 * "ckpt.7/rank_3" and "../ckpt.7/rank_3" all mean <prefix>/ckpt.7/rank_3.
 *
 *     scr_match_begin(&match, name, below, prefix);
 *     for each file
 *         if (scr_match_try(&match, file, orig)) found = file;
 *     match.files is 1: it is found. More: the name may be any of these. */

#include "plan/dataset.h"

typedef struct scr_match {
    const char *name;        /* as the application gives it */
    const char *below;       /* below the prefix folder; NULL: it is not */
    const char *prefix;      /* absolute */
    char end[SCR_NAME_SIZE]; /* what a file may end with; "": nothing */
    int fit;                 /* how well the best files so far do; 0: none fits */
    int files;               /* number of those */
} scr_match;

void scr_match_begin(scr_match *match, const char *name, const char *below,
                     const char *prefix);

/* 1 when the file (below the prefix folder; orig: its name at output, or NULL) fits
 * better than all before it. */
int scr_match_try(scr_match *match, const char *file, const char *orig);

#endif
