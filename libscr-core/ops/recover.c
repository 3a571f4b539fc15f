/* SPDX-License-Identifier: BSD-3-Clause */
/* Rebuilding the cache after a restart: every cached dataset, oldest first, is
 * distributed to its ranks and what was lost is rebuilt (SCR Developer Guide 1.2,
 * section 2.26.5). What lacks nothing by names and sizes is not read before it is used
 * (docs/decisions/0018-what-a-restart-waits-for.md). */
#include "ops/context.h"

#include "cache/catalog.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "prefix/flush_file.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The smallest dataset id above last in a map; INT_MAX: none. */
static int least_above(const scr_filemap *map, int last)
{
    int count = 0, *ids = NULL, least = INT_MAX;
    if (scr_filemap_list_datasets(map, &count, &ids) != 0) count = 0;
    for (int i = count - 1; i >= 0; i--)
        if (ids[i] > last) least = ids[i];
    free(ids);
    return least;
}

/* That of all ranks. */
static int next_id(const struct scr *scr, int last)
{
    int next = least_above(scr->cache.map, last);
    MPI_Allreduce(MPI_IN_PLACE, &next, 1, MPI_INT, MPI_MIN, scr->job.world);
    return next;
}

/* How much a description of a dataset counts: a newer dataset of the id more than an
 * older one, and what headers say more than what only filemaps do. */
static int64_t description_weight(const scr_filemap *map, const scr_dataset *d, int rank)
{
    const int64_t header = (int64_t)1 << 61; /* beyond all times in microseconds */
    return d->created + (scr_catalog_has_header(map, d->id, rank) ? header : 0);
}

/* The description of dataset id in a map that counts most; its weight, or -1 without one.
 */
static int64_t local_description(const scr_filemap *map, int id, scr_dataset *best)
{
    int count = 0, *ranks = NULL;
    int64_t most = -1;
    if (scr_filemap_list_ranks_of(map, id, &count, &ranks) != 0) count = 0;
    for (int i = 0; i < count; i++) {
        scr_dataset d;
        const kvtree *tree = scr_filemap_get_dataset(map, id, ranks[i]);
        if (scr_dataset_from_tree(tree, &d, NULL) != 0 || d.id != id || !d.complete)
            continue;
        int64_t weight = description_weight(map, &d, ranks[i]);
        if (weight <= most) continue;
        *best = d;
        most = weight;
    }
    free(ranks);
    return most;
}

/* Collective. The same description for all: an id may have been used twice when a node
 * comes back with an old cache. False: nobody has a usable one. */
static bool agree_on_description(const struct scr *scr, int id, scr_dataset *dataset)
{
    int64_t mine = local_description(scr->cache.map, id, dataset), most = mine;
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, scr->job.world);
    if (most < 0) return false;
    int root = mine == most ? scr->job.rank : INT_MAX;
    MPI_Allreduce(MPI_IN_PLACE, &root, 1, MPI_INT, MPI_MIN, scr->job.world);
    MPI_Bcast(dataset, sizeof *dataset, MPI_BYTE, root, scr->job.world);
    return true;
}

/* Name of this rank's own redundancy file, inside a map; NULL if it has none. */
static const char *redundancy_file(const struct scr *scr, const scr_filemap *map, int id)
{
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(map, id, scr->job.rank));
    for (; f; f = kvtree_elem_next(f)) {
        const char *type = kvtree_get_val(kvtree_elem_hash(f), SCR_META_TYPE);
        if (type && strcmp(type, SCR_META_FULL) != 0)
            return scr_filemap_name_of(kvtree_elem_key(f), scr->job.owner, id);
    }
    return NULL;
}

/* Collective. Reads the files, unless a glance shows that nothing is missing, and
 * rebuilds what is lost: err tells what, and why, also where that succeeds. */
static int restore(redset *set, const char *folder, scr_cached *kept, int glance,
                   redset_manifest **manifest, int *rebuilt, char *err)
{
    int lost, rc = glance ? 0 : redset_verify(set, folder, &lost, err);
    rc = rc ? rc : redset_measure(set, folder, manifest, err);
    int damaged = rc == REDSET_RECOVERABLE;
    if (damaged) rc = redset_rebuild(set, folder, manifest, rebuilt, err);
    kept->unread = rc != 0 || (glance && !damaged);
    return rc;
}

