/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of many ranks, or of one of them, are read by one process: the root, and
 * depth first what is below it, so that of each level one file is in memory.
 *
 * Files may come from anyone. What bounds the work: levels fall by one from file to file,
 * and no rank may turn up twice in a level, so no file is followed twice. Ranks of a
 * level that do not come in order are remembered as bits, 64 to an entry of a table. */
#include "src/kvtree_gather_private.h"

#include "common/batch.h"
#include "common/errtext.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- ranks that were seen ---- */

typedef struct scatter_entry {
    uint64_t ranks;  /* 64 of them, from the one that is 64 * (number - 1) on */
    uint32_t number; /* 0: free */
} scatter_entry;

/* All ranks below `next`, as sets are written in their order, and others in a table that
 * is probed linearly and at most half full. */
typedef struct scatter_set {
    int next;
    scatter_entry *table;
    size_t size, used; /* entries; size is a power of 2 */
    uint64_t secret;   /* odd; no file can have ranks that were chosen to collide */
} scatter_set;

/* The entry of rank, or a free one; there is a table. */
static scatter_entry *scatter_find(const scatter_set *set, uint32_t number)
{
    size_t at = number * set->secret >> 32;
    while (set->table[at &= set->size - 1].number && set->table[at].number != number)
        at++;
    return &set->table[at];
}

static uint32_t scatter_number(int rank)
{
    return (uint32_t)rank / 64 + 1;
}

static bool scatter_has(const scatter_set *set, int rank)
{
    if (rank < set->next || !set->table) return rank < set->next;
    return scatter_find(set, scatter_number(rank))->ranks >> rank % 64 & 1;
}

static int scatter_grow(scatter_set *set)
{
    scatter_set larger = *set;
    larger.size = set->size ? 2 * set->size : 16;
    larger.table = calloc(larger.size, sizeof *larger.table);
    if (!larger.table) return -ENOMEM;
    for (size_t i = 0; i < set->size; i++)
        if (set->table[i].number)
            *scatter_find(&larger, set->table[i].number) = set->table[i];
    free(set->table);
    *set = larger;
    return 0;
}

/* -EEXIST for a rank that the set has already. */
static int scatter_insert(scatter_set *set, int rank)
{
    if (scatter_has(set, rank)) return -EEXIST;
    if (rank == set->next) {
        do
            set->next++;
        while (scatter_has(set, set->next));
        return 0;
    }
    if (2 * set->used >= set->size && scatter_grow(set) != 0) return -ENOMEM;
    scatter_entry *entry = scatter_find(set, scatter_number(rank));
    set->used += !entry->number;
    entry->number = scatter_number(rank);
    entry->ranks |= UINT64_C(1) << rank % 64;
    return 0;
}

/* ---- reading ---- */

typedef struct scatter_reader {
    const kvtree_gather_place *from;
    kvtree_gather_take *take;
    void *arg;
    int ranks;                                     /* of the root */
    int64_t sum;                                   /* ranks that level 0 lists */
    scatter_set seen[KVTREE_GATHER_LEVEL_MAX + 1]; /* in them */
    kvtree_error *err;
} scatter_reader;

/* Compares part, which is that of the file name, with those read before. */
static int scatter_check_part(scatter_reader *r, const kvtree_gather_part *part,
                              const char *name)
{
    if (part->level == 0) r->sum += part->ranks;
    for (kvtree_elem *e = kvtree_elem_first(part->items); e; e = kvtree_elem_next(e)) {
        int rank = kvtree_elem_key_int(e);
        int rc = kvtree_gather_check_rank(name, rank, r->ranks, r->err);
        if (rc) return rc;
        rc = scatter_insert(&r->seen[part->level], rank);
        if (rc == -EEXIST) return kvtree_gather_listed_twice(name, rank, r->err);
        if (rc) return err_sys(r->err, rc, "read %s", name);
    }
    return 0;
}

static int scatter_read_file(scatter_reader *r, const char *name, int level);

/* Hands out trees, or reads the files that are pointed to. */
static int scatter_follow(scatter_reader *r, const kvtree_gather_part *part)
{
    int rc = 0;
    for (kvtree_elem *e = kvtree_elem_first(part->items); e && rc == 0;
         e = kvtree_elem_next(e)) {
        kvtree *item = kvtree_elem_hash(e);
        if (part->level > 0)
            rc = scatter_read_file(r, kvtree_elem_get_first_val(item, "FILE"),
                                   part->level - 1);
        else if (r->take)
            rc = r->take(r->arg, kvtree_elem_key_int(e), item, r->err);
    }
    return rc;
}

