/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts the members of a set to and from trees. */
#include "src/header/layout.h"

#include "common/errtext.h"
#include "src/codec/flow.h"
#include "src/header/list.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int layout_group_to_tree(const redset_layout *layout, kvtree *group)
{
    int rc = kvtree_util_set_int(group, "RANKS", layout->place.members);
    if (!rc) rc = kvtree_util_set_int(group, "ID", layout->place.id);
    if (!rc) rc = kvtree_util_set_int(group, "GROUPS", layout->place.sets);
    if (!rc) rc = kvtree_util_set_int(group, "INDEX", layout->place.set);
    kvtree *members = rc ? NULL : kvtree_set(group, "RANK", NULL);
    if (!members) return -ENOMEM;
    for (int i = 0; i < layout->place.members; i++)
        if (!kvtree_setf(members, NULL, "%d %d", i, layout->members[i])) return -ENOMEM;
    return 0;
}

/* Whether FAILURES is stored; for other schemes it follows from the scheme. */
static bool layout_has_failures(redset_scheme scheme)
{
    return scheme == REDSET_PARTNER || scheme == REDSET_RS;
}

int redset_layout_to_tree(const redset_layout *layout, kvtree *tree)
{
    int rc = kvtree_util_set_str(tree, "TYPE", redset_scheme_name(layout->place.scheme));
    if (!rc && layout_has_failures(layout->place.scheme))
        rc = kvtree_util_set_int(tree, "FAILURES", layout->place.failures);
    if (!rc && layout->unchecked) rc = kvtree_util_set_int(tree, "CHECKSUMS", 0);
    if (!rc) rc = kvtree_util_set_int(tree, "RANKS", layout->ranks);
    kvtree *group = rc ? NULL : kvtree_set(tree, "GROUP", NULL);
    return group ? layout_group_to_tree(layout, group) : -ENOMEM;
}

/* An int below tree/key between low and high. */
static int layout_get_int(const kvtree *tree, const char *key, int low, int high,
                          int *value, redset_error *err)
{
    int read;
    if (kvtree_util_get_int(tree, key, &read) != 0)
        return err_set(err, -EBADMSG, "no number under %s", key);
    if (read < low || read > high)
        return err_set(err, -EBADMSG, "%s is %d, not %d to %d", key, read, low, high);
    *value = read;
    return 0;
}

static int layout_get_failures(const kvtree *tree, redset_place *place, redset_error *err)
{
    int rc = 0;
    place->failures = place->scheme == REDSET_XOR;
    if (layout_has_failures(place->scheme))
        rc = layout_get_int(tree, "FAILURES", 1, place->members, &place->failures, err);
    redset_shape shape = redset_place_shape(place);
    if (!rc && redset_shape_check(&shape) != 0)
        rc = err_set(err, -EBADMSG, "TYPE %s with %d members of which %d may be lost",
                     redset_scheme_name(place->scheme), place->members, place->failures);
    return rc;
}

static int layout_get_place(const kvtree *tree, redset_layout *layout, redset_error *err)
{
    char *type;
    redset_place *place = &layout->place;
    if (kvtree_util_get_str(tree, "TYPE", &type) != 0 ||
        redset_scheme_from_name(type, &place->scheme) != 0)
        return err_set(err, -EBADMSG, "TYPE is not a known scheme");
    const kvtree *group = kvtree_get(tree, "GROUP");
    int checksums, rc = layout_get_int(tree, "RANKS", 1, INT32_MAX, &layout->ranks, err);
    layout->unchecked = kvtree_get(tree, "CHECKSUMS") != NULL;
    if (!rc && layout->unchecked)
        rc = layout_get_int(tree, "CHECKSUMS", 0, 0, &checksums, err);
    if (rc) return rc;
    rc = layout_get_int(group, "RANKS", 1, layout->ranks, &place->members, err);
    if (!rc) rc = layout_get_int(group, "ID", 0, layout->ranks - 1, &place->id, err);
    if (!rc) rc = layout_get_int(group, "GROUPS", 1, layout->ranks, &place->sets, err);
    if (!rc) rc = layout_get_int(group, "INDEX", 0, place->sets - 1, &place->set, err);
    if (!rc) rc = redset_tree_check_size(group, 5, err);
    if (rc) return err_wrap(err, rc, "GROUP");
    if (place->members != redset_assign_members(layout->ranks, place->sets, place->set))
        return err_set(err, -EBADMSG, "set %d of %d over %d ranks cannot have %d members",
                       place->set, place->sets, layout->ranks, place->members);
    place->member = -1;
    return layout_get_failures(tree, place, err);
}

