/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CADENCE_H
#define SCR_CADENCE_H

/* When to checkpoint, and which checkpoints to flush. Pure functions; all times are in
 * seconds. */

#include <stdbool.h>
#include <stdint.h>

/* What SCR_Need_checkpoint decides from. */
typedef struct scr_cadence {
    bool halt;         /* a halt condition holds */
    int64_t calls;     /* of SCR_Need_checkpoint since SCR_Init, this one included */
    int interval;      /* SCR_CHECKPOINT_INTERVAL; 0: not configured */
    double since_last; /* time since the last checkpoint, or since SCR_Init */
    double seconds;    /* SCR_CHECKPOINT_SECONDS; 0: not configured */
    double cost;       /* measured time of a checkpoint; 0: none was made */
    double overhead;   /* SCR_CHECKPOINT_OVERHEAD in percent; 0: not configured */
    bool automatic;    /* SCR_CHECKPOINT_INTERVAL=auto */
    double optimum;    /* time between checkpoints for it; 0: unknown before the first */
} scr_cadence;

/* Whether a checkpoint is due. The overhead rule requests one when its cost, as a share
 * of the time since the last one, is below the limit. While no cost is known, the first
 * checkpoint measures it. */
bool scr_cadence_is_checkpoint_due(const scr_cadence *facts);

/* Whether to flush the n-th completed checkpoint, for SCR_FLUSH=every. */
bool scr_cadence_is_flush_due(int n, int every);

/* ---- the optimum time between checkpoints ----
 *
 * Long enough that checkpoints cost little, short enough that a failure loses little. */

/* The first-order optimum sqrt(2 C M) for checkpoints that cost C and failures that occur
 * every M on average. J. W. Young, A first order approximation to the optimum checkpoint
 * interval, Communications of the ACM 17 (1974). */
double scr_cadence_young(double cost, double mtbf);

/* The higher-order estimate, which SCR uses: for C < 2 M
 *
 *     sqrt(2 C M) (1 + 1/3 sqrt(C / 2M) + 1/9 (C / 2M)) - C
 *
 * and M otherwise. J. T. Daly, A higher order estimate of the optimum checkpoint interval
 * for restart dumps, Future Generation Computer Systems 22 (2006), equation 37. 0 unless
 * both are above 0. */
double scr_cadence_daly(double cost, double mtbf);

/* Whether two intervals differ by more than a fifth, which is worth a message. */
bool scr_cadence_differs(double a, double b);

/* The mean of count values, where value is the count-th and mean that of the earlier
 * ones. Beyond 20 values the latest have the largest weight, so that the mean follows a
 * program that grows. */
double scr_cadence_mean(double mean, int count, double value);

#endif
