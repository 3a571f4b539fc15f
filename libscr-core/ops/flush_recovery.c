/* SPDX-License-Identifier: BSD-3-Clause */
/* Interrupted flushes of earlier runs of this job, as their stages show them. The process
 * scr_transfer continues to copy after the program has died. SCR_Init gathers the flushes
 * in stages and the state files of transfers, plan/resume.h decides which are resumed,
 * stopped or removed, and this file executes the decision
 * (docs/decisions/0022-a-stage-for-each-flush.md). */
#include "ops/context.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/number.h"
#include "common/record_size.h"
#include "plan/resume.h"
#include "prefix/flush_file.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of containers of a flush whose container size is not the configured
 * one. */
enum { CONTAINERS = 1 << 16 };

typedef struct recovery {
    struct scr *scr;
    uint64_t layout;
    scr_resume_facts facts; /* flushes: the same on every rank; transfers: of this node,
                               on its leader */
    scr_stages stages;      /* rank 0: the same flushes */
    bool has_stages;        /* rank 0: the stages could be listed */
} recovery;

/* ---- flushes in stages ---- */

/* The cached dataset that a flush copies; NULL: there is none that is complete and was
 * not refused by the program. */
static const scr_cached *recovery_cached(const recovery *r, const scr_staged *s)
{
    char identity[SCR_STAGE_IDENTITY_SIZE];
    const scr_cached *c = NULL;
    while ((c = scr_cached_next(&r->scr->cache, c ? c->d.id : 0)) != NULL) {
        scr_stage_identity(
            &r->scr->prefix, &c->d,
            scr_form_packs(&s->form) ? r->layout : (uint64_t)r->scr->job.ranks, identity);
        if (!c->d.borrowed && strcmp(c->d.name, s->name) == 0 &&
            strcmp(identity, s->identity) == 0 &&
            !scr_flush_file_has(r->scr->prefix.flush_file, c->d.id, SCR_LOCATION_FAILED))
            return c;
    }
    return NULL;
}

/* Whether the container size is the configured one, or does not lead to more containers
 * than any memory and file system can hold, and their alignment is one that a parameter
 * allows: other users may be able to change the record. */
static bool recovery_has_size(const recovery *r, const scr_staged *s,
                              const scr_dataset *d)
{
    const uint64_t size = s->form.container;
    if (s->form.align > SCR_ALIGN_MAX) return false;
    return size == 0 || size == r->scr->set.container_size || d->size / size < CONTAINERS;
}

static scr_resume_flush recovery_row(const recovery *r, const kvtree *index,
                                     const scr_staged *s)
{
    scr_index_state state = {.complete = 0};
    const scr_cached *c = recovery_cached(r, s);
    scr_resume_flush row = {.age = {s->id, 0}, .is_foreign = s->is_foreign};
    if (!c || !recovery_has_size(r, s, &c->d)) return row;
    scr_index_look(index, &c->d, &state);
    row.age = scr_dataset_age(&c->d);
    row.is_cached = true;
    row.is_stored = state.complete || scr_index_has_newer(index, &c->d);
    return row;
}

/* Rank 0. Lists the stages. false: they cannot be listed now; the next run tries
 * again. */
static bool recovery_list_stages(recovery *r)
{
    kvtree_error err = {""};
    scr_prefix *prefix = &r->scr->prefix;
    const kvtree *index;
    const scr_cached *c = NULL;
    r->stages.names = kvtree_new();
    while ((c = scr_cached_next(&r->scr->cache, c ? c->d.id : 0)) != NULL)
        kvtree_set(r->stages.names, c->d.name, NULL);
    if (scr_stages_find(prefix, &r->stages, &err) != 0 ||
        scr_index_view(prefix, &index, &err) != 0)
        return false;
    r->facts.flushes = calloc((size_t)r->stages.count + 1, sizeof *r->facts.flushes);
    if (!r->facts.flushes) return false;
    r->facts.flush_count = r->stages.count;
    for (int i = 0; i < r->stages.count; i++)
        r->facts.flushes[i] = recovery_row(r, index, &r->stages.list[i]);
    return true;
}

/* ---- transfers ---- */

/* The rank in a name "transfer_<rank>.scrinfo"; -1: another name. */
static int recovery_rank_of(const char *name)
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

/* Whether a rank runs on this node now. */
static bool recovery_is_here(const scr_job *job, int rank)
{
    MPI_Group world, node;
    int here = MPI_UNDEFINED;
    if (rank >= job->ranks) return false;
    MPI_Comm_group(job->world, &world);
    MPI_Comm_group(job->node, &node);
    MPI_Group_translate_ranks(world, 1, &rank, node, &here);
    MPI_Group_free(&world);
    MPI_Group_free(&node);
    return here != MPI_UNDEFINED;
}

