/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushes that an earlier run of this job began, and that did not end with it: the
 * process scr_transfer goes on copying when the program has died. The newest of them
 * whose dataset is whole in the cache is resumed; what nobody goes on with is stopped,
 * and its temporary files are removed
 * (docs/decisions/0016-flushes-that-outlive-their-program.md). */
#include "ops/folders.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/io.h"
#include "common/number.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include "prefix/names.h"
#include "prefix/scan.h"
#include "prefix/trace.h"
#include <dirent.h>
#include <errno.h>
#include <filo/filo_mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- which one ---- */

/* Collective. The i-th record of this job, the same on every rank; 0: there is none. */
static int get_record(const struct scr *scr, int i, scr_flush_record *r)
{
    int found = scr->job.rank == 0 &&
                scr_flush_file_get(scr->prefix.flush_file, scr->job.owner, i, r) == 0;
    MPI_Bcast(&found, 1, MPI_INT, 0, scr->job.world);
    if (found) MPI_Bcast(r, sizeof *r, MPI_BYTE, 0, scr->job.world);
    return found;
}

/* Collective. The dataset of a record is in the cache, and every rank has its part. */
static int is_cached(const struct scr *scr, const scr_flush_record *r, scr_dataset *d)
{
    const scr_cached *c = scr_cached_find(&scr->cache, r->dset);
    int cached = c && c->state == SCR_CACHED_GOOD &&
                 scr_cached_get(&scr->cache, r->dset, d) == 0 &&
                 strcmp(d->name, r->name) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &cached, 1, MPI_INT, MPI_MIN, scr->job.world);
    return cached;
}

/* Collective. The run died after the index had named the dataset complete, or a newer one
 * of its name. */
static int is_complete(struct scr *scr, const scr_dataset *d)
{
    char err[SCR_ERR_TEXT] = "";
    scr_index_state state = {.complete = 0};
    kvtree *index = kvtree_new();
    if (scr->job.rank == 0 && scr_index_load(scr, index, err) == 0)
        scr_index_look(index, d, &state);
    kvtree_delete(&index);
    MPI_Bcast(&state.complete, 1, MPI_INT, 0, scr->job.world);
    if (state.complete) scr_location(scr, d, SCR_LOCATION_PFS, 1);
    int replaced = scr->job.rank == 0 && scr_index_replaced(scr, d);
    MPI_Bcast(&replaced, 1, MPI_INT, 0, scr->job.world);
    return state.complete || replaced;
}

/* A damaged state file is told of; its rank copies all of its files once more. */
static void look_at_state(const struct scr *scr, int rank)
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

/* Collective. Some rank has a state file on its node. */
static int has_state(const struct scr *scr)
{
    char *path = scr_flush_state(scr, scr->job.rank);
    int has = path && access(path, F_OK) == 0;
    free(path);
    MPI_Allreduce(MPI_IN_PLACE, &has, 1, MPI_INT, MPI_MAX, scr->job.world);
    return has;
}

/* Collective. Whether the flush can go on. */
static int can_resume(struct scr *scr, const scr_flush_record *r)
{
    scr_dataset d;
    return is_cached(scr, r, &d) && !is_complete(scr, &d) && has_state(scr) &&
           (!r->container || scr_flush_layout(scr) == r->layout);
}

/* ---- transfers ---- */

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
    int *ranks = scr->job.node_rank == 0
                     ? malloc((size_t)scr->job.node_ranks * sizeof *ranks)
                     : NULL;
    int failed = scr->job.node_rank == 0 && !ranks;
    MPI_Bcast(&failed, 1, MPI_INT, 0, scr->job.node);
    if (!failed)
        MPI_Gather(&scr->job.rank, 1, MPI_INT, ranks, 1, MPI_INT, 0, scr->job.node);
    return ranks;
}

static int is_among(int rank, const int *ranks, int count)
{
    for (int i = 0; i < count; i++)
        if (ranks[i] == rank) return 1;
    return 0;
}

/* The leader of a node stops transfers of ranks that are elsewhere now, and all if none
 * is resumed. Files of the flush keep stay: whose they are fills them from where he is.
 */
static int stop_transfers(const struct scr *scr, const int *ranks, uint64_t keep)
{
    char err[SCR_ERR_TEXT] = "";
    int stopped = 0;
    DIR *stream = beneath_list(scr->cache.control_fd);
    if (!stream) return 0;
    const struct dirent *item;
    while ((item = readdir(stream)) != NULL) {
        int rank = rank_of(item->d_name);
        if (rank < 0 || (keep && is_among(rank, ranks, scr->job.node_ranks))) continue;
        char *path = scr_flush_state(scr, rank);
        look_at_state(scr, rank);
        if (path && filo_flush_abandon(path, keep, scr->set.node_timeout, err) == 0)
            stopped++;
        else if (path)
            scr_event_local(&scr->report, 0, err);
        free(path);
    }
    closedir(stream);
    return stopped;
}

