/* SPDX-License-Identifier: BSD-3-Clause */
/* Flush: copies a dataset from the cache to the prefix directory.
 *
 *                                        durable on the prefix directory
 *   IDLE
 *     | index: entry "not complete"      entry
 *   BEGUN
 *     | filo: record in the stage        entry
 *   STAGED  ------------------+
 *     | every rank copies     | error, stop: the stage is removed --> IDLE
 *   COPIED  ------------------+
 *     | an earlier map is removed, files are renamed
 *   RENAMED
 *     | map is written, the stage is removed
 *   MAPPED
 *     | summary
 *   SUMMARIZED
 *     | index: entry "complete"
 *   COMPLETE
 *
 * The stage is <dataset>/.scr/stage. Each step is durable before the next one begins,
 * except for the record (docs/decisions/0040-what-a-flush-syncs.md). A crash up to COPIED
 * leaves an earlier dataset of the same name unchanged. A crash in any state before
 * COMPLETE leaves an incomplete index entry, and the next start looks for a stage there
 * (ops/flush_recovery.c): it resumes the flush from STAGED or COPIED if the cache of this
 * job still has the dataset, and otherwise removes the stage. No other file records a
 * flush; FLUSHING in the flush file is for scripts. */
#include "ops/context.h"

#include "base/path.h"
#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "plan/part_name.h"
#include "plan/share.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include "report/progress.h"
#include "report/wait.h"
#include <errno.h>
#include <filo/filo_mpi.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the flush in progress ---- */

struct scr_flush_run {
    scr_dataset d;
    double start;
    const char *method;
    int background;
    int resumed; /* an earlier run began it */
    filo_form form;
    char identity[SCR_STAGE_IDENTITY_SIZE];
    char key[SCR_DATASET_KEY_SIZE]; /* in the map */
    filo_transfer *transfer;
};

/* Sets the flush in progress, or NULL; the cache keeps the files of its dataset. */
static void flush_set_current(struct scr *scr, struct scr_flush_run *f)
{
    scr->flush.current = f;
    scr->cache.flushing = f ? f->d.id : 0;
}

int scr_flush_id(const struct scr *scr)
{
    return scr->flush.current ? scr->flush.current->d.id : 0;
}

/* Sets the limits of a background flush; they hold for a node. */
static void flush_limit(const struct scr *scr, const struct scr_flush_run *f,
                        const char *slots, filo_options *o)
{
    const struct scr_settings *set = &scr->set;
    const scr_share_facts facts = {.ranks = scr->job.ranks,
                                   .node_ranks = scr->job.node_ranks,
                                   .leads = f->form.align > 0,
                                   .width = set->flush_width,
                                   .bandwidth = (double)set->flush_bandwidth,
                                   .percent = set->flush_percent};
    const scr_share share = scr_plan_share(&facts);
    o->slots = share.turns ? slots : NULL;
    o->slot_count = share.turns;
    o->bandwidth = share.bandwidth;
    o->percent = share.percent;
}

static filo_options flush_options(struct scr *scr, const struct scr_flush_run *f,
                                  const char *state, const char *slots)
{
    const struct scr_settings *set = &scr->set;
    filo_options o = {.method = f->method,
                      .checksum = set->crc_on_flush,
                      .width = set->flush_width,
                      .turn = scr->job.node_rank,
                      .identity = f->identity,
                      .dataset = f->key,
                      .container = f->form.container,
                      .align = f->form.align,
                      .nodes = (int)f->form.nodes,
                      .buffer = set->file_buffer,
                      .node = scr->job.node_name,
                      .ranks = f->d.ranks == scr->job.ranks ? 0 : f->d.ranks,
                      .patience = scr->set.node_timeout,
                      .progress = scr_tally_reporter(&scr->tally),
                      .progress_arg = scr_tally_arg(&scr->tally, SCR_TALLY_FLUSH),
                      .base = scr->prefix.real,
                      .has_group = scr->prefix.has_group,
                      .group = scr->prefix.group};
    if (strcmp(f->method, "daemon") == 0) {
        o.state = state;
        if (access(SCR_TRANSFER, X_OK) == 0) o.daemon = SCR_TRANSFER; /* else in $PATH */
    }
    if (f->background) flush_limit(scr, f, slots, &o);
    return o;
}

