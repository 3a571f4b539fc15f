/* SPDX-License-Identifier: BSD-3-Clause */
/* Dataset descriptions; see plan/dataset.h. */
#include "plan/dataset.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include <errno.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Text fields; an empty one is not recorded. */
static const struct dataset_text {
    const char *key;
    size_t offset, size;
} dataset_texts[] = {
#define DATASET_TEXT(key, member)                                                        \
    {                                                                                    \
        key, offsetof(scr_dataset, member), sizeof(((scr_dataset *)0)->member)           \
    }
    DATASET_TEXT("USER", user), DATASET_TEXT("JOBNAME", job_name),
    DATASET_TEXT("JOBID", job_id), DATASET_TEXT("CLUSTER", cluster)};

/* Number fields; a 0 is not recorded. */
static const struct dataset_number {
    const char *key;
    size_t offset;
    int least, most;
} dataset_numbers[] = {{"CKPT", offsetof(scr_dataset, ckpt), 0, SCR_ID_MAX},
                       {"OUTPUT", offsetof(scr_dataset, output), 0, 1},
                       {"SCATTERED", offsetof(scr_dataset, scattered), 0, 1},
                       {"BORROWED", offsetof(scr_dataset, borrowed), 0, 1},
                       {"RANKS", offsetof(scr_dataset, ranks), 1, INT_MAX},
                       {"BYPASS", offsetof(scr_dataset, bypass), 0, 1}};

#define COUNT(array) (sizeof(array) / sizeof *(array))

int scr_dataset_to_tree(const scr_dataset *dataset, kvtree *tree)
{
    const char *object = (const char *)dataset;
    kvtree_unset_all(tree);
    int rc = kvtree_util_set_int(tree, "ID", dataset->id);
    rc = rc ? rc : kvtree_util_set_str(tree, "NAME", dataset->name);
    rc = rc ? rc : kvtree_util_set_int64(tree, "CREATED", dataset->created);
    for (size_t i = 0; i < COUNT(dataset_texts) && !rc; i++) {
        const char *text = object + dataset_texts[i].offset;
        if (text[0]) rc = kvtree_util_set_str(tree, dataset_texts[i].key, text);
    }
    for (size_t i = 0; i < COUNT(dataset_numbers) && !rc; i++) {
        const struct dataset_number *n = &dataset_numbers[i];
        int number;
        memcpy(&number, object + n->offset, sizeof number);
        if (number > 0) rc = kvtree_util_set_int(tree, n->key, number);
    }
    rc = rc ? rc : kvtree_util_set_int64(tree, "FILES", dataset->files);
    rc = rc ? rc : kvtree_util_set_bytecount(tree, "SIZE", dataset->size);
    return rc ? rc : kvtree_util_set_int(tree, "COMPLETE", dataset->complete);
}

/* Reads a number field; a missing one keeps its value. 0 or -EBADMSG. */
static int dataset_get_number(const kvtree *tree, const struct dataset_number *n,
                              scr_dataset *dataset)
{
    int number;
    int rc = kvtree_util_get_int(tree, n->key, &number);
    if (rc == -ENOENT) return 0;
    if (rc || number < n->least || number > n->most) return -EBADMSG;
    memcpy((char *)dataset + n->offset, &number, sizeof number);
    return 0;
}

static int dataset_get_files(const kvtree *tree, scr_dataset *dataset)
{
    int64_t files = 0;
    int rc = kvtree_util_get_int64(tree, "FILES", &files);
    if ((rc && rc != -ENOENT) || files < 0) return -EBADMSG;
    dataset->files = files;
    return 0;
}

static int dataset_get_text(const kvtree *tree, const struct dataset_text *t,
                            scr_dataset *dataset)
{
    char *value;
    int rc = kvtree_util_get_str(tree, t->key, &value);
    if (rc == -ENOENT) return 0;
    if (rc || strlen(value) >= t->size) return -EBADMSG;
    strcpy((char *)dataset + t->offset, value);
    return 0;
}

bool scr_age_is_older(scr_age a, scr_age b)
{
    if (a.created && b.created && a.created != b.created) return a.created < b.created;
    return a.id < b.id;
}

scr_age scr_dataset_age(const scr_dataset *dataset)
{
    return (scr_age){dataset->id, dataset->created};
}

