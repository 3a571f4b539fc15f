/* SPDX-License-Identifier: BSD-3-Clause */
/* A job that survives failures: the main loop; see run.h. */
#include "run/run.h"

#include "lib/processes.h"
#include "lib/tool.h"
#include "lib/tool_fold.h"
#include "lib/tool_log.h"
#include "lib/tool_manager.h"
#include "lib/tool_remote.h"
#include "lib/tool_words.h"
#include "prefix/nodes.h"
#include "run/hooks.h"
#include "run/prerun.h"
#include "run/requeue.h"
#include "run/single_instance.h"
#include "scavenge/node_command.h"
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NOTICE = 30,       /* seconds that a program gets to end with a checkpoint */
    PATIENCE = 30,     /* seconds from a signal to SIGKILL */
    LAST_RANK = 30,    /* seconds after which its processes must be gone */
    ANSWER = 30,       /* timeout of the batch system in seconds */
    NOT_STARTED = 127, /* exit code if the launcher could not be started */
    NOT_COMPLETE = 1   /* exit code if the program succeeded, but data is only in the
                        * caches, or a simulated failure did not happen */
};

/* ---- the nodes ---- */

static bool run_is_new_down(const run *r, int i)
{
    return !r->table[i].down && *r->reasons[i].text;
}

/* Whether further nodes are down in an allocation that continues. At the end of an
 * allocation Slurm starts nothing on its nodes, which is not a failure of the nodes. */
static bool run_has_new_down(run *r)
{
    int count = 0;
    for (int i = 0; i < r->nodes.count; i++)
        count += run_is_new_down(r, i);
    if (count) r->facts.over = tool_manager_is_over(ANSWER);
    return count && !r->facts.over;
}

static void run_report_node_down(void *arg, const char *count, const char *nodes,
                                 const char *text)
{
    run *r = arg;
    run_say(r, NODE_DOWN, "%s %s: down: %s", count, nodes, text);
}

static void run_report_down(run *r)
{
    tool_fold fold = {0};
    for (int i = 0; i < r->nodes.count; i++)
        if (run_is_new_down(r, i) &&
            tool_fold_add(&fold, r->nodes.names[i], r->reasons[i].text) != 0)
            run_report_node_down(r, "node", r->nodes.names[i], r->reasons[i].text);
    tool_fold_report(&fold, run_report_node_down, r);
}

/* Updates the nodes that are down. A node that was down once remains so. */
static void run_update_down(run *r)
{
    /* after a reported error, earlier results stay valid */
    down_nodes_find(&r->prefix, &r->nodes, r->node_time, false, r->reasons);
    if (!run_has_new_down(r)) return;
    run_report_down(r);
    for (int i = 0; i < r->nodes.count; i++) {
        if (!run_is_new_down(r, i)) continue;
        r->table[i].down = 1;
        const scr_log_event event = {.kind = SCR_LOG_NODE_LOST,
                                     .run = r->id,
                                     .node = r->nodes.names[i],
                                     .note = r->reasons[i].text};
        tool_log_write(&r->prefix, &event, NULL);
        hooks_call(&r->prefix, HOOK_NODE_DOWN, r->nodes.names[i], r->reasons[i].text);
    }
}

/* Updates the drained nodes; without an answer nothing changes. */
static void run_update_drained(run *r)
{
    hostlist drained = {0, NULL};
    if (r->simulated) return;
    if (tool_manager_drained(&r->nodes, ANSWER, &drained) == COMMAND_GOOD)
        for (int i = 0, k = 0; i < r->nodes.count; i++) {
            /* both lists are in the same order */
            int is = k < drained.count && !strcmp(r->nodes.names[i], drained.names[k]);
            r->table[i].drained = is;
            k += is;
        }
    hostlist_done(&drained);
}

void run_take_chosen(run *r)
{
    r->chosen.count = r->out.count = r->rest.count = 0;
    for (int i = 0; i < r->nodes.count; i++) {
        run_node *node = &r->table[i];
        node->used = node->chosen;
        if (node->down || (node->drained && !node->chosen))
            r->out.names[r->out.count++] = r->nodes.names[i];
        if (!node->chosen) r->rest.names[r->rest.count++] = r->nodes.names[i];
        if (!node->chosen) continue;
        r->ranks[r->chosen.count] = node->ranks;
        r->chosen.names[r->chosen.count++] = r->nodes.names[i];
    }
}

/* ---- one run ---- */

static void run_end_launch(void *arg)
{
    run *r = arg;
    kvtree_error err = {""};
    if (launcher_end(&r->launcher.row, &r->launch, &err) != 0)
        tool_say(JOBSTEP_NOT_ENDED, "%s", err.text);
}

