/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_WAIT_H
#define SCR_WAIT_H

/* Announces a wait on rank 0 if it takes long, while it lasts.
 *
 *     scr_wait w;
 *     scr_wait_begin(report, &w, SCR_MSG_CACHE_REMOVAL_WAIT, "waits for ...", id);
 *     ...
 *     double seconds = scr_wait_end(&w); */

#include "report/alarm.h"
#include "report/report.h"

#define SCR_WAIT_SECONDS 2 /* shorter waits are not announced */

typedef struct scr_wait {
    double start;
    scr_alarm alarm;
    scr_message message;
    char text[SCR_MESSAGE_SIZE];
} scr_wait;

/* Local. If no thread can be started, nothing is announced. */
void scr_wait_begin(const scr_report *report, scr_wait *wait, scr_message message,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns the duration of the wait in seconds. */
double scr_wait_end(scr_wait *wait);

#endif
