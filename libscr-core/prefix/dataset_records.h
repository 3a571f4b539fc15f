/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_DATASET_RECORDS_H
#define SCR_DATASET_RECORDS_H

/* The directory .scr of a dataset on the prefix directory: records, stages of flushes,
 * staging directories of scavenged files. */

#include <kvtree/kvtree_error.h>

/* Names of staging directories: "scavenge.<id>.<created>". */
#define SCR_STAGING "scavenge."

/* What only SCR puts in a staging directory, for beneath_check_origin. */
extern const char *const scr_staging_proofs[];

/* Removes what SCR wrote in the directory `hidden`, a .scr below the open directory dir,
 * and that directory. What has no name of SCR's stays, what others may have moved there,
 * and the stage of another user: -ENOTEMPTY or -EPERM with a text. */
int scr_records_remove_below(int dir, const char *hidden, kvtree_error *err);

#endif
