/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetch: copies a checkpoint from the prefix directory to the cache, and protects it
 * there like a new one (SCR Developer Guide 1.2, section 2.26.12). */
#include "ops/fetch.h"

#include "base/path.h"
#include "cache/brought.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "plan/part_name.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include <errno.h>
#include <filo/filo_mpi.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fetch_mark(struct scr *scr, const scr_dataset *d, scr_index_changer *change)
{
    kvtree_error err = {""};
    if (scr->job.rank == 0 && scr_index_change(&scr->prefix, d, change, &err) != 0)
        scr_say(&scr->report, SCR_MSG_INDEX_NOT_WRITTEN,
                "the index could not be written: %s", err.text);
}

/* Sets the path of each file in the cache. */
static int fetch_set_local_paths(struct scr *scr, const scr_dataset *d,
                                 const scr_place *place, int count, filo_file *files,
                                 kvtree_error *err)
{
    char *folder = scr_dataset_folder(&scr->cache, d->id);
    int rc = folder ? 0 : -ENOMEM;
    for (int i = 0; i < count && !rc; i++) {
        int n = asprintf(&files[i].local, "%s/%s%s", folder, place->cache_prefix,
                         files[i].name);
        if (n < 0) {
            files[i].local = NULL;
            rc = -ENOMEM;
        } else if (n >= SCR_MAX_FILENAME) {
            rc = -ENAMETOOLONG;
        }
    }
    free(folder);
    return rc ? err_sys(err, rc, "files of dataset %d", d->id) : 0;
}

static kvtree *fetch_meta_of(const scr_prefix *prefix, const char *name)
{
    kvtree *meta = kvtree_new();
    char *path = scr_path_join(prefix->path, name);
    int rc = path ? kvtree_util_set_str(meta, SCR_META_TYPE, SCR_META_FULL) : -ENOMEM;
    rc = rc ? rc : kvtree_util_set_str(meta, SCR_META_ORIG, name);
    rc = rc ? rc : scr_meta_set_place(meta, path);
    free(path);
    if (rc) kvtree_delete(&meta);
    return meta;
}

/* Applies the redundancy scheme to the fetched files and records them. */
static int fetch_protect(struct scr *scr, const scr_dataset *d, int count,
                         const filo_file *files, kvtree_error *err)
{
    redset_file *list = calloc((size_t)count + 1, sizeof *list);
    char *folder = scr_dataset_folder(&scr->cache, d->id);
    int rc = list && folder ? 0 : err_set(err, -ENOMEM, "no memory");
    for (int i = 0; i < count && !rc; i++) {
        list[i].name = files[i].local + strlen(folder) + 1;
        list[i].meta = fetch_meta_of(&scr->prefix, list[i].name);
        if (!list[i].meta) rc = err_set(err, -ENOMEM, "no memory");
    }
    rc = agree(scr->job.world, rc, err);
    rc = rc ? rc : scr_protect(&scr->cache, d, count, list, err);
    scr_files_free(count, list);
    free(folder);
    return rc;
}

/* The redundancy descriptor for the dataset in this run. */
static const scr_reddesc *fetch_descriptor(const struct scr *scr, const scr_dataset *d)
{
    return scr_reddesc_for_dataset(&scr->descs.reddescs, d->ckpt, d->output);
}

/* The number of the dataset's store. */
static int fetch_store(const struct scr *scr, const scr_dataset *d)
{
    return scr->cache.store_of_desc[fetch_descriptor(scr, d)->index];
}

/* Local. */
static int fetch_make_folder(struct scr *scr, const scr_dataset *d, kvtree_error *err)
{
    if (scr_cached_add(&scr->cache, d, fetch_store(scr, d), fetch_descriptor(scr, d)) !=
        0)
        return err_set(err, -ENOMEM, "no memory");
    return scr_dataset_folder_make(&scr->cache, d->id, err);
}

/* Collective. Notes whether other users may have chosen names in the map, even if they
 * cannot change it now. */
static void fetch_note_borrowed(struct scr *scr, scr_dataset *cached, int count,
                                const filo_file *files)
{
    for (int i = 0; i < count; i++)
        cached->borrowed |= files[i].others != 0;
    MPI_Allreduce(MPI_IN_PLACE, &cached->borrowed, 1, MPI_INT, MPI_MAX, scr->job.world);
    scr_cached_find(&scr->cache, cached->id)->d.borrowed = cached->borrowed;
}

