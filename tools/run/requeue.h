/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUEUE_H
#define REQUEUE_H

/* scr_run --requeue: a job that ends before its program is done goes back into the queue
 * of the batch system, and continues in a new allocation. */

#include "run/run.h"

/* Whether the job should continue in a new allocation: the batch system asks for its
 * nodes (SIGTERM), or the allocation ends, or too few of its nodes are left. Not where a
 * person ended the job, the program used up its runs, or nothing ran. */
bool requeue_is_due(const run *r, const run_decision *decision);

/* At the first signal: asks the program to end with a checkpoint, by the halt file. */
void requeue_ask_program(void *run);

/* Puts the job back. True when the batch system accepted that: it ends scr_run soon. */
bool requeue_job(run *r);

#endif
