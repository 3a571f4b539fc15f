/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATE_H
#define SIMULATE_H

/* Simulated nodes: directories on this machine, and failures of these nodes. A node
 * consists of its name, FOLDER/NAME/cache and FOLDER/NAME/cntl, and the processes that
 * have that name in their environment. */

#include "lib/hostlist.h"
#include "run/run_progress.h"
#include <kvtree/kvtree_error.h>
#include <limits.h>
#include <stdbool.h>

/* Parses "4x2": 4 nodes with 2 ranks each; "4": with one rank each. 0 or -EINVAL. */
int simulate_parse(const char *text, int *nodes, int *per_node);

/* When and how a node fails. */
typedef struct simulate_failure {
    char node[32];
    int after;     /* after that number of complete datasets in the run */
    int run;       /* in that run, from 1 */
    int hangs;     /* 1: the node stops answering, but is not lost */
    int busy;      /* 1: while the next dataset is being written */
    bool done;     /* it has happened */
    int reached;   /* complete datasets in that run; -1: there was no such run */
    char text[96]; /* the text from the command line */
} simulate_failure;

enum { SIMULATE_FAILURES = 16, SIMULATE_TEXT_SIZE = 256 };

/* Parses "node=3,after=2checkpoints[,run=1][,how=hang][,while=checkpoint]"; several
 * failures are separated by blanks. 0, or -EINVAL with a text that begins with the
 * failure. */
int simulate_parse_failures(const char *text, int nodes,
                            simulate_failure list[SIMULATE_FAILURES], int *count,
                            kvtree_error *err);

/* Makes a directory with the nodes node1, node2, ... in TMPDIR, or in memory, and adds
 * their names to nodes. The directory is in use while *lock is open. Removes directories
 * of killed runs, with a message. 0, or -errno with a text. */
int simulate_open(int count, char **folder, int *lock, hostlist *nodes,
                  kvtree_error *err);

/* Whether the failure is due in the run. */
bool simulate_is_due(const simulate_failure *failure, const char *folder, int run,
                     const run_progress *p);

/* Describes, after all runs, why the failure did not happen. Pure. */
void simulate_describe_missed(const simulate_failure *failure,
                              char text[SIMULATE_TEXT_SIZE]);

/* Executes the failure: kills the processes of the node and removes its directory, or
 * stops the processes. 0, or -errno with a text. */
int simulate_strike(const char *folder, const simulate_failure *failure,
                    kvtree_error *err);

/* Removes and frees the directory, and closes the lock; accepts NULL. */
void simulate_close(char *folder, int *lock);

/* Finds the module that idle ranks of MPICH need (scr_idle.c). False if there are no more
 * ranks than processors, LD_PRELOAD is set already, or the module does not exist. */
bool simulate_find_idle(int ranks, char path[PATH_MAX]);

#endif