static int rebuild_files(struct scr *scr, const scr_dataset *dataset, int glance,
                         int *rebuilt, char *err)
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
                            redundancy_file(scr, scr->cache.map, dataset->id), &set, err);
    if (!rc) redset_set_piece(set, scr->set.message);
    rc = rc ? rc : restore(set, folder, kept, glance, &manifest, rebuilt, err);
    if (!rc)
        rc = agree(scr->job.world, scr_map_record(&scr->cache, dataset, manifest, err),
                   err);
    redset_manifest_free(manifest);
    redset_free(set);
    free(folder);
    return rc;
}

/* ---- redundancy that is lost ---- */

/* The files of this rank as redset sees them, from the map, which the encode changes. */
static int list_files(const struct scr *scr, int id, int *count, redset_file **files)
{
    static const char *const kept[] = {SCR_META_TYPE, SCR_META_ORIG, SCR_META_PATH,
                                       SCR_META_NAME};
    const kvtree *all = scr_filemap_files(scr->cache.map, id, scr->job.rank);
    const kvtree_elem *f = kvtree_elem_first(all);
    redset_file *list = calloc((size_t)kvtree_size(all) + 1, sizeof *list);
    int rc = list ? 0 : -ENOMEM;
    for (*count = 0, *files = list; f && !rc; f = kvtree_elem_next(f)) {
        const kvtree *known = kvtree_elem_hash(f);
        const char *type = kvtree_get_val(known, SCR_META_TYPE);
        if (!type || strcmp(type, SCR_META_FULL) != 0) continue;
        kvtree *meta = kvtree_new();
        redset_file *file = &list[(*count)++];
        file->meta = meta;
        file->name = strdup(scr_filemap_name_of(kvtree_elem_key(f), scr->job.owner, id));
        rc = meta && file->name ? 0 : -ENOMEM;
        for (size_t k = 0; !rc && k < sizeof kept / sizeof *kept; k++) {
            const char *text = kvtree_get_val(known, kept[k]);
            if (text) rc = kvtree_util_set_str(meta, kept[k], text);
        }
    }
    return rc;
}

static void free_list(int count, redset_file *files)
{
    for (int i = 0; i < count; i++) {
        kvtree *meta = (kvtree *)(uintptr_t)files[i].meta;
        kvtree_delete(&meta);
        free((char *)(uintptr_t)files[i].name);
    }
    free(files);
}

/* Local. Remains of the sets as they were; a new file may have the name of an old one. */
static void remove_old(const struct scr *scr, int id, const char *old)
{
    char path[SCR_CACHED_NAME_SIZE];
    const char *new = redundancy_file(scr, scr->cache.map, id);
    if (!old || (new &&strcmp(old, new) == 0)) return;
    scr_cached_name(id, old, path);
    beneath_unlink(scr_cache_of(&scr->cache, id)->fd, path, NULL);
}

/* Collective. More redundancy is lost than the scheme makes up for, or cannot be read, rc
 * says why, but each rank has its own files: when they are as they were written, they are
 * protected anew. */
static int protect_again(struct scr *scr, const scr_dataset *dataset, int rc, char *err)
{
    scr_cached *kept = scr_cached_find(&scr->cache, dataset->id);
    const scr_reddesc *desc =
        scr_reddesc_for_dataset(&scr->descs.reddescs, dataset->ckpt, dataset->output);
    const char *name = redundancy_file(scr, scr->cache.map, dataset->id);
    char why[SCR_ERR_TEXT] = "", lost[SCR_ERR_TEXT], *old = name ? strdup(name) : NULL;
    redset_file *files = NULL;
    int count = 0, bad = scr_cache_compare(&scr->cache, dataset->id, why);
    memcpy(lost, err, sizeof lost);
    bad = agree(scr->job.world, bad, why);
    if (!bad && scr->cache.sets[desc->index]) {
        rc = list_files(scr, dataset->id, &count, &files);
        if (rc) err_set(err, rc, "no memory");
        rc = agree(scr->job.world, rc, err);
        kept->desc = *desc;
        rc = rc ? rc : scr_protect(scr, dataset, count, files, err);
    }
    if (!rc) {
        kept->unread = 0;
        remove_old(scr, dataset->id, old);
        scr_log_event e = scr_event_of(SCR_LOG_REBUILD_COMPLETE, dataset);
        scr_event(&scr->report, 0, &e,
                  "dataset %d (%s) has lost its redundancy, but none of its files: they "
                  "are as they were written, and are protected anew: %s",
                  dataset->id, dataset->name, lost);
    }
    free_list(count, files);
    free(old);
    return rc;
}

/* ---- what is told ---- */

