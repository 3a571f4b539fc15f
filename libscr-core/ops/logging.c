/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of a run: its options, and its first and last events. */
#include "ops/context.h"

#include "config/log_config.h"
#include "report/open_runs.h"
#include <string.h>

static scr_log_options logging_options(struct scr *scr)
{
    scr_problems reported_before = {.count = 0};
    scr_log_options options = {.prefix = scr->prefix.fd,
                               .prefix_path = scr->prefix.path,
                               .user = scr->job.user,
                               .job_id = scr->job.id,
                               .host = scr->job.node_name};
    scr_log_configure(&scr->config, &options.set, &reported_before);
    scr_problems_done(&reported_before);
    return options;
}

/* Chooses the id of the run: the one that scr_run passes, unless an earlier run of this
 * launch has it; otherwise a new one. */
static void logging_choose_id(const scr_open_runs *runs, const char *given,
                              char run[SCR_LOG_RUN_SIZE])
{
    static const char allowed[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_.";
    scr_log_run_id(run);
    if (given && *given && !runs->is_known && strlen(given) < SCR_LOG_RUN_SIZE &&
        given[strspn(given, allowed)] == 0)
        strcpy(run, given);
}

/* Logs the ends of earlier runs that were interrupted. */
static void logging_end_others(struct scr *scr, const scr_open_runs *runs)
{
    for (int i = 0; i < runs->count; i++) {
        const scr_open_run *run = &runs->list[i];
        const scr_log_event e = scr_open_run_end(run, run->last, "found by the next run");
        scr_event(&scr->report, SCR_MSG_RUN_INTERRUPTED, &e,
                  "run %s of job %s had no end: its last event came %.3f s after its "
                  "begin",
                  run->id, run->job, e.secs);
    }
}

void scr_logging_begin(struct scr *scr)
{
    const scr_job *job = &scr->job;
    const char *given = scr_config_get(&scr->config, "SCR_RUN_ID", NULL);
    char run[SCR_LOG_RUN_SIZE] = "";
    scr_open_runs others = {.count = 0};
    kvtree_error err;
    if (!scr->set.log_targets) return;
    scr_prefix_enter(&scr->prefix, NULL); /* without the directory a target is reported as
                                             failed */
    if (job->rank == 0) {
        /* without a readable log no earlier run is known */
        if (scr_open_runs_read(scr->prefix.fd, given, &others, &err) != 0)
            others = (scr_open_runs){.count = 0};
        logging_choose_id(&others, given, run);
    }
    scr_job_share(job, run, sizeof run);
    const scr_log_options options = logging_options(scr);
    scr_events_open(&scr->report, &options, run);
    logging_end_others(scr, &others);
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
