/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAUNCHER_H
#define LAUNCHER_H

/* How an MPI program is started: a table with a row per launcher. */

#include "lib/hostlist.h"
#include "lib/tool_words.h"
#include <kvtree/kvtree_error.h>
#include <stdbool.h>

/* A launch, in plain data. */
typedef struct launch {
    const hostlist *nodes;    /* to run on, in order */
    const int *ranks;         /* on each; NULL: as in words */
    const hostlist *out;      /* nodes of the allocation that must not be used */
    const char *program;      /* of the launcher */
    const char *name;         /* of the job step, by which it is found to be ended */
    const char *simulated;    /* the directory of simulated nodes; NULL */
    bool raw;                 /* words are arguments of the launcher, too */
    const char *const *words; /* the program and its arguments */
    double patience; /* seconds after which a launch that cannot begin fails; 0: never */
} launch;

typedef struct launcher {
    const char *name;
    const char *programs[4]; /* the first that exists is used; ended by NULL */
    const char *manager;     /* the batch system that it belongs to; NULL: any */
    /* Adds the command line of a launch. Pure. */
    void (*build)(const launch *l, tool_words *words);
    /* Ends what was launched, for launchers that do not forward signals, or may be dead
     * while their program runs; NULL: nothing to do. 0 or -errno with a text. */
    int (*end)(const launch *l, kvtree_error *err);
} launcher;

extern const launcher launcher_slurm, launcher_flux, launcher_hydra, launcher_simulate;

/* The launcher of that name; name NULL: that of the batch system, or one that exists.
 * *program is what to start. NULL when there is none. */
const launcher *launcher_find(const char *name, const char **program);

/* Reports why there is none. COMMAND_BAD. */
int launcher_report_missing(const char *name);

/* All ranks of a launch; 0: as in words. */
int launcher_ranks(const launch *l);

/* Adds one word: the option, which ends as "--nodes=", and the short form of the list. */
void launcher_add_list(const char *option, const hostlist *list, tool_words *words);

#endif
