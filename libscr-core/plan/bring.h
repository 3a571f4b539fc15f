/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_BRING_H
#define SCR_PLAN_BRING_H

/* In which order files travel that processes want of each other. A pure function of facts
 * about all processes, computed alike on each of them.
 *
 * The rules:
 *  - Time is divided into rounds; in each a process sends one file, or receives one, or
 *    does neither.
 *  - A process that has received a file sends it to others: of n that want one, the last
 *    gets it after about log2(n) rounds.
 *  - A file travels in the first round in which both sides are free. So the number of
 *    rounds is less than twice what the busiest process sends and receives. */

#include <stdint.h>

/* A file that a process wants. */
typedef struct scr_bring_want {
    uint64_t file; /* its number */
    int holder;    /* the process that has it; the same in all wants of a file */
    int to;        /* the process that wants it, once; not the holder */
    /* the plan */
    int from;  /* the process that sends it: the holder, or one that got it before */
    int round; /* 0, 1, ... */
} scr_bring_want;

/* Fills in the plan, and sorts the wants by rounds. 0 or -ENOMEM. */
int scr_plan_bring(int procs, int count, scr_bring_want wants[]);

#endif
