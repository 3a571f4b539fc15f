/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUN_PLAN_H
#define RUN_PLAN_H

/* The next step in an allocation: another run and its nodes, or the end (SCR Developer
 * Guide 1.2, section 2.25.1). Pure functions over plain data. */

/* One node of the allocation. */
typedef struct run_node {
    int down;    /* it was down once and remains excluded */
    int drained; /* it works, but nothing new should start on it */
    int used;    /* used by the last run */
    int home;    /* 1: scr_run itself runs on it */
    int chosen;  /* out: used by the next run */
    int ranks;   /* out: its ranks in the next run */
} run_node;

/* Facts for a decision. */
typedef struct run_facts {
    int runs_left;       /* remaining starts of the program; -1: no limit */
    int attempts;        /* runs so far */
    int code;            /* exit code of the last run */
    int stop;            /* 1: a signal asked scr_run to end */
    int over;            /* 1: the batch system ends the allocation */
    const char *halt;    /* why the job should halt; or NULL */
    const char *halted;  /* why the last run was halted, though its exit code was 0; or
                          * NULL */
    int drained_waits;   /* 1: a program that needs a drained node never starts */
    int wanted;          /* nodes to run on; 0: all nodes in the first run */
    int least;           /* SCR_MIN_NODES; 0: not set */
    int last_nodes;      /* nodes of the last run, as recorded by SCR; 0: unknown */
    int ranks, per_node; /* of the program; 0: unknown, or determined by the launcher */
    int any_ranks;       /* 1: the program restarts with any number of ranks
                          * (SCR_RESTART_RANKS) */
    int count;           /* number of nodes */
    run_node *nodes;
} run_facts;

typedef enum run_why {
    RUN_LAUNCH,    /* another run */
    RUN_DONE,      /* the program ended by itself with exit code 0 */
    RUN_STOPPED,   /* a signal ended scr_run */
    RUN_OVER,      /* the allocation is over */
    RUN_HALTED,    /* a halt condition holds, or ended the program */
    RUN_USED_UP,   /* no runs are left */
    RUN_HOME_DOWN, /* the node of scr_run is down */
    RUN_TOO_FEW    /* too few nodes are left */
} run_why;

typedef struct run_decision {
    run_why why;
    int nodes;  /* number of chosen nodes, for RUN_LAUNCH */
    int needed; /* minimum number of nodes */
    int healthy;
    int code; /* exit code of scr_run, unless why is RUN_LAUNCH */
} run_decision;

enum { RUN_TEXT_SIZE = 320 };

/* Decides. RUN_LAUNCH sets nodes[].chosen and .ranks: nodes of the last run come first,
 * since their caches have its checkpoints, then spare nodes in order. A drained node is
 * used only if there are too few others. No node is without a rank. Ranks are distributed
 * evenly; the first nodes may get one more. A run on fewer nodes has as many ranks as
 * before or, with any_ranks, as many per node as before. */
run_decision run_plan(const run_facts *facts);

/* Whether a process or a node of the last run died. In that case launchers end the other
 * ranks by SIGTERM, which is not a request to halt. A process that died of SIGTERM does
 * not count: it was asked to end. */
int run_plan_was_struck(const run_facts *facts);

/* Describes the decision as text; empty for RUN_LAUNCH. */
void run_plan_describe(const run_facts *facts, const run_decision *decision,
                       char text[RUN_TEXT_SIZE]);

#endif
