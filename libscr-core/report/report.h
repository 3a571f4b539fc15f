/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_REPORT_H
#define SCR_REPORT_H

/* What a run reports: lines for people on stderr, events in the log, and totals for the
 * summary at the end. Chapters above report what happens by one call; this one decides
 * where it goes. No MPI: rank 0 reports what all ranks have agreed on, and other ranks
 * only what they alone can see. */

#include "plan/dataset.h"
#include "report/log.h"

typedef struct scr_report {
    int rank;                    /* of this process; rank 0 reports for all */
    int debug;                   /* SCR_DEBUG: the highest level that is printed */
    struct scr_events *events;   /* NULL: nothing is logged */
    struct scr_summary *summary; /* on rank 0, or NULL */
} scr_report;

/* Seconds on a clock that never jumps. */
double scr_clock(void);

/* ---- report/message.c ---- */

/* Prints one line for people, on rank 0 only, at level 0 (warnings, errors), 1 or 2. */
void scr_say(const scr_report *report, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The one place that writes: a line to stderr, whatever the rank. */
void scr_print_line(const char *line);

/* ---- report/events.c: one call prints and logs ---- */

/* Begins the log of run, on every rank; options and their strings are copied or must
 * outlive the report; options->run is ignored. Failures are printed. */
void scr_events_open(scr_report *report, const scr_log_options *options, const char *run);
void scr_events_close(scr_report *report);

/* Id of this run in the log; NULL where nothing is logged. */
const char *scr_events_run(const scr_report *report);

/* Seconds since the log began; 0 where nothing is logged. */
double scr_events_seconds(const scr_report *report);

/* Prints text as an error (on rank 0), logs it, and returns code. */
int scr_fail(const scr_report *report, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An event of a dataset: kind, id, name and type. */
scr_log_event scr_event_of(int kind, const scr_dataset *dataset);

/* On rank 0: prints the text as scr_say does, and logs the event; where the event has a
 * note and gives none, it is the text. */
void scr_event(const scr_report *report, int level, const scr_log_event *event,
               const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same as an error, which scr_fail would print. Returns code. */
int scr_event_fail(const scr_report *report, int code, const scr_log_event *event,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Prints and logs a failure that only this rank sees; code 0: a warning. */
void scr_event_local(const scr_report *report, int code, const char *text);

/* ---- report/summary.c: totals of the run ---- */
void scr_summary_begin(scr_report *report);
void scr_summary_add(const scr_report *report, const scr_log_event *event);

/* Prints the totals; waited: seconds that the program waited for flushes in the
 * background. */
void scr_summary_print(const scr_report *report, double waited);
void scr_summary_end(scr_report *report);

#endif
