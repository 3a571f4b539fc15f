/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OPS_RESTART_H
#define SCR_OPS_RESTART_H

/* SCR_Have_restart, SCR_Start_restart and SCR_Complete_restart. plan/restart.h decides
 * which checkpoint is next; these functions gather the facts and execute the steps.
 * Collective. */

#include "plan/dataset.h"
#include "plan/part_list.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>

struct scr;

/* The open restart, and what earlier attempts in this run mean for the next one. */
struct scr_restart {
    int offered;     /* id of the dataset that SCR_Have_restart offered; 0: none */
    scr_age below;   /* as in plan/restart.h: older than the one that the program
                        refused */
    bool only_older; /* as in plan/restart.h: the refused one is not marked, so it would
                        be next again */
    int again;       /* on rank 0: id of an exhausted checkpoint that is tried again, or
                        0 */
    int elsewhere;  /* id of the newest checkpoint in directories of this calculation that
                       this run does not use (cache/job_lock.c); 0: none */
    kvtree *spared; /* ID/<id>: datasets on the prefix directory that were only unreadable
                       here, and must stay; the same on every rank */
    bool spares_all; /* no memory for that list: all datasets must stay */
    kvtree *catalog; /* of the open restart (ops/bring.h): what this rank knows as a home;
                        NULL: SCR_Fetch_files was not needed yet */
    kvtree *brought; /* <name>/<path> of files that SCR_Fetch_files brought for this
                        rank */
    kvtree *parts;   /* of the open restart (ops/bring_parts.h): what this rank knows as a
                        home; NULL: SCR_Fetch_file_parts was not needed yet */
    kvtree *asked;   /* answers about the files of which this rank wants parts */
    struct scr_listed *listed; /* the files of a rank that this rank asked for
                                  (ops/listing.h); or NULL */
    kvtree *names; /* the files of this process in dataset `named` (ops/route_names.c), by
                      last component; NULL: no file was looked up */
    int named;
    scr_part_memo own_parts, asked_parts; /* of trees in names, and in asked */
    int in_prefix;    /* the dataset of the open restart is complete on the prefix
                         directory */
    int routed_early; /* on this rank: SCR_Route_file returned a file of a checkpoint
                         before SCR_Start_restart */
    int compared;     /* id of the checkpoint whose files were verified for that */
    int no_memory;    /* on this rank: a file could not be located for lack of memory
                         since SCR_Start_restart */
    double start;     /* MPI_Wtime */
};

int scr_restart_have(struct scr *scr, int *flag, char *name);

/* A newer checkpoint is complete, or one was chosen: forgets earlier attempts. */
static inline void scr_restart_forget(struct scr_restart *restart)
{
    restart->below = SCR_AGE_ANY;
    restart->only_older = false;
}

/* Before the first output: reports an available checkpoint that the program has not asked
 * for. */
void scr_restart_remind(struct scr *scr);
int scr_restart_start(struct scr *scr, char *name);
int scr_restart_complete(struct scr *scr, int valid);

/* Closes an open restart without a result. */
void scr_restart_abandon(struct scr *scr);

#endif
