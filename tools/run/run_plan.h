/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUN_PLAN_H
#define RUN_PLAN_H

/* The next step in an allocation: another run, and its nodes, or the end (SCR Developer
 * Guide 1.2, section 2.25.1). Pure functions over plain data. */

/* One node of the allocation. */
typedef struct run_node {
    int down;    /* it was down once and stays out */
    int drained; /* it works, but nothing new should start on it */
    int used;    /* by the last run */
    int home;    /* 1: scr_run itself is on it */
    int chosen;  /* out: for the next run */
    int ranks;   /* out: of the next run, on it */
} run_node;

/* Facts for a decision. */
typedef struct run_facts {
    int runs_left;      /* remaining starts of the program; -1: any number */
    int attempts;       /* runs so far */
    int code;           /* exit code of the last one */
    int stop;           /* 1: scr_run got a signal that asks to end */
    int over;           /* 1: the batch system ends the allocation */
    const char *halt;   /* why the job should halt; NULL: it need not */
    const char *halted; /* why the last run ended with exit code 0 before its end; NULL */
    int drained_waits;  /* 1: what needs a drained node never begins */
    int wanted;         /* nodes to run on; 0: all of the first run */
    int least;          /* SCR_MIN_NODES; 0: not set */
    int last_nodes;     /* nodes of the last run that SCR recorded; 0: none */
    int ranks, per_node; /* of the program; 0: not known, or the launcher's business */
    int any_ranks;       /* 1: it restarts with any number of ranks (SCR_RESTART_RANKS) */
    int count;           /* of nodes */
    run_node *nodes;
} run_facts;

typedef enum run_why {
    RUN_LAUNCH,    /* not the end */
    RUN_DONE,      /* the program ended with exit code 0, and by itself */
    RUN_STOPPED,   /* by a signal to scr_run */
    RUN_OVER,      /* the allocation is */
    RUN_HALTED,    /* a halt condition holds, or has ended the program */
    RUN_USED_UP,   /* no runs are left */
    RUN_HOME_DOWN, /* the node of scr_run is down */
    RUN_TOO_FEW    /* nodes */
} run_why;

typedef struct run_decision {
    run_why why;
    int nodes;  /* that are chosen, for RUN_LAUNCH */
    int needed; /* least number of nodes */
    int healthy;
    int code; /* exit code of scr_run, unless why is RUN_LAUNCH */
} run_decision;

enum { RUN_TEXT_SIZE = 320 };

/* Decides. With RUN_LAUNCH nodes[].chosen and .ranks are set: nodes of the last run come
 * first, since their caches have its checkpoints, then spare ones in their order. A
 * drained node is used where there are too few others. No node is chosen for no rank.
 * Ranks are distributed evenly; the first nodes get one more. On fewer nodes there are as
 * many ranks as before or, with any_ranks, as many on each node. */
run_decision run_plan(const run_facts *facts);

/* Whether a process of the last run died, or its node: launchers then end the other ranks
 * by SIGTERM, which is no request to halt. A process that dies of SIGTERM was told to. */
int run_plan_was_struck(const run_facts *facts);

/* The decision as text; empty for RUN_LAUNCH. */
void run_plan_describe(const run_facts *facts, const run_decision *decision,
                       char text[RUN_TEXT_SIZE]);

#endif
