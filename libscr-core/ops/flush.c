/* SPDX-License-Identifier: BSD-3-Clause */
/* Flush: a dataset from the cache to the prefix folder. Order makes it safe: the index
 * says "not complete" before the first file is copied; files, map and summary follow; the
 * index says "complete" last. A flush has an id, which the flush file names before its
 * first file is made, so that a later run can resume it, or remove what is left of it
 * (ops/flush_recovery.c). */
#include "ops/context.h"

#include "base/path.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/replace.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include "report/wait.h"
#include <errno.h>
#include <filo/filo_mpi.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a flush under way ---- */

struct scr_flush_run {
    scr_dataset d;
    double start;
    const char *method;
    int background;
    int resumed; /* an earlier run began it */
    scr_flush_record record;
    filo_transfer *transfer;
};

int scr_flush_id(const struct scr *scr)
{
    return scr->flush.current ? scr->flush.current->d.id : 0;
}

/* Limits are those of a node, and hold in the background only. */
static filo_options options_of(const struct scr *scr, const struct scr_flush_run *f,
                               const char *state)
{
    const struct scr_settings *set = &scr->set;
    filo_options o = {.method = f->method,
                      .checksum = set->crc_on_flush,
                      .width = set->flush_width,
                      .id = f->record.trace.id,
                      .container = f->record.container,
                      .buffer = set->file_buffer,
                      .node = scr->job.node_name,
                      .patience = scr->set.node_timeout,
                      .base = scr->prefix.real};
    if (strcmp(f->method, "daemon") == 0) {
        o.state = state;
        if (access(SCR_TRANSFER, X_OK) == 0) o.daemon = SCR_TRANSFER; /* else in $PATH */
    }
    if (!f->background) return o;
    o.bandwidth = (double)set->flush_bandwidth / scr->job.node_ranks;
    o.percent = set->flush_percent / scr->job.node_ranks;
    return o;
}

/* The last words of a flush that went well. */
static void tell_complete(struct scr *scr, const struct scr_flush_run *f,
                          const scr_log_event *e)
{
    const scr_dataset *d = &f->d;
    if (f->resumed)
        scr_event(&scr->report, 1, e,
                  "the flush of dataset %d (%s) that an earlier run began is complete: "
                  "%lu bytes in %s",
                  d->id, d->name, d->size, scr->prefix.path);
    else
        scr_event(&scr->report, 1, e,
                  "dataset %d (%s) is flushed to %s%s: %lu bytes, %.3f s, %.1f MB/s",
                  d->id, d->name, scr->prefix.path,
                  f->background ? " in the background" : "", d->size, e->secs,
                  e->secs > 0 ? (double)d->size / e->secs / 1e6 : 0.0);
}

/* How the flush goes, said and logged; err: why it failed. */
static void tell(struct scr *scr, const struct scr_flush_run *f, scr_log_kind kind,
                 const char *err)
{
    const scr_dataset *d = &f->d;
    char method[64];
    double seconds = MPI_Wtime() - f->start;
    scr_log_event e = scr_event_of(kind, d);
    snprintf(method, sizeof method, "%s%s", f->method,
             f->background ? " background" : "");
    e.from = scr_cache_path(scr, d->id);
    e.to = scr->prefix.path;
    e.method = method;
    e.files = d->files;
    e.bytes = (int64_t)d->size;
    e.secs = seconds;
    e.code = SCR_ERR_FLUSH;
    if (kind == SCR_LOG_FLUSH_START)
        scr_event(&scr->report, f->resumed ? 1 : 2, &e, "the flush of dataset %d (%s)%s",
                  d->id, d->name,
                  f->resumed ? ", which an earlier run began, goes on" : " begins");
    else if (kind == SCR_LOG_FLUSH_STOPPED)
        scr_event(&scr->report, 1, &e, "the flush of dataset %d (%s) is stopped", d->id,
                  d->name);
    else if (kind == SCR_LOG_FLUSH_FAILED)
        scr_event_fail(&scr->report, SCR_ERR_FLUSH, &e, "flush of dataset %d to %s: %s",
                       d->id, scr->prefix.path, err);
    else
        tell_complete(scr, f, &e);
}

char *scr_flush_state(const struct scr *scr, int rank)
{
    char *path;
    return asprintf(&path, "%s/transfer_%d.scrinfo", scr->cache.control, rank) < 0 ? NULL
                                                                                   : path;
}

