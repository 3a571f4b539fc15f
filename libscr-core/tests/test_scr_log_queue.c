/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue before a slow target: nobody waits for it, what does not fit is counted, and
 * a target that hangs is left behind. */
#include "log_records.h"

#include <pthread.h>
#include <time.h>

/* A target whose writes wait for gate, where it is closed, and then return rc. */
struct target {
    pthread_mutex_t gate;
    int rc, writes;
    int64_t last; /* dataset of the last event that was written */
    int ordered;
    int *freed;
};

static int write_event(void *self, const scr_log_event *event, kvtree_error *err)
{
    struct target *t = self;
    pthread_mutex_lock(&t->gate);
    t->writes++;
    t->ordered = t->ordered && event->dset > t->last;
    if (!t->rc) t->last = event->dset;
    int rc = t->rc;
    pthread_mutex_unlock(&t->gate);
    if (rc) strcpy(err->text, "it does not want to");
    return rc;
}

static void done(void *self)
{
    struct target *t = self;
    pthread_mutex_lock(&t->gate); /* may hang, too */
    pthread_mutex_unlock(&t->gate);
    __atomic_store_n(t->freed, 1, __ATOMIC_SEQ_CST);
}

static scr_log_queue *open_queue(struct target *t, int rc, int *freed)
{
    scr_log_queue *queue;
    scr_log_sink sink = {.write = write_event, .done = done, .self = t};
    memset(t, 0, sizeof *t);
    pthread_mutex_init(&t->gate, NULL);
    t->rc = rc;
    t->ordered = 1;
    t->freed = freed;
    *freed = 0;
    assert_int_equal(scr_log_queue_new(&sink, &queue), 0);
    return queue;
}

static void add(scr_log_queue *queue, int from, int to)
{
    static const scr_log_options none;
    for (int i = from; i <= to; i++)
        scr_log_queue_add(
            queue, scr_log_copy(&(scr_log_event){.kind = SCR_LOG_OUTPUT_START, .dset = i},
                                &none));
}

/* Seconds that are far beyond what anything here takes. */
#define LONG 60.0

static void all_arrive_in_order(void **state)
{
    struct target t;
    kvtree_error err = {"?"};
    int freed;
    scr_log_queue *queue = open_queue(&t, 0, &freed);
    add(queue, 1, 500);
    assert_int_equal(scr_log_queue_failed(queue, &err), 0);
    assert_int_equal(scr_log_queue_close(queue, LONG, &err), 0);
    assert_string_equal(err.text, "");
    assert_int_equal(freed, 1);
    assert_int_equal(t.writes, 500);
    assert_true(t.ordered);
}

static void nothing_is_fine(void **state)
{
    struct target t;
    kvtree_error err;
    int freed;
    scr_log_queue *queue = open_queue(&t, 0, &freed);
    assert_int_equal(scr_log_queue_close(queue, LONG, &err), 0);
    assert_int_equal(freed, 1);
    assert_int_equal(t.writes, 0);
}

/* While the target hangs the queue fills; the first ones are kept. */
static void what_does_not_fit_is_counted(void **state)
{
    struct target t;
    kvtree_error err;
    int freed;
    scr_log_queue *queue = open_queue(&t, 0, &freed);
    pthread_mutex_lock(&t.gate);
    add(queue, 1, SCR_LOG_QUEUE_LENGTH + 77);
    pthread_mutex_unlock(&t.gate);
    assert_int_equal(scr_log_queue_close(queue, LONG, &err), 77);
    assert_int_equal(t.writes, SCR_LOG_QUEUE_LENGTH);
    assert_int_equal(t.last, SCR_LOG_QUEUE_LENGTH);
    assert_true(t.ordered);
}

/* The target hangs for good: the end does not wait for it, and all is freed when it comes
 * back. */
static void a_target_that_hangs_is_left_behind(void **state)
{
    struct target t;
    kvtree_error err;
    int freed;
    scr_log_queue *queue = open_queue(&t, 0, &freed);
    pthread_mutex_lock(&t.gate);
    add(queue, 1, 10);
    assert_int_equal(scr_log_queue_close(queue, 0.05, &err), 10);
    assert_int_equal(freed, 0);
    pthread_mutex_unlock(&t.gate);
    for (int i = 0; i < 6000 && !__atomic_load_n(&freed, __ATOMIC_SEQ_CST); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(freed, 1);
    assert_true(t.writes <= 1);
}

/* After a failure that may pass there is one more attempt, at the end. */
static void a_failure_is_told_once(void **state)
{
    struct target t;
    kvtree_error err = {""};
    int freed, news = 0;
    scr_log_queue *queue = open_queue(&t, -EIO, &freed);
    add(queue, 1, 3);
    for (int i = 0; i < 6000 && !news; i++) {
        news = scr_log_queue_failed(queue, &err);
        if (!news) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_string_equal(err.text, "it does not want to");
    assert_int_equal(scr_log_queue_failed(queue, &err), 0);
    assert_int_equal(scr_log_queue_close(queue, LONG, &err), 3);
    assert_string_equal(err.text, "it does not want to");
    assert_int_equal(t.writes, 2);
}

/* It works again when the end comes. */
static void the_last_attempt_may_succeed(void **state)
{
    struct target t;
    kvtree_error err = {""};
    int freed, news = 0;
    scr_log_queue *queue = open_queue(&t, -EIO, &freed);
    add(queue, 1, 3);
    for (int i = 0; i < 6000 && !news; i++) {
        news = scr_log_queue_failed(queue, &err);
        if (!news) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    pthread_mutex_lock(&t.gate);
    t.rc = 0;
    pthread_mutex_unlock(&t.gate);
    assert_int_equal(scr_log_queue_close(queue, LONG, &err), 0);
    assert_int_equal(t.last, 3);
    assert_int_equal(t.writes, 4);
}

static void refused_events_do_not_hold_up_others(void **state)
{
    struct target t;
    kvtree_error err;
    int freed;
    scr_log_queue *queue = open_queue(&t, SCR_LOG_REFUSED, &freed);
    add(queue, 1, 5);
    assert_int_equal(scr_log_queue_close(queue, LONG, &err), 5);
    assert_int_equal(t.writes, 5);
    assert_string_equal(err.text, "it does not want to");
}

static void a_closed_target_is_not_asked_again(void **state)
{
    struct target t;
    kvtree_error err;
    int freed;
    scr_log_queue *queue = open_queue(&t, SCR_LOG_CLOSED, &freed);
    add(queue, 1, 5);
    for (int i = 0; i < 6000 && !scr_log_queue_failed(queue, &err); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    add(queue, 6, 2000);
    assert_int_equal(scr_log_queue_close(queue, LONG, &err), 2000);
    assert_int_equal(t.writes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_arrive_in_order),
        cmocka_unit_test(nothing_is_fine),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(a_target_that_hangs_is_left_behind),
        cmocka_unit_test(a_failure_is_told_once),
        cmocka_unit_test(the_last_attempt_may_succeed),
        cmocka_unit_test(refused_events_do_not_hold_up_others),
        cmocka_unit_test(a_closed_target_is_not_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
