/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing a dataset: SCR_Start_output and SCR_Complete_output. */
#include "ops/context.h"

#include "cache/removal.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "halt/halt.h"
#include "ops/folders.h"
#include "ops/output_stats.h"
#include "ops/route.h"
#include "ops/stop.h"
#include "plan/part_name.h"
#include "prefix/flush_file.h"
#include <errno.h>
#include <filo/filo_mpi.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>

/* ---- start ---- */

/* The arguments of SCR_Start_output. */
typedef struct arguments {
    int flags, named;
    char name[SCR_NAME_SIZE];
} arguments;

_Static_assert(sizeof(arguments) % 8 == 0, "compared as numbers of 64 bits");

/* Local. Checks the arguments; the name must be usable as a directory name. */
static int output_take_arguments(const char *name, int flags, arguments *mine,
                                 kvtree_error *err)
{
    memset(mine, 0, sizeof *mine);
    mine->flags = flags;
    mine->named = name != NULL;
    int rc = name ? beneath_check_name(name, err) : 0;
    if (!rc && name) strcpy(mine->name, name);
    if (!rc && name && scr_name_is_reserved(name))
        rc = err_set(err, -EINVAL, "\"%s\" is a name of SCR itself", name);
    if (!rc && flags & ~(SCR_FLAG_CHECKPOINT | SCR_FLAG_OUTPUT | SCR_FLAG_BYPASS))
        rc = err_set(err, -EINVAL, "unknown flags 0x%x", (unsigned)flags);
    return rc;
}

/* Collective, agreed: finds the rank that differs from rank 0. */
static int output_compare_arguments(const scr_job *job, const arguments *mine, int rc,
                                    kvtree_error *err)
{
    arguments first = *mine;
    scr_job_share(job, &first, sizeof first);
    if (!rc && memcmp(&first, mine, sizeof first) != 0)
        rc = err_set(err, -EINVAL,
                     "rank 0 gave name \"%s\" and flags %d, here they are \"%s\" and %d",
                     first.name, first.flags, mine->name, mine->flags);
    return agree(job->world, rc, err);
}

/* Checks that name and flags are the same on every rank. *time is rank 0's; *gone: some
 * rank misses directories of the run. One maximum over all ranks is sufficient: a number
 * is equal on all ranks if the maximum of the number is the complement of the maximum of
 * its complement. */
static int output_check_arguments(struct scr *scr, const char *name, int flags,
                                  int64_t *time, int *gone, kvtree_error *err)
{
    enum { WORDS = sizeof(arguments) / 8, FAILED = 2 * WORDS, TIME, GONE, ALL };
    arguments mine;
    struct timeval now;
    int64_t words[WORDS], numbers[ALL], most[ALL];
    int rc = output_take_arguments(name, flags, &mine, err), differ = 0;
    gettimeofday(&now, NULL);
    memcpy(words, &mine, sizeof words);
    for (int i = 0; i < WORDS; i++) {
        numbers[i] = words[i];
        numbers[WORDS + i] = ~words[i];
    }
    numbers[FAILED] = rc != 0;
    numbers[TIME] = scr->job.rank == 0 ? (int64_t)now.tv_sec * 1000000 + now.tv_usec : 0;
    numbers[GONE] = scr_cache_is_gone(&scr->cache);
    MPI_Allreduce(numbers, most, ALL, MPI_INT64_T, MPI_MAX, scr->job.world);
    for (int i = 0; i < WORDS; i++)
        differ |= most[i] != ~most[WORDS + i];
    *time = most[TIME];
    *gone = most[GONE] != 0;
    return differ || most[FAILED] ? output_compare_arguments(&scr->job, &mine, rc, err)
                                  : 0;
}

