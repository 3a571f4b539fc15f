/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CYCLE_H
#define CYCLE_H

/* The full cycle of a test of a new system (SCR Developer Guide 1.2, section 2.34.1):
 * scr_run starts a program on all nodes but one, one of its nodes is switched off when
 * it has written checkpoints, and the log tells what became of that. */

#include "run/execute.h"
#include "run/progress.h"

enum { CYCLE_TEXT_SIZE = 300 };

/* What the log tells of scr_run and a node that was switched off meanwhile. */
typedef struct cycle_log {
    int launches;                  /* that began */
    int ended;                     /* 1: the first of them has ended, ... */
    int code;                      /* ... with that exit code ... */
    char why[CYCLE_TEXT_SIZE];     /* ... and for that reason */
    int lost;                      /* 1: the node was found to be down, ... */
    char found[CYCLE_TEXT_SIZE];   /* ... for that reason */
    char second[CYCLE_TEXT_SIZE];  /* nodes of the second launch */
    char dataset[CYCLE_TEXT_SIZE]; /* that was there in the last one; "": none */
} cycle_log;

/* Reads lines of the text file of the log (docs/formats/log.md); others are skipped. What
 * is too long is cut. Pure. */
void cycle_read(const char *text, const char *node, cycle_log *log);

/* What is to be done, and what was. */
typedef struct cycle {
    int prefix; /* the prefix folder, open */
    const char *const *argv;
    const char *node;       /* that is to be lost */
    const char *switch_off; /* a command, which gets the node as its last word; NULL:
                               somebody is told to do it; "": it happens by itself */
    int seconds;            /* that the command may take, and the end of scr_run */
    int code;               /* exit code of scr_run */
    char trouble[CYCLE_TEXT_SIZE]; /* why the node could not be switched off; "": it was,
                                      or the program ended before */
    cycle_log log;

    progress_source progress;
    int done; /* 1: the node was switched off, or that was tried */
} cycle;

/* Runs it to its end. 0, or -errno where nothing was started or the log cannot be read,
 * with a text. The log is switched on by the environment. */
int cycle_run(cycle *c, execute_signals *signals, char *err);

#endif
