/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the trees of many ranks, or of one of them, by one process: the root, and depth
 * first the files below it, so that one file of each level is in memory.
 *
 * Files may come from anyone. The work is bounded: levels decrease by one from file to
 * file, and no rank may occur twice in a level, so no file is followed twice. Ranks that
 * do not come in order are recorded as bits, 64 in each entry of a table. */
#include "src/kvtree_gather_private.h"

#include "common/batch.h"
#include "common/errtext.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- ranks that were seen ---- */

typedef struct scatter_entry {
    uint64_t ranks;  /* bits of 64 ranks, starting with 64 * (number - 1) */
    uint32_t number; /* 0: free */
} scatter_entry;

/* A set of ranks: all below `next`, since files are written in the order of ranks, and
 * others in a table that is probed linearly and at most half full. */
typedef struct scatter_set {
    int next;
    scatter_entry *table;
    size_t size, used; /* number of entries; size is a power of 2 */
    uint64_t secret;   /* random, odd: no file can have ranks chosen to collide */
} scatter_set;

/* Returns the entry with that number, or a free one. The table must exist. */
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

/* Adds a rank. -EEXIST if the set already has it. */
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
    int ranks;                                     /* ranks of the root */
    int64_t sum;                                   /* ranks listed at level 0 so far */
    scatter_set seen[KVTREE_GATHER_LEVEL_MAX + 1]; /* ranks seen, per level */
    kvtree_error *err;
} scatter_reader;

/* Checks part, the content of the file name, against the parts read before. */
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

/* Passes on the trees, or reads the files of the pointers. */
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

/* Reads a file at level (-1: the root) and all files below it. The recursion is bounded
 * by KVTREE_GATHER_LEVEL_MAX levels. */
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

/* Prepares reading. scatter_end must be called in any case, to free the sets of ranks. */
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

/* Items above level 0 have the lowest rank of their file as key. The tree is therefore in
 * the file of the last item whose key is not above rank, except that a large tree has a
 * file of its own, among the ranks of another file. */
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

/* Moves the tree of a rank to tree, from a file at level (-1: the root) or from a file
 * below it. Returns 0, -ENOENT without a text, or another -errno. */
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
