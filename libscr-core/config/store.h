/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_STORE_H
#define SCR_STORE_H

/* Store descriptors (SCR Developer Guide 1.2, section 2.8): classes of storage,
 * identified by their paths. Those of SCR_CACHE_BASE and SCR_CNTL_BASE always exist. */

#include "config/desc.h"
#include "config/group.h"

#define SCR_STORE_WORD_SIZE 16

typedef struct scr_store {
    char path[SCR_DESC_PATH_SIZE];
    char group[SCR_DESC_NAME_SIZE]; /* of processes that share it */
    int count;                      /* largest number of datasets */
    int enabled;
    uint64_t capacity;              /* minimum bytes of its file system; 0: any */
    int own_capacity;               /* 1: set by its descriptor, not SCR_NODE_CAPACITY */
    int mkdir;                      /* 0: path must exist, SCR does not create it */
    char type[SCR_STORE_WORD_SIZE]; /* of transfers: SYNC, PTHREAD, DAEMON, or of another
                                       machine */
    char view[SCR_STORE_WORD_SIZE]; /* PRIVATE or GLOBAL */
    int implied;                    /* 1: made from parameters, not from a STORE */
} scr_store;

typedef struct scr_stores {
    int count;
    scr_store *list;
} scr_stores;

/* The stores of the descriptors STORE, followed by those of the parameters. Mistakes are
 * added to problems, and defaults used instead. 0 or -ENOMEM. */
int scr_stores_from_config(const scr_config *config, const scr_groups *groups,
                           scr_stores *stores, scr_problems *problems);
void scr_stores_done(scr_stores *stores);

/* The store at path, in any form; NULL: none. */
const scr_store *scr_stores_find(const scr_stores *stores, const char *path);
const char *scr_stores_nearest(const scr_stores *stores, const char *path);

/* A field as text, to be freed; NULL if there is no such field, or no memory. */
char *scr_store_field(const scr_store *store, const char *field);

#endif
