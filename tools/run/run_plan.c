/* SPDX-License-Identifier: BSD-3-Clause */
/* The next step in an allocation; see run_plan.h. */
#include "run/run_plan.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit code if nothing was started. */
enum { NOT_STARTED = 1 };

static int plan_count_healthy(const run_facts *f, int drained)
{
    int healthy = 0;
    for (int i = 0; i < f->count; i++)
        healthy += !f->nodes[i].down && !f->nodes[i].drained == !drained;
    return healthy;
}

/* Returns at most n, and at most one node per rank: launchers refuse nodes without a
 * rank, or crash. */
static int plan_with_ranks(const run_facts *f, int n)
{
    return f->ranks > 0 && f->ranks < n ? f->ranks : n;
}

/* Returns the number of nodes for the program when no node is down. */
static int plan_full(const run_facts *f)
{
    if (f->wanted > 0) return plan_with_ranks(f, f->wanted);
    return plan_with_ranks(f, f->attempts > 0 && f->last_nodes > 0 ? f->last_nodes
                                                                   : f->count);
}

/* Returns the minimum number of nodes; without SCR_MIN_NODES, the full number. */
static int plan_least(const run_facts *f)
{
    return f->least > 0 ? f->least : plan_full(f);
}

static bool plan_is_home_down(const run_facts *f)
{
    for (int i = 0; i < f->count; i++)
        if (f->nodes[i].home && f->nodes[i].down) return true;
    return false;
}

static run_why plan_find_end(const run_facts *f, const run_decision *d)
{
    if (f->stop) return RUN_STOPPED;
    if (f->attempts > 0 && f->code == 0) return f->halted ? RUN_HALTED : RUN_DONE;
    if (f->over) return RUN_OVER;
    if (f->halt) return RUN_HALTED;
    if (f->runs_left == 0) return RUN_USED_UP;
    if (plan_is_home_down(f)) return RUN_HOME_DOWN;
    if (d->healthy < d->needed || d->healthy == 0) return RUN_TOO_FEW;
    return RUN_LAUNCH;
}

/* ---- nodes and ranks ---- */

/* Chooses up to n healthy nodes with the given values of drained and used; returns their
 * number. */
static int plan_choose_nodes(const run_facts *f, int drained, int used, int n)
{
    int chosen = 0;
    for (int i = 0; i < f->count && chosen < n; i++) {
        run_node *node = &f->nodes[i];
        if (node->down || node->chosen || !node->drained != !drained) continue;
        if ((node->used || node->home) != used) continue;
        node->chosen = 1;
        chosen++;
    }
    return chosen;
}

static void plan_distribute_ranks(const run_facts *f, int nodes)
{
    const int full = plan_full(f);
    int ranks = f->ranks > 0 ? f->ranks : f->per_node * full, dealt = 0;
    if (f->any_ranks && nodes < full) ranks = (int)((int64_t)ranks * nodes / full);
    for (int i = 0; i < f->count; i++) {
        run_node *node = &f->nodes[i];
        node->ranks = 0;
        if (!node->chosen) continue;
        node->ranks = ranks / nodes + (dealt < ranks % nodes);
        dealt++;
    }
}

run_decision run_plan(const run_facts *f)
{
    int fit = plan_count_healthy(f, 0), worst = f->drained_waits ? 0 : 1;
    run_decision d = {.needed = plan_least(f), .healthy = fit};
    if (worst) d.healthy += plan_count_healthy(f, 1);
    d.why = plan_find_end(f, &d);
    if (d.why != RUN_LAUNCH) {
        d.code = f->attempts > 0 ? f->code : NOT_STARTED;
        return d;
    }
    int n = plan_full(f) < fit ? plan_full(f) : fit;
    if (n < d.needed) n = plan_with_ranks(f, d.needed);
    for (int i = 0; i < f->count; i++)
        f->nodes[i].chosen = 0;
    for (int drained = 0; drained <= worst; drained++) {
        d.nodes += plan_choose_nodes(f, drained, 1, n - d.nodes);
        d.nodes += plan_choose_nodes(f, drained, 0, n - d.nodes);
    }
    plan_distribute_ranks(f, d.nodes);
    return d;
}

int run_plan_was_struck(const run_facts *f)
{
    bool struck = f->attempts > 0 && f->code > 128 && f->code != 128 + SIGTERM;
    for (int i = 0; i < f->count; i++)
        struck |= f->nodes[i].used && f->nodes[i].down;
    return struck;
}

void run_plan_describe(const run_facts *f, const run_decision *d,
                       char text[RUN_TEXT_SIZE])
{
    static const char *const texts[] = {
        [RUN_LAUNCH] = "",
        [RUN_DONE] = "the program is done",
        [RUN_STOPPED] = "scr_run was told to end",
        [RUN_OVER] = "the allocation is over",
        [RUN_USED_UP] = "all runs are used up (SCR_RUNS)",
        [RUN_HOME_DOWN] = "the node on which scr_run itself runs is down"};
    if (d->why == RUN_HALTED && f->attempts > 0 && f->code == 0)
        snprintf(text, RUN_TEXT_SIZE, "the program was halted: %.200s", f->halted);
    else if (d->why == RUN_HALTED)
        snprintf(text, RUN_TEXT_SIZE, "the job should halt: %.200s", f->halt);
    else if (d->why == RUN_TOO_FEW)
        snprintf(text, RUN_TEXT_SIZE, "%d of %d nodes are left, %d are needed",
                 d->healthy, f->count, d->needed);
    else
        snprintf(text, RUN_TEXT_SIZE, "%s", texts[d->why]);
}
