/* SPDX-License-Identifier: BSD-3-Clause */
/* Store descriptors; see config/store.h. */
#include "config/store.h"

#include "base/path.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Takes one of words, in any case; otherwise a problem, which names them. */
static void take_word(const scr_value *value, const char *const words[], const char *all,
                      char to[SCR_STORE_WORD_SIZE], scr_problems *problems)
{
    if (!value->text) return;
    for (int i = 0; words[i]; i++)
        if (strcasecmp(value->text, words[i]) == 0) {
            strcpy(to, words[i]);
            return;
        }
    scr_value_bad(value, problems, "must be %s", all);
}

static void read_store(const kvtree_elem *desc, const scr_groups *groups,
                       scr_store *store, scr_problems *problems)
{
    static const char *const types[] = {"SYNC", "PTHREAD", "DAEMON", "BBAPI", "DW", NULL};
    static const char *const views[] = {"PRIVATE", "GLOBAL", NULL};
    char label[SCR_DESC_LABEL_SIZE];
    const scr_desc_kind kind = SCR_DESC_STORE;
    scr_value v = scr_desc_value(desc, kind, "GROUP", label);
    store->implied = 0;
    snprintf(store->path, sizeof store->path, "%s", kvtree_elem_key(desc));
    scr_groups_take(groups, &v, store->group, problems);
    if (strcmp(store->group, "WORLD") == 0) strcpy(store->view, "GLOBAL");
    v = scr_desc_value(desc, kind, "COUNT", label);
    scr_value_int(&v, 1, &store->count, problems);
    v = scr_desc_value(desc, kind, "ENABLED", label);
    scr_value_switch(&v, &store->enabled, problems);
    v = scr_desc_value(desc, kind, "CAPACITY", label);
    scr_value_bytes(&v, &store->capacity, problems);
    store->own_capacity = v.text != NULL;
    v = scr_desc_value(desc, kind, "MKDIR", label);
    scr_value_switch(&v, &store->mkdir, problems);
    v = scr_desc_value(desc, kind, "TYPE", label);
    take_word(&v, types, "SYNC, PTHREAD, DAEMON, BBAPI or DW", store->type, problems);
    v = scr_desc_value(desc, kind, "VIEW", label);
    take_word(&v, views, "PRIVATE or GLOBAL", store->view, problems);
}

/* The one form of a path; to be freed. One that is not absolute stays as it is. */
static char *reduce(const char *path)
{
    return path[0] == '/' ? scr_path_reduce(path) : strdup(path);
}

/* Adds the store of a parameter, unless it is there. A path that is none is told of where
 * the folder is made. */
static int imply(const scr_config *config, const char *param, const scr_store *usual,
                 scr_stores *stores, scr_problems *problems)
{
    scr_value path = scr_config_value(config, param);
    scr_store *store = &stores->list[stores->count];
    if (scr_stores_find(stores, path.text)) return 0;
    char *reduced = reduce(path.text);
    if (!reduced) return -ENOMEM;
    *store = *usual;
    if (strlen(reduced) < sizeof store->path) {
        strcpy(store->path, reduced);
        stores->count++;
    } else {
        scr_value_bad(&path, problems, "longer than %d bytes", SCR_DESC_PATH_SIZE - 1);
    }
    free(reduced);
    return 0;
}

/* The type of a store that names none. */
static void take_usual_type(const scr_config *config, char type[SCR_STORE_WORD_SIZE])
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
    scr_store usual = {.group = "NODE",
                       .count = 2,
                       .enabled = 1,
                       .mkdir = 1,
                       .view = "PRIVATE",
                       .implied = 1};
    take_usual_type(config, usual.type);
    kvtree *descs = scr_config_descs(config, SCR_DESC_STORE);
    scr_stores s = {0, calloc((size_t)kvtree_size(descs) + 2, sizeof *s.list)};
    int rc = descs && s.list ? 0 : -ENOMEM;
    scr_config_int(config, "SCR_CACHE_SIZE", 1, &usual.count, problems);
    scr_config_bytes(config, "SCR_NODE_CAPACITY", &usual.capacity, problems);
    const kvtree_elem *e = kvtree_elem_first(descs);
    for (; e && !rc; e = kvtree_elem_next(e)) {
        s.list[s.count] = usual;
        read_store(e, groups, &s.list[s.count++], problems);
    }
    rc = rc ? rc : imply(config, "SCR_CACHE_BASE", &usual, &s, problems);
    rc = rc ? rc : imply(config, "SCR_CNTL_BASE", &usual, &s, problems);
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
    char *reduced = reduce(path);
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
    char *text = NULL;
    const char *name = scr_desc_field_find(SCR_DESC_STORE, field);
    if (!name) return NULL;
    if (strcmp(name, "GROUP") == 0) return strdup(store->group);
    if (strcmp(name, "TYPE") == 0) return strdup(store->type);
    if (strcmp(name, "VIEW") == 0) return strdup(store->view);
    if (strcmp(name, "CAPACITY") == 0)
        return asprintf(&text, "%" PRIu64, store->capacity) < 0 ? NULL : text;
    int number = strcmp(name, "COUNT") == 0     ? store->count
                 : strcmp(name, "ENABLED") == 0 ? store->enabled
                                                : store->mkdir;
    return asprintf(&text, "%d", number) < 0 ? NULL : text;
}