static void run_report_start(run *r)
{
    char *list = hostlist_compress(&r->chosen);
    char text[32] = "";
    int ranks = launcher_ranks(&r->launch);
    const scr_log_event event = {.kind = SCR_LOG_LAUNCH_START,
                                 .run = r->id,
                                 .ranks = ranks,
                                 .nodes = r->chosen.count,
                                 .note = list};
    if (ranks) snprintf(text, sizeof text, ", %d rank%s", ranks, ranks == 1 ? "" : "s");
    run_say(r, RUN_LAUNCHED, "run %d: begins on %s%s", r->facts.attempts,
            list ? list : "?", text);
    tool_log_write(&r->prefix, &event, NULL);
    free(list);
}

static void run_report_end(run *r, const tool_job_result *result)
{
    char why[TOOL_WHY_SIZE + 64];
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
                                 .run = r->id,
                                 .secs = result->seconds,
                                 .code = result->code,
                                 .note = why};
    run_say(r, RUN_EXITED, "run %d: ended after %.1f s with exit code %d: %s",
            r->facts.attempts, result->seconds, result->code, why);
    tool_log_write(&r->prefix, &event, NULL);
    tool_log_end_runs(&r->prefix, r->id, why);
}

/* Keeps the facts for the next decision. */
static void run_keep_result(run *r, const tool_job_result *result)
{
    int nodes = 0;
    r->facts.code = result->code;
    if (result->ended) run_drop_signal(r, "");
    /* a launcher may report success although it, or all of its ranks, were ended */
    if (result->ended && result->code == 0) r->facts.code = 1;
    if (result->signalled && result->code == 0 && !run_has_own_reason(r))
        r->facts.code = 128 + r->signals.stop;
    if (scr_nodes_read(r->prefix.dir, &nodes, NULL) != 0) nodes = r->chosen.count;
    r->facts.last_nodes = nodes;
}

/* Returns the module that makes idle ranks sleep if there are more ranks than processors;
 * otherwise NULL. */
static const char *run_preload(run *r)
{
    int ranks = 0;
    for (int i = 0; i < r->chosen.count; i++)
        ranks += r->ranks[i];
    return r->simulated && simulate_find_idle(ranks, r->idle) ? r->idle : NULL;
}

void run_describe(run *r, const char *name)
{
    /* outside of Slurm, srun waits for an allocation without a time limit */
    int allocated = strcmp(tool_manager_name(), "slurm") == 0;
    r->launch = (launch){.nodes = &r->chosen,
                         .ranks = r->request->raw ? NULL : r->ranks,
                         .out = &r->out,
                         .rest = &r->rest,
                         .program = r->launcher.program,
                         .name = name,
                         .simulated = r->simulated,
                         .preload = run_preload(r),
                         .raw = r->request->raw,
                         .words = r->request->words,
                         .patience = allocated ? r->node_time : 0};
}

static int run_report_unlaunched(const run *r, int rc, const kvtree_error *err)
{
    return tool_say(RUN_LAUNCH_FAILED, "%s: %s", r->launcher.program,
                    *err->text ? err->text : strerror(-rc));
}

/* Makes and exports the id under which the program logs its run. */
static void run_export_id(run *r)
{
    scr_log_run_id(r->id);
    if (setenv("SCR_RUN_ID", r->id, 1) != 0) tool_no_memory();
}

static void run_launch(run *r)
{
    static const processes_filter all = {.spared = "scr_transfer"};
    char name[64];
    kvtree_error err = {""};
    tool_words words = {0};
    tool_job_result result = {.code = NOT_STARTED};
    run_take_chosen(r);
    r->facts.attempts++;
    if (r->facts.runs_left > 0) r->facts.runs_left--;
    snprintf(name, sizeof name, "scr_run.%ld.%d", (long)getpid(), r->facts.attempts);
    run_export_id(r);
    run_describe(r, name);
    int rc = launcher_build(&r->launcher.row, &r->launch, &words, &err);
    /* checkpoints are for this number of ranks */
    r->facts.ranks = launcher_ranks(&r->launch);
    const tool_job job = {.argv = tool_words_list(&words),
                          .interval = r->simulated ? 0.02 : 1,
                          .patience = PATIENCE,
                          .grace = RUN_GRACE,
                          .check = run_monitor_check,
                          .first = r->request->requeue ? requeue_ask_program : NULL,
                          .notice = NOTICE,
                          .end = run_end_launch,
                          .arg = r};
    run_report_start(r);
    run_monitor_begin(r);
    if (!rc) rc = tool_process_watch(&job, &r->signals, &result);
    if (rc) run_report_unlaunched(r, rc, &err);
    if (r->launcher.row.leaves && !rc && result.code != 0) run_end_launch(r);
    run_monitor_end(r);
    rc = processes_end(&all, LAST_RANK);
    if (rc) tool_say(PROCESSES_LEFT, "processes of the run: %s", processes_reason(rc));
    processes_reap();
    *r->halted = 0;
    if (result.code == 0 && !result.ended) run_read_halted(r);
    run_report_end(r, &result);
    run_keep_result(r, &result);
    r->launch.name = NULL;
    tool_words_done(&words);
}

