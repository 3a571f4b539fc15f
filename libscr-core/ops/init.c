/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting and ending a context (SCR Developer Guide 1.2, section 2.26). */
#include "ops/folders.h"

#include "ops/context.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "halt/halt.h"
#include "ops/stop.h"
#include "prefix/flush_file.h"
#include "prefix/nodes.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A full prefix folder keeps no run from what is in its cache: what could not be written
 * there is reported. */
static int bear(const struct scr *scr, int rc, const char *err)
{
    if (rc != -ENOSPC && rc != -EDQUOT && rc != -EROFS) return rc;
    scr_say(&scr->report, 0, "warning: prefix folder %s: %s", scr->prefix.real, err);
    return 0;
}

static int begin_records(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    int rc = 0;
    scr->cache.map = kvtree_new();
    scr->output.routed = kvtree_new();
    scr->output.refused = kvtree_new();
    scr->prefix.direct.files = kvtree_new();
    scr->restart.spared = kvtree_new();
    scr->prefix.flush_file = kvtree_new();
    snprintf(scr->cache.map_name, sizeof scr->cache.map_name, "filemap_%d.scriinfo",
             scr->job.node_rank);
    scr->halt.file = kvtree_new();
    scr->halt.job = &scr->job;
    scr->halt.prefix = scr->prefix.fd;
    scr->halt.prefix_path = scr->prefix.path;
    if (!scr->cache.map || !scr->output.routed || !scr->output.refused ||
        !scr->prefix.direct.files || !scr->restart.spared || !scr->prefix.flush_file ||
        !scr->halt.file)
        rc = err_set(err, -ENOMEM, "no memory");
    if (!rc && scr->job.rank == 0) {
        rc = scr_index_begin(&scr->prefix, &scr->lifecycle.dataset_id,
                             &scr->lifecycle.ckpt_id,
                             err); /* ids go on after the highest in it */
        rc = rc ? rc
                : bear(scr, scr_nodes_write(scr->prefix.fd, scr->job.nodes, err), err);
        rc = rc ? rc
                : bear(scr,
                       scr_halt_run_begin(&scr->halt, scr->set.halt_seconds,
                                          scr->set.end_time, err),
                       err);
        if (rc) err_wrap(err, rc, "prefix folder %s", scr->prefix.real);
    }
    if (agree(scr->job.world, rc, err))
        return scr_fail(&scr->report, SCR_ERR_PREFIX, "%s", err);
    int ids[2] = {scr->lifecycle.dataset_id, scr->lifecycle.ckpt_id};
    MPI_Bcast(ids, 2, MPI_INT, 0, scr->job.world);
    scr->lifecycle.dataset_id = ids[0];
    scr->lifecycle.ckpt_id = ids[1];
    return SCR_SUCCESS;
}

/* What the processes that may fail together with this one have in common. Agreed. */
static int find_failure_group(struct scr *scr, const scr_reddesc *d, const char **value,
                              char *err)
{
    *value = scr_groups_value(&scr->descs.groups, d->group, scr->job.node_name);
    int rc = 0;
    if (!*value)
        rc = err_set(err, -EINVAL, "node %s has no value for the group %s in GROUPS",
                     scr->job.node_name, d->group);
    return agree(scr->job.world, rc, err);
}

/* Says which ranks' files a scheme cannot protect. */
static void tell_alone(struct scr *scr, const scr_reddesc *d, const redset *set)
{
    char which[32] = "";
    int alone =
        strcmp(d->type, "SINGLE") != 0 && redset_get_place(set)->scheme == REDSET_SINGLE;
    if (!d->implied) snprintf(which, sizeof which, "CKPT=%d: ", d->index);
    MPI_Allreduce(MPI_IN_PLACE, &alone, 1, MPI_INT, MPI_SUM, scr->job.world);
    if (alone == scr->job.ranks)
        scr_say(&scr->report, 0,
                "warning: %sall %d ranks are in one failure group, so %s cannot protect "
                "their files; using SINGLE: checkpoints in the cache survive the "
                "program, not the node",
                which, scr->job.ranks, d->type);
    else if (alone)
        scr_say(&scr->report, 0,
                "warning: %sthe files of %d of %d ranks are not protected, because their "
                "%s has more ranks than the others together; spread the ranks evenly",
                which, alone, scr->job.ranks,
                strcmp(d->group, "NODE") == 0 ? "node" : "failure group");
}

/* Says where a set is too small for what is asked for. */
static void tell_fewer(struct scr *scr, const scr_reddesc *d, const redset *set)
{
    const redset_place *place = redset_get_place(set);
    int least = place->scheme == REDSET_SINGLE ? INT_MAX : place->failures;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, scr->job.world);
    if (least < d->set_failures)
        scr_say(
            &scr->report, 0,
            "warning: SET_FAILURES=%d, but some sets have %d members, of which %d may "
            "be lost",
            d->set_failures, least + 1, least);
}

