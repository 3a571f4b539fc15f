/* SPDX-License-Identifier: BSD-3-Clause */
/* The index in memory; see prefix/index.h. Its file is in prefix/index_file.c.
 */
#include "prefix/index.h"

#include "base/versions.h"
#include "plan/retain.h"

#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEY_VERSION "VERSION"
#define KEY_CURRENT "CURRENT"
#define KEY_DIR "DIR"
#define KEY_DSET "DSET"
#define KEY_COMPLETE "COMPLETE"
#define KEY_FLUSHED SCR_INDEX_FLUSHED
#define KEY_FETCHED SCR_INDEX_FETCHED
#define KEY_FAILED SCR_INDEX_FAILED
#define KEY_ATTEMPTS "ATTEMPTS"
#define KEY_DELETING "DELETING"
#define KEY_REASON SCR_INDEX_REASON
#define KEY_REFUSED "REFUSED"

int scr_index_start(scr_index *index)
{
    return kvtree_util_set_int(index, KEY_VERSION, SCR_INDEX_VERSION);
}

/* ---- entries ---- */

/* A walk over all entries, whatever their content. */
typedef struct walk {
    const kvtree_elem *id, *dir; /* NULL: before the first entry */
} walk;

static bool index_next_entry(const scr_index *index, walk *w)
{
    if (w->dir) w->dir = kvtree_elem_next(w->dir);
    while (!w->dir) {
        w->id = w->id ? kvtree_elem_next(w->id)
                      : kvtree_elem_first(kvtree_get(index, KEY_DSET));
        if (!w->id) return false;
        w->dir = kvtree_elem_first(kvtree_get(kvtree_elem_hash(w->id), KEY_DIR));
    }
    return true;
}

/* Returns the entry of an id and a name. */
static kvtree *index_entry_at(const scr_index *index, const scr_dataset *d)
{
    return kvtree_get_kv(kvtree_get_kv_int(index, KEY_DSET, d->id), KEY_DIR, d->name);
}

/* Returns the entry if it belongs to that dataset: two jobs in one prefix directory may
 * have used the same id and name. An unknown time of creation matches any. */
static kvtree *index_entry(const scr_index *index, const scr_dataset *d)
{
    kvtree *e = index_entry_at(index, d);
    int64_t created = 0;
    kvtree_util_get_int64(kvtree_get(e, KEY_DSET), "CREATED", &created);
    return created && d->created && created != d->created ? NULL : e;
}

static scr_index_state index_state(const kvtree *e)
{
    scr_index_state state = {.failed = kvtree_get(e, KEY_FAILED) != NULL};
    kvtree_util_get_int(e, KEY_COMPLETE, &state.complete);
    kvtree_util_get_int(e, KEY_ATTEMPTS, &state.attempts);
    kvtree_util_get_int(e, KEY_DELETING, &state.deleting);
    kvtree_util_get_int(e, KEY_REFUSED, &state.refused);
    return state;
}

/* Whether the entry has a valid description, which is stored in *dataset. The description
 * must have the name and the id of the entry; the id must not be written as "+1" or
 * "01". */
static bool index_describes(const scr_index *index, const walk *w, scr_dataset *dataset)
{
    scr_dataset d;
    const kvtree *e = kvtree_elem_hash(w->dir);
    if (scr_dataset_from_tree(kvtree_get(e, KEY_DSET), &d, NULL) != 0 ||
        strcmp(d.name, kvtree_elem_key(w->dir)) != 0 || index_entry_at(index, &d) != e)
        return false;
    *dataset = d;
    return true;
}

int scr_index_look(const scr_index *index, const scr_dataset *dataset,
                   scr_index_state *state)
{
    const kvtree *e = index_entry(index, dataset);
    if (!e) return -ENOENT;
    *state = index_state(e);
    return 0;
}