static int start_files(struct scr *scr, struct scr_flush_run *f, char *err)
{
    scr_place place = {.folder = NULL};
    filo_file *files = NULL;
    char *state = scr_flush_state(scr, scr->job.rank);
    int count = 0, rc = scr_place_of(scr, &f->d, &place);
    if (!state) rc = -ENOMEM;
    if (rc) err_set(err, rc, "no memory");
    rc = rc ? rc : scr_flush_list(scr, &f->d, &place, &count, &files, err);
    rc = agree(scr->job.world, rc, err);
    if (!rc) {
        const filo_options options = options_of(scr, f, state);
        rc = filo_flush_start(scr->job.world, place.folder, place.map, count, files,
                              &options, &f->transfer, err);
    }
    filo_files_free(count, files);
    free(place.folder);
    free(state);
    return rc;
}

/* Mixes the bits of a number well (S. Vigna, splitmix64). */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t scr_flush_layout(const struct scr *scr)
{
    int leader = scr->job.rank;
    MPI_Bcast(&leader, 1, MPI_INT, 0, scr->job.node);
    uint64_t sum = mix((uint64_t)scr->job.rank << 32 | (uint32_t)leader);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, scr->job.world);
    return sum;
}

/* Collective, agreed. Fills in the record of a new flush. */
static int draw_record(struct scr *scr, struct scr_flush_run *f, char *err)
{
    scr_flush_record *r = &f->record;
    const struct scr_settings *set = &scr->set;
    int rc = 0;
    while (scr->job.rank == 0 && !rc && !r->trace.id)
        rc = replace_draw(&r->trace.id);
    if (rc) err_sys(err, rc, "random names");
    rc = agree(scr->job.world, rc, err);
    MPI_Bcast(&r->trace.id, 1, MPI_UINT64_T, 0, scr->job.world);
    r->dset = f->d.id;
    strcpy(r->name, f->d.name);
    strcpy(r->owner, scr->job.owner);
    r->container = set->containers ? set->container_size : 0;
    r->layout = r->container ? scr_flush_layout(scr) : 0;
    return rc;
}

/* On rank 0: from now on the flush file knows of it, before anything is made. */
static void note_begin(struct scr *scr, const struct scr_flush_run *f)
{
    if (scr->job.rank == 0 &&
        scr_flush_file_begin(scr->prefix.flush_file, &f->record) != 0)
        scr_say(&scr->report, 0, "warning: no memory for the flush file");
    scr_location(scr, &f->d, SCR_LOCATION_FLUSHING, 1);
}

/* It is over, and nothing is left of it. */
static void note_end(struct scr *scr, const struct scr_flush_run *f)
{
    if (scr->job.rank == 0)
        scr_flush_file_end(scr->prefix.flush_file, f->record.trace.id);
    scr_location(scr, &f->d, SCR_LOCATION_FLUSHING, 0);
}

/* Collective, agreed. From the record that a flush begins to its first bytes. */
static int start(struct scr *scr, int id, struct scr_flush_run *f, char *err)
{
    char below[SCR_NAME_SIZE];
    f->start = MPI_Wtime();
    int rc = scr_cache_ensure(scr, id) ? scr_cached_get(scr, id, &f->d) : -ENOENT;
    if (rc) err_set(err, rc, "dataset %d is not in the cache", id);
    rc = agree(scr->job.world, rc, err);
    if (rc) return rc;
    scr_flush_spread(scr, &f->d, below);
    tell(scr, f, SCR_LOG_FLUSH_START, NULL);
    rc = f->resumed ? 0 : draw_record(scr, f, err);
    if (rc) return rc;
    strcpy(f->record.trace.below, below);
    note_begin(scr, f);
    rc = scr_index_flush_begins(scr, &f->d, &f->record.trace, err);
    rc = agree(scr->job.world, rc, err);
    return rc ? rc : start_files(scr, f, err);
}

/* Collective. rc and err: how the files fared. Ends the flush. */
static int conclude(struct scr *scr, struct scr_flush_run *f, int rc, char *err)
{
    const scr_dataset *d = &f->d;
    if (!rc) rc = agree(scr->job.world, scr_index_flush_ends(scr, d, err), err);
    if (!rc) scr_location(scr, d, SCR_LOCATION_PFS, 1);
    if (!rc && d->id == scr->flush.failed_id) scr->flush.failed = SCR_SUCCESS;
    /* it is what the index names now, and what was skipped is older */
    if (!rc && d->ckpt && scr_dataset_is_after(d, scr->restart.below))
        scr_restart_forget(scr);
    /* when all is there, nobody writes to temporary files of it, whoever made them */
    if (f->resumed) scr_flush_clean(scr, d, rc ? f->record.trace.id : 0);
    note_end(scr, f);
    tell(scr, f, rc ? SCR_LOG_FLUSH_FAILED : SCR_LOG_FLUSH_COMPLETE, err);
    if (!rc && d->ckpt) scr_window_move(scr, d->id);
    filo_flush_free(f->transfer);
    /* nobody restarts from it: the cache is for what protects the run */
    if (!rc && d->output && !d->ckpt) scr_cache_delete(scr, d->id);
    free(f);
    return rc ? SCR_ERR_FLUSH : SCR_SUCCESS;
}

