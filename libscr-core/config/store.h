/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_STORE_H
#define SCR_STORE_H

/* Store descriptors (SCR Developer Guide 1.2, section 2.8): classes of storage, each
 * known by its path. Those of SCR_CACHE_BASE and SCR_CNTL_BASE are there always. */

#include "config/desc.h"
#include "config/group.h"

#define SCR_STORE_WORD_SIZE 16

typedef struct scr_store {
    char path[SCR_DESC_PATH_SIZE];
    char group[SCR_DESC_NAME_SIZE]; /* of processes that share it */
    int count;                      /* most datasets in it */
    int enabled;
    uint64_t capacity;              /* least bytes of its file system on a node; 0: any */
    int own_capacity;               /* 1: its descriptor says so, not SCR_NODE_CAPACITY */
    int mkdir;                      /* 0: no folders can be made there */
    char type[SCR_STORE_WORD_SIZE]; /* of transfers: SYNC, PTHREAD, DAEMON, BBAPI, DW */
    char view[SCR_STORE_WORD_SIZE]; /* PRIVATE or GLOBAL */
    int implied;                    /* 1: no descriptor STORE says so */
} scr_store;

typedef struct scr_stores {
    int count;
    scr_store *list;
} scr_stores;

/* The stores that a configuration defines, and those that it implies behind them. What is
 * wrong goes to problems, and has its default then. 0 or -ENOMEM. */
int scr_stores_from_config(const scr_config *config, const scr_groups *groups,
                           scr_stores *stores, scr_problems *problems);
void scr_stores_done(scr_stores *stores);

/* The store at path, which need not be reduced; NULL if there is none. */
const scr_store *scr_stores_find(const scr_stores *stores, const char *path);
const char *scr_stores_nearest(const scr_stores *stores, const char *path);

/* A field as text, to be freed; NULL if there is no such field, or no memory. */
char *scr_store_field(const scr_store *store, const char *field);

#endif
