/* SPDX-License-Identifier: BSD-3-Clause */
/* Rebuilding the cache after a restart: distributes every cached dataset, oldest first,
 * to its ranks, and rebuilds lost files (SCR Developer Guide 1.2, section 2.26.5). A
 * dataset that is complete by names and sizes is not read before it is used
 * (docs/decisions/0018-what-a-restart-waits-for.md). */
#include "ops/context.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "prefix/flush_file.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The smallest dataset id above last in a map; INT_MAX: none. */
static int recover_least_above(const scr_filemap *map, int last)
{
    int least = INT_MAX;
    for (const kvtree_elem *d = scr_filemap_datasets(map); d; d = kvtree_elem_next(d)) {
        const int id = kvtree_elem_key_int(d);
        if (id > last && id < least) least = id;
    }
    return least;
}

/* The same in the maps of all ranks. */
static int recover_next_id(const scr_cache *cache, int last)
{
    return scr_job_min(cache->job, recover_least_above(cache->map, last));
}

/* The weight of a description of a dataset: a newer dataset of an id outweighs an older
 * one, and a description from a header outweighs one that only filemaps have. */
static int64_t recover_weight(const scr_filemap *map, const scr_dataset *d, int rank)
{
    const int64_t header = (int64_t)1 << 61; /* beyond all times in microseconds */
    return d->created + (scr_catalog_has_header(map, d->id, rank) ? header : 0);
}

/* Finds the description of dataset id with the largest weight in a map; returns its
 * weight, or -1 if there is none. */
static int64_t recover_local_description(const scr_filemap *map, int id,
                                         scr_dataset *best)
{
    const kvtree_elem *r = scr_filemap_ranks_of(map, id);
    int64_t most = -1;
    for (; r; r = kvtree_elem_next(r)) {
        scr_dataset d;
        const int rank = kvtree_elem_key_int(r);
        const kvtree *tree = scr_filemap_get_dataset(map, id, rank);
        if (scr_dataset_from_tree(tree, &d, NULL) != 0 || d.id != id || !d.complete)
            continue;
        int64_t weight = recover_weight(map, &d, rank);
        if (weight <= most) continue;
        *best = d;
        most = weight;
    }
    return most;
}

/* Collective. Gives all ranks the same description: an id may have been used twice if a
 * node returns with an old cache. False: no rank has a usable description. */
static bool recover_agree_on_description(const scr_cache *cache, int id,
                                         scr_dataset *dataset)
{
    int64_t mine = recover_local_description(cache->map, id, dataset), most = mine;
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, cache->job->world);
    if (most < 0) return false;
    int root = scr_job_min(cache->job, mine == most ? cache->job->rank : INT_MAX);
    MPI_Bcast(dataset, sizeof *dataset, MPI_BYTE, root, cache->job->world);
    return true;
}

/* Name of this rank's redundancy file, which points into the map; NULL: it has none. */
static const char *recover_redundancy_file(const scr_cache *cache, int id)
{
    return scr_cached_redundancy(cache, id, cache->job->rank);
}

/* Collective. Reads the files, unless glance, and rebuilds lost ones; err names these,
 * even on success. */
static int recover_restore(redset *set, const char *folder, scr_cached *kept, int glance,
                           redset_manifest **manifest, int *rebuilt, kvtree_error *err)
{
    int lost, rc = glance ? 0 : redset_verify(set, folder, &lost, err);
    rc = rc ? rc : redset_measure(set, folder, manifest, err);
    int damaged = rc == REDSET_RECOVERABLE;
    if (damaged) rc = redset_rebuild(set, folder, manifest, rebuilt, err);
    kept->unread = rc != 0 || (glance && !damaged);
    return rc;
}

static int recover_rebuild_files(struct scr *scr, const scr_dataset *dataset, int glance,
                                 int *rebuilt, kvtree_error *err)
{
    redset *set = NULL;
    redset_manifest *manifest = NULL;
    scr_cached *kept = scr_cached_find(&scr->cache, dataset->id);
    char *folder = scr_dataset_folder(&scr->cache, dataset->id);
    int rc = folder ? 0 : err_set(err, -ENOMEM, "no memory");
    rc = agree(scr->job.world, rc, err);
    rc =
        rc ? rc
           : redset_recover(scr->job.world, folder,
                            recover_redundancy_file(&scr->cache, dataset->id), &set, err);
    if (!rc) redset_set_piece(set, scr->set.message);
    if (!rc)
        redset_set_progress(set, scr_tally_reporter(&scr->tally),
                            scr_tally_arg(&scr->tally, SCR_TALLY_FILES));
    rc = rc ? rc : recover_restore(set, folder, kept, glance, &manifest, rebuilt, err);
    if (!rc)
        rc = agree(scr->job.world, scr_map_record(&scr->cache, dataset, manifest, err),
                   err);
    redset_manifest_free(manifest);
    redset_free(set);
    free(folder);
    return rc;
}

