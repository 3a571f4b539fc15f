/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_LEDGER_H
#define SCR_LEDGER_H

/* What the time of all runs of a prefix directory was spent on, from the log. The spans
 * of a run follow each other from its begin to its end: all time is in one of them.
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
    LEDGER_COMPUTE, /* between the calls: work, unless it was lost */
    LEDGER_OUTPUT, /* from SCR_Start_output until the dataset is protected in the cache */
    LEDGER_FLUSH,  /* a flush that the application waits for */
    LEDGER_RESTART, /* from SCR_Start_restart to SCR_Complete_restart */
    LEDGER_LOST,    /* computing that a later run did not go on from */
    LEDGER_KINDS
} scr_ledger_kind;

extern const char *const scr_ledger_kind_names[LEDGER_KINDS];

/* Times are microseconds since 1970. */
typedef struct scr_ledger_span {
    scr_ledger_kind kind;
    int run; /* its place in the list of runs */
    int64_t from, to;
} scr_ledger_span;

typedef enum scr_ledger_end {
    LEDGER_OPEN,       /* no end is logged, and no later run */
    LEDGER_FINISHED,   /* SCR_Finalize */
    LEDGER_HALTED,     /* it was asked to end */
    LEDGER_INTERRUPTED /* neither, and it has ended */
} scr_ledger_end;

extern const char *const scr_ledger_end_names[];

typedef struct scr_ledger_run {
    char id[SCR_LOG_RUN_SIZE], job[129];
    int64_t ranks, nodes;
    int64_t start, end;
    bool is_ready, is_over, is_halted, is_finished;
    bool restarted; /* it went on from a checkpoint */
    scr_ledger_end how;
    int checkpoints;
    int64_t newest;        /* when its newest checkpoint was complete; 0: it has none */
    scr_ledger_kind doing; /* since mark: of the span that is not ended yet */
    int64_t mark;
    int64_t kinds[LEDGER_KINDS]; /* of its spans, in all */
    int64_t recent;              /* of these: computing since newest */
} scr_ledger_run;

/* Where files go: to the cache, and so on. */
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
    double *rates; /* bytes per second of each that has both, unordered */
    int rate_count;
} scr_ledger_moves;

/* A checkpoint in the cache: a run may go on from it. */
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
    double cost_sum, compute_sum; /* of checkpoints */
    int costs, computes;
    int64_t last;  /* the newest event */
    bool is_short; /* memory was not enough */
} scr_ledger;

/* 0; -ENOENT: there is no log; or another -errno with a text. */
int scr_ledger_read(int prefix, scr_ledger *l, kvtree_error *err);
void scr_ledger_done(scr_ledger *l);

/* The same for a log that goes on: the ledger takes further events, and is not closed. */
int scr_ledger_begin(int prefix, scr_ledger *l, kvtree_error *err);

/* Takes one event; and, after the last one, finds ends and lost work. */
void scr_ledger_take(void *ledger, const scr_log_event *event);
void scr_ledger_close(scr_ledger *l);

/* All in seconds; below 0 where it is unknown. */
typedef struct scr_ledger_sum {
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
} scr_ledger_sum;

scr_ledger_sum scr_ledger_add_up(const scr_ledger *l);

/* The figures of a ledger that is not closed, from the totals of its runs: as fast with
 * many events as with few. 0 or -ENOMEM. */
int scr_ledger_sum_now(const scr_ledger *l, scr_ledger_sum *sum);

/* The share of time that checkpoints of a cost and failures take at an interval: a
 * failure loses half of an interval and of a checkpoint. */
double scr_ledger_waste(double interval, double cost, double mtbf);

/* Sorts the rates; least, median and most of them. There is at least one. */
void scr_ledger_spread(scr_ledger_moves *moves, double *least, double *median,
                       double *most);

#endif
