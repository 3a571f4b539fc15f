/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_ALARM_H
#define SCR_ALARM_H

/* Calls a function from a thread of its own, after some time and then again and again:
 * for what is reported while the process is inside a call of MPI or of the system.
 *
 *     scr_alarm a = {.first = 2, .every = 10, .ring = print, .arg = &text};
 *     scr_alarm_begin(&a);
 *     ...
 *     scr_alarm_end(&a);
 */

#include <pthread.h>
#include <stdbool.h>

typedef struct scr_alarm {
    double first,
        every; /* seconds until the first call, and between two; every 0: once */
    void (*ring)(void *arg);
    void *arg;
    bool is_running, is_over; /* there is a thread; it is to end */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ends;
} scr_alarm;

/* Without a thread nothing is called. */
void scr_alarm_begin(scr_alarm *alarm);

/* Nothing is called any more when it returns. Also for one of zeros. */
void scr_alarm_end(scr_alarm *alarm);

/* Seconds on a clock that never jumps. */
double scr_clock(void);

#endif
