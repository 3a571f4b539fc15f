/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_SETTLE_H
#define SCAVENGE_SETTLE_H

/* A dataset that was saved from the cache becomes one of the prefix folder.
 *
 * What nodes saved lies in <dataset>/.scr/scavenge.<id>.<created>, apart from what has
 * the names of its files already: an earlier dataset of that name stays whole until this
 * one is (docs/decisions/0019-scavenged-files-wait-apart.md). Then everything follows in
 * the order of a flush: the index says "not complete", files get their names, map and
 * summary are written, the index says "complete". Killed anywhere, it goes on when it is
 * called again. */

#include "scavenge/rebuild.h"

/* The prefix folder. */
typedef struct scavenge_prefix {
    const char *path;   /* without links */
    int dir;            /* the same, open */
    int most;           /* sets that are rebuilt side by side */
    uint64_t container; /* bytes of a container that files are packed into; 0: they stay
                           files */
} scavenge_prefix;

/* Which dataset: the name, the id and the time of creation in its description. */
typedef struct scavenge_key {
    char name[SCR_NAME_SIZE];
    int id;
    int64_t created; /* microseconds since 1970 */
} scavenge_key;

scavenge_key scavenge_key_of(const scr_dataset *dataset);

/* The folder below the prefix folder to which it is saved. */
#define SCAVENGE_FOLDER_SIZE (SCR_NAME_SIZE + 80)
void scavenge_folder_of(const scavenge_key *key, char folder[SCAVENGE_FOLDER_SIZE]);

/* Of what was saved of the dataset with that name, and has not become part of the prefix
 * folder, the newest; -ENOENT when there is nothing, or -errno. */
int scavenge_find(int prefix, const char *name, scavenge_key *key, char *err);

/* Reads what was saved. To be closed by scavenge_close. */
typedef struct scavenge_saved {
    char *path;
    scavenge_folder folder;
    scavenge_scan scan;
} scavenge_saved;
int scavenge_open(const scavenge_prefix *prefix, const scavenge_key *key,
                  scavenge_saved *saved, char *err);
void scavenge_close(scavenge_saved *saved);

/* What scavenge_settle did. */
typedef struct scavenge_settled {
    scr_dataset dataset;
    int complete;           /* 1: it can be fetched now */
    int current;            /* 1: the next run begins with it */
    char why[ERRTEXT_SIZE]; /* why it is not complete */
    int sets;               /* that lacked something, to be freed: */
    scavenge_rebuilt *rebuilt;
} scavenge_settled;

/* Rebuilds what is missing of that dataset, and makes it a part of the prefix folder; if
 * that cannot be, the index says so, with the reason, and what was saved stays. 0 in both
 * cases; -EBUSY while another process does the same, -ESTALE when a newer dataset has the
 * name, or names of its files; or another -errno, each with a text. */
int scavenge_settle(const scavenge_prefix *prefix, const scavenge_key *key,
                    scavenge_settled *settled, char *err);

#endif