/* Fills in the description of the open dataset. */
static void output_describe(struct scr *scr, const char *name, int flags, int64_t now)
{
    scr_dataset *d = &scr->lifecycle.open;
    memset(d, 0, sizeof *d);
    d->id = ++scr->lifecycle.last.id;
    if (flags & SCR_FLAG_CHECKPOINT) d->ckpt = ++scr->lifecycle.last.ckpt;
    d->output = (flags & SCR_FLAG_OUTPUT) != 0;
    d->ranks = scr->job.ranks;
    d->created = scr_counters_date(&scr->lifecycle.last, now);
    if (name)
        strcpy(d->name, name);
    else
        snprintf(d->name, sizeof d->name, "scr.dataset.%d", d->id);
    memcpy(d->user, scr->job.user, sizeof d->user);
    memcpy(d->job_id, scr->job.id, sizeof d->job_id);
    memcpy(d->job_name, scr->job.name, sizeof d->job_name);
    memcpy(d->cluster, scr->job.cluster, sizeof d->cluster);
}

/* Local. */
static int output_make_folder(struct scr *scr, int cache, const scr_reddesc *desc,
                              kvtree_error *err)
{
    if (scr_cached_add(&scr->cache, &scr->lifecycle.open, cache, desc) != 0)
        return err_set(err, -ENOMEM, "no memory");
    return scr_dataset_folder_make(&scr->cache, scr->lifecycle.open.id, err);
}

static int output_start_in_cache(struct scr *scr, const scr_reddesc *desc,
                                 kvtree_error *err)
{
    int64_t tight;
    int cache = scr->cache.store_of_desc[desc->index],
        capacity = scr->cache.stores[cache].capacity;
    scr_cache_try_again(scr);
    scr_cache_relieve(scr, cache);
    scr_cache_make_room(scr, cache, capacity + 1, 0);
    int leaves = scr_cache_leave(scr, cache, capacity, &tight);
    scr->output.start = MPI_Wtime();
    /* files of the evicted dataset stay until all ranks have reached this point */
    int rc = output_make_folder(scr, cache, desc, err);
    rc = agree_sum(scr->job.world, rc, err, 1, &tight);
    if (leaves) scr_removal_begin(&scr->cache, cache, leaves);
    if (!rc && tight) {
        scr_removal_settle(&scr->cache);
        MPI_Barrier(scr->job.world);
    }
    if (!rc) return SCR_SUCCESS;
    scr_cache_delete(scr, scr->lifecycle.open.id);
    return SCR_ERR_CACHE;
}

static int output_start_in_place(struct scr *scr, kvtree_error *err)
{
    scr->output.start = MPI_Wtime();
    return scr_bypass_start(scr, err) ? SCR_ERR_PREFIX : SCR_SUCCESS;
}

/* Reports, once in a run, that the program bypasses the cache. */
static void output_tell_in_place(struct scr *scr)
{
    if (scr->output.told_in_place) return;
    scr->output.told_in_place = true;
    scr_say(&scr->report, SCR_MSG_OUTPUT_IN_PLACE,
            "dataset %d (%s) is written to %s directly, and so are others for which the "
            "program asks with SCR_FLAG_BYPASS",
            scr->lifecycle.open.id, scr->lifecycle.open.name, scr->prefix.path);
}