static int fetch_files(struct scr *scr, const scr_dataset *d, kvtree_error *err)
{
    scr_place place = {.folder = NULL};
    filo_options options = {.checksum = 1,
                            .width = scr->set.fetch_width,
                            .turn = scr->job.node_rank,
                            .progress = scr_tally_reporter(&scr->tally),
                            .progress_arg = scr_tally_arg(&scr->tally, SCR_TALLY_FILES),
                            .buffer = scr->set.file_buffer};
    filo_file *files = NULL;
    scr_dataset cached = *d;
    options.has_group = scr->prefix.has_group;
    options.group = scr->prefix.group;
    int count = 0,
        rc = scr_place_find_others(&scr->prefix, d->name, &cached.borrowed, err);
    if (rc) return rc;
    rc = scr_place_of(&scr->prefix, d, &place);
    if (rc) err_set(err, rc, "no memory");
    rc = rc ? rc : fetch_make_folder(scr, &cached, err);
    rc = rc ? rc : scr_fetch_check_summary(scr, d, err);
    rc = agree(scr->job.world, rc, err);
    rc = rc ? rc
            : scr_place_read_map(&scr->prefix, d, &place, &options, &count, &files, err);
    if (!rc) rc = scr_direct_check(&scr->prefix, d, place.folder, count, files, err);
    if (!rc) count = scr_part_drop_shared(count, files);
    if (!rc) fetch_note_borrowed(scr, &cached, count, files);
    if (!rc)
        rc = agree(scr->job.world,
                   fetch_set_local_paths(scr, d, &place, count, files, err), err);
    rc = rc ? rc : filo_fetch(scr->job.world, place.folder, count, files, &options, err);
    rc = rc ? rc : fetch_protect(scr, &cached, count, files, err);
    filo_files_free(count, files);
    free(place.folder);
    return rc;
}

static scr_log_event fetch_event(const struct scr *scr, const scr_dataset *d,
                                 scr_log_kind kind, double start)
{
    scr_log_event e = scr_event_of(kind, d);
    e.from = scr->prefix.path;
    e.to = fetch_store(scr, d) < 0 ? "" : scr->cache.stores[fetch_store(scr, d)].folder;
    e.files = d->files;
    e.bytes = (int64_t)d->size;
    e.secs = MPI_Wtime() - start;
    return e;
}

/* Collective, agreed. Opens the store for extracted files, and removes those of an
 * earlier run. */
static int fetch_prepare_extraction(struct scr *scr, const scr_dataset *d,
                                    kvtree_error *err)
{
    const int number = scr_fetch_open_store(scr, d, err);
    const scr_store_dir *store = number < 0 ? NULL : &scr->cache.stores[number];
    int rc = number < 0 ? number : 0;
    if (!rc && store->rank == 0) rc = scr_brought_clear(store, err);
    return agree(scr->job.world, rc, err);
}

/* Collective, agreed. */
static int fetch_read_in_place(struct scr *scr, const scr_dataset *d, int compare,
                               kvtree_error *err)
{
    const bool extracts = d->ranks != scr->job.ranks || scr->set.fetch_bypass;
    int rc = agree(scr->job.world, scr_fetch_check_summary(scr, d, err), err);
    rc = rc ? rc : scr_direct_open(&scr->prefix, d, compare, extracts, err);
    if (!rc && scr->prefix.direct.extracts) rc = fetch_prepare_extraction(scr, d, err);
    if (!rc) scr->prefix.direct.dataset = *d;
    return rc;
}

static void fetch_record_copies(struct scr *scr, const scr_dataset *d)
{
    int cache = fetch_store(scr, d);
    static const scr_location_change copies[] = {{SCR_LOCATION_CACHE, 1},
                                                 {SCR_LOCATION_PFS, 1}};
    scr_locations(&scr->prefix, d, 2, copies);
    scr_cache_make_room(scr, cache, scr->cache.stores[cache].capacity + 1, 1);
}

