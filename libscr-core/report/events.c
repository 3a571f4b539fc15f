/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: one call prints an event for users and logs it, so that the text and the event
 * always agree. Rank 0 logs. Other ranks log only failures that no other rank sees, and
 * only to files and syslog: with a database, each rank would open a connection, and
 * metrics are one file. */
#include "report/report.h"

#include "report/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of errors logged per run: an application that ignores errors may cause
 * millions. */
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

static void events_print(void *arg, scr_message message, const char *text)
{
    scr_say(arg, message, "%s", text);
}

void scr_events_open(scr_report *report, const scr_log_options *options, const char *run)
{
    struct scr_events *ev = calloc(1, sizeof *ev);
    if (!ev) return;
    snprintf(ev->run, sizeof ev->run, "%s", run);
    ev->options = *options;
    ev->options.run = ev->run;
    ev->options.report = events_print;
    ev->options.arg = report;
    ev->start = scr_clock();
    report->events = ev;
    if (report->rank == 0) scr_log_open(&ev->options, &ev->log);
}

void scr_events_close(scr_report *report)
{
    if (!report->events) return;
    scr_log_close(report->events->log);
    free(report->events);
    report->events = NULL;
}

const char *scr_events_run(const scr_report *report)
{
    return report->events ? report->events->run : NULL;
}

double scr_events_seconds(const scr_report *report)
{
    return report->events ? scr_clock() - report->events->start : 0;
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

int scr_event(const scr_report *report, scr_message message, const scr_log_event *event,
              const char *format, ...)
{
    char text[SCR_MESSAGE_SIZE];
    scr_log_event e = *event;
    if (report->rank != 0) return (int)e.code;
    va_list args;
    va_start(args, format);
    message_format(text, sizeof text, &scr_messages[message], format, args);
    va_end(args);
    if (message_level(&scr_messages[message]) <= report->debug)
        scr_print_message(message, text);
    scr_summary_add(report, event);
    if (!e.note) e.note = text;
    if (report->events) scr_log_write(report->events->log, &e);
    return (int)e.code;
}

static void events_log_error(struct scr_events *ev, int rank, int code, const char *note)
{
    if (!ev || ev->errors >= (rank ? ERRORS_OF_OTHERS : ERRORS_OF_FIRST)) return;
    ev->errors++;
    if (!ev->log) {
        ev->options.set.targets &= ~(1u << SCR_LOG_DATABASE | 1u << SCR_LOG_METRICS);
        ev->options.report = NULL; /* rank 0 reports failures of the log */
        if (scr_log_open(&ev->options, &ev->log) != 0) return;
    }
    scr_log_event e = {.kind = SCR_LOG_ERROR, .code = code, .note = note};
    scr_log_write(ev->log, &e);
}

static void events_fail(const scr_report *report, bool is_local, scr_message message,
                        int code, const char *format, va_list args)
{
    char text[SCR_MESSAGE_SIZE];
    message_format(text, sizeof text, &scr_messages[message], format, args);
    if (!is_local || scr_once_take(report->once, text)) scr_print_message(message, text);
    events_log_error(report->events, report->rank, code, text);
}

int scr_fail(const scr_report *report, scr_message message, int code, const char *format,
             ...)
{
    if (report->rank != 0) return code;
    va_list args;
    va_start(args, format);
    events_fail(report, false, message, code, format, args);
    va_end(args);
    return code;
}

int scr_fail_local(const scr_report *report, scr_message message, int code,
                   const char *format, ...)
{
    va_list args;
    va_start(args, format);
    events_fail(report, true, message, code, format, args);
    va_end(args);
    return code;
}
