/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetch: a checkpoint from the prefix folder into the cache, protected there like a new
 * one (SCR Developer Guide 1.2, section 2.26.12). */
#include "ops/fetch.h"

#include "base/path.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include <errno.h>
#include <filo/filo_mpi.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- summaries ---- */

/* Where no time is known, any is right. */
static int is_summary_of(const scr_dataset *found, const scr_dataset *d)
{
    return found->id == d->id && found->ranks == d->ranks && found->complete &&
           (found->created == d->created || !found->created || !d->created);
}

/* Rank 0 reads the summary in the dataset's folder. */
static int read_summary(const struct scr *scr, const scr_dataset *d, scr_dataset *found,
                        char *err)
{
    int folder;
    int rc = scr_place_open(&scr->prefix, d->name, &folder, err);
    if (rc == -ENOENT || rc == -ELOOP)
        return err_set(err, FILO_DAMAGED, "its folder is not there any more%s",
                       rc == -ELOOP ? "; what has its name is a link or a file" : "");
    if (!rc) {
        rc = scr_summary_read(folder, found, err);
        close(folder);
    }
    if (rc == -ENOENT || rc == -EBADMSG || rc == -EINVAL || rc == -ELOOP)
        return FILO_DAMAGED;
    return rc;
}

/* Rank 0 compares it with what the index says. */
static int check_summary(struct scr *scr, const scr_dataset *d, char *err)
{
    scr_dataset found;
    if (scr->job.rank != 0) return 0;
    int rc = read_summary(scr, d, &found, err);
    if (!rc && !is_summary_of(&found, d))
        rc = err_set(err, FILO_DAMAGED,
                     "its summary is of dataset %d (%d ranks, complete %d)%s", found.id,
                     found.ranks, found.complete,
                     found.created == d->created ? "" : ", made at another time");
    return rc;
}

/* ---- candidates ---- */

int scr_fetch_correct(struct scr *scr, const scr_dataset *d)
{
    char err[SCR_ERR_TEXT] = "";
    scr_dataset found;
    scr_index_state state;
    if (read_summary(scr, d, &found, err) != 0 || is_summary_of(&found, d) ||
        !found.complete || strcmp(found.name, d->name) != 0)
        return 0;
    const kvtree *index;
    const int unknown = scr_index_view(&scr->prefix, &index, err) == 0 &&
                        scr_index_look(index, &found, &state) != 0;
    if (!unknown || scr_index_correct(&scr->prefix, &found, err) != 0) return 0;
    scr_say(&scr->report, 0,
            "warning: " SCR_INDEX_NAME " names dataset %d as %s, but the one that is "
            "there is dataset %d%s, which is entered in its place",
            d->id, d->name, found.id,
            found.created == d->created ? "" : ", made at another time");
    return 1;
}

/* Rank 0 changes the index entry: before the attempt, after success, after a failure. */
static void note(struct scr *scr, const scr_dataset *d, scr_index_changer *change)
{
    char err[SCR_ERR_TEXT] = "";
    if (scr->job.rank == 0 && scr_index_change(&scr->prefix, d, change, err) != 0)
        scr_say(&scr->report, 0, "warning: the index could not be changed: %s", err);
}

/* Where each file goes in the cache. */
static int set_local(struct scr *scr, const scr_dataset *d, const scr_place *place,
                     int count, filo_file *files, char *err)
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

static kvtree *fetched_meta(const struct scr *scr, const char *name)
{
    kvtree *meta = kvtree_new();
    char *path = scr_path_join(scr->prefix.path, name);
    int rc = path ? kvtree_util_set_str(meta, SCR_META_TYPE, SCR_META_FULL) : -ENOMEM;
    rc = rc ? rc : kvtree_util_set_str(meta, SCR_META_ORIG, name);
    rc = rc ? rc : scr_meta_set_place(meta, path);
    free(path);
    if (rc) kvtree_delete(&meta);
    return meta;
}