/* An event about files of which each rank has its share {files, bytes}. */
static scr_log_event event_of_all(struct scr *scr, scr_log_kind kind,
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

static int distribute(struct scr *scr, const scr_dataset *dataset, scr_moved *moved,
                      char *err)
{
    double start = MPI_Wtime();
    int rc = scr_distribute(&scr->cache, dataset, moved, err);
    if (rc) return rc;
    scr_log_event e =
        event_of_all(scr, SCR_LOG_DISTRIBUTE_COMPLETE, dataset, start, moved->sums);
    if (moved->sums[0])
        scr_event(&scr->report, 1, &e,
                  "%lu files of dataset %d (%s) were brought to their ranks",
                  moved->sums[0], dataset->id, dataset->name);
    return 0;
}

/* rebuilt: the files of this rank were; why: what was lost. Returns how many ranks have
 * lost something. */
static int tell_rebuilt(struct scr *scr, const scr_dataset *dataset, int rebuilt,
                        double start, const char *why)
{
    unsigned long sums[2] = {0, 0};
    int ranks = rebuilt;
    MPI_Allreduce(MPI_IN_PLACE, &ranks, 1, MPI_INT, MPI_SUM, scr->job.world);
    if (!ranks) return 0;
    if (rebuilt) scr_cached_sums(&scr->cache, dataset->id, sums);
    scr_log_event e = event_of_all(scr, SCR_LOG_REBUILD_COMPLETE, dataset, start, sums);
    e.rebuilt = ranks;
    scr_event(
        &scr->report, 0, &e,
        "dataset %d (%s) is complete again: files of %d of %d ranks were rebuilt in "
        "%.3f s: %s",
        dataset->id, dataset->name, ranks, scr->job.ranks, e.secs, why);
    return ranks;
}

static void tell_whole(struct scr *scr, const scr_dataset *dataset, double start)
{
    unsigned long none[2] = {0, 0};
    scr_log_event e = event_of_all(scr, SCR_LOG_REBUILD_COMPLETE, dataset, start, none);
    scr_event(&scr->report, 1, &e, "dataset %d (%s) is in the cache with all its files",
              dataset->id, dataset->name);
}

static void continue_ids(struct scr *scr, const scr_dataset *dataset)
{
    if (dataset->id > scr->lifecycle.dataset_id) scr->lifecycle.dataset_id = dataset->id;
    if (dataset->ckpt > scr->lifecycle.ckpt_id) scr->lifecycle.ckpt_id = dataset->ckpt;
}

/* What is left of a dataset stays: it may be rebuilt by another run, on other nodes.
 * rc: why it cannot be used in this one; positive: it lost too much. */
static void give_up(struct scr *scr, const scr_dataset *dataset, double start, int rc,
                    const char *err)
{
    scr_log_event e = scr_event_of(SCR_LOG_REBUILD_FAILED, dataset);
    e.secs = MPI_Wtime() - start;
    if (rc > 0)
        scr_event(&scr->report, 0, &e,
                  "warning: dataset %d (%s) is lost from the cache; what is left of it "
                  "stays there until a newer checkpoint is complete: %s",
                  dataset->id, dataset->name, err);
    else
        scr_event(&scr->report, 0, &e,
                  "warning: dataset %d (%s) could not be rebuilt; what is left stays in "
                  "the cache until a newer checkpoint is complete, and is not used in "
                  "this run: %s",
                  dataset->id, dataset->name, err);
    scr_cached_set_state(&scr->cache, dataset->id,
                         rc > 0 ? SCR_CACHED_USELESS : SCR_CACHED_UNREADABLE);
    scr_cached *cached = scr_cached_find(&scr->cache, dataset->id);
    if (cached) cached->d = *dataset;
}

/* Tells that another number of ranks wrote it. */
static void leave_to_others(struct scr *scr, const scr_dataset *dataset)
{
    scr_say(&scr->report, 0,
            "warning: dataset %d (%s) in the cache was written by %d ranks, and this "
            "run has %d; it stays there unused. Start with %d ranks to use it, or "
            "with SCR_CACHE_PURGE=1 to give it up",
            dataset->id, dataset->name, dataset->ranks, scr->job.ranks, dataset->ranks);
    scr_cached_set_state(&scr->cache, dataset->id, SCR_CACHED_OTHER_RANKS);
}

/* Collective. A dataset that this run can use; false: it cannot, which was reported. */
static bool find_one(struct scr *scr, int id, scr_dataset *dataset)
{
    char err[SCR_ERR_TEXT] = "";
    /* scr_cache_sweep takes care of the folder of one without description */
    if (!agree_on_description(scr, id, dataset)) return false;
    const scr_reddesc *desc =
        scr_reddesc_for_dataset(&scr->descs.reddescs, dataset->ckpt, dataset->output);
    int rc = scr_stores_locate(&scr->cache, dataset, desc, err);
    if (scr->set.cache_purge || !scr->set.distribute) {
        scr_cache_drop(scr, id);
        return false;
    }
    continue_ids(scr, dataset);
    if (!rc && dataset->ranks == scr->job.ranks) return true;
    if (rc)
        give_up(scr, dataset, MPI_Wtime(), rc, err);
    else
        leave_to_others(scr, dataset);
    return false;
}

/* Collective. What is too much for the redundancy is not lost if it is only that files
 * could not be moved: they are where they were. */
static int judge(const struct scr *scr, const scr_moved *moved, int rc)
{
    int failed = moved->failed;
    if (rc <= 0) return rc;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, scr->job.world);
    return failed ? -EIO : rc;
}

