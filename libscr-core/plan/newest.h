/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_NEWEST_H
#define SCR_PLAN_NEWEST_H

/* Which cached checkpoint is the newest. A pure function. */

/* A dataset in the cache. */
typedef struct scr_cached {
    int id;
    int ckpt;     /* checkpoint id; 0: not a checkpoint */
    int output;   /* 1: wanted on the prefix folder */
    int flushing; /* 1: stays, a flush reads its files */
    int held;     /* 1: stays beyond the capacity of its store */
} scr_cached;

/* Index of the newest checkpoint, or -1. */
int scr_plan_newest(const scr_cached *cached, int count);

#endif
