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
    kvtree *ranges; /* the same for ranges of nodes (config/host_range.h) */
    kvtree *names;  /* <group>: the groups of all nodes */
} scr_groups;

/* Reads the groups that a configuration defines. Returns 0 or -ENOMEM. */
int scr_groups_from_config(const scr_config *config, scr_groups *groups);

/* Fills row, which is empty, with the values of a node in all groups:
 * FIELD/<group>/VALUE/... Returns 0 or -ENOMEM. */
int scr_groups_row(const scr_groups *groups, const char *node, kvtree *row);

/* Keeps the names of all groups, and only this node, with the given row. Takes ownership
 * of row. Returns 0; after -ENOMEM no node is left. */
int scr_groups_keep(scr_groups *groups, const char *node, kvtree *row);

void scr_groups_done(scr_groups *groups);

/* Whether a group of that name exists. */
bool scr_groups_has(const scr_groups *groups, const char *name);
const char *scr_groups_nearest(const scr_groups *groups, const char *name);

/* Returns the value of node in the group of that name: the name of the node for NODE, a
 * constant for WORLD. The row of the node itself comes before rows of ranges; among
 * ranges, the first one that has the group counts. NULL: the node has no value. Owned by
 * groups. */
const char *scr_groups_value(const scr_groups *groups, const char *name,
                             const char *node);

/* Copies the name of a group to to. If there is no such group, adds a problem. */
void scr_groups_resolve(const scr_groups *groups, const scr_value *value,
                        char to[SCR_DESC_NAME_SIZE], scr_problems *problems);

#endif