/* Collective. The flush that was under way ended with rc. */
static void end_background(struct scr *scr, int rc, char *err)
{
    struct scr_flush_run *f = scr->flush.current;
    const int id = f->d.id;
    scr->flush.current = NULL;
    rc = conclude(scr, f, rc, err);
    if (rc && !scr->flush.failed) {
        scr->flush.failed = rc;
        scr->flush.failed_id = id;
    }
}

void scr_flush_look(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    if (!scr->flush.current) return;
    int rc = filo_flush_test(scr->flush.current->transfer, err);
    if (rc != FILO_RUNNING) end_background(scr, rc, err);
}

void scr_flush_wait(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    scr_wait wait;
    if (!scr->flush.current) return;
    const scr_dataset *d = &scr->flush.current->d;
    scr_wait_begin(&scr->report, &wait,
                   "waits for the flush of dataset %d (%.150s) to %.250s", d->id, d->name,
                   scr->prefix.path);
    int rc = filo_flush_wait(scr->flush.current->transfer, err);
    scr->flush.waited += scr_wait_end(&wait);
    end_background(scr, rc, err);
}

void scr_flush_wait_for(struct scr *scr, const char *name)
{
    const struct scr_flush_run *f = scr->flush.current;
    if (f && (f->d.scattered || strcmp(f->d.name, name) == 0)) scr_flush_wait(scr);
}

void scr_flush_stop(struct scr *scr, int id)
{
    struct scr_flush_run *f = scr->flush.current;
    if (!f || (id && f->d.id != id)) return;
    scr->flush.current = NULL;
    filo_flush_free(f->transfer);
    tell(scr, f, SCR_LOG_FLUSH_STOPPED, NULL);
    note_end(scr, f);
    free(f);
}

int scr_flush_result(struct scr *scr)
{
    int rc = scr->flush.failed;
    scr->flush.failed = SCR_SUCCESS;
    return rc;
}

/* What is asked for: one of an earlier run, or a new one. */
struct wish {
    int id; /* of the dataset */
    int background;
    const scr_flush_record *earlier; /* or NULL */
};

/* Collective. NULL when it could not be started, which was said then, and is in *code. */
static struct scr_flush_run *try_start(struct scr *scr, struct wish wish, int *code)
{
    int id = wish.id;
    char err[SCR_ERR_TEXT] = "";
    struct scr_flush_run *f = calloc(1, sizeof *f);
    int rc = agree(scr->job.world, f ? 0 : err_set(err, -ENOMEM, "no memory"), err);
    if (rc) {
        free(f);
        *code = scr_fail(&scr->report, SCR_ERR_FLUSH, "flush of dataset %d: %s", id, err);
        return NULL;
    }
    const scr_store_dir *cache = scr_cache_of(scr, id);
    f->method = cache ? cache->method : scr->set.flush_method;
    f->background = wish.background;
    f->resumed = wish.earlier != NULL;
    if (f->resumed) f->record = *wish.earlier;
    if (f->resumed) f->method = "daemon"; /* which may be at it still */
    f->d.id = id; /* for what is said where this rank does not have the dataset */
    rc = start(scr, id, f, err);
    if (!rc) return f;
    *code = conclude(scr, f, rc, err);
    return NULL;
}

/* ---- what must not be flushed any more ---- */

/* Collective. The i-th dataset that is newer than d and whole on the prefix folder, with
 * files outside of its own folder; 0: there is none. */
static int get_newer(struct scr *scr, const scr_dataset *d, int i, scr_dataset *newer)
{
    char err[SCR_ERR_TEXT] = "";
    scr_dataset *list = NULL;
    scr_index_state state;
    kvtree *index = scr->job.rank == 0 ? kvtree_new() : NULL;
    int count = 0, found = 0;
    if (index && scr_index_load(scr, index, err) == 0)
        scr_index_list(index, &list, &count);
    for (int k = 0; k < count && !found; k++) {
        if (!scr_dataset_is_newer(&list[k], d) || !list[k].scattered ||
            list[k].ranks != scr->job.ranks ||
            scr_index_look(index, &list[k], &state) != 0 || state.complete != 1 ||
            state.failed || i-- > 0)
            continue;
        *newer = list[k];
        found = 1;
    }
    kvtree_delete(&index);
    free(list);
    MPI_Bcast(&found, 1, MPI_INT, 0, scr->job.world);
    if (found) MPI_Bcast(newer, sizeof *newer, MPI_BYTE, 0, scr->job.world);
    return found;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const filo_file *)a)->name, ((const filo_file *)b)->name);
}

