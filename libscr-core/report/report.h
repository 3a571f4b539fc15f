/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_REPORT_H
#define SCR_REPORT_H

/* What a run reports: messages for people on stderr, events in the log, and totals for
 * the summary at the end. Chapters above report what happens by one call; this one
 * decides where it goes. No MPI: rank 0 reports what all ranks have agreed on, and other
 * ranks only what they alone can see.
 *
 *     scr_say(report, SCR_MSG_FLUSH_STAGE_KEPT, "%s stays: %s", stage, err.text);
 *
 * prints "SCR: warning: ... stays: ... [FLUSH_STAGE_KEPT]". messages.def has the severity
 * of each message, and with it whether the run prints it. */

#include "plan/dataset.h"
#include "report/alarm.h"
#include "report/log.h"
#include "report/messages.h"
#include "report/once.h"

typedef struct scr_report {
    int rank;                    /* of this process; rank 0 reports for all */
    int debug;                   /* SCR_DEBUG: 1 prints INFO, too, 2 also DEBUG */
    struct scr_events *events;   /* NULL: nothing is logged */
    struct scr_summary *summary; /* on rank 0, or NULL */
    scr_once *once;              /* NULL: each rank prints what it alone sees */
} scr_report;

/* ---- report/message.c ---- */

/* Prints a message, on rank 0 only. */
void scr_say(const scr_report *report, scr_message message, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Size of a text that ends with its identifier: what the note of an event takes. */
#define SCR_MESSAGE_SIZE 1024

/* The one place that writes: a message with its text of message_format to stderr,
 * whatever the rank. */
void scr_print_message(scr_message message, const char *text);

/* ---- report/events.c: one call prints and logs ---- */

/* Begins the log of run, on every rank; options and their strings are copied or must
 * outlive the report; options->run is ignored. Failures are printed. */
void scr_events_open(scr_report *report, const scr_log_options *options, const char *run);
void scr_events_close(scr_report *report);

/* Id of this run in the log; NULL where nothing is logged. */
const char *scr_events_run(const scr_report *report);

/* Seconds since the log began; 0 where nothing is logged. */
double scr_events_seconds(const scr_report *report);

/* Prints a message on rank 0 only, logs it as an error, and returns code. */
int scr_fail(const scr_report *report, scr_message message, int code, const char *format,
             ...) __attribute__((format(printf, 4, 5)));

/* The same for what only this rank sees, on any rank; of the ranks of a node that meet
 * the same, one prints (report/once.h). */
int scr_fail_local(const scr_report *report, scr_message message, int code,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* An event of a dataset: kind, id, name and type. */
scr_log_event scr_event_of(int kind, const scr_dataset *dataset);

/* On rank 0: prints a message as scr_say does, and logs the event; where the event has a
 * note and gives none, it is the text with its identifier. Returns the code of the event.
 */
int scr_event(const scr_report *report, scr_message message, const scr_log_event *event,
              const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- report/summary.c: totals of the run ---- */
void scr_summary_begin(scr_report *report);
void scr_summary_add(const scr_report *report, const scr_log_event *event);

/* Prints the totals; waited: seconds that the program waited for flushes in the
 * background. */
void scr_summary_print(const scr_report *report, double waited);
void scr_summary_end(scr_report *report);

#endif
