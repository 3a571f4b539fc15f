/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_REDDESC_H
#define SCR_REDDESC_H

/* Redundancy descriptors (SCR Developer Guide 1.2, section 2.9): where datasets are
 * cached and how they are protected. Each dataset uses one descriptor. */

#include "config/desc.h"
#include "config/group.h"
#include "config/store.h"

typedef struct scr_reddesc {
    int index; /* number, from 0 */
    int enabled;
    int interval;
    int output, bypass;
    int set_size, set_failures;
    char type[8];                   /* SINGLE, PARTNER, XOR or RS */
    char group[SCR_DESC_NAME_SIZE]; /* failure group: processes that may fail together */
    char store[SCR_DESC_PATH_SIZE]; /* path of the store */
    int implied;                    /* 1: made from parameters, without a CKPT */
} scr_reddesc;

typedef struct scr_reddescs {
    int count;
    scr_reddesc *list; /* list[i].index is i */
    int ignored;       /* number of descriptors that SCR_COPY_TYPE overrides */
} scr_reddescs;

/* Reads the effective descriptors. These are the CKPT descriptors if SCR_COPY_TYPE is
 * FILE or not set. Otherwise, or if there are none, one descriptor is made from
 * SCR_COPY_TYPE, SCR_GROUP, SCR_CACHE_BASE, SCR_SET_SIZE, SCR_SET_FAILURES and
 * SCR_CACHE_BYPASS. Mistakes are added to problems, and defaults are used instead.
 * Returns 0 or -ENOMEM. */
int scr_reddescs_from_config(const scr_config *config, const scr_groups *groups,
                             const scr_stores *stores, scr_reddescs *reddescs,
                             scr_problems *problems);
void scr_reddescs_done(scr_reddescs *reddescs);

/* Returns the descriptor for checkpoint n, counted from 1: of the enabled descriptors
 * whose interval divides n, the first with the largest interval. NULL only for a
 * configuration with mistakes. */
const scr_reddesc *scr_reddesc_for_checkpoint(const scr_reddescs *reddescs, int n);

/* Returns the descriptor for a dataset. For output: the first enabled descriptor with
 * OUTPUT. If there is none, and for other datasets: the descriptor for checkpoint ckpt; 0
 * (not a checkpoint) counts as 1. */
const scr_reddesc *scr_reddesc_for_dataset(const scr_reddescs *reddescs, int ckpt,
                                           int output);

/* Returns a field as text, which the caller frees; NULL if there is no such field, or no
 * memory. */
char *scr_reddesc_field(const scr_reddesc *desc, const char *field);

/* ---- as a tree (section 2.9.3), which is kept with a dataset ---- */

/* The redundancy set of one process. */
typedef struct scr_reddesc_place {
    char directory[SCR_DESC_PATH_SIZE]; /* directory of the datasets */
    int groups, group_id;               /* number of sets; number of this set */
    int group_size, group_rank;         /* size of the set; rank of this process in it */
} scr_reddesc_place;

/* Replaces the contents of tree by the descriptor and the place. Returns 0 or -errno. */
int scr_reddesc_to_tree(const scr_reddesc *desc, const scr_reddesc_place *place,
                        kvtree *tree);

#endif