/* Lists the state files on this node, at its leader. */
static void recovery_list_transfers(recovery *r)
{
    scr_resume_facts *f = &r->facts;
    const scr_job *job = &r->scr->job;
    DIR *stream = job->node_rank == 0 ? beneath_list(r->scr->cache.control_fd) : NULL;
    const struct dirent *item;
    f->transfer_count = 0;
    while (stream && (item = readdir(stream)) != NULL) {
        const int rank = recovery_rank_of(item->d_name);
        const size_t size = ((size_t)f->transfer_count + 1) * sizeof *f->transfers;
        scr_resume_transfer *more = rank >= 0 ? realloc(f->transfers, size) : NULL;
        if (!more)
            continue; /* without memory for it, its process ends when the stage is
                         removed */
        f->transfers = more;
        more[f->transfer_count++] =
            (scr_resume_transfer){.rank = rank, .is_here = recovery_is_here(job, rank)};
    }
    if (stream) closedir(stream);
}

/* Reports a damaged state file; its rank copies all of its files again. */
static void recovery_check_state(const struct scr *scr, int rank)
{
    char *path = scr_flush_state(scr, rank);
    kvtree_error err = {""};
    kvtree *state = kvtree_new();
    const char *name = path ? scr_path_basename(path) : NULL;
    if (name && state &&
        kvtree_file_read(scr->cache.control_fd, name, RECORD_SIZE_FILES, state, &err) ==
            -EBADMSG)
        scr_control_warn(&scr->cache, err.text);
    kvtree_delete(&state);
    free(path);
}

/* Collective. Stops transfers; on return only the transfers of a resumed flush still
 * copy. */
static void recovery_stop(const recovery *r)
{
    const struct scr *scr = r->scr;
    kvtree_error err = {""};
    int stopped = 0;
    for (int i = 0; i < r->facts.transfer_count; i++) {
        const scr_resume_transfer *t = &r->facts.transfers[i];
        if (!t->is_stopped) continue;
        char *path = scr_flush_state(scr, t->rank);
        recovery_check_state(scr, t->rank);
        if (path && filo_flush_abandon(path, scr->set.node_timeout, &err) == 0)
            stopped++;
        else if (path)
            scr_fail_local(&scr->report, SCR_MSG_FLUSH_NOT_ABANDONED, 0,
                           "node %s: the transfer of rank %d that an earlier run began "
                           "cannot be ended: %s",
                           scr->job.node_name, t->rank, err.text);
        free(path);
    }
    MPI_Allreduce(MPI_IN_PLACE, &stopped, 1, MPI_INT, MPI_SUM, scr->job.world);
    if (stopped)
        scr_say(&scr->report, SCR_MSG_FLUSH_ABANDONED,
                "%d transfers of files that an earlier run began are abandoned", stopped);
}

/* ---- gather and execute ---- */

/* Collective. Gathers the facts. */
static void recovery_gather(recovery *r)
{
    scr_resume_facts *f = &r->facts;
    const MPI_Comm world = r->scr->job.world;
    int has_transfer = 0;
    recovery_list_transfers(r);
    for (int i = 0; i < f->transfer_count; i++)
        has_transfer |= f->transfers[i].is_here;
    if (r->scr->job.rank == 0) r->has_stages = recovery_list_stages(r);
    MPI_Allreduce(MPI_IN_PLACE, &has_transfer, 1, MPI_INT, MPI_MAX, world);
    MPI_Bcast(&f->flush_count, 1, MPI_INT, 0, world);
    if (!f->flushes) f->flushes = calloc((size_t)f->flush_count + 1, sizeof *f->flushes);
    int failed = !f->flushes;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, world);
    if (failed) f->flush_count = 0;
    /* all ranks run the same program, so the structs have the same layout */
    MPI_Bcast(f->flushes, (int)((size_t)f->flush_count * sizeof *f->flushes), MPI_BYTE, 0,
              world);
    r->has_stages = r->has_stages && !failed;
    f->has_transfer = has_transfer != 0;
}

/* Collective. Executes the plan. Returns the code of the flush that is resumed. */
static int recovery_execute(recovery *r, int resumed)
{
    struct scr *scr = r->scr;
    filo_form form = {0};
    if (resumed >= 0) recovery_check_state(scr, scr->job.rank);
    recovery_stop(r);
    if (r->has_stages) {
        scr_stages_clean(&scr->prefix, &r->stages, r->facts.flushes);
        scr_index_settle(&scr->prefix);
    }
    if (resumed < 0) return SCR_SUCCESS;
    if (scr->job.rank == 0) form = r->stages.list[resumed].form;
    MPI_Bcast(&form, sizeof form, MPI_BYTE, 0, scr->job.world);
    return scr_flush_resume(scr, r->facts.flushes[resumed].age.id, &form);
}

void scr_flush_recover(struct scr *scr)
{
    recovery r = {.scr = scr, .layout = scr_flush_layout(scr)};
    recovery_gather(&r);
    while (recovery_execute(&r, scr_plan_resume(&r.facts)) != SCR_SUCCESS) {
        /* reading the files showed that the cache has lost the dataset: nothing is
         * resumed */
        for (int i = 0; i < r.facts.flush_count; i++)
            r.facts.flushes[i].is_cached = false;
        recovery_list_transfers(&r);
    }
    scr_stages_free(&r.stages);
    free(r.facts.flushes);
    free(r.facts.transfers);
}
