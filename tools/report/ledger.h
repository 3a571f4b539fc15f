/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPORT_LEDGER_H
#define REPORT_LEDGER_H

/* What the time of all runs of a prefix directory was spent on, from the log. The spans
 * of a run follow each other from its begin to its end: all time is in one of them.
 *
 *     ledger l;
 *     rc = ledger_read(prefix, &l, &err);
 *     ledger_sum sum = ledger_add_up(&l);
 *     ledger_done(&l); */

#include "report/log.h"
#include <kvtree/kvtree_error.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum ledger_kind {
    LEDGER_START,   /* SCR_Init, with rebuilding and fetching */
    LEDGER_COMPUTE, /* between the calls: work, unless it was lost */
    LEDGER_OUTPUT, /* from SCR_Start_output until the dataset is protected in the cache */
    LEDGER_FLUSH,  /* a flush that the application waits for */
    LEDGER_RESTART, /* from SCR_Start_restart to SCR_Complete_restart */
    LEDGER_LOST,    /* computing that a later run did not go on from */
    LEDGER_KINDS
} ledger_kind;

extern const char *const ledger_kind_names[LEDGER_KINDS];

/* Times are microseconds since 1970. */
typedef struct ledger_span {
    ledger_kind kind;
    int run; /* its place in the list of runs */
    int64_t from, to;
} ledger_span;

typedef enum ledger_end {
    LEDGER_OPEN,       /* no end is logged, and no later run */
    LEDGER_FINISHED,   /* SCR_Finalize */
    LEDGER_HALTED,     /* it was asked to end */
    LEDGER_INTERRUPTED /* neither, and it has ended */
} ledger_end;

extern const char *const ledger_end_names[];

typedef struct ledger_run {
    char id[SCR_LOG_RUN_SIZE], job[129];
    int64_t ranks, nodes;
    int64_t start, end;
    bool is_ready, is_over, is_halted, is_finished;
    bool restarted; /* it went on from a checkpoint */
    ledger_end how;
    int checkpoints;
    int64_t newest;    /* when its newest checkpoint was complete; 0: it has none */
    ledger_kind doing; /* since mark: of the span that is not ended yet */
    int64_t mark;
} ledger_run;

/* Where files go: to the cache, and so on. */
typedef enum ledger_level {
    LEDGER_CACHE,
    LEDGER_TO_PREFIX,
    LEDGER_FROM_PREFIX,
    LEDGER_REBUILT,
    LEDGER_LEVELS
} ledger_level;

extern const char *const ledger_level_names[LEDGER_LEVELS];

typedef struct ledger_moves {
    int count, failed;
    double bytes, seconds;
    double *rates; /* bytes per second of each that has both, unordered */
    int rate_count;
} ledger_moves;

/* A checkpoint in the cache: a run may go on from it. */
typedef struct ledger_point {
    int64_t dset, time;
    int run;
} ledger_point;

typedef struct ledger {
    ledger_run *runs;
    ledger_span *spans;
    ledger_point *points;
    int run_count, span_count, point_count;
    ledger_moves moves[LEDGER_LEVELS];
    int nodes_lost;
    double cost_sum, compute_sum; /* of checkpoints */
    int costs, computes;
    int64_t last;  /* the newest event */
    bool is_short; /* memory was not enough */
} ledger;

/* 0; -ENOENT: there is no log; or another -errno with a text. */
int ledger_read(int prefix, ledger *l, kvtree_error *err);
void ledger_done(ledger *l);

/* Takes one event; and, after the last one, finds ends and lost work. For ledger_read,
 * and tests. */
void ledger_take(void *ledger, const scr_log_event *event);
void ledger_close(ledger *l);

/* All in seconds; below 0 where it is unknown. */
typedef struct ledger_sum {
    int runs, interrupted, finished, halted;
    double total;               /* of all runs, and down */
    double kinds[LEDGER_KINDS]; /* of all runs */
    double down;                /* between an interrupted run and the next one */
    double efficiency;          /* useful computing as a share of total */
    int checkpoints;
    double cost;     /* of a checkpoint, on average */
    double interval; /* of computing before a checkpoint, on average */
    double mtbf;     /* time of runs that became ready for each interruption */
    double best;     /* the interval that would have been best, by Daly */
    double saved;    /* what it would have saved: an estimate */
} ledger_sum;

ledger_sum ledger_add_up(const ledger *l);

/* The share of time that checkpoints of a cost and failures take at an interval: a
 * failure loses half of an interval and of a checkpoint. */
double ledger_waste(double interval, double cost, double mtbf);

/* Sorts the rates; least, median and most of them. There is at least one. */
void ledger_spread(ledger_moves *moves, double *least, double *median, double *most);

#endif