int scr_output_start(struct scr *scr, const char *name, int flags)
{
    int64_t now;
    int gone;
    kvtree_error err = {""};
    if (output_check_arguments(scr, name, flags, &now, &gone, &err))
        return scr_fail(&scr->report, SCR_MSG_CALL_ARGUMENT_INVALID, SCR_ERR_ARGUMENT,
                        "SCR_Start_output: %s", err.text);
    if (scr->lifecycle.last.id >= SCR_ID_MAX || scr->lifecycle.last.ckpt >= SCR_ID_MAX)
        return scr_fail(&scr->report, SCR_MSG_DATASET_IDS_EXHAUSTED, SCR_FAILURE,
                        "SCR_Start_output: the highest dataset id, %d, is used in %s or "
                        "the cache; use another prefix directory",
                        SCR_ID_MAX, scr->prefix.path);
    if (gone && scr_folders_renew(scr, &err) != 0 && !scr->cache.lost)
        return scr_fail(&scr->report, SCR_MSG_OUTPUT_NO_CACHE, SCR_ERR_CACHE,
                        "SCR_Start_output: %s", err.text);
    scr_restart_remind(scr);
    scr_bypass_forget(scr);
    scr_job_lock_touch(&scr->cache);
    /* no rank removes anything before all ranks have reached this point */
    output_describe(scr, name, flags, now);
    const scr_reddesc *desc = scr_reddesc_for_dataset(
        &scr->descs.reddescs, scr->lifecycle.open.ckpt, scr->lifecycle.open.output);
    const bool bypass = desc->bypass || flags & SCR_FLAG_BYPASS;
    if (scr->cache.lost && !bypass)
        return scr_fail(&scr->report, SCR_MSG_OUTPUT_NO_CACHE, SCR_ERR_CACHE,
                        "SCR_Start_output: %s", err.text);
    scr->lifecycle.open.bypass = bypass;
    if (bypass && !desc->bypass) output_tell_in_place(scr);
    int rc = bypass ? output_start_in_place(scr, &err)
                    : output_start_in_cache(scr, desc, &err);
    if (rc)
        return scr_fail(&scr->report, SCR_MSG_OUTPUT_NOT_STARTED, rc,
                        "SCR_Start_output: %s", err.text);
    kvtree_unset_all(scr->output.routed);
    kvtree_unset_all(scr->output.refused);
    scr->output.route_failed = 0;
    scr->restart.offered = 0;
    scr_log_event e = scr_event_of(SCR_LOG_OUTPUT_START, &scr->lifecycle.open);
    e.compute = scr->output.start - scr->pace.idle_since;
    scr_event(&scr->report, SCR_MSG_OUTPUT_STARTED, &e, "dataset %d (%s) begins",
              scr->lifecycle.open.id, scr->lifecycle.open.name);
    scr->lifecycle.state = SCR_STATE_OUTPUT;
    return SCR_SUCCESS;
}

/* ---- complete ---- */

/* The meta data of a file, except for size and checksum. */
static kvtree *output_file_meta(const kvtree *routed)
{
    kvtree *meta = kvtree_new();
    int rc = kvtree_util_set_str(meta, SCR_META_TYPE, SCR_META_FULL);
    rc = rc ? rc
            : kvtree_util_set_str(meta, SCR_META_ORIG,
                                  kvtree_get_val(routed, SCR_META_ORIG));
    rc = rc ? rc : scr_meta_set_place(meta, kvtree_get_val(routed, SCR_META_PATH));
    if (rc) kvtree_delete(&meta);
    return meta;
}

static int output_add_file(struct scr *scr, const kvtree_elem *routed, redset_file *file,
                           unsigned long *bytes, kvtree_error *err)
{
    char path[SCR_CACHED_NAME_SIZE];
    struct stat st;
    const char *name = kvtree_elem_key(routed);
    *file =
        (redset_file){.name = name, .meta = output_file_meta(kvtree_elem_hash(routed))};
    if (!file->meta) return err_set(err, -ENOMEM, "no memory");
    scr_cached_name(scr->lifecycle.open.id, name, path);
    int rc = beneath_stat(scr_cache_of(&scr->cache, scr->lifecycle.open.id)->fd, path,
                          &st, err);
    if (rc == -ENOENT)
        return err_set(
            err, rc,
            "file \"%.200s\" was not written to the path that SCR_Route_file "
            "gave; for a program that writes elsewhere, set SCR_CACHE_BYPASS=1",
            name);
    if (rc) return rc;
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "\"%.200s\" is not a regular file", name);
    unsigned long length;
    if (kvtree_util_get_bytecount(kvtree_elem_hash(routed), SCR_ROUTED_LENGTH, &length) ==
            0 &&
        (unsigned long)st.st_size != length)
        return err_set(err, -EINVAL,
                       "\"%.200s\" has %lld bytes, but SCR_Route_file_part was called "
                       "for %lu",
                       name, (long long)st.st_size, length);
    file->size = (uint64_t)st.st_size;
    *bytes += (unsigned long)st.st_size;
    return 0;
}