/* Collective, agreed. Fetches the dataset into the cache. */
static int fetch_to_cache(struct scr *scr, const scr_dataset *d, kvtree_error *err)
{
    int cache = fetch_store(scr, d);
    /* if the fetch fails, the newest cached checkpoint is still needed */
    scr_cache_make_room(scr, cache, scr->cache.stores[cache].capacity, 1);
    const scr_cached *remains = scr_cached_find(&scr->cache, d->id);
    /* unusable remains make way for the complete dataset */
    if (remains && scr_cached_is_unusable(remains)) scr_cache_delete(scr, d->id);
    int rc = fetch_files(scr, d, err);
    if (rc) scr_cache_delete(scr, d->id);
    return rc;
}

/* Collective. Prefixes an agreed text with the node name of the rank that it names. */
static void fetch_name_node(const scr_job *job, int code, kvtree_error *err)
{
    char name[SCR_NODE_SIZE];
    int root = 0;
    if (job->rank == 0 && sscanf(err->text, "rank %d:", &root) != 1 &&
        sscanf(err->text, "on %*d ranks, first rank %d:", &root) != 1)
        root = 0;
    if (root < 0 || root >= job->ranks) root = 0;
    root = scr_job_first(job, root);
    memcpy(name, job->node_name, sizeof name);
    MPI_Bcast(name, (int)sizeof name, MPI_CHAR, root, job->world);
    err_wrap(err, code, "node %s", name);
}

/* Collective, agreed. Reads the dataset on the prefix directory, because the cache cannot
 * hold it, for the reason in err; the copy on the prefix directory may be intact. */
static int fetch_fall_back(struct scr *scr, const scr_dataset *d, kvtree_error *err)
{
    kvtree_error first, why = {""};
    int rc = fetch_read_in_place(scr, d, 1, &why);
    if (!rc)
        scr_say(&scr->report, SCR_MSG_FETCH_READ_IN_PLACE,
                "%s could not be copied to the cache and is read in %s directly: %s",
                d->name, scr->prefix.path, err->text);
    if (rc > 0) return err_set(err, rc, "%s", why.text);
    first = *err;
    return rc ? err_set(err, rc, "%.250s; and in place: %s", first.text, why.text) : 0;
}

int scr_fetch_open_store(struct scr *scr, const scr_dataset *d, kvtree_error *err)
{
    const scr_reddesc *desc = fetch_descriptor(scr, d);
    int rc = fetch_store(scr, d) < 0 ? scr_stores_open_late(&scr->cache, desc, err) : 0;
    return rc < 0 ? rc : fetch_store(scr, d);
}

/* Collective, agreed. Opens a store for a dataset whose descriptor bypasses the cache.
 * err has the reason for this, and gets the reason of a failure. */
static int fetch_open_substitute(struct scr *scr, const scr_dataset *d, kvtree_error *err)
{
    kvtree_error first, why = {"its redundancy"};
    int rc = scr_fetch_open_store(scr, d, &why);
    if (rc >= 0)
        rc = scr_redundancy_late(scr, fetch_descriptor(scr, d)) == SCR_SUCCESS ? 0 : -EIO;
    first = *err;
    return rc ? err_set(err, rc, "%.250s; and a cache cannot be had: %s", first.text,
                        why.text)
              : 0;
}

/* What the cache has under the id of a dataset to be fetched. */
typedef enum fetch_namesake {
    FETCH_NONE, /* nothing, the dataset itself, or unusable remains of an older one, which
                   make way */
    FETCH_EARLIER, /* an older dataset of the same job: of an earlier calculation, as no
                      calculation uses an id twice */
    FETCH_OTHER,   /* any other dataset, maybe its only copy */
} fetch_namesake;