/* ---- lost redundancy ---- */

/* Lists the files of this rank for redset. Names and meta data point into a copy of their
 * entries, because the encode changes the map. */
static int recover_list_files(const scr_cache *cache, int id, kvtree *copy, int *count,
                              redset_file **files)
{
    static const char *const derived[] = {SCR_META_FILE, SCR_META_RANKS,
                                          SCR_META_COMPLETE, SCR_META_SIZE, SCR_META_CRC};
    int rc = kvtree_merge(copy, scr_filemap_files(cache->map, id, cache->job->rank));
    *files = calloc((size_t)kvtree_size(copy) + 1, sizeof **files);
    if (rc || !*files) return -ENOMEM;
    const kvtree_elem *f = kvtree_elem_first(copy);
    for (; f; f = kvtree_elem_next(f)) {
        kvtree *meta = kvtree_elem_hash(f);
        if (!scr_meta_is_full(f)) continue;
        for (size_t k = 0; k < sizeof derived / sizeof *derived; k++)
            kvtree_unset(meta, derived[k]);
        (*files)[(*count)++] = (redset_file){
            .name = scr_filemap_name_of(kvtree_elem_key(f), cache->job->owner, id),
            .meta = meta};
    }
    return 0;
}

/* Local. Removes the redundancy file of the former sets, unless the new file has the same
 * name. */
static void recover_remove_old_redundancy(const scr_cache *cache, int id, const char *old)
{
    char path[SCR_CACHED_NAME_SIZE];
    const char *new = recover_redundancy_file(cache, id);
    if (!old || (new &&strcmp(old, new) == 0)) return;
    scr_cached_name(id, old, path);
    beneath_unlink(scr_cache_of(cache, id)->fd, path, NULL);
}

/* Collective. Protects the files again after more redundancy was lost or unreadable than
 * the scheme tolerates, for the reason rc: each rank has its own files, and they must
 * match their checksums. */
static int recover_protect_again(struct scr *scr, const scr_dataset *dataset, int rc,
                                 kvtree_error *err)
{
    scr_cached *kept = scr_cached_find(&scr->cache, dataset->id);
    const scr_reddesc *desc =
        scr_reddesc_for_dataset(&scr->descs.reddescs, dataset->ckpt, dataset->output);
    const char *name = recover_redundancy_file(&scr->cache, dataset->id);
    char *old = name ? strdup(name) : NULL;
    kvtree_error why = {""}, lost;
    redset_file *files = NULL;
    kvtree *copy = kvtree_new();
    int count = 0, bad = scr_cache_compare(&scr->cache, dataset->id, &why);
    lost = *err;
    bad = agree(scr->job.world, bad, &why);
    if (!bad && scr->cache.sets[desc->index]) {
        rc = recover_list_files(&scr->cache, dataset->id, copy, &count, &files);
        if (rc) err_set(err, rc, "no memory");
        rc = agree(scr->job.world, rc, err);
        kept->desc = *desc;
        rc = rc ? rc : scr_protect(&scr->cache, dataset, count, files, err);
    }
    if (!rc) {
        kept->unread = 0;
        recover_remove_old_redundancy(&scr->cache, dataset->id, old);
        scr_log_event e = scr_event_of(SCR_LOG_REBUILD_COMPLETE, dataset);
        scr_event(&scr->report, SCR_MSG_REDUNDANCY_RENEWED, &e,
                  "dataset %d (%s) lost its redundancy, but none of its files; it is "
                  "protected again: %s",
                  dataset->id, dataset->name, lost.text);
    }
    kvtree_delete(&copy);
    free(files);
    free(old);
    return rc;
}

/* ---- reports ---- */

/* An event about files; sums is this rank's share {files, bytes}, and becomes the
 * total. */