/* Lists the routed files for redset, and sums up their bytes. */
static int output_collect_files(struct scr *scr, int *count, redset_file **files,
                                unsigned long *bytes, kvtree_error *err)
{
    int size = kvtree_size(scr->output.routed), rc = 0, n = 0;
    redset_file *list = calloc((size_t)size + 1, sizeof *list);
    if (!list) return err_set(err, -ENOMEM, "no memory");
    const kvtree_elem *e = kvtree_elem_first(scr->output.routed);
    *bytes = 0;
    for (; e && !rc; e = kvtree_elem_next(e))
        rc = output_add_file(scr, e, &list[n++], bytes, err);
    if (rc) {
        scr_files_free(n, list);
        return rc;
    }
    *files = list;
    *count = n;
    return 0;
}

/* Checks that each file, or each byte of a file that ranks write in parts, belongs to one
 * rank: two ranks would overwrite each other's data. */
static int output_check_owners(const scr_job *job, int count, const redset_file *files,
                               kvtree_error *err)
{
    filo_file *names = calloc((size_t)count + 1, sizeof *names);
    int rc = names ? 0 : -ENOMEM;
    for (int i = 0; i < count && !rc; i++) {
        names[i].name = strdup(files[i].name);
        names[i].size = files[i].size;
        names[i].rank = job->rank;
        rc = names[i].name ? scr_part_place(&names[i]) : -ENOMEM;
    }
    rc = agree(job->world, rc ? err_set(err, rc, "no memory") : 0, err);
    rc = rc ? rc : filo_check_names(job->world, count, names, err);
    int has_parts = 0;
    for (int i = 0; i < count && names; i++)
        has_parts |= names[i].packed;
    filo_files_free(count, names);
    if (rc != -EEXIST || scr_job_max(job, has_parts)) return rc;
    const kvtree_error why = *err;
    return err_set(
        err, rc,
        "%.350s; for files that several ranks write, use SCR_Route_file_part, or "
        "set SCR_CACHE_BYPASS=1",
        why.text);
}

/* Collective. Adds the node with the least free space to an error text. */
static void output_add_room(const scr_cache *cache, const scr_dataset *d,
                            kvtree_error *err)
{
    struct {
        double left;
        int rank;
    } least = {1e300, cache->job->rank};
    const scr_store_dir *c = scr_cache_of(cache, d->id);
    struct statvfs fs = {.f_frsize = 0};
    kvtree_error why, room = {""};
    if (c && fstatvfs(c->fd, &fs) == 0) least.left = (double)fs.f_bavail * fs.f_frsize;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, cache->job->world);
    if (least.rank == cache->job->rank && c)
        snprintf(room.text, sizeof room.text,
                 "%.180s on node %.60s has %.0f of %.0f bytes free", c->folder,
                 cache->job->node_name, least.left, (double)fs.f_blocks * fs.f_frsize);
    MPI_Bcast(room.text, sizeof room.text, MPI_CHAR, least.rank, cache->job->world);
    why = *err;
    if (room.text[0])
        snprintf(err->text, sizeof err->text, "%.200s; %.300s", why.text, room.text);
}

/* Completes the dataset in the cache. */
static int output_complete_in_cache(struct scr *scr, int valid, kvtree_error *err)
{
    scr_dataset *d = &scr->lifecycle.open;
    redset_file *files = NULL;
    unsigned long bytes = 0;
    scr_totals totals = {.files = 0};
    int count = 0, rc = output_collect_files(scr, &count, &files, &bytes, err);
    int code = SCR_ERR_INVALID;
    rc = rc ? rc : scr_routed_check(scr, valid, err);
    rc = scr_totals_agree(scr, rc, bytes, &totals, err);
    rc = rc ? rc : scr_routed_any(totals.files, err);
    if (!rc && (totals.parts || !totals.distinct))
        rc = output_check_owners(&scr->job, count, files, err);
    if (!rc) {
        d->size = totals.bytes;
        d->files = totals.files;
        d->complete = 1;
        code = SCR_ERR_REDUNDANCY;
        rc = scr_protect(&scr->cache, d, count, files, err);
        if ((rc == -ENOSPC || rc == -EDQUOT) && !d->bypass)
            output_add_room(&scr->cache, d, err);
    }
    scr_files_free(count, files);
    return rc ? code : SCR_SUCCESS;
}