/* Collective. Returns the highest value of all ranks. */
static fetch_namesake fetch_find_namesake(const scr_cache *cache, const scr_dataset *d)
{
    fetch_namesake most = FETCH_NONE;
    const scr_cached *cached = scr_cached_find(cache, d->id);
    const bool remains = cached && scr_cached_is_unusable(cached);
    const kvtree_elem *r = scr_filemap_ranks_of(cache->map, d->id);
    for (; r; r = kvtree_elem_next(r)) {
        scr_dataset other;
        const kvtree *tree =
            scr_filemap_get_dataset(cache->map, d->id, kvtree_elem_key_int(r));
        if (scr_dataset_from_tree(tree, &other, NULL) != 0 || !other.complete ||
            other.created == d->created)
            continue;
        const bool older = scr_dataset_is_newer(d, &other);
        if (older && remains) continue;
        if (!older || strcmp(other.job_id, d->job_id) != 0)
            most = FETCH_OTHER;
        else if (most == FETCH_NONE)
            most = FETCH_EARLIER;
    }
    return (fetch_namesake)scr_job_max(cache->job, most);
}

/* Collective, agreed. Reads all of a dataset in containers, in place. */
static int fetch_verify_packed(const struct scr *scr, const scr_dataset *d,
                               kvtree_error *err)
{
    scr_place place = {.folder = NULL};
    filo_file *files = NULL;
    int folder = -1, count = 0, rc = scr_place_of(&scr->prefix, d, &place);
    if (rc) err_set(err, rc, "no memory");
    rc = rc ? rc : beneath_open_folder(place.folder, &folder, err);
    rc = agree(scr->job.world, rc, err);
    rc = rc ? rc : scr_place_read_map(&scr->prefix, d, &place, NULL, &count, &files, err);
    int bad = 0;
    for (int i = 0; i < count && !rc && !bad; i++)
        bad = filo_extract(folder, &files[i], NULL, err);
    rc = rc ? rc : agree(scr->job.world, bad, err);
    io_close(&folder);
    filo_files_free(count, files);
    free(place.folder);
    return rc;
}

/* Collective, agreed. Removes the cached dataset of an earlier calculation that has the
 * id of d, once d is verified: d cannot be read in place. */
static int fetch_make_way(struct scr *scr, const scr_dataset *d, kvtree_error *err)
{
    int rc = fetch_verify_packed(scr, d, err);
    if (rc) return rc;
    scr_say(
        &scr->report, SCR_MSG_RESTART_EARLIER_CALCULATION,
        "dataset %d of the cache is older than %s, which has its id and cannot be read "
        "beside it; it leaves the cache",
        d->id, d->name);
    scr_cache_delete(scr, d->id);
    return 0;
}

/* Whether the configuration, or the dataset itself, requires reading it on the prefix
 * directory. */
static bool fetch_is_bypassed(const struct scr *scr, const scr_dataset *d)
{
    return scr->set.fetch_bypass || scr->set.global_restart || d->bypass ||
           fetch_descriptor(scr, d)->bypass;
}

/* Whether a dataset is read on the prefix directory instead of being fetched. The cache
 * holds only datasets that the ranks of this run can protect. */
static bool fetch_is_direct(const struct scr *scr, const scr_dataset *d)
{
    return d->ranks != scr->job.ranks || fetch_is_bypassed(scr, d);
}

/* Collective, agreed. Fetches a dataset, or reads it in place. Files in containers cannot
 * be read in place, so they are fetched. */
static int fetch_bring(struct scr *scr, const scr_dataset *d, kvtree_error *err)
{
    if (scr->cache.lost) {
        err_set(err, -EBUSY, "it is another run's now");
        return fetch_fall_back(scr, d, err);
    }
    const fetch_namesake namesake = fetch_find_namesake(&scr->cache, d);
    if (namesake != FETCH_NONE) {
        err_set(err, -EEXIST,
                "another dataset %d is there, which SCR_CACHE_PURGE=1 gives up", d->id);
        int rc = fetch_fall_back(scr, d, err);
        if (rc != -EOPNOTSUPP || namesake != FETCH_EARLIER) return rc;
        if ((rc = fetch_make_way(scr, d, err)) != 0) return rc;
    }
    if (!fetch_is_direct(scr, d)) {
        int rc = fetch_to_cache(scr, d, err);
        if (rc < 0) fetch_name_node(&scr->job, rc, err);
        return rc < 0 ? fetch_fall_back(scr, d, err) : rc;
    }
    /* checksums are compared, as in a fetch, unless the user requested direct reads */
    int rc = fetch_read_in_place(scr, d, !fetch_is_bypassed(scr, d), err);
    if (rc != -EOPNOTSUPP) return rc;
    if ((rc = fetch_open_substitute(scr, d, err)) != 0) return rc;
    scr_say(&scr->report, SCR_MSG_FETCH_NOT_IN_PLACE, "dataset %d (%s): %s", d->id,
            d->name, err->text);
    return fetch_to_cache(scr, d, err);
}

