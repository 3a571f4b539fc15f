/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_CLEAN_H
#define SCR_PLAN_CLEAN_H

/* What SCR_Init cleans up on the prefix directory. A pure function of what is known of
 * one directory to which a dataset is, or was, flushed. (SCR_PREFIX_SIZE: plan/retain.h.)
 *
 * The rule:
 *  - An interrupted deletion is finished; with SCR_PREFIX_PURGE every dataset is deleted.
 *  - Stages are inspected wherever a flush may have been interrupted: where the index has
 *    no complete dataset and, because an earlier index may have been restored, where the
 *    cache has a dataset or a search found a stage.
 *  - A directory that is not in the index contains nothing but a stage of SCR. It is
 *    removed with the stage if it is empty then. */

#include <stdbool.h>

typedef struct scr_clean_facts {
    bool is_indexed;  /* the index has an entry of that name */
    bool is_complete; /* the entry is complete */
    bool is_deleting; /* a deletion of the dataset was interrupted */
    bool is_cached;   /* the cache has a dataset of that name */
    bool is_staged;   /* a search found a stage in the directory */
    bool purge;
} scr_clean_facts;

typedef struct scr_clean_plan {
    bool deletes;  /* the dataset */
    bool inspects; /* the stage: plan/resume.h decides on its flushes */
    bool vacates;  /* the directory, if it is empty then */
} scr_clean_plan;

scr_clean_plan scr_plan_clean(const scr_clean_facts *facts);

#endif
