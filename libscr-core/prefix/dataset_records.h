/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_DATASET_RECORDS_H
#define SCR_DATASET_RECORDS_H

/* The directory .scr of a dataset on the prefix directory: records, stages of flushes,
 * staging directories of scavenged files.
 *
 * Others who can change the prefix directory may have moved a directory of the user's
 * there. So files are removed by the names that SCR gives them, or that a record names,
 * never a whole tree. What else is there stays, and keeps its directory. */

#include <kvtree/kvtree_error.h>
#include <stdbool.h>

/* Names of staging directories: "scavenge.<id>.<created>". */
#define SCR_STAGING "scavenge."

/* Removes what SCR wrote in the directory `hidden`, a .scr below the open directory dir,
 * and that directory. -ENOTEMPTY, with a name, where something stays, such as the stage
 * of another user; or another -errno. */
int scr_records_remove_below(int dir, const char *hidden, kvtree_error *err);

/* The same for a staging directory in the open directory hidden: the saved files that its
 * filemaps name, and its records. Names in filemaps that others can change reach only
 * directories that they can change. */
int scr_staging_remove(int hidden, const char *name, kvtree_error *err);

/* Removes the files with such names from a directory below dir that has nothing else, and
 * the directory. -ENOTEMPTY, with a name, where something stays; or another -errno. */
int scr_records_remove_files(int dir, const char *folder, bool (*is_ours)(const char *),
                             kvtree_error *err);

#endif
