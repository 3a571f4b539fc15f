/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors in layers; see config/desc.h. */
#include "config/desc.h"

#include "base/path.h"
#include "common/number.h"
#include "config/host_range.h"
#include <errno.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const desc_kind_names[] = {"GROUPS", "STORE", "CKPT", "LAUNCHER"};

const char *scr_desc_kind_name(scr_desc_kind kind)
{
    return kind < SCR_DESC_KINDS ? desc_kind_names[kind] : "";
}

scr_desc_kind scr_desc_kind_find(const char *name)
{
    int kind = 0;
    while (kind < SCR_DESC_KINDS && strcmp(name, desc_kind_names[kind]) != 0)
        kind++;
    if (strcmp(name, "STORES") == 0) return SCR_DESC_STORE;
    return strcmp(name, "LAUNCHERS") == 0 ? SCR_DESC_LAUNCHER : (scr_desc_kind)kind;
}

static bool desc_is_built_in(const char *group)
{
    return strcmp(group, "NODE") == 0 || strcmp(group, "WORLD") == 0;
}

const char *scr_desc_field_find(scr_desc_kind kind, const char *name)
{
    if (kind == SCR_DESC_GROUPS)
        return scr_desc_is_name(name) && !desc_is_built_in(name) ? name : NULL;
    if (kind == SCR_DESC_STORE && strcmp(name, "FLUSH") == 0) name = "TYPE";
    for (const scr_desc_field *f = scr_desc_field_table; f->name; f++)
        if (f->kind == kind && strcmp(f->name, name) == 0) return f->name;
    return NULL;
}

const char *scr_desc_field_nearest(scr_desc_kind kind, const char *name)
{
    scr_nearest nearest = {.name = name};
    for (const scr_desc_field *f = scr_desc_field_table; f->name; f++)
        if (f->kind == kind) scr_nearest_try(&nearest, f->name);
    return nearest.best;
}

const char *scr_desc_nearest(const char *name)
{
    scr_nearest nearest = {.name = name};
    for (const scr_param *p = scr_param_table; p->name; p++)
        scr_nearest_try(&nearest, p->name);
    for (int kind = 0; kind < SCR_DESC_KINDS; kind++)
        scr_nearest_try(&nearest, desc_kind_names[kind]);
    scr_nearest_try(&nearest, SCR_LOCKED);
    return nearest.best;
}

/* ---- keys ---- */

static bool desc_is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) return false;
    return true;
}

bool scr_desc_is_name(const char *text)
{
    return *text && strlen(text) < SCR_DESC_NAME_SIZE && desc_is_printable(text);
}

const char *scr_desc_key_rule(scr_desc_kind kind)
{
    static const char *const rules[] = {
        "the name of a node, or of several, such as atlas[1-48]",
        "an absolute path of less than 1024 bytes", "a whole number from 0 to 999",
        "the name of a launcher"};
    return kind < SCR_DESC_KINDS ? rules[kind] : "";
}

static char *desc_store_key(const char *text)
{
    if (text[0] != '/' || !desc_is_printable(text)) return NULL;
    char *key = scr_path_reduce(text);
    if (key && strlen(key) < SCR_DESC_PATH_SIZE) return key;
    free(key);
    return NULL;
}

static char *desc_ckpt_key(const char *text)
{
    int64_t number;
    char digits[NUMBER_TEXT_SIZE];
    if (number_int64(text, &number) != 0 || number < 0 || number >= SCR_DESC_CKPT_MAX)
        return NULL;
    return strdup(number_text_int64(digits, number));
}

char *scr_desc_key(scr_desc_kind kind, const char *text)
{
    if (kind == SCR_DESC_STORE) return desc_store_key(text);
    if (kind == SCR_DESC_CKPT) return desc_ckpt_key(text);
    if (kind == SCR_DESC_GROUPS && !scr_host_range_is_valid(text)) return NULL;
    return scr_desc_is_name(text) ? strdup(text) : NULL;
}

/* ---- in a layer ---- */

kvtree *scr_desc_get(const kvtree *layer, scr_desc_kind kind, const char *key)
{
    return kvtree_get(kvtree_get(layer, desc_kind_names[kind]), key);
}

kvtree *scr_desc_add(kvtree *layer, scr_desc_kind kind, const char *key,
                     const char *source)
{
    kvtree *desc = scr_desc_get(layer, kind, key);
    if (desc) return desc;
    kvtree *all = kvtree_get(layer, desc_kind_names[kind]);
    if (!all) all = kvtree_set(layer, desc_kind_names[kind], NULL);
    desc = kvtree_set(all, key, NULL);
    if (desc && (kvtree_util_set_str(desc, "SOURCE", source) != 0 ||
                 !kvtree_set(desc, "FIELD", NULL))) {
        kvtree_unset(all, key);
        return NULL;
    }
    return desc;
}