static scr_log_event recover_event(struct scr *scr, scr_log_kind kind,
                                   const scr_dataset *dataset, double start,
                                   unsigned long sums[2])
{
    scr_log_event e = scr_event_of(kind, dataset);
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UNSIGNED_LONG, MPI_SUM, scr->job.world);
    e.from = e.to = scr_cache_path(&scr->cache, dataset->id);
    e.files = (int64_t)sums[0];
    e.bytes = (int64_t)sums[1];
    e.secs = MPI_Wtime() - start;
    return e;
}

static int recover_distribute(struct scr *scr, const scr_dataset *dataset,
                              scr_moved *moved, kvtree_error *err)
{
    double start = MPI_Wtime();
    int rc = scr_distribute(&scr->cache, dataset, moved, err);
    if (rc) return rc;
    scr_log_event e =
        recover_event(scr, SCR_LOG_DISTRIBUTE_COMPLETE, dataset, start, moved->sums);
    if (moved->sums[0])
        scr_event(&scr->report, SCR_MSG_REBUILD_FILES_MOVED, &e,
                  "%lu files of dataset %d (%s) were moved to their ranks",
                  moved->sums[0], dataset->id, dataset->name);
    return 0;
}

/* rebuilt: files of this rank were rebuilt; why: the reason. Returns the number of ranks
 * with rebuilt files. */
static int recover_report_rebuilt(struct scr *scr, const scr_dataset *dataset,
                                  int rebuilt, double start, const char *why)
{
    unsigned long sums[2] = {0, 0};
    int ranks = scr_job_sum(&scr->job, rebuilt);
    if (!ranks) return 0;
    if (rebuilt) scr_cached_sums(&scr->cache, dataset->id, sums);
    scr_log_event e = recover_event(scr, SCR_LOG_REBUILD_COMPLETE, dataset, start, sums);
    e.rebuilt = ranks;
    scr_event(&scr->report, SCR_MSG_REBUILD_COMPLETE, &e,
              "dataset %d (%s) is complete again: files of %d of %d ranks were rebuilt "
              "in %.3f s: %s",
              dataset->id, dataset->name, ranks, dataset->ranks, e.secs, why);
    return ranks;
}

static void recover_report_complete(struct scr *scr, const scr_dataset *dataset,
                                    double start)
{
    unsigned long none[2] = {0, 0};
    scr_log_event e = recover_event(scr, SCR_LOG_REBUILD_COMPLETE, dataset, start, none);
    scr_event(&scr->report, SCR_MSG_REBUILD_NOT_NEEDED, &e,
              "dataset %d (%s) is in the cache with all its files", dataset->id,
              dataset->name);
}

/* Collective. Abandons a dataset for this run; its remains stay, because another run, on
 * other nodes, may rebuild them. rc: why this run cannot use it; positive: too much is
 * lost. An SCR code: without memory to record this, the run could start from the
 * beginning. */
static int recover_abandon(struct scr *scr, const scr_dataset *dataset, double start,
                           int rc, const char *err)
{
    kvtree_error why = {""};
    scr_log_event e = scr_event_of(SCR_LOG_REBUILD_FAILED, dataset);
    e.secs = MPI_Wtime() - start;
    if (rc > 0)
        scr_event(&scr->report, SCR_MSG_REBUILD_IMPOSSIBLE, &e,
                  "dataset %d (%s) is lost from the cache: %s; its remains stay until a "
                  "newer checkpoint is complete",
                  dataset->id, dataset->name, err);
    else
        scr_event(&scr->report, SCR_MSG_REBUILD_FAILED, &e,
                  "dataset %d (%s) could not be rebuilt, and is not used in this run: "
                  "%s; it stays in the cache until a newer checkpoint is complete",
                  dataset->id, dataset->name, err);
    if (scr_cached_note(&scr->cache, dataset,
                        rc > 0 ? SCR_CACHED_USELESS : SCR_CACHED_UNREADABLE, &why) == 0)
        return SCR_SUCCESS;
    return scr_fail(&scr->report, SCR_MSG_MEMORY_EXHAUSTED, SCR_FAILURE, "%s", why.text);
}

