/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROGRESS_H
#define PROGRESS_H

/* How far a run is: its flush file tells what was cached, the index of the prefix folder
 * what was written there at once. And whether it hangs: scr_watchdog. */

#include <sys/stat.h>

typedef struct progress {
    int latest;    /* id of the newest complete dataset, or of an earlier one that ids go
                      on after; 0: there is none */
    int completed; /* datasets that became complete since progress_begin */
    int flushing;  /* 1: a flush is under way */
    int writing;   /* 1: a dataset is written to the prefix folder at once (bypass) */
} progress;

/* A run whose progress is read again and again. */
typedef struct progress_source {
    int prefix;
    int begun;         /* 1: all was read once */
    int earlier;       /* highest id of the index then: what it lists is not this run's */
    int indexed;       /* newest complete dataset of the index ... */
    int entered;       /* ... and the newest one, also if it is not complete */
    struct stat index; /* of what was read; no size: nothing was */
    progress last;
} progress_source;

/* What is there now counts as known; it is the caller's to call progress_read, too. */
void progress_begin(progress_source *s, int prefix);

/* Reads the flush file and the index below the open prefix folder; a file that is not
 * there tells nothing. The index is read only where it has changed. 0 or -errno with a
 * text, *p as it was: nobody knows how far the run is. */
int progress_read(progress_source *s, progress *p, char *err);

/* A run that has to make progress. */
typedef struct watchdog {
    double timeout, timeout_pfs; /* seconds without a new dataset; while it is flushed */
    progress last;
    double since; /* when it was first seen so; a time */
    int told;     /* 1: that nobody knows; watchdog_look leaves it alone */
} watchdog;

/* 1 when nothing has happened for too long. *seconds: for how long. Pure. */
int watchdog_look(watchdog *w, const progress *p, double now, double *seconds);

#endif
