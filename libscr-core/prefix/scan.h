/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_SCAN_H
#define SCR_SCAN_H

/* Finds datasets on a prefix directory by the summary and the map that each has in its
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

/* Limits at which a search stops. */
typedef struct scr_scan_limits {
    int depth; /* maximum number of components of a dataset's name */
    int names; /* maximum number of files and directories */
} scr_scan_limits;

#define SCR_SCAN_DEPTH 8
#define SCR_SCAN_NAMES 100000

typedef struct scr_scan {
    char *path; /* path of the prefix directory */
    int dir;    /* the prefix directory, open */
    int count;  /* number of datasets found */
    /* name is that of the directory; complete is 0 if a restart from it is not
     * possible */
    scr_dataset *found;
    int refused; /* number of directories with an unusable summary or map */
    /* -errno or FILO_DAMAGED of the first of these, but another version comes first */
    int code;
    kvtree_error why; /* the text for code */
    int unread;  /* 1: an unusable dataset or directory may be readable another time */
    int stopped; /* 1: directories were skipped because of limits or an error */
    /* names of directories, as keys, that may have the stage of an interrupted flush */
    kvtree *staged;
} scr_scan;

/* Opens the prefix directory. */
int scr_scan_open(scr_scan *scan, const char *prefix, kvtree_error *err);
void scr_scan_close(scr_scan *scan);

/* Closes and frees a scan in allocated memory. *scan may be NULL. */
void scr_scan_free(scr_scan **scan);

/* Inspects the directory name. Returns -ENOENT if it has no dataset. An unusable dataset
 * is counted as refused, which is no error: with a damaged map it is added as not
 * complete; if a disk, a permission or a limit keeps this process from reading it, it is
 * not added, because it may be intact. */
int scr_scan_one(scr_scan *scan, const char *name, kvtree_error *err);

/* Searches all directories: those closer to the prefix directory first, and those within
 * datasets last. limits may be NULL: SCR_SCAN_DEPTH and SCR_SCAN_NAMES. Returns 0 or
 * -ENOMEM. */
int scr_scan_all(scr_scan *scan, const scr_scan_limits *limits, kvtree_error *err);

#endif
