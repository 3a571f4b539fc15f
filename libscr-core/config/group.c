/* SPDX-License-Identifier: BSD-3-Clause */
/* Group descriptors; see config/group.h. */
#include "config/group.h"

#include "config/host_range.h"
#include <errno.h>
#include <string.h>

int scr_groups_from_config(const scr_config *config, scr_groups *groups)
{
    scr_groups g = {scr_config_descs(config, SCR_DESC_GROUPS), kvtree_new()};
    int rc = g.nodes && g.names ? 0 : -ENOMEM;
    const kvtree_elem *node = kvtree_elem_first(g.nodes);
    for (; node && !rc; node = kvtree_elem_next(node)) {
        const kvtree *fields = kvtree_get(kvtree_elem_hash(node), "FIELD");
        const kvtree_elem *e = kvtree_elem_first(fields);
        for (; e && !rc; e = kvtree_elem_next(e))
            if (!kvtree_get(g.names, kvtree_elem_key(e)) &&
                !kvtree_set(g.names, kvtree_elem_key(e), NULL))
                rc = -ENOMEM;
    }
    if (rc)
        scr_groups_done(&g);
    else
        *groups = g;
    return rc;
}

void scr_groups_done(scr_groups *groups)
{
    kvtree_delete(&groups->nodes);
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
    const kvtree_elem *e = kvtree_elem_first(groups->nodes);
    for (; e && !value; e = kvtree_elem_next(e))
        if (scr_host_range_is(kvtree_elem_key(e)) &&
            scr_host_range_has(kvtree_elem_key(e), node))
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
        strcpy(to, value->text); /* a name of GROUPS is not longer */
}
