/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_NODE_H
#define SCAVENGE_NODE_H

/* What the cache of this node has: the filemaps in a control folder, which a run left
 * (SCR Developer Guide 1.2, sections 2.4 and 2.18). Nothing there is ever changed. */

#include "cache/filemap.h"
#include "scavenge/rankmap.h"
#include <sys/types.h>

typedef struct scavenge_node {
    int dir;          /* the control folder, open, ... */
    const char *path; /* ... and where it is; the caller's */
    char owner[400];  /* "<user>/scr.<job>", to whom folders of the cache belong */
    scr_filemap *map;
    int refused;            /* filemaps that cannot be used */
    char why[ERRTEXT_SIZE]; /* of the first of them */
    int lock;               /* -1, or what keeps runs from starting */
    pid_t run;              /* a run that uses the cache now; 0: none does */
} scavenge_node;

/* Opens the control folder at path, which must be that of runs in the prefix folder with
 * that path (without links), and reads the filemaps. No run can start here until it is
 * closed, unless one uses the cache now (`run`). -ENOENT where no run was, -EPERM when it
 * is somebody else's, or another -errno, with a text. */
int scavenge_node_open(const char *path, const char *prefix, scavenge_node *node,
                       char *err);
void scavenge_node_close(scavenge_node *node);

/* Waits for the end of a run that uses the cache, for at most so many seconds: it may be
 * dying. 0 or -EBUSY with a text. */
int scavenge_node_wait(scavenge_node *node, int seconds, char *err);

/* What a rank has of a dataset, by the filemaps: its files, under the names that a rank
 * filemap has, the folder in which they lie (to be freed), and the description. -ENOENT
 * when it has nothing, or -EBADMSG for what cannot be; with a text. Files are not looked
 * at. */
typedef struct scavenge_part {
    scavenge_rank *rank;
    char *folder;
    scr_dataset dataset;
} scavenge_part;
int scavenge_part_find(const scavenge_node *node, int dset, int rank, scavenge_part *part,
                       char *err);
void scavenge_part_done(scavenge_part *part);

/* The folder of a part, open; -EPERM when it is somebody else's. */
int scavenge_part_open(const scavenge_part *part, int *folder, char *err);

#endif
