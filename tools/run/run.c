/* SPDX-License-Identifier: BSD-3-Clause */
/* A job that goes on after failures; see run.h. This is the loop of section 2.25.1. */
#include "run/run.h"

#include "lib/processes.h"
#include "lib/tool.h"
#include "lib/tool_fold.h"
#include "lib/tool_log.h"
#include "lib/tool_manager.h"
#include "lib/tool_remote.h"
#include "lib/tool_tasks.h"
#include "lib/tool_words.h"
#include "prefix/nodes.h"
#include "run/hooks.h"
#include "run/prepare.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PATIENCE = 30,     /* seconds that a program has to end after a signal */
    GRACE = 5,         /* the same when it hangs, or its node does */
    LAST_RANK = 30,    /* and that its processes have to be gone then */
    ANSWER = 30,       /* seconds for an answer of the batch system */
    NOT_STARTED = 127, /* exit code where the launcher could not be started */
    NOT_SAVED = 1,     /* the program is done, but something is in the caches only */
    NOT_FAILED = 1     /* the same, but a failure that was asked for did not happen */
};

static void log_event(const run *r, const scr_log_event *event)
{
    tool_log_write(&r->prefix, event, NULL);
}

/* ---- the nodes ---- */

/* 1 when nodes are down that were not, though the allocation goes on. At its end Slurm
 * lets nothing begin on them, and nobody needs to mend them. */
static int has_new_down(run *r)
{
    int count = 0;
    for (int i = 0; i < r->nodes.count; i++)
        count += !r->table[i].down && *r->reasons[i].text;
    if (count) r->facts.over = tool_manager_is_over(ANSWER);
    return count && !r->facts.over;
}

static void tell_down(run *r)
{
    tool_fold fold = {0};
    for (int i = 0; i < r->nodes.count; i++)
        if (!r->table[i].down && *r->reasons[i].text &&
            tool_fold_add(&fold, r->nodes.names[i], r->reasons[i].text) != 0)
            run_log_add(&r->log, "node %s is down: %s", r->nodes.names[i],
                        r->reasons[i].text);
    for (int i = 0; i < fold.count; i++) {
        const tool_fold_line *line = &fold.list[i];
        char *names = hostlist_compress(&line->nodes);
        if (line->nodes.count == 1)
            run_log_add(&r->log, "node %s is down: %s", line->nodes.names[0], line->text);
        else
            run_log_add(&r->log, "%d nodes are down, %s: %s", line->nodes.count,
                        names ? names : "?", line->text);
        free(names);
    }
    tool_fold_done(&fold);
}

/* A node that was down once stays so. */
static void find_down(run *r)
{
    int n = r->nodes.count;
    /* an error is told; what is known of the nodes stays true */
    down_nodes_find(&r->prefix, &r->nodes, r->node_time, r->reasons);
    if (!has_new_down(r)) return;
    tell_down(r);
    for (int i = 0; i < n; i++) {
        if (r->table[i].down || !*r->reasons[i].text) continue;
        r->table[i].down = 1;
        const scr_log_event event = {.kind = SCR_LOG_NODE_LOST,
                                     .node = r->nodes.names[i],
                                     .note = r->reasons[i].text};
        log_event(r, &event);
        hooks_call(&r->prefix, HOOK_NODE_DOWN, r->nodes.names[i], r->reasons[i].text);
    }
}

/* What is not known now stays as it was. */
static void find_drained(run *r)
{
    hostlist drained = {0, NULL};
    if (r->simulated) return; /* nobody else's */
    if (tool_manager_drained(&r->nodes, ANSWER, &drained) == COMMAND_GOOD)
        for (int i = 0, k = 0; i < r->nodes.count; i++) {
            /* both are in the same order */
            int is = k < drained.count && !strcmp(r->nodes.names[i], drained.names[k]);
            r->table[i].drained = is;
            k += is;
        }
    hostlist_done(&drained);
}

void run_take_chosen(run *r)
{
    r->chosen.count = r->out.count = 0;
    for (int i = 0; i < r->nodes.count; i++) {
        run_node *node = &r->table[i];
        node->used = node->chosen;
        if (node->down || (node->drained && !node->chosen))
            r->out.names[r->out.count++] = r->nodes.names[i];
        if (!node->chosen) continue;
        r->ranks[r->chosen.count] = r->table[i].ranks;
        r->chosen.names[r->chosen.count++] = r->nodes.names[i];
    }
}

