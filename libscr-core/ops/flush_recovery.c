/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushes that an earlier run of this job began and that were interrupted: what is in a
 * stage. The process scr_transfer goes on copying when the program has died. The newest
 * flush whose dataset is whole in the cache is resumed; all others are stopped, and their
 * stages are removed (docs/decisions/0022-a-stage-for-each-flush.md). */
#include "ops/folders.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/io.h"
#include "common/number.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include <dirent.h>
#include <errno.h>
#include <filo/filo_mpi.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The flush to resume; and, on rank 0, what the others are known by. */
struct recovery {
    struct scr *scr;
    const kvtree *index; /* on rank 0 */
    kvtree *names;       /* of datasets whose stages rank 0 sweeps, as keys */
    uint64_t layout;
    int id; /* of the dataset; 0: none is resumed */
    uint64_t container;
    char identity[SCR_FLUSH_IDENTITY_SIZE];
};

static void stage_of(const char *name, char stage[SCR_NAME_SIZE + 16])
{
    snprintf(stage, SCR_NAME_SIZE + 16, "%.*s/" FILO_STAGE, SCR_NAME_SIZE - 1, name);
}

/* ---- which one is resumed ---- */

/* A flush that is looked for in a stage. */
struct wanted {
    const struct recovery *r;
    const scr_dataset *d;
    int found;
    uint64_t container;
};

static int match_flush(void *arg, const filo_begun *flush)
{
    struct wanted *w = arg;
    char identity[SCR_FLUSH_IDENTITY_SIZE];
    const uint64_t layout = flush->container ? w->r->layout : 0;
    scr_flush_identity(w->r->scr, w->d, layout, identity);
    if (strcmp(identity, flush->identity) == 0) {
        w->found = 1;
        w->container = flush->container;
    }
    return 1; /* nothing is removed yet */
}

/* Rank 0. The run may have died after the index had named the dataset complete, or a
 * newer one of its name. */
static int is_complete(const struct recovery *r, const scr_dataset *d)
{
    struct scr *scr = r->scr;
    scr_index_state state = {.complete = 0};
    scr_index_look(r->index, d, &state);
    if (state.complete &&
        scr_flush_file_has(scr->prefix.flush_file, d->id, SCR_LOCATION_FLUSHING))
        scr_location(&scr->prefix, d, SCR_LOCATION_PFS, 1);
    return state.complete || scr_index_has_newer(r->index, d);
}

static void find_flush(const struct recovery *r, struct wanted *w)
{
    char stage[SCR_NAME_SIZE + 16];
    stage_of(w->d->name, stage);
    if (!is_complete(r, w->d))
        filo_begun_sweep(r->scr->prefix.fd, stage, match_flush, w, NULL);
}

/* Collective. Some rank has a state file on its node. */
static int has_state(const struct scr *scr)
{
    char *path = scr_flush_state(scr, scr->job.rank);
    int has = path && access(path, F_OK) == 0;
    free(path);
    MPI_Allreduce(MPI_IN_PLACE, &has, 1, MPI_INT, MPI_MAX, scr->job.world);
    return has;
}

/* Collective. Takes the flush of a cached dataset into r, if it can be resumed. */
static void try_resume(struct recovery *r, int id)
{
    const struct scr *scr = r->scr;
    scr_dataset d;
    int whole = scr_cached_get(&scr->cache, id, &d) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &whole, 1, MPI_INT, MPI_MIN, scr->job.world);
    if (!whole) return;
    struct wanted w = {.r = r, .d = &d};
    if (scr->job.rank == 0) find_flush(r, &w);
    MPI_Bcast(&w.found, 1, MPI_INT, 0, scr->job.world);
    MPI_Bcast(&w.container, 1, MPI_UINT64_T, 0, scr->job.world);
    if (!w.found) return;
    r->id = id;
    r->container = w.container;
    scr_flush_identity(scr, &d, w.container ? r->layout : 0, r->identity);
}

