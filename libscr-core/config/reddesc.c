/* SPDX-License-Identifier: BSD-3-Clause */
/* Redundancy descriptors; see config/reddesc.h. */
#include "config/reddesc.h"

#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_type(const char *text)
{
    static const char *const types[] = {"SINGLE", "PARTNER", "XOR", "RS"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(text, types[i]) == 0) return 1;
    return 0;
}

/* Whole numbers and switches of a struct. */
static const struct field {
    const char *name;
    size_t place;
    int least, most;
} numbers[] = {{"ENABLED", offsetof(scr_reddesc, enabled), 0, 1},
               {"INTERVAL", offsetof(scr_reddesc, interval), 1, INT_MAX},
               {"OUTPUT", offsetof(scr_reddesc, output), 0, 1},
               {"BYPASS", offsetof(scr_reddesc, bypass), 0, 1},
               {"SET_SIZE", offsetof(scr_reddesc, set_size), 2, INT_MAX},
               {"SET_FAILURES", offsetof(scr_reddesc, set_failures), 1, INT_MAX}},
  places[] = {{"GROUPS", offsetof(scr_reddesc_place, groups), 1, INT_MAX},
              {"GROUP_ID", offsetof(scr_reddesc_place, group_id), 0, INT_MAX},
              {"GROUP_SIZE", offsetof(scr_reddesc_place, group_size), 1, INT_MAX},
              {"GROUP_RANK", offsetof(scr_reddesc_place, group_rank), 0, INT_MAX}};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static int number_at(const void *object, const struct field *field)
{
    int number;
    memcpy(&number, (const char *)object + field->place, sizeof number);
    return number;
}

static void put_number(void *object, const struct field *field, int number)
{
    memcpy((char *)object + field->place, &number, sizeof number);
}

/* ---- from a configuration ---- */

/* What the parameters say; SCR_COPY_TYPE=FILE says nothing of a scheme. */
static scr_reddesc of_params(const scr_config *config, const scr_groups *groups,
                             const scr_stores *stores, scr_problems *problems)
{
    scr_reddesc d = {.enabled = 1,
                     .interval = 1,
                     .set_size = 8,
                     .set_failures = 2,
                     .type = "XOR",
                     .group = "NODE",
                     .implied = 1};
    scr_value v = scr_config_value(config, "SCR_COPY_TYPE");
    if (is_type(v.text))
        strcpy(d.type, v.text);
    else if (strcmp(v.text, "FILE") != 0)
        scr_value_bad(&v, problems, "must be SINGLE, PARTNER, XOR, RS or FILE");
    v = scr_config_value(config, "SCR_GROUP");
    scr_groups_take(groups, &v, d.group, problems);
    const scr_store *store =
        scr_stores_find(stores, scr_config_get(config, "SCR_CACHE_BASE", NULL));
    if (store) strcpy(d.store, store->path);
    scr_config_int(config, "SCR_SET_SIZE", 2, &d.set_size, problems);
    scr_config_int(config, "SCR_SET_FAILURES", 1, &d.set_failures, problems);
    scr_config_switch(config, "SCR_CACHE_BYPASS", &d.bypass, problems);
    return d;
}

static void take_type(const scr_value *value, scr_reddesc *d, scr_problems *problems)
{
    if (!value->text) return;
    if (is_type(value->text))
        strcpy(d->type, value->text);
    else
        scr_value_bad(value, problems, "must be SINGLE, PARTNER, XOR or RS");
}

static void take_store(const scr_value *value, const scr_stores *stores, scr_reddesc *d,
                       scr_problems *problems)
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

/* What a configuration has for the others to refer to. */
struct known {
    const scr_groups *groups;
    const scr_stores *stores;
};

static void read_reddesc(const kvtree_elem *desc, const struct known *known,
                         scr_reddesc *d, scr_problems *problems)
{
    char label[SCR_DESC_LABEL_SIZE];
    const scr_desc_kind kind = SCR_DESC_CKPT;
    d->index = kvtree_elem_key_int(desc);
    d->implied = 0;
    scr_value v = scr_desc_value(desc, kind, "TYPE", label);
    take_type(&v, d, problems);
    v = scr_desc_value(desc, kind, "GROUP", label);
    scr_groups_take(known->groups, &v, d->group, problems);
    v = scr_desc_value(desc, kind, "STORE", label);
    take_store(&v, known->stores, d, problems);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const struct field *f = &numbers[i];
        int number = number_at(d, f);
        v = scr_desc_value(desc, kind, f->name, label);
        if (f->most == 1)
            scr_value_switch(&v, &number, problems);
        else
            scr_value_int(&v, f->least, &number, problems);
        put_number(d, f, number);
    }
    const scr_store *store = scr_stores_find(known->stores, d->store);
    if (store && !store->enabled) d->enabled = 0;
}

