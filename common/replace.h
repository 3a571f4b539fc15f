/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_REPLACE_H
#define COMMON_REPLACE_H

/* Replacement of one file by its earlier names, for callers that do not use
 * common/batch.h yet: each is a batch of one. See there. */

#include "common/batch.h"
#include "common/errtext.h"
#include <stdio.h>
#include <string.h>

#define replace_draw batch_draw
#define replace_bytes batch_write
#define replace_sweep batch_sweep
#define replace_remove_abandoned batch_remove_abandoned

typedef struct replacement {
    batch b;
    int fd;     /* open for reading and writing */
    int parent; /* folder of the file */
    char final[BENEATH_NAME_MAX];
} replacement;

static inline int replace_begin_over(int dir, const char *name, int from, const char *old,
                                     mode_t mode, replacement *r, int *reused, char *err)
{
    batch_spare spare = {.dir = from, .name = old};
    r->b = (batch){.dir = dir};
    int rc = batch_open_over(&r->b, name, mode, old ? &spare : NULL, &r->fd, err);
    *reused = spare.reused;
    if (rc) {
        batch_drop(&r->b);
        return rc;
    }
    const char *slash = strrchr(name, '/');
    snprintf(r->final, sizeof r->final, "%s", slash ? slash + 1 : name);
    r->parent = r->b.items[0].parent;
    return 0;
}

static inline int replace_begin(int dir, const char *name, mode_t mode, replacement *r,
                                char *err)
{
    int reused;
    return replace_begin_over(dir, name, -1, NULL, mode, r, &reused, err);
}

static inline void replace_abort(replacement *r)
{
    batch_drop(&r->b);
}

static inline int replace_commit(replacement *r, char *err)
{
    int rc = batch_commit(&r->b, err);
    batch_drop(&r->b);
    return rc;
}

static inline int replace_commit_new(replacement *r, char *err)
{
    r->b.exclusive = true;
    return replace_commit(r, err);
}

static inline int replace_commit_synced(replacement *r, char *err)
{
    r->b.durability = BATCH_SYNCED;
    return replace_commit(r, err);
}

static inline int replace_commit_unsynced(replacement *r, char *err)
{
    r->b.durability = BATCH_UNSYNCED;
    return replace_commit(r, err);
}

#endif