/* Reports a dataset of another number of ranks. */
static void recover_leave_to_others(struct scr *scr, const scr_dataset *dataset)
{
    scr_say(
        &scr->report, SCR_MSG_CACHE_OTHER_RANKS,
        "dataset %d (%s) in the cache was written by %d ranks, and this run has %d; "
        "it is not used: start with %d ranks to use it, or with SCR_RESTART_RANKS=any if "
        "the application can restart from it, or with SCR_CACHE_PURGE=1 to delete it",
        dataset->id, dataset->name, dataset->ranks, scr->job.ranks, dataset->ranks);
    scr_cached_set_state(&scr->cache, dataset->id, SCR_CACHED_OTHER_RANKS);
}

/* Collective. Locates a dataset. *usable: this run can use it; otherwise the reason was
 * reported. An SCR code. */
static int recover_find(struct scr *scr, int id, scr_dataset *dataset, bool *usable)
{
    kvtree_error err = {""};
    *usable = false;
    /* scr_cache_sweep handles the directory of a dataset without description */
    if (!recover_agree_on_description(&scr->cache, id, dataset)) return SCR_SUCCESS;
    const scr_reddesc *desc =
        scr_reddesc_for_dataset(&scr->descs.reddescs, dataset->ckpt, dataset->output);
    int rc = scr_stores_locate(&scr->cache, dataset, desc, &err);
    if (scr->set.cache_purge || !scr->set.distribute) {
        scr_cache_drop(scr, id);
        return SCR_SUCCESS;
    }
    scr_counters_include(&scr->lifecycle.last, dataset);
    if (rc) return recover_abandon(scr, dataset, MPI_Wtime(), rc, err.text);
    *usable = dataset->ranks == scr->job.ranks || scr->set.any_ranks;
    if (!*usable) recover_leave_to_others(scr, dataset);
    return SCR_SUCCESS;
}

/* Collective. Turns a loss beyond the redundancy into an I/O error if files could not be
 * moved: they still exist at their senders. */
static int recover_classify(const scr_job *job, const scr_moved *moved, int rc)
{
    return rc > 0 && scr_job_max(job, moved->failed) ? -EIO : rc;
}

/* Local. Files that could not be sent to their rank, which has rebuilt them, leave the
 * map: each file belongs to one process. */
static void recover_drop_of_others(scr_cache *cache, int id)
{
    const kvtree_elem *next, *r = scr_filemap_ranks_of(cache->map, id);
    for (; r; r = next) {
        const int rank = kvtree_elem_key_int(r);
        next = kvtree_elem_next(r);
        if (rank != cache->job->rank) scr_drop_files(cache, id, rank, 0);
    }
}

/* Collective, agreed. Moves the files of this run's ranks to them, or rebuilds them. */
static int recover_own(struct scr *scr, const scr_dataset *dataset, int *rebuilt,
                       kvtree_error *err)
{
    scr_moved moved = {.failed = 0};
    const int whole = scr_distribute_is_done(&scr->cache, dataset);
    int rc = whole ? 0 : recover_distribute(scr, dataset, &moved, err);
    rc = rc ? rc : recover_rebuild_files(scr, dataset, 1, rebuilt, err);
    if ((rc > 0 || rc == -EIO) && whole)
        rc = recover_protect_again(scr, dataset, rc, err);
    if (!rc) recover_drop_of_others(&scr->cache, dataset->id);
    return recover_classify(&scr->job, &moved, rc);
}

/* Collective, agreed. Uses files of another number of ranks, all of which are read. */
static int recover_adopt(struct scr *scr, const scr_dataset *dataset, int *rebuilt,
                         kvtree_error *err)
{
    int rc = scr_adopt(&scr->cache, dataset, rebuilt, err);
    scr_cached_find(&scr->cache, dataset->id)->unread = rc != 0;
    if (!rc) err_set(err, 0, "%d ranks wrote it", dataset->ranks);
    return rc;
}

