/* SPDX-License-Identifier: BSD-3-Clause */
/* The scan hash: what a scan found, as the Developer Guide writes it down (section
 * 2.13.2), for people and scripts. */
#include "scavenge/scan.h"

#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <redset/redset.h>
#include <stdio.h>

/* Ranks that are listed one by one under MISSING: a damaged description may tell of any
 * number. */
enum { LISTED = 100000 };

static int put_file(kvtree *rank, const scavenge_file *f)
{
    kvtree *file = kvtree_set_kv(rank, "FILE", f->name);
    if (!file || (f->redundancy && !kvtree_set(file, "NOFETCH", NULL))) return -ENOMEM;
    int rc = kvtree_util_set_bytecount(file, "SIZE", f->size);
    return rc || !f->has_crc ? rc : kvtree_util_set_crc32(file, "CRC", f->crc);
}

static int put_rank(kvtree *map, const scavenge_rank *r)
{
    kvtree *rank = kvtree_set_kv_int(map, "RANK", r->rank);
    int rc = rank ? kvtree_util_set_int(rank, "FILES", r->count) : -ENOMEM;
    for (int i = 0; i < r->count && !rc; i++)
        rc = put_file(rank, &r->files[i]);
    return rc;
}

static int put_ranks(kvtree *tree, const scavenge_scan *scan)
{
    kvtree *map = kvtree_set(tree, "RANK2FILE", NULL);
    int rc = map ? kvtree_util_set_int(map, "RANKS", scan->dataset.ranks) : -ENOMEM;
    for (int i = 0; i < scan->count && !rc; i++)
        rc = put_rank(map, scan->ranks[i]);
    return rc;
}

static int put_set(kvtree *tree, const scavenge_set *set)
{
    const char *scheme = redset_scheme_name((redset_scheme)set->scheme);
    kvtree *of_set = kvtree_set_kv_int(tree, scheme, set->id);
    int rc = of_set ? kvtree_util_set_int(of_set, "MEMBERS", set->members) : -ENOMEM;
    for (int i = 0; i < set->count && !rc; i++) {
        char name[REDSET_NAME_SIZE];
        const redset_place place = {.scheme = (redset_scheme)set->scheme,
                                    .sets = 1,
                                    .id = set->id,
                                    .members = set->members,
                                    .member = set->list[i].member,
                                    .failures = set->scheme != REDSET_SINGLE};
        kvtree *member = kvtree_set_kv_int(of_set, "MEMBER", place.member + 1);
        rc = member ? redset_file_name(&place, name) : -ENOMEM;
        rc = rc ? rc : kvtree_util_set_str(member, "FILE", name);
        rc = rc ? rc : kvtree_util_set_int(member, "RANK", set->list[i].rank);
    }
    return rc;
}

static int put_missing(kvtree *tree, const scavenge_scan *scan)
{
    int listed = 0, rank = 0, rc = 0;
    for (int i = 0; rank < scan->dataset.ranks && listed < LISTED && !rc; rank++) {
        int known = i < scan->count && scan->ranks[i]->rank == rank;
        int lacks = !known || scan->ranks[i]->lacks;
        i += known;
        if (!lacks) continue;
        listed++;
        if (!kvtree_set_kv_int(tree, "MISSING", rank)) rc = -ENOMEM;
    }
    return rc;
}

/* What would be done about it. */
static int put_build(kvtree *tree, const scavenge_scan *scan)
{
    int rc = 0;
    for (int i = 0; i < scan->sets && !rc; i++) {
        char command[64];
        if (!scavenge_set_lacks(scan, &scan->set[i])) continue;
        snprintf(command, sizeof command, "redset_rebuild -r .scr -s %d",
                 scan->set[i].id);
        if (!kvtree_set_kv(tree, "BUILD", command)) rc = -ENOMEM;
    }
    return rc;
}

int scavenge_scan_to_tree(const scavenge_scan *scan, kvtree *tree)
{
    char why[ERRTEXT_SIZE];
    kvtree *of = kvtree_set_kv_int(tree, "DLIST", scan->dataset.id);
    kvtree *description = of ? kvtree_set(of, "DSET", NULL) : NULL;
    int rc = description ? scr_dataset_to_tree(&scan->dataset, description) : -ENOMEM;
    rc = rc ? rc : put_ranks(of, scan);
    for (int i = 0; i < scan->sets && !rc; i++)
        rc = put_set(of, &scan->set[i]);
    if (rc || scavenge_scan_is_whole(scan, why)) return rc;
    if (!kvtree_set_kv(of, "INVALID", why)) return -ENOMEM;
    rc = put_missing(of, scan);
    if (!rc && scavenge_scan_missing(scan)) rc = put_build(of, scan);
    return rc;
}