/* A field without a source has the source of its descriptor. This saves memory: GROUPS of
 * ten thousand nodes are sent to all ranks. */
int scr_desc_set(kvtree *desc, const char *field, const char *value, const char *source)
{
    kvtree *entry = kvtree_set(kvtree_get(desc, "FIELD"), field, NULL);
    if (!entry) return -ENOMEM;
    int rc = kvtree_util_set_str(entry, "VALUE", value);
    return rc || !source ? rc : kvtree_util_set_str(entry, "SOURCE", source);
}

bool scr_desc_has(const kvtree *desc, const char *field)
{
    return kvtree_get(kvtree_get(desc, "FIELD"), field) != NULL;
}

/* Copies the elements of from that are missing in to. */
static int desc_add_missing(kvtree *to, const kvtree *from)
{
    const kvtree_elem *e = kvtree_elem_first(from);
    for (; e; e = kvtree_elem_next(e)) {
        const char *key = kvtree_elem_key(e);
        if (kvtree_get(to, key)) continue;
        if (kvtree_merge(kvtree_set(to, key, NULL), kvtree_elem_hash(e)) != 0)
            return -ENOMEM;
    }
    return 0;
}

static int desc_merge(kvtree *to, const kvtree *from)
{
    const kvtree_elem *e = kvtree_elem_first(from);
    int rc = 0;
    for (; e && !rc; e = kvtree_elem_next(e)) {
        kvtree *desc = kvtree_get(to, kvtree_elem_key(e));
        if (desc)
            rc = desc_add_missing(kvtree_get(desc, "FIELD"),
                                  kvtree_get(kvtree_elem_hash(e), "FIELD"));
    }
    return rc ? rc : desc_add_missing(to, from);
}

kvtree *scr_config_descs(const scr_config *config, scr_desc_kind kind)
{
    const kvtree *layers[] = {config->user, config->set, config->system};
    kvtree *all = kvtree_new();
    int rc = all ? 0 : -ENOMEM;
    for (int i = 0; i < 3 && !rc; i++) {
        if (kind == SCR_DESC_CKPT && kvtree_size(all) > 0) break;
        rc = desc_merge(all, kvtree_get(layers[i], desc_kind_names[kind]));
    }
    if (rc) kvtree_delete(&all);
    if (all && kind == SCR_DESC_CKPT) kvtree_sort_int(all, KVTREE_SORT_ASCENDING);
    return all;
}

scr_value scr_desc_value(const kvtree_elem *desc, scr_desc_kind kind, const char *field,
                         char name[SCR_DESC_LABEL_SIZE])
{
    const kvtree *tree = kvtree_elem_hash(desc),
                 *entry = kvtree_get(kvtree_get(tree, "FIELD"), field);
    snprintf(name, SCR_DESC_LABEL_SIZE, "%s=%.100s %.100s", desc_kind_names[kind],
             kvtree_elem_key(desc), field);
    scr_value value = {name, kvtree_get_val(entry, "VALUE"),
                       kvtree_get_val(entry, "SOURCE")};
    if (!value.source) value.source = kvtree_get_val(tree, "SOURCE");
    return value;
}

static scr_param_type desc_type(scr_desc_kind kind, const char *field)
{
    const scr_desc_field *f = scr_desc_field_table;
    while (f->name && (f->kind != kind || strcmp(f->name, field) != 0))
        f++;
    return f->type;
}

void scr_desc_read_members(const kvtree_elem *desc, scr_desc_kind kind,
                           const scr_desc_member *members, void *object,
                           scr_problems *problems)
{
    char label[SCR_DESC_LABEL_SIZE];
    for (const scr_desc_member *m = members; m->name; m++) {
        const scr_value v = scr_desc_value(desc, kind, m->name, label);
        void *at = (char *)object + m->offset;
        if (m->words)
            scr_value_word(&v, m->words, at, problems);
        else
            scr_value_read(&v, desc_type(kind, m->name), m->least, at, problems);
    }
}

char *scr_desc_member_text(scr_desc_kind kind, const scr_desc_member *members,
                           const void *object, const char *field)
{
    char *text = NULL;
    const char *name = scr_desc_field_find(kind, field);
    const scr_desc_member *m = members;
    while (name && m->name && strcmp(m->name, name) != 0)
        m++;
    if (!name || !m->name) return NULL;
    const void *at = (const char *)object + m->offset;
    switch (desc_type(kind, name)) {
    case SCR_PARAM_SCHEME:
    case SCR_PARAM_TEXT:
        return strdup(at);
    case SCR_PARAM_BYTES:
        return asprintf(&text, "%" PRIu64, *(const uint64_t *)at) < 0 ? NULL : text;
    default:
        return asprintf(&text, "%d", *(const int *)at) < 0 ? NULL : text;
    }
}
