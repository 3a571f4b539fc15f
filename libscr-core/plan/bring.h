/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_BRING_H
#define SCR_PLAN_BRING_H

/* The order in which processes send each other files. A pure function of facts about all
 * processes; each process computes the same result.
 *
 * The rules:
 *  - Time is divided into rounds. In a round a process sends one file, or receives one,
 *    or does neither.
 *  - A process that has received a file sends it to others: of n processes that want a
 *    file, the last receives it after about log2(n) rounds.
 *  - A file is sent in the first round in which both sides are free. So there are at most
 *    about twice as many rounds as the busiest process has files to send and receive. */

#include <stdint.h>

/* A file that a process wants. */
typedef struct scr_bring_want {
    uint64_t file; /* number of the file */
    int holder;    /* the process that has the file; the same in all wants of a file */
    int to;        /* a process that wants the file, once; not the holder */
    /* the plan */
    int from;  /* the sender: the holder, or a process that received the file before */
    int round; /* 0, 1, ... */
} scr_bring_want;

/* Fills in the plan, and sorts the wants by round. 0 or -ENOMEM. */
int scr_plan_bring(int procs, int count, scr_bring_want wants[]);

#endif