/* Applies the redundancy scheme to the fetched files and records them. */
static int protect(struct scr *scr, const scr_dataset *d, int count,
                   const filo_file *files, char *err)
{
    redset_file *list = calloc((size_t)count + 1, sizeof *list);
    char *folder = scr_dataset_folder(&scr->cache, d->id);
    int rc = list && folder ? 0 : err_set(err, -ENOMEM, "no memory");
    for (int i = 0; i < count && !rc; i++) {
        list[i].name = files[i].local + strlen(folder) + 1;
        list[i].meta = fetched_meta(scr, list[i].name);
        if (!list[i].meta) rc = err_set(err, -ENOMEM, "no memory");
    }
    rc = agree(scr->job.world, rc, err);
    rc = rc ? rc : scr_protect(scr, d, count, list, err);
    for (int i = 0; list && i < count; i++) {
        kvtree *meta = (kvtree *)(uintptr_t)list[i].meta;
        kvtree_delete(&meta);
    }
    free(list);
    free(folder);
    return rc;
}

int scr_fetch_finds(struct scr *scr, const scr_dataset *d)
{
    char err[SCR_ERR_TEXT] = "";
    scr_index_state state = {.complete = 0};
    const kvtree *index;
    int dropped = scr_index_view(&scr->prefix, &index, err) == 0 &&
                  scr_index_look(index, d, &state) == -ENOENT;
    return (dropped || (state.complete == 1 && !state.failed)) &&
           check_summary(scr, d, err) == 0;
}

/* The redundancy descriptor that the dataset gets here. */
static const scr_reddesc *desc_of(const struct scr *scr, const scr_dataset *d)
{
    return scr_reddesc_for_dataset(&scr->descs.reddescs, d->ckpt, d->output);
}

/* The number of its store. */
static int cache_of(const struct scr *scr, const scr_dataset *d)
{
    return scr->cache.store_of_desc[desc_of(scr, d)->index];
}

/* Local. */
static int make_folder(struct scr *scr, const scr_dataset *d, char *err)
{
    if (scr_cached_add(&scr->cache, d, cache_of(scr, d), desc_of(scr, d)) != 0)
        return err_set(err, -ENOMEM, "no memory");
    return scr_dataset_folder_make(&scr->cache, d->id, err);
}

static int fetch_files(struct scr *scr, const scr_dataset *d, char *err)
{
    scr_place place = {.folder = NULL};
    filo_options options = {
        .checksum = 1, .width = scr->set.fetch_width, .buffer = scr->set.file_buffer};
    filo_file *files = NULL;
    int count = 0, rc = scr_place_of(&scr->prefix, d, &place);
    if (rc) err_set(err, rc, "no memory");
    rc = rc ? rc : make_folder(scr, d, err);
    rc = rc ? rc : check_summary(scr, d, err);
    rc = agree(scr->job.world, rc, err);
    rc = rc ? rc
            : scr_place_read_map(&scr->prefix, d, &place, &options, &count, &files, err);
    if (!rc)
        rc = agree(scr->job.world, set_local(scr, d, &place, count, files, err), err);
    if (!rc) rc = scr_direct_check(&scr->prefix, d, place.folder, count, files, err);
    rc = rc ? rc : filo_fetch(scr->job.world, place.folder, count, files, &options, err);
    rc = rc ? rc : protect(scr, d, count, files, err);
    filo_files_free(count, files);
    free(place.folder);
    return rc;
}

static scr_log_event event_of(const struct scr *scr, const scr_dataset *d,
                              scr_log_kind kind, double start)
{
    scr_log_event e = scr_event_of(kind, d);
    e.from = scr->prefix.path;
    e.to = cache_of(scr, d) < 0 ? "" : scr->cache.stores[cache_of(scr, d)].folder;
    e.files = d->files;
    e.bytes = (int64_t)d->size;
    e.secs = MPI_Wtime() - start;
    return e;
}

/* Collective, agreed. */
static int read_in_place(struct scr *scr, const scr_dataset *d, int compare, char *err)
{
    int rc = agree(scr->job.world, check_summary(scr, d, err), err);
    rc = rc ? rc : scr_direct_open(&scr->prefix, d, compare, err);
    if (!rc) scr->prefix.direct.dataset = *d;
    return rc;
}

static void settle_in_cache(struct scr *scr, const scr_dataset *d)
{
    int cache = cache_of(scr, d);
    scr_location(&scr->prefix, d, SCR_LOCATION_CACHE, 1);
    scr_location(&scr->prefix, d, SCR_LOCATION_PFS, 1);
    scr_cache_make_room(scr, cache, scr->cache.stores[cache].capacity + 1, 1);
}

