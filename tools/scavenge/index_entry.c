/* SPDX-License-Identifier: BSD-3-Clause */
/* The index entry of a scavenged dataset; see index_entry.h. */
#include "scavenge/index_entry.h"

#include "base/record_change.h"
#include "common/errtext.h"
#include "common/record_size.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include <errno.h>
#include <filo/filo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int index_entry_read(int prefix, kvtree **index, kvtree_error *err)
{
    *index = kvtree_new();
    int rc =
        *index ? scr_index_read(prefix, *index, err) : err_set(err, -ENOMEM, "no memory");
    if (rc) kvtree_delete(index);
    return rc;
}

int scavenge_is_complete(int prefix, const scavenge_key *key, scr_dataset *dataset,
                         kvtree_error *err)
{
    scr_dataset d;
    scr_index_state state;
    kvtree *index;
    int rc = index_entry_read(prefix, &index, err);
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

/* Returns why another dataset in the index protects its files from d; NULL: it does
 * not. */
static const char *index_entry_obstacle(const kvtree *index, const scr_dataset *d,
                                        const scr_dataset *other)
{
    scr_index_state state;
    bool same = strcmp(other->name, d->name) == 0;
    if (scr_index_look(index, other, &state) != 0) return NULL;
    if (same && state.deleting) return "is being deleted";
    if (!scr_dataset_is_newer(other, d)) return NULL;
    if (same && state.complete == 1) return "is newer, and has its name";
    if (same && !scr_index_time(index, other, SCR_INDEX_REASON))
        return "is newer, and may be about to get its name";
    return NULL;
}

int scavenge_check_index(int prefix, const scr_dataset *d, kvtree_error *err)
{
    scr_dataset *list = NULL;
    int count = 0;
    kvtree *index;
    int rc = index_entry_read(prefix, &index, err);
    if (rc) return rc;
    if (scr_index_list(index, &list, &count) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    for (int i = 0; i < count && !rc; i++) {
        const char *why = index_entry_obstacle(index, d, &list[i]);
        if (why)
            rc = err_set(err, -ESTALE, "dataset %d (%.200s) %s", list[i].id, list[i].name,
                         why);
    }
    free(list);
    kvtree_delete(&index);
    return rc;
}

/* ---- names ---- */

/* Names of files, as keys, and the first of them that a map also has. */
typedef struct index_entry_names {
    kvtree *names;
    char common[SCR_NAME_SIZE];
} index_entry_names;

static int index_entry_list(const scavenge_scan *scan, kvtree *names)
{
    for (int i = 0; i < scan->count; i++)
        for (int k = 0; k < scan->ranks[i]->count; k++)
            if (scavenge_is_whole_file(&scan->ranks[i]->files[k]) &&
                !kvtree_set(names, scan->ranks[i]->files[k].name, NULL))
                return -ENOMEM;
    for (int i = 0; i < scan->shared_count; i++)
        if (!kvtree_set(names, scan->shared[i].name, NULL)) return -ENOMEM;
    return 0;
}

static int index_entry_meet(void *arg, int rank, int count, const filo_file files[],
                            kvtree_error *err)
{
    index_entry_names *n = arg;
    (void)rank;
    (void)err;
    for (int i = 0; i < count && !n->common[0]; i++)
        if (kvtree_get(n->names, files[i].name))
            snprintf(n->common, sizeof n->common, "%s", files[i].name);
    return 0;
}

/* A dataset without a usable map has nothing that could be spoiled. */
static int index_entry_compare(const scavenge_prefix *prefix, const scr_dataset *other,
                               index_entry_names *names, kvtree_error *err)
{
    char map[SCR_NAME_SIZE + 32];
    snprintf(map, sizeof map, "%s/" FILO_MAP, other->name);
    const filo_place from = {.folder = prefix->path, .map = map, .dir = &prefix->dir};
    int rc = filo_map_read(&from, NULL, index_entry_meet, names, err);
    if (rc == -ENOENT || rc == FILO_DAMAGED) return 0;
    if (rc) return err_wrap(err, rc, "map of %.200s", other->name);
    if (!names->common[0]) return 0;
    return err_set(err, -ESTALE,
                   "dataset %d (%.100s) is newer, and has a file %.150s, too", other->id,
                   other->name, names->common);
}

int scavenge_check_names(const scavenge_prefix *prefix, const scavenge_scan *scan,
                         kvtree_error *err)
{
    index_entry_names names = {.names = kvtree_new()};
    scr_index_state state;
    scr_dataset *list = NULL;
    int count = 0;
    kvtree *index = NULL;
    int rc = names.names ? index_entry_list(scan, names.names) : -ENOMEM;
    rc = rc ? err_set(err, rc, "no memory") : index_entry_read(prefix->dir, &index, err);
    if (!rc && scr_index_list(index, &list, &count) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    for (int i = 0; i < count && !rc; i++)
        if (list[i].scattered && scr_dataset_is_newer(&list[i], &scan->dataset) &&
            scr_index_look(index, &list[i], &state) == 0 && state.complete == 1)
            rc = index_entry_compare(prefix, &list[i], &names, err);
    free(list);
    kvtree_delete(&index);
    kvtree_delete(&names.names);
    return rc;
}

/* ---- changes ---- */

typedef struct index_entry_change {
    const scr_dataset *d;
    enum scavenge_step step;
    const char *reason;
    bool current;
} index_entry_change;

static bool index_entry_is_newest(const kvtree *index, const scr_dataset *d)
{
    scr_dataset next;
    return scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &next) != 0 ||
           !scr_dataset_is_newer(&next, d);
}

static int index_entry_apply(kvtree *index, void *arg)
{
    index_entry_change *c = arg;
    int rc = scr_index_add(index, c->d, c->step == SCAVENGE_END);
    if (!rc && c->step == SCAVENGE_INCOMPLETE)
        rc = scr_index_mark_incomplete(index, c->d, c->reason);
    if (!rc && c->step == SCAVENGE_END && c->d->ckpt &&
        index_entry_is_newest(index, c->d))
        rc = scr_index_set_current(index, c->d);
    c->current = scr_index_is_current(index, c->d->name);
    return rc ? rc : 1;
}

static int index_entry_apply_location(kvtree *flush, void *arg)
{
    const scr_dataset *d = arg;
    const char *name = scr_flush_file_name(flush, d->id);
    if (!name || strcmp(name, d->name) != 0 ||
        scr_flush_file_has(flush, d->id, SCR_LOCATION_PFS))
        return 0;
    int rc = scr_flush_file_set(flush, d->id, d->name, SCR_LOCATION_PFS, 1);
    return rc ? rc : 1;
}

int scavenge_update_index(int prefix, const scr_dataset *d, enum scavenge_step step,
                          const char *reason, bool *current, kvtree_error *err)
{
    index_entry_change c = {d, step, reason, false};
    const scr_change location = {.prefix = prefix,
                                 .name = SCR_FLUSH_FILE_NAME,
                                 .limit = RECORD_SIZE_SMALL,
                                 .change = index_entry_apply_location,
                                 .arg = (void *)(uintptr_t)d};
    kvtree *tree;
    int rc = index_entry_read(prefix, &tree, err);
    if (rc) return rc;
    kvtree_unset_all(tree);
    rc = scr_index_update(prefix, index_entry_apply, &c, tree, err);
    if (!rc && step == SCAVENGE_END) {
        rc = scr_change_record(&location, tree, err);
        if (rc == -ENOENT || rc == -EBADMSG) rc = 0; /* the flush file is optional */
    }
    kvtree_delete(&tree);
    if (!rc) *current = c.current;
    return rc;
}
