/* SPDX-License-Identifier: BSD-3-Clause */
/* Group descriptors; see config/group.h. */
#include "config/group.h"

#include "config/host_range.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdlib.h>
#include <string.h>

/* Adds the names of the groups in a row to names. */
static int group_add_names(kvtree *names, const kvtree *row)
{
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(row, "FIELD"));
    for (; e; e = kvtree_elem_next(e))
        if (!kvtree_get(names, kvtree_elem_key(e)) &&
            !kvtree_set(names, kvtree_elem_key(e), NULL))
            return -ENOMEM;
    return 0;
}

/* Moves rows of ranges from nodes to ranges: a node is found by its name, but ranges must
 * be searched. */
static int group_move_ranges(scr_groups *g)
{
    kvtree_elem *next, *node = kvtree_elem_first(g->nodes);
    int rc = 0;
    for (; node && !rc; node = next) {
        next = kvtree_elem_next(node);
        if (!scr_host_range_is(kvtree_elem_key(node))) continue;
        char *name = strdup(kvtree_elem_key(node));
        kvtree *row = name ? kvtree_extract(g->nodes, name) : NULL;
        if (!kvtree_set(g->ranges, name, row)) rc = -ENOMEM;
        if (rc) kvtree_delete(&row);
        free(name);
    }
    return rc;
}

int scr_groups_from_config(const scr_config *config, scr_groups *groups)
{
    scr_groups g = {scr_config_descs(config, SCR_DESC_GROUPS), kvtree_new(),
                    kvtree_new()};
    int rc = g.nodes && g.ranges && g.names ? 0 : -ENOMEM;
    const kvtree_elem *node = kvtree_elem_first(g.nodes);
    for (; node && !rc; node = kvtree_elem_next(node))
        rc = group_add_names(g.names, kvtree_elem_hash(node));
    if (!rc && config->group_names) rc = kvtree_merge(g.names, config->group_names);
    rc = rc ? rc : group_move_ranges(&g);
    if (rc)
        scr_groups_done(&g);
    else
        *groups = g;
    return rc;
}

int scr_groups_row(const scr_groups *groups, const char *node, kvtree *row)
{
    const kvtree_elem *e = kvtree_elem_first(groups->names);
    for (; e; e = kvtree_elem_next(e)) {
        const char *value = scr_groups_value(groups, kvtree_elem_key(e), node);
        kvtree *field = value ? kvtree_set_kv(row, "FIELD", kvtree_elem_key(e)) : NULL;
        if (value && kvtree_util_set_str(field, "VALUE", value) != 0) return -ENOMEM;
    }
    return 0;
}

int scr_groups_keep(scr_groups *groups, const char *node, kvtree *row)
{
    kvtree_delete(&groups->nodes);
    kvtree_delete(&groups->ranges);
    groups->nodes = kvtree_new();
    if (kvtree_set(groups->nodes, node, row)) return 0;
    kvtree_delete(&row);
    return -ENOMEM;
}

void scr_groups_done(scr_groups *groups)
{
    kvtree_delete(&groups->nodes);
    kvtree_delete(&groups->ranges);
    kvtree_delete(&groups->names);
}

bool scr_groups_has(const scr_groups *groups, const char *name)
{
    return strcmp(name, "NODE") == 0 || strcmp(name, "WORLD") == 0 ||
           kvtree_get(groups->names, name) != NULL;
}

const char *scr_groups_nearest(const scr_groups *groups, const char *name)
{
    scr_nearest nearest = {.name = name};
    scr_nearest_try(&nearest, "NODE");
    scr_nearest_try(&nearest, "WORLD");
    const kvtree_elem *e = kvtree_elem_first(groups->names);
    for (; e; e = kvtree_elem_next(e))
        scr_nearest_try(&nearest, kvtree_elem_key(e));
    return nearest.best;
}

static const char *group_field(const kvtree *row, const char *name)
{
    return kvtree_get_val(kvtree_get(kvtree_get(row, "FIELD"), name), "VALUE");
}

const char *scr_groups_value(const scr_groups *groups, const char *name, const char *node)
{
    if (strcmp(name, "NODE") == 0) return node;
    if (strcmp(name, "WORLD") == 0) return "WORLD";
    const char *value = group_field(kvtree_get(groups->nodes, node), name);
    const kvtree_elem *e = kvtree_elem_first(groups->ranges);
    for (; e && !value; e = kvtree_elem_next(e))
        if (scr_host_range_has(kvtree_elem_key(e), node))
            value = group_field(kvtree_elem_hash(e), name);
    return value;
}

void scr_groups_resolve(const scr_groups *groups, const scr_value *value,
                        char to[SCR_DESC_NAME_SIZE], scr_problems *problems)
{
    if (!value->text) return;
    if (!scr_groups_has(groups, value->text))
        scr_value_bad(
            value, problems, "no such group; did you mean %s?",
            scr_problems_full(problems) ? "" : scr_groups_nearest(groups, value->text));
    else
        strcpy(to, value->text); /* names in GROUPS are not longer */
}
