/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_WAIT_H
#define SCR_WAIT_H

/* Announces on rank 0 a wait that takes long, while it lasts.
 *
 *     scr_wait w;
 *     scr_wait_begin(report, &w, SCR_MSG_CACHE_REMOVAL_WAIT, "waits for ...", id);
 *     ...
 *     double seconds = scr_wait_end(&w);
 */

#include "report/alarm.h"
#include "report/report.h"

#define SCR_WAIT_SECONDS 2 /* shorter waits are not announced */

typedef struct scr_wait {
    double start;
    scr_alarm alarm;
    scr_message message;
    char text[SCR_MESSAGE_SIZE];
} scr_wait;

/* Local. Without a thread nothing is announced. */
void scr_wait_begin(const scr_report *report, scr_wait *wait, scr_message message,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns the seconds that it took. */
double scr_wait_end(scr_wait *wait);

#endif
