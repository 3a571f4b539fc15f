/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUN_PROGRESS_H
#define RUN_PROGRESS_H

/* Progress of a run: its flush file lists datasets that were cached, the index of the
 * prefix directory those that were written there directly. And the watchdog, which
 * decides from it whether the run hangs. */

#include <kvtree/kvtree_error.h>
#include <stdbool.h>
#include <sys/stat.h>

typedef struct run_progress {
    int latest;    /* id of the newest complete dataset, or of an earlier one after which
                      ids continue; 0: none */
    int completed; /* datasets that became complete since run_progress_begin */
    bool flushing; /* a flush is under way */
    bool writing;  /* a dataset is written to the prefix directory directly (bypass) */
} run_progress;

/* Reads the progress of one run repeatedly. */
typedef struct progress_reader {
    int prefix;
    bool begun;        /* everything was read at least once */
    int earlier;       /* highest id of the index at that time: of earlier runs */
    int indexed;       /* newest complete dataset of the index ... */
    int entered;       /* ... and the newest one, complete or not */
    struct stat index; /* of the index that was read last; size 0: none */
    run_progress last;
} progress_reader;

/* Starts to read below the open prefix directory. What is there now counts as known: the
 * caller reads once at the start of the run. */
void run_progress_begin(progress_reader *reader, int prefix);

/* Reads the flush file and, where it has changed, the index. A missing file is no error.
 * 0, or -errno with a text and *p unchanged: the progress is unknown. */
int run_progress_read(progress_reader *reader, run_progress *p, kvtree_error *err);

typedef struct watchdog {
    double timeout, timeout_pfs; /* seconds without a new dataset; while it is flushed */
    run_progress last;
    double since;  /* a time: of the last progress */
    bool reported; /* for the caller: that the progress is unknown */
} watchdog;

/* Whether there was no progress for too long. *seconds: since the last one. Pure. */
bool watchdog_has_expired(watchdog *w, const run_progress *p, double now,
                          double *seconds);

#endif
