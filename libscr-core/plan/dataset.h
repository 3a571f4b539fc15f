/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_DATASET_H
#define SCR_DATASET_H

/* The description of one dataset, kept as a kvtree (ID, NAME, CREATED, ...;
 * docs/formats/scr.md) in filemaps, redundancy headers, index and summary files. This is
 * its typed form. */

#include <kvtree/kvtree.h>
#include <limits.h>
#include <stdint.h>

#define SCR_NAME_SIZE 1024

/* Higher ids are damage: no job counts that far, and counting on must not overflow. */
#define SCR_ID_MAX 1000000000

typedef struct scr_dataset {
    int id;        /* counts all datasets of the job, from 1 */
    int ckpt;      /* counts checkpoints, from 1; 0: not a checkpoint */
    int output;    /* 1: wanted on the prefix folder */
    int named;     /* 1: name was given by the application */
    int scattered; /* 1: on the prefix folder, files lie outside of the dataset's folder
                    */
    int bypass;    /* 1: written to the prefix folder directly, never in the cache */
    int ranks;     /* size of the run that wrote it; 0: not recorded */
    int files;     /* number of files on all ranks */
    int complete;  /* 1: all ranks called it valid */
    unsigned long size; /* bytes of all files */
    int64_t created;    /* microseconds since 1970 */
    int64_t flushed; /* seconds since 1970, where a search found it on the prefix folder
                        (prefix/scan.h); in no record */
    char name[SCR_NAME_SIZE];
    char user[128], job_id[128], job_name[128], cluster[128];
} scr_dataset;

/* Where a dataset stands among others: by id, and where two jobs in one prefix folder
 * have used the same id, by time. */
typedef struct scr_age {
    int id;
    int64_t created;
} scr_age;

/* Every dataset is older. */
#define SCR_AGE_ANY ((scr_age){INT_MAX, 0})

scr_age scr_dataset_age(const scr_dataset *dataset);
int scr_dataset_is_older(const scr_dataset *dataset, scr_age age);
int scr_dataset_is_after(const scr_dataset *dataset, scr_age age);
int scr_dataset_is_newer(const scr_dataset *dataset, const scr_dataset *than);

/* -EINVAL or -EBADMSG unless name may be that of a dataset: a name below the prefix
 * folder (common/beneath.h) that does not lead into SCR's own folder. */
int scr_dataset_check_name(const char *name, char *err);

/* Writes all fields into tree (which is emptied first). 0 or -ENOMEM. */
int scr_dataset_to_tree(const scr_dataset *dataset, kvtree *tree);

/* Reads and checks: id and name must be there, everything that is there must make sense,
 * and the name must not lead into SCR's own folder; else -EBADMSG, and err tells. What is
 * missing is 0 or empty. */
int scr_dataset_from_tree(const kvtree *tree, scr_dataset *dataset, char *err);

/* 1 when tree describes this very dataset: another one may have had its id before. */
int scr_dataset_is_same(const kvtree *tree, const scr_dataset *dataset);

#endif
