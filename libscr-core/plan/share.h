/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_SHARE_H
#define SCR_PLAN_SHARE_H

/* The resources of a node for a background flush, divided among its processes. A pure
 * function.
 *
 * In the background no rank waits for messages of other ranks, because their program may
 * have died. So each node has a fixed part of SCR_FLUSH_WIDTH, in proportion to its
 * ranks, but at least one process; the processes of a node take turns by themselves.
 * Limits of bandwidth and processor time are limits of a node, divided among the
 * processes that copy at the same time. */

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
