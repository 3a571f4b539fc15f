/* SPDX-License-Identifier: BSD-3-Clause */
/* The work of the process scr_transfer: it serves a state file, moves the files that are
 * listed there when the command is RUN, and records its progress. */
#include "src/axl_private.h"

#include "common/io.h"
#include <errno.h>
#include <time.h>
#include <unistd.h>

/* Seconds between two looks at a running transfer. */
#define GLANCE 0.05

/* Pauses, and gives signs of life meanwhile. */
static void serve_pause_for(axl_service *s, double seconds)
{
    for (; seconds > AXL_BEAT && !*s->stop; seconds -= AXL_BEAT) {
        axl_pulse_beat(&s->pulse, 0);
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * AXL_BEAT)}, NULL);
    }
    if (*s->stop) return;
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)(1e9 * (seconds - (double)t.tv_sec));
    nanosleep(&t, NULL); /* a signal is meant to end the pause early */
}

/* Whether the file still has this list and the command RUN. */
static bool serve_is_wanted(const axl_service *s, const axl_transfer *t)
{
    axl_news news;
    axl_command command;
    return axl_state_peek(s->path, &news, &command) == 0 && command == AXL_COMMAND_RUN &&
           (!news.id || news.id == t->id);
}

/* Waits until the transfer is done or must stop. */
static void serve_watch(axl_service *s, axl_transfer *t)
{
    axl_progress progress;
    double waited = 0;
    for (; axl_test(t, NULL) == AXL_RUNNING; waited += GLANCE) {
        bool look = waited >= s->interval;
        if (look) waited = 0;
        if (*s->stop || (look && !serve_is_wanted(s, t))) {
            t->method->stop(t, false);
            return;
        }
        axl_progress_get(t, &progress);
        axl_pulse_beat(&s->pulse, progress.bytes_done + axl_slots_looks(t));
        serve_pause_for(s, GLANCE);
    }
}

/* Moves the listed files. Errors are written to the state file; an error is returned only
 * when it cannot be written. */
static int serve_move_files(axl_service *s, axl_error *err)
{
    axl_transfer *t;
    int rc = axl_resume(s->path, "pthread", &t, err);
    if (rc) return rc;
    t->obeys = true;
    t->owner = s->owner;
    t->pulse = &s->pulse;
    t->interval = s->interval < AXL_INTERVAL ? s->interval : AXL_INTERVAL;
    rc = axl_dispatch(t, err);
    if (!rc)
        serve_watch(s, t);
    else
        rc = axl_state_fail(t, rc, err);
    if (!rc && t->unsaved && t->unsaved != -ENOENT)
        rc = err_sys(err, t->unsaved, "write %s", s->path);
    t->owner = -1; /* the service keeps the lock */
    axl_free(t);
    return rc;
}

/* Reads the file. *work: it lists a transfer that has the command RUN and has not ended.
 */
static int serve_read(const axl_service *s, axl_command *command, bool *work,
                      axl_error *err)
{
    axl_news news = {0};
    kvtree *state = kvtree_new();
    int rc = state ? axl_state_read(s->path, state, &news, command, err)
                   : err_sys(err, -ENOMEM, "state file %s", s->path);
    *work = rc == 0 && kvtree_get(state, "FILES") && *command == AXL_COMMAND_RUN &&
            !news.done && !news.result;
    kvtree_delete(&state);
    return rc;
}

/* Looks at the file once. *idle: there is nothing to do now. *leave: end. */
static int serve_attend(axl_service *s, bool *idle, bool *leave, axl_error *err)
{
    axl_command command;
    bool work;
    int rc = serve_read(s, &command, &work, err);
    *idle = !work;
    *leave = rc == 0 ? command == AXL_COMMAND_EXIT : s->leave;
    if (rc == -ENOENT) return 0; /* not written yet, or removed */
    if (rc || *leave) return rc;
    if (work) return serve_move_files(s, err);
    *leave = s->leave;
    return 0;
}

/* The child shares the lock: a process that waits for the parent finds the file served.
 */
static int serve_go_into_background(axl_service *s, bool *parent, axl_error *err)
{
    if (!s->background) return 0;
    pid_t child = fork();
    if (child < 0) return err_sys(err, -errno, "fork");
    *parent = child > 0;
    return 0;
}

/* Serves the file until there is nothing more to do, or an error occurs. */
static int serve_until_idle(axl_service *s, axl_error *err)
{
    bool idle, leave = false;
    int rc = 0;
    s->pulse.owner = s->owner;
    axl_pulse_beat(&s->pulse, 0);
    while (!rc && !leave && !*s->stop) {
        rc = serve_attend(s, &idle, &leave, err);
        if (!rc && !leave && idle) serve_pause_for(s, s->interval);
    }
    axl_owner_drop(s->path, &s->owner);
    return rc;
}

/* Whether there is a new list. A program that wrote a list while this process was leaving
 * found the file served, and so started no other process. */
static bool serve_has_new_list(axl_service *s)
{
    axl_command command;
    bool work;
    return !*s->stop && serve_read(s, &command, &work, NULL) == 0 && work &&
           axl_owner_take(s->path, &s->owner, NULL) == 0;
}

int axl_serve(axl_service *service, axl_error *err)
{
    bool parent = false;
    int rc = axl_owner_take(service->path, &service->owner, err);
    if (!rc) rc = serve_go_into_background(service, &parent, err);
    if (parent) return io_close(&service->owner);
    if (rc) axl_owner_drop(service->path, &service->owner);
    while (!rc) {
        rc = serve_until_idle(service, err);
        if (rc || !serve_has_new_list(service)) break;
    }
    return rc;
}