/* Whether a name is in both lists, which are sorted here. */
static int have_common(int count, filo_file *files, int others, filo_file *other)
{
    if (count) qsort(files, (size_t)count, sizeof *files, by_name);
    if (others) qsort(other, (size_t)others, sizeof *other, by_name);
    for (int i = 0, k = 0; i < count && k < others;) {
        int order = by_name(&files[i], &other[k]);
        if (order == 0) return 1;
        i += order < 0;
        k += order > 0;
    }
    return 0;
}

/* Collective. 1 when some rank has a name in both. A newer one without a usable map is no
 * dataset that anything could be taken from. -errno with a text where that cannot be told
 * now. */
static int share_names(struct scr *scr, const scr_dataset *d, const scr_dataset *newer,
                       char *err)
{
    scr_place place = {.folder = NULL}, other = {.folder = NULL};
    filo_file *files = NULL, *taken = NULL;
    int ranks, count = 0, taken_count = 0, shared = 0;
    int rc = scr_place_of(scr, d, &place) + scr_place_of(scr, newer, &other);
    if (rc) err_set(err, rc, "no memory");
    rc = rc ? rc : scr_flush_list(scr, d, &place, &count, &files, err);
    rc = agree(scr->job.world, rc, err);
    rc = rc ? rc
            : filo_read_map(scr->job.world, other.folder, other.map, &ranks, &taken_count,
                            &taken, NULL, err);
    if (!rc) shared = have_common(count, files, taken_count, taken);
    MPI_Allreduce(MPI_IN_PLACE, &shared, 1, MPI_INT, MPI_MAX, scr->job.world);
    filo_files_free(count, files);
    filo_files_free(taken_count, taken);
    free(place.folder);
    free(other.folder);
    return rc < 0 && rc != -ENOENT ? rc : shared;
}

/* Collective. 1 when a newer dataset that is whole on the prefix folder has the name of
 * this one, or names of its files; -errno with a text where that cannot be told. */
static int is_replaced(struct scr *scr, int id, char *err)
{
    scr_dataset d, newer;
    int found = scr_cached_get(scr, id, &d) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_INT, MPI_MIN, scr->job.world);
    if (!found) return 0;
    int replaced = scr->job.rank == 0 && scr_index_replaced(scr, &d);
    MPI_Bcast(&replaced, 1, MPI_INT, 0, scr->job.world);
    scr_flush_spread(scr, &d, NULL);
    for (int i = 0; d.scattered && !replaced && get_newer(scr, &d, i, &newer); i++)
        replaced = share_names(scr, &d, &newer, err);
    if (replaced > 0)
        scr_say(&scr->report, 1,
                "dataset %d is not flushed: the prefix folder has a newer one of its "
                "name, or with files of the same names",
                id);
    return replaced;
}

/* Collective. 1 when the dataset is to be flushed; else *code is the result. */
static int is_to_go(struct scr *scr, int id, int *code)
{
    char err[SCR_ERR_TEXT] = "";
    int replaced = is_replaced(scr, id, err);
    *code = SCR_SUCCESS;
    if (replaced < 0)
        *code = scr_fail(&scr->report, SCR_ERR_FLUSH,
                         "flush of dataset %d: it cannot be told whether a newer one has "
                         "files of the same names: %s",
                         id, err);
    return replaced == 0;
}

int scr_flush_start(struct scr *scr, int id)
{
    int code;
    if (!scr->set.flush_async) return scr_flush_dataset(scr, id);
    scr_flush_wait(scr);
    if (!is_to_go(scr, id, &code)) return code;
    scr->flush.current = try_start(scr, (struct wish){id, 1, NULL}, &code);
    return code;
}

int scr_flush_resume(struct scr *scr, const scr_flush_record *earlier)
{
    int code = SCR_SUCCESS;
    scr->flush.current = try_start(scr, (struct wish){earlier->dset, 1, earlier}, &code);
    scr_flush_look(scr); /* all may have been copied */
    return code;
}

int scr_flush_dataset(struct scr *scr, int id)
{
    char err[SCR_ERR_TEXT] = "";
    int code;
    if (scr_flush_id(scr) == id) {
        scr_flush_wait(scr);
        return scr_flush_result(scr);
    }
    scr_flush_wait(scr);
    if (!is_to_go(scr, id, &code)) return code;
    struct scr_flush_run *f = try_start(scr, (struct wish){id, 0, NULL}, &code);
    return f ? conclude(scr, f, filo_flush_wait(f->transfer, err), err) : code;
}
