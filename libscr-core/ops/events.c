/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: what happens is said to people and logged by one call, so that the two do not
 * drift apart. Rank 0 logs; other ranks only what nobody else sees, and only into files
 * and syslog: a database would get a connection of each. */
#include "ops/context.h"

#include "config/log_config.h"
#include "report/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Errors logged per run: an application that ignores them may make millions. */
#define ERRORS_OF_FIRST 100
#define ERRORS_OF_OTHERS 10

struct scr_events {
    scr_log *log;
    scr_log_options options;
    char run[SCR_LOG_RUN_SIZE];
    double start;
    int errors;
};

/* ---- begin and end ---- */

static void tell(void *arg, const char *line)
{
    scr_say(arg, 0, "%s", line);
}

static scr_log_options options_of(struct scr *scr, const char *run)
{
    scr_problems told_before = {0, NULL};
    scr_log_options options = {.prefix = scr->prefix.fd,
                               .run = run,
                               .user = scr->job.user,
                               .job_id = scr->job.id,
                               .host = scr->job.node_name,
                               .tell = tell,
                               .arg = scr};
    scr_log_configure(&scr->config, &options.set, &told_before);
    scr_problems_done(&told_before);
    return options;
}

static void log_start(const struct scr *scr)
{
    scr_log_event e = {.kind = SCR_LOG_RUN_START,
                       .job_name = scr->job.name,
                       .cluster = scr->job.cluster,
                       .prefix = scr->prefix.path,
                       .ranks = scr->job.ranks,
                       .nodes = scr->job.nodes};
    scr_event(scr, 2, &e, "run %s of job %s: %d ranks on %d nodes",
              scr->report.events->run, scr->job.id, scr->job.ranks, scr->job.nodes);
}

void scr_events_open(struct scr *scr)
{
    struct scr_events *ev = scr->set.log_targets ? calloc(1, sizeof *ev) : NULL;
    char run[SCR_LOG_RUN_SIZE] = "";
    if (!scr->set.log_targets) return;
    if (scr->job.rank == 0) scr_log_run_id(run);
    MPI_Bcast(run, sizeof run, MPI_CHAR, 0, scr->job.world);
    if (!ev) return;
    memcpy(ev->run, run, sizeof run);
    ev->options = options_of(scr, ev->run);
    ev->start = MPI_Wtime();
    scr->report.events = ev;
    if (scr->job.rank != 0) return;
    scr_log_open(&ev->options, &ev->log);
    log_start(scr);
}

void scr_events_ready(struct scr *scr)
{
    if (!scr->report.events) return;
    double seconds = MPI_Wtime() - scr->report.events->start;
    scr_log_event e = {.kind = SCR_LOG_RUN_READY, .secs = seconds};
    scr_event(scr, 2, &e, "SCR_Init is done: %.3f s", seconds);
}

void scr_events_end(struct scr *scr, int code)
{
    if (!scr->report.events) return;
    double seconds = MPI_Wtime() - scr->report.events->start;
    scr_log_event e = {.kind = SCR_LOG_RUN_END, .secs = seconds, .code = code};
    scr_event(scr, 2, &e, "the run ends after %.3f s: %s", seconds, SCR_Strerror(code));
}

void scr_events_close(struct scr *scr)
{
    if (!scr->report.events) return;
    scr_log_close(scr->report.events->log);
    free(scr->report.events);
    scr->report.events = NULL;
}

const char *scr_events_run(const struct scr *scr)
{
    return scr->report.events ? scr->report.events->run : NULL;
}

/* ---- in between ---- */

scr_log_event scr_event_of(int kind, const scr_dataset *d)
{
    static const char *const types[] = {NULL, "checkpoint", "output",
                                        "checkpoint,output"};
    return (scr_log_event){.kind = (scr_log_kind)kind,
                           .dset = d->id,
                           .name = d->name,
                           .type = types[(d->ckpt != 0) + 2 * (d->output != 0)]};
}

static void log_event(const struct scr *scr, const scr_log_event *event, const char *text)
{
    scr_log_event e = *event;
    if (scr->job.rank != 0 || !scr->report.events) return;
    if (!e.note) e.note = text;
    scr_log_write(scr->report.events->log, &e);
}

void scr_event(const struct scr *scr, int level, const scr_log_event *event,
               const char *format, ...)
{
    char text[1000];
    if (scr->job.rank != 0) return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    scr_say(scr, level, "%s", text);
    scr_summary_add(scr, event);
    log_event(scr, event, text);
}

int scr_event_fail(const struct scr *scr, int code, const scr_log_event *event,
                   const char *format, ...)
{
    char text[1000], line[1100];
    if (scr->job.rank != 0) return code;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(line, sizeof line, "error: %s", text);
    scr_print_line(line);
    scr_summary_add(scr, event);
    log_event(scr, event, text);
    return code;
}

void scr_event_error(const struct scr *scr, int code, const char *text)
{
    struct scr_events *ev = scr->report.events;
    if (!ev || ev->errors >= (scr->job.rank ? ERRORS_OF_OTHERS : ERRORS_OF_FIRST)) return;
    ev->errors++;
    if (!ev->log) {
        ev->options.set.targets &= ~(1u << SCR_LOG_DATABASE);
        ev->options.tell = NULL; /* rank 0 has told */
        if (scr_log_open(&ev->options, &ev->log) != 0) return;
    }
    scr_log_event e = {.kind = SCR_LOG_ERROR, .code = code, .note = text};
    scr_log_write(ev->log, &e);
}

void scr_event_local(const struct scr *scr, int code, const char *text)
{
    static const char error[] = "error: ";
    scr_print_line(text);
    if (strncmp(text, error, sizeof error - 1) == 0) text += sizeof error - 1;
    scr_event_error(scr, code, text);
}