/* ---- between two runs ---- */

/* Gives the nodes time to clean up; ends early if the job should end. */
static void run_pause(run *r)
{
    double until = tool_now() + r->delay;
    if (r->delay > 0)
        run_say(r, RUN_PAUSES, "the next run begins in %.0f s (SCR_RUN_PAUSE)", r->delay);
    while (!r->signals.stop && !*r->halt && tool_now() < until) {
        double left = until - tool_now();
        tool_signals_wait(&r->signals, left < 1 ? left : 1, 0);
        run_read_halt(r);
    }
}

static run_decision run_decide(run *r)
{
    run_update_down(r);
    run_update_drained(r);
    tool_signals_wait(&r->signals, 0, 0); /* a signal may have arrived meanwhile */
    if (!r->signals.stop && run_plan_was_struck(&r->facts))
        run_drop_signal(r, ": SIGTERM ");
    run_read_halt(r);
    r->facts.halt = *r->halt ? r->halt : NULL;
    r->facts.halted = *r->halted ? r->halted : NULL;
    r->facts.stop = r->signals.stop != 0;
    return run_plan(&r->facts);
}

/* ---- saving the caches ---- */

/* Warns if no run used SCR. SCR_Init records the number of nodes; the record of an
 * earlier job was removed before the first run (prerun.h). */
static void run_warn_unprotected(run *r)
{
    int nodes;
    if (scr_nodes_read(r->prefix.dir, &nodes, NULL) != -ENOENT) return;
    run_say(r, RUN_UNPROTECTED, "nothing of this program was protected by SCR in %s",
            r->prefix.path);
}

static void run_warn_first_signal(void *arg)
{
    run *r = arg;
    run_say(r, RUN_SIGNAL,
            "signal %d came: the caches are saved first; a further signal gives that up",
            r->signals.last);
}

static void run_report_abandoned(run *r)
{
    char *save = scavenge_postrun_line(r->prefix.path);
    r->given_up = r->signals.last;
    run_say(r, RUN_SAVE_ABANDONED,
            "signal %d came: saving is abandoned; %s saves what real nodes keep",
            r->given_up, save ? save : "scr_postrun");
    free(save);
}

/* Reports the result of saving. True if everything is saved. */
static bool run_report_saved(run *r, int rc, const tool_job_result *result)
{
    if (rc)
        run_say(r, RUN_SAVE_FAILED, "scr_postrun: %s", strerror(-rc));
    else if (result->code && result->signalled)
        run_report_abandoned(r);
    else if (result->code)
        run_say(r, RUN_SAVE_FAILED, "scr_postrun: exit code %d; see above", result->code);
    return !rc && !result->code;
}

/* Returns the nodes that do not answer as text, to be freed. */
static char *run_list_gone(const run *r)
{
    hostlist gone = {0, calloc((size_t)r->nodes.count + 1, sizeof *gone.names)};
    for (int i = 0; i < r->nodes.count && gone.names; i++)
        if (r->table[i].down && !r->reasons[i].answers)
            gone.names[gone.count++] = r->nodes.names[i];
    char *text = gone.names ? hostlist_compress(&gone) : NULL;
    free(gone.names); /* `nodes` owns the names */
    return text;
}

/* Saves datasets that are only in the caches. The first signal to scr_run does not end
 * this: if it arrives now, it causes a warning. A further signal abandons the saving.
 * True if everything is saved. between: another run follows. */
static bool run_save_caches(run *r, bool between)
{
    char *command = tool_remote_command("scr_postrun");
    char *down = run_list_gone(r);
    tool_words words = {0};
    tool_job_result result;
    tool_words_add(&words, "%s", command ? command : "scr_postrun");
    tool_words_add(&words, "--prefix=%s", r->prefix.path);
    if (down && *down) tool_words_add(&words, "--down=%s", down);
    if (between) tool_words_add(&words, "--between");
    const tool_job job = {.argv = tool_words_list(&words),
                          .interval = 1,
                          .patience = PATIENCE,
                          .ours = true,
                          .out = r->output,
                          .first = r->signals.stop ? NULL : run_warn_first_signal,
                          .arg = r};
    int rc =
        words.failed || !down ? -ENOMEM : tool_process_watch(&job, &r->signals, &result);
    int saved = run_report_saved(r, rc, &result);
    tool_words_done(&words);
    free(down);
    free(command);
    return saved;
}

/* ---- all runs ---- */

/* The next run leaves out drained nodes, which may then be switched off: if such a node
 * was used by the last run, saves the caches now. True if there is such a node. */
