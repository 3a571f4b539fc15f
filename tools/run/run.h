/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUN_H
#define RUN_H

/* A job that survives failures (SCR Developer Guide 1.2, section 2.25.1): prepares,
 * launches, monitors, finds nodes that are down, launches again on the other nodes, and
 * saves the caches at the end. */

#include "halt/halt.h"
#include "lib/tool_prefix.h"
#include "lib/tool_process.h"
#include "nodes/down_nodes.h"
#include "report/log.h"
#include "run/launcher.h"
#include "run/run_log.h"
#include "run/run_plan.h"
#include "run/run_progress.h"
#include "run/simulate.h"

/* Seconds from SIGTERM to SIGKILL if the program or its node hangs. mpirun of Open MPI
 * needs more than one second to end its ranks. */
enum { RUN_GRACE = 5 };

/* The request from the command line. */
typedef struct run_request {
    const char *dir;                  /* the prefix directory; or NULL */
    const char *launcher;             /* NULL: chosen automatically */
    const char *simulate;             /* "4x2"; NULL: real nodes */
    const char *fail;                 /* failures of simulated nodes; or NULL */
    int ranks, nodes, per_node, runs; /* 0: not given; runs: as in SCR_RUNS */
    int raw;                          /* 1: words also contain arguments of the
                                       * launcher */
    int quiet;
    int requeue; /* 1: the job returns to the queue if it cannot continue in this
                  * allocation */
    const char *const *words; /* the program and its arguments */
} run_request;

/* The job. */
typedef struct run {
    const run_request *request;
    tool_prefix prefix;
    tool_owner owner;
    tool_signals signals;
    run_log log;
    char id[SCR_LOG_RUN_SIZE]; /* of the last launch, for the log of events */
    int output;                /* standard output of commands of this project, an open
                                * descriptor */
    launcher_choice launcher;

    /* settings */
    double delay;     /* seconds between two runs */
    double interval;  /* seconds between two checks of the nodes; 0: no checks */
    double node_time; /* timeout of a node in seconds */
    double reserve;   /* SCR_SAVE_SECONDS */
    int watch;        /* SCR_WATCHDOG */
    watchdog watchdog;

    /* the allocation */
    hostlist nodes;
    run_node *table;      /* one per node */
    down_reason *reasons; /* one per node */
    run_facts facts;
    scr_halt_end end;                  /* end of the allocation; ... */
    bool end_known;                    /* ... false: not determined yet */
    char halt[512];                    /* why the job should halt; or "" */
    char halted[SCR_HALT_REASON_SIZE]; /* why the last program with exit code 0 was
                                        * halted; "": it was not */
    char *remedy;                      /* how to continue a halted job; or NULL */

    /* simulated nodes */
    char *simulated;     /* their directory */
    int lock;            /* lock of the directory; or -1 */
    char idle[PATH_MAX]; /* module that idle ranks preload */
    int per_node;
    simulate_failure failures[SIMULATE_FAILURES];
    int failure_count;

    int instance; /* lock that excludes another scr_run of the job; or -1 */
    int given_up; /* the signal that abandoned the saving of the caches, or 0 */

    /* the current run */
    launch launch;
    /* nodes to use; nodes that must not be used; all nodes except those to use. `nodes`
     * owns the names */
    hostlist chosen, out, rest;
    int *ranks;
    progress_reader progress;
    int checker;        /* process that checks the nodes; or 0 */
    down_reason *found; /* its results, one per chosen node; or NULL */
    double next_check;  /* times on the monotonic clock */
    double check_until;
} run;

/* Runs scr_run as a whole; its exit code. */
int run_job(const run_request *request);

/* run_say(r, IDENTIFIER, "text, as for printf", ...) adds a message to the log of the
 * job.
 */
#define run_say(r, identifier, ...)                                                      \
    run_log_add(&(r)->log, TOOL_MSG_##identifier, __VA_ARGS__)

/* ---- run_setup.c ---- */

/* Sets up the job; an exit code, after a message. */
int run_open(run *r, const run_request *request);
void run_close(run *r);

/* Warns of stores that simulated nodes share although real nodes would not. */
void run_warn_shared(run *r);

/* ---- run.c ---- */

/* Takes the nodes that the plan chose; describes the launch of that name on them. */
void run_take_chosen(run *r);
void run_describe(run *r, const char *name);

/* ---- run_monitor.c: while a program runs; see tool_process_watch ---- */

void run_monitor_begin(run *r);
bool run_monitor_check(void *arg, char why[TOOL_WHY_SIZE]);
void run_monitor_end(run *r);

/* After the last run: reports simulated failures that did not happen; true if there are
 * any. */
bool run_report_missed(run *r);

/* ---- run_halt.c ---- */

/* Sets r->halt, the reason for which the job should halt, from the halt file and the end
 * of the allocation. The first call determines that end and exports it as
 * SCR_END_TIME. */
void run_read_halt(run *r);

/* Whether the allocation has only the time left that is reserved for saving. */
bool run_is_ending(const run *r, char *why, size_t size);

/* Sets r->halted after a program that ended with exit code 0. */
void run_read_halted(run *r);

/* Changes the halt file; errors are reported. */
void run_change_halt(const run *r, int (*change)(kvtree *halt, void *arg), void *arg);

/* Drops a signal that the program recorded as a reason to halt, if the text after
 * SCR_HALT_SIGNAL begins with which. Such a signal was not a request to halt: scr_run
 * sent it for its own reasons, or the launcher sent it to end the other ranks after one
 * had died. */
void run_drop_signal(const run *r, const char *which);

/* Whether SCR in the program recorded a reason for its end: the program ended by itself,
 * or treats a signal as a request to halt. */
bool run_has_own_reason(const run *r);

/* Whether the halt file asks to end the job step now; removes that request. */
bool run_must_end_now(run *r);

#endif
