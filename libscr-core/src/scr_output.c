/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing a dataset: SCR_Start_output and SCR_Complete_output. */
#include "scr_context.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "records/scr_flush_file.h"
#include "records/scr_halt.h"
#include "records/scr_path.h"
#include <errno.h>
#include <filo/filo_mpi.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>

/* ---- start ---- */

/* Name and flags must be the same on every rank, and the name one that may be a folder.
 */
static int check_arguments(struct scr *scr, const char *name, int flags, char *err)
{
    struct {
        int flags, named;
        char name[SCR_NAME_SIZE];
    } first, mine;
    memset(&mine, 0, sizeof mine);
    mine.flags = flags;
    mine.named = name != NULL;
    int rc = name ? beneath_check_name(name, err) : 0;
    if (!rc && name) strcpy(mine.name, name);
    if (!rc && name && scr_name_is_reserved(name))
        rc = err_set(err, -EINVAL, "\"%s\" is a name of SCR itself", name);
    if (!rc && flags & ~(SCR_FLAG_CHECKPOINT | SCR_FLAG_OUTPUT))
        rc = err_set(err, -EINVAL, "unknown flags 0x%x", (unsigned)flags);
    first = mine;
    MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, scr->world);
    if (!rc && memcmp(&first, &mine, sizeof mine) != 0)
        rc = err_set(err, -EINVAL,
                     "rank 0 gave name \"%s\" and flags %d, here they are \"%s\" and %d",
                     first.name, first.flags, mine.name, mine.flags);
    return agree(scr->world, rc, err);
}

/* Fills in the description on rank 0 (its clock counts) and hands it out. */
static void describe(struct scr *scr, const char *name, int flags)
{
    scr_dataset *d = &scr->open;
    struct timeval now;
    gettimeofday(&now, NULL);
    memset(d, 0, sizeof *d);
    d->id = ++scr->dataset_id;
    if (flags & SCR_FLAG_CHECKPOINT) d->ckpt = ++scr->ckpt_id;
    d->output = (flags & SCR_FLAG_OUTPUT) != 0;
    d->named = name != NULL;
    d->ranks = scr->ranks;
    d->created = (int64_t)now.tv_sec * 1000000 + now.tv_usec;
    if (name)
        strcpy(d->name, name);
    else
        snprintf(d->name, sizeof d->name, "scr.dataset.%d", d->id);
    memcpy(d->user, scr->user, sizeof d->user);
    memcpy(d->job_id, scr->job_id, sizeof d->job_id);
    memcpy(d->job_name, scr->job_name, sizeof d->job_name);
    memcpy(d->cluster, scr->cluster, sizeof d->cluster);
    MPI_Bcast(&d->created, 1, MPI_INT64_T, 0, scr->world);
}

int scr_output_start(struct scr *scr, const char *name, int flags)
{
    char err[SCR_ERR_TEXT] = "";
    if (check_arguments(scr, name, flags, err))
        return scr_fail(scr, SCR_ERR_ARGUMENT, "SCR_Start_output: %s", err);
    /* nobody removes anything before all ranks have come this far */
    scr_cache_make_room(scr, scr->set.cache_size, 0);
    scr->output_start = MPI_Wtime();
    describe(scr, name, flags);
    int rc = agree(scr->world, scr_dataset_folder_make(scr, scr->open.id, err), err);
    if (rc) {
        scr_cache_delete(scr, scr->open.id);
        return scr_fail(scr, SCR_ERR_CACHE, "SCR_Start_output: %s", err);
    }
    kvtree_unset_all(scr->routed);
    scr->restart_offered = 0;
    scr_log_event e = scr_event_of(SCR_LOG_OUTPUT_START, &scr->open);
    e.compute = scr->output_start - scr->idle_since;
    scr_event(scr, 2, &e, "dataset %d (%s) begins", scr->open.id, scr->open.name);
    scr->state = SCR_STATE_OUTPUT;
    return SCR_SUCCESS;
}

/* ---- complete ---- */

