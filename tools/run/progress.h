/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROGRESS_H
#define PROGRESS_H

/* How far a run is, as its flush file tells: the newest dataset, and what is still to be
 * saved. And whether it hangs: scr_watchdog. */

typedef struct progress {
    int latest;   /* id of the newest dataset; 0: there is none */
    int flushing; /* 1: a flush is under way */
} progress;

/* Reads the flush file below the open prefix folder; without one there is nothing. 0 or
 * -errno with a text, *p as it was. */
int progress_read(int prefix, progress *p, char *err);

/* A run that has to make progress. */
typedef struct watchdog {
    double timeout, timeout_pfs; /* seconds without a new dataset; while it is flushed */
    progress last;
    double since; /* when it was first seen so; a time */
} watchdog;

/* 1 when nothing has happened for too long. *seconds: for how long. Pure. */
int watchdog_look(watchdog *w, const progress *p, double now, double *seconds);

#endif
