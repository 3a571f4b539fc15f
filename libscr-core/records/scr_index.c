/* SPDX-License-Identifier: BSD-3-Clause */
/* Index and summary files; see scr_index.h. */
#include "records/scr_index.h"

#include "common/errtext.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define INDEX_VERSION 1
#define KEY_VERSION "VERSION"
#define KEY_CURRENT "CURRENT"
#define KEY_DIR "DIR"
#define KEY_DSET "DSET"
#define KEY_COMPLETE "COMPLETE"
#define KEY_FLUSHED "FLUSHED"
#define KEY_FETCHED "FETCHED"
#define KEY_FAILED "FAILED"

static int check_version(const kvtree *tree, int wanted, const char *name, char *err)
{
    int version;
    if (kvtree_util_get_int(tree, KEY_VERSION, &version) != 0)
        return err_set(err, -EBADMSG, "%s has no version", name);
    if (version != wanted)
        return err_set(err, -EBADMSG,
                       "%s is of version %d; this program reads version %d", name,
                       version, wanted);
    return 0;
}

int scr_index_read(int prefix, scr_index *index, char *err)
{
    char why[ERRTEXT_SIZE];
    int rc = kvtree_file_read(prefix, SCR_INDEX_NAME, index, why);
    if (rc == -ENOENT) return kvtree_util_set_int(index, KEY_VERSION, INDEX_VERSION);
    rc = rc ? err_set(err, rc, "%s", why)
            : check_version(index, INDEX_VERSION, SCR_INDEX_NAME, err);
    if (rc) kvtree_unset_all(index);
    return rc;
}

int scr_index_write(int prefix, const scr_index *index, char *err)
{
    return kvtree_file_write(prefix, SCR_INDEX_NAME, index, err);
}

/* The dataset id of name, or 0. */
static int id_of(const scr_index *index, const char *name)
{
    int id;
    const kvtree *dir = kvtree_get_kv(index, KEY_DIR, name);
    return kvtree_util_get_int(dir, KEY_DSET, &id) == 0 && id > 0 ? id : 0;
}

static kvtree *entry(const scr_index *index, const char *name)
{
    return kvtree_get_kv(kvtree_get_kv_int(index, KEY_DSET, id_of(index, name)), KEY_DIR,
                         name);
}

int scr_index_remove(scr_index *index, const char *name)
{
    int id = id_of(index, name);
    if (!id) return -ENOENT;
    const char *current = kvtree_get_val(index, KEY_CURRENT);
    if (current && strcmp(current, name) == 0) kvtree_unset(index, KEY_CURRENT);
    kvtree *of_id = kvtree_get_kv_int(index, KEY_DSET, id);
    kvtree_unset_kv(of_id, KEY_DIR, name);
    if (of_id && kvtree_size(of_id) == 0) kvtree_unset_kv_int(index, KEY_DSET, id);
    return kvtree_unset_kv(index, KEY_DIR, name);
}

static int stamp(kvtree *tree, const char *key)
{
    char text[32];
    struct tm local;
    time_t now = time(NULL);
    if (!localtime_r(&now, &local) ||
        !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local))
        return -EINVAL;
    return kvtree_set_kv(tree, key, text) ? 0 : -ENOMEM;
}

int scr_index_add(scr_index *index, const scr_dataset *dataset, int complete)
{
    int id = id_of(index, dataset->name);
    if (id && id != dataset->id) scr_index_remove(index, dataset->name);
    int rc = kvtree_util_set_int(index, KEY_VERSION, INDEX_VERSION);
    kvtree *dir = kvtree_set_kv(index, KEY_DIR, dataset->name);
    kvtree *e = kvtree_set_kv(kvtree_set_kv_int(index, KEY_DSET, dataset->id), KEY_DIR,
                              dataset->name);
    kvtree *description = kvtree_new();
    if (!dir || !e || !description || !kvtree_set(e, KEY_DSET, description)) {
        kvtree_delete(&description);
        return -ENOMEM;
    }
    rc = rc ? rc : kvtree_util_set_int(dir, KEY_DSET, dataset->id);
    rc = rc ? rc : scr_dataset_to_tree(dataset, description);
    rc = rc ? rc : kvtree_util_set_int(e, KEY_COMPLETE, complete);
    kvtree_unset(e, KEY_FAILED);
    return rc || !complete ? rc : stamp(e, KEY_FLUSHED);
}

int scr_index_set_current(scr_index *index, const char *name)
{
    if (!name) return kvtree_unset(index, KEY_CURRENT);
    if (!entry(index, name)) return -ENOENT;
    return kvtree_util_set_str(index, KEY_CURRENT, name);
}

int scr_index_mark_fetched(scr_index *index, const char *name)
{
    kvtree *e = entry(index, name);
    return e ? stamp(e, KEY_FETCHED) : -ENOENT;
}

