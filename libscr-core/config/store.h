/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_STORE_H
#define SCR_STORE_H

/* Store descriptors (SCR Developer Guide 1.2, section 2.8): classes of storage,
 * identified by their paths. The stores of SCR_CACHE_BASE and SCR_CNTL_BASE always
 * exist. */

#include "config/desc.h"
#include "config/group.h"

#define SCR_STORE_WORD_SIZE 16

typedef struct scr_store {
    char path[SCR_DESC_PATH_SIZE];
    char group[SCR_DESC_NAME_SIZE]; /* processes that share the store */
    int count;                      /* largest number of datasets */
    int enabled;
    uint64_t capacity; /* minimum size of its file system in bytes; 0: any */
    int own_capacity;  /* 1: set by its descriptor, not by SCR_NODE_CAPACITY */
    int mkdir;         /* 0: path must exist, SCR does not create it */
    char type[SCR_STORE_WORD_SIZE]; /* of transfers: SYNC, PTHREAD, DAEMON, or a type that
                                       other machines have */
    char view[SCR_STORE_WORD_SIZE]; /* PRIVATE or GLOBAL */
    int implied;                    /* 1: made from parameters, without a STORE */
} scr_store;

typedef struct scr_stores {
    int count;
    scr_store *list;
} scr_stores;

/* Reads the stores of the descriptors STORE, followed by the stores of parameters.
 * Mistakes are added to problems, and defaults are used instead. Returns 0 or -ENOMEM. */
int scr_stores_from_config(const scr_config *config, const scr_groups *groups,
                           scr_stores *stores, scr_problems *problems);
void scr_stores_done(scr_stores *stores);

/* Returns the store at path, which need not be canonical; NULL: none. */
const scr_store *scr_stores_find(const scr_stores *stores, const char *path);
const char *scr_stores_nearest(const scr_stores *stores, const char *path);

/* Returns a field as text, which the caller frees; NULL if there is no such field, or no
 * memory. */
char *scr_store_field(const scr_store *store, const char *field);

#endif
