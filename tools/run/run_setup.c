/* SPDX-License-Identifier: BSD-3-Clause */
/* Setup and cleanup of scr_run; see run.h. */
#include "run/run.h"

#include "common/io.h"
#include "config/values.h"
#include "lib/processes.h"
#include "lib/tool.h"
#include "lib/tool_manager.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Default seconds on real nodes and on simulated nodes. */
static const int64_t pauses[] = {60, 0}, intervals[] = {60, 2};

/* ---- simulated nodes ---- */

static int setup_export_one(run *r, const char *name, const char *value)
{
    return setenv(name, value, 1) == 0 &&
           scr_layer_set(r->prefix.config.env, name, value, "scr_run") == 0;
}

/* Sets variables for the children, and for this process, which has already read its
 * environment. */
static int setup_export_nodes(run *r, int count)
{
    char list[64];
    snprintf(list, sizeof list, "node[1-%d]", count);
    kvtree_unset(r->prefix.config.env, "SCR_NODE_NAME");
    return setup_export_one(r, "SCR_SIMULATE", r->simulated) &&
                   setup_export_one(r, "SCR_REMOTE", "simulate") &&
                   setup_export_one(r, "SCR_NODELIST", list) &&
                   unsetenv("SCR_NODE_NAME") == 0
               ? COMMAND_GOOD
               : tool_no_memory();
}

static int setup_simulated_nodes(run *r)
{
    kvtree_error err = {""};
    const run_request *request = r->request;
    hostlist nodes = {0, NULL};
    int count;
    if (simulate_parse(request->simulate, &count, &r->per_node) != 0)
        return tool_say(SIMULATION_INVALID, "--simulate %s: not NODESxRANKS, as 4x2",
                        request->simulate);
    if (request->fail && simulate_parse_failures(request->fail, count, r->failures,
                                                 &r->failure_count, &err) != 0)
        return tool_say(SIMULATION_INVALID, "--fail %s", err.text);
    int rc = simulate_open(count, &r->simulated, &r->lock, &nodes, &err);
    hostlist_done(&nodes);
    return rc ? tool_say(SIMULATION_FAILED, "%s", err.text)
              : setup_export_nodes(r, count);
}

/* Whether a descriptor keeps datasets in a store that survives the loss of a simulated
 * node. */
static bool setup_is_shared(const scr_store *store, const scr_reddescs *reddescs)
{
    int used = 0;
    for (int i = 0; i < reddescs->count; i++)
        used |= reddescs->list[i].enabled && !reddescs->list[i].bypass &&
                strcmp(reddescs->list[i].store, store->path) == 0;
    return used && !store->implied && strcmp(store->group, "NODE") == 0;
}

/* The program reports mistakes in the configuration. */
void run_warn_shared(run *r)
{
    scr_problems problems = {.count = 0};
    scr_descs descs;
    if (!r->simulated) return;
    /* each node has its own cache directory, whatever was set */
    int rc =
        scr_layer_set(r->prefix.config.env, "SCR_CACHE_BASE", r->simulated, "scr_run");
    rc = rc ? rc : scr_descs_load(&r->prefix.config, &descs, &problems);
    scr_problems_done(&problems);
    if (rc) {
        tool_no_memory();
        return;
    }
    for (int i = 0; i < descs.stores.count; i++)
        if (setup_is_shared(&descs.stores.list[i], &descs.reddescs))
            run_say(r, RUN_STORE_SHARED, "the simulated nodes share the store %s",
                    descs.stores.list[i].path);
    scr_descs_done(&descs);
}

/* ---- settings ---- */

static void setup_read_seconds(const run *r, const char *name, const int64_t defaults[2],
                               double *seconds, scr_problems *problems)
{
    int64_t value = defaults[r->simulated != NULL];
    scr_config_seconds(&r->prefix.config, name, &value, problems);
    *seconds = (double)value;
}

static void setup_read_watchdog(run *r, scr_problems *problems)
{
    static const char name[] = "SCR_WATCHDOG_TIMEOUT";
    const scr_config *c = &r->prefix.config;
    int64_t timeout = 0, pfs = 0;
    scr_config_switch(c, "SCR_WATCHDOG", &r->watch, problems);
    scr_config_seconds(c, name, &timeout, problems);
    scr_config_seconds(c, "SCR_WATCHDOG_TIMEOUT_PFS", &pfs, problems);
    if (r->watch && timeout == 0) {
        const scr_value value = {name, "", "SCR_WATCHDOG=1"};
        scr_value_bad(&value, problems,
                      "the longest time without a checkpoint is needed");
    }
    r->watchdog.timeout = (double)timeout;
    r->watchdog.timeout_pfs = (double)(pfs ? pfs : timeout);
}

static int setup_read_settings(run *r)
{
    scr_problems problems = {.count = 0};
    const scr_config *c = &r->prefix.config;
    const run_request *q = r->request;
    r->facts.runs_left = 1;
    scr_config_int(c, "SCR_RUNS", -1, &r->facts.runs_left, &problems);
    scr_config_int(c, "SCR_MIN_NODES", 1, &r->facts.least, &problems);
    r->facts.any_ranks = scr_config_any_ranks(c, &problems);
    setup_read_seconds(r, "SCR_RUN_PAUSE", pauses, &r->delay, &problems);
    setup_read_seconds(r, "SCR_NODE_INTERVAL", intervals, &r->interval, &problems);
    int64_t reserve = tool_manager_reserve();
    scr_config_seconds(c, "SCR_SAVE_SECONDS", &reserve, &problems);
    r->reserve = (double)reserve;
    r->facts.drained_waits = !r->simulated && tool_manager_drained_waits();
    setup_read_watchdog(r, &problems);
    if (q->runs) r->facts.runs_left = q->runs;
    r->facts.wanted = q->nodes;
    r->facts.ranks = q->ranks;
    r->facts.per_node = q->per_node ? q->per_node : r->per_node;
    int code = tool_tell_problems(&problems);
    if (code == COMMAND_GOOD) code = down_nodes_patience(&r->prefix, &r->node_time);
    if (code == COMMAND_GOOD) code = down_nodes_check(&r->prefix);
    return code;
}

