/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_HEADER_LAYOUT_H
#define REDSET_HEADER_LAYOUT_H

/* The members of a set, in headers and messages:
 *
 *     TYPE / <scheme>
 *     FAILURES / <members that may be lost>      (PARTNER and RS)
 *     CHECKSUMS / 0                              (only without checksums)
 *     RANKS / <size of the communicator>
 *     GROUP / RANKS / <members>, ID / <lowest rank>, GROUPS / <sets>, INDEX / <set>,
 *             RANK / <member> / <rank>
 *
 * Only a layout that redset_choose can produce is valid. */

#include "src/names_private.h"
#include <redset/redset.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct redset_layout {
    int ranks;          /* size of the communicator */
    redset_place place; /* member is -1 until redset_layout_find */
    int *members;       /* rank of each of place.members members */
    bool unchecked;     /* without checksums of files and redundancy data */
} redset_layout;

/* Number of members of set number `set`, of `sets` sets over procs processes. */
int redset_assign_members(int procs, int sets, int set);

/* Adds the keys above to tree. */
int redset_layout_to_tree(const redset_layout *layout, kvtree *tree);

/* Checks the keys of tree and sets layout; -EBADMSG. */
int redset_layout_from_tree(const kvtree *tree, redset_layout *layout, redset_error *err);

/* Sets place.member to the member with that rank; -ENOENT if rank is not a member. */
int redset_layout_find(redset_layout *layout, int rank);

/* The rank of the member at that distance to the right; negative: to the left. */
int redset_layout_neighbor(const redset_layout *layout, int distance);

/* Whether both describe the same set, for any of its members. */
bool redset_layout_is_equal(const redset_layout *a, const redset_layout *b);

void redset_layout_done(redset_layout *layout);

/* Writes folder/name, or only the one that is not NULL; -ENAMETOOLONG. */
int redset_join(char *path, size_t size, const char *folder, const char *name);

#endif