/* What is remembered of a file besides size and checksum. */
static kvtree *file_meta(const kvtree *routed)
{
    kvtree *meta = kvtree_new();
    const char *path = kvtree_get_val(routed, SCR_META_PATH);
    char *folder = strdup(path);
    int rc = folder ? 0 : -ENOMEM;
    if (!rc) folder[scr_path_basename(path) - path - 1] = 0;
    rc = rc ? rc : kvtree_util_set_str(meta, SCR_META_TYPE, SCR_META_FULL);
    rc = rc ? rc
            : kvtree_util_set_str(meta, SCR_META_ORIG,
                                  kvtree_get_val(routed, SCR_META_ORIG));
    rc = rc ? rc : kvtree_util_set_str(meta, SCR_META_PATH, folder[0] ? folder : "/");
    rc = rc ? rc : kvtree_util_set_str(meta, SCR_META_NAME, scr_path_basename(path));
    free(folder);
    if (rc) kvtree_delete(&meta);
    return meta;
}

static void free_files(int count, redset_file *files)
{
    for (int i = 0; files && i < count; i++) {
        kvtree *meta = (kvtree *)(uintptr_t)files[i].meta;
        kvtree_delete(&meta);
    }
    free(files);
}

static int add_file(struct scr *scr, const kvtree_elem *routed, redset_file *file,
                    unsigned long *bytes, char *err)
{
    char path[SCR_CACHED_NAME_SIZE];
    struct stat st;
    const char *name = kvtree_elem_key(routed);
    *file = (redset_file){.name = name, .meta = file_meta(kvtree_elem_hash(routed))};
    if (!file->meta) return err_set(err, -ENOMEM, "no memory");
    scr_cached_name(scr->open.id, name, path);
    int rc = beneath_stat(scr->cache_fd, path, &st, err);
    if (rc == -ENOENT) return err_set(err, rc, "file \"%.200s\" was not written", name);
    if (rc) return rc;
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "\"%.200s\" is not a regular file", name);
    *bytes += (unsigned long)st.st_size;
    return 0;
}

/* The routed files as redset sees them, and their bytes. */
static int collect_files(struct scr *scr, int *count, redset_file **files,
                         unsigned long *bytes, char *err)
{
    int size = kvtree_size(scr->routed), rc = 0, n = 0;
    redset_file *list = calloc((size_t)size + 1, sizeof *list);
    if (!list) return err_set(err, -ENOMEM, "no memory");
    const kvtree_elem *e = kvtree_elem_first(scr->routed);
    *bytes = 0;
    for (; e && !rc; e = kvtree_elem_next(e))
        rc = add_file(scr, e, &list[n++], bytes, err);
    if (rc) {
        free_files(n, list);
        return rc;
    }
    *files = list;
    *count = n;
    return 0;
}

int scr_protect(struct scr *scr, const scr_dataset *dataset, int count,
                redset_file *files, char *err)
{
    redset_manifest manifest = {
        .count = count, .files = files, .place = *redset_get_place(scr->redset)};
    char *folder = scr_dataset_folder(scr, dataset->id), path[SCR_CACHED_NAME_SIZE];
    kvtree *about = kvtree_new();
    int rc = folder && about ? scr_dataset_to_tree(dataset, about) : -ENOMEM;
    if (rc) err_set(err, rc, "no memory");
    rc = agree(scr->world, rc, err);
    rc = rc ? rc : redset_encode(scr->redset, folder, about, count, files, err);
    if (!rc) {
        struct stat st;
        rc = redset_file_name(&manifest.place, manifest.file);
        scr_cached_name(dataset->id, manifest.file, path);
        rc = rc ? rc : beneath_stat(scr->cache_fd, path, &st, err);
        manifest.file_size = rc ? 0 : (uint64_t)st.st_size;
        rc = rc ? rc : scr_map_record(scr, dataset, &manifest, err);
        rc = rc ? rc : scr_map_write(scr, err);
        rc = agree(scr->world, rc, err);
    }
    kvtree_delete(&about);
    free(folder);
    return rc;
}

/* A file belongs to one rank: two that wrote the same one would each count the other's
 * bytes as their own. */