/* ---- one run ---- */

static void end_launch(void *arg)
{
    run *r = arg;
    char err[ERRTEXT_SIZE] = "";
    if (r->launcher->end && r->launcher->end(&r->launch, err) != 0)
        tool_complain("%s", err);
}

static void tell_begin(run *r)
{
    char *list = hostlist_compress(&r->chosen);
    int ranks = launcher_ranks(&r->launch);
    const scr_log_event event = {.kind = SCR_LOG_LAUNCH_START,
                                 .ranks = ranks,
                                 .nodes = r->chosen.count,
                                 .note = list};
    if (ranks)
        run_log_add(&r->log, "run %d: begins on %s, %d ranks", r->facts.attempts,
                    list ? list : "?", ranks);
    else
        run_log_add(&r->log, "run %d: begins on %s", r->facts.attempts,
                    list ? list : "?");
    log_event(r, &event);
    free(list);
}

static void tell_end(run *r, const execute_result *result)
{
    char why[EXECUTE_WHY_SIZE + 64];
    if (result->ended)
        snprintf(why, sizeof why, "it was ended: %s", result->why);
    else if (r->signals.stop)
        snprintf(why, sizeof why, "signal %d came", r->signals.stop);
    else if (result->code)
        snprintf(why, sizeof why, "it failed");
    else if (*r->halted)
        snprintf(why, sizeof why, "it was halted: %s", r->halted);
    else
        snprintf(why, sizeof why, "it is done");
    const scr_log_event event = {.kind = SCR_LOG_LAUNCH_END,
                                 .secs = result->seconds,
                                 .code = result->code,
                                 .note = why};
    run_log_add(&r->log, "run %d: ended after %.1f s with exit code %d: %s",
                r->facts.attempts, result->seconds, result->code, why);
    log_event(r, &event);
}

/* What the next decision needs. */
static void take_result(run *r, const execute_result *result)
{
    int nodes = 0;
    r->facts.code = result->code;
    if (result->ended) run_forgive(r);
    /* the launcher may take its own end, or that of all ranks, for success */
    if (result->ended && result->code == 0) r->facts.code = 1;
    if (result->signalled && result->code == 0 && !run_noted_its_end(r))
        r->facts.code = 128 + r->signals.stop;
    if (scr_nodes_read(r->prefix.dir, &nodes, NULL) != 0) nodes = r->chosen.count;
    r->facts.last_nodes = nodes;
}

void run_describe(run *r, const char *name)
{
    /* elsewhere srun waits for an allocation, as long as that takes */
    int allocated = strcmp(tool_manager_name(), "slurm") == 0;
    r->launch = (launch){.nodes = &r->chosen,
                         .ranks = r->request->raw ? NULL : r->ranks,
                         .out = &r->out,
                         .program = r->program,
                         .name = name,
                         .simulated = r->simulated,
                         .raw = r->request->raw,
                         .words = r->request->words,
                         .patience = allocated ? r->node_time : 0};
}

static void launch_once(run *r)
{
    static const processes_filter all = {{NULL}, "scr_transfer"};
    char name[64];
    tool_words words = {0};
    execute_result result = {.code = NOT_STARTED};
    run_take_chosen(r);
    r->facts.attempts++;
    if (r->facts.runs_left > 0) r->facts.runs_left--;
    snprintf(name, sizeof name, "scr_run.%ld.%d", (long)getpid(), r->facts.attempts);
    run_describe(r, name);
    r->launcher->build(&r->launch, &words);
    /* the number of ranks is what a checkpoint needs; it stays */
    r->facts.ranks = launcher_ranks(&r->launch);
    const execute_job job = {.argv = tool_words_list(&words),
                             .interval = r->simulated ? 0.02 : 1,
                             .patience = PATIENCE,
                             .grace = GRACE,
                             .look = run_look,
                             .end = end_launch,
                             .arg = r};
    tell_begin(r);
    run_look_begin(r);
    int rc = words.failed ? -ENOMEM : execute(&job, &r->signals, &result);
    if (rc) tool_complain("%s: %s", r->program, strerror(-rc));
    run_look_end(r);
    if (processes_end(&all, LAST_RANK) != 0)
        tool_complain("processes of the run do not end");
    processes_reap();
    *r->halted = 0;
    if (result.code == 0 && !result.ended) run_read_halted(r);
    tell_end(r, &result);
    take_result(r, &result);
    r->launch.name = NULL;
    tool_words_done(&words);
}