int scr_index_get(const scr_index *index, const char *name, scr_dataset *dataset)
{
    scr_dataset d;
    int best = -1, found = 0;
    for (walk w = {NULL, NULL}; index_next_entry(index, &w);) {
        if (strcmp(kvtree_elem_key(w.dir), name) != 0 || !index_describes(index, &w, &d))
            continue;
        int complete = index_state(kvtree_elem_hash(w.dir)).complete == 1;
        if (complete < best || (complete == best && d.id < found)) continue;
        best = complete;
        found = d.id;
        *dataset = d;
    }
    return best < 0 ? -ENOENT : 0;
}

bool scr_index_is_current(const scr_index *index, const char *name)
{
    const char *current = kvtree_get_val(index, KEY_CURRENT);
    return current && strcmp(current, name) == 0;
}

/* Removes all entries of that name except that of the id keep. Returns their number. */
static int index_remove_others(scr_index *index, const char *name, int keep)
{
    const kvtree_elem *id, *next;
    int removed = 0;
    for (id = kvtree_elem_first(kvtree_get(index, KEY_DSET)); id; id = next) {
        kvtree *of_id = kvtree_elem_hash(id);
        next = kvtree_elem_next(id);
        if (kvtree_elem_key_int(id) == keep || !kvtree_get_kv(of_id, KEY_DIR, name))
            continue;
        removed++;
        kvtree_unset_kv(of_id, KEY_DIR, name);
        if (kvtree_size(of_id) == 0)
            kvtree_unset_kv(index, KEY_DSET, kvtree_elem_key(id));
    }
    return removed;
}

int scr_index_remove(scr_index *index, const scr_dataset *dataset)
{
    if (!index_remove_others(index, dataset->name, 0)) return -ENOENT;
    if (scr_index_is_current(index, dataset->name)) kvtree_unset(index, KEY_CURRENT);
    return kvtree_unset_kv(index, KEY_DIR, dataset->name);
}

const char *scr_index_time(const scr_index *index, const scr_dataset *dataset,
                           const char *what)
{
    const char *last = NULL;
    const kvtree_elem *e =
        kvtree_elem_first(kvtree_get(index_entry(index, dataset), what));
    for (; e; e = kvtree_elem_next(e))
        if (!last || strcmp(kvtree_elem_key(e), last) > 0) last = kvtree_elem_key(e);
    return last;
}

const char *scr_index_why_not(const scr_dataset *dataset, const scr_index_state *state)
{
    if (dataset->ckpt == 0) return "it is not a checkpoint";
    if (state->deleting) return "it is being deleted";
    if (state->complete != 1) return "it is not complete on the prefix directory";
    return NULL;
}

static int index_stamp_at(kvtree *tree, const char *key, time_t when)
{
    char text[32];
    struct tm local;
    if (!localtime_r(&when, &local) ||
        !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local))
        return -EINVAL;
    return kvtree_set_kv(tree, key, text) ? 0 : -ENOMEM;
}

static int index_stamp(kvtree *tree, const char *key)
{
    return index_stamp_at(tree, key, time(NULL));
}

/* Returns the entry of a dataset, which is created if missing, with its description; NULL
 * without memory. */
static kvtree *index_put(scr_index *index, const scr_dataset *d, int complete)
{
    int rc = scr_index_start(index);
    kvtree *dir = kvtree_set_kv(index, KEY_DIR, d->name);
    kvtree *e =
        kvtree_set_kv(kvtree_set_kv_int(index, KEY_DSET, d->id), KEY_DIR, d->name);
    kvtree *description = kvtree_new();
    if (!dir || !e || !description || !kvtree_set(e, KEY_DSET, description)) {
        kvtree_delete(&description);
        return NULL;
    }
    rc = rc ? rc : kvtree_util_set_int(dir, KEY_DSET, d->id);
    rc = rc ? rc : scr_dataset_to_tree(d, description);
    rc = rc ? rc : kvtree_util_set_int(e, KEY_COMPLETE, complete);
    return rc ? NULL : e;
}

