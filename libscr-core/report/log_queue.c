/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of limited length in front of a slow target, and the thread that empties it;
 * see report/log_private.h. Who adds an event never waits. Only the thread uses the
 * target. The queue belongs to both sides, and the last to leave frees it, so that a
 * thread that a dead server holds up can be left behind. */
#include "report/log_private.h"

#include "common/errtext.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct scr_log_queue {
    pthread_mutex_t lock;
    pthread_cond_t change;
    scr_log_sink sink;
    scr_log_event *events[SCR_LOG_QUEUE_LENGTH]; /* a ring */
    int first, count;
    long dropped;
    int ending; /* no more are added */
    int left;   /* one side is gone */
    int closed; /* the target takes none */
    int news;
    char err[ERRTEXT_SIZE];
};

/* ---- with the lock held ---- */

static scr_log_event *take_first(scr_log_queue *q)
{
    scr_log_event *event = q->events[q->first];
    q->first = (q->first + 1) % SCR_LOG_QUEUE_LENGTH;
    q->count--;
    return event;
}

static void drop_all(scr_log_queue *q)
{
    q->dropped += q->count;
    while (q->count)
        free(take_first(q));
}

static struct timespec from_now(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    long long nano = t.tv_nsec + (long long)(seconds * 1e9);
    t.tv_sec += (time_t)(nano / 1000000000);
    t.tv_nsec = (long)(nano % 1000000000);
    return t;
}

static void free_queue(scr_log_queue *q)
{
    pthread_cond_destroy(&q->change);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

/* This side goes. Unlocks. */
static void leave(scr_log_queue *q)
{
    int last = q->left;
    q->left = 1;
    pthread_cond_broadcast(&q->change);
    pthread_mutex_unlock(&q->lock);
    if (last) free_queue(q);
}

/* ---- the thread ---- */

/* Waits for something to do; 0: it is over. After a failure it waits a while, which the
 * end of the log cuts short, for one last attempt. */
static int next_task(scr_log_queue *q, int failed)
{
    if (failed) {
        struct timespec until = from_now(SCR_LOG_RETRY);
        if (q->ending) return 0;
        while (!q->ending &&
               pthread_cond_timedwait(&q->change, &q->lock, &until) != ETIMEDOUT) {
        }
    }
    while (q->count == 0 && !q->ending)
        pthread_cond_wait(&q->change, &q->lock);
    return q->count > 0 && !q->left;
}

/* The outcome of one attempt. Returns 1 if it may be tried again. */
static int settle(scr_log_queue *q, int rc, const char *err)
{
    if (rc) {
        q->news = 1;
        strcpy(q->err, err);
    }
    if (rc < 0) return 1;
    if (rc > 0) q->dropped++;
    free(take_first(q));
    q->closed = rc == SCR_LOG_CLOSED;
    if (q->closed) drop_all(q);
    return 0;
}

static void *serve(void *arg)
{
    scr_log_queue *q = arg;
    int failed = 0;
    pthread_mutex_lock(&q->lock);
    while (next_task(q, failed)) {
        char err[ERRTEXT_SIZE] = "";
        const scr_log_event *event = q->events[q->first];
        pthread_mutex_unlock(&q->lock);
        int rc = q->sink.write(q->sink.self, event, err);
        pthread_mutex_lock(&q->lock);
        failed = settle(q, rc, err);
    }
    drop_all(q);
    pthread_mutex_unlock(&q->lock);
    q->sink.done(q->sink.self); /* also saying goodbye may take long */
    pthread_mutex_lock(&q->lock);
    leave(q);
    return NULL;
}

/* Signals are the application's, and its handlers do not expect this thread. */
static int start_thread(scr_log_queue *q)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    int rc = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (rc) return -rc;
    rc = pthread_create(&thread, NULL, serve, q);
    if (!rc) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

/* ---- the caller ---- */

int scr_log_queue_new(const scr_log_sink *sink, scr_log_queue **queue)
{
    pthread_condattr_t monotonic;
    scr_log_queue *q = calloc(1, sizeof *q);
    if (!q) return -ENOMEM;
    q->sink = *sink;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q->change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int rc = start_thread(q);
    if (rc) {
        pthread_cond_destroy(&q->change);
        pthread_mutex_destroy(&q->lock);
        free(q);
        return rc;
    }
    *queue = q;
    return 0;
}

void scr_log_queue_add(scr_log_queue *q, scr_log_event *event)
{
    pthread_mutex_lock(&q->lock);
    if (q->closed || q->count == SCR_LOG_QUEUE_LENGTH) {
        q->dropped++;
        free(event);
    } else {
        q->events[(q->first + q->count++) % SCR_LOG_QUEUE_LENGTH] = event;
        pthread_cond_broadcast(&q->change);
    }
    pthread_mutex_unlock(&q->lock);
}

int scr_log_queue_news(scr_log_queue *q, char *err)
{
    pthread_mutex_lock(&q->lock);
    int news = q->news;
    if (news) strcpy(err, q->err);
    q->news = 0;
    pthread_mutex_unlock(&q->lock);
    return news;
}

/* With the lock held. */
static void wait_for_thread(scr_log_queue *q, double seconds)
{
    struct timespec until = from_now(seconds);
    q->ending = 1;
    pthread_cond_broadcast(&q->change);
    while (!q->left &&
           pthread_cond_timedwait(&q->change, &q->lock, &until) != ETIMEDOUT) {
    }
}

long scr_log_queue_close(scr_log_queue *q, double seconds, char *err)
{
    pthread_mutex_lock(&q->lock);
    wait_for_thread(q, seconds);
    /* what the thread has in its hands it frees, and nobody hears of it any more */
    long dropped = q->dropped + q->count;
    if (q->news)
        strcpy(err, q->err);
    else
        err[0] = 0;
    leave(q);
    return dropped;
}