/* Reports a complete flush. */
static void flush_report_complete(struct scr *scr, const struct scr_flush_run *f,
                                  const scr_log_event *e)
{
    const scr_dataset *d = &f->d;
    if (f->resumed)
        scr_event(&scr->report, SCR_MSG_FLUSH_RESUMED_COMPLETE, e,
                  "the flush of dataset %d (%s) that an earlier run began is complete: "
                  "%lu bytes in %s",
                  d->id, d->name, d->size, scr->prefix.path);
    else
        scr_event(&scr->report, SCR_MSG_FLUSH_COMPLETE, e,
                  "dataset %d (%s) is flushed to %s%s: %lu bytes, %.3f s, %.1f MB/s",
                  d->id, d->name, scr->prefix.path,
                  f->background ? " in the background" : "", d->size, e->secs,
                  e->secs > 0 ? (double)d->size / e->secs / 1e6 : 0.0);
}

/* Reports and logs an event of the flush; err: why it failed. */
static void flush_report(struct scr *scr, const struct scr_flush_run *f,
                         scr_log_kind kind, const char *err)
{
    const scr_dataset *d = &f->d;
    char method[64];
    double seconds = MPI_Wtime() - f->start;
    scr_log_event e = scr_event_of(kind, d);
    snprintf(method, sizeof method, "%s%s", f->method,
             f->background ? " background" : "");
    e.from = scr_cache_path(&scr->cache, d->id);
    e.to = scr->prefix.path;
    e.method = method;
    e.files = d->files;
    e.bytes = (int64_t)d->size;
    e.secs = seconds;
    e.code = SCR_ERR_FLUSH;
    if (kind == SCR_LOG_FLUSH_START)
        scr_event(&scr->report,
                  f->resumed ? SCR_MSG_FLUSH_RESUMED : SCR_MSG_FLUSH_STARTED, &e,
                  "the flush of dataset %d (%s)%s", d->id, d->name,
                  f->resumed ? ", which an earlier run began, is continued" : " begins");
    else if (kind == SCR_LOG_FLUSH_STOPPED)
        scr_event(&scr->report, SCR_MSG_FLUSH_STOPPED, &e,
                  "the flush of dataset %d (%s) is stopped", d->id, d->name);
    else if (kind == SCR_LOG_FLUSH_FAILED)
        scr_event(&scr->report, SCR_MSG_FLUSH_FAILED, &e, "flush of dataset %d to %s: %s",
                  d->id, scr->prefix.path, err);
    else
        flush_report_complete(scr, f, &e);
}

char *scr_flush_state(const struct scr *scr, int rank)
{
    char *path;
    return asprintf(&path, "%s/transfer_%d.scrinfo", scr->cache.control, rank) < 0 ? NULL
                                                                                   : path;
}

/* Path of the file by which all transfers of this job on the node take turns. */
static char *flush_slots(const struct scr *scr)
{
    char *path;
    return asprintf(&path, "%s/transfer_turn", scr->cache.control) < 0 ? NULL : path;
}

static int flush_start_files(struct scr *scr, struct scr_flush_run *f, kvtree_error *err)
{
    scr_place place = {.folder = NULL};
    filo_file *files = NULL;
    char *state = scr_flush_state(scr, scr->job.rank), *slots = flush_slots(scr);
    int count = 0, rc = scr_place_of(&scr->prefix, &f->d, &place);
    if (!state || !slots) rc = -ENOMEM;
    if (rc) err_set(err, rc, "no memory");
    rc = rc ? rc : scr_flush_list(scr, &f->d, &place, &count, &files, err);
    rc = agree(scr->job.world, rc, err);
    if (!rc) {
        const filo_options options = flush_options(scr, f, state, slots);
        rc = filo_flush_start(scr->job.world, place.folder, place.map, count, files,
                              &options, &f->transfer, err);
    }
    filo_files_free(count, files);
    free(place.folder);
    free(state);
    free(slots);
    return rc;
}

