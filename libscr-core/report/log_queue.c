/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of limited length in front of a slow target, and the thread that empties it;
 * see report/log_private.h. Callers that add an event never wait. Only the thread uses
 * the target. Both sides own the queue, and the last one to leave frees it, so the caller
 * can abandon a thread that waits for a dead server. */
#include "report/log_private.h"

#include "common/errtext.h"
#include "common/thread.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct scr_log_queue {
    pthread_mutex_t lock;
    pthread_cond_t change;
    scr_log_sink sink;
    scr_log_event *events[SCR_LOG_QUEUE_LENGTH]; /* a ring buffer */
    int first, count;
    long dropped;
    bool is_ending;   /* no more events are added */
    bool is_left;     /* one side has left the queue */
    bool is_closed;   /* the target takes no more events */
    kvtree_error err; /* text of a failure that is not reported yet, or "" */
};

/* ---- with the lock held ---- */

static void log_queue_drop_first(scr_log_queue *q)
{
    free(q->events[q->first]);
    q->first = (q->first + 1) % SCR_LOG_QUEUE_LENGTH;
    q->count--;
}

static void log_queue_drop_all(scr_log_queue *q)
{
    q->dropped += q->count;
    while (q->count)
        log_queue_drop_first(q);
}

/* Waits until *is_set is true (is_ending or is_left), but no longer than these
 * seconds. */
static void log_queue_wait_for(scr_log_queue *q, const bool *is_set, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long long nano = until.tv_nsec + (long long)(seconds * 1e9);
    until.tv_sec += (time_t)(nano / 1000000000);
    until.tv_nsec = (long)(nano % 1000000000);
    while (!*is_set &&
           pthread_cond_timedwait(&q->change, &q->lock, &until) != ETIMEDOUT) {
    }
}

static void log_queue_free(scr_log_queue *q)
{
    pthread_cond_destroy(&q->change);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

/* Leaves the queue on behalf of one side, and unlocks it. */
static void log_queue_leave(scr_log_queue *q)
{
    bool is_last = q->is_left;
    q->is_left = true;
    pthread_cond_broadcast(&q->change);
    pthread_mutex_unlock(&q->lock);
    if (is_last) log_queue_free(q);
}

/* Moves the text of the last failure to err; "": none. */
static bool log_queue_take_error(scr_log_queue *q, kvtree_error *err)
{
    strcpy(err->text, q->err.text);
    q->err.text[0] = 0;
    return err->text[0];
}

/* ---- the thread ---- */

/* Waits for an event. Returns false if the thread must end. After a failure, waits until
 * the next attempt is due. When the log ends, one last attempt is made at once. */
static bool log_queue_next(scr_log_queue *q, bool has_failed)
{
    if (has_failed && q->is_ending) return false;
    if (has_failed) log_queue_wait_for(q, &q->is_ending, SCR_LOG_RETRY);
    while (q->count == 0 && !q->is_ending)
        pthread_cond_wait(&q->change, &q->lock);
    return q->count > 0 && !q->is_left;
}

/* Handles the result of one attempt. */
static void log_queue_handle(scr_log_queue *q, int rc, const char *err)
{
    if (rc) strcpy(q->err.text, err);
    if (rc < 0) return; /* the event stays in the queue */
    q->dropped += rc > 0;
    log_queue_drop_first(q);
    q->is_closed = rc == SCR_LOG_CLOSED;
    if (q->is_closed) log_queue_drop_all(q);
}

static void *log_queue_run(void *arg)
{
    scr_log_queue *q = arg;
    int rc = 0;
    pthread_mutex_lock(&q->lock);
    while (log_queue_next(q, rc < 0)) {
        kvtree_error err = {""};
        const scr_log_event *event = q->events[q->first];
        pthread_mutex_unlock(&q->lock);
        rc = q->sink.write(q->sink.self, event, &err);
        pthread_mutex_lock(&q->lock);
        log_queue_handle(q, rc, err.text);
    }
    log_queue_drop_all(q);
    pthread_mutex_unlock(&q->lock);
    q->sink.done(q->sink.self); /* without the lock: a disconnect may also take long */
    pthread_mutex_lock(&q->lock);
    log_queue_leave(q);
    return NULL;
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
    pthread_t thread;
    int rc = thread_start(&thread, log_queue_run, q);
    if (rc) {
        log_queue_free(q);
        return rc;
    }
    pthread_detach(thread);
    *queue = q;
    return 0;
}

void scr_log_queue_add(scr_log_queue *q, scr_log_event *event)
{
    pthread_mutex_lock(&q->lock);
    if (q->is_closed || q->count == SCR_LOG_QUEUE_LENGTH) {
        q->dropped++;
        free(event);
    } else {
        q->events[(q->first + q->count++) % SCR_LOG_QUEUE_LENGTH] = event;
        pthread_cond_broadcast(&q->change);
    }
    pthread_mutex_unlock(&q->lock);
}

bool scr_log_queue_failed(scr_log_queue *q, kvtree_error *err)
{
    pthread_mutex_lock(&q->lock);
    bool has_failed = log_queue_take_error(q, err);
    pthread_mutex_unlock(&q->lock);
    return has_failed;
}

long scr_log_queue_close(scr_log_queue *q, double seconds, kvtree_error *err)
{
    pthread_mutex_lock(&q->lock);
    q->is_ending = true;
    pthread_cond_broadcast(&q->change);
    log_queue_wait_for(q, &q->is_left, seconds);
    /* an abandoned thread frees its events, and their fate is not reported */
    long dropped = q->dropped + q->count;
    log_queue_take_error(q, err);
    log_queue_leave(q);
    return dropped;
}