int scr_index_mark_failed(scr_index *index, const char *name)
{
    kvtree *e = entry(index, name);
    const char *current = kvtree_get_val(index, KEY_CURRENT);
    if (current && strcmp(current, name) == 0) kvtree_unset(index, KEY_CURRENT);
    return e ? stamp(e, KEY_FAILED) : -ENOENT;
}

/* 1 and the description in an entry if it is one of that very dataset. */
static int describes(const kvtree *e, int id, const char *name, scr_dataset *dataset)
{
    scr_dataset d;
    if (scr_dataset_from_tree(kvtree_get(e, KEY_DSET), &d, NULL) != 0 || d.id != id ||
        strcmp(d.name, name) != 0)
        return 0;
    *dataset = d;
    return 1;
}

int scr_index_get(const scr_index *index, const char *name, scr_dataset *dataset)
{
    return describes(entry(index, name), id_of(index, name), name, dataset) ? 0 : -ENOENT;
}

/* 1 and its description if the dataset is a checkpoint that a run may restart from. */
static int can_fetch(const kvtree *e, int id, const char *name, scr_dataset *dataset)
{
    int complete = 0;
    kvtree_util_get_int(e, KEY_COMPLETE, &complete);
    return complete == 1 && !kvtree_get(e, KEY_FAILED) &&
           describes(e, id, name, dataset) && dataset->ckpt > 0;
}

int scr_index_next_fetch(const scr_index *index, int below, scr_dataset *dataset)
{
    scr_dataset candidate, best = {.id = 0};
    const char *current = kvtree_get_val(index, KEY_CURRENT);
    if (below == INT_MAX && current &&
        can_fetch(entry(index, current), id_of(index, current), current, &candidate)) {
        *dataset = candidate;
        return 0;
    }
    const kvtree_elem *id, *dir;
    for (id = kvtree_elem_first(kvtree_get(index, KEY_DSET)); id;
         id = kvtree_elem_next(id)) {
        const kvtree *dirs = kvtree_get(kvtree_elem_hash(id), KEY_DIR);
        for (dir = kvtree_elem_first(dirs); dir; dir = kvtree_elem_next(dir))
            if (can_fetch(kvtree_elem_hash(dir), kvtree_elem_key_int(id),
                          kvtree_elem_key(dir), &candidate) &&
                candidate.id < below && candidate.id > best.id)
                best = candidate;
    }
    if (!best.id) return -ENOENT;
    *dataset = best;
    return 0;
}

void scr_index_highest(const scr_index *index, int *dset, int *ckpt)
{
    scr_dataset d;
    const kvtree_elem *id, *dir;
    *dset = *ckpt = 0;
    for (id = kvtree_elem_first(kvtree_get(index, KEY_DSET)); id;
         id = kvtree_elem_next(id)) {
        const kvtree *dirs = kvtree_get(kvtree_elem_hash(id), KEY_DIR);
        for (dir = kvtree_elem_first(dirs); dir; dir = kvtree_elem_next(dir)) {
            if (scr_dataset_from_tree(kvtree_get(kvtree_elem_hash(dir), KEY_DSET), &d,
                                      NULL) != 0)
                continue;
            if (d.id > *dset) *dset = d.id;
            if (d.ckpt > *ckpt) *ckpt = d.ckpt;
        }
    }
}

int scr_summary_write(int folder, const scr_dataset *dataset, char *err)
{
    kvtree *tree = kvtree_new(), *description = kvtree_new();
    int rc = tree && description ? scr_dataset_to_tree(dataset, description) : -ENOMEM;
    if (!rc) rc = kvtree_util_set_int(tree, KEY_VERSION, SCR_SUMMARY_VERSION);
    if (!rc) rc = kvtree_util_set_int(tree, KEY_COMPLETE, dataset->complete);
    if (!rc && kvtree_set(tree, KEY_DSET, description)) {
        description = NULL;
        rc = kvtree_file_write(folder, SCR_SUMMARY_NAME, tree, err);
    } else {
        rc = err_set(err, -ENOMEM, "%s: no memory", SCR_SUMMARY_NAME);
    }
    kvtree_delete(&tree);
    kvtree_delete(&description);
    return rc;
}

int scr_summary_read(int folder, scr_dataset *dataset, char *err)
{
    kvtree *tree = kvtree_new();
    int rc = kvtree_file_read(folder, SCR_SUMMARY_NAME, tree, err);
    rc = rc ? rc : check_version(tree, SCR_SUMMARY_VERSION, SCR_SUMMARY_NAME, err);
    rc = rc ? rc : scr_dataset_from_tree(kvtree_get(tree, KEY_DSET), dataset, err);
    kvtree_delete(&tree);
    return rc;
}