/* Mixes the bits of a number well (S. Vigna, splitmix64). */
static uint64_t flush_mix_bits(uint64_t x)
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
    uint64_t sum = flush_mix_bits((uint64_t)scr->job.rank << 32 | (uint32_t)leader);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, scr->job.world);
    return sum;
}

/* Collective, agreed. Starts a flush, up to the copies of its files. */
static int flush_prepare(struct scr *scr, int id, struct scr_flush_run *f,
                         kvtree_error *err)
{
    f->start = MPI_Wtime();
    scr_tally_begin(&scr->tally, SCR_TALLY_FLUSH);
    int rc = scr_cache_ensure(scr, id) ? scr_cached_get(&scr->cache, id, &f->d) : -ENOENT;
    if (rc) err_set(err, rc, "dataset %d is not in the cache", id);
    rc = agree(scr->job.world, rc, err);
    if (rc) return rc;
    scr_flush_spread(scr, &f->d);
    flush_report(scr, f, SCR_LOG_FLUSH_START, NULL);
    scr_stage_identity(&scr->prefix, &f->d,
                       scr_form_packs(&f->form) ? scr_flush_layout(scr)
                                                : (uint64_t)scr->job.ranks,
                       f->identity);
    scr_dataset_key(&f->d, f->key);
    scr_location(&scr->prefix, &f->d, SCR_LOCATION_FLUSHING, 1);
    rc = agree(scr->job.world, scr_index_flush_begins(&scr->prefix, &f->d, err), err);
    return rc ? rc : flush_start_files(scr, f, err);
}

/* Collective. Ends a flush whose files were copied with the result rc and err. */
static int flush_conclude(struct scr *scr, struct scr_flush_run *f, int rc,
                          kvtree_error *err)
{
    static const scr_location_change ended[] = {{SCR_LOCATION_FLUSHING, 0},
                                                {SCR_LOCATION_PFS, 1}};
    const scr_dataset *d = &f->d;
    if (!rc)
        rc = agree(scr->job.world,
                   scr_index_flush_ends(&scr->prefix, d, scr->restart.below, err), err);
    if (!rc && d->id == scr->flush.failed_id) scr->flush.failed = SCR_SUCCESS;
    /* the index names this checkpoint now; the checkpoints that were skipped are older */
    if (!rc && d->ckpt && scr_dataset_is_after(d, scr->restart.below))
        scr_restart_forget(&scr->restart);
    scr_locations(&scr->prefix, d, rc ? 1 : 2, ended);
    flush_report(scr, f, rc ? SCR_LOG_FLUSH_FAILED : SCR_LOG_FLUSH_COMPLETE, err->text);
    if (!rc && filo_flush_left(f->transfer))
        scr_say(&scr->report, SCR_MSG_FLUSH_STAGE_KEPT,
                "the empty stage of the flush of dataset %d (%s) stays in %s: %s", d->id,
                d->name, scr->prefix.path, filo_flush_left(f->transfer));
    if (!rc && d->ckpt) scr_retain(scr, d->id);
    filo_flush_free(f->transfer);
    /* no run restarts from an output; the cache is for datasets that protect the run */
    if (!rc && d->output && !d->ckpt) scr_cache_drop(scr, d->id);
    free(f);
    return rc ? SCR_ERR_FLUSH : SCR_SUCCESS;
}

/* Collective. Ends the flush in progress, whose files were copied with the result rc. */
static void flush_end_background(struct scr *scr, int rc, kvtree_error *err)
{
    struct scr_flush_run *f = scr->flush.current;
    const int id = f->d.id;
    flush_set_current(scr, NULL);
    rc = flush_conclude(scr, f, rc, err);
    if (rc && !scr->flush.failed) {
        scr->flush.failed = rc;
        scr->flush.failed_id = id;
    }
}

