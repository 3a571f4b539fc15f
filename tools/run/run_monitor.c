/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks while the program runs: failures to simulate, the request to end the program
 * now, its progress, and its nodes, since a launcher may wait forever for a node that
 * lost power. */
#include "run/run.h"

#include "common/io.h"
#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_remote.h"
#include "lib/tool_words.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER = 30 /* timeout of the batch system in seconds */ };

/* ---- simulated failures ---- */

/* Records the progress of a run that failures are to interrupt. */
static void monitor_record_progress(run *r, const run_progress *p)
{
    for (int i = 0; i < r->failure_count; i++) {
        simulate_failure *f = &r->failures[i];
        if (f->run == r->facts.attempts && p->completed > f->reached)
            f->reached = p->completed;
    }
}

static void monitor_fail_nodes(run *r, const run_progress *p)
{
    kvtree_error err = {""};
    monitor_record_progress(r, p);
    for (int i = 0; i < r->failure_count; i++) {
        simulate_failure *f = &r->failures[i];
        if (!simulate_is_due(f, r->simulated, r->facts.attempts, p)) continue;
        f->done = 1;
        run_say(r, RUN_FAILURE_SIMULATED, "run %d: %s %s now, as --fail says",
                r->facts.attempts, f->node, f->hangs ? "hangs" : "is lost");
        if (simulate_strike(r->simulated, f, &err) != 0)
            tool_say(SIMULATION_FAILED, "%s", err.text);
    }
}

bool run_report_missed(run *r)
{
    bool missed = false;
    char text[SIMULATE_TEXT_SIZE];
    for (int i = 0; i < r->failure_count; i++) {
        if (r->failures[i].done) continue;
        missed = true;
        simulate_describe_missed(&r->failures[i], text);
        run_say(r, RUN_FAILURE_MISSED, "%s", text);
    }
    return missed;
}

/* ---- the nodes ---- */

static size_t monitor_found_size(const run *r)
{
    return (size_t)r->chosen.count * sizeof *r->found;
}

/* Asks the nodes in another process, which shares r->found, since that may take long. */
static void monitor_ask_nodes(run *r)
{
    setpgid(0, 0);
    io_close(&r->lock);
    _exit(down_nodes_find(&r->prefix, &r->chosen, r->node_time, false, r->found));
}

static void monitor_start_check(run *r)
{
    void *found = mmap(NULL, monitor_found_size(r), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    r->found = found == MAP_FAILED ? NULL : found;
    pid_t pid = r->found ? fork() : -1;
    if (pid == 0) monitor_ask_nodes(r);
    if (pid > 0) setpgid(pid, pid); /* in both processes, as either may be first */
    r->checker = pid > 0 ? pid : 0;
    /* each node has a time limit; 64 nodes are asked side by side */
    r->check_until = tool_now() + 30 + r->node_time * (2 + r->chosen.count / 64.0);
}

static void monitor_free_found(run *r)
{
    if (r->found) munmap(r->found, monitor_found_size(r));
    r->found = NULL;
}

static void monitor_cancel_check(run *r)
{
    if (r->checker) {
        kill(-r->checker, SIGKILL);
        waitpid(r->checker, NULL, 0);
    }
    r->checker = 0;
    monitor_free_found(r);
}

/* Keeps the results for the next decision. True, with the names of the nodes, if any are
 * down. */
static bool monitor_keep_found(run *r, char why[TOOL_WHY_SIZE])
{
    hostlist down = {0, calloc((size_t)r->chosen.count + 1, sizeof *down.names)};
    for (int i = 0, k = 0; i < r->nodes.count && k < r->chosen.count && down.names; i++) {
        /* both lists are in the same order */
        if (r->nodes.names[i] != r->chosen.names[k]) continue;
        const down_reason *reason = &r->found[k++];
        /* the check itself failed, as without memory: not a reason to end a program */
        if (!*reason->text || reason->unasked) continue;
        r->reasons[i] = *reason;
        down.names[down.count++] = r->nodes.names[i];
    }
    char *list = down.count ? hostlist_compress(&down) : NULL;
    bool some = down.count > 0;
    if (some) snprintf(why, TOOL_WHY_SIZE, "down: %.200s", list ? list : "?");
    free(list);
    free(down.names); /* `nodes` owns the names */
    return some;
}

/* True if the check has ended and found nodes that are down. */
static bool monitor_finish_check(run *r, char why[TOOL_WHY_SIZE])
{
    int status;
    bool some = false;
    if (waitpid(r->checker, &status, WNOHANG) != r->checker) {
        if (tool_now() > r->check_until) monitor_cancel_check(r);
        return false;
    }
    r->checker = 0;
    r->next_check = tool_now() + r->interval;
    if (WIFEXITED(status) && WEXITSTATUS(status) == COMMAND_GOOD)
        some = monitor_keep_found(r, why);
    monitor_free_found(r);
    /* at the end of the allocation the batch system ends the program itself */
    return some && !tool_manager_is_over(ANSWER);
}

static bool monitor_check_nodes(run *r, char why[TOOL_WHY_SIZE])
{
    if (r->interval <= 0) return false;
    if (r->checker) return monitor_finish_check(r, why);
    if (tool_now() >= r->next_check) monitor_start_check(r);
    return false;
}

/* ---- all checks ---- */

void run_monitor_begin(run *r)
{
    run_progress p = {0};
    run_progress_begin(&r->progress, r->prefix.dir);
    run_progress_read(&r->progress, &p, NULL);
    r->watchdog.last = p;
    r->watchdog.since = tool_now();
    r->watchdog.reported = false;
    r->checker = 0;
    r->found = NULL;
    /* the nodes were checked just before */
    r->next_check = tool_now() + r->interval;
}

void run_monitor_end(run *r)
{
    run_progress p = r->progress.last;
    run_progress_read(&r->progress, &p, NULL);
    monitor_record_progress(r, &p);
    monitor_cancel_check(r);
}

/* Whether the program hangs. A program with unknown progress does not count as
 * hanging. */
static bool monitor_is_hanging(run *r, const run_progress *p, const char *unknown,
                               double *seconds)
{
    if (!r->watch) return false;
    if (!unknown) return watchdog_has_expired(&r->watchdog, p, tool_now(), seconds);
    if (!r->watchdog.reported)
        run_say(r, RUN_PROGRESS_UNKNOWN, "whether the program hangs is not known now: %s",
                unknown);
    r->watchdog.reported = true;
    return false;
}

bool run_monitor_check(void *arg, char why[TOOL_WHY_SIZE])
{
    run *r = arg;
    double seconds;
    kvtree_error err = {""};
    run_progress p = r->progress.last;
    int rc = run_progress_read(&r->progress, &p, &err);
    monitor_fail_nodes(r, &p);
    if (run_must_end_now(r)) {
        snprintf(why, TOOL_WHY_SIZE, "scr_halt --immediate");
        return true;
    }
    if (run_is_ending(r, why, TOOL_WHY_SIZE)) return true;
    if (monitor_is_hanging(r, &p, rc ? err.text : NULL, &seconds)) {
        snprintf(why, TOOL_WHY_SIZE, "it hangs: no checkpoint for %.0f s (SCR_WATCHDOG)",
                 seconds);
        return true;
    }
    return monitor_check_nodes(r, why);
}