/* Collective, agreed. Into the cache. */
static int bring_to_cache(struct scr *scr, const scr_dataset *d, char *err)
{
    int cache = cache_of(scr, d);
    /* should the fetch fail, the newest cached checkpoint is what is left */
    scr_cache_make_room(scr, cache, scr->cache.stores[cache].capacity, 1);
    const scr_cached *remains = scr_cached_find(&scr->cache, d->id);
    /* what could not be rebuilt makes way for the whole */
    if (remains && scr_cached_is_unusable(remains)) scr_cache_delete(scr, d->id);
    int rc = fetch_files(scr, d, err);
    if (rc) scr_cache_delete(scr, d->id);
    return rc;
}

/* Collective. Puts before an agreed text the name of the node whose rank it is of. */
static void name_node(struct scr *scr, int code, char *err)
{
    char name[SCR_NODE_SIZE];
    int root = 0;
    if (scr->job.rank == 0 && sscanf(err, "rank %d:", &root) != 1 &&
        sscanf(err, "on %*d ranks, first rank %d:", &root) != 1)
        root = 0;
    if (root < 0 || root >= scr->job.ranks) root = 0;
    MPI_Bcast(&root, 1, MPI_INT, 0, scr->job.world);
    memcpy(name, scr->job.node_name, sizeof name);
    MPI_Bcast(name, (int)sizeof name, MPI_CHAR, root, scr->job.world);
    err_wrap(err, code, "node %s", name);
}

/* Collective, agreed. The cache cannot take it, for the reason in err; what is on the
 * prefix folder may be right, and can be read there. */
static int read_instead(struct scr *scr, const scr_dataset *d, char *err)
{
    char first[SCR_ERR_TEXT], why[SCR_ERR_TEXT] = "";
    int rc = read_in_place(scr, d, 1, why);
    if (!rc)
        scr_say(&scr->report, 0,
                "warning: %s could not be brought into the cache, and is read from %s "
                "itself: %s",
                d->name, scr->prefix.path, err);
    if (rc > 0) return err_set(err, rc, "%s", why);
    memcpy(first, err, sizeof first);
    return rc ? err_set(err, rc, "%.250s; and where it lies: %s", first, why) : 0;
}

/* Collective, agreed. The dataset gets a cache, though all that is written goes to the
 * prefix folder itself. err tells why it needs one, and why it has none in the end. */
static int begin_cache(struct scr *scr, const scr_dataset *d, char *err)
{
    char first[SCR_ERR_TEXT], why[SCR_ERR_TEXT] = "its redundancy";
    const scr_reddesc *desc = desc_of(scr, d);
    int rc = cache_of(scr, d) < 0 ? scr_stores_open_late(&scr->cache, desc, why) : 0;
    if (!rc && scr_redundancy_late(scr, desc) != SCR_SUCCESS) rc = -EIO;
    memcpy(first, err, sizeof first);
    return rc ? err_set(err, rc, "%.250s; and a cache cannot be had: %s", first, why) : 0;
}

/* Collective. The id stands for another dataset in the cache, which may be all that is
 * left of it. An older one that could not be rebuilt here is given up for a newer one. */
static int is_taken(struct scr *scr, const scr_dataset *d)
{
    int count = 0, *ranks = NULL, taken = 0;
    const scr_cached *cached = scr_cached_find(&scr->cache, d->id);
    const bool remains = cached && scr_cached_is_unusable(cached);
    if (scr_filemap_list_ranks_of(scr->cache.map, d->id, &count, &ranks) != 0) count = 0;
    for (int i = 0; i < count; i++) {
        scr_dataset other;
        const kvtree *tree = scr_filemap_get_dataset(scr->cache.map, d->id, ranks[i]);
        if (scr_dataset_from_tree(tree, &other, NULL) == 0 && other.complete &&
            other.created != d->created && !(remains && scr_dataset_is_newer(d, &other)))
            taken = 1;
    }
    free(ranks);
    MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_INT, MPI_MAX, scr->job.world);
    return taken;
}

/* Whether a dataset of the prefix directory is read there, and not fetched. */
static bool is_read_in_place(const struct scr *scr, const scr_dataset *d)
{
    return scr->set.fetch_bypass || d->bypass || desc_of(scr, d)->bypass;
}

