/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OPS_RESTART_H
#define SCR_OPS_RESTART_H

/* SCR_Have_restart, SCR_Start_restart and SCR_Complete_restart. plan/restart.h decides
 * which checkpoint is next; this gathers its facts and executes its steps. Collective. */

#include "plan/dataset.h"
#include "plan/part_list.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>

struct scr;

/* What earlier attempts to restart in this run say about the next one. */
struct scr_restart {
    int offered;     /* id of the dataset that SCR_Have_restart offered; 0: none */
    scr_age below;   /* as in plan/restart.h: below the one that the program refused */
    bool only_older; /* likewise: it is not marked, so it would be next again */
    int again;       /* on rank 0: id of an exhausted one that is tried again; 0: none */
    int elsewhere;  /* id of the newest checkpoint in directories of this calculation that
                       this run does not use (cache/job_lock.c); 0: none */
    kvtree *spared; /* ID/<id>: on the prefix directory, could only not be read here, and
                       must stay; the same on every rank */
    bool spares_all; /* memory was short for that list: all of them must stay */
    kvtree *catalog; /* of the open restart (ops/bring.h): what this rank knows as a home;
                        NULL: SCR_Fetch_files has had nothing to do */
    kvtree *brought; /* <name>/<path> of files that SCR_Fetch_files brought for this rank
                      */
    kvtree *parts;   /* of the open restart (ops/bring_parts.h): what this rank knows as a
                        home; NULL: SCR_Fetch_file_parts has had nothing to do */
    kvtree *asked;   /* what it was told of the files of which it wants parts */
    struct scr_listed *listed; /* what this rank was told of the files of another
                                  (ops/listing.h); or NULL */
    kvtree *names; /* of the files of this process in dataset `named` (ops/route_names.c),
                      by last component; NULL: none was looked up */
    int named;
    scr_part_memo own_parts, asked_parts; /* of trees in names, and in asked */
    int in_prefix; /* the dataset of the open restart is whole on the prefix directory */
    int routed_early; /* SCR_Route_file gave a file of a checkpoint before, here */
    int compared;     /* id of the checkpoint whose files were compared for that */
    int no_memory;    /* here, since SCR_Start_restart, to say where a file is */
    double start;     /* MPI_Wtime */
};

int scr_restart_have(struct scr *scr, int *flag, char *name);

/* A newer checkpoint is complete, or one was chosen: earlier attempts count no longer.
 */
static inline void scr_restart_forget(struct scr_restart *restart)
{
    restart->below = SCR_AGE_ANY;
    restart->only_older = false;
}

/* Before the first output: reports a checkpoint that the program has not asked for. */
void scr_restart_remind(struct scr *scr);
int scr_restart_start(struct scr *scr, char *name);
int scr_restart_complete(struct scr *scr, int valid);

/* Closes an open restart without a result. */
void scr_restart_abandon(struct scr *scr);

#endif
