/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PROGRESS_H
#define SCR_PROGRESS_H

/* Progress lines of long operations, on rank 0 and if the user requests them
 * (SCR_PROGRESS): one line every 10 seconds.
 *
 *     scr_progress p;
 *     scr_progress_begin(report, &p, (scr_progress_source){read, arg}, NULL,
 *                        SCR_MSG_FLUSH_PROGRESS, "flush of dataset %d", id);
 *     ...
 *     scr_progress_end(&p); */

#include "report/alarm.h"
#include "report/meter.h"
#include "report/report.h"

#define SCR_PROGRESS_SECONDS 10

/* The source of the numbers. Another thread calls read; NULL: no lines. */
typedef struct scr_progress_source {
    void (*read)(void *arg, uint64_t *done, uint64_t *total);
    void *arg;
} scr_progress_source;

typedef struct scr_progress {
    scr_alarm alarm;
    scr_meter meter;
    scr_progress_source source;
    const scr_report *report;
    scr_message message;
    char what[SCR_MESSAGE_SIZE / 2];
} scr_progress;

/* Local. unit: as in scr_meter. */
void scr_progress_begin(const scr_report *report, scr_progress *progress,
                        scr_progress_source source, const char *unit, scr_message message,
                        const char *format, ...) __attribute__((format(printf, 6, 7)));
void scr_progress_end(scr_progress *progress);

#endif