static bool run_save_drained(run *r)
{
    bool some = false;
    for (int i = 0; i < r->nodes.count; i++) {
        run_node *node = &r->table[i];
        if (!node->drained || node->down || !node->used || node->chosen) continue;
        run_say(r, NODE_DRAINED, "node %s is left out: the batch system drains it",
                r->nodes.names[i]);
        node->used = 0;
        some = true;
    }
    if (some) run_save_caches(r, true);
    return some;
}

static run_decision run_all(run *r)
{
    run_decision d = run_decide(r);
    while (d.why == RUN_LAUNCH) {
        run_launch(r);
        d = run_decide(r);
        if (d.why != RUN_LAUNCH) break;
        run_pause(r);
        d = run_decide(r);
        while (d.why == RUN_LAUNCH && run_save_drained(r))
            d = run_decide(r);
    }
    return d;
}

/* SCR_ENABLE=0: runs the program once and saves nothing. */
static int run_without_scr(run *r)
{
    kvtree_error err = {""};
    tool_words words = {0};
    r->facts.halt = NULL;
    if (r->failure_count)
        return tool_say(SIMULATION_INVALID,
                        "--fail: with SCR_ENABLE=0 checkpoints are not counted");
    if (run_plan(&r->facts).why != RUN_LAUNCH)
        return tool_say(NODELIST_EMPTY, "no nodes");
    run_take_chosen(r);
    run_describe(r, "scr_run");
    int rc = launcher_build(&r->launcher.row, &r->launch, &words, &err);
    const tool_job job = {
        .argv = tool_words_list(&words), .interval = 1, .patience = PATIENCE};
    tool_job_result result;
    if (!rc) rc = tool_process_watch(&job, &r->signals, &result);
    tool_words_done(&words);
    return rc ? run_report_unlaunched(r, rc, &err) : result.code;
}

/* Prepares the first run; an exit code, after a message. */
static int run_prepare(run *r)
{
    kvtree_error err = {""};
    int code = prerun_test_runtime(&r->prefix);
    /* simulated nodes belong to this run alone */
    if (code == COMMAND_GOOD && !r->simulated)
        code = single_instance_lock(&r->prefix, &r->owner, &r->instance);
    if (code == COMMAND_GOOD) code = prerun_prefix(&r->prefix);
    r->log.quiet = r->request->quiet;
    if (code == COMMAND_GOOD && run_log_open(&r->log, r->prefix.dir, &err) != 0)
        code = tool_say(RUN_LOG_UNUSABLE, "%s: %s", r->prefix.path, err.text);
    return code;
}

static int run_with_scr(run *r)
{
    static const tool_message why[] = {[RUN_DONE] = TOOL_MSG_RUN_DONE,
                                       [RUN_STOPPED] = TOOL_MSG_RUN_SIGNALLED,
                                       [RUN_OVER] = TOOL_MSG_RUN_ALLOCATION_OVER,
                                       [RUN_USED_UP] = TOOL_MSG_RUN_USED_UP,
                                       [RUN_HOME_DOWN] = TOOL_MSG_RUN_HOME_DOWN,
                                       [RUN_HALTED] = TOOL_MSG_RUN_HALTED,
                                       [RUN_TOO_FEW] = TOOL_MSG_RUN_NODES_LOST};
    char text[RUN_TEXT_SIZE];
    int code = run_prepare(r);
    if (code != COMMAND_GOOD) return code;
    run_warn_shared(r);
    run_decision d = run_all(r);
    run_plan_describe(&r->facts, &d, text);
    run_log_add(&r->log, why[d.why], "no further run: %s", text);
    if (d.why == RUN_HALTED && r->remedy) run_say(r, HALT_REMEDY, "%s", r->remedy);
    if (r->facts.attempts > 0 && !r->signals.stop) run_warn_unprotected(r);
    bool missed = run_report_missed(r);
    /* also without a run: an earlier job may have left datasets; not with new simulated
     * nodes */
    bool saved = (r->facts.attempts == 0 && r->simulated) || run_save_caches(r, false);
    if (requeue_is_due(r, &d)) requeue_job(r);
    if ((missed || !saved) && d.code == 0) d.code = NOT_COMPLETE;
    run_say(r, RUN_FINISHED, "the end, with exit code %d", d.code);
    return d.code;
}

int run_job(const run_request *request)
{
    run r;
    int enabled = 1, code = run_open(&r, request);
    scr_problems problems = {.count = 0};
    if (code == COMMAND_GOOD) {
        scr_config_switch(&r.prefix.config, "SCR_ENABLE", &enabled, &problems);
        code = tool_tell_problems(&problems);
    }
    if (code == COMMAND_GOOD) code = enabled ? run_with_scr(&r) : run_without_scr(&r);
    int given_up = r.given_up;
    run_close(&r);
    if (given_up) raise(given_up); /* so that the shell sees the signal */
    return code;
}
