/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of a run: its options, and the events that frame it. */
#include "ops/context.h"

#include "config/log_config.h"

static scr_log_options logging_options(struct scr *scr)
{
    scr_problems reported_before = {.count = 0};
    scr_log_options options = {.prefix = scr->prefix.fd,
                               .user = scr->job.user,
                               .job_id = scr->job.id,
                               .host = scr->job.node_name};
    scr_log_configure(&scr->config, &options.set, &reported_before);
    scr_problems_done(&reported_before);
    return options;
}

void scr_logging_begin(struct scr *scr)
{
    const scr_job *job = &scr->job;
    char run[SCR_LOG_RUN_SIZE] = "";
    if (!scr->set.log_targets) return;
    scr_prefix_enter(&scr->prefix, NULL); /* without it a target is reported as failed */
    if (job->rank == 0) scr_log_run_id(run);
    scr_job_share(job, run, sizeof run);
    const scr_log_options options = logging_options(scr);
    scr_events_open(&scr->report, &options, run);
    const scr_log_event e = {.kind = SCR_LOG_RUN_START,
                             .job_name = job->name,
                             .cluster = job->cluster,
                             .prefix = scr->prefix.path,
                             .ranks = job->ranks,
                             .nodes = job->nodes};
    scr_event(&scr->report, SCR_MSG_RUN_STARTED, &e,
              "run %s of job %s: %d ranks on %d nodes", run, job->id, job->ranks,
              job->nodes);
}

void scr_logging_ready(struct scr *scr)
{
    if (!scr_events_run(&scr->report)) return;
    double seconds = scr_events_seconds(&scr->report);
    const scr_log_event e = {.kind = SCR_LOG_RUN_READY, .secs = seconds};
    scr_event(&scr->report, SCR_MSG_RUN_READY, &e, "SCR_Init is done: %.3f s", seconds);
}

void scr_logging_end(struct scr *scr, int code)
{
    if (!scr_events_run(&scr->report)) return;
    double seconds = scr_events_seconds(&scr->report);
    const scr_log_event e = {.kind = SCR_LOG_RUN_END, .secs = seconds, .code = code};
    scr_event(&scr->report, SCR_MSG_RUN_FINALIZED, &e, "the run ends after %.3f s: %s",
              seconds, SCR_Strerror(code));
}