/* Collective. The newest. */
static void choose(struct recovery *r)
{
    const scr_cached *c = NULL;
    int any = has_state(r->scr);
    while ((c = scr_cached_next(&r->scr->cache, c ? c->d.id : 0)) != NULL) {
        kvtree_set(r->names, c->d.name, NULL);
        if (any) try_resume(r, c->d.id);
    }
}

/* ---- transfers ---- */

/* A damaged state file is reported; its rank copies all of its files. */
static void check_state(const struct scr *scr, int rank)
{
    char err[SCR_ERR_TEXT] = "", *path = scr_flush_state(scr, rank);
    kvtree *state = kvtree_new();
    const char *name = path ? scr_path_basename(path) : NULL;
    if (name && state &&
        kvtree_file_read(scr->cache.control_fd, name, state, err) == -EBADMSG)
        scr_control_warn(&scr->cache, err);
    kvtree_delete(&state);
    free(path);
}

/* The rank in "transfer_<rank>.scrinfo"; -1: another name. */
static int rank_of(const char *name)
{
    static const char before[] = "transfer_", after[] = ".scrinfo";
    char digits[NUMBER_TEXT_SIZE];
    int64_t rank;
    size_t n = strlen(name), first = sizeof before - 1, last = sizeof after - 1;
    if (n <= first + last || n - first - last >= sizeof digits ||
        strncmp(name, before, first) != 0 || strcmp(name + n - last, after) != 0)
        return -1;
    memcpy(digits, name + first, n - first - last);
    digits[n - first - last] = 0;
    return number_int64(digits, &rank) == 0 && rank >= 0 && rank <= INT32_MAX ? (int)rank
                                                                              : -1;
}

/* Collective over the node; the leader gets the ranks of its processes. NULL on others,
 * and without memory. */
static int *gather_ranks(const struct scr *scr)
{
    const scr_job *job = &scr->job;
    int *ranks =
        job->node_rank == 0 ? malloc((size_t)job->node_ranks * sizeof *ranks) : NULL;
    int failed = job->node_rank == 0 && !ranks;
    MPI_Bcast(&failed, 1, MPI_INT, 0, job->node);
    if (!failed) MPI_Gather(&job->rank, 1, MPI_INT, ranks, 1, MPI_INT, 0, job->node);
    return ranks;
}

static int is_among(int rank, const int *ranks, int count)
{
    for (int i = 0; i < count; i++)
        if (ranks[i] == rank) return 1;
    return 0;
}

/* The leader of a node stops transfers of ranks that are on other nodes now, and all of
 * them if no flush is resumed. */
static int stop_transfers(const struct scr *scr, const int *ranks, int resumed)
{
    char err[SCR_ERR_TEXT] = "";
    int stopped = 0;
    DIR *stream = beneath_list(scr->cache.control_fd);
    if (!stream) return 0;
    const struct dirent *item;
    while ((item = readdir(stream)) != NULL) {
        int rank = rank_of(item->d_name);
        if (rank < 0 || (resumed && is_among(rank, ranks, scr->job.node_ranks))) continue;
        char *path = scr_flush_state(scr, rank);
        check_state(scr, rank);
        if (path && filo_flush_abandon(path, scr->set.node_timeout, err) == 0)
            stopped++;
        else if (path)
            scr_event_local(&scr->report, 0, err);
        free(path);
    }
    closedir(stream);
    return stopped;
}

/* Collective. On return no process copies any more, but for a flush that is resumed. */
static void stop_others(const struct scr *scr, int resumed)
{
    int *ranks = gather_ranks(scr), stopped = 0;
    if (ranks) stopped = stop_transfers(scr, ranks, resumed);
    free(ranks);
    MPI_Allreduce(MPI_IN_PLACE, &stopped, 1, MPI_INT, MPI_SUM, scr->job.world);
    if (stopped)
        scr_say(&scr->report, 1,
                "%d transfers of files that an earlier run began are abandoned", stopped);
}

