/* SPDX-License-Identifier: BSD-3-Clause */
/* Signs of life; see tool_alive.h. */
#include "lib/tool_alive.h"

#include "common/io.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct tool_alive {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t over; /* waits on the clock that nobody sets */
    int is_over, seconds;
};

static void *live(void *arg)
{
    tool_alive *a = arg;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&a->lock);
    while (!a->is_over) {
        next.tv_sec += a->seconds;
        int rc = 0;
        while (!a->is_over && rc != ETIMEDOUT)
            rc = pthread_cond_timedwait(&a->over, &a->lock, &next);
        if (!a->is_over) (void)io_write(STDOUT_FILENO, "\n", 1);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* Signals are for the other threads. */
static int start(tool_alive *a)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGPIPE);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&a->thread, NULL, live, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

tool_alive *tool_alive_begin(int seconds)
{
    pthread_condattr_t attributes;
    tool_alive *a = seconds > 0 ? calloc(1, sizeof *a) : NULL;
    if (!a) return NULL;
    fflush(stdout);
    a->seconds = seconds;
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&a->over, &attributes);
    pthread_condattr_destroy(&attributes);
    if (start(a) == 0) return a;
    pthread_cond_destroy(&a->over);
    pthread_mutex_destroy(&a->lock);
    free(a);
    return NULL;
}

void tool_alive_end(tool_alive **alive)
{
    tool_alive *a = *alive;
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    a->is_over = 1;
    pthread_cond_signal(&a->over);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->over);
    pthread_mutex_destroy(&a->lock);
    free(a);
    *alive = NULL;
}