/* Reads a file at level, or the root: -1, and all below it. There are at most
 * KVTREE_GATHER_LEVEL_MAX levels, so it may call itself. */
static int scatter_read_file(scatter_reader *r, const char *name, int level)
{
    kvtree_gather_part part;
    int rc = kvtree_gather_file_read(r->from, name, level, &part, r->err);
    if (rc) return rc;
    if (level < 0) r->ranks = part.ranks;
    rc = scatter_check_part(r, &part, name);
    if (rc == 0) rc = scatter_follow(r, &part);
    kvtree_delete(&part.items);
    return rc;
}

/* The root can be read then; scatter_end frees what the ranks take in any case. */
static int scatter_begin(scatter_reader *r)
{
    uint64_t secret;
    if (!r->from) return err_set(r->err, -EINVAL, "read: from nowhere");
    int rc = batch_draw(&secret);
    if (rc) return err_sys(r->err, rc, "draw a random number");
    for (int level = 0; level <= KVTREE_GATHER_LEVEL_MAX; level++)
        r->seen[level].secret = secret | 1;
    return beneath_check_name(r->from->name, r->err);
}

static void scatter_end(scatter_reader *r)
{
    for (int level = 0; level <= KVTREE_GATHER_LEVEL_MAX; level++)
        free(r->seen[level].table);
}

int kvtree_gather_read_all(const kvtree_gather_place *from, int *ranks,
                           kvtree_gather_take *take, void *arg, kvtree_error *err)
{
    scatter_reader r = {.from = from, .take = take, .arg = arg, .err = err};
    int rc = scatter_begin(&r);
    if (rc == 0) rc = scatter_read_file(&r, from->name, -1);
    if (rc == 0) rc = kvtree_gather_check_sum(from->name, r.ranks, r.sum, err);
    scatter_end(&r);
    if (rc == 0 && ranks) *ranks = r.ranks;
    return rc;
}

/* ---- one rank ---- */

static int scatter_seek(scatter_reader *r, const char *name, int level, int rank,
                        kvtree *tree);

/* Items of a level above 0 are keyed by the lowest rank in their file, so the tree is in
 * the file of the last one that is not above it; but a large tree has a file of its own,
 * among the ranks of another one. */
static int scatter_seek_below(scatter_reader *r, const kvtree_gather_part *part, int rank,
                              kvtree *tree)
{
    if (kvtree_sort_int(part->items, KVTREE_SORT_DESCENDING) != 0) return -ENOMEM;
    int rc = -ENOENT;
    kvtree_elem *e = kvtree_elem_first(part->items);
    for (; e && rc == -ENOENT; e = kvtree_elem_next(e))
        if (kvtree_elem_key_int(e) <= rank)
            rc = scatter_seek(r, kvtree_elem_get_first_val(kvtree_elem_hash(e), "FILE"),
                              part->level - 1, rank, tree);
    return rc;
}

/* Moves the tree of a rank from a file at level, or the root (-1), or one below it, to
 * tree. 0, -ENOENT without a text, or another -errno. */
static int scatter_seek(scatter_reader *r, const char *name, int level, int rank,
                        kvtree *tree)
{
    kvtree_gather_part part;
    int rc = kvtree_gather_file_read(r->from, name, level, &part, r->err);
    if (rc) return rc;
    if (level < 0) r->ranks = part.ranks;
    rc = scatter_check_part(r, &part, name);
    if (rc == 0 && part.level > 0) {
        rc = scatter_seek_below(r, &part, rank, tree);
    } else if (rc == 0) {
        char key[16];
        snprintf(key, sizeof key, "%d", rank);
        const kvtree *found = kvtree_get(part.items, key);
        rc = found ? kvtree_merge(tree, found) : -ENOENT;
    }
    kvtree_delete(&part.items);
    return rc == -ENOMEM ? err_sys(r->err, rc, "read %s", name) : rc;
}

int kvtree_gather_read_one(const kvtree_gather_place *from, int rank, int *ranks,
                           kvtree *tree, kvtree_error *err)
{
    scatter_reader r = {.from = from, .err = err};
    int rc = scatter_begin(&r);
    if (!rc) rc = scatter_seek(&r, from->name, -1, rank, tree);
    scatter_end(&r);
    if (rc == 0 && ranks) *ranks = r.ranks;
    if (rc != -ENOENT || r.ranks == 0) return rc;
    if (rank < 0 || rank >= r.ranks)
        return err_set(err, rc, "%s is of %d ranks, and has no rank %d", from->name,
                       r.ranks, rank);
    return err_set(err, -EBADMSG, "%s: rank %d is missing", from->name, rank);
}