/* Numbers follow each other from 0, and one that is enabled serves every checkpoint. */
static void check_all(const scr_reddescs *r, const kvtree *descs, scr_problems *problems)
{
    const kvtree_elem *e = kvtree_elem_first(descs);
    const char *first = e ? kvtree_get_val(kvtree_elem_hash(e), "SOURCE") : "";
    for (int i = 0; i < r->count; i++, e = kvtree_elem_next(e)) {
        if (r->list[i].index == i) continue;
        scr_problems_add(
            problems,
            "CKPT=%d (%s): numbers go on from 0; CKPT=%d is not there: add it, or give "
            "its number to this one",
            r->list[i].index, kvtree_get_val(kvtree_elem_hash(e), "SOURCE"), i);
        break;
    }
    if (r->count > 0 && !scr_reddesc_for_checkpoint(r, 1))
        scr_problems_add(
            problems,
            "CKPT (%s): no descriptor that is enabled, with its STORE, has INTERVAL=1: "
            "add one, for checkpoints that no other is for",
            first);
}

static int read_all(const kvtree *descs, const struct known *known,
                    const scr_reddesc *usual, scr_reddescs *r, scr_problems *problems)
{
    r->list = calloc((size_t)kvtree_size(descs) + 1, sizeof *r->list);
    if (!descs || !r->list) return -ENOMEM;
    const kvtree_elem *e = kvtree_elem_first(descs);
    for (; e; e = kvtree_elem_next(e)) {
        r->list[r->count] = *usual;
        read_reddesc(e, known, &r->list[r->count++], problems);
    }
    check_all(r, descs, problems);
    return 0;
}

int scr_reddescs_from_config(const scr_config *config, const scr_groups *groups,
                             const scr_stores *stores, scr_reddescs *reddescs,
                             scr_problems *problems)
{
    const struct known known = {groups, stores};
    const scr_reddesc usual = of_params(config, groups, stores, problems);
    const scr_value type = scr_config_value(config, "SCR_COPY_TYPE");
    scr_reddescs r = {0, NULL, 0};
    kvtree *descs = scr_config_descs(config, SCR_DESC_CKPT);
    int rc = read_all(descs, &known, &usual, &r, problems);
    int file = strcmp(type.text, "FILE") == 0;
    if (!rc && file && r.count == 0)
        scr_value_bad(&type, problems, "no descriptor CKPT is given");
    if (!rc && !file && strcmp(type.source, "default") != 0) {
        r.ignored = r.count;
        r.count = 0;
    }
    if (!rc && r.count == 0) {
        const scr_store *store = scr_stores_find(stores, usual.store);
        if (store && !store->enabled)
            scr_problems_add(problems,
                             "STORE=%s is not enabled, and no CKPT names another one",
                             store->path);
        r.list[r.count++] = usual;
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
    char *text = NULL;
    if (strcmp(field, "TYPE") == 0) return strdup(desc->type);
    if (strcmp(field, "GROUP") == 0) return strdup(desc->group);
    if (strcmp(field, "STORE") == 0) return strdup(desc->store);
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (strcmp(field, numbers[i].name) == 0)
            return asprintf(&text, "%d", number_at(desc, &numbers[i])) < 0 ? NULL : text;
    return NULL;
}

/* ---- as a tree ---- */

static int put_numbers(kvtree *tree, const void *object, const struct field *fields,
                       size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++)
        rc = kvtree_util_set_int(tree, fields[i].name, number_at(object, &fields[i]));
    return rc;
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
    rc = rc ? rc : put_numbers(tree, desc, numbers, COUNT(numbers));
    rc = rc ? rc : kvtree_util_set_str(tree, "DIRECTORY", place->directory);
    return rc ? rc : put_numbers(tree, place, places, COUNT(places));
}
