/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls from a separate thread; see alarm.h. */
#include "report/alarm.h"

#include "common/thread.h"
#include <errno.h>
#include <time.h>

double scr_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct timespec alarm_later(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    const double nanoseconds = (double)t.tv_nsec + seconds * 1e9;
    t.tv_sec += (time_t)(nanoseconds / 1e9);
    t.tv_nsec = (long)(nanoseconds - 1e9 * (double)(time_t)(nanoseconds / 1e9));
    return t;
}

/* Waits with the lock held. Returns true if the time has passed, false if the alarm
 * ends. */
static bool alarm_sleep(scr_alarm *a, double seconds)
{
    const struct timespec until = alarm_later(seconds);
    int rc = 0;
    while (!a->is_over && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&a->ends, &a->mutex, &until);
    return !a->is_over;
}

static void *alarm_run(void *arg)
{
    scr_alarm *a = arg;
    pthread_mutex_lock(&a->mutex);
    bool goes_on = alarm_sleep(a, a->first);
    while (goes_on) {
        a->ring(a->arg);
        goes_on = a->every > 0 && alarm_sleep(a, a->every);
    }
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}

void scr_alarm_begin(scr_alarm *alarm)
{
    alarm->is_over = false;
    pthread_mutex_init(&alarm->mutex, NULL);
    pthread_cond_init(&alarm->ends, NULL);
    alarm->is_running = thread_start(&alarm->thread, alarm_run, alarm) == 0;
}

void scr_alarm_end(scr_alarm *alarm)
{
    if (!alarm->is_running) return;
    pthread_mutex_lock(&alarm->mutex);
    alarm->is_over = true;
    pthread_cond_signal(&alarm->ends);
    pthread_mutex_unlock(&alarm->mutex);
    pthread_join(alarm->thread, NULL);
    alarm->is_running = false;
}
