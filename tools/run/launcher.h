/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAUNCHER_H
#define LAUNCHER_H

/* How an MPI program is started: a table with a row per launcher. */

#include "lib/hostlist.h"
#include "lib/tool_words.h"

/* A launch, in plain data. */
typedef struct launch {
    const hostlist *nodes;    /* to run on, in order */
    const int *ranks;         /* on each; NULL: as words say */
    const hostlist *out;      /* nodes of the allocation that must not be used */
    const char *program;      /* of the launcher */
    const char *name;         /* of the job step, by which it is found to be ended */
    const char *simulated;    /* the folder of simulated nodes; NULL */
    int raw;                  /* 1: words are arguments of the launcher, too */
    const char *const *words; /* the program and its arguments */
    double patience; /* seconds after which a launch that cannot begin fails; 0: never */
} launch;

typedef struct launcher {
    const char *name;
    const char *programs[4]; /* the first that is there is taken; ended by NULL */
    const char *manager;     /* the batch system whose launcher it is; NULL: any */
    /* Adds the command line of a launch. Pure. */
    void (*build)(const launch *l, tool_words *words);
    /* Ends what was launched, for launchers that do not pass signals on, or may be dead
     * while their program goes on; NULL: there is nothing to do. 0 or -errno with a
     * text. */
    int (*end)(const launch *l, char *err);
} launcher;

extern const launcher launcher_slurm, launcher_flux, launcher_hydra, launcher_simulate;

/* The launcher of that name; NULL: by the batch system, or the one that is there. NULL
 * when there is none; *program is what is to be started. */
const launcher *launcher_find(const char *name, const char **program);

/* Says why there is none. COMMAND_BAD. */
int launcher_tell_missing(const char *name);

/* The first of a list of programs, ended by NULL, that is in PATH, or NULL. */
const char *launcher_program(const char *const programs[]);

/* All ranks of a launch; 0: as words say. */
int launcher_ranks(const launch *l);

/* Adds one word: the option, which ends as "--nodes=", and the short form of the list. */
void launcher_add_list(const char *option, const hostlist *list, tool_words *words);

#endif
