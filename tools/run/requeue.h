/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUEUE_H
#define REQUEUE_H

/* scr_run --requeue: a job that ends before its program is done returns to the queue of
 * the batch system and continues in a new allocation. */

#include "run/run.h"

/* Whether the job should continue in a new allocation: the batch system needs its nodes
 * (SIGTERM), or the allocation ends, or too few nodes are left. False if a person ended
 * the job, the program used up its runs, or nothing ran. */
bool requeue_is_due(const run *r, const run_decision *decision);

/* Called at the first signal: asks the program, through the halt file, to end with a
 * checkpoint. */
void requeue_ask_program(void *run);

/* Puts the job back into the queue. True if the batch system accepted that and soon ends
 * scr_run. */
bool requeue_job(run *r);

#endif