static int check_owners(struct scr *scr, int count, const redset_file *files, char *err)
{
    filo_file *names = calloc((size_t)count + 1, sizeof *names);
    int rc = agree(scr->world, names ? 0 : err_set(err, -ENOMEM, "no memory"), err);
    for (int i = 0; names && i < count; i++)
        names[i].name = (char *)(uintptr_t)files[i].name;
    rc = rc ? rc : filo_check_names(scr->world, count, names, err);
    free(names);
    return rc;
}

/* Everything up to the point where the dataset is complete in the cache. */
static int complete_in_cache(struct scr *scr, int valid, char *err)
{
    scr_dataset *d = &scr->open;
    redset_file *files = NULL;
    unsigned long sums[2] = {0, 0};
    int count = 0, rc = collect_files(scr, &count, &files, &sums[0], err);
    int code = SCR_ERR_INVALID;
    if (!rc && !valid)
        rc = err_set(err, -EINVAL, "the application says that its files are not valid");
    rc = agree(scr->world, rc, err);
    rc = rc ? rc : check_owners(scr, count, files, err);
    if (!rc) {
        sums[1] = (unsigned long)count;
        MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UNSIGNED_LONG, MPI_SUM, scr->world);
        d->size = sums[0];
        d->files = (int)sums[1];
        d->complete = 1;
        code = SCR_ERR_REDUNDANCY;
        rc = scr_protect(scr, d, count, files, err);
    }
    free_files(count, files);
    return rc ? code : SCR_SUCCESS;
}

static void count_checkpoint(struct scr *scr, double now)
{
    if (!scr->open.ckpt) return;
    char err[SCR_ERR_TEXT] = "";
    double cost = now - scr->output_start;
    scr->ckpt_cost = (scr->ckpt_cost * scr->ckpt_count + cost) / (scr->ckpt_count + 1);
    scr->ckpt_count++;
    if (scr->rank != 0) return;
    scr_halt_refresh(scr);
    if (scr_halt_count_checkpoint(scr->halt) &&
        scr_halt_write(scr->prefix_fd, scr->halt, err) != 0)
        scr_say(scr, 0, "warning: the halt file could not be written: %s", err);
}

/* The outcome, said and logged. */
static void tell_outcome(struct scr *scr, int rc, double seconds, const char *err)
{
    const scr_dataset *d = &scr->open;
    scr_log_event e =
        scr_event_of(rc ? SCR_LOG_OUTPUT_FAILED : SCR_LOG_OUTPUT_COMPLETE, d);
    e.files = d->files;
    e.bytes = (int64_t)d->size;
    e.secs = seconds;
    e.code = rc;
    if (rc)
        scr_event_fail(scr, rc, &e, "dataset %d (%s) is not complete and removed: %s",
                       d->id, d->name, err);
    else
        scr_event(
            scr, 1, &e,
            "dataset %d (%s) is complete in the cache: %d files, %lu bytes, %.3f s, "
            "%.1f MB/s",
            d->id, d->name, d->files, d->size, seconds,
            seconds > 0 ? (double)d->size / seconds / 1e6 : 0.0);
}

int scr_output_complete(struct scr *scr, int valid)
{
    char err[SCR_ERR_TEXT] = "";
    scr_dataset *d = &scr->open;
    int rc = complete_in_cache(scr, valid, err);
    double now = MPI_Wtime();
    scr->state = SCR_STATE_IDLE;
    scr->idle_since = now;
    /* a checkpoint that failed counts, too: the next attempt has the usual distance */
    if (d->ckpt) scr->need_calls = 0;
    if (d->ckpt) scr->last_ckpt = now;
    kvtree_unset_all(scr->routed);
    tell_outcome(scr, rc, now - scr->output_start, err);
    if (rc) {
        scr_cache_delete(scr, d->id);
        return rc;
    }
    scr_location(scr, d, SCR_LOCATION_CACHE, 1);
    if (d->ckpt) scr_cache_delete_aside(scr, 0); /* a newer one is complete */
    count_checkpoint(scr, now);
    if (d->output || (d->ckpt && scr_decide_flush(d->ckpt, scr->set.flush)))
        rc = scr_flush_start(scr, d->id);
    scr->idle_since = MPI_Wtime();
    if (d->ckpt) scr->last_ckpt = scr->idle_since;
    return rc ? rc : scr_flush_result(scr);
}
