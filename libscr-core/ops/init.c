/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting and ending a context (SCR Developer Guide 1.2, section 2.26). */
#include "ops/folders.h"

#include "ops/context.h"

#include "cache/brought.h"
#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "ops/listing.h"
#include "ops/mpi_check.h"
#include "ops/route.h"
#include "ops/stop.h"
#include "prefix/nodes.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Reports that the prefix directory is full or read-only, and continues: the run can
 * still use its cache. */
static int init_tolerate_full(const struct scr *scr, int rc, const char *err)
{
    if (rc != -ENOSPC && rc != -EDQUOT && rc != -EROFS) return rc;
    scr_say(&scr->report, SCR_MSG_PREFIX_NOT_WRITABLE, "prefix directory %s: %s",
            scr->prefix.real, err);
    return 0;
}

/* Local. */
static bool init_make_trees(struct scr *scr)
{
    kvtree **const trees[] = {
        &scr->cache.map,           &scr->output.routed,        &scr->output.refused,
        &scr->prefix.direct.files, &scr->prefix.direct.packed, &scr->restart.spared,
        &scr->restart.brought,     &scr->prefix.flush_file,    &scr->halt.file};
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        if (!(*trees[i] = kvtree_new())) return false;
    return true;
}

/* Rank 0: reads the records on the prefix directory. New datasets get numbers above the
 * highest ones in the index. */
static int init_read_records(struct scr *scr, kvtree_error *err)
{
    int rc = scr_index_begin(&scr->prefix, &scr->lifecycle.last, err);
    if (!rc)
        rc = init_tolerate_full(scr, scr_nodes_write(scr->prefix.fd, scr->job.nodes, err),
                                err->text);
    if (!rc)
        rc = init_tolerate_full(
            scr,
            scr_halt_run_begin(&scr->halt, scr->set.halt_seconds, scr->set.end_time, err),
            err->text);
    return rc ? err_wrap(err, rc, "prefix directory %s", scr->prefix.real) : 0;
}

static int init_begin_records(struct scr *scr)
{
    kvtree_error err = {""};
    snprintf(scr->cache.map_name, sizeof scr->cache.map_name, "filemap_%d.scriinfo",
             scr->job.node_rank);
    scr->halt.job = &scr->job;
    scr->halt.prefix = scr->prefix.fd;
    scr->halt.prefix_path = scr->prefix.path;
    int rc = init_make_trees(scr) ? 0 : err_set(&err, -ENOMEM, "no memory");
    if (!rc && scr->job.rank == 0) rc = init_read_records(scr, &err);
    if (agree(scr->job.world, rc, &err))
        return scr_fail(&scr->report, SCR_MSG_PREFIX_RECORDS_UNREADABLE, SCR_ERR_PREFIX,
                        "%s", err.text);
    scr_job_share(&scr->job, &scr->lifecycle.last, sizeof scr->lifecycle.last);
    return SCR_SUCCESS;
}

static int init_read_cache(struct scr *scr)
{
    kvtree_error err = {""};
    if (scr_catalog_read(&scr->cache, &err) == 0) return SCR_SUCCESS;
    return scr_fail(&scr->report, SCR_MSG_CACHE_NOT_READ, SCR_ERR_CACHE, "%s", err.text);
}

/* Reports stores in which the last checkpoint is deleted for the next one. */
static void init_report_hazards(struct scr *scr)
{
    for (int i = 0; i < scr->cache.store_count; i++)
        if (scr->cache.stores[i].capacity == 1)
            scr_say(&scr->report, SCR_MSG_CACHE_KEEPS_ONE,
                    "%s holds 1 dataset (SCR_CACHE_SIZE or COUNT of its STORE): a "
                    "checkpoint is deleted before the next one is complete; a failure "
                    "then falls back to the prefix directory",
                    scr->cache.stores[i].path);
}

/* Reports processes that each run alone, as rank 0 of their own MPI_COMM_WORLD. Only one
 * of them prints the message. */
