/* SPDX-License-Identifier: BSD-3-Clause */
/* Flush: a dataset from the cache to the prefix folder. Order makes it safe: the index
 * says "not complete" before the first file is copied; files, map and summary follow; the
 * index says "complete" last. */
#include "scr_context.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "records/scr_flush_file.h"
#include "records/scr_index.h"
#include "records/scr_path.h"
#include <errno.h>
#include <fcntl.h>
#include <filo/filo_mpi.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A name that no index has that was set aside before. */
static void set_aside_name(const struct scr *scr, char name[64])
{
    struct stat st;
    int n = 1;
    do
        snprintf(name, 64, SCR_INDEX_NAME ".damaged.%d", n++);
    while (fstatat(scr->prefix_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
}

int scr_index_load(struct scr *scr, kvtree *index, char *err)
{
    int rc = scr_index_read(scr->prefix_fd, index, err);
    if (rc != -EBADMSG) return rc;
    char aside[64];
    set_aside_name(scr, aside);
    if (renameat(scr->prefix_fd, SCR_INDEX_NAME, scr->prefix_fd, aside) != 0)
        return err_sys(err, -errno, "%s is damaged and cannot be set aside",
                       SCR_INDEX_NAME);
    scr_say(scr, 0,
            "warning: %s; it is set aside as %s, and datasets that only it listed are "
            "not found",
            err, aside);
    kvtree_unset_all(index);
    return 0;
}

int scr_index_change(struct scr *scr, const char *name, int id,
                     int (*change)(kvtree *, const char *), char *err)
{
    scr_dataset found;
    kvtree *index = kvtree_new();
    int rc = scr_index_load(scr, index, err);
    if (!rc && (scr_index_get(index, name, &found) != 0 || found.id != id))
        rc = err_set(err, -ENOENT, "dataset %d is not in the index as %.200s", id, name);
    if (!rc && (rc = change(index, name)) != 0)
        err_sys(err, rc, "change %.200s in the index", name);
    rc = rc ? rc : scr_index_write(scr->prefix_fd, index, err);
    kvtree_delete(&index);
    return rc;
}

int scr_place_of(const struct scr *scr, const scr_dataset *dataset, scr_place *place)
{
    int in_folder = !dataset->scattered;
    snprintf(place->map, sizeof place->map, "%s%s" FILO_MAP,
             in_folder ? "" : dataset->name, in_folder ? "" : "/");
    snprintf(place->cache_prefix, sizeof place->cache_prefix, "%s%s",
             in_folder && dataset->named ? dataset->name : "",
             in_folder && dataset->named ? "/" : "");
    place->folder = in_folder ? scr_path_join(scr->prefix_real, dataset->name)
                              : strdup(scr->prefix_real);
    return place->folder ? 0 : -ENOMEM;
}

/* A named dataset is scattered when a file of any rank is not below the folder of its
 * name. */
static int is_scattered(struct scr *scr, const scr_dataset *d)
{
    int outside = 0;
    size_t n = strlen(d->name);
    const kvtree_elem *f =
        kvtree_elem_first(scr_filemap_files(scr->map, d->id, scr->rank));
    for (; f; f = kvtree_elem_next(f)) {
        const char *type = kvtree_get_val(kvtree_elem_hash(f), SCR_META_TYPE);
        const char *name = scr_filemap_name_of(kvtree_elem_key(f), scr->owner, d->id);
        if (!type || strcmp(type, SCR_META_FULL) != 0 || !name) continue;
        outside = outside || strncmp(name, d->name, n) != 0 || name[n] != '/';
    }
    MPI_Allreduce(MPI_IN_PLACE, &outside, 1, MPI_INT, MPI_MAX, scr->world);
    return d->named && outside;
}

/* This rank's files of the dataset, as filo sees them. */
static int list_files(struct scr *scr, const scr_dataset *d, const scr_place *place,
                      int *count, filo_file **files, char *err)
{
    const kvtree *all = scr_filemap_files(scr->map, d->id, scr->rank);
    const kvtree_elem *e;
    int n = 0, bad = 0;
    filo_file *list = calloc((size_t)kvtree_size(all) + 1, sizeof *list);
    if (!list) return err_set(err, -ENOMEM, "no memory");
    for (e = kvtree_elem_first(all); e && !bad; e = kvtree_elem_next(e)) {
        const kvtree *meta = kvtree_elem_hash(e);
        const char *type = kvtree_get_val(meta, SCR_META_TYPE);
        const char *name = scr_filemap_name_of(kvtree_elem_key(e), scr->owner, d->id);
        unsigned long size, crc = 0;
        if (!type || strcmp(type, SCR_META_FULL) != 0) continue;
        bad = !name || kvtree_util_get_bytecount(meta, SCR_META_SIZE, &size) != 0;
        if (bad) break;
        filo_file *f = &list[n++];
        f->local = strdup(kvtree_elem_key(e));
        f->name = strdup(name + strlen(place->cache_prefix));
        f->size = size;
        f->has_crc =
            scr->set.crc_on_flush && kvtree_util_get_crc32(meta, SCR_META_CRC, &crc) == 0;
        f->crc = (uint32_t)crc;
        bad = !f->local || !f->name;
    }
    if (bad) {
        filo_files_free(n, list);
        return err_set(err, -ENOMEM, "no memory, or a record without a size");
    }
    *count = n;
    *files = list;
    return 0;
}

/* 1 when the index has a newer checkpoint that is still wanted: one that is flushed late
 * does not take its place. */
static int is_overtaken(const struct scr *scr, const kvtree *index, const scr_dataset *d)
{
    scr_dataset next;
    return scr_index_next_fetch(index, INT_MAX, &next) == 0 && next.id > d->id &&
           next.id < scr->fetch_below;
}

/* Rank 0 enters the dataset into the index. */
static int enter(struct scr *scr, const scr_dataset *d, int complete, char *err)
{
    kvtree *index = kvtree_new();
    int rc = scr_index_load(scr, index, err);
    if (!rc && scr_index_add(index, d, complete) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    if (!rc && complete && d->ckpt && !is_overtaken(scr, index, d) &&
        scr_index_set_current(index, d->name) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    rc = rc ? rc : scr_index_write(scr->prefix_fd, index, err);
    kvtree_delete(&index);
    return rc;
}

static int begin(struct scr *scr, const scr_dataset *d, char *err)
{
    char hidden[SCR_NAME_SIZE + 8];
    if (scr->rank != 0) return 0;
    int rc = enter(scr, d, 0, err);
    snprintf(hidden, sizeof hidden, "%s/.scr", d->name);
    return rc ? rc : beneath_mkdirs(scr->prefix_fd, hidden, 0777, err);
}

static int finish(struct scr *scr, const scr_dataset *d, char *err)
{
    if (scr->rank != 0) return 0;
    int folder;
    char *path = scr_path_join(scr->prefix_real, d->name);
    int rc = path ? beneath_open_folder(path, &folder, err)
                  : err_set(err, -ENOMEM, "no memory");
    free(path);
    if (rc) return rc;
    rc = scr_summary_write(folder, d, err);
    close(folder);
    return rc ? rc : enter(scr, d, 1, err);
}

/* ---- a flush under way ---- */

struct scr_flush {
    scr_dataset d;
    double start;
    int background;
    filo_transfer *transfer;
};

int scr_flush_id(const struct scr *scr)
{
    return scr->flushing ? scr->flushing->d.id : 0;
}

/* Limits are those of a node, and hold in the background only. */
static filo_options options_of(const struct scr *scr, int background, const char *state)
{
    const struct scr_settings *set = &scr->set;
    filo_options o = {.method = set->flush_method,
                      .checksum = set->crc_on_flush,
                      .width = set->flush_width,
                      .container = set->containers ? set->container_size : 0,
                      .node = scr->node_name};
    if (strcmp(set->flush_method, "daemon") == 0) {
        o.state = state;
        if (access(SCR_TRANSFER, X_OK) == 0) o.daemon = SCR_TRANSFER; /* else in $PATH */
    }
    if (!background) return o;
    o.bandwidth = (double)set->flush_bandwidth / scr->node_ranks;
    o.percent = set->flush_percent / scr->node_ranks;
    return o;
}

/* How the flush goes, said and logged; err: why it failed. */
static void tell(struct scr *scr, const struct scr_flush *f, scr_log_kind kind,
                 const char *err)
{
    const scr_dataset *d = &f->d;
    char method[64];
    double seconds = MPI_Wtime() - f->start;
    scr_log_event e = scr_event_of(kind, d);
    snprintf(method, sizeof method, "%s%s", scr->set.flush_method,
             f->background ? " background" : "");
    e.from = scr->cache;
    e.to = scr->prefix;
    e.method = method;
    e.files = d->files;
    e.bytes = (int64_t)d->size;
    e.secs = seconds;
    e.code = SCR_ERR_FLUSH;
    if (kind == SCR_LOG_FLUSH_START)
        scr_event(scr, 2, &e, "the flush of dataset %d (%s) begins", d->id, d->name);
    else if (kind == SCR_LOG_FLUSH_STOPPED)
        scr_event(scr, 1, &e, "the flush of dataset %d (%s) is stopped", d->id, d->name);
    else if (kind == SCR_LOG_FLUSH_FAILED)
        scr_event_fail(scr, SCR_ERR_FLUSH, &e, "flush of dataset %d to %s: %s", d->id,
                       scr->prefix, err);
    else
        scr_event(scr, 1, &e,
                  "dataset %d (%s) is flushed to %s%s: %lu bytes, %.3f s, %.1f MB/s",
                  d->id, d->name, scr->prefix, f->background ? " in the background" : "",
                  d->size, seconds, seconds > 0 ? (double)d->size / seconds / 1e6 : 0.0);
}

static int start_files(struct scr *scr, struct scr_flush *f, char *err)
{
    scr_place place = {.folder = NULL};
    filo_file *files = NULL;
    char *state = NULL;
    int count = 0, rc = scr_place_of(scr, &f->d, &place);
    if (!rc &&
        asprintf(&state, "%s/transfer_%d.scrinfo", scr->control, scr->node_rank) < 0) {
        state = NULL;
        rc = -ENOMEM;
    }
    if (rc) err_set(err, rc, "no memory");
    rc = rc ? rc : list_files(scr, &f->d, &place, &count, &files, err);
    rc = agree(scr->world, rc, err);
    if (!rc) {
        const filo_options options = options_of(scr, f->background, state);
        rc = filo_flush_start(scr->world, place.folder, place.map, count, files, &options,
                              &f->transfer, err);
    }
    filo_files_free(count, files);
    free(place.folder);
    free(state);
    return rc;
}

/* Collective, agreed. From the record that a flush begins to its first bytes. */
static int start(struct scr *scr, int id, struct scr_flush *f, char *err)
{
    f->start = MPI_Wtime();
    int rc = scr_cached_get(scr, id, &f->d);
    if (rc) err_set(err, rc, "dataset %d is not in the cache", id);
    rc = agree(scr->world, rc, err);
    if (rc) return rc;
    f->d.scattered = is_scattered(scr, &f->d);
    tell(scr, f, SCR_LOG_FLUSH_START, NULL);
    scr_location(scr, &f->d, SCR_LOCATION_FLUSHING, 1);
    rc = agree(scr->world, begin(scr, &f->d, err), err);
    return rc ? rc : start_files(scr, f, err);
}

/* Collective. rc and err: how the files fared. Ends the flush. */
static int conclude(struct scr *scr, struct scr_flush *f, int rc, char *err)
{
    const scr_dataset *d = &f->d;
    if (!rc) rc = agree(scr->world, finish(scr, d, err), err);
    if (!rc) scr_location(scr, d, SCR_LOCATION_PFS, 1);
    /* it is what the index names now, and what was passed over is older */
    if (!rc && d->ckpt && d->id >= scr->fetch_below) scr->fetch_below = INT_MAX;
    scr_location(scr, d, SCR_LOCATION_FLUSHING, 0);
    tell(scr, f, rc ? SCR_LOG_FLUSH_FAILED : SCR_LOG_FLUSH_COMPLETE, err);
    filo_flush_free(f->transfer);
    free(f);
    return rc ? SCR_ERR_FLUSH : SCR_SUCCESS;
}

/* Collective. The flush that was under way ended with rc. */
static void end_background(struct scr *scr, int rc, char *err)
{
    struct scr_flush *f = scr->flushing;
    scr->flushing = NULL;
    rc = conclude(scr, f, rc, err);
    if (!scr->flush_failed) scr->flush_failed = rc;
}

void scr_flush_look(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    if (!scr->flushing) return;
    int rc = filo_flush_test(scr->flushing->transfer, err);
    if (rc != FILO_RUNNING) end_background(scr, rc, err);
}

void scr_flush_wait(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    if (!scr->flushing) return;
    int rc = filo_flush_wait(scr->flushing->transfer, err);
    end_background(scr, rc, err);
}

void scr_flush_stop(struct scr *scr, int id)
{
    struct scr_flush *f = scr->flushing;
    if (!f || (id && f->d.id != id)) return;
    scr->flushing = NULL;
    filo_flush_free(f->transfer);
    tell(scr, f, SCR_LOG_FLUSH_STOPPED, NULL);
    scr_location(scr, &f->d, SCR_LOCATION_FLUSHING, 0);
    free(f);
}

int scr_flush_result(struct scr *scr)
{
    int rc = scr->flush_failed;
    scr->flush_failed = SCR_SUCCESS;
    return rc;
}

/* Collective. NULL when it could not be started, which was said then, and is in *code. */
static struct scr_flush *try_start(struct scr *scr, int id, int background, int *code)
{
    char err[SCR_ERR_TEXT] = "";
    struct scr_flush *f = calloc(1, sizeof *f);
    int rc = agree(scr->world, f ? 0 : err_set(err, -ENOMEM, "no memory"), err);
    if (rc) {
        free(f);
        *code = scr_fail(scr, SCR_ERR_FLUSH, "flush of dataset %d: %s", id, err);
        return NULL;
    }
    f->background = background;
    f->d.id = id; /* for what is said where this rank does not have the dataset */
    rc = start(scr, id, f, err);
    if (!rc) return f;
    *code = conclude(scr, f, rc, err);
    return NULL;
}

int scr_flush_start(struct scr *scr, int id)
{
    int code = SCR_SUCCESS;
    if (!scr->set.flush_async) return scr_flush_dataset(scr, id);
    scr_flush_wait(scr);
    scr->flushing = try_start(scr, id, 1, &code);
    return code;
}

int scr_flush_dataset(struct scr *scr, int id)
{
    char err[SCR_ERR_TEXT] = "";
    int code = SCR_SUCCESS;
    if (scr_flush_id(scr) == id) {
        scr_flush_wait(scr);
        return scr_flush_result(scr);
    }
    scr_flush_wait(scr);
    struct scr_flush *f = try_start(scr, id, 0, &code);
    return f ? conclude(scr, f, filo_flush_wait(f->transfer, err), err) : code;
}
