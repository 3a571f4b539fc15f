/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OPEN_RUNS_H
#define SCR_OPEN_RUNS_H

/* Runs without an end in the text file of the log. A killed run cannot log its end:
 * scr_run, scr_postrun or the next run logs RUN_INTERRUPTED for it. */

#include "report/log.h"
#include <kvtree/kvtree_error.h>
#include <stdbool.h>

typedef struct scr_open_run {
    char id[SCR_LOG_RUN_SIZE], job[129];
    /* times of the first event in the part of the log that is read, and of the last
     * event, in microseconds since 1970 */
    int64_t start, last;
} scr_open_run;

/* Maximum number of runs in the list: those that began last. */
enum { SCR_OPEN_RUNS = 8 };

typedef struct scr_open_runs {
    int count;
    scr_open_run list[SCR_OPEN_RUNS];
    bool is_known; /* the log has the run that was asked for */
} scr_open_runs;

/* Reads the end of the log below the open prefix directory. id: of a run, or NULL.
 * Returns 0; -ENOENT: there is no log; or another -errno with a text. */
int scr_open_runs_read(int prefix, const char *id, scr_open_runs *runs,
                       kvtree_error *err);

/* Returns the event RUN_INTERRUPTED for the run, which ended at end. Its texts are those
 * of run and note. */
scr_log_event scr_open_run_end(const scr_open_run *run, int64_t end, const char *note);

#endif