static void init_check_launcher(void)
{
    kvtree_error err;
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (scr_mpi_check_size(ranks, &err) != 0)
        scr_say(&(scr_report){.rank = scr_mpi_launched_rank()}, SCR_MSG_MPI_ALONE, "%s",
                err.text);
}

static int init_fail_mpi(const struct scr *scr, const kvtree_error *err)
{
    return scr_fail(&scr->report, SCR_MSG_CALL_MPI_FAILED, SCR_FAILURE, "SCR_Init: %s",
                    err->text);
}

int scr_start(struct scr *scr, MPI_Comm comm, int rc)
{
    kvtree_error err = {""};
    int have;
    scr->prefix.fd = scr->cache.control_fd = scr->cache.lock_fd = -1;
    scr->once = (scr_once){.folder = &scr->cache.control_fd};
    scr->report.once = &scr->once;
    scr_tally_init(&scr->tally);
    scr->restart.below = SCR_AGE_ANY;
    scr->set = (struct scr_settings){.enable = 1};
    scr->prefix.job = scr->cache.job = &scr->job;
    scr->prefix.set = scr->cache.set = &scr->set;
    scr->cache.descs = &scr->descs;
    if (scr_job_begin(&scr->job, comm, &scr->report, &err))
        return init_fail_mpi(scr, &err);
    if (rc) err_sys(&err, rc, "configuration");
    if (agree(scr->job.world, rc, &err))
        return scr_fail(&scr->report, SCR_MSG_MEMORY_EXHAUSTED, SCR_FAILURE, "%s",
                        err.text);
    rc = scr_settings_load(scr);
    if (rc == SCR_SUCCESS && !scr->set.enable) rc = SCR_ERR_DISABLED;
    if (!rc) init_check_launcher();
    if (!rc && scr_job_find_nodes(&scr->job, &scr->config, &err))
        rc = init_fail_mpi(scr, &err);
    rc = rc ? rc : scr_settings_find_groups(scr);
    rc = rc ? rc : scr_folders_open(scr);
    if (!rc && scr->set.progress)
        scr_tally_open(&scr->tally, &scr->job, scr->cache.control_fd);
    scr->cache.meter.report = scr_tally_reporter(&scr->tally);
    scr->cache.meter.arg = scr_tally_arg(&scr->tally, SCR_TALLY_FILES);
    if (!rc) scr_summary_begin(&scr->report);
    if (!rc) scr_logging_begin(scr);
    rc = rc ? rc : init_begin_records(scr);
    rc = rc ? rc : scr_redundancy_begin(scr);
    rc = rc ? rc : init_read_cache(scr);
    rc = rc ? rc : scr_rebuild_cache(scr);
    if (!rc) scr_brought_remove(&scr->cache);
    if (!rc) scr_listing_sweep(scr);
    if (!rc) scr_flush_recover(scr);
    if (!rc) scr_retention_begin(&scr->prefix);
    if (!rc && scr->set.current) rc = scr_manage_current(scr, scr->set.current);
    if (!rc && scr->set.flush_on_restart) scr_flush_newest(scr);
    if (!rc && scr->set.global_restart) scr_leave_cache(scr);
    if (!rc && scr->set.fetch_on_init) rc = scr_restart_have(scr, &have, NULL);
    if (rc) return rc;
    init_report_hazards(scr);
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
    scr_tally_close(&scr->tally);
    scr_events_close(&scr->report);
    scr_once_end(&scr->once);
    scr_summary_end(&scr->report);
    kvtree_delete(&scr->output.routed);
    kvtree_delete(&scr->output.refused);
    kvtree_delete(&scr->restart.spared);
    kvtree_delete(&scr->restart.brought);
    kvtree_delete(&scr->restart.catalog);
    kvtree_delete(&scr->restart.parts);
    scr_route_forget(scr);
    kvtree_delete(&scr->restart.asked);
    scr_part_memo_forget(&scr->restart.asked_parts);
    scr_listing_free(scr);
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
