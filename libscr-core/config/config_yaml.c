/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files in YAML, read with libyaml; see config/config_file.h:
 *
 *     SCR_FLUSH: 5
 *     GROUPS:
 *       zin1: {POWER: psu1, SWITCH: 0}
 *     STORE:
 *       /ssd: {GROUP: NODE, COUNT: 3}
 *     CKPT:
 *       - CKPT: 0
 *         TYPE: XOR
 *     LAUNCHER: {NAME: palsrun, RUN: "mpiexec -n {ranks}"}
 *
 * The descriptors of a kind are a mapping from keys to fields, like GROUPS and STORE
 * above, or a list of mappings whose fields include the key, like CKPT. The key of a
 * launcher is its field NAME or LAUNCHER, and a single launcher needs no list. */
#include "config/reader.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

/* Greatest depth of nested lists and mappings; descriptors need three. */
#define DEPTH_MAX 16

struct yaml {
    const scr_reader *r;
    yaml_document_t *document;
};

static scr_mark yaml_mark(yaml_mark_t mark)
{
    return (scr_mark){mark.line + 1, mark.column + 1};
}

static void yaml_problem(const struct yaml *y, const yaml_node_t *node, const char *text,
                         const char *name)
{
    scr_read_problem(y->r, yaml_mark(node->start_mark), text, name);
}

static yaml_node_t *yaml_node_at(const struct yaml *y, int index)
{
    return yaml_document_get_node(y->document, index);
}

/* Returns the text of a node; NULL for a list or mapping, and for a text with a NUL
 * inside. */
static scr_token yaml_token(const yaml_node_t *node)
{
    scr_token token = {NULL, yaml_mark(node->start_mark)};
    if (node->type != YAML_SCALAR_NODE) return token;
    const char *text = (const char *)node->data.scalar.value;
    if (strlen(text) == node->data.scalar.length) token.text = text;
    return token;
}

/* Does the same for a node that must be a name; a missing name is a problem. */
static scr_token yaml_name(const struct yaml *y, int index)
{
    const yaml_node_t *node = yaml_node_at(y, index);
    scr_token name = yaml_token(node);
    if (!name.text) yaml_problem(y, node, "a name was expected", "");
    return name;
}

static bool yaml_has_enough(const struct yaml *y)
{
    return scr_problems_full(y->r->problems);
}

/* ---- descriptors ---- */

/* Reads all fields of a mapping except the pair that holds the key. */
static void yaml_read_fields(const struct yaml *y, scr_desc_kind kind, scr_token key,
                             const yaml_node_t *fields, const yaml_node_pair_t *except)
{
    const yaml_node_pair_t *p = fields->data.mapping.pairs.start;
    kvtree *desc = scr_read_desc(y->r, kind, key);
    for (; desc && p < fields->data.mapping.pairs.top && !yaml_has_enough(y); p++) {
        if (p == except) continue;
        scr_token name = yaml_name(y, p->key);
        if (name.text)
            scr_read_field(y->r, kind, desc, name, yaml_token(yaml_node_at(y, p->value)));
    }
}

/* /ssd: {GROUP: NODE} */
static void yaml_read_keyed(const struct yaml *y, scr_desc_kind kind,
                            const yaml_node_pair_t *pair)
{
    scr_token key = yaml_name(y, pair->key);
    const yaml_node_t *fields = yaml_node_at(y, pair->value);
    if (!key.text) return;
    if (fields->type != YAML_MAPPING_NODE)
        yaml_problem(y, fields, "fields were expected for", key.text);
    else
        yaml_read_fields(y, kind, key, fields, NULL);
}

static bool yaml_is_key(scr_desc_kind kind, const char *name)
{
    return scr_desc_kind_find(name) == kind ||
           (kind == SCR_DESC_LAUNCHER && strcmp(name, "NAME") == 0);
}

/* Returns the pair with the key in an entry of a list; NULL: none. */
static const yaml_node_pair_t *yaml_find_key(const struct yaml *y, scr_desc_kind kind,
                                             const yaml_node_t *fields)
{
    const yaml_node_pair_t *p = fields->data.mapping.pairs.start;
    for (; p < fields->data.mapping.pairs.top; p++) {
        scr_token name = yaml_token(yaml_node_at(y, p->key));
        if (name.text && yaml_is_key(kind, name.text)) return p;
    }
    return NULL;
}

/* - STORE: /ssd
 *   GROUP: NODE */
static void yaml_read_entry(const struct yaml *y, scr_desc_kind kind,
                            const yaml_node_t *entry)
{
    static const char *const missing[][2] = {
        [SCR_DESC_GROUPS] = {"this descriptor has no node: add", "GROUPS: node"},
        [SCR_DESC_STORE] = {"this descriptor has no path: add", "STORE: /path"},
        [SCR_DESC_CKPT] = {"this descriptor has no number: add", "CKPT: 0"},
        [SCR_DESC_LAUNCHER] = {"this descriptor has no name: add", "NAME: launcher"}};
    if (entry->type != YAML_MAPPING_NODE) {
        yaml_problem(y, entry, "fields were expected in the list",
                     scr_desc_kind_name(kind));
        return;
    }
    const yaml_node_pair_t *key = yaml_find_key(y, kind, entry);
    if (key)
        yaml_read_fields(y, kind, yaml_token(yaml_node_at(y, key->value)), entry, key);
    else
        yaml_problem(y, entry, missing[kind][0], missing[kind][1]);
}

