/* SPDX-License-Identifier: BSD-3-Clause */
/* Dataset descriptions; see plan/dataset.h. */
#include "plan/dataset.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static int set_text(kvtree *tree, const char *key, const char *text)
{
    return text[0] ? kvtree_util_set_str(tree, key, text) : 0;
}

int scr_dataset_to_tree(const scr_dataset *dataset, kvtree *tree)
{
    kvtree_unset_all(tree);
    int rc = kvtree_util_set_int(tree, "ID", dataset->id);
    rc = rc ? rc : kvtree_util_set_str(tree, "NAME", dataset->name);
    rc = rc ? rc : kvtree_util_set_int64(tree, "CREATED", dataset->created);
    rc = rc ? rc : set_text(tree, "USER", dataset->user);
    rc = rc ? rc : set_text(tree, "JOBNAME", dataset->job_name);
    rc = rc ? rc : set_text(tree, "JOBID", dataset->job_id);
    rc = rc ? rc : set_text(tree, "CLUSTER", dataset->cluster);
    if (!rc && dataset->ckpt > 0) rc = kvtree_util_set_int(tree, "CKPT", dataset->ckpt);
    if (!rc && dataset->output) rc = kvtree_util_set_int(tree, "OUTPUT", 1);
    if (!rc && dataset->named) rc = kvtree_util_set_int(tree, "NAMED", 1);
    if (!rc && dataset->scattered) rc = kvtree_util_set_int(tree, "SCATTERED", 1);
    if (!rc && dataset->ranks > 0)
        rc = kvtree_util_set_int(tree, "RANKS", dataset->ranks);
    if (!rc && dataset->bypass) rc = kvtree_util_set_int(tree, "BYPASS", 1);
    rc = rc ? rc : kvtree_util_set_int(tree, "FILES", dataset->files);
    rc = rc ? rc : kvtree_util_set_bytecount(tree, "SIZE", dataset->size);
    return rc ? rc : kvtree_util_set_int(tree, "COMPLETE", dataset->complete);
}

/* A field that may be missing: *value keeps its default then. */
static int get_int(const kvtree *tree, const char *key, int low, int high, int *value)
{
    int v;
    int rc = kvtree_util_get_int(tree, key, &v);
    if (rc == -ENOENT) return 0;
    if (rc || v < low || v > high) return -EBADMSG;
    *value = v;
    return 0;
}

static int get_flag(const kvtree *tree, const char *key, int *value)
{
    return get_int(tree, key, 0, 1, value);
}

static int get_text(const kvtree *tree, const char *key, char *text, size_t size)
{
    char *value;
    int rc = kvtree_util_get_str(tree, key, &value);
    if (rc == -ENOENT) return 0;
    if (rc || strlen(value) >= size) return -EBADMSG;
    strcpy(text, value);
    return 0;
}

scr_age scr_dataset_age(const scr_dataset *dataset)
{
    return (scr_age){dataset->id, dataset->created};
}

int scr_dataset_is_older(const scr_dataset *dataset, scr_age age)
{
    return dataset->id != age.id ? dataset->id < age.id : dataset->created < age.created;
}

int scr_dataset_is_newer(const scr_dataset *dataset, const scr_dataset *than)
{
    return scr_dataset_is_older(than, scr_dataset_age(dataset));
}

int scr_dataset_is_after(const scr_dataset *dataset, scr_age age)
{
    return dataset->id != age.id ? dataset->id > age.id : dataset->created > age.created;
}

int scr_dataset_check_name(const char *name, char *err)
{
    int rc = beneath_check_name(name, err);
    if (!rc && strncmp(name, ".scr", 4) == 0 && (name[4] == 0 || name[4] == '/'))
        rc = err_set(err, -EBADMSG, "\"%.200s\" is a folder of SCR itself", name);
    return rc;
}

int scr_dataset_from_tree(const kvtree *tree, scr_dataset *dataset, char *err)
{
    scr_dataset d;
    memset(&d, 0, sizeof d);
    int bad = get_int(tree, "ID", 1, SCR_ID_MAX, &d.id) ||
              get_int(tree, "CKPT", 0, SCR_ID_MAX, &d.ckpt) ||
              get_flag(tree, "OUTPUT", &d.output) || get_flag(tree, "NAMED", &d.named) ||
              get_flag(tree, "SCATTERED", &d.scattered) ||
              get_flag(tree, "BYPASS", &d.bypass) ||
              get_int(tree, "RANKS", 1, INT_MAX, &d.ranks) ||
              get_int(tree, "FILES", 0, INT_MAX, &d.files) ||
              get_flag(tree, "COMPLETE", &d.complete);
    if (bad || d.id == 0)
        return err_set(err, -EBADMSG,
                       "a dataset record has a missing or impossible number");
    int rc = kvtree_util_get_bytecount(tree, "SIZE", &d.size);
    if (rc == -EINVAL)
        return err_set(err, -EBADMSG, "dataset %d has an impossible size", d.id);
    rc = kvtree_util_get_int64(tree, "CREATED", &d.created);
    if (rc == -EINVAL || d.created < 0)
        return err_set(err, -EBADMSG, "dataset %d has an impossible time", d.id);
    if (get_text(tree, "NAME", d.name, sizeof d.name) ||
        get_text(tree, "USER", d.user, sizeof d.user) ||
        get_text(tree, "JOBID", d.job_id, sizeof d.job_id) ||
        get_text(tree, "JOBNAME", d.job_name, sizeof d.job_name) ||
        get_text(tree, "CLUSTER", d.cluster, sizeof d.cluster))
        return err_set(err, -EBADMSG, "dataset %d has a text that is too long or not one",
                       d.id);
    if (scr_dataset_check_name(d.name, err))
        return err_wrap(err, -EBADMSG, "dataset %d", d.id);
    *dataset = d;
    return 0;
}

int scr_dataset_is_same(const kvtree *tree, const scr_dataset *dataset)
{
    scr_dataset d;
    return scr_dataset_from_tree(tree, &d, NULL) == 0 && d.id == dataset->id &&
           d.created == dataset->created && d.ranks == dataset->ranks &&
           strcmp(d.name, dataset->name) == 0;
}
