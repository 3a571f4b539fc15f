/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUN_PROGRESS_H
#define RUN_PROGRESS_H

/* Progress of a run: its flush file lists the datasets that were cached; the index of the
 * prefix directory lists the datasets that were written there directly. The watchdog
 * decides from the progress whether the run hangs. */

#include <kvtree/kvtree_error.h>
#include <stdbool.h>
#include <sys/stat.h>

typedef struct run_progress {
    int latest;    /* id of the newest complete dataset, or of an earlier one after which
                    * ids continue; 0: none */
    int completed; /* datasets that became complete since run_progress_begin */
    bool flushing; /* a flush is under way */
    bool writing;  /* a dataset is being written directly to the prefix directory
                    * (bypass) */
} run_progress;

/* Reads the progress of one run repeatedly. */
typedef struct progress_reader {
    int prefix;
    bool begun;        /* everything was read at least once */
    int earlier;       /* highest id in the index at that time, from earlier runs */
    int indexed;       /* newest complete dataset in the index ... */
    int entered;       /* ... and the newest dataset, complete or not */
    struct stat index; /* identity of the index that was read last; size 0: none */
    run_progress last;
} progress_reader;

/* Starts reading below the open prefix directory. Existing datasets do not count as
 * progress: the caller reads once at the start of the run. */
void run_progress_begin(progress_reader *reader, int prefix);

/* Reads the flush file and, if it has changed, the index. A missing file is not an error.
 * 0, or -errno with a text and *p unchanged: the progress is unknown. */
int run_progress_read(progress_reader *reader, run_progress *p, kvtree_error *err);

typedef struct watchdog {
    double timeout, timeout_pfs; /* seconds without a new dataset; the same during a
                                  * flush */
    run_progress last;
    double since;  /* time of the last progress */
    bool reported; /* for the caller: unknown progress was reported */
} watchdog;

/* Whether there was no progress for too long. *seconds: time since the last progress.
 * Pure. */
bool watchdog_has_expired(watchdog *w, const run_progress *p, double now,
                          double *seconds);

#endif