/* ---- between two runs ---- */

/* Nodes have time to clean up; ends early when the job should. */
static void rest(run *r)
{
    double until = tool_tasks_now() + r->delay;
    if (r->delay > 0)
        run_log_add(&r->log, "the next run begins in %.0f s (SCR_RUN_PAUSE)", r->delay);
    while (!r->signals.stop && !*r->halt && tool_tasks_now() < until) {
        double left = until - tool_tasks_now();
        execute_wait(&r->signals, left < 1 ? left : 1, 0);
        run_read_halt(r);
    }
}

static run_decision decide(run *r)
{
    find_down(r);
    find_drained(r);
    execute_wait(&r->signals, 0, 0); /* one may have come meanwhile */
    run_read_halt(r);
    r->facts.halt = *r->halt ? r->halt : NULL;
    r->facts.halted = *r->halted ? r->halted : NULL;
    r->facts.stop = r->signals.stop != 0;
    return run_plan(&r->facts);
}

/* ---- what is in the caches ---- */

/* SCR_Init leaves the number of nodes; what an earlier job left is gone (prepare.h). */
static void tell_unprotected(run *r)
{
    int nodes;
    if (scr_nodes_read(r->prefix.dir, &nodes, NULL) != -ENOENT) return;
    run_log_add(
        &r->log,
        "warning: nothing of this program was protected: it did not call SCR_Init, "
        "or that failed, or its SCR_PREFIX is another folder than %s",
        r->prefix.path);
}

static void tell_first(void *arg)
{
    run *r = arg;
    run_log_add(&r->log,
                "signal %d came: what is only in the caches is saved first; a further "
                "signal gives that up",
                r->signals.last);
}

static void tell_given_up(run *r)
{
    r->given_up = r->signals.last;
    run_log_add(&r->log,
                r->simulated
                    ? "signal %d came: saving is given up; what is only in the caches is "
                      "lost with the simulated nodes"
                    : "signal %d came: saving is given up; what is only in the caches is "
                      "saved by scr_postrun --prefix=%s, as long as the nodes keep it",
                r->given_up, r->prefix.path);
}

/* 1 when all is saved. */
static int tell_saved(run *r, int rc, const execute_result *result)
{
    if (rc)
        run_log_add(&r->log, "scr_postrun: %s", strerror(-rc));
    else if (result->code && result->signalled)
        tell_given_up(r);
    else if (result->code)
        run_log_add(&r->log, "scr_postrun: exit code %d; see above", result->code);
    return !rc && !result->code;
}

/* Those of which nothing can be had, as text to be freed. */
static char *list_gone(const run *r)
{
    hostlist gone = {0, calloc((size_t)r->nodes.count + 1, sizeof *gone.names)};
    for (int i = 0; i < r->nodes.count && gone.names; i++)
        if (r->table[i].down && !r->reasons[i].answers)
            gone.names[gone.count++] = r->nodes.names[i];
    char *text = gone.names ? hostlist_compress(&gone) : NULL;
    free(gone.names); /* the names are those of nodes */
    return text;
}

/* A signal that came before was for the program; the first one now is a warning. 1 when
 * all is saved. between: another run follows. */
static int save_rest(run *r, int between)
{
    char *command = tool_remote_command("scr_postrun");
    char *down = list_gone(r);
    tool_words words = {0};
    execute_result result;
    tool_words_add(&words, "%s", command ? command : "scr_postrun");
    tool_words_add(&words, "--prefix=%s", r->prefix.path);
    if (down && *down) tool_words_add(&words, "--down=%s", down);
    if (between) tool_words_add(&words, "--between");
    const execute_job job = {.argv = tool_words_list(&words),
                             .interval = 1,
                             .patience = PATIENCE,
                             .ours = 1,
                             .first = r->signals.stop ? NULL : tell_first,
                             .arg = r};
    int rc = words.failed || !down ? -ENOMEM : execute(&job, &r->signals, &result);
    int saved = tell_saved(r, rc, &result);
    tool_words_done(&words);
    free(down);
    free(command);
    return saved;
}

