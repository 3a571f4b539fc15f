/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_NODE_H
#define SCAVENGE_NODE_H

/* The cache of this node, as the filemaps in a control directory describe it (SCR
 * Developer Guide 1.2, sections 2.4 and 2.18). All access is read-only. */

#include "cache/filemap.h"
#include "scavenge/rankmap.h"
#include <sys/types.h>

#define SCAVENGE_OWNER_SIZE 400

typedef struct scavenge_node {
    int dir;                         /* the control directory, open, ... */
    const char *path;                /* ... and its path, owned by the caller */
    char owner[SCAVENGE_OWNER_SIZE]; /* "<user>/scr.<job>": owner of cache directories */
    scr_filemap *map;
    int refused;      /* unusable filemaps */
    kvtree_error why; /* the reason for the first of them */
    int lock;         /* the lock that prevents runs from starting; or -1 */
    pid_t run;        /* a run that is using the cache; 0: none */
} scavenge_node;

/* Opens the control directory at `path`, which must belong to runs in the prefix
 * directory with the path `prefix` (without symbolic links), and reads the filemaps.
 * Until the node is closed no run can start on it, unless a run already uses the cache
 * (`run`). -ENOENT if there was no run, -EPERM for another user's directory, or another
 * -errno, with a text. */
int scavenge_node_open(const char *path, const char *prefix, scavenge_node *node,
                       kvtree_error *err);
void scavenge_node_close(scavenge_node *node);

/* Waits at most `seconds` for the end of a run that uses the cache. 0 or -EBUSY with a
 * text. */
int scavenge_node_wait(scavenge_node *node, int seconds, kvtree_error *err);

/* Finds the newest complete dataset with the id; -ENOENT, -ENOMEM. */
int scavenge_node_newest(const scavenge_node *node, int dset, scr_dataset *dataset);

/* One rank's part of a dataset, as the filemaps list it. scavenge_part_find returns
 * -ENOENT if there is none, -EBADMSG for invalid records; with a text. It does not check
 * the files themselves. */
typedef struct scavenge_part {
    scavenge_rank *rank; /* files by their names in a rank filemap */
    char *folder;        /* the directory that has them */
    scr_dataset dataset;
} scavenge_part;
int scavenge_part_find(const scavenge_node *node, int dset, int rank, scavenge_part *part,
                       kvtree_error *err);
void scavenge_part_done(scavenge_part *part);

/* Opens the directory of a part; -EPERM for another user's directory. */
int scavenge_part_open(const scavenge_part *part, int *folder, kvtree_error *err);

#endif