/* ---- stages ---- */

/* The stage of one dataset, on rank 0. */
struct sweep {
    const struct recovery *r;
    const char *name;
};

/* A flush of another job may still run. */
static int keep_flush(void *arg, const filo_begun *flush)
{
    const struct sweep *s = arg;
    const struct scr *scr = s->r->scr;
    int id, end = 0;
    int known = sscanf(flush->identity, "%d %*u %*x %n", &id, &end) == 1 && end;
    if (known && strcmp(flush->identity + end, scr->job.owner) != 0) return 1;
    if (s->r->id && strcmp(flush->identity, s->r->identity) == 0 &&
        flush->container == s->r->container)
        return 1;
    scr_say(&scr->report, 1,
            "a flush of dataset %d (%s) that an earlier run began is not resumed; its "
            "stage is removed",
            known ? id : 0, s->name);
    return 0;
}

static void sweep_stage(const struct recovery *r, const char *name)
{
    char err[SCR_ERR_TEXT] = "", stage[SCR_NAME_SIZE + 16], *end;
    struct sweep s = {r, name};
    scr_dataset d;
    const int prefix = r->scr->prefix.fd;
    int folder;
    if (scr_place_open(&r->scr->prefix, name, &folder, NULL) != 0) return;
    scr_records_sweep(&r->scr->prefix, folder, name);
    io_close(&folder);
    stage_of(name, stage);
    if (filo_begun_sweep(prefix, stage, keep_flush, &s, err) != 0)
        scr_say(&r->scr->report, 0,
                "warning: what an interrupted flush left in %s/%s stays: %s",
                r->scr->prefix.path, stage, err);
    /* of a dataset that no index has nothing but its stage was made */
    if (scr_index_get(r->index, name, &d) == 0) return;
    while ((end = strrchr(stage, '/')) != NULL && strlen(stage) > strlen(name)) {
        *end = 0;
        if (beneath_rmdir(prefix, stage, NULL) != 0) return;
    }
}

/* Rank 0. Stages are where the index names a dataset that is not complete; where it is an
 * earlier one, or was lost, also at other names. Without memory the next run does it. */
static void sweep_stages(const struct recovery *r)
{
    int count = 0;
    scr_dataset *all = NULL;
    scr_index_state state;
    if (r->scr->job.rank != 0) return;
    scr_index_list(r->index, &all, &count);
    for (int i = 0; i < count; i++)
        if (scr_index_look(r->index, &all[i], &state) != 0 || !state.complete)
            kvtree_set(r->names, all[i].name, NULL);
    free(all);
    kvtree_merge(r->names, r->scr->prefix.staged);
    const kvtree_elem *e = kvtree_elem_first(r->names);
    for (; e; e = kvtree_elem_next(e))
        sweep_stage(r, kvtree_elem_key(e));
}

void scr_flush_recover(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    struct recovery r = {
        .scr = scr, .names = kvtree_new(), .layout = scr_flush_layout(scr)};
    int known = 1;
    if (scr->job.rank == 0) known = scr_index_view(&scr->prefix, &r.index, err) == 0;
    MPI_Bcast(&known, 1, MPI_INT, 0, scr->job.world);
    if (known) choose(&r);
    if (r.id) check_state(scr, scr->job.rank);
    stop_others(scr, r.id != 0);
    if (known) sweep_stages(&r);
    if (r.id && scr_flush_resume(scr, r.id, r.container) != SCR_SUCCESS) {
        stop_others(scr, 0); /* the cache has lost the dataset when its files were read */
        r.id = 0;
        if (scr->job.rank == 0) known = scr_index_view(&scr->prefix, &r.index, err) == 0;
        if (known) sweep_stages(&r);
    }
    kvtree_delete(&r.names);
}