/* ---- all runs ---- */

/* A drained node of the last run that the next one leaves out may be switched off: what
 * the caches have is saved while it is there. 1 where there is one. */
static int save_left_out(run *r)
{
    int some = 0;
    for (int i = 0; i < r->nodes.count; i++) {
        run_node *node = &r->table[i];
        if (!node->drained || node->down || !node->used || node->chosen) continue;
        run_log_add(&r->log, "node %s is left out: the batch system drains it",
                    r->nodes.names[i]);
        node->used = 0;
        some = 1;
    }
    if (some) save_rest(r, 1);
    return some;
}

static run_decision run_all(run *r)
{
    run_decision d = decide(r);
    while (d.why == RUN_LAUNCH) {
        launch_once(r);
        d = decide(r);
        if (d.why != RUN_LAUNCH) break;
        rest(r);
        d = decide(r);
        while (d.why == RUN_LAUNCH && save_left_out(r))
            d = decide(r);
    }
    return d;
}

/* SCR_ENABLE=0: only the program, in place of this one. */
static int run_plainly(run *r)
{
    tool_words words = {0};
    r->facts.halt = NULL;
    if (r->failure_count)
        return tool_complain("--fail: with SCR_ENABLE=0 nobody counts checkpoints");
    if (run_plan(&r->facts).why != RUN_LAUNCH) return tool_complain("no nodes");
    run_take_chosen(r);
    run_describe(r, "scr_run");
    r->launcher->build(&r->launch, &words);
    const execute_job job = {
        .argv = tool_words_list(&words), .interval = 1, .patience = PATIENCE};
    execute_result result;
    int rc = words.failed ? -ENOMEM : execute(&job, &r->signals, &result);
    tool_words_done(&words);
    if (rc) return tool_complain("%s: %s", r->program, strerror(-rc));
    return result.code;
}

static int run_with_scr(run *r)
{
    char text[RUN_TEXT_SIZE];
    int code = prepare_test_runtime(&r->prefix, r->launcher->name);
    /* simulated nodes are nobody else's */
    if (code == COMMAND_GOOD && !r->simulated)
        code = sole_claim(&r->prefix, &r->owner, &r->claim);
    if (code == COMMAND_GOOD) code = prepare_prefix(&r->prefix);
    if (code == COMMAND_GOOD) {
        char err[ERRTEXT_SIZE] = "";
        r->log.quiet = r->request->quiet;
        if (run_log_open(&r->log, r->prefix.dir, err) != 0)
            code = tool_complain("%s: %s", r->prefix.path, err);
    }
    if (code != COMMAND_GOOD) return code;
    run_tell_shared(r);
    run_decision d = run_all(r);
    run_plan_tell(&r->facts, &d, text);
    run_log_add(&r->log, "no further run: %s", text);
    if (d.why == RUN_HALTED && r->remedy) run_log_add(&r->log, "%s", r->remedy);
    if (r->facts.attempts > 0 && !r->signals.stop) tell_unprotected(r);
    if (run_tell_missed(r) && d.code == 0) d.code = NOT_FAILED;
    /* also without a run: an earlier job may have left something; not on new nodes */
    int saved = (r->facts.attempts == 0 && r->simulated) || save_rest(r, 0);
    if (!saved && d.code == 0) d.code = NOT_SAVED;
    run_log_add(&r->log, "the end, with exit code %d", d.code);
    return d.code;
}

int run_job(const run_request *request)
{
    run r;
    int enabled = 1, code = run_open(&r, request);
    scr_problems problems = {0, NULL};
    if (code == COMMAND_GOOD) {
        scr_config_switch(&r.prefix.config, "SCR_ENABLE", &enabled, &problems);
        code = tool_tell_problems(&problems);
    }
    if (code == COMMAND_GOOD) code = enabled ? run_with_scr(&r) : run_plainly(&r);
    int given_up = r.given_up;
    run_close(&r);
    if (given_up) raise(given_up); /* so that a script knows */
    return code;
}
