/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAUNCHER_H
#define LAUNCHER_H

/* How an MPI program is started: a table with a row per launcher, to which the
 * configuration of a site may add rows (descriptors LAUNCHER). Command lines are
 * templates (lib/tool_template.h) with these values:
 *
 *     {program}    program of the launcher
 *     {nodes}      number of nodes to run on
 *     {ranks}      number of all ranks
 *     {each}       ranks per node, if all nodes have the same number
 *     {most}       maximum ranks per node
 *     {hosts}      n1,n2,n3
 *     {hostlist}   n[1-3]
 *     {slots}      n1:2,n2:2,n3:1
 *     {stars}      n1:*,n2:*,n3:*
 *     {out}        nodes that must not be used: n4,n5
 *     {outlist}    n[4-5]
 *     {rest}       all other nodes of the allocation
 *     {name}       name of the job step
 *     {patience}   seconds until a launch must begin
 *     {simulated}  directory of simulated nodes
 *     {preload}    module that simulated nodes preload
 *     {job}        id of the job
 *     {id}         id of the job step to end
 *     {host}, {host_ranks}  lists: the nodes with ranks, and their numbers of ranks
 *     {variable}   list: names of the variables SCR_...
 *     {command}    the program and its arguments
 *
 * {ranks}, {each} and {most} are missing if the arguments of the user determine them. */

#include "lib/hostlist.h"
#include "lib/tool_prefix.h"
#include "lib/tool_words.h"
#include <kvtree/kvtree_error.h>
#include <limits.h>
#include <stdbool.h>

/* A launch, in plain data. */
typedef struct launch {
    const hostlist *nodes;    /* to run on, in order */
    const int *ranks;         /* on each node; NULL: determined by words */
    const hostlist *out;      /* nodes of the allocation that must not be used */
    const hostlist *rest;     /* all nodes of the allocation except `nodes` */
    const char *program;      /* of the launcher */
    const char *name;         /* of the job step, by which it is found when it must be
                               * ended */
    const char *simulated;    /* directory of simulated nodes; or NULL */
    const char *preload;      /* module that idle ranks preload on simulated nodes; or
                               * NULL */
    bool raw;                 /* words also contain arguments of the launcher */
    const char *const *words; /* the program and its arguments */
    double patience; /* seconds after which a launch that cannot begin fails; 0: no
                      * limit */
} launch;

enum { LAUNCHER_PROGRAMS = 4, LAUNCHER_ENDS = 4 };

typedef struct launcher {
    const char *name;
    const char *manager; /* the batch system of the launcher; NULL: any */
    bool only;           /* no other launcher works in that batch system */
    /* Names of programs, each list ended by NULL. programs: names that only this launcher
     * has; the first existing one is used. shared: names that other launchers have, too;
     * these programs are recognized by their output for --version, or by a part of their
     * path without symbolic links. */
    const char *programs[LAUNCHER_PROGRAMS], *shared[LAUNCHER_PROGRAMS];
    const char *says[4], *place; /* says is ended by NULL */
    /* Templates: a launch; a launch with arguments of the user; a launch on simulated
     * nodes (NULL: impossible). */
    const char *run, *raw, *simulate;
    /* For launchers that do not forward signals, or may be dead while their program runs:
     * a command that lists the launched job steps, "ID" or "ID NAME" per line (NULL:
     * there are no ids); and commands that end a job step. */
    const char *find, *end[LAUNCHER_ENDS];
    bool leaves; /* it may end before its job step, which is ended after a failed run */
    bool site;   /* from the configuration: its programs are checked before each start */
} launcher;

/* The built-in rows in the order in which they are tried, ended by a row without a
 * name. */
extern const launcher launcher_table[];

/* The chosen launcher and its program. */
typedef struct launcher_choice {
    launcher row;
    char program[PATH_MAX];
    kvtree *descs; /* owns the texts of a row from the configuration */
} launcher_choice;

/* The name for any launcher that belongs to no batch system. */
#define LAUNCHER_MPIRUN "mpirun"

/* Chooses the launcher of that name. NULL: the name in SCR_LAUNCHER, else a launcher of
 * the configuration, else that of the batch system, else one that exists. An exit code,
 * after a message; choice must be freed in any case. */
int launcher_choose(const tool_prefix *prefix, const char *name, bool simulated,
                    launcher_choice *choice);
void launcher_choice_free(launcher_choice *choice);

/* Adds the command line of a launch. 0, -EINVAL or -ENOMEM with a text. */
int launcher_build(const launcher *with, const launch *l, tool_words *words,
                   kvtree_error *err);

/* Ends the job step of a launch. 0 or -errno with a text. */
int launcher_end(const launcher *with, const launch *l, kvtree_error *err);

/* Returns the number of all ranks of a launch; 0: determined by words. */
int launcher_ranks(const launch *l);

/* ---- launcher_values.c ---- */

/* The values of a launch. */
typedef struct launcher_values {
    struct tool_value *list; /* ended by an element without a name */
    char **texts;            /* texts that it owns, ended by NULL */
    hostlist hosts, counts, variables;
} launcher_values;

/* Makes the values of a launch. l NULL: only their names, for tool_template_check. 0 or
 * -ENOMEM. */
int launcher_values_make(const launch *l, const char *id, launcher_values *values);
void launcher_values_free(launcher_values *values);

#endif