/* Collective. Recovers one dataset; an SCR code. */
static int recover_one(struct scr *scr, int id)
{
    scr_dataset dataset;
    kvtree_error err = {""};
    int rebuilt = 0;
    double start = MPI_Wtime();
    scr_progress progress;
    bool usable;
    int code = recover_find(scr, id, &dataset, &usable);
    if (code || !usable) return code;
    scr_log_event e = scr_event_of(SCR_LOG_REBUILD_START, &dataset);
    scr_event(&scr->report, SCR_MSG_REBUILD_STARTED, &e,
              "dataset %d (%s) is found in the cache", id, dataset.name);
    int rc = scr_dataset_folder_make(&scr->cache, id, &err);
    rc = agree(scr->job.world, rc, &err);
    scr_show_progress(scr, &progress, SCR_MSG_REBUILD_PROGRESS, "check and rebuild",
                      &dataset);
    if (!rc)
        rc = dataset.ranks == scr->job.ranks
                 ? recover_own(scr, &dataset, &rebuilt, &err)
                 : recover_adopt(scr, &dataset, &rebuilt, &err);
    scr_progress_end(&progress);
    if (rc) return recover_abandon(scr, &dataset, start, rc, err.text);
    if (!recover_report_rebuilt(scr, &dataset, rebuilt, start, err.text))
        recover_report_complete(scr, &dataset, start);
    static const scr_location_change whole[] = {{SCR_LOCATION_CACHE, 1},
                                                {SCR_LOCATION_FLUSHING, 0}};
    scr_locations(&scr->prefix, &dataset, 2, whole);
    return SCR_SUCCESS;
}

int scr_cache_ensure(struct scr *scr, int id)
{
    const scr_cached *kept = scr_cached_find(&scr->cache, id);
    kvtree_error err = {""};
    scr_dataset dataset;
    int rebuilt = 0;
    double start = MPI_Wtime();
    scr_progress progress;
    if (!kept || kept->state != SCR_CACHED_GOOD || !kept->unread)
        return kept && kept->state == SCR_CACHED_GOOD;
    /* every rank has the dataset, or files would have been missing */
    int rc = scr_cached_get(&scr->cache, id, &dataset);
    rc = agree(scr->job.world, rc ? rc : scr_dataset_folder_make(&scr->cache, id, &err),
               &err);
    scr_show_progress(scr, &progress, SCR_MSG_REBUILD_PROGRESS, "check and rebuild",
                      &dataset);
    if (!rc)
        rc = dataset.ranks == scr->job.ranks
                 ? recover_rebuild_files(scr, &dataset, 0, &rebuilt, &err)
                 : recover_adopt(scr, &dataset, &rebuilt, &err);
    scr_progress_end(&progress);
    if (rc)
        recover_abandon(scr, &dataset, start, rc, err.text);
    else if (recover_report_rebuilt(scr, &dataset, rebuilt, start, err.text) &&
             scr_filemaps_write(&scr->cache, &err) != 0)
        scr_fail_local(&scr->report, SCR_MSG_CACHE_FILEMAP_NOT_WRITTEN, 0, "%s",
                       err.text);
    return rc == 0;
}

/* On rank 0, which may have no files of a dataset. Removes datasets from the flush file
 * that left the cache between two runs. */
static void recover_clean_flush_file(struct scr *scr)
{
    kvtree_error err = {""};
    const scr_cache *cache = &scr->cache;
    int *ids = scr->job.rank ? NULL : calloc((size_t)cache->count + 1, sizeof *ids);
    if (!ids) return;
    for (int i = 0; i < cache->count; i++)
        ids[i] = cache->list[i].d.id;
    scr_flush_file_keep(scr->prefix.flush_file, ids, cache->count);
    free(ids);
    if (scr_flush_file_write(scr->prefix.fd, scr->prefix.flush_file, &err) != 0)
        scr_say(&scr->report, SCR_MSG_FLUSH_FILE_NOT_WRITTEN,
                "the flush file could not be written: %s", err.text);
}

int scr_rebuild_cache(struct scr *scr)
{
    kvtree_error err = {""};
    if (scr->restart.elsewhere > scr->lifecycle.last.id)
        scr->lifecycle.last.id = scr->restart.elsewhere;
    if (scr->set.cache_purge || !scr->set.distribute) scr->restart.elsewhere = 0;
    for (int id = recover_next_id(&scr->cache, 0); id != INT_MAX;
         id = recover_next_id(&scr->cache, id)) {
        int code = recover_one(scr, id);
        if (code) return code;
    }
    if (scr_cache_sweep(&scr->cache, &scr->lifecycle.last.id, &err) != 0)
        return scr_fail(&scr->report, SCR_MSG_MEMORY_EXHAUSTED, SCR_FAILURE, "%s",
                        err.text);
    if (scr_filemaps_begin(&scr->cache, &err) != 0)
        scr_say(&scr->report, SCR_MSG_CACHE_FILEMAP_NOT_WRITTEN,
                "filemaps could not be written, so commands may not find datasets in the "
                "cache: %s",
                err.text);
    recover_clean_flush_file(scr);
    return SCR_SUCCESS;
}
