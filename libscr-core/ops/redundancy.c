/* SPDX-License-Identifier: BSD-3-Clause */
/* Redundancy: the sets of each descriptor, and the protection of the files of a dataset.
 */
#include "ops/context.h"

#include "cache/removal.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- sets ---- */

/* Finds the value that all processes in the failure group of this one share. Agreed. */
static int redundancy_find_group(const scr_cache *cache, const scr_reddesc *d,
                                 const char **value, kvtree_error *err)
{
    *value = scr_groups_value(&cache->descs->groups, d->group, cache->job->node_name);
    int rc = 0;
    if (!*value)
        rc = err_set(err, -EINVAL, "node %s has no value for the group %s in GROUPS",
                     cache->job->node_name, d->group);
    return agree(cache->job->world, rc, err);
}

/* Reports ranks whose files a scheme cannot protect. */
static void redundancy_report_alone(const scr_job *job, const scr_reddesc *d,
                                    const redset *set)
{
    char which[32] = "";
    int alone =
        strcmp(d->type, "SINGLE") != 0 && redset_get_place(set)->scheme == REDSET_SINGLE;
    if (!d->implied) snprintf(which, sizeof which, "CKPT=%d: ", d->index);
    alone = scr_job_sum(job, alone);
    if (alone == job->ranks)
        scr_say(job->report, SCR_MSG_REDUNDANCY_NONE,
                "%sall ranks are in one failure group, so %s cannot protect their files; "
                "SINGLE is used: cached checkpoints do not survive the loss of a node",
                which, d->type);
    else if (alone)
        scr_say(job->report, SCR_MSG_REDUNDANCY_PARTIAL,
                "%sthe files of %d of %d ranks are not protected, because their %s has "
                "more ranks than the others together; spread the ranks evenly",
                which, alone, job->ranks,
                strcmp(d->group, "NODE") == 0 ? "node" : "failure group");
}

/* Reports sets that are too small for the requested failures. */
static void redundancy_report_fewer(const scr_job *job, const scr_reddesc *d,
                                    const redset *set)
{
    const redset_place *place = redset_get_place(set);
    int least = place->scheme == REDSET_SINGLE ? INT_MAX : place->failures;
    least = scr_job_min(job, least);
    if (least < d->set_failures)
        scr_say(job->report, SCR_MSG_REDUNDANCY_REDUCED,
                "SET_FAILURES=%d, but sets of %d members survive the loss of %d only",
                d->set_failures, least + 1, least);
}

/* Collective. Creates the redundancy sets of a descriptor. */
static int redundancy_begin_sets(struct scr *scr, const scr_reddesc *d, redset **set)
{
    kvtree_error err = {""};
    redset_config config = {.set_size = d->set_size,
                            .failures = 1,
                            .piece = scr->set.message,
                            .no_checksums = !scr->set.crc_on_copy,
                            .unsynced = 1};
    if (redundancy_find_group(&scr->cache, d, &config.failure_group, &err))
        return scr_fail(&scr->report, SCR_MSG_REDUNDANCY_GROUP_INVALID, SCR_ERR_CONFIG,
                        "%s", err.text);
    redset_scheme_from_name(d->type, &config.scheme);
    if (config.scheme == REDSET_RS) config.failures = d->set_failures;
    int rc = redset_create(scr->job.world, &config, set, &err);
    if (rc)
        return scr_fail(&scr->report, SCR_MSG_REDUNDANCY_NOT_CREATED, SCR_ERR_REDUNDANCY,
                        "%s", err.text);
    redundancy_report_alone(&scr->job, d, *set);
    if (config.scheme == REDSET_RS) redundancy_report_fewer(&scr->job, d, *set);
    return SCR_SUCCESS;
}

int scr_redundancy_begin(struct scr *scr)
{
    const scr_reddescs *r = &scr->descs.reddescs;
    kvtree_error err = {""};
    scr->cache.sets = calloc((size_t)r->count, sizeof *scr->cache.sets);
    int rc = scr->cache.sets ? 0 : err_set(&err, -ENOMEM, "no memory");
    if (agree(scr->job.world, rc, &err))
        return scr_fail(&scr->report, SCR_MSG_MEMORY_EXHAUSTED, SCR_FAILURE, "%s",
                        err.text);
    for (int i = 0; i < r->count && !rc; i++)
        if (scr->cache.store_of_desc[i] >= 0)
            rc = redundancy_begin_sets(scr, &r->list[i], &scr->cache.sets[i]);
    return rc;
}

int scr_redundancy_late(struct scr *scr, const scr_reddesc *desc)
{
    redset **set = &scr->cache.sets[desc->index];
    return *set ? SCR_SUCCESS : redundancy_begin_sets(scr, desc, set);
}

/* ---- files ---- */

/* The files that redset protects. */
struct protected
{
    scr_cache *cache;
    const scr_dataset *dataset;
    redset_manifest manifest;
};

/* Local. Records the files: from here on the map lists the dataset. */
static int redundancy_record(void *arg, kvtree_error *err)
{
    struct stat st;
    char path[SCR_CACHED_NAME_SIZE];
    struct protected *p = arg;
    scr_cache *cache = p->cache;
    const scr_dataset *dataset = p->dataset;
    redset_manifest *manifest = &p->manifest;
    int rc = redset_file_name(&manifest->place, manifest->file);
    scr_cached_name(dataset->id, manifest->file, path);
    rc = rc ? rc : beneath_stat(scr_cache_of(cache, dataset->id)->fd, path, &st, err);
    manifest->file_size = rc ? 0 : (uint64_t)st.st_size;
    rc = rc ? rc : scr_map_record(cache, dataset, manifest, err);
    return rc ? rc : scr_filemaps_write(cache, err);
}

int scr_protect(scr_cache *cache, const scr_dataset *dataset, int count,
                redset_file *files, kvtree_error *err)
{
    redset *set = cache->sets[scr_cached_find(cache, dataset->id)->desc.index];
    struct protected p = {.cache = cache,
                          .dataset = dataset,
                          .manifest = {.rank = cache->job->rank,
                                       .count = count,
                                       .files = files,
                                       .place = *redset_get_place(set),
                                       .checksums = cache->set->crc_on_copy}};
    char *spare = scr_removal_spare(cache, dataset->id);
    const redset_extras extras = {.spare = spare, .last = redundancy_record, .arg = &p};
    char *folder = scr_dataset_folder(cache, dataset->id);
    kvtree *about = kvtree_new();
    int rc = folder && about ? scr_dataset_to_tree(dataset, about) : -ENOMEM;
    rc = redset_encode_with(set, rc ? NULL : folder, about, count, files, &extras, err);
    kvtree_delete(&about);
    free(folder);
    free(spare);
    return rc;
}

void scr_files_free(int count, redset_file *files)
{
    for (int i = 0; files && i < count; i++) {
        kvtree *meta = (kvtree *)(uintptr_t)files[i].meta;
        kvtree_delete(&meta);
    }
    free(files);
}
