/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_DECIDE_H
#define SCR_DECIDE_H

/* Decisions as pure functions over plain data: they touch neither disk nor network. */

#include <stdint.h>

/* What SCR_Need_checkpoint looks at. */
typedef struct scr_advice {
    int halt;          /* a halt condition holds */
    int64_t calls;     /* of SCR_Need_checkpoint since SCR_Init, this one included */
    int interval;      /* SCR_CHECKPOINT_INTERVAL; 0: not configured */
    double since_last; /* seconds since the last checkpoint, or since SCR_Init */
    double seconds;    /* SCR_CHECKPOINT_SECONDS; 0: not configured */
    double cost;     /* seconds that a checkpoint takes, as measured; 0: none was made */
    double overhead; /* SCR_CHECKPOINT_OVERHEAD in percent; 0: not configured */
    int automatic;   /* SCR_CHECKPOINT_INTERVAL=auto, */
    double optimum;  /* which wants so many seconds between checkpoints; 0: that is not
                        known before one was made */
} scr_advice;

/* 1 when it is time to checkpoint. The overhead rule asks for one when the cost, spread
 * over the time since the last, is below the limit; where no cost is known, the first
 * checkpoint measures it. */
int scr_decide_checkpoint(const scr_advice *advice);

/* 1 when the n-th completed checkpoint is to be flushed, for SCR_FLUSH=every. */
int scr_decide_flush(int n, int every);

/* 1 for errors (-errno) after which the same may succeed another time, or with another
 * version of SCR: the file may well be there, and must not count as lost. */
int scr_decide_may_pass(int error);

#endif