void scr_flush_look(struct scr *scr)
{
    kvtree_error err = {""};
    if (!scr->flush.current) return;
    int rc = filo_flush_test(scr->flush.current->transfer, &err);
    if (rc != FILO_RUNNING) flush_end_background(scr, rc, &err);
}

void scr_flush_wait(struct scr *scr)
{
    kvtree_error err = {""};
    scr_wait wait;
    scr_progress progress;
    if (!scr->flush.current) return;
    const scr_dataset *d = &scr->flush.current->d;
    scr_wait_begin(&scr->report, &wait, SCR_MSG_FLUSH_WAIT,
                   "waits for the flush of dataset %d (%.150s) to %.250s", d->id, d->name,
                   scr->prefix.path);
    scr_show_progress(scr, &progress, SCR_MSG_FLUSH_PROGRESS, "flush", d);
    int rc = filo_flush_wait(scr->flush.current->transfer, &err);
    scr_progress_end(&progress);
    scr->flush.waited += scr_wait_end(&wait);
    flush_end_background(scr, rc, &err);
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
    flush_set_current(scr, NULL);
    filo_flush_free(f->transfer);
    flush_report(scr, f, SCR_LOG_FLUSH_STOPPED, NULL);
    scr_location(&scr->prefix, &f->d, SCR_LOCATION_FLUSHING, 0);
    free(f);
}

void scr_flush_forget(struct scr *scr)
{
    struct scr_flush_run *f = scr->flush.current;
    if (!f) return;
    flush_set_current(scr, NULL);
    filo_flush_forget(f->transfer);
    free(f);
}

int scr_flush_result(struct scr *scr)
{
    int rc = scr->flush.failed;
    scr->flush.failed = SCR_SUCCESS;
    return rc;
}

/* A request: a new flush, or one of an earlier run to resume. */
struct flush_request {
    int id; /* of the dataset */
    int background, resumed;
    filo_form form;
};

/* Collective. Starts the requested flush. NULL if this failed, which was reported; *code
 * gets the reason. */
static struct scr_flush_run *flush_try_begin(struct scr *scr,
                                             struct flush_request request, int *code)
{
    int id = request.id;
    kvtree_error err = {""};
    struct scr_flush_run *f = calloc(1, sizeof *f);
    int rc = agree(scr->job.world, f ? 0 : err_set(&err, -ENOMEM, "no memory"), &err);
    if (rc) {
        free(f);
        *code = scr_fail(&scr->report, SCR_MSG_FLUSH_FAILED, SCR_ERR_FLUSH,
                         "flush of dataset %d: %s", id, err.text);
        return NULL;
    }
    const scr_store_dir *cache = scr_cache_of(&scr->cache, id);
    f->method = cache ? cache->method : scr->set.flush_method;
    f->background = request.background;
    f->resumed = request.resumed;
    f->form = request.form;
    if (f->resumed) f->method = "daemon"; /* it may still be copying */
    f->d.id = id; /* for reports, if this rank does not have the dataset */
    rc = flush_prepare(scr, id, f, &err);
    if (!rc) return f;
    *code = flush_conclude(scr, f, rc, &err);
    return NULL;
}

/* ---- datasets that must not be flushed ---- */

/* Rank 0. Lists datasets that are newer than d and complete on the prefix directory, with
 * files outside of their own directories. *replaced: one with d's name is newer. */
static int flush_list_newer(struct scr *scr, const scr_dataset *d, int *replaced,
                            scr_dataset **list)
{
    kvtree_error err = {""};
    scr_index_state state;
    const kvtree *index;
    int count = 0, found = 0;
    if (scr_index_view(&scr->prefix, &index, &err) == 0) {
        *replaced = scr_index_has_newer(index, d);
        scr_index_list(index, list, &count);
    }
    for (int i = 0; i < count; i++) {
        const scr_dataset *n = &(*list)[i];
        if (scr_dataset_is_newer(n, d) && n->scattered &&
            scr_index_look(index, n, &state) == 0 && state.complete == 1 && !state.failed)
            (*list)[found++] = *n;
    }
    return found;
}