static void index_unset_failed(kvtree *e)
{
    kvtree_unset(e, KEY_FAILED);
    kvtree_unset(e, KEY_REFUSED);
}

int scr_index_add(scr_index *index, const scr_dataset *dataset, int complete)
{
    const bool refused = index_state(index_entry(index, dataset)).refused;
    kvtree *e = index_put(index, dataset, complete);
    if (!e) return -ENOMEM;
    if (!refused) index_unset_failed(e);
    kvtree_unset(e, KEY_ATTEMPTS);
    kvtree_unset(e, KEY_DELETING);
    kvtree_unset(e, KEY_REASON);
    if (!complete) return 0;
    index_remove_others(index, dataset->name, dataset->id);
    return index_stamp(e, KEY_FLUSHED);
}

static int index_choose_newest(scr_index *index)
{
    scr_dataset newest;
    kvtree_unset(index, KEY_CURRENT); /* otherwise scr_index_next_fetch would return it */
    if (scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &newest) != 0) return 0;
    return kvtree_util_set_str(index, KEY_CURRENT, newest.name) ? -ENOMEM : 0;
}

/* Enters a dataset that a search found. A time that cannot be converted is omitted. */
static int index_put_found(scr_index *index, const scr_dataset *found)
{
    kvtree *e = index_put(index, found, found->complete);
    if (!e) return -ENOMEM;
    if (!found->complete || !found->flushed) return 0;
    return index_stamp_at(e, KEY_FLUSHED, (time_t)found->flushed) == -ENOMEM ? -ENOMEM
                                                                             : 0;
}

int scr_index_restore(scr_index *index, const scr_dataset *found, int count)
{
    for (int i = 0; i < count; i++)
        if (index_put_found(index, &found[i]) != 0) return -ENOMEM;
    return index_choose_newest(index);
}

int scr_index_enter(scr_index *index, const scr_dataset *found, int count, int *added)
{
    scr_dataset current;
    const char *name = kvtree_get_val(index, KEY_CURRENT);
    int chosen = name && scr_index_get(index, name, &current) == 0;
    *added = 0;
    if (scr_index_start(index) != 0) return -ENOMEM;
    for (int i = 0; i < count; i++) {
        if (index_entry_at(index, &found[i])) continue;
        if (index_put_found(index, &found[i]) != 0) return -ENOMEM;
        ++*added;
    }
    return chosen ? 0 : index_choose_newest(index);
}

/* ---- changes ---- */

int scr_index_set_current(scr_index *index, const scr_dataset *dataset)
{
    if (!index_entry(index, dataset)) return -ENOENT;
    return kvtree_util_set_str(index, KEY_CURRENT, dataset->name);
}

int scr_index_choose(scr_index *index, const scr_dataset *dataset)
{
    kvtree *e = index_entry(index, dataset);
    if (!e) return -ENOENT;
    index_unset_failed(e);
    kvtree_unset(e, KEY_ATTEMPTS);
    return scr_index_set_current(index, dataset);
}

int scr_index_mark_tried(scr_index *index, const scr_dataset *dataset)
{
    kvtree *e = index_entry(index, dataset);
    int attempts = index_state(e).attempts;
    if (!e) return -ENOENT;
    return kvtree_util_set_int(e, KEY_ATTEMPTS,
                               attempts > 0 && attempts < INT_MAX ? attempts + 1 : 1);
}

int scr_index_mark_fetched(scr_index *index, const scr_dataset *dataset)
{
    int rc = scr_index_mark_tried(index, dataset);
    return rc ? rc : index_stamp(index_entry(index, dataset), KEY_FETCHED);
}

int scr_index_unmark_tried(scr_index *index, const scr_dataset *dataset)
{
    kvtree *e = index_entry(index, dataset);
    int attempts = index_state(e).attempts;
    if (!e) return -ENOENT;
    return attempts > 1 ? kvtree_util_set_int(e, KEY_ATTEMPTS, attempts - 1)
                        : kvtree_unset(e, KEY_ATTEMPTS);
}

