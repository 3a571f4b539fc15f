/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUN_H
#define RUN_H

/* A job that goes on after failures (SCR Developer Guide 1.2, section 2.25.1): prepares,
 * launches, watches, finds nodes that are down, launches again on the others, and saves
 * what is left in the caches at the end. */

#include "halt/halt.h"
#include "lib/tool_prefix.h"
#include "nodes/down_nodes.h"
#include "run/execute.h"
#include "run/launcher.h"
#include "run/progress.h"
#include "run/run_log.h"
#include "run/run_plan.h"
#include "run/simulate.h"
#include "run/sole.h"

/* What is asked for. */
typedef struct run_request {
    const char *dir;                  /* the prefix folder; NULL */
    const char *launcher;             /* NULL: by what is there */
    const char *simulate;             /* "4x2"; NULL: real nodes */
    const char *fail;                 /* failures of simulated nodes; NULL */
    int ranks, nodes, per_node, runs; /* 0: not said; runs: as SCR_RUNS */
    const char *least;                /* SCR_MIN_NODES; NULL: as that says */
    int raw;                          /* 1: words are arguments of the launcher, too */
    int quiet;
    const char *const *words; /* the program and its arguments */
} run_request;

/* The job. */
typedef struct run {
    const run_request *request;
    tool_prefix prefix;
    tool_owner owner;
    execute_signals signals;
    run_log log;
    const launcher *launcher;
    const char *program; /* of the launcher */

    /* settings */
    double delay;     /* seconds between two runs */
    double interval;  /* seconds between two looks at the nodes; 0: none */
    double node_time; /* seconds that a node has to answer */
    int watch;        /* SCR_WATCHDOG */
    watchdog watchdog;

    /* the allocation */
    hostlist nodes;
    run_node *table;      /* one per node */
    down_reason *reasons; /* the same */
    run_facts facts;
    scr_halt_end end;                  /* when it ends; ... */
    int end_known;                     /* ... 0: nobody was asked yet */
    char halt[512];                    /* why the job should halt; "": it need not */
    char halted[SCR_HALT_REASON_SIZE]; /* why the last program that ended with exit code 0
                                          was told to end; "": it was not */
    char *remedy; /* what somebody has to do for the job to go on; NULL */

    /* simulated nodes */
    char *simulated; /* their folder */
    int lock;        /* that it is ours; -1 */
    int per_node;
    simulate_failure failures[SIMULATE_FAILURES];
    int failure_count;

    int claim;    /* this is the only scr_run of the job */
    int given_up; /* the signal that ended the saving of what is in the caches, or 0 */

    /* the run that goes on */
    launch launch;
    hostlist chosen, out; /* those that it has, and must not have; names as in nodes */
    int *ranks;
    progress_source progress;
    int checker;        /* process that looks at the nodes; 0 */
    down_reason *found; /* what it finds, one per chosen node; NULL */
    double next_check;  /* times */
    double check_until;
} run;

/* The whole of scr_run; its exit code. */
int run_job(const run_request *request);

/* ---- its parts, each in a file of its own ---- */

/* run_setup.c: opens everything; an exit code, after a complaint. */
int run_open(run *r, const run_request *request);
void run_close(run *r);

/* The same: what simulated nodes have in common, though real ones would not. */
void run_tell_shared(run *r);

/* run.c: the nodes that the plan chose, and the launch on them, of that name. */
void run_take_chosen(run *r);
void run_describe(run *r, const char *name);

/* run_look.c: while a program runs; see execute.h. */
void run_look_begin(run *r);
int run_look(void *arg, char why[EXECUTE_WHY_SIZE]);
void run_look_end(run *r);

/* The same, at the end: tells which failures did not happen. 1 when there are some. */
int run_tell_missed(run *r);

/* run_halt.c: whether the halt file, or the end of the allocation, says that the job
 * should not go on: r->halt. What an earlier job recorded itself is gone (prepare.h). The
 * first call asks for that end, and gives it to all programs as SCR_END_TIME. */
void run_read_halt(run *r);

/* A program ended with exit code 0: whether it was told to end, r->halted. */
void run_read_halted(run *r);

/* scr_run ended the program for a reason of its own: the signal by which it did so is
 * nobody's wish to halt, though the program noted it. */
void run_forgive(run *r);

/* 1 when SCR in the program noted why it ends: it came to its end by itself, or takes a
 * signal for a wish to end. */
int run_noted_its_end(const run *r);

/* 1 if the halt file asks to end the job step now; that is taken back then. */
int run_must_end_now(run *r);

#endif
