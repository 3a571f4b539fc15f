/* SPDX-License-Identifier: BSD-3-Clause */
/* Long waits are announced by a thread of their own, as the process is inside a call of
 * MPI or of the system meanwhile. */
#include "report/wait.h"

#include "common/thread.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

double scr_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *wait_announce(void *arg)
{
    scr_wait *w = arg;
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SCR_WAIT_SECONDS;
    pthread_mutex_lock(&w->mutex);
    while (!w->is_over && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&w->ends, &w->mutex, &until);
    if (!w->is_over) scr_print_message(w->message, w->text);
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

void scr_wait_begin(const scr_report *report, scr_wait *w, scr_message message,
                    const char *format, ...)
{
    va_list args;
    w->start = scr_clock();
    w->message = message;
    w->is_running = w->is_over = false;
    if (report->rank != 0) return;
    va_start(args, format);
    message_format(w->text, sizeof w->text, &scr_messages[message], format, args);
    va_end(args);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->ends, NULL);
    w->is_running = thread_start(&w->thread, wait_announce, w) == 0;
}

double scr_wait_end(scr_wait *w)
{
    if (w->is_running) {
        pthread_mutex_lock(&w->mutex);
        w->is_over = true;
        pthread_cond_signal(&w->ends);
        pthread_mutex_unlock(&w->mutex);
        pthread_join(w->thread, NULL);
    }
    return scr_clock() - w->start;
}
