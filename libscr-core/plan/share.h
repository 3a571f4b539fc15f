/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_SHARE_H
#define SCR_PLAN_SHARE_H

/* What a node may use for a flush in the background, divided among its processes. A pure
 * function.
 *
 * In the background no rank waits for a message of another one, as its program may have
 * died. So each node has a fixed part of SCR_FLUSH_WIDTH, in proportion to its ranks, but
 * at least one process; its processes take turns by themselves. Limits of bandwidth and
 * of processor time are those of a node, and are divided among the processes that copy at
 * a time. */

#include <stdbool.h>

typedef struct scr_share_facts {
    int ranks;        /* of the job */
    int node_ranks;   /* of the node */
    bool leads;       /* one process of the node copies for all of its ranks */
    int width;        /* SCR_FLUSH_WIDTH: ranks of the job that copy at a time */
    double bandwidth; /* SCR_FLUSH_ASYNC_BW, bytes per second; 0: no limit */
    double percent;   /* SCR_FLUSH_ASYNC_PERCENT; 0: no limit */
} scr_share_facts;

typedef struct scr_share {
    int turns;        /* processes of the node that copy at a time; 0: all of them */
    double bandwidth; /* of each process that copies */
    double percent;
} scr_share;

scr_share scr_plan_share(const scr_share_facts *facts);

#endif