/* Appends a list of files to another, which takes ownership of them. 0 or -ENOMEM. */
static int flush_join_lists(int *count, filo_file **files, int more, filo_file *added)
{
    filo_file *list = realloc(*files, ((size_t)*count + (size_t)more + 1) * sizeof *list);
    if (!list) {
        filo_files_free(more, added);
        return -ENOMEM;
    }
    if (more) memcpy(list + *count, added, (size_t)more * sizeof *list);
    free(added);
    *files = list;
    *count += more;
    return 0;
}

/* Collective. 1 if both datasets have a file of the same name, on any ranks. 0 also if
 * the newer one has no usable map: then it has no files to protect. -errno with a text if
 * that cannot be determined now. */
static int flush_share_names(struct scr *scr, const scr_dataset *d,
                             const scr_dataset *newer, kvtree_error *err)
{
    scr_place place = {.folder = NULL}, other = {.folder = NULL};
    filo_file *files = NULL, *taken = NULL;
    int ranks, count = 0, taken_count = 0;
    int rc =
        scr_place_of(&scr->prefix, d, &place) + scr_place_of(&scr->prefix, newer, &other);
    const filo_options options = {.dataset = other.dataset, .every = 1};
    if (rc) err_set(err, rc, "no memory");
    rc = rc ? rc : scr_flush_list(scr, d, &place, &count, &files, err);
    rc = agree(scr->job.world, rc, err);
    rc = rc ? rc
            : filo_read_map(scr->job.world, other.folder, other.map, &ranks, &taken_count,
                            &taken, &options, err);
    if (!rc) {
        taken_count = scr_part_drop_parts(taken_count, taken); /* parts are not files
                                                                  there */
        rc = flush_join_lists(&count, &files, taken_count, taken);
        if (rc) err_set(err, rc, "no memory");
        rc = agree(scr->job.world, rc, err);
        rc = rc ? rc : filo_check_names(scr->job.world, count, files, err);
    }
    filo_files_free(count, files);
    free(place.folder);
    free(other.folder);
    if (rc == -EEXIST) return 1;
    return rc < 0 && rc != -ENOENT ? rc : 0;
}

/* Rank 0. Whether the index has the dataset as complete, even if the flush file does not
 * list it: a run was killed while fetching it. A flush would first mark it as
 * incomplete. */
static bool flush_is_stored(struct scr *scr, const scr_dataset *d)
{
    kvtree_error err = {""};
    scr_index_state state;
    const kvtree *index;
    return scr_index_view(&scr->prefix, &index, &err) == 0 &&
           scr_index_look(index, d, &state) == 0 && state.complete == 1 &&
           !state.failed && !state.deleting;
}

/* Collective. 1 if the dataset must not be flushed: it was fetched from a place where
 * other users can change its map, it is on the prefix directory, or a newer dataset that
 * is complete on the prefix directory has its name, or names of its files. -errno with a
 * text if that cannot be determined. */
