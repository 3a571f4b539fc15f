/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting and ending a context (SCR Developer Guide 1.2, section 2.26). */
#include "scr_context.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "common/split_mpi.h"
#include "records/scr_flush_file.h"
#include "records/scr_halt.h"
#include "records/scr_index.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_nodes(struct scr *scr)
{
    const char *name = scr_config_get(&scr->config, "SCR_NODE_NAME", NULL);
    if (name)
        snprintf(scr->node_name, sizeof scr->node_name, "%s", name);
    else
        scr_identity_node(scr->node_name);
    if (split_by_string(scr->world, scr->node_name, &scr->node) != MPI_SUCCESS)
        return SCR_FAILURE;
    MPI_Comm_rank(scr->node, &scr->node_rank);
    MPI_Comm_size(scr->node, &scr->node_ranks);
    scr->nodes = scr->node_rank == 0;
    MPI_Allreduce(MPI_IN_PLACE, &scr->nodes, 1, MPI_INT, MPI_SUM, scr->world);
    snprintf(scr->map_name, sizeof scr->map_name, "filemap_%d.scriinfo", scr->node_rank);
    return SCR_SUCCESS;
}

/* What the processes that may fail together with this one have in common. */
static int find_failure_group(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    const char *name = scr->set.group;
    int rc = 0;
    scr->failure_group = scr_groups_value(&scr->descs.groups, name, scr->node_name);
    if (!scr->failure_group)
        rc = err_set(err, -EINVAL, "node %s has no value for the group %s in GROUPS",
                     scr->node_name, name);
    return agree(scr->world, rc, err) ? scr_fail(scr, SCR_ERR_CONFIG, "%s", err)
                                      : SCR_SUCCESS;
}

/* Number of nodes, for scripts that start the next run. */
static int write_nodes_file(struct scr *scr, char *err)
{
    kvtree *tree = kvtree_new();
    int rc = kvtree_util_set_int(tree, "NODES", scr->nodes);
    rc = rc ? err_set(err, rc, "no memory")
            : kvtree_file_write(scr->prefix_fd, ".scr/nodes.scr", tree, err);
    kvtree_delete(&tree);
    return rc;
}

/* That the last run came to its end does not keep a new one from running; other reasons
 * to halt do. A damaged file is replaced: nobody can tell what it asked for. */
static int begin_halt(struct scr *scr, char *err)
{
    char *reason;
    int rc = scr_halt_read(scr->prefix_fd, scr->halt, err);
    int changed = rc == -EBADMSG;
    if (changed)
        scr_say(scr, 0, "warning: %s; what it asked for is forgotten", err);
    else if (rc)
        return rc;
    if (kvtree_util_get_str(scr->halt, "ExitReason", &reason) == 0 &&
        strcmp(reason, SCR_HALT_FINALIZED) == 0) {
        scr_halt_set_reason(scr->halt, NULL);
        changed = 1;
    }
    if (scr->set.halt_seconds > 0) {
        kvtree_util_set_int64(scr->halt, "HaltSeconds", scr->set.halt_seconds);
        changed = 1;
    }
    return changed ? scr_halt_write(scr->prefix_fd, scr->halt, err) : 0;
}

/* Ids go on after the highest in the index, so that no id stands for two datasets. */
static int begin_index(struct scr *scr, char *err)
{
    kvtree *index = kvtree_new();
    int rc = scr_index_load(scr, index, err);
    if (!rc) scr_index_highest(index, &scr->dataset_id, &scr->ckpt_id);
    kvtree_delete(&index);
    return rc;
}

static int begin_records(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    int rc = 0;
    scr->map = kvtree_new();
    scr->routed = kvtree_new();
    scr->aside = kvtree_new();
    scr->flush = kvtree_new();
    scr->halt = kvtree_new();
    if (!scr->map || !scr->routed || !scr->aside || !scr->flush || !scr->halt)
        rc = err_set(err, -ENOMEM, "no memory");
    if (!rc && scr->rank == 0) {
        rc = write_nodes_file(scr, err);
        rc = rc ? rc : begin_halt(scr, err);
        rc = rc ? rc : begin_index(scr, err);
        /* what no index lists is not found again, so nothing counts as flushed then */
        if (scr->dataset_id > 0) scr_flush_file_read(scr->prefix_fd, scr->flush);
    }
    if (agree(scr->world, rc, err)) return scr_fail(scr, SCR_ERR_PREFIX, "%s", err);
    int ids[2] = {scr->dataset_id, scr->ckpt_id};
    MPI_Bcast(ids, 2, MPI_INT, 0, scr->world);
    scr->dataset_id = ids[0];
    scr->ckpt_id = ids[1];
    return SCR_SUCCESS;
}

