/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_DATASET_RECORDS_H
#define SCR_DATASET_RECORDS_H

/* The directory .scr of a dataset on the prefix directory: records, stages of flushes,
 * staging directories of scavenged files.
 *
 * Other users who can change the prefix directory may have moved a directory of this user
 * there. So SCR never removes a whole tree. It removes files with the names that SCR
 * gives, or that a record contains. Anything else stays, and so does its directory. */

#include <kvtree/kvtree_error.h>
#include <stdbool.h>

/* Names of staging directories: "scavenge.<id>.<created>". */
#define SCR_STAGING "scavenge."

/* Removes all that SCR wrote in the directory `hidden`, a .scr below the open directory
 * dir, and then the directory. Returns -ENOTEMPTY, with a name in the text, if something
 * stays, such as the stage of another user; or another -errno. */
int scr_records_remove_below(int dir, const char *hidden, kvtree_error *err);

/* Removes a staging directory in the open directory hidden: the saved files that its
 * filemaps name, and its records. Names in filemaps that other users can change reach
 * only directories that these users can change. Returns errors as above. */
int scr_staging_remove(int hidden, const char *name, kvtree_error *err);

/* Removes the files that is_ours accepts from a directory below dir, and the directory.
 * Returns -ENOTEMPTY, with a name in the text, if something else stays; or another
 * -errno. */
int scr_records_remove_files(int dir, const char *folder, bool (*is_ours)(const char *),
                             kvtree_error *err);

#endif
