/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATE_H
#define SIMULATE_H

/* Simulated nodes: folders on this machine, and failures of them. A node is its name,
 * FOLDER/NAME/cache and FOLDER/NAME/cntl, and the processes that have that name in their
 * environment. */

#include "lib/hostlist.h"
#include "run/progress.h"

/* "4x2": 4 nodes with 2 ranks each; "4": with one. 0 or -EINVAL. */
int simulate_parse(const char *text, int *nodes, int *per_node);

/* When a node fails, and how. */
typedef struct simulate_failure {
    char node[32];
    int after;   /* datasets that are complete in the run */
    int run;     /* the run in which it happens, from 1 */
    int hangs;   /* 1: it does not answer any more, but is not gone */
    int busy;    /* 1: while the next dataset is written */
    int done;    /* it has happened */
    int reached; /* most complete datasets that its run had; -1: there was no such run */
    char text[96]; /* as it was asked for */
} simulate_failure;

enum { SIMULATE_FAILURES = 16, SIMULATE_TEXT_SIZE = 256 };

/* "node=3,after=2checkpoints[,run=1][,how=hang][,while=checkpoint]"; several with blanks
 * between them. 0, or -EINVAL with a text that begins with the failure. */
int simulate_parse_failures(const char *text, int nodes,
                            simulate_failure list[SIMULATE_FAILURES], int *count,
                            char *err);

/* Makes a folder with the nodes node1, node2, ... in TMPDIR, or in memory, and adds their
 * names. Whoever has *lock open has the folder. Those that nobody has any more, as their
 * scr_run was killed, are removed, which is told. 0, or -errno with a text. */
int simulate_open(int count, char **folder, int *lock, hostlist *nodes, char *err);

/* Whether it is time, in that run. */
int simulate_is_due(const simulate_failure *failure, const char *folder, int run,
                    const progress *p);

/* Why one did not happen, now that all runs are over. Pure. */
void simulate_tell_missed(const simulate_failure *failure, char text[SIMULATE_TEXT_SIZE]);

/* Lets it happen: kills the processes of the node, and its memory is gone; or stops them.
 * 0, or -errno with a text. */
int simulate_strike(const char *folder, const simulate_failure *failure, char *err);

/* Removes and frees the folder, and closes the lock; NULL is fine. */
void simulate_close(char *folder, int *lock);

#endif
