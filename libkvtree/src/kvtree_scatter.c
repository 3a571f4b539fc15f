/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of many ranks are read by one process: the root, and depth first what is
 * below it, so that of each level one file is in memory.
 *
 * Files may come from anyone. What bounds the work: levels fall by one from file to file,
 * and no rank may turn up twice in a level, so no file is followed twice. Ranks of a
 * level are remembered as spans: where they come in order, as in a set that was written
 * in earnest, that is one span for all. */
#include "src/kvtree_gather_private.h"

#include "common/errtext.h"
#include <errno.h>
#include <stdlib.h>

/* ---- ranks that were seen ---- */

typedef struct span {
    int first, last;
} span;

/* Runs of spans, each in order, and each at least twice as long as the next one: a rank
 * is found in few steps, and all are sorted few times. */
enum { RUNS = 64 };

typedef struct spans {
    span *list;
    size_t count, room;
    size_t start[RUNS]; /* of each run in the list */
    int runs;
} spans;

static int compare_spans(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static int append_rank(spans *s, size_t start, int rank)
{
    if (s->count > start && s->list[s->count - 1].last + 1 == rank) {
        s->list[s->count - 1].last = rank;
        return 0;
    }
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        span *list = realloc(s->list, room * sizeof *list);
        if (!list) return -ENOMEM;
        s->list = list;
        s->room = room;
    }
    s->list[s->count++] = (span){rank, rank};
    return 0;
}

/* Makes one run of all spans from start on, none of which overlap. */
static void sort_run(spans *s, size_t start)
{
    size_t kept = start;
    if (s->count == start) return;
    qsort(s->list + start, s->count - start, sizeof *s->list, compare_spans);
    for (size_t i = start + 1; i < s->count; i++) {
        if (s->list[i].first == s->list[kept].last + 1)
            s->list[kept].last = s->list[i].last;
        else
            s->list[++kept] = s->list[i];
    }
    s->count = kept + 1;
}

/* The first rank of these spans, in order, that is among those of another span; or -1. */
static int find_common(const span *run, size_t count, span other)
{
    size_t low = 0, high = count; /* the first span that does not end before the other */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run[middle].last < other.first)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == count || run[low].first > other.last) return -1;
    return run[low].first > other.first ? run[low].first : other.first;
}

/* A rank from start on that is also in a run before; or -1. */
static int find_twice(const spans *s, size_t start)
{
    for (size_t i = start; i < s->count; i++)
        for (int run = 0; run < s->runs; run++) {
            size_t from = s->start[run];
            size_t to = run + 1 < s->runs ? s->start[run + 1] : start;
            int rank = find_common(s->list + from, to - from, s->list[i]);
            if (rank >= 0) return rank;
        }
    return -1;
}

/* Makes what was appended from start on the last run. */
static void push_run(spans *s, size_t start)
{
    while (s->runs > 0 && start - s->start[s->runs - 1] < 2 * (s->count - start)) {
        start = s->start[--s->runs];
        sort_run(s, start);
    }
    s->start[s->runs++] = start;
}

/* ---- reading ---- */

typedef struct reading {
    const kvtree_gather_place *from;
    kvtree_gather_take *take;
    void *arg;
    int top;                                   /* level of the root */
    int ranks;                                 /* as the root tells */
    int64_t told[KVTREE_GATHER_LEVEL_MAX + 1]; /* by the files of each level */
    spans seen[KVTREE_GATHER_LEVEL_MAX + 1];   /* in them */
    char *err;
} reading;

/* Checks what part, which is that of the file name, has to do with those read before. */
static int check_part(reading *r, const kvtree_gather_part *part, const char *name)
{
    spans *seen = &r->seen[part->level];
    size_t start = seen->count;
    r->told[part->level] += part->ranks;
    for (kvtree_elem *e = kvtree_elem_first(part->items); e; e = kvtree_elem_next(e)) {
        int rank = kvtree_elem_key_int(e);
        int rc = kvtree_gather_check_rank(name, rank, r->ranks, r->err);
        if (rc) return rc;
        rc = append_rank(seen, start, rank);
        if (rc) return err_sys(r->err, rc, "read %s", name);
    }
    sort_run(seen, start);
    int twice = find_twice(seen, start);
    if (twice >= 0) return kvtree_gather_listed_twice(name, twice, r->err);
    push_run(seen, start);
    return 0;
}

static int read_file(reading *r, const char *name, int level);

/* Hands out trees, or reads the files that are pointed to. */
static int follow(reading *r, const kvtree_gather_part *part)
{
    int rc = 0;
    for (kvtree_elem *e = kvtree_elem_first(part->items); e && rc == 0;
         e = kvtree_elem_next(e)) {
        kvtree *item = kvtree_elem_hash(e);
        if (part->level > 0)
            rc = read_file(r, kvtree_gather_pointed(item), part->level - 1);
        else if (r->take)
            rc = r->take(r->arg, kvtree_elem_key_int(e), item, r->err);
    }
    return rc;
}

/* Reads a file at level, or the root: -1, and all below it. There are at most
 * KVTREE_GATHER_LEVEL_MAX levels, so it may call itself. */
static int read_file(reading *r, const char *name, int level)
{
    kvtree_gather_part part;
    int rc = kvtree_gather_file_read(r->from, name, level, &part, r->err);
    if (rc) return rc;
    if (level < 0) {
        r->top = part.level;
        r->ranks = part.ranks;
    }
    rc = check_part(r, &part, name);
    if (rc == 0) rc = follow(r, &part);
    kvtree_delete(&part.items);
    return rc;
}

/* What only shows at the end. */
static int check_told(const reading *r)
{
    int rc = 0;
    for (int level = r->top; level >= 0 && rc == 0; level--)
        rc = kvtree_gather_check_told(r->from->name, r->ranks, level, r->told[level],
                                      r->err);
    return rc;
}

int kvtree_gather_read_all(const kvtree_gather_place *from, int *ranks,
                           kvtree_gather_take *take, void *arg, char *err)
{
    reading r = {.from = from, .take = take, .arg = arg, .err = err};
    if (!from) return err_set(err, -EINVAL, "read: from nowhere");
    int rc = beneath_check_name(from->name, err);
    if (rc == 0) rc = read_file(&r, from->name, -1);
    if (rc == 0) rc = check_told(&r);
    for (int level = 0; level <= KVTREE_GATHER_LEVEL_MAX; level++)
        free(r.seen[level].list);
    if (rc == 0 && ranks) *ranks = r.ranks;
    return rc;
}