int scr_index_mark_incomplete(scr_index *index, const scr_dataset *dataset,
                              const char *reason)
{
    kvtree *e = index_entry(index, dataset);
    int rc = e ? kvtree_util_set_int(e, KEY_COMPLETE, 0) : -ENOENT;
    return rc ? rc : kvtree_util_set_str(e, KEY_REASON, reason);
}

int scr_index_mark_good(scr_index *index, const scr_dataset *dataset)
{
    kvtree *e = index_entry(index, dataset);
    return e ? kvtree_unset(e, KEY_ATTEMPTS) : -ENOENT;
}

int scr_index_mark_failed(scr_index *index, const scr_dataset *dataset)
{
    kvtree *e = index_entry(index, dataset);
    if (!e) return -ENOENT;
    if (scr_index_is_current(index, dataset->name)) kvtree_unset(index, KEY_CURRENT);
    kvtree_unset(e, KEY_ATTEMPTS);
    return index_stamp(e, KEY_FAILED);
}

int scr_index_mark_refused(scr_index *index, const scr_dataset *dataset)
{
    int rc = scr_index_mark_failed(index, dataset);
    return rc ? rc : kvtree_util_set_int(index_entry(index, dataset), KEY_REFUSED, 1);
}

int scr_index_mark_deleting(scr_index *index, const scr_dataset *dataset)
{
    int rc = 0;
    if (!index_entry(index, dataset)) return -ENOENT;
    for (walk w = {NULL, NULL}; index_next_entry(index, &w);) {
        kvtree *e = kvtree_elem_hash(w.dir);
        if (strcmp(kvtree_elem_key(w.dir), dataset->name) != 0) continue;
        rc = rc ? rc : kvtree_util_set_int(e, KEY_COMPLETE, 0);
        rc = rc ? rc : kvtree_util_set_int(e, KEY_DELETING, 1);
    }
    if (scr_index_is_current(index, dataset->name)) kvtree_unset(index, KEY_CURRENT);
    return rc;
}

int scr_index_drop_marks(scr_index *index, scr_index_check *check, void *arg)
{
    int dropped = 0;
    for (walk w = {NULL, NULL}; index_next_entry(index, &w);) {
        kvtree *e = kvtree_elem_hash(w.dir);
        if (!kvtree_get(e, KEY_DELETING) || check(arg, kvtree_elem_key(w.dir)) != -EPERM)
            continue;
        kvtree_unset(e, KEY_DELETING);
        dropped++;
    }
    return dropped;
}

/* ---- decisions ---- */

static bool index_is_usable(const kvtree *e)
{
    const scr_index_state state = index_state(e);
    return state.complete == 1 && !state.failed && state.attempts < SCR_INDEX_ATTEMPTS;
}

static bool index_is_exhausted(const kvtree *e)
{
    const scr_index_state state = index_state(e);
    return state.complete == 1 && !state.failed && state.attempts >= SCR_INDEX_ATTEMPTS;
}

bool scr_index_has_newer(const scr_index *index, const scr_dataset *dataset)
{
    scr_dataset known;
    if (scr_index_get(index, dataset->name, &known) != 0) return false;
    const scr_index_state state = index_state(index_entry(index, &known));
    return state.complete == 1 && !state.failed && scr_dataset_is_newer(&known, dataset);
}

int scr_index_get_current(const scr_index *index, scr_dataset *dataset)
{
    const char *current = kvtree_get_val(index, KEY_CURRENT);
    return current && scr_index_get(index, current, dataset) == 0 && dataset->ckpt > 0
               ? 0
               : -ENOENT;
}

