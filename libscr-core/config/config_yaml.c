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
 *
 * Descriptors of a kind are a mapping of keys to fields, as the first two, or a list of
 * fields with the key among them, as the last. */
#include "config/config_file.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

/* Lists and mappings within each other; descriptors need three. */
#define DEPTH_MAX 16

struct yaml {
    const scr_reader *r;
    yaml_document_t *document;
};

static scr_mark mark_of(yaml_mark_t mark)
{
    return (scr_mark){mark.line + 1, mark.column + 1};
}

static void problem(const struct yaml *y, const yaml_node_t *node, const char *text,
                    const char *name)
{
    scr_read_problem(y->r, mark_of(node->start_mark), text, name);
}

static yaml_node_t *node_at(const struct yaml *y, int index)
{
    return yaml_document_get_node(y->document, index);
}

/* The text of a node; NULL if it is none, or one with a NUL inside, which C would cut. */
static const char *scalar(const yaml_node_t *node)
{
    if (!node || node->type != YAML_SCALAR_NODE) return NULL;
    const char *text = (const char *)node->data.scalar.value;
    return strlen(text) == node->data.scalar.length ? text : NULL;
}

/* The name on the left of a pair; without one, a problem and NULL in it. */
static scr_read_name name_of(const struct yaml *y, const yaml_node_pair_t *pair)
{
    const yaml_node_t *key = node_at(y, pair->key);
    scr_read_name name = {scalar(key), mark_of(key->start_mark)};
    if (!name.text) problem(y, key, "a name was expected", "");
    return name;
}

static int is_enough(const struct yaml *y)
{
    return scr_problems_full(y->r->problems);
}

/* ---- descriptors ---- */

static void read_field(const struct yaml *y, scr_desc_kind kind, kvtree *desc,
                       const yaml_node_pair_t *pair)
{
    scr_read_field field = {desc, kind, name_of(y, pair)};
    const yaml_node_t *value = node_at(y, pair->value);
    const char *text = scalar(value);
    if (field.name.text && !text)
        problem(y, value, "one value was expected for", field.name.text);
    else if (field.name.text)
        scr_read_field_value(y->r, field, mark_of(value->start_mark), text);
}

/* All fields of a mapping but the pair that has the key. */
static void read_fields(const struct yaml *y, scr_desc_kind kind, kvtree *desc,
                        const yaml_node_t *fields, const yaml_node_pair_t *but)
{
    const yaml_node_pair_t *p = fields->data.mapping.pairs.start;
    for (; desc && p < fields->data.mapping.pairs.top && !is_enough(y); p++)
        if (p != but) read_field(y, kind, desc, p);
}

/* /ssd: {GROUP: NODE} */
static void read_keyed(const struct yaml *y, scr_desc_kind kind,
                       const yaml_node_pair_t *pair)
{
    scr_read_name name = name_of(y, pair);
    const yaml_node_t *fields = node_at(y, pair->value);
    if (!name.text) return;
    if (fields->type != YAML_MAPPING_NODE)
        problem(y, fields, "fields were expected for", name.text);
    else
        read_fields(y, kind, scr_read_desc(y->r, kind, name.mark, name.text), fields,
                    NULL);
}

/* The pair of a list's entry that has the key; NULL if there is none. */
static const yaml_node_pair_t *find_key(const struct yaml *y, scr_desc_kind kind,
                                        const yaml_node_t *fields)
{
    const yaml_node_pair_t *p = fields->data.mapping.pairs.start;
    for (; p < fields->data.mapping.pairs.top; p++) {
        const char *name = scalar(node_at(y, p->key));
        if (name && scr_desc_kind_find(name) == kind) return p;
    }
    return NULL;
}

/* - STORE: /ssd
 *   GROUP: NODE */
static void read_entry(const struct yaml *y, scr_desc_kind kind, const yaml_node_t *entry)
{
    static const char *const lacks[][2] = {
        [SCR_DESC_GROUPS] = {"this descriptor has no node: add", "GROUPS: node"},
        [SCR_DESC_STORE] = {"this descriptor has no path: add", "STORE: /path"},
        [SCR_DESC_CKPT] = {"this descriptor has no number: add", "CKPT: 0"}};
    const char *name = scr_desc_kind_name(kind), *text;
    if (entry->type != YAML_MAPPING_NODE) {
        problem(y, entry, "fields were expected in the list", name);
        return;
    }
    const yaml_node_pair_t *key = find_key(y, kind, entry);
    if (!key) {
        problem(y, entry, lacks[kind][0], lacks[kind][1]);
        return;
    }
    const yaml_node_t *value = node_at(y, key->value);
    if (!(text = scalar(value)))
        problem(y, value, "one value was expected for", name);
    else
        read_fields(y, kind, scr_read_desc(y->r, kind, mark_of(value->start_mark), text),
                    entry, key);
}

