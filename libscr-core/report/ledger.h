/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_LEDGER_H
#define SCR_LEDGER_H

/* How the runs of a prefix directory spent their time, from the log. The spans of a run
 * follow each other from its begin to its end, so each moment belongs to one span.
 *
 *     scr_ledger l;
 *     rc = scr_ledger_read(prefix, &l, &err);
 *     scr_ledger_sum sum = scr_ledger_add_up(&l);
 *     scr_ledger_done(&l); */

#include "report/log.h"
#include <kvtree/kvtree_error.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum scr_ledger_kind {
    LEDGER_START,   /* SCR_Init, with rebuilding and fetching */
    LEDGER_COMPUTE, /* between SCR calls: work, unless it was lost */
    LEDGER_OUTPUT, /* from SCR_Start_output until the dataset is protected in the cache */
    LEDGER_FLUSH,  /* a flush that the application waits for */
    LEDGER_RESTART, /* from SCR_Start_restart to SCR_Complete_restart */
    LEDGER_LOST,    /* computing that no later run continued from */
    LEDGER_KINDS
} scr_ledger_kind;

extern const char *const scr_ledger_kind_names[LEDGER_KINDS];

/* Times are microseconds since 1970. */
typedef struct scr_ledger_span {
    scr_ledger_kind kind;
    int run; /* index in the list of runs */
    int64_t from, to;
} scr_ledger_span;

typedef enum scr_ledger_end {
    LEDGER_OPEN,       /* no end is logged, and there is no later run */
    LEDGER_FINISHED,   /* called SCR_Finalize */
    LEDGER_HALTED,     /* was asked to end */
    LEDGER_INTERRUPTED /* has ended in neither way */
} scr_ledger_end;

extern const char *const scr_ledger_end_names[];

typedef struct scr_ledger_run {
    char id[SCR_LOG_RUN_SIZE], job[129];
    int64_t ranks, nodes;
    int64_t start, end;
    bool is_ready, is_over, is_halted, is_finished;
    bool restarted; /* continued from a checkpoint */
    scr_ledger_end how;
    int checkpoints;
    int64_t newest;        /* time when its newest checkpoint was complete; 0: none */
    scr_ledger_kind doing; /* kind of the current span, which began at mark */
    int64_t mark;
    int64_t kinds[LEDGER_KINDS]; /* total time of its spans by kind */
    int64_t recent;              /* part of it: computing since newest */
} scr_ledger_run;

/* The source or destination of files that are moved. */
typedef enum scr_ledger_level {
    LEDGER_CACHE,
    LEDGER_TO_PREFIX,
    LEDGER_FROM_PREFIX,
    LEDGER_REBUILT,
    LEDGER_LEVELS
} scr_ledger_level;

extern const char *const scr_ledger_level_names[LEDGER_LEVELS];

typedef struct scr_ledger_moves {
    int count, failed;
    double bytes, seconds;
    double *rates; /* bytes per second of each move that has both, unordered */
    int rate_count;
} scr_ledger_moves;

/* A checkpoint in the cache, from which a run may continue. */
typedef struct scr_ledger_point {
    int64_t dset, time;
    int run;
} scr_ledger_point;

typedef struct scr_ledger {
    scr_ledger_run *runs;
    scr_ledger_span *spans;
    scr_ledger_point *points;
    int run_count, span_count, point_count;
    scr_ledger_moves moves[LEDGER_LEVELS];
    int nodes_lost;
    double cost_sum, compute_sum; /* sums over checkpoints */
    int costs, computes;
    int64_t last;  /* time of the newest event */
    bool is_short; /* memory was exhausted */
} scr_ledger;

/* Reads the log. Returns 0; -ENOENT: there is no log; or another -errno with a text. */
int scr_ledger_read(int prefix, scr_ledger *l, kvtree_error *err);
void scr_ledger_done(scr_ledger *l);

/* Does the same without closing the ledger, which can then take further events. */
int scr_ledger_begin(int prefix, scr_ledger *l, kvtree_error *err);

/* scr_ledger_take takes one event. scr_ledger_close, after the last event, finds the ends
 * of runs and lost work. */
void scr_ledger_take(void *ledger, const scr_log_event *event);
void scr_ledger_close(scr_ledger *l);

/* Times in seconds; unknown values are below 0. */
typedef struct scr_ledger_sum {
    int runs, interrupted, finished, halted;
    double total;               /* time of all runs, plus down */
    double kinds[LEDGER_KINDS]; /* time of all runs by kind */
    double down;                /* time between an interrupted run and the next one */
    double efficiency;          /* share of useful computing in total */
    int checkpoints;
    double cost;     /* average cost of a checkpoint */
    double interval; /* average computing time before a checkpoint */
    double mtbf;     /* time of runs that became ready, per interruption */
    double best;     /* the optimal interval, by Daly */
    double saved;    /* estimated time that the optimal interval would have saved */
} scr_ledger_sum;

scr_ledger_sum scr_ledger_add_up(const scr_ledger *l);

/* Computes the figures of a ledger that is not closed from the totals of its runs. The
 * time does not depend on the number of events. Returns 0 or -ENOMEM. */
int scr_ledger_sum_now(const scr_ledger *l, scr_ledger_sum *sum);

/* Returns the share of time that checkpoints and failures take with an interval between
 * checkpoints of a given cost. A failure loses half of an interval and half of a
 * checkpoint. */
double scr_ledger_waste(double interval, double cost, double mtbf);

/* Sorts the rates, and returns the least, the median and the greatest. There is at least
 * one rate. */
void scr_ledger_spread(scr_ledger_moves *moves, double *least, double *median,
                       double *most);

#endif