int scr_index_next_fetch(const scr_index *index, scr_age below, const kvtree *tried,
                         scr_dataset *dataset)
{
    scr_dataset d, best = {.id = 0};
    if (below.id == SCR_AGE_ANY.id && scr_index_get_current(index, &d) == 0) {
        if (index_is_usable(index_entry(index, &d)) && !kvtree_get(tried, d.name)) {
            *dataset = d;
            return 0;
        }
        if (index_is_exhausted(index_entry(index, &d))) below = (scr_age){d.id + 1, 0};
    }
    for (walk w = {NULL, NULL}; index_next_entry(index, &w);)
        if (index_is_usable(kvtree_elem_hash(w.dir)) && index_describes(index, &w, &d) &&
            d.ckpt > 0 && scr_dataset_is_older(&d, below) && !kvtree_get(tried, d.name) &&
            scr_dataset_is_newer(&d, &best))
            best = d;
    if (!best.id) return -ENOENT;
    *dataset = best;
    return 0;
}

static int index_order_by_id(const void *a, const void *b)
{
    const scr_dataset *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (x->created > y->created) - (x->created < y->created);
}

int scr_index_list(const scr_index *index, scr_dataset **list, int *count)
{
    int size = 0, n = 0;
    for (walk w = {NULL, NULL}; index_next_entry(index, &w);)
        size++;
    scr_dataset *all = calloc((size_t)size + 1, sizeof *all);
    if (!all) return -ENOMEM;
    for (walk w = {NULL, NULL}; index_next_entry(index, &w);)
        if (index_describes(index, &w, &all[n])) n++;
    qsort(all, (size_t)n, sizeof *all, index_order_by_id);
    *list = all;
    *count = n;
    return 0;
}

static scr_retain_row index_retain_row(const scr_index *index, const scr_window *window,
                                       const scr_dataset *d)
{
    return (scr_retain_row){.checkpoint = d->ckpt > 0 && !d->output,
                            .complete = index_state(index_entry(index, d)).complete == 1,
                            .usable = index_is_usable(index_entry(index, d)),
                            .deleting = index_state(index_entry(index, d)).deleting != 0,
                            .pinned = d->id == window->flushed ||
                                      d->id == window->reading ||
                                      kvtree_getf(window->stay, "%d", d->id) ||
                                      scr_index_is_current(index, d->name)};
}

int scr_index_leaving(const scr_index *index, const scr_window *window,
                      scr_dataset **list, int *count)
{
    int all, out = 0;
    scr_dataset *sorted;
    if (scr_index_list(index, &sorted, &all) != 0) return -ENOMEM;
    scr_retain_row *rows = calloc((size_t)all + 1, sizeof *rows);
    if (!rows) {
        free(sorted);
        return -ENOMEM;
    }
    for (int i = 0; i < all; i++)
        rows[i] = index_retain_row(index, window, &sorted[i]);
    scr_plan_retain(rows, all, window->keep);
    for (int i = 0; i < all; i++)
        if (rows[i].leaves) sorted[out++] = sorted[i];
    free(rows);
    *list = sorted;
    *count = out;
    return 0;
}

void scr_index_names(const scr_index *index, char *text, size_t size)
{
    scr_dataset *list = NULL;
    int count = 0;
    size_t n = 0;
    snprintf(text, size, "none");
    if (scr_index_list(index, &list, &count) != 0) return;
    for (int i = count - 1; i >= 0; i--) {
        size_t more = strlen(list[i].name) + (n ? 2 : 0);
        if (n + more + 24 >= size) { /* room for the end of the list */
            snprintf(text + n, size - n, "%sand %d more", n ? " " : "", i + 1);
            break;
        }
        n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", list[i].name);
    }
    free(list);
}

scr_counters scr_index_highest(const scr_index *index)
{
    scr_dataset d;
    scr_counters highest = {0, 0, 0};
    for (walk w = {NULL, NULL}; index_next_entry(index, &w);) {
        const kvtree *description = kvtree_get(kvtree_elem_hash(w.dir), KEY_DSET);
        if (scr_dataset_from_tree(description, &d, NULL) == 0)
            scr_counters_include(&highest, &d);
    }
    return highest;
}
