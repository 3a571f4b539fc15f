/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RECOVERY_TEST_H
#define RECOVERY_TEST_H

/* The last part of the test of a new system (SCR Developer Guide 1.2, section 2.34.1):
 * scr_run starts a program on all nodes except one, one of its nodes is switched off
 * after some checkpoints, and the log shows the recovery. */

#include "lib/tool_process.h"
#include "run/run_progress.h"
#include <kvtree/kvtree_error.h>

enum { RECOVERY_TEXT_SIZE = 300 };

/* Facts from the log about scr_run and a node that was switched off meanwhile. */
typedef struct recovery_log {
    int launches;                     /* launches that began */
    bool ended;                       /* the first launch has ended ... */
    int code;                         /* ... with that exit code ... */
    char why[RECOVERY_TEXT_SIZE];     /* ... and for that reason */
    bool lost;                        /* the node was found to be down ... */
    char found[RECOVERY_TEXT_SIZE];   /* ... for that reason */
    char second[RECOVERY_TEXT_SIZE];  /* nodes of the second launch */
    char dataset[RECOVERY_TEXT_SIZE]; /* dataset from which the last launch resumed; "":
                                       * none */
} recovery_log;

/* Reads lines of the text file of the log (docs/formats/log.md); skips other lines and
 * truncates long fields. Pure. */
void recovery_parse_log(const char *text, const char *node, recovery_log *log);

/* A request and its outcome. */
typedef struct recovery {
    int prefix; /* the prefix directory, open */
    const char *const *argv;
    const char *node;       /* node to lose */
    const char *switch_off; /* a command, which gets the node as its last argument; NULL:
                             * the user is asked; "": simulated */
    int seconds;            /* timeout of the command, and of the end of scr_run */
    int code;               /* exit code of scr_run */
    char trouble[RECOVERY_TEXT_SIZE]; /* why the node could not be switched off; "": it
                                       * was, or the program ended before */
    recovery_log log;

    progress_reader progress;
    bool done; /* the node was switched off, or that failed */
} recovery;

/* Runs scr_run to its end; the environment switches the log on. 0, or -errno with a text
 * if nothing was started or the log cannot be read. */
int recovery_run(recovery *r, tool_signals *signals, kvtree_error *err);

#endif
