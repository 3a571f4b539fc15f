/* SPDX-License-Identifier: BSD-3-Clause */
/* What scr_run looks at while the program runs: failures to simulate, the wish to end it
 * now, whether it makes progress, and whether its nodes are still there; a launcher may
 * wait for ever for a node that was lost without a word. */
#include "run/run.h"

#include "common/io.h"
#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_remote.h"
#include "lib/tool_tasks.h"
#include "lib/tool_words.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER = 30 /* seconds for an answer of the batch system */ };

/* ---- simulated failures ---- */

/* How far the run is in which failures are to happen. */
static void note_progress(run *r, const progress *p)
{
    for (int i = 0; i < r->failure_count; i++) {
        simulate_failure *f = &r->failures[i];
        if (f->run == r->facts.attempts && p->completed > f->reached)
            f->reached = p->completed;
    }
}

static void fail_nodes(run *r, const progress *p)
{
    char err[ERRTEXT_SIZE] = "";
    note_progress(r, p);
    for (int i = 0; i < r->failure_count; i++) {
        simulate_failure *f = &r->failures[i];
        if (!simulate_is_due(f, r->simulated, r->facts.attempts, p)) continue;
        f->done = 1;
        run_log_add(&r->log, "run %d: %s %s now, as --fail says", r->facts.attempts,
                    f->node, f->hangs ? "hangs" : "is lost");
        if (simulate_strike(r->simulated, f, err) != 0) tool_complain("%s", err);
    }
}

int run_tell_missed(run *r)
{
    int missed = 0;
    char text[SIMULATE_TEXT_SIZE];
    for (int i = 0; i < r->failure_count; i++) {
        if (r->failures[i].done) continue;
        missed = 1;
        simulate_tell_missed(&r->failures[i], text);
        run_log_complain(&r->log, "%s", text);
    }
    return missed;
}

/* ---- the nodes ---- */

static size_t found_size(const run *r)
{
    return (size_t)r->chosen.count * sizeof *r->found;
}

/* In another process, which shares r->found: it may take long. */
static void ask_nodes(run *r)
{
    setpgid(0, 0);
    io_close(&r->lock);
    _exit(down_nodes_find(&r->prefix, &r->chosen, r->node_time, r->found));
}

static void start_check(run *r)
{
    void *found = mmap(NULL, found_size(r), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    r->found = found == MAP_FAILED ? NULL : found;
    pid_t pid = r->found ? fork() : -1;
    if (pid == 0) ask_nodes(r);
    if (pid > 0) setpgid(pid, pid); /* whoever comes first */
    r->checker = pid > 0 ? pid : 0;
    /* it has a time limit for each node; they are asked 64 side by side */
    r->check_until = tool_tasks_now() + 30 + r->node_time * (2 + r->chosen.count / 64.0);
}

static void forget_found(run *r)
{
    if (r->found) munmap(r->found, found_size(r));
    r->found = NULL;
}

static void end_check(run *r)
{
    if (r->checker) {
        kill(-r->checker, SIGKILL);
        waitpid(r->checker, NULL, 0);
    }
    r->checker = 0;
    forget_found(r);
}

/* What was found counts: who decides about the next run need not ask these nodes again.
 * 1 and their names if there are some. */
static int take_found(run *r, char why[EXECUTE_WHY_SIZE])
{
    hostlist down = {0, calloc((size_t)r->chosen.count + 1, sizeof *down.names)};
    for (int i = 0, k = 0; i < r->nodes.count && k < r->chosen.count && down.names; i++) {
        /* both are in the same order */
        if (r->nodes.names[i] != r->chosen.names[k]) continue;
        const down_reason *reason = &r->found[k++];
        /* memory may be short here: no reason to end a program */
        if (!*reason->text || reason->unasked) continue;
        r->reasons[i] = *reason;
        down.names[down.count++] = r->nodes.names[i];
    }
    char *list = down.count ? hostlist_compress(&down) : NULL;
    int some = down.count > 0;
    if (some) snprintf(why, EXECUTE_WHY_SIZE, "down: %.200s", list ? list : "?");
    free(list);
    free(down.names); /* the names are those of nodes */
    return some;
}

/* 1 when it has ended and found that nodes are down. */
static int take_check(run *r, char why[EXECUTE_WHY_SIZE])
{
    int status, some = 0;
    if (waitpid(r->checker, &status, WNOHANG) != r->checker) {
        if (tool_tasks_now() > r->check_until) end_check(r);
        return 0;
    }
    r->checker = 0;
    r->next_check = tool_tasks_now() + r->interval;
    if (WIFEXITED(status) && WEXITSTATUS(status) == COMMAND_GOOD)
        some = take_found(r, why);
    forget_found(r);
    /* the batch system ends the program itself then */
    return some && !tool_manager_is_over(ANSWER);
}

static int check_nodes(run *r, char why[EXECUTE_WHY_SIZE])
{
    if (r->interval <= 0) return 0;
    if (r->checker) return take_check(r, why);
    if (tool_tasks_now() >= r->next_check) start_check(r);
    return 0;
}

/* ---- all ---- */

void run_look_begin(run *r)
{
    progress p = {0};
    progress_begin(&r->progress, r->prefix.dir);
    progress_read(&r->progress, &p, NULL);
    r->watchdog.last = p;
    r->watchdog.since = tool_tasks_now();
    r->watchdog.told = 0;
    r->checker = 0;
    r->found = NULL;
    /* they were asked just before */
    r->next_check = tool_tasks_now() + r->interval;
}

void run_look_end(run *r)
{
    progress p = r->progress.last;
    progress_read(&r->progress, &p, NULL);
    note_progress(r, &p);
    end_check(r);
}

/* 1 when the program hangs. As long as nobody knows, it does not. */
static int is_hanging(run *r, const progress *p, const char *unknown, double *seconds)
{
    if (!r->watch) return 0;
    if (!unknown) return watchdog_look(&r->watchdog, p, tool_tasks_now(), seconds);
    if (!r->watchdog.told)
        run_log_add(&r->log, "whether the program hangs is not known now: %s", unknown);
    r->watchdog.told = 1;
    return 0;
}

int run_look(void *arg, char why[EXECUTE_WHY_SIZE])
{
    run *r = arg;
    double seconds;
    char err[ERRTEXT_SIZE] = "";
    progress p = r->progress.last;
    int rc = progress_read(&r->progress, &p, err);
    fail_nodes(r, &p);
    if (run_must_end_now(r)) {
        snprintf(why, EXECUTE_WHY_SIZE, "scr_halt --immediate");
        return 1;
    }
    if (is_hanging(r, &p, rc ? err : NULL, &seconds)) {
        snprintf(why, EXECUTE_WHY_SIZE,
                 "it hangs: no checkpoint for %.0f s (SCR_WATCHDOG)", seconds);
        return 1;
    }
    return check_nodes(r, why);
}
