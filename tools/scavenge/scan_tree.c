/* SPDX-License-Identifier: BSD-3-Clause */
/* The scan hash: the result of a scan as a tree (SCR Developer Guide 1.2, section
 * 2.13.2). */
#include "scavenge/scan.h"

#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>

/* Maximum number of ranks under MISSING, since a damaged description may have any number
 * of ranks. */
enum { LISTED = 100000 };

static int scan_tree_put_file(kvtree *rank, const scavenge_file *f)
{
    kvtree *file = kvtree_set_kv(rank, "FILE", f->name);
    if (!file || (f->redundancy && !kvtree_set(file, "NOFETCH", NULL))) return -ENOMEM;
    int rc = kvtree_util_set_bytecount(file, "SIZE", f->size);
    return rc || !f->has_crc ? rc : kvtree_util_set_crc32(file, "CRC", f->crc);
}

static int scan_tree_put_ranks(kvtree *tree, const scavenge_scan *scan)
{
    kvtree *map = kvtree_set(tree, "RANK2FILE", NULL);
    int rc = map ? kvtree_util_set_int(map, "RANKS", scan->dataset.ranks) : -ENOMEM;
    for (int i = 0; i < scan->count && !rc; i++) {
        const scavenge_rank *r = scan->ranks[i];
        kvtree *rank = kvtree_set_kv_int(map, "RANK", r->rank);
        rc = rank ? kvtree_util_set_int(rank, "FILES", r->count) : -ENOMEM;
        for (int k = 0; k < r->count && !rc; k++)
            rc = scan_tree_put_file(rank, &r->files[k]);
    }
    return rc;
}

static int scan_tree_put_members(kvtree *tree, const scavenge_scan *scan)
{
    int rc = 0;
    for (int i = 0; i < scan->members && !rc; i++) {
        const redset_place *place = &scan->list[i].place;
        char name[REDSET_NAME_SIZE];
        kvtree *set =
            kvtree_set_kv_int(tree, redset_scheme_name(place->scheme), place->id);
        kvtree *member = kvtree_set_kv_int(set, "MEMBER", place->member + 1);
        rc = member ? kvtree_util_set_int(set, "MEMBERS", place->members) : -ENOMEM;
        if (!rc) rc = redset_file_name(place, name);
        if (!rc) rc = kvtree_util_set_str(member, "FILE", name);
        if (!rc) rc = kvtree_util_set_int(member, "RANK", scan->list[i].rank);
    }
    return rc;
}

static int scan_tree_put_missing(kvtree *tree, const scavenge_scan *scan)
{
    int listed = 0;
    for (int rank = 0, i = 0; rank < scan->dataset.ranks && listed < LISTED; rank++) {
        bool known = i < scan->count && scan->ranks[i]->rank == rank;
        if (known && !scan->ranks[i++]->lacks) continue;
        listed++;
        if (!kvtree_set_kv_int(tree, "MISSING", rank)) return -ENOMEM;
    }
    return 0;
}

/* Adds the commands that rebuild incomplete sets. */
static int scan_tree_put_build(kvtree *tree, const scavenge_scan *scan)
{
    for (int i = 0, end; i < scan->members; i = end) {
        char command[64];
        end = scavenge_set_end(scan->list, scan->members, i);
        if (!scavenge_set_is_incomplete(scan, i, end)) continue;
        snprintf(command, sizeof command, "redset_rebuild -r .scr -s %d",
                 scan->list[i].place.id);
        if (!kvtree_set_kv(tree, "BUILD", command)) return -ENOMEM;
    }
    return 0;
}

int scavenge_scan_to_tree(const scavenge_scan *scan, kvtree *tree)
{
    kvtree_error why;
    kvtree *of = kvtree_set_kv_int(tree, "DLIST", scan->dataset.id);
    kvtree *description = of ? kvtree_set(of, "DSET", NULL) : NULL;
    int rc = description ? scr_dataset_to_tree(&scan->dataset, description) : -ENOMEM;
    if (!rc) rc = scan_tree_put_ranks(of, scan);
    if (!rc) rc = scan_tree_put_members(of, scan);
    if (rc || scavenge_scan_is_whole(scan, &why)) return rc;
    if (!kvtree_set_kv(of, "INVALID", why.text)) return -ENOMEM;
    rc = scan_tree_put_missing(of, scan);
    if (!rc && scavenge_scan_missing(scan)) rc = scan_tree_put_build(of, scan);
    return rc;
}