/* {NAME: palsrun, RUN: ...} */
static bool yaml_is_one(const struct yaml *y, scr_desc_kind kind, const yaml_node_t *all)
{
    if (kind != SCR_DESC_LAUNCHER || all->type != YAML_MAPPING_NODE) return false;
    const yaml_node_pair_t *key = yaml_find_key(y, kind, all);
    return key && yaml_node_at(y, key->value)->type == YAML_SCALAR_NODE;
}

static void yaml_read_descs(const struct yaml *y, scr_desc_kind kind,
                            const yaml_node_t *all)
{
    if (yaml_is_one(y, kind, all)) {
        yaml_read_entry(y, kind, all);
    } else if (all->type == YAML_MAPPING_NODE) {
        const yaml_node_pair_t *p = all->data.mapping.pairs.start;
        for (; p < all->data.mapping.pairs.top && !yaml_has_enough(y); p++)
            yaml_read_keyed(y, kind, p);
    } else if (all->type == YAML_SEQUENCE_NODE) {
        const yaml_node_item_t *i = all->data.sequence.items.start;
        for (; i < all->data.sequence.items.top && !yaml_has_enough(y); i++)
            yaml_read_entry(y, kind, yaml_node_at(y, *i));
    } else {
        yaml_problem(y, all, "descriptors were expected for", scr_desc_kind_name(kind));
    }
}

/* ---- the other entries ---- */

static void yaml_read_locked(const struct yaml *y, const yaml_node_t *value)
{
    if (value->type != YAML_SEQUENCE_NODE) {
        yaml_problem(y, value, "a list of parameters was expected for", SCR_LOCKED);
        return;
    }
    const yaml_node_item_t *i = value->data.sequence.items.start;
    for (; i < value->data.sequence.items.top && !yaml_has_enough(y); i++) {
        scr_token name = yaml_name(y, *i);
        if (name.text) scr_read_locked(y->r, name);
    }
}

static void yaml_read_pair(const struct yaml *y, const yaml_node_pair_t *pair)
{
    scr_token name = yaml_name(y, pair->key);
    if (!name.text) return;
    const yaml_node_t *value = yaml_node_at(y, pair->value);
    scr_desc_kind kind = scr_desc_kind_find(name.text);
    if (kind != SCR_DESC_KINDS)
        yaml_read_descs(y, kind, value);
    else if (strcmp(name.text, SCR_LOCKED) == 0)
        yaml_read_locked(y, value);
    else
        scr_read_param(y->r, name, yaml_token(value));
}

static void yaml_read_document(const struct yaml *y)
{
    const yaml_node_t *top = yaml_document_get_root_node(y->document);
    if (!top) return; /* an empty file */
    if (top->type != YAML_MAPPING_NODE) {
        yaml_problem(y, top, "the file must consist of", "NAME: value");
        return;
    }
    const yaml_node_pair_t *pair = top->data.mapping.pairs.start;
    for (; pair < top->data.mapping.pairs.top && !yaml_has_enough(y); pair++)
        yaml_read_pair(y, pair);
}

/* ---- YAML ---- */

static int yaml_report(const scr_reader *r, const yaml_parser_t *parser)
{
    scr_problems_add(r->problems, "%s:%zu:%zu: %s", r->path,
                     parser->problem_mark.line + 1, parser->problem_mark.column + 1,
                     parser->problem ? parser->problem : "cannot be read");
    return -EBADMSG;
}

/* Returns +1 where a list or mapping begins, -1 where it ends. */
static int yaml_depth_change(yaml_event_type_t type)
{
    if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT) return 1;
    return type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT ? -1 : 0;
}

/* Parses the whole file without storing anything. The file must be YAML with one document
 * only, and not deeply nested, because libyaml needs quadratic time for deep nesting. */
static int yaml_scan(const scr_reader *r, yaml_parser_t *parser)
{
    int rc = 0, depth = 0, documents = 0;
    yaml_event_type_t type = YAML_NO_EVENT;
    while (!rc && type != YAML_STREAM_END_EVENT) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) return yaml_report(r, parser);
        type = event.type;
        depth += yaml_depth_change(type);
        documents += type == YAML_DOCUMENT_START_EVENT;
        if (type == YAML_DOCUMENT_START_EVENT && documents == 2)
            scr_read_problem(r, yaml_mark(event.start_mark),
                             "there may be one document only, no", "---");
        if (depth > DEPTH_MAX) {
            scr_read_problem(r, yaml_mark(event.start_mark), "nested too deeply for",
                             "NAME: value");
            rc = -EBADMSG;
        }
        yaml_event_delete(&event);
    }
    return rc;
}

static int yaml_load(const scr_reader *r, yaml_parser_t *parser)
{
    yaml_document_t document;
    if (!yaml_parser_load(parser, &document)) return yaml_report(r, parser);
    yaml_read_document(&(struct yaml){r, &document});
    yaml_document_delete(&document);
    return 0;
}

int scr_read_yaml(const scr_reader *r, const char *text, size_t size)
{
    int (*const passes[])(const scr_reader *, yaml_parser_t *) = {yaml_scan, yaml_load};
    int rc = 0;
    for (int i = 0; i < 2 && !rc; i++) {
        yaml_parser_t parser;
        if (!yaml_parser_initialize(&parser)) {
            scr_problems_add(r->problems, "%s: no memory", r->path);
            return -ENOMEM;
        }
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
        rc = passes[i](r, &parser);
        yaml_parser_delete(&parser);
    }
    return rc;
}
