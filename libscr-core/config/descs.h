/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_DESCS_H
#define SCR_DESCS_H

/* All descriptors of a configuration. */

#include "config/group.h"
#include "config/reddesc.h"
#include "config/store.h"

typedef struct scr_descs {
    scr_groups groups;
    scr_stores stores;
    scr_reddescs reddescs;
    kvtree *launchers; /* <name>/FIELD/<field>/VALUE/<value> */
} scr_descs;

/* Loads all descriptors. Mistakes in them, or in the parameters that they refer to, are
 * added to problems. Returns 0 or -ENOMEM. */
int scr_descs_load(const scr_config *config, scr_descs *descs, scr_problems *problems);
void scr_descs_done(scr_descs *descs);

/* Returns the answer to a query: for "CKPT=0 TYPE" the effective value, for "CKPT" all
 * keys, one per line. The caller frees it. NULL: none. */
char *scr_descs_answer(const scr_descs *descs, const char *question);

#endif