static int begin_redundancy(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    redset_config config = {.scheme = scr->set.scheme,
                            .set_size = scr->set.set_size,
                            .failures =
                                scr->set.scheme == REDSET_RS ? scr->set.set_failures : 1,
                            .failure_group = scr->failure_group};
    int rc = redset_create(scr->world, &config, &scr->redset, err);
    if (rc) return scr_fail(scr, SCR_ERR_REDUNDANCY, "%s", err);
    int alone = scr->set.scheme != REDSET_SINGLE &&
                redset_get_place(scr->redset)->scheme == REDSET_SINGLE;
    MPI_Allreduce(MPI_IN_PLACE, &alone, 1, MPI_INT, MPI_SUM, scr->world);
    if (alone == scr->ranks)
        scr_say(
            scr, 0,
            "warning: all %d ranks are in one failure group, so %s cannot protect their "
            "files; "
            "using SINGLE: checkpoints in the cache survive the program, not the node",
            scr->ranks, redset_scheme_name(scr->set.scheme));
    else if (alone)
        scr_say(scr, 0,
                "warning: the files of %d of %d ranks are not protected, because their "
                "%s has more ranks than the others together; spread the ranks evenly",
                alone, scr->ranks,
                strcmp(scr->set.group, "NODE") == 0 ? "node" : "failure group");
    return SCR_SUCCESS;
}

/* Flushes the newest checkpoint, unless that was done. After a failure it is still in the
 * cache. */
static int flush_newest(struct scr *scr)
{
    int id = scr_cached_newest(scr);
    if (!id || scr_location_has(scr, id, SCR_LOCATION_PFS)) return SCR_SUCCESS;
    return scr_flush_dataset(scr, id);
}

/* Outputs whose flush failed when they were written. */
static int flush_outputs(struct scr *scr)
{
    int count, result = SCR_SUCCESS;
    scr_cached *list = scr_cached_list(scr, &count);
    for (int i = 0; i < count; i++) {
        if (!list[i].output || scr_location_has(scr, list[i].id, SCR_LOCATION_PFS))
            continue;
        int rc = scr_flush_dataset(scr, list[i].id);
        result = result ? result : rc;
    }
    free(list);
    return result;
}

int scr_finish(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    if (scr->rank == 0) {
        scr_halt_refresh(scr);
        int rc = scr_halt_set_reason(scr->halt, SCR_HALT_FINALIZED);
        rc = rc ? rc : scr_halt_write(scr->prefix_fd, scr->halt, err);
        if (rc) scr_say(scr, 0, "warning: the halt file could not be written: %s", err);
    }
    scr_flush_wait(scr);
    int background = scr_flush_result(scr), rc = flush_outputs(scr);
    int newest = scr->set.flush > 0 ? flush_newest(scr) : SCR_SUCCESS;
    rc = rc ? rc : newest ? newest : background;
    scr_events_end(scr, rc);
    return rc;
}

int scr_start(struct scr *scr, MPI_Comm comm)
{
    scr->prefix_fd = scr->control_fd = scr->cache_fd = scr->lock_fd = -1;
    scr->node = MPI_COMM_NULL;
    scr->fetch_below = INT_MAX;
    scr->set = (struct scr_settings){.enable = 1};
    if (MPI_Comm_dup(comm, &scr->world) != MPI_SUCCESS) return SCR_FAILURE;
    MPI_Comm_rank(scr->world, &scr->rank);
    MPI_Comm_size(scr->world, &scr->ranks);
    int rc = scr_settings_load(scr);
    if (rc == SCR_SUCCESS && !scr->set.enable) rc = SCR_ERR_DISABLED;
    rc = rc ? rc : find_nodes(scr);
    rc = rc ? rc : find_failure_group(scr);
    rc = rc ? rc : scr_folders_open(scr);
    if (!rc) scr_events_open(scr);
    rc = rc ? rc : begin_records(scr);
    rc = rc ? rc : begin_redundancy(scr);
    rc = rc ? rc : scr_scatter_maps(scr);
    rc = rc ? rc : scr_rebuild_cache(scr);
    if (!rc && scr->set.current) rc = scr_manage_current(scr, scr->set.current);
    if (!rc && scr->set.flush_on_restart) flush_newest(scr);
    if (rc) return rc;
    if (scr->set.cache_size == 1)
        scr_say(scr, 0,
                "warning: SCR_CACHE_SIZE=1: the last checkpoint leaves the cache before "
                "the next "
                "one is complete; a failure in between falls back to the prefix folder");
    scr_events_ready(scr);
    scr->last_ckpt = scr->idle_since = MPI_Wtime();
    return SCR_SUCCESS;
}

void scr_release(struct scr *scr)
{
    scr_flush_stop(scr, 0);
    scr_events_close(scr);
    kvtree_delete(&scr->routed);
    kvtree_delete(&scr->aside);
    redset_free(scr->redset);
    kvtree_delete(&scr->map);
    kvtree_delete(&scr->flush);
    kvtree_delete(&scr->halt);
    scr_folders_close(scr);
    scr_descs_done(&scr->descs);
    if (scr->node != MPI_COMM_NULL) MPI_Comm_free(&scr->node);
    MPI_Comm_free(&scr->world);
}