bool scr_dataset_is_older(const scr_dataset *dataset, scr_age age)
{
    return scr_age_is_older(scr_dataset_age(dataset), age);
}

bool scr_dataset_is_newer(const scr_dataset *dataset, const scr_dataset *than)
{
    return scr_age_is_older(scr_dataset_age(than), scr_dataset_age(dataset));
}

bool scr_dataset_is_after(const scr_dataset *dataset, scr_age age)
{
    return scr_age_is_older(age, scr_dataset_age(dataset));
}

void scr_counters_include(scr_counters *counters, const scr_dataset *dataset)
{
    if (dataset->id > counters->id) counters->id = dataset->id;
    if (dataset->ckpt > counters->ckpt) counters->ckpt = dataset->ckpt;
    if (dataset->created > counters->created) counters->created = dataset->created;
}

int64_t scr_counters_date(scr_counters *counters, int64_t now)
{
    if (now > counters->created)
        counters->created = now;
    else if (counters->created < INT64_MAX)
        counters->created++;
    return counters->created;
}

int scr_dataset_check_name(const char *name, kvtree_error *err)
{
    int rc = beneath_check_name(name, err);
    if (!rc && strncmp(name, ".scr", 4) == 0 && (name[4] == 0 || name[4] == '/'))
        rc = err_set(err, -EBADMSG, "\"%.200s\" is a directory of SCR itself", name);
    return rc;
}

bool scr_name_is_reserved(const char *name)
{
    int member, members, id, end = 0;
    if (sscanf(name, "%d_of_%d_in_%d.%n", &member, &members, &id, &end) == 3 && end > 0)
        return true;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, ".scr", 4) == 0 && (part[4] == '/' || part[4] == 0))
            return true;
    }
    return false;
}

int scr_dataset_from_tree(const kvtree *tree, scr_dataset *dataset, kvtree_error *err)
{
    static const struct dataset_number id = {"ID", offsetof(scr_dataset, id), 1,
                                             SCR_ID_MAX},
                                       complete = {"COMPLETE",
                                                   offsetof(scr_dataset, complete), 0, 1};
    static const struct dataset_text name = DATASET_TEXT("NAME", name);
    scr_dataset d;
    memset(&d, 0, sizeof d);
    int bad =
        dataset_get_number(tree, &id, &d) || dataset_get_number(tree, &complete, &d);
    for (size_t i = 0; i < COUNT(dataset_numbers) && !bad; i++)
        bad = dataset_get_number(tree, &dataset_numbers[i], &d);
    bad = bad || dataset_get_files(tree, &d);
    if (bad || d.id == 0)
        return err_set(err, -EBADMSG,
                       "a dataset record has a missing or impossible number");
    int rc = kvtree_util_get_bytecount(tree, "SIZE", &d.size);
    if (rc == -EINVAL)
        return err_set(err, -EBADMSG, "dataset %d has an impossible size", d.id);
    rc = kvtree_util_get_int64(tree, "CREATED", &d.created);
    if (rc == -EINVAL || d.created < 0)
        return err_set(err, -EBADMSG, "dataset %d has an impossible time", d.id);
    bad = dataset_get_text(tree, &name, &d);
    for (size_t i = 0; i < COUNT(dataset_texts) && !bad; i++)
        bad = dataset_get_text(tree, &dataset_texts[i], &d);
    if (bad)
        return err_set(err, -EBADMSG, "dataset %d has a text that is invalid or too long",
                       d.id);
    if (scr_dataset_check_name(d.name, err))
        return err_wrap(err, -EBADMSG, "dataset %d", d.id);
    *dataset = d;
    return 0;
}

void scr_dataset_key(const scr_dataset *dataset, char key[SCR_DATASET_KEY_SIZE])
{
    key[0] = 0;
    if (dataset->created)
        snprintf(key, SCR_DATASET_KEY_SIZE, "%d.%" PRId64, dataset->id, dataset->created);
}

bool scr_dataset_is_same(const kvtree *tree, const scr_dataset *dataset)
{
    scr_dataset d;
    return scr_dataset_from_tree(tree, &d, NULL) == 0 && d.id == dataset->id &&
           d.created == dataset->created && d.ranks == dataset->ranks &&
           strcmp(d.name, dataset->name) == 0;
}