/* Collective. On return nobody copies any more but for the flush keep. */
static void stop_others(const struct scr *scr, uint64_t keep)
{
    int *ranks = gather_ranks(scr), stopped = 0;
    if (ranks) stopped = stop_transfers(scr, ranks, keep);
    free(ranks);
    MPI_Allreduce(MPI_IN_PLACE, &stopped, 1, MPI_INT, MPI_SUM, scr->job.world);
    if (stopped)
        scr_say(&scr->report, 1,
                "%d transfers of files that an earlier run began are given up", stopped);
}

/* ---- what is left ---- */

/* What is removed, on rank 0. */
struct left {
    struct scr *scr;
    kvtree *ids;   /* of flushes of which nothing will be left, as keys */
    kvtree *names; /* of datasets that may be unfinished, as keys */
    kvtree *wide;  /* folder / ids: whose files may lie anywhere below it */
};

/* Temporary files in the folder of a dataset; id 0: of any flush. */
static void clean_folder(const struct scr *scr, const char *name, uint64_t id)
{
    char err[SCR_ERR_TEXT] = "";
    int folder = -1;
    if (scr_place_open(scr, name, &folder, NULL) == 0 &&
        filo_remove_temporaries(folder, id, 1, err) != 0)
        scr_event_local(&scr->report, 0, err);
    io_close(&folder);
}

/* Rank 0. Of a flush that the cache knows nothing of. Without memory the next run does
 * what is left out here. */
static void clean_trace(const struct left *left, const char *name, const scr_trace *t)
{
    char id[SCR_TRACE_DIGITS + 1];
    scr_trace_print(t->id, id);
    clean_folder(left->scr, name, t->id);
    if (strcmp(t->below, name) == 0)
        kvtree_set(left->ids, id, NULL);
    else
        kvtree_set_kv(left->wide, t->below, id);
}

static int is_unwanted(void *ids, uint64_t id)
{
    char text[SCR_TRACE_DIGITS + 1];
    scr_trace_print(id, text);
    return kvtree_get(ids, text) != NULL;
}

/* Rank 0. What lies among files of others is looked for once. */
static void clean_wide(const struct left *left)
{
    const struct scr *scr = left->scr;
    const kvtree_elem *e = kvtree_elem_first(left->wide);
    for (; e; e = kvtree_elem_next(e)) {
        char err[SCR_ERR_TEXT] = "";
        const char *below = kvtree_elem_key(e);
        kvtree *ids = kvtree_elem_hash(e);
        int folder = -1, rc = scr_place_open(scr, below, &folder, NULL);
        if (!rc)
            rc = filo_remove_temporaries_below(folder, is_unwanted, ids, SCR_SCAN_NAMES,
                                               err);
        if (rc && rc != -ENOENT)
            scr_say(&scr->report, 0,
                    "warning: temporary files of flushes that were cut off may be left "
                    "in %s%s%s: %s",
                    scr->prefix.path, *below ? "/" : "", below, err);
        io_close(&folder);
        kvtree_merge(left->ids, ids);
    }
}

/* Collective. Nothing is left of a flush that is not resumed. */
static void forget(const struct left *left, const scr_flush_record *r)
{
    struct scr *scr = left->scr;
    char err[SCR_ERR_TEXT] = "", id[SCR_TRACE_DIGITS + 1];
    scr_dataset d;
    scr_trace_print(r->trace.id, id);
    if (is_cached(scr, r, &d)) {
        scr_flush_clean(scr, &d, r->trace.id);
        kvtree_set(left->ids, id, NULL);
    } else if (scr->job.rank == 0) {
        clean_trace(left, r->name, &r->trace);
    }
    if (scr->job.rank != 0) return;
    kvtree_set(left->names, r->name, NULL);
    scr_flush_file_end(scr->prefix.flush_file, r->trace.id);
    if (scr_flush_file_write(scr->prefix.fd, scr->prefix.flush_file, err) != 0)
        scr_say(&scr->report, 0, "warning: the flush file could not be written: %s", err);
    scr_say(&scr->report, 1,
            "a flush of dataset %d (%s) that an earlier run began is not resumed; its "
            "temporary files are removed",
            r->dset, r->name);
}

/* ---- without records ---- */

