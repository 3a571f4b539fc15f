/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_DISTRIBUTE_H
#define SCR_PLAN_DISTRIBUTE_H

/* Which process sends the files of a cached dataset to which rank after a restart, and in
 * which order (SCR Developer Guide 1.2, 2.26.8). A pure function: facts in, plan out.
 *
 * The rule:
 *  - A rank that holds an intact copy of its files keeps it. Any other rank receives one
 *    from the lowest process that holds an intact copy.
 *  - In a round a process sends to at most one rank.
 *  - If a node lacks room for all files that it receives, one rank per node receives in a
 *    round, and each sender removes the sent files before the next round. */

#include <stdbool.h>
#include <stdint.h>

/* A process of the job; its number is its rank. */
typedef struct scr_distribute_rank {
    int node;     /* number of one rank on its node, the same for all ranks of the node */
    int64_t room; /* free bytes of its store */
    /* the plan */
    int source; /* sender of its files; itself: it has them; -1: they are lost */
    int round;  /* round in which they arrive; -1: they do not move */
    /* working memory of the planner */
    int sends, arrivals; /* ranks that it sends to; ranks that receive on its node */
    int64_t arriving;    /* bytes that the node receives */
} scr_distribute_rank;

/* A copy of the files of a rank, at a process. */
typedef struct scr_distribute_copy {
    int holder, rank;
    int64_t bytes;
    bool intact; /* every file is there, with its size */
} scr_distribute_copy;

typedef struct scr_distribute_plan {
    int ranks; /* of the job */
    scr_distribute_rank *list;
    int count; /* of copies, unsorted; at most one per holder and rank */
    scr_distribute_copy *copies;
    int rounds;            /* the plan: number of rounds */
    bool is_short_of_room; /* rounds must not overlap on a node */
} scr_distribute_plan;

/* Fills in the plan from the facts. */
void scr_plan_distribute(scr_distribute_plan *plan);

/* The rank to which the holder sends in a round; -1: none. */
int scr_distribute_receiver(const scr_distribute_plan *plan, int holder, int round);

#endif