/* ---- the allocation ---- */

static int setup_find_nodes(run *r)
{
    int code = tool_manager_nodes(&r->prefix, &r->nodes);
    if (code != COMMAND_GOOD) return code;
    if (r->nodes.count == 0)
        return tool_say(NODELIST_EMPTY, "the allocation has no nodes");
    size_t n = (size_t)r->nodes.count;
    r->table = calloc(n, sizeof *r->table);
    r->reasons = calloc(n, sizeof *r->reasons);
    r->ranks = calloc(n, sizeof *r->ranks);
    r->chosen.names = calloc(n, sizeof *r->chosen.names);
    r->out.names = calloc(n, sizeof *r->out.names);
    r->rest.names = calloc(n, sizeof *r->rest.names);
    if (!r->table || !r->reasons || !r->ranks || !r->chosen.names || !r->out.names ||
        !r->rest.names)
        return tool_no_memory();
    for (int i = 0; i < r->nodes.count; i++)
        r->table[i].home = strcmp(r->nodes.names[i], r->owner.node) == 0;
    r->facts.count = r->nodes.count;
    r->facts.nodes = r->table;
    if (r->facts.wanted > r->nodes.count)
        return tool_say(RUN_NODES_TOO_FEW, "--nodes %d: the allocation has only %d",
                        r->facts.wanted, r->nodes.count);
    return COMMAND_GOOD;
}

static int setup_find_launcher(run *r)
{
    return launcher_choose(&r->prefix, r->request->launcher, r->simulated != NULL,
                           &r->launcher);
}

/* Each launch of Flux has another FLUX_JOB_ID, but the program must use our id. */
static int setup_export_job(const run *r)
{
    if (strcmp(tool_manager_name(), "flux") != 0) return COMMAND_GOOD;
    return setenv("SCR_JOB_ID", r->owner.job, 1) == 0 ? COMMAND_GOOD : tool_no_memory();
}

/* Standard output belongs to the program: commands of this project print to standard
 * error, or nowhere. */
static int setup_set_output(run *r)
{
    r->output = STDERR_FILENO;
    if (r->request->quiet)
        r->output = io_open(AT_FDCWD, "/dev/null", O_WRONLY | O_CLOEXEC, 0);
    return r->output < 0 ? tool_say(OUTPUT_LOST, "/dev/null: %s", strerror(-r->output))
                         : COMMAND_GOOD;
}

/* Sets variables for all children. Slurm keeps the step of a lost node, with its
 * processors on all nodes; without SLURM_OVERLAP the next step waits for them. srun
 * before 20.11 does not know the variable and always overlaps steps. */
static int setup_export_all(const run *r)
{
    return setenv("SCR_PREFIX", r->prefix.path, 1) == 0 &&
                   setenv("SLURM_OVERLAP", "1", 0) == 0
               ? COMMAND_GOOD
               : tool_no_memory();
}

static int setup_catch_signals(run *r)
{
    int rc = processes_adopt();
    if (!rc) rc = tool_signals_catch(&r->signals, true);
    return rc ? tool_say(PROCESS_CONTROL_FAILED, "signals and processes: %s",
                         strerror(-rc))
              : COMMAND_GOOD;
}

int run_open(run *r, const run_request *request)
{
    *r = (run){.request = request, .per_node = 1, .instance = -1, .lock = -1};
    r->prefix.dir = r->log.fd = r->signals.fd = r->output = -1;
    /* first, since root continues in another process as the owner of the directory */
    int code = tool_prefix_configure(&r->prefix, request->dir);
    if (code == COMMAND_GOOD) code = tool_prefix_convert(&r->prefix);
    if (code == COMMAND_GOOD) code = setup_catch_signals(r);
    if (code == COMMAND_GOOD) code = setup_set_output(r);
    if (code == COMMAND_GOOD && request->simulate) code = setup_simulated_nodes(r);
    if (code == COMMAND_GOOD) code = setup_export_all(r);
    if (code == COMMAND_GOOD) code = tool_owner_find(&r->prefix, &r->owner);
    if (code == COMMAND_GOOD) code = setup_export_job(r);
    if (code == COMMAND_GOOD) code = setup_read_settings(r);
    if (code == COMMAND_GOOD) code = setup_find_launcher(r);
    return code == COMMAND_GOOD ? setup_find_nodes(r) : code;
}

void run_close(run *r)
{
    const processes_filter all = {.spared = NULL};
    int rc = processes_end(&all, 30);
    if (rc) tool_say(PROCESSES_LEFT, "processes of the run: %s", processes_reason(rc));
    processes_reap();
    simulate_close(r->simulated, &r->lock);
    run_log_close(&r->log);
    io_close(&r->instance);
    tool_prefix_close(&r->prefix);
    if (r->output != STDERR_FILENO) io_close(&r->output);
    tool_signals_release(&r->signals);
    free(r->remedy);
    free(r->chosen.names); /* `nodes` owns the names */
    free(r->out.names);
    free(r->rest.names);
    launcher_choice_free(&r->launcher);
    free(r->ranks);
    free(r->table);
    free(r->reasons);
    hostlist_done(&r->nodes);
}