static void rebuild_one(struct scr *scr, int id)
{
    scr_moved moved = {.failed = 0};
    scr_dataset dataset;
    char err[SCR_ERR_TEXT] = "";
    int rebuilt = 0;
    double start = MPI_Wtime();
    if (!find_one(scr, id, &dataset)) return;
    scr_log_event e = scr_event_of(SCR_LOG_REBUILD_START, &dataset);
    scr_event(&scr->report, 2, &e, "dataset %d (%s) is found in the cache", id,
              dataset.name);
    int rc = scr_dataset_folder_make(&scr->cache, id, err);
    rc = agree(scr->job.world, rc, err);
    int whole = rc ? 0 : scr_distribute_is_done(&scr->cache, &dataset);
    if (!rc && !whole) rc = distribute(scr, &dataset, &moved, err);
    rc = rc ? rc : rebuild_files(scr, &dataset, 1, &rebuilt, err);
    if ((rc > 0 || rc == -EIO) && whole) rc = protect_again(scr, &dataset, rc, err);
    if (rc) {
        give_up(scr, &dataset, start, judge(scr, &moved, rc), err);
        return;
    }
    if (!tell_rebuilt(scr, &dataset, rebuilt, start, err))
        tell_whole(scr, &dataset, start);
    scr_location(&scr->prefix, &dataset, SCR_LOCATION_CACHE, 1);
    scr_location(&scr->prefix, &dataset, SCR_LOCATION_FLUSHING, 0);
}

int scr_cache_ensure(struct scr *scr, int id)
{
    const scr_cached *kept = scr_cached_find(&scr->cache, id);
    char err[SCR_ERR_TEXT] = "";
    scr_dataset dataset;
    int rebuilt = 0;
    double start = MPI_Wtime();
    if (!kept || kept->state != SCR_CACHED_GOOD || !kept->unread)
        return kept && kept->state == SCR_CACHED_GOOD;
    /* every rank has it: else something would have been missing */
    int rc = scr_cached_get(&scr->cache, id, &dataset);
    rc = agree(scr->job.world, rc ? rc : scr_dataset_folder_make(&scr->cache, id, err),
               err);
    rc = rc ? rc : rebuild_files(scr, &dataset, 0, &rebuilt, err);
    if (rc)
        give_up(scr, &dataset, start, rc, err);
    else if (tell_rebuilt(scr, &dataset, rebuilt, start, err) &&
             scr_filemaps_write(&scr->cache, err) != 0)
        scr_event_local(&scr->report, 0, err);
    return rc == 0;
}

/* What left the cache while no run was there to note it leaves the flush file, too. */
static void clean_flush_file(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    int count = 0, *ids = NULL;
    if (scr->job.rank != 0 ||
        scr_filemap_list_datasets(scr->cache.map, &count, &ids) != 0)
        return;
    scr_flush_file_keep(scr->prefix.flush_file, ids, count);
    free(ids);
    if (scr_flush_file_write(scr->prefix.fd, scr->prefix.flush_file, err) != 0)
        scr_say(&scr->report, 0, "warning: the flush file could not be written: %s", err);
}

int scr_rebuild_cache(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    if (scr->restart.elsewhere > scr->lifecycle.dataset_id)
        scr->lifecycle.dataset_id = scr->restart.elsewhere;
    if (scr->set.cache_purge || !scr->set.distribute) scr->restart.elsewhere = 0;
    for (int id = next_id(scr, 0); id != INT_MAX; id = next_id(scr, id))
        rebuild_one(scr, id);
    scr_cache_sweep(&scr->cache, &scr->lifecycle.dataset_id);
    if (scr_filemaps_begin(&scr->cache, err) != 0)
        scr_say(&scr->report, 0,
                "warning: filemaps could not be written, so commands may not find all "
                "that is in the cache: %s",
                err);
    clean_flush_file(scr);
    return SCR_SUCCESS;
}
