/* SPDX-License-Identifier: BSD-3-Clause */
/* The index of a prefix folder and a dataset that is saved; see enter.h. */
#include "scavenge/enter.h"

#include "base/record_change.h"
#include "common/errtext.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int read_index(int prefix, kvtree **index, char *err)
{
    *index = kvtree_new();
    int rc =
        *index ? scr_index_read(prefix, *index, err) : err_set(err, -ENOMEM, "no memory");
    if (rc) kvtree_delete(index);
    return rc;
}

int scavenge_is_complete(int prefix, const scavenge_key *key, scr_dataset *dataset,
                         char *err)
{
    scr_dataset d;
    scr_index_state state;
    kvtree *index;
    int rc = read_index(prefix, &index, err);
    if (rc) return rc;
    if (scr_index_get(index, key->name, &d) == 0 && d.id == key->id &&
        d.created == key->created && scr_index_look(index, &d, &state) == 0 &&
        state.complete == 1) {
        *dataset = d;
        rc = 1;
    }
    kvtree_delete(&index);
    return rc;
}

/* Why d must not get its place, because of another one that is in the index; NULL: it
 * may. */
static const char *why_not(const kvtree *index, const scr_dataset *d,
                           const scr_dataset *other)
{
    scr_index_state state;
    int same = strcmp(other->name, d->name) == 0;
    if (scr_index_look(index, other, &state) != 0) return NULL;
    if (same && state.deleting) return "is being deleted";
    if (!scr_dataset_is_newer(other, d)) return NULL;
    if (same && state.complete == 1) return "is newer, and has its name";
    if (same && !scr_index_time(index, other, SCR_INDEX_REASON))
        return "is newer, and may be about to get its name";
    if (d->scattered && other->scattered && state.complete == 1)
        return "is newer, and may have files of the same names";
    return NULL;
}

int scavenge_check_index(int prefix, const scr_dataset *d, char *err)
{
    scr_dataset *list = NULL;
    int count = 0;
    kvtree *index;
    int rc = read_index(prefix, &index, err);
    if (rc) return rc;
    if (scr_index_list(index, &list, &count) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    for (int i = 0; i < count && !rc; i++) {
        const char *why = why_not(index, d, &list[i]);
        if (why)
            rc = err_set(err, -ESTALE, "dataset %d (%.200s) %s", list[i].id, list[i].name,
                         why);
    }
    free(list);
    kvtree_delete(&index);
    return rc;
}

/* ---- changes ---- */

typedef struct change {
    const scr_dataset *d;
    enum scavenge_step step;
    const char *reason;
    int current;
} change;

static int is_current(const kvtree *index, const scr_dataset *d)
{
    return scr_index_is_current(index, d->name);
}

/* 1 when it is the newest that a run can begin with. */
static int is_newest(const kvtree *index, const scr_dataset *d)
{
    scr_dataset next;
    return scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &next) != 0 ||
           !scr_dataset_is_newer(&next, d);
}

static int apply(kvtree *index, void *arg)
{
    change *c = arg;
    int rc = scr_index_add(index, c->d, c->step == SCAVENGE_END);
    if (!rc && c->step == SCAVENGE_INCOMPLETE)
        rc = scr_index_mark_incomplete(index, c->d, c->reason);
    if (!rc && c->step == SCAVENGE_END && c->d->ckpt && is_newest(index, c->d))
        rc = scr_index_set_current(index, c->d);
    c->current = is_current(index, c->d);
    return rc ? rc : 1;
}

static int apply_location(kvtree *flush, void *arg)
{
    const scr_dataset *d = arg;
    const char *name = scr_flush_file_name(flush, d->id);
    if (!name || strcmp(name, d->name) != 0 ||
        scr_flush_file_has(flush, d->id, SCR_LOCATION_PFS))
        return 0;
    int rc = scr_flush_file_set(flush, d->id, d->name, SCR_LOCATION_PFS, 1);
    return rc ? rc : 1;
}

/* A flush file that is missing or damaged tells nothing, and need not. */
static int set_location(int prefix, const scr_dataset *d, char *err)
{
    kvtree *flush = kvtree_new();
    const scr_change c = {.prefix = prefix,
                          .name = SCR_FLUSH_FILE_NAME,
                          .change = apply_location,
                          .arg = (void *)(uintptr_t)d};
    int rc =
        flush ? scr_change_record(&c, flush, err) : err_set(err, -ENOMEM, "no memory");
    kvtree_delete(&flush);
    return rc == -ENOENT || rc == -EBADMSG ? 0 : rc;
}

int scavenge_enter(int prefix, const scr_dataset *d, enum scavenge_step step,
                   const char *reason, int *current, char *err)
{
    change c = {d, step, reason, 0};
    kvtree *index;
    int rc = read_index(prefix, &index, err);
    if (rc) return rc;
    kvtree_unset_all(index);
    rc = scr_index_update(prefix, apply, &c, index, err);
    kvtree_delete(&index);
    if (!rc && step == SCAVENGE_END) rc = set_location(prefix, d, err);
    if (!rc) *current = c.current;
    return rc;
}
