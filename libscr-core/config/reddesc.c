/* SPDX-License-Identifier: BSD-3-Clause */
/* Redundancy descriptors; see config/reddesc.h. */
#include "config/reddesc.h"

#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const reddesc_types[] = {"SINGLE", "PARTNER", "XOR", "RS", NULL};

static const scr_desc_member reddesc_members[] = {
    {"TYPE", offsetof(scr_reddesc, type), 0, reddesc_types},
    {"GROUP", offsetof(scr_reddesc, group), 0, NULL},
    {"STORE", offsetof(scr_reddesc, store), 0, NULL},
    {"ENABLED", offsetof(scr_reddesc, enabled), 0, NULL},
    {"INTERVAL", offsetof(scr_reddesc, interval), 1, NULL},
    {"OUTPUT", offsetof(scr_reddesc, output), 0, NULL},
    {"BYPASS", offsetof(scr_reddesc, bypass), 0, NULL},
    {"SET_SIZE", offsetof(scr_reddesc, set_size), 2, NULL},
    {"SET_FAILURES", offsetof(scr_reddesc, set_failures), 1, NULL},
    {NULL, 0, 0, NULL}};

/* The members that are numbers or switches. */
static const scr_desc_member *const reddesc_numbers = reddesc_members + 3;

/* ---- from a configuration ---- */

/* Returns the descriptor that parameters define. Other descriptors use it as default. */
static scr_reddesc reddesc_from_params(const scr_config *config, const scr_groups *groups,
                                       const scr_stores *stores, scr_problems *problems)
{
    scr_reddesc d = {.enabled = 1,
                     .interval = 1,
                     .set_size = 8,
                     .set_failures = 2,
                     .type = "XOR",
                     .group = "NODE",
                     .implied = 1};
    static const char *const types[] = {"SINGLE", "PARTNER", "XOR", "RS", "FILE", NULL};
    scr_value v = scr_config_value(config, "SCR_COPY_TYPE");
    scr_value_word(&v, types, d.type, problems);
    if (strcmp(d.type, "FILE") == 0) strcpy(d.type, "XOR");
    v = scr_config_value(config, "SCR_GROUP");
    scr_groups_resolve(groups, &v, d.group, problems);
    const scr_store *store =
        scr_stores_find(stores, scr_config_get(config, "SCR_CACHE_BASE", NULL));
    if (store) strcpy(d.store, store->path);
    scr_config_int(config, "SCR_SET_SIZE", 2, &d.set_size, problems);
    scr_config_int(config, "SCR_SET_FAILURES", 1, &d.set_failures, problems);
    scr_config_switch(config, "SCR_CACHE_BYPASS", &d.bypass, problems);
    return d;
}

static void reddesc_resolve_store(const scr_value *value, const scr_stores *stores,
                                  scr_reddesc *d, scr_problems *problems)
{
    if (!value->text) return;
    const scr_store *store = scr_stores_find(stores, value->text);
    if (store)
        strcpy(d->store, store->path);
    else
        scr_value_bad(
            value, problems, "no such store; did you mean %s?",
            scr_problems_full(problems) ? "" : scr_stores_nearest(stores, value->text));
}

/* The groups and stores that CKPT refers to. */
struct references {
    const scr_groups *groups;
    const scr_stores *stores;
};

static void reddesc_read(const kvtree_elem *desc, const struct references *references,
                         scr_reddesc *d, scr_problems *problems)
{
    char label[SCR_DESC_LABEL_SIZE];
    d->index = kvtree_elem_key_int(desc);
    d->implied = 0;
    scr_desc_read_members(desc, SCR_DESC_CKPT, reddesc_members, d, problems);
    scr_value v = scr_desc_value(desc, SCR_DESC_CKPT, "GROUP", label);
    scr_groups_resolve(references->groups, &v, d->group, problems);
    v = scr_desc_value(desc, SCR_DESC_CKPT, "STORE", label);
    reddesc_resolve_store(&v, references->stores, d, problems);
    const scr_store *store = scr_stores_find(references->stores, d->store);
    if (store && !store->enabled) d->enabled = 0;
}

/* Checks that numbers are consecutive from 0 and that every checkpoint has an enabled
 * descriptor. */
static void reddesc_check_all(const scr_reddescs *r, const kvtree *descs,
                              scr_problems *problems)
{
    const kvtree_elem *e = kvtree_elem_first(descs);
    const char *first = e ? kvtree_get_val(kvtree_elem_hash(e), "SOURCE") : "";
    for (int i = 0; i < r->count; i++, e = kvtree_elem_next(e)) {
        if (r->list[i].index == i) continue;
        scr_problems_add(
            problems,
            "CKPT=%d (%s): numbers must be consecutive from 0; CKPT=%d is missing: add "
            "it, or give its number to this one",
            r->list[i].index, kvtree_get_val(kvtree_elem_hash(e), "SOURCE"), i);
        break;
    }
    if (r->count > 0 && !scr_reddesc_for_checkpoint(r, 1))
        scr_problems_add(
            problems,
            "CKPT (%s): no enabled descriptor with an enabled STORE has INTERVAL=1: add "
            "one, for the checkpoints that match no other",
            first);
}