/* Collective, agreed. Files in containers cannot be read in place, but fetched. */
static int bring(struct scr *scr, const scr_dataset *d, char *err)
{
    if (scr->cache.lost) {
        err_set(err, -EBUSY, "it is another run's now");
        return read_instead(scr, d, err);
    }
    if (is_taken(scr, d)) {
        err_set(err, -EEXIST,
                "another dataset %d is there, which SCR_CACHE_PURGE=1 gives up", d->id);
        return read_instead(scr, d, err);
    }
    if (!is_read_in_place(scr, d)) {
        int rc = bring_to_cache(scr, d, err);
        if (rc < 0) name_node(scr, rc, err);
        return rc < 0 ? read_instead(scr, d, err) : rc;
    }
    int rc = read_in_place(scr, d, 0, err);
    if (rc != -EOPNOTSUPP) return rc;
    if ((rc = begin_cache(scr, d, err)) != 0) return rc;
    scr_say(&scr->report, 1, "dataset %d (%s): %s", d->id, d->name, err);
    return bring_to_cache(scr, d, err);
}

void scr_fetch_spare(struct scr *scr, const scr_dataset *d, int on)
{
    if (!on)
        kvtree_unset_kv_int(scr->restart.spared, "ID", d->id);
    else if (!kvtree_set_kv_int(scr->restart.spared, "ID", d->id))
        scr_say(&scr->report, 0, "warning: no memory to note that %s has to stay",
                d->name);
}

/* 1 when a newer one is passed over, with which the next run shall begin. */
static int is_substitute(const struct scr *scr, const scr_dataset *d)
{
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(scr->restart.spared, "ID"));
    while (e && kvtree_elem_key_int(e) <= d->id)
        e = kvtree_elem_next(e);
    return e != NULL;
}

/* Reading was no attempt: that begins with SCR_Start_restart. */
static int fetched(scr_index *index, const scr_dataset *d)
{
    int rc = scr_index_unmark_tried(index, d);
    return rc ? rc : scr_index_set_current(index, d);
}

static int fetch_failed(struct scr *scr, const scr_dataset *d, int rc, double start,
                        const char *err)
{
    scr_log_event e = event_of(scr, d, SCR_LOG_FETCH_FAILED, start);
    scr_fetch_spare(scr, d, rc < 0);
    note(scr, d, rc > 0 ? scr_index_mark_failed : scr_index_unmark_tried);
    if (rc > 0)
        scr_event(&scr->report, 0, &e,
                  "%s could not be fetched from %s and is marked as failed: %s", d->name,
                  scr->prefix.path, err);
    else
        scr_event(&scr->report, 0, &e,
                  "warning: %s could not be fetched from %s: %s. That is no fault of the "
                  "checkpoint, so it stays there in this run, whatever SCR_PREFIX_SIZE "
                  "says; end the run, mend that, and start again to use it",
                  d->name, scr->prefix.path, err);
    return rc;
}

int scr_fetch_dataset(struct scr *scr, const scr_dataset *d)
{
    char err[SCR_ERR_TEXT] = "";
    double start = MPI_Wtime();
    note(scr, d, scr_index_mark_fetched);
    MPI_Barrier(scr->job.world); /* whoever crashes now does so on record */
    scr_log_event e = event_of(scr, d, SCR_LOG_FETCH_START, start);
    scr_event(&scr->report, 2, &e, "the fetch of dataset %d (%s) begins", d->id, d->name);
    int rc = bring(scr, d, err);
    if (rc) return fetch_failed(scr, d, rc, start, err);
    scr_fetch_spare(scr, d, 0);
    note(scr, d, is_substitute(scr, d) ? scr_index_unmark_tried : fetched);
    if (d->id > scr->lifecycle.dataset_id) scr->lifecycle.dataset_id = d->id;
    if (d->ckpt > scr->lifecycle.ckpt_id) scr->lifecycle.ckpt_id = d->ckpt;
    e = event_of(scr, d, SCR_LOG_FETCH_COMPLETE, start);
    if (scr->prefix.direct.dataset.id == d->id) {
        scr_event(&scr->report, 0, &e,
                  "dataset %d (%s) is read from %s itself: %lu bytes", d->id, d->name,
                  scr->prefix.path, d->size);
        return 0;
    }
    settle_in_cache(scr, d);
    scr_event(&scr->report, 0, &e,
              "dataset %d (%s) is fetched from %s: %lu bytes, %.3f s, %.1f MB/s", d->id,
              d->name, scr->prefix.path, d->size, e.secs,
              e.secs > 0 ? (double)d->size / e.secs / 1e6 : 0.0);
    return 0;
}
