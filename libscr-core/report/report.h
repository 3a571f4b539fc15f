/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_REPORT_H
#define SCR_REPORT_H

/* Reports of a run: messages for users on stderr, events in the log, and totals for the
 * summary at the end. Chapters above report an event by one call; this chapter decides
 * where the report goes. No MPI: rank 0 reports what all ranks have agreed on, and other
 * ranks only what they alone can see.
 *
 *     scr_say(report, SCR_MSG_FLUSH_STAGE_KEPT, "%s stays: %s", stage, err.text);
 *
 * prints "SCR: warning: ... stays: ... [FLUSH_STAGE_KEPT]". messages.def has the severity
 * of each message, which determines whether the run prints it. */

#include "plan/dataset.h"
#include "report/alarm.h"
#include "report/log.h"
#include "report/messages.h"
#include "report/once.h"

typedef struct scr_report {
    int rank;                    /* of this process; rank 0 reports for all */
    int debug;                   /* SCR_DEBUG: 1 also prints INFO, 2 also DEBUG */
    struct scr_events *events;   /* NULL: no log */
    struct scr_summary *summary; /* on rank 0, or NULL */
    scr_once *once;              /* NULL: each rank prints what it alone sees */
} scr_report;

/* ---- report/message.c ---- */

/* Prints a message, on rank 0 only. */
void scr_say(const scr_report *report, scr_message message, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Size of a text that ends with its identifier, such as the note of an event. */
#define SCR_MESSAGE_SIZE 1024

/* Writes a message with its text from message_format to stderr, on any rank. This is the
 * only place that writes messages. */
void scr_print_message(scr_message message, const char *text);

/* ---- report/events.c: one call prints and logs ---- */

/* Begins the log of run, on every rank. options is copied; its strings must outlive the
 * report. options->run is ignored. Failures are printed. */
void scr_events_open(scr_report *report, const scr_log_options *options, const char *run);
void scr_events_close(scr_report *report);

/* Returns the id of this run in the log; NULL without a log. */
const char *scr_events_run(const scr_report *report);

/* Returns the seconds since the log began; 0 without a log. */
double scr_events_seconds(const scr_report *report);

/* Prints a message on rank 0 only, logs it as an error, and returns code. */
int scr_fail(const scr_report *report, scr_message message, int code, const char *format,
             ...) __attribute__((format(printf, 4, 5)));

/* Does the same for a failure that only this rank sees, on any rank. Of the ranks of a
 * node that see the same failure, one prints (report/once.h). */
int scr_fail_local(const scr_report *report, scr_message message, int code,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns an event of a dataset with kind, id, name and type. */
scr_log_event scr_event_of(int kind, const scr_dataset *dataset);

/* On rank 0: prints a message like scr_say, and logs the event. If the event has no note,
 * the note is the text with its identifier. Returns the code of the event. */
int scr_event(const scr_report *report, scr_message message, const scr_log_event *event,
              const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- report/summary.c: totals of the run ---- */
void scr_summary_begin(scr_report *report);
void scr_summary_add(const scr_report *report, const scr_log_event *event);

/* Prints the totals. waited: seconds that the program waited for background flushes. */
void scr_summary_print(const scr_report *report, double waited);
void scr_summary_end(scr_report *report);

#endif
