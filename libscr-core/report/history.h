/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_HISTORY_H
#define SCR_HISTORY_H

/* Failures and the cost of checkpoints, from the log of earlier runs (.scr/log below the
 * prefix directory).
 *
 * A run that logged RUN_READY and neither RUN_END nor HALT was interrupted; its run time
 * ends with its last event. A run that never became ready does not count, because it had
 * no work to lose. */

#include <kvtree/kvtree_error.h>
#include <stdint.h>

typedef struct scr_history {
    int runs, interrupted;
    double node_seconds; /* run times, each multiplied by the nodes of the run */
    int ckpts;           /* number of checkpoints of the last run that made any */
    double ckpt_seconds; /* total time until they were complete in the cache */
} scr_history;

/* Maximum number of bytes read from the end of the log. */
#define SCR_HISTORY_BYTES (4 << 20)

/* Reads the log below the open prefix directory, except for the run with the id own
 * (NULL: none). Returns 0; -ENOENT: there is no log; or another -errno with a text. Skips
 * lines with an invalid form, and times after now (microseconds since 1970). */
int scr_history_read(int prefix, const char *own, int64_t now, scr_history *history,
                     kvtree_error *err);

/* Mean time between failures that is assumed without any data, in seconds. */
#define SCR_HISTORY_MTBF 86400.0

/* Estimates the mean time between failures, in seconds, of a run on a number of nodes
 * that has had no failure for elapsed seconds. T is the total time scaled to this number
 * of nodes, with elapsed; k is the number of interruptions. The estimate is the geometric
 * mean of T / k, counted k times, and the assumption, counted once:
 * ((T / k)^k * SCR_HISTORY_MTBF)^(1 / (k + 1)). Without interruptions: T, and at least
 * the assumption. */
double scr_history_mtbf(const scr_history *history, int nodes, double elapsed);

#endif
