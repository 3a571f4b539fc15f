/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_DATASET_H
#define SCR_DATASET_H

/* The description of one dataset. Filemaps, redundancy headers, index and summary files
 * keep it as a kvtree (ID, NAME, CREATED, ...; docs/formats/scr.md); this is its typed
 * form. */

#include <kvtree/kvtree.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define SCR_NAME_SIZE 1024

/* A higher id is damage: no job reaches this one, and the next id must not overflow. */
#define SCR_ID_MAX 1000000000

typedef struct scr_dataset {
    int id;        /* number among all datasets of the job, from 1 */
    int ckpt;      /* number among its checkpoints, from 1; 0: not a checkpoint */
    int output;    /* 1: the application wants it on the prefix directory */
    int scattered; /* 1: on the prefix directory, some files are outside of the dataset's
                      directory */
    int bypass;    /* 1: written to the prefix directory directly, never in the cache */
    int borrowed;  /* 1, only in the cache: fetched from a place where others can change
                      its map; it is not flushed again */
    int ranks;     /* size of the run that wrote it; 0: not recorded */
    int complete;  /* 1: all ranks reported it valid */
    long files;    /* number of files on all ranks */
    unsigned long size; /* bytes of all files */
    int64_t created;    /* microseconds since 1970 */
    int64_t flushed;    /* seconds since 1970, from a scan of the prefix directory
                           (prefix/scan.h); not recorded */
    char name[SCR_NAME_SIZE];
    char user[128], job_id[128], job_name[128], cluster[128];
} scr_dataset;

/* The order of datasets, by time of creation. It agrees with the order of ids, because a
 * job never dates a dataset before an earlier one, whatever its clock shows. The
 * exception: a node that returns may have datasets of an earlier calculation with higher
 * ids; those are older. Ids decide if a time is unknown. */
typedef struct scr_age {
    int id;
    int64_t created; /* microseconds since 1970; 0: unknown */
} scr_age;

/* Every dataset is older. */
#define SCR_AGE_ANY ((scr_age){INT_MAX, 0})

bool scr_age_is_older(scr_age a, scr_age b);
scr_age scr_dataset_age(const scr_dataset *dataset);
bool scr_dataset_is_older(const scr_dataset *dataset, scr_age age);
bool scr_dataset_is_after(const scr_dataset *dataset, scr_age age);
bool scr_dataset_is_newer(const scr_dataset *dataset, const scr_dataset *than);

/* The highest value of each number among all known datasets. A new dataset gets higher
 * ones. */
typedef struct scr_counters {
    int id, ckpt;
    int64_t created;
} scr_counters;

/* Raises counters to the values of dataset. */
void scr_counters_include(scr_counters *counters, const scr_dataset *dataset);

/* The creation time of a new dataset, which is also entered into counters: now, or later
 * if a known dataset has that time or a later one. */
int64_t scr_counters_date(scr_counters *counters, int64_t now);

/* 0 if name is valid for a dataset: below the prefix directory (common/beneath.h) and
 * outside of SCR's own directory. Otherwise -EINVAL or -EBADMSG. */
int scr_dataset_check_name(const char *name, kvtree_error *err);

/* Whether SCR uses a name below the prefix directory itself: one with a component ".scr",
 * or of a redundancy file. */
bool scr_name_is_reserved(const char *name);

/* Replaces the contents of tree by all fields. 0 or -ENOMEM. */
int scr_dataset_to_tree(const scr_dataset *dataset, kvtree *tree);

/* Reads and checks: id and name are required, every field must be valid, and the name
 * must not lead into SCR's own directory; otherwise -EBADMSG with a text. Other missing
 * fields are 0 or empty. */
int scr_dataset_from_tree(const kvtree *tree, scr_dataset *dataset, kvtree_error *err);

/* The key of a dataset in its map, which distinguishes it from all others:
 * "<id>.<created>"; "" if its creation time is unknown. */
#define SCR_DATASET_KEY_SIZE 40
void scr_dataset_key(const scr_dataset *dataset, char key[SCR_DATASET_KEY_SIZE]);

/* Whether tree describes the same dataset. An earlier one may have had the same id. */
bool scr_dataset_is_same(const kvtree *tree, const scr_dataset *dataset);

#endif
