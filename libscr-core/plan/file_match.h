/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FILE_MATCH_H
#define SCR_FILE_MATCH_H

/* Which file of a dataset a name refers to. At a restart the current directory may differ
 * from that at output, so a file is searched for, in this order, by its place below the
 * prefix directory, by its name at output, and by the end of its path: "rank_3",
 * "ckpt.7/rank_3" and "../ckpt.7/rank_3" all refer to <prefix>/ckpt.7/rank_3.
 *
 *     scr_file_match_begin(&match, name, below, prefix);
 *     for each file
 *         if (scr_file_match_try(&match, file, orig)) found = file;
 *     match.files == 1: found is the file; more: the name is ambiguous */

#include "plan/dataset.h"
#include <stdbool.h>

typedef struct scr_file_match {
    const char *name;        /* as given by the application */
    const char *below;       /* relative to the prefix directory; NULL: outside of it */
    const char *prefix;      /* absolute */
    char end[SCR_NAME_SIZE]; /* required end of a path; "": none can match */
    int fit;                 /* rank of the best match so far; 0: none */
    int files;               /* number of files with that rank */
} scr_file_match;

void scr_file_match_begin(scr_file_match *match, const char *name, const char *below,
                          const char *prefix);

/* Whether the file (relative to the prefix directory; orig: its name at output, or NULL)
 * matches better than all earlier ones. */
bool scr_file_match_try(scr_file_match *match, const char *file, const char *orig);

#endif
