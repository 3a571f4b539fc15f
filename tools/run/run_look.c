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

static void fail_nodes(run *r, const progress *p)
{
    char err[ERRTEXT_SIZE] = "";
    for (int i = 0; i < r->failure_count; i++) {
        simulate_failure *f = &r->failures[i];
        if (!simulate_is_due(f, r->simulated, r->facts.attempts, p->latest - r->first,
                             p->latest))
            continue;
        f->done = 1;
        run_log_add(&r->log, "run %d: %s %s now, as --fail says", r->facts.attempts,
                    f->node, f->hangs ? "hangs" : "is lost");
        if (simulate_strike(r->simulated, f, err) != 0) tool_complain("%s", err);
    }
}

/* ---- the nodes ---- */

/* Starts scr_list_down_nodes for the nodes of the run; its output goes to a file. */
static void start_check(run *r)
{
    tool_words words = {0};
    char *command = tool_remote_command("scr_list_down_nodes");
    char *list = hostlist_compress(&r->chosen);
    r->checked = memfd_create("scr_list_down_nodes", MFD_CLOEXEC);
    if (command && list && r->checked >= 0) {
        tool_words_add(&words, "%s", command);
        tool_words_add(&words, "--prefix=%s", r->prefix.path);
        tool_words_add(&words, "%s", list);
    }
    int pid = words.list && !words.failed
                  ? execute_start(tool_words_list(&words), &r->signals, r->checked)
                  : -ENOMEM;
    r->checker = pid > 0 ? pid : 0;
    if (pid <= 0) io_close(&r->checked);
    /* it has a time limit for each node; they are asked 64 side by side */
    r->check_until = tool_tasks_now() + 30 + r->node_time * (2 + r->chosen.count / 64.0);
    tool_words_done(&words);
    free(list);
    free(command);
}

static void end_check(run *r)
{
    if (!r->checker) return;
    kill(-r->checker, SIGKILL);
    waitpid(r->checker, NULL, 0);
    r->checker = 0;
    io_close(&r->checked);
}

/* 1 when it has ended and says that nodes are down. */
static int take_check(run *r, char why[EXECUTE_WHY_SIZE])
{
    char text[EXECUTE_WHY_SIZE - 32];
    int status;
    if (waitpid(r->checker, &status, WNOHANG) != r->checker) {
        if (tool_tasks_now() > r->check_until) end_check(r);
        return 0;
    }
    ssize_t n = pread(r->checked, text, sizeof text - 1, 0);
    r->checker = 0;
    io_close(&r->checked);
    r->next_check = tool_tasks_now() + r->interval;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1 || n <= 0) return 0;
    /* the batch system ends the program itself then */
    if (tool_manager_is_over(ANSWER)) return 0;
    text[n] = 0;
    text[strcspn(text, "\n")] = 0;
    snprintf(why, EXECUTE_WHY_SIZE, "down: %s", text);
    return 1;
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
    progress_read(r->prefix.dir, &p, NULL);
    r->first = p.latest;
    r->watchdog.last = p;
    r->watchdog.since = tool_tasks_now();
    r->checker = 0;
    r->checked = -1;
    /* they were asked just before */
    r->next_check = tool_tasks_now() + r->interval;
}

void run_look_end(run *r)
{
    end_check(r);
}

int run_look(void *arg, char why[EXECUTE_WHY_SIZE])
{
    run *r = arg;
    double seconds;
    progress p = r->watchdog.last;
    /* a file that cannot be read now says nothing new */
    progress_read(r->prefix.dir, &p, NULL);
    fail_nodes(r, &p);
    if (run_must_end_now(r)) {
        snprintf(why, EXECUTE_WHY_SIZE, "scr_halt --immediate");
        return 1;
    }
    if (r->watch && watchdog_look(&r->watchdog, &p, tool_tasks_now(), &seconds)) {
        snprintf(why, EXECUTE_WHY_SIZE,
                 "it hangs: no checkpoint for %.0f s (SCR_WATCHDOG)", seconds);
        return 1;
    }
    return check_nodes(r, why);
}
