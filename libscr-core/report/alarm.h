/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_ALARM_H
#define SCR_ALARM_H

/* Calls a function from a separate thread, once or repeatedly: for reports while the
 * process is inside a call of MPI or of the system.
 *
 *     scr_alarm a = {.first = 2, .every = 10, .ring = print, .arg = &text};
 *     scr_alarm_begin(&a);
 *     ...
 *     scr_alarm_end(&a); */

#include <pthread.h>
#include <stdbool.h>

typedef struct scr_alarm {
    double first,
        every; /* seconds until the first call and between calls; every 0: once */
    void (*ring)(void *arg);
    void *arg;
    bool is_running, is_over; /* a thread exists; the thread must end */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ends;
} scr_alarm;

/* Starts the alarm. If no thread can be started, ring is never called. */
void scr_alarm_begin(scr_alarm *alarm);

/* Ends the alarm. ring is not called any more after the return. Also accepts an alarm of
 * zeros. */
void scr_alarm_end(scr_alarm *alarm);

/* Returns seconds on a monotonic clock. */
double scr_clock(void);

#endif