/* Rank 0: the folder of a dataset that no flush completed, and none is recorded of:
 * temporary files are there, or nothing. What is not in the index has no owner but us. */
static void sweep_folder(const struct scr *scr, const char *name, int is_listed)
{
    clean_folder(scr, name, 0);
    char *inside = is_listed ? NULL : scr_path_join(name, ".scr");
    if (!inside) return;
    beneath_rmdir(scr->prefix.fd, inside, NULL);
    beneath_rmdir(scr->prefix.fd, name, NULL); /* where something is in it, it stays */
    free(inside);
}

static int is_settled(const kvtree *index, const scr_dataset *d)
{
    scr_index_state state = {.complete = 0};
    return scr_index_look(index, d, &state) == 0 && state.complete;
}

/* 0, 1, or 2 for a dataset that is complete, or is about to be deleted. */
static int look_up(const kvtree *index, const char *name)
{
    scr_dataset d;
    scr_index_state state = {.complete = 0};
    if (scr_index_get(index, name, &d) != 0) return 0;
    scr_index_look(index, &d, &state);
    return state.complete || state.deleting ? 2 : 1;
}

/* Rank 0: puts the names of all datasets that may be unfinished into names, as keys. An
 * index that was made again has only what is complete; the list of names tells of others.
 */
static void list_names(const struct scr *scr, const kvtree *index, kvtree *names)
{
    int count = 0;
    scr_dataset *all = NULL;
    if (scr->prefix.index_rebuilt) scr_names_read(scr->prefix.fd, names, NULL);
    if (scr_index_list(index, &all, &count) != 0) return;
    for (int i = 0; i < count; i++) /* most are complete; nobody asks for each of them */
        if (!is_settled(index, &all[i])) kvtree_set(names, all[i].name, NULL);
    for (int i = 0; i < count; i++)
        if (is_settled(index, &all[i])) kvtree_unset(names, all[i].name);
    free(all);
}

/* Rank 0. The index tells of flushes, too. */
static void clean_traces(const struct left *left, const kvtree *index)
{
    scr_dataset d;
    scr_trace t;
    for (int i = 0; scr_index_get_trace(index, i, &d, &t) == 0; i++)
        if (!scr_flush_file_knows(left->scr->prefix.flush_file, t.id) &&
            !is_unwanted(left->ids, t.id))
            clean_trace(left, d.name, &t);
}

/* Rank 0: a flush file that was lost, or is an earlier one, does not have the flushes
 * that were under way. A dataset that is flushed by another job is recorded. */
static void sweep_unrecorded(const struct left *left)
{
    struct scr *scr = left->scr;
    char err[SCR_ERR_TEXT] = "";
    scr_flush_record r;
    kvtree *index = kvtree_new(), *names = left->names;
    int known = index && names && scr_index_load(scr, index, err) == 0;
    if (known) list_names(scr, index, names);
    for (int i = 0; scr_flush_file_get(scr->prefix.flush_file, NULL, i, &r) == 0; i++)
        kvtree_unset(names, r.name);
    const kvtree_elem *e = kvtree_elem_first(names);
    for (; known && e; e = kvtree_elem_next(e)) {
        int listed = look_up(index, kvtree_elem_key(e));
        if (listed < 2) sweep_folder(scr, kvtree_elem_key(e), listed);
    }
    clean_traces(left, index);
    clean_wide(left);
    if (scr_index_forget_traces(scr, left->ids, err) != 0)
        scr_say(&scr->report, 0, "warning: " SCR_INDEX_NAME ": %s", err);
    kvtree_delete(&index);
}

void scr_resume_flushes(struct scr *scr)
{
    scr_flush_record r, chosen = {.dset = 0};
    struct left left = {scr, kvtree_new(), kvtree_new(), kvtree_new()};
    for (int i = 0; !chosen.dset && get_record(scr, i, &r); i++)
        if (can_resume(scr, &r)) chosen = r;
    if (chosen.dset) look_at_state(scr, scr->job.rank);
    stop_others(scr, chosen.trace.id);
    for (int i = 0; get_record(scr, i, &r);) {
        int resumed = r.trace.id == chosen.trace.id;
        i += resumed;
        if (!resumed) forget(&left, &r);
    }
    if (chosen.dset && scr_flush_resume(scr, &chosen) != SCR_SUCCESS) {
        stop_others(scr, 0); /* the cache has lost the dataset when its files were read */
        forget(&left, &chosen);
    }
    if (scr->job.rank == 0) sweep_unrecorded(&left);
    kvtree_delete(&left.ids);
    kvtree_delete(&left.names);
    kvtree_delete(&left.wide);
}
