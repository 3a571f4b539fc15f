/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_HISTORY_H
#define SCR_HISTORY_H

/* Failures and the cost of checkpoints in the log of earlier runs (.scr/log below the
 * prefix directory).
 *
 * A run that logged RUN_READY and neither RUN_END nor HALT was interrupted; its run time
 * ends with its last event. A run that never became ready does not count: it had nothing
 * to lose. */

#include <kvtree/kvtree_error.h>
#include <stdint.h>

typedef struct scr_history {
    int runs, interrupted;
    double node_seconds; /* run times, each multiplied by the nodes of the run */
    int ckpts;           /* checkpoints of the last run that made any, */
    double ckpt_seconds; /* and the time until they were complete in the cache */
} scr_history;

/* The number of bytes read from the end of the log, at most. */
#define SCR_HISTORY_BYTES (4 << 20)

/* Reads the log below the open prefix directory, but for the run of id own (NULL: none).
 * 0; -ENOENT: there is none; or another -errno with a text. Lines that are not as the log
 * writes them, and times after now (microseconds since 1970), are skipped. */
int scr_history_read(int prefix, const char *own, int64_t now, scr_history *history,
                     kvtree_error *err);

/* Mean time between failures that is assumed where nothing is known. */
#define SCR_HISTORY_MTBF 86400.0

/* An estimate of the mean time between failures, in seconds, of a run on a number of
 * nodes without a failure for elapsed seconds: with total time T (scaled to these nodes)
 * and k interruptions T / k, where the assumption counts as one more observation, by the
 * geometric mean: ((T / k)^k * SCR_HISTORY_MTBF)^(1 / (k + 1)). Without interruptions T,
 * and at least the assumption. */
double scr_history_mtbf(const scr_history *history, int nodes, double elapsed);

#endif
