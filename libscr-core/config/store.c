/* SPDX-License-Identifier: BSD-3-Clause */
/* Store descriptors; see config/store.h. */
#include "config/store.h"

#include "base/path.h"
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const store_types[] = {
    "SYNC", "PTHREAD", "DAEMON", "BBAPI", "DATAWARP", "DW", "DEFAULT", "NATIVE", NULL};
static const char *const store_views[] = {"PRIVATE", "GLOBAL", NULL};
static const scr_desc_member store_members[] = {
    {"GROUP", offsetof(scr_store, group), 0, NULL},
    {"COUNT", offsetof(scr_store, count), 0, NULL},
    {"ENABLED", offsetof(scr_store, enabled), 0, NULL},
    {"CAPACITY", offsetof(scr_store, capacity), 0, NULL},
    {"MKDIR", offsetof(scr_store, mkdir), 0, NULL},
    {"TYPE", offsetof(scr_store, type), 0, store_types},
    {"VIEW", offsetof(scr_store, view), 0, store_views},
    {NULL, 0, 0, NULL}};

/* Replaces 0 by 1, as SCR 3.1 does: every checkpoint is cached at least for a time. */
static void store_check_count(const char *name, int *count, scr_problems *problems)
{
    if (*count > 0) return;
    scr_problems_warn(
        problems, "%s=0 counts as 1; SCR_CACHE_BYPASS=1 writes without a cache", name);
    *count = 1;
}

static void store_read(const kvtree_elem *desc, const scr_groups *groups,
                       scr_store *store, scr_problems *problems)
{
    char label[SCR_DESC_LABEL_SIZE];
    const scr_value group = scr_desc_value(desc, SCR_DESC_STORE, "GROUP", label);
    store->implied = 0;
    snprintf(store->path, sizeof store->path, "%s", kvtree_elem_key(desc));
    scr_groups_resolve(groups, &group, store->group, problems);
    if (strcmp(store->group, "WORLD") == 0) strcpy(store->view, "GLOBAL");
    store->own_capacity = scr_desc_has(kvtree_elem_hash(desc), "CAPACITY");
    scr_desc_read_members(desc, SCR_DESC_STORE, store_members, store, problems);
    scr_desc_value(desc, SCR_DESC_STORE, "COUNT", label);
    store_check_count(label, &store->count, problems);
}

/* Returns the canonical form of a path, which the caller frees. A relative path is
 * unchanged. */
static char *store_reduce(const char *path)
{
    return path[0] == '/' ? scr_path_reduce(path) : strdup(path);
}

/* Adds the store that a parameter names, unless it exists. An invalid path is reported
 * when the directory is created. */
static int store_imply(const scr_config *config, const char *param,
                       const scr_store *defaults, scr_stores *stores,
                       scr_problems *problems)
{
    scr_value path = scr_config_value(config, param);
    scr_store *store = &stores->list[stores->count];
    if (scr_stores_find(stores, path.text)) return 0;
    char *reduced = store_reduce(path.text);
    if (!reduced) return -ENOMEM;
    *store = *defaults;
    if (strlen(reduced) < sizeof store->path) {
        strcpy(store->path, reduced);
        stores->count++;
    } else {
        scr_value_bad(&path, problems, "longer than %d bytes", SCR_DESC_PATH_SIZE - 1);
    }
    free(reduced);
    return 0;
}

/* Sets the type of a store that has no field TYPE. */
static void store_default_type(const scr_config *config, char type[SCR_STORE_WORD_SIZE])
{
    const char *flush = scr_config_get(config, "SCR_FLUSH_TYPE", NULL);
    strcpy(type, "PTHREAD");
    if (!flush || strlen(flush) >= SCR_STORE_WORD_SIZE) return;
    for (int i = 0; i == 0 || flush[i - 1]; i++)
        type[i] = (char)toupper((unsigned char)flush[i]);
}

int scr_stores_from_config(const scr_config *config, const scr_groups *groups,
                           scr_stores *stores, scr_problems *problems)
{
    scr_store defaults = {.group = "NODE",
                          .count = 2,
                          .enabled = 1,
                          .mkdir = 1,
                          .view = "PRIVATE",
                          .implied = 1};
    store_default_type(config, defaults.type);
    kvtree *descs = scr_config_descs(config, SCR_DESC_STORE);
    scr_stores s = {0, calloc((size_t)kvtree_size(descs) + 2, sizeof *s.list)};
    int rc = descs && s.list ? 0 : -ENOMEM;
    scr_config_int(config, "SCR_CACHE_SIZE", 0, &defaults.count, problems);
    store_check_count("SCR_CACHE_SIZE", &defaults.count, problems);
    scr_config_bytes(config, "SCR_NODE_CAPACITY", &defaults.capacity, problems);
    const kvtree_elem *e = kvtree_elem_first(descs);
    for (; e && !rc; e = kvtree_elem_next(e)) {
        s.list[s.count] = defaults;
        store_read(e, groups, &s.list[s.count++], problems);
    }
    rc = rc ? rc : store_imply(config, "SCR_CACHE_BASE", &defaults, &s, problems);
    rc = rc ? rc : store_imply(config, "SCR_CNTL_BASE", &defaults, &s, problems);
    kvtree_delete(&descs);
    if (rc)
        scr_stores_done(&s);
    else
        *stores = s;
    return rc;
}

void scr_stores_done(scr_stores *stores)
{
    free(stores->list);
    *stores = (scr_stores){0, NULL};
}

const scr_store *scr_stores_find(const scr_stores *stores, const char *path)
{
    const scr_store *found = NULL;
    char *reduced = store_reduce(path);
    for (int i = 0; reduced && !found && i < stores->count; i++)
        if (strcmp(stores->list[i].path, reduced) == 0) found = &stores->list[i];
    free(reduced);
    return found;
}

const char *scr_stores_nearest(const scr_stores *stores, const char *path)
{
    scr_nearest nearest = {.name = path};
    for (int i = 0; i < stores->count; i++)
        scr_nearest_try(&nearest, stores->list[i].path);
    return nearest.best;
}

char *scr_store_field(const scr_store *store, const char *field)
{
    return scr_desc_member_text(SCR_DESC_STORE, store_members, store, field);
}
