/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_GROUP_H
#define SCR_GROUP_H

/* Group descriptors (SCR Developer Guide 1.2, section 2.7): processes that may fail
 * together, such as those with a common power supply. A node has a value in each group,
 * and nodes with equal values form a group. NODE and WORLD always exist. */

#include "config/desc.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>

typedef struct scr_groups {
    kvtree *nodes;  /* <node>/{FIELD/<group>/VALUE/<value>, ...}; NULL: no node */
    kvtree *ranges; /* the same of ranges of nodes (config/host_range.h) */
    kvtree *names;  /* <group>; of all nodes */
} scr_groups;

/* The groups that a configuration defines. 0 or -ENOMEM. */
int scr_groups_from_config(const scr_config *config, scr_groups *groups);

/* Fills row, which is empty, with what a node has in all groups: FIELD/<group>/VALUE/...
 * 0 or -ENOMEM. */
int scr_groups_row(const scr_groups *groups, const char *node, kvtree *row);

/* Keeps the names of all groups, and of the nodes this one, with that row, which is
 * taken. 0, or -ENOMEM, which leaves no node. */
int scr_groups_keep(scr_groups *groups, const char *node, kvtree *row);

void scr_groups_done(scr_groups *groups);

/* Whether there is a group of that name. */
bool scr_groups_has(const scr_groups *groups, const char *name);
const char *scr_groups_nearest(const scr_groups *groups, const char *name);

/* The value of node in the group of that name: the name of the node for NODE, a constant
 * for WORLD. A row of the node itself comes before those of ranges, of which the first
 * one counts that has the group. NULL: the node has none. Owned by groups. */
const char *scr_groups_value(const scr_groups *groups, const char *name,
                             const char *node);

/* Copies the name of a group to to, or adds a problem if there is no such group. */
void scr_groups_resolve(const scr_groups *groups, const scr_value *value,
                        char to[SCR_DESC_NAME_SIZE], scr_problems *problems);

#endif