static int layout_compare_ranks(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* All ranks are different, and the lowest is the set's id. */
static int layout_check_members(const redset_layout *layout, redset_error *err)
{
    size_t count = (size_t)layout->place.members;
    int *sorted = malloc(count * sizeof *sorted), rc = 0;
    if (!sorted) return err_sys(err, -ENOMEM, "%zu members", count);
    memcpy(sorted, layout->members, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, layout_compare_ranks);
    for (size_t i = 1; i < count && !rc; i++)
        if (sorted[i] == sorted[i - 1])
            rc = err_set(err, -EBADMSG, "GROUP has rank %d twice", sorted[i]);
    if (!rc && sorted[0] != layout->place.id)
        rc = err_set(err, -EBADMSG, "GROUP has ID %d, but its lowest rank is %d",
                     layout->place.id, sorted[0]);
    free(sorted);
    return rc;
}

static int layout_get_members(const kvtree *ranks, redset_layout *layout,
                              redset_error *err)
{
    int count = layout->place.members;
    for (int i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        int rc =
            layout_get_int(ranks, key, 0, layout->ranks - 1, &layout->members[i], err);
        if (rc) return err_wrap(err, rc, "GROUP RANK");
    }
    return layout_check_members(layout, err);
}

int redset_layout_from_tree(const kvtree *tree, redset_layout *layout, redset_error *err)
{
    redset_layout read = {0};
    int rc = layout_get_place(tree, &read, err);
    if (rc) return rc;
    const kvtree *ranks = kvtree_get(kvtree_get(tree, "GROUP"), "RANK");
    /* checked before GROUP determines the size of an allocation */
    if (kvtree_size(ranks) != read.place.members)
        return err_set(err, -EBADMSG, "GROUP has %d members but lists %d",
                       read.place.members, kvtree_size(ranks));
    read.members = calloc((size_t)read.place.members, sizeof *read.members);
    if (!read.members) return err_sys(err, -ENOMEM, "%d members", read.place.members);
    rc = layout_get_members(ranks, &read, err);
    if (rc) {
        redset_layout_done(&read);
        return rc;
    }
    *layout = read;
    return 0;
}

int redset_layout_find(redset_layout *layout, int rank)
{
    for (int i = 0; i < layout->place.members; i++)
        if (layout->members[i] == rank) {
            layout->place.member = i;
            return 0;
        }
    return -ENOENT;
}

int redset_layout_neighbor(const redset_layout *layout, int distance)
{
    int members = layout->place.members;
    return layout->members[(layout->place.member + members + distance) % members];
}

bool redset_layout_is_equal(const redset_layout *a, const redset_layout *b)
{
    const redset_place *p = &a->place, *q = &b->place;
    return a->ranks == b->ranks && a->unchecked == b->unchecked &&
           p->scheme == q->scheme && p->failures == q->failures && p->sets == q->sets &&
           p->set == q->set && p->id == q->id && p->members == q->members &&
           memcmp(a->members, b->members, (size_t)p->members * sizeof *a->members) == 0;
}

void redset_layout_done(redset_layout *layout)
{
    free(layout->members);
    layout->members = NULL;
}