static int flush_check_unwanted(struct scr *scr, int id, kvtree_error *err)
{
    scr_dataset d, newer, *list = NULL;
    int facts[2] = {0, 0}; /* replaced; datasets to compare with */
    int found = scr_cached_get(&scr->cache, id, &d) == 0;
    int least[] = {found, found ? -d.borrowed : 0};
    MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_INT, MPI_MIN, scr->job.world);
    if (!least[0]) return 0;
    scr_flush_spread(scr, &d);
    if (least[1]) {
        scr_say(
            &scr->report, SCR_MSG_FLUSH_BORROWED,
            "dataset %d (%s) is not flushed: it was fetched from %s, where other users "
            "can change it, and was deleted or dropped there since",
            id, d.name, scr->prefix.path);
        return 1;
    }
    if (scr_job_first(&scr->job, scr->job.rank == 0 && flush_is_stored(scr, &d))) {
        scr_say(&scr->report, SCR_MSG_FLUSH_NOT_NEEDED,
                "dataset %d (%s) is not flushed: the prefix directory has it", id,
                d.name);
        scr_location(&scr->prefix, &d, SCR_LOCATION_PFS, 1);
        return 1;
    }
    if (scr->job.rank == 0) facts[1] = flush_list_newer(scr, &d, &facts[0], &list);
    MPI_Bcast(facts, 2, MPI_INT, 0, scr->job.world);
    int replaced = facts[0];
    for (int i = 0; d.scattered && !replaced && i < facts[1]; i++) {
        if (scr->job.rank == 0) newer = list[i];
        MPI_Bcast(&newer, sizeof newer, MPI_BYTE, 0, scr->job.world);
        replaced = flush_share_names(scr, &d, &newer, err);
    }
    free(list);
    if (replaced > 0)
        scr_say(&scr->report, SCR_MSG_FLUSH_SUPERSEDED,
                "dataset %d is not flushed: the prefix directory has a newer one with "
                "its name or files",
                id);
    return replaced;
}

/* Collective. Whether the dataset is to be flushed; if not, *code is the result. */
static bool flush_is_wanted(struct scr *scr, int id, int *code)
{
    kvtree_error err = {""};
    int unwanted = flush_check_unwanted(scr, id, &err);
    *code = SCR_SUCCESS;
    if (unwanted < 0)
        *code = scr_fail(&scr->report, SCR_MSG_FLUSH_FAILED, SCR_ERR_FLUSH,
                         "flush of dataset %d: datasets with files of the same names "
                         "could not be read: %s",
                         id, err.text);
    return unwanted == 0;
}

static struct flush_request flush_request_of(const struct scr *scr, int id,
                                             int background)
{
    const struct scr_settings *set = &scr->set;
    struct flush_request request = {.id = id, .background = background};
    if (set->packing == SCR_PACKS_SIZED)
        request.form.container = set->container_size;
    else if (set->packing == SCR_PACKS_NODES)
        request.form = (filo_form){0, set->flush_align, (unsigned)set->container_nodes};
    return request;
}

int scr_flush_start(struct scr *scr, int id)
{
    int code;
    if (!scr->set.flush_async) return scr_flush_dataset(scr, id);
    scr_flush_wait(scr);
    if (!flush_is_wanted(scr, id, &code)) return code;
    flush_set_current(scr, flush_try_begin(scr, flush_request_of(scr, id, 1), &code));
    return code;
}

int scr_flush_resume(struct scr *scr, int id, const filo_form *form)
{
    int code = SCR_SUCCESS;
    const struct flush_request request = {
        .id = id, .background = 1, .resumed = 1, .form = *form};
    flush_set_current(scr, flush_try_begin(scr, request, &code));
    scr_flush_look(scr); /* all files may have been copied already */
    return code;
}

int scr_flush_dataset(struct scr *scr, int id)
{
    kvtree_error err = {""};
    scr_dataset d = {.id = id};
    scr_progress progress;
    int code;
    if (scr_flush_id(scr) == id) {
        scr_flush_wait(scr);
        return scr_flush_result(scr);
    }
    scr_flush_wait(scr);
    if (!flush_is_wanted(scr, id, &code)) return code;
    scr_cached_get(&scr->cache, id, &d);
    scr_show_progress(scr, &progress, SCR_MSG_FLUSH_PROGRESS, "flush", &d);
    struct scr_flush_run *f = flush_try_begin(scr, flush_request_of(scr, id, 0), &code);
    if (f) code = flush_conclude(scr, f, filo_flush_wait(f->transfer, &err), &err);
    scr_progress_end(&progress);
    return code;
}