static int output_count_down(kvtree *halt, void *unused)
{
    (void)unused;
    return scr_halt_count_checkpoint(halt);
}

static void output_count_checkpoint(struct scr *scr)
{
    if (scr->lifecycle.open.ckpt && scr->job.rank == 0)
        scr_halt_run_change(&scr->halt, output_count_down, NULL);
}

static void output_report(struct scr *scr, int rc, double seconds, const char *err)
{
    const scr_dataset *d = &scr->lifecycle.open;
    scr_log_event e =
        scr_event_of(rc ? SCR_LOG_OUTPUT_FAILED : SCR_LOG_OUTPUT_COMPLETE, d);
    e.files = d->files;
    e.bytes = (int64_t)d->size;
    e.secs = seconds;
    e.code = rc;
    if (rc)
        scr_event(&scr->report, SCR_MSG_OUTPUT_FAILED, &e,
                  "dataset %d (%s) is not complete and removed: %s", d->id, d->name, err);
    else
        scr_event(&scr->report, SCR_MSG_OUTPUT_COMPLETE, &e,
                  "dataset %d (%s) is complete in the %s: %ld files, %lu bytes, %.3f s, "
                  "%.1f MB/s",
                  d->id, d->name, d->bypass ? "prefix directory" : "cache", d->files,
                  d->size, seconds, seconds > 0 ? (double)d->size / seconds / 1e6 : 0.0);
}

static void output_remove(struct scr *scr)
{
    if (scr->lifecycle.open.bypass)
        scr_direct_remove(&scr->prefix, &scr->lifecycle.open, scr->output.routed);
    else
        scr_cache_delete(scr, scr->lifecycle.open.id);
    kvtree_unset_all(scr->output.routed);
}

int scr_output_complete(struct scr *scr, int valid)
{
    kvtree_error err = {""};
    scr_dataset *d = &scr->lifecycle.open;
    int rc = d->bypass ? scr_bypass_complete(scr, valid, &err)
                       : output_complete_in_cache(scr, valid, &err);
    scr_removal_settle(&scr->cache);
    double now = MPI_Wtime();
    scr->lifecycle.state = SCR_STATE_IDLE;
    scr->pace.idle_since = now;
    /* failed checkpoints count too: the next attempt is at the usual interval */
    if (d->ckpt) scr->pace.last_ckpt = scr_clock();
    output_report(scr, rc, now - scr->output.start, err.text);
    if (rc) {
        output_remove(scr);
        return rc;
    }
    kvtree_unset_all(scr->output.routed);
    if (!d->bypass) scr_location(&scr->prefix, d, SCR_LOCATION_CACHE, 1);
    if (!d->bypass) scr_cached_find(&scr->cache, d->id)->used = true;
    if (d->ckpt) scr_cache_outdate(scr); /* a newer checkpoint is complete */
    if (d->ckpt) scr_restart_forget(&scr->restart);
    output_count_checkpoint(scr);
    if (d->bypass && d->ckpt)
        scr_retain(scr, d->id);
    else if (!d->bypass && (d->output || (d->ckpt && scr_cadence_is_flush_due(
                                                         d->ckpt, scr->set.flush))))
        rc = scr_flush_start(scr, d->id);
    scr->pace.idle_since = MPI_Wtime();
    if (d->ckpt) scr_advise_cost(scr);
    return rc ? rc : scr_flush_result(scr);
}
