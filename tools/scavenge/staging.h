/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_STAGING_H
#define SCAVENGE_STAGING_H

/* Staging directories: nodes copy the files of a dataset to
 * <dataset>/.scr/scavenge.<id>.<created>, so that an earlier dataset with the same name
 * stays intact until the new one is complete
 * (docs/decisions/0019-scavenged-files-wait-apart.md). */

#include "scavenge/scan.h"

/* The prefix directory. */
typedef struct scavenge_prefix {
    const char *path;   /* without symbolic links */
    int dir;            /* the same, open */
    int width;          /* sets that are rebuilt in parallel */
    uint64_t container; /* bytes of a container; 0: files are not packed */
} scavenge_prefix;

/* Identifies a dataset by values of its description. */
typedef struct scavenge_key {
    char name[SCR_NAME_SIZE];
    int id;
    int64_t created; /* microseconds since 1970 */
} scavenge_key;

scavenge_key scavenge_key_of(const scr_dataset *dataset);

/* The staging directory of a dataset, relative to the prefix directory. */
#define SCAVENGE_FOLDER_SIZE (SCR_NAME_SIZE + 80)
void scavenge_folder_of(const scavenge_key *key, char folder[SCAVENGE_FOLDER_SIZE]);

/* Parses the last component of such a path into id and created. */
bool scavenge_key_parse(const char *name, scavenge_key *key);

/* Finds the newest dataset of that name that has a staging directory; -ENOENT if there is
 * none, or another -errno, with a text. */
int scavenge_find(int prefix, const char *name, scavenge_key *key, kvtree_error *err);

/* Opens and scans a staging directory; close it with scavenge_close. 0 or -errno with a
 * text. */
typedef struct scavenge_saved {
    scavenge_key key; /* every scan must match it, since other users may exchange
                       * records */
    scavenge_folder folder;
    scavenge_scan scan;
} scavenge_saved;
int scavenge_open(const scavenge_prefix *prefix, const scavenge_key *key,
                  scavenge_saved *saved, kvtree_error *err);
void scavenge_close(scavenge_saved *saved);

/* Scans the directory again after a change; 0 or -errno with a text, -EBADMSG if it now
 * belongs to another dataset. */
int scavenge_rescan(const scavenge_prefix *prefix, scavenge_saved *saved,
                    kvtree_error *err);

/* A record that exists in a staging directory when it has all files and renames have
 * begun; has the CONTAINER size. */
#define SCAVENGE_WHOLE SCAVENGE_HIDDEN "/whole"

#endif