/* Collective. The redundancy sets of a descriptor. */
static int begin_sets(struct scr *scr, const scr_reddesc *d, redset **set)
{
    char err[SCR_ERR_TEXT] = "";
    redset_config config = {.set_size = d->set_size,
                            .failures = 1,
                            .piece = scr->set.message,
                            .no_checksums = !scr->set.crc_on_copy,
                            .unsynced = 1};
    if (find_failure_group(scr, d, &config.failure_group, err))
        return scr_fail(&scr->report, SCR_ERR_CONFIG, "%s", err);
    redset_scheme_from_name(d->type, &config.scheme);
    if (config.scheme == REDSET_RS) config.failures = d->set_failures;
    int rc = redset_create(scr->job.world, &config, set, err);
    if (rc) return scr_fail(&scr->report, SCR_ERR_REDUNDANCY, "%s", err);
    tell_alone(scr, d, *set);
    if (config.scheme == REDSET_RS) tell_fewer(scr, d, *set);
    return SCR_SUCCESS;
}

static int begin_redundancy(struct scr *scr)
{
    const scr_reddescs *r = &scr->descs.reddescs;
    char err[SCR_ERR_TEXT] = "";
    scr->cache.sets = calloc((size_t)r->count, sizeof *scr->cache.sets);
    int rc = scr->cache.sets ? 0 : err_set(err, -ENOMEM, "no memory");
    if (agree(scr->job.world, rc, err))
        return scr_fail(&scr->report, SCR_FAILURE, "%s", err);
    for (int i = 0; i < r->count && !rc; i++)
        if (scr->cache.store_of_desc[i] >= 0)
            rc = begin_sets(scr, &r->list[i], &scr->cache.sets[i]);
    return rc;
}

int scr_redundancy_late(struct scr *scr, const scr_reddesc *desc)
{
    redset **set = &scr->cache.sets[desc->index];
    return *set ? SCR_SUCCESS : begin_sets(scr, desc, set);
}

static int read_cache(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    if (scr_catalog_read(&scr->cache, err) == 0) return SCR_SUCCESS;
    return scr_fail(&scr->report, SCR_ERR_CACHE, "%s", err);
}

/* Where the last checkpoint makes room for the next. */
static void tell_hazards(struct scr *scr)
{
    for (int i = 0; i < scr->cache.store_count; i++)
        if (scr->cache.stores[i].capacity == 1)
            scr_say(&scr->report, 0,
                    "warning: %s keeps 1 dataset (SCR_CACHE_SIZE=1, or COUNT=1 of its "
                    "STORE): the last checkpoint leaves it before the next one is "
                    "complete; a failure in between falls back to the prefix folder",
                    scr->cache.stores[i].path);
}

int scr_start(struct scr *scr, MPI_Comm comm, int rc)
{
    char err[SCR_ERR_TEXT] = "";
    int have;
    scr->prefix.fd = scr->cache.control_fd = scr->cache.lock_fd = -1;
    scr->restart.below = SCR_AGE_ANY;
    scr->set = (struct scr_settings){.enable = 1};
    scr->prefix.job = scr->cache.job = &scr->job;
    scr->prefix.set = scr->cache.set = &scr->set;
    scr->cache.descs = &scr->descs;
    if (scr_job_begin(&scr->job, comm, &scr->report) != MPI_SUCCESS) return SCR_FAILURE;
    if (rc) err_sys(err, rc, "configuration");
    if (agree(scr->job.world, rc, err))
        return scr_fail(&scr->report, SCR_FAILURE, "%s", err);
    rc = scr_settings_load(scr);
    if (rc == SCR_SUCCESS && !scr->set.enable) rc = SCR_ERR_DISABLED;
    if (!rc && scr_job_find_nodes(&scr->job, &scr->config) != MPI_SUCCESS)
        rc = SCR_FAILURE;
    rc = rc ? rc : scr_folders_open(scr);
    if (!rc) scr_summary_begin(&scr->report);
    if (!rc) scr_logging_begin(scr);
    rc = rc ? rc : begin_records(scr);
    rc = rc ? rc : begin_redundancy(scr);
    rc = rc ? rc : read_cache(scr);
    rc = rc ? rc : scr_rebuild_cache(scr);
    if (!rc) scr_flush_recover(scr);
    if (!rc) scr_retention_begin(&scr->prefix);
    if (!rc && scr->set.current) rc = scr_manage_current(scr, scr->set.current);
    if (!rc && scr->set.flush_on_restart) scr_flush_newest(scr);
    if (!rc && scr->set.global_restart) scr_leave_cache(scr);
    if (!rc && scr->set.fetch_on_init) rc = scr_restart_have(scr, &have, NULL);
    if (rc) return rc;
    tell_hazards(scr);
    scr_logging_ready(scr);
    scr->pace.idle_since = MPI_Wtime();
    scr_advise_begin(scr);
    scr_signal_catch(scr->set.halt_signals);
    if (scr->job.rank == 0 && !scr->set.halt_exit) scr_halt_run_check(&scr->halt);
    return SCR_SUCCESS;
}

void scr_release(struct scr *scr)
{
    scr_signal_release();
    scr_finalize_unwatch(scr);
    scr_flush_stop(scr, 0);
    scr_events_close(&scr->report);
    scr_summary_end(&scr->report);
    kvtree_delete(&scr->output.routed);
    kvtree_delete(&scr->output.refused);
    kvtree_delete(&scr->restart.spared);
    for (int i = 0; scr->cache.sets && i < scr->descs.reddescs.count; i++)
        redset_free(scr->cache.sets[i]);
    free(scr->cache.sets);
    kvtree_delete(&scr->cache.map);
    kvtree_delete(&scr->cache.recorded);
    kvtree_delete(&scr->halt.file);
    scr_folders_close(scr);
    scr_descs_done(&scr->descs);
    scr_job_end(&scr->job);
}