void scr_fetch_spare(struct scr *scr, const scr_dataset *d, int on)
{
    if (!on)
        kvtree_unset_kv_int(scr->restart.spared, "ID", d->id);
    else if (!kvtree_set_kv_int(scr->restart.spared, "ID", d->id))
        scr->restart.spares_all = true;
}

/* Whether a newer dataset is spared for the next run. */
static int fetch_is_substitute(const struct scr *scr, const scr_dataset *d)
{
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(scr->restart.spared, "ID"));
    while (e && kvtree_elem_key_int(e) <= d->id)
        e = kvtree_elem_next(e);
    return e != NULL || scr->restart.spares_all;
}

/* Removes the mark of an attempt: a fetch is not an attempt to restart, which begins with
 * SCR_Start_restart. */
static int fetch_mark_done(scr_index *index, const scr_dataset *d)
{
    int rc = scr_index_unmark_tried(index, d);
    return rc ? rc : scr_index_set_current(index, d);
}

static int fetch_report_failure(struct scr *scr, const scr_dataset *d, int rc,
                                double start, const char *err)
{
    scr_log_event e = fetch_event(scr, d, SCR_LOG_FETCH_FAILED, start);
    scr_fetch_spare(scr, d, rc < 0);
    fetch_mark(scr, d, rc > 0 ? scr_index_mark_failed : scr_index_unmark_tried);
    if (rc > 0)
        scr_event(&scr->report, SCR_MSG_FETCH_CHECKPOINT_DAMAGED, &e,
                  "%s could not be fetched from %s and is marked as failed: %s", d->name,
                  scr->prefix.path, err);
    else
        scr_event(&scr->report, SCR_MSG_FETCH_FAILED, &e,
                  "%s could not be fetched from %s: %s; the checkpoint is not marked as "
                  "failed: correct this and start again to use it",
                  d->name, scr->prefix.path, err);
    return rc;
}

int scr_fetch_dataset(struct scr *scr, const scr_dataset *d, bool leaves_current)
{
    kvtree_error err = {""};
    double start = MPI_Wtime();
    scr_progress progress;
    fetch_mark(scr, d, scr_index_mark_fetched);
    MPI_Barrier(scr->job.world); /* from here on a crash counts as an attempt */
    scr_log_event e = fetch_event(scr, d, SCR_LOG_FETCH_START, start);
    scr_event(&scr->report, SCR_MSG_FETCH_STARTED, &e,
              "the fetch of dataset %d (%s) begins", d->id, d->name);
    scr_show_progress(scr, &progress, SCR_MSG_FETCH_PROGRESS, "fetch", d);
    int rc = fetch_bring(scr, d, &err);
    scr_progress_end(&progress);
    if (rc) return fetch_report_failure(scr, d, rc, start, err.text);
    scr_fetch_spare(scr, d, 0);
    leaves_current = leaves_current || fetch_is_substitute(scr, d);
    fetch_mark(scr, d, leaves_current ? scr_index_unmark_tried : fetch_mark_done);
    scr_counters_include(&scr->lifecycle.last, d);
    e = fetch_event(scr, d, SCR_LOG_FETCH_COMPLETE, start);
    if (scr->prefix.direct.dataset.id == d->id) {
        scr_event(&scr->report, SCR_MSG_FETCH_DIRECT, &e,
                  "dataset %d (%s) is read in %s directly: %lu bytes", d->id, d->name,
                  scr->prefix.path, d->size);
        return 0;
    }
    fetch_record_copies(scr, d);
    scr_event(&scr->report, SCR_MSG_FETCH_COMPLETE, &e,
              "dataset %d (%s) is fetched from %s: %lu bytes, %.3f s, %.1f MB/s", d->id,
              d->name, scr->prefix.path, d->size, e.secs,
              e.secs > 0 ? (double)d->size / e.secs / 1e6 : 0.0);
    return 0;
}
