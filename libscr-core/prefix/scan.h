/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_SCAN_H
#define SCR_SCAN_H

/* Datasets on a prefix directory, found by the summary and the map that each has in its
 * directory. For an index that was lost, or lacks a directory that a user has put there.
 *
 *     scr_scan scan;
 *     int rc = scr_scan_open(&scan, "/p/simulation", err);
 *     if (!rc) rc = scr_scan_all(&scan, NULL, err);
 *     if (!rc) rc = scr_index_restore(index, scan.found, scan.count);
 *     scr_scan_close(&scan);
 *
 * No symbolic link is followed below the prefix directory. The files of a dataset are not
 * verified: a fetch does that. */

#include "common/errtext.h"
#include "plan/dataset.h"
#include <kvtree/kvtree.h>

/* Limits of a search, which stops there. */
typedef struct scr_scan_limits {
    int depth; /* components of a dataset's name */
    int names; /* files and directories */
} scr_scan_limits;

#define SCR_SCAN_DEPTH 8
#define SCR_SCAN_NAMES 100000

typedef struct scr_scan {
    char *path;         /* the prefix directory */
    int dir;            /* the same, open */
    int count;          /* datasets found, ... */
    scr_dataset *found; /* ... each with the name of its directory, and with complete 0 if
                           it cannot be restarted from */
    int refused;        /* directories with a summary or map that cannot be used */
    int code;           /* of the first of these, but one of another version comes first:
                           -errno or FILO_DAMAGED, ... */
    kvtree_error why;   /* ... and the text */
    int unread;     /* 1: one of these, or a directory, may be readable another time */
    int stopped;    /* 1: directories were not searched, because of limits or an error */
    kvtree *staged; /* names of directories, as keys, in which a flush may have been
                       interrupted */
} scr_scan;

/* Opens the prefix directory. */
int scr_scan_open(scr_scan *scan, const char *prefix, kvtree_error *err);
void scr_scan_close(scr_scan *scan);

/* The same for one in the caller's allocated memory, which it frees. NULL is allowed. */
void scr_scan_free(scr_scan **scan);

/* Inspects the directory name: -ENOENT if no dataset is there. One that cannot be used is
 * counted as refused, which is no error. With a damaged map it is found as not complete.
 * It is not found if a disk, a permission or a limit keeps this process from reading it:
 * it may be whole. */
int scr_scan_one(scr_scan *scan, const char *name, kvtree_error *err);

/* Searches all directories, those closer to the prefix directory first, and those within
 * a dataset last. limits may be NULL: SCR_SCAN_DEPTH and SCR_SCAN_NAMES. 0 or -ENOMEM. */
int scr_scan_all(scr_scan *scan, const scr_scan_limits *limits, kvtree_error *err);

#endif