static void read_descs(const struct yaml *y, scr_desc_kind kind, const yaml_node_t *all)
{
    if (all->type == YAML_MAPPING_NODE) {
        const yaml_node_pair_t *p = all->data.mapping.pairs.start;
        for (; p < all->data.mapping.pairs.top && !is_enough(y); p++)
            read_keyed(y, kind, p);
    } else if (all->type == YAML_SEQUENCE_NODE) {
        const yaml_node_item_t *i = all->data.sequence.items.start;
        for (; i < all->data.sequence.items.top && !is_enough(y); i++)
            read_entry(y, kind, node_at(y, *i));
    } else {
        problem(y, all, "descriptors were expected for", scr_desc_kind_name(kind));
    }
}

/* ---- all others ---- */

static void read_locked(const struct yaml *y, const yaml_node_t *value)
{
    const yaml_node_item_t *i = NULL, *end = NULL;
    if (value->type == YAML_SEQUENCE_NODE) {
        i = value->data.sequence.items.start;
        end = value->data.sequence.items.top;
    } else {
        problem(y, value, "a list of parameters was expected for", SCR_LOCKED);
    }
    for (; i < end && !is_enough(y); i++) {
        const yaml_node_t *item = node_at(y, *i);
        const char *name = scalar(item);
        if (name)
            scr_read_locked(y->r, mark_of(item->start_mark), name);
        else
            problem(y, item, "a name was expected", "");
    }
}

static void read_pair(const struct yaml *y, const yaml_node_pair_t *pair)
{
    scr_read_name name = name_of(y, pair);
    if (!name.text) return;
    const yaml_node_t *value = node_at(y, pair->value);
    scr_desc_kind kind = scr_desc_kind_find(name.text);
    const char *text = scalar(value);
    if (kind != SCR_DESC_KINDS)
        read_descs(y, kind, value);
    else if (strcmp(name.text, SCR_LOCKED) == 0)
        read_locked(y, value);
    else if (text)
        scr_read_param(y->r, name, mark_of(value->start_mark), text);
    else if (scr_read_param_name(y->r, name))
        problem(y, value, "one value was expected for", name.text);
}

static void read_document(const struct yaml *y)
{
    const yaml_node_t *top = yaml_document_get_root_node(y->document);
    if (!top) return; /* an empty file */
    if (top->type != YAML_MAPPING_NODE) {
        problem(y, top, "the file must consist of", "NAME: value");
        return;
    }
    const yaml_node_pair_t *pair = top->data.mapping.pairs.start;
    for (; pair < top->data.mapping.pairs.top && !is_enough(y); pair++)
        read_pair(y, pair);
}

/* ---- YAML ---- */

static int not_yaml(const scr_reader *r, const yaml_parser_t *parser)
{
    scr_problems_add(r->problems, "%s:%zu:%zu: %s", r->path,
                     parser->problem_mark.line + 1, parser->problem_mark.column + 1,
                     parser->problem ? parser->problem : "cannot be read");
    return -EBADMSG;
}

/* +1 where lists and mappings begin, -1 where they end. */
static int step(yaml_event_type_t type)
{
    if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT) return 1;
    return type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT ? -1 : 0;
}

/* First the whole file is parsed without keeping anything: it must be YAML, of one
 * document, and not deeply nested, for which libyaml would need quadratic time. */
static int scan(const scr_reader *r, yaml_parser_t *parser)
{
    int rc = 0, depth = 0, documents = 0;
    yaml_event_type_t type = YAML_NO_EVENT;
    while (!rc && type != YAML_STREAM_END_EVENT) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) return not_yaml(r, parser);
        type = event.type;
        depth += step(type);
        documents += type == YAML_DOCUMENT_START_EVENT;
        if (type == YAML_DOCUMENT_START_EVENT && documents == 2)
            scr_read_problem(r, mark_of(event.start_mark),
                             "there may be one document only, no", "---");
        if (depth > DEPTH_MAX) {
            scr_read_problem(r, mark_of(event.start_mark), "nested too deeply for",
                             "NAME: value");
            rc = -EBADMSG;
        }
        yaml_event_delete(&event);
    }
    return rc;
}

static int load(const scr_reader *r, yaml_parser_t *parser)
{
    yaml_document_t document;
    if (!yaml_parser_load(parser, &document)) return not_yaml(r, parser);
    read_document(&(struct yaml){r, &document});
    yaml_document_delete(&document);
    return 0;
}

int scr_read_yaml(const scr_reader *r, const char *text, size_t size)
{
    int (*const passes[])(const scr_reader *, yaml_parser_t *) = {scan, load};
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