static int reddesc_read_all(const kvtree *descs, const struct references *references,
                            const scr_reddesc *defaults, scr_reddescs *r,
                            scr_problems *problems)
{
    r->list = calloc((size_t)kvtree_size(descs) + 1, sizeof *r->list);
    if (!descs || !r->list) return -ENOMEM;
    const kvtree_elem *e = kvtree_elem_first(descs);
    for (; e; e = kvtree_elem_next(e)) {
        r->list[r->count] = *defaults;
        reddesc_read(e, references, &r->list[r->count++], problems);
    }
    reddesc_check_all(r, descs, problems);
    return 0;
}

int scr_reddescs_from_config(const scr_config *config, const scr_groups *groups,
                             const scr_stores *stores, scr_reddescs *reddescs,
                             scr_problems *problems)
{
    const struct references references = {groups, stores};
    const scr_reddesc defaults = reddesc_from_params(config, groups, stores, problems);
    const scr_value type = scr_config_value(config, "SCR_COPY_TYPE");
    scr_reddescs r = {0, NULL, 0};
    kvtree *descs = scr_config_descs(config, SCR_DESC_CKPT);
    int rc = reddesc_read_all(descs, &references, &defaults, &r, problems);
    int file = strcasecmp(type.text, "FILE") == 0;
    if (!rc && file && r.count == 0)
        scr_value_bad(&type, problems, "no descriptor CKPT is given");
    if (!rc && !file && strcmp(type.source, "default") != 0) {
        r.ignored = r.count;
        r.count = 0;
    }
    if (!rc && r.count == 0) {
        const scr_store *store = scr_stores_find(stores, defaults.store);
        if (store && !store->enabled)
            scr_problems_add(problems,
                             "STORE=%s is not enabled, and no CKPT names another one",
                             store->path);
        r.list[r.count++] = defaults;
    }
    kvtree_delete(&descs);
    if (rc)
        scr_reddescs_done(&r);
    else
        *reddescs = r;
    return rc;
}

void scr_reddescs_done(scr_reddescs *reddescs)
{
    free(reddescs->list);
    *reddescs = (scr_reddescs){0, NULL, 0};
}

/* ---- choices ---- */

const scr_reddesc *scr_reddesc_for_checkpoint(const scr_reddescs *reddescs, int n)
{
    const scr_reddesc *best = NULL;
    for (int i = 0; i < reddescs->count; i++) {
        const scr_reddesc *d = &reddescs->list[i];
        if (d->enabled && n % d->interval == 0 && (!best || d->interval > best->interval))
            best = d;
    }
    return best;
}

const scr_reddesc *scr_reddesc_for_dataset(const scr_reddescs *reddescs, int ckpt,
                                           int output)
{
    for (int i = 0; output && i < reddescs->count; i++)
        if (reddescs->list[i].enabled && reddescs->list[i].output)
            return &reddescs->list[i];
    return scr_reddesc_for_checkpoint(reddescs, ckpt > 0 ? ckpt : 1);
}

/* ---- fields ---- */

char *scr_reddesc_field(const scr_reddesc *desc, const char *field)
{
    return scr_desc_member_text(SCR_DESC_CKPT, reddesc_members, desc, field);
}

int scr_reddesc_to_tree(const scr_reddesc *desc, const scr_reddesc_place *place,
                        kvtree *tree)
{
    kvtree_unset_all(tree);
    int rc = kvtree_util_set_int(tree, "INDEX", desc->index);
    rc = rc ? rc : kvtree_util_set_str(tree, "BASE", desc->store);
    rc = rc ? rc : kvtree_util_set_str(tree, "TYPE", desc->type);
    rc = rc ? rc : kvtree_util_set_str(tree, "GROUP", desc->group);
    rc = rc ? rc : kvtree_util_set_int(tree, "HOP_DISTANCE", 1);
    for (const scr_desc_member *m = reddesc_numbers; m->name && !rc; m++)
        rc = kvtree_util_set_int(
            tree, m->name,
            *(const int *)((const void *)((const char *)desc + m->offset)));
    rc = rc ? rc : kvtree_util_set_str(tree, "DIRECTORY", place->directory);
    rc = rc ? rc : kvtree_util_set_int(tree, "GROUPS", place->groups);
    rc = rc ? rc : kvtree_util_set_int(tree, "GROUP_ID", place->group_id);
    rc = rc ? rc : kvtree_util_set_int(tree, "GROUP_SIZE", place->group_size);
    return rc ? rc : kvtree_util_set_int(tree, "GROUP_RANK", place->group_rank);
}
