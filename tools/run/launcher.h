/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAUNCHER_H
#define LAUNCHER_H

/* How an MPI program is started: a table with a row per launcher, to which the
 * configuration of a site may add rows (descriptors LAUNCHER). Command lines are
 * templates (lib/tool_template.h) with these values:
 *
 *     {program}     of the launcher      {nodes}     number of nodes to run on
 *     {ranks}       in all               {each}      ranks per node, where all have the
 * same {most}        most ranks per node  {hosts}     n1,n2,n3 {hostlist}    n[1-3]
 * {slots}     n1:2,n2:2,n3:1 {stars}       n1:*,n2:*,n3:*       {out}       nodes that
 * must not be used: n4,n5 {outlist}     n[4-5]               {rest}      all other nodes
 * of the allocation {name}        of the job step      {patience}  seconds until a launch
 * begins {simulated}   directory of simulated nodes {preload}     module to preload there
 * {job}         id of the job {id} of what is to be ended {host}, {host_ranks} lists:
 * nodes with ranks, and their ranks {variable}                         list: names of the
 * variables SCR_... {command}                          the program and its arguments
 *
 * {ranks}, {each}, {most} are missing where the arguments of the user decide. */

#include "lib/hostlist.h"
#include "lib/tool_prefix.h"
#include "lib/tool_words.h"
#include <kvtree/kvtree_error.h>
#include <limits.h>
#include <stdbool.h>

/* A launch, in plain data. */
typedef struct launch {
    const hostlist *nodes;    /* to run on, in order */
    const int *ranks;         /* on each; NULL: as in words */
    const hostlist *out;      /* nodes of the allocation that must not be used */
    const hostlist *rest;     /* all nodes of the allocation but those to run on */
    const char *program;      /* of the launcher */
    const char *name;         /* of the job step, by which it is found to be ended */
    const char *simulated;    /* the directory of simulated nodes; NULL */
    const char *preload;      /* a module that idle ranks need there; NULL */
    bool raw;                 /* words are arguments of the launcher, too */
    const char *const *words; /* the program and its arguments */
    double patience; /* seconds after which a launch that cannot begin fails; 0: never */
} launch;

enum { LAUNCHER_PROGRAMS = 4, LAUNCHER_ENDS = 4 };

typedef struct launcher {
    const char *name;
    const char *manager; /* the batch system that it belongs to; NULL: any */
    bool only;           /* nothing else launches programs in that batch system */
    /* Names of programs, each list ended by NULL: its own, the first that exists is used;
     * and those that other launchers have, too, which are recognized by what they print
     * with --version, or by a part of their path without links. */
    const char *programs[LAUNCHER_PROGRAMS], *shared[LAUNCHER_PROGRAMS];
    const char *says[4], *place; /* says is ended by NULL */
    /* Templates: a launch; one with arguments of the user; one on simulated nodes (NULL:
     * it cannot). */
    const char *run, *raw, *simulate;
    /* For launchers that do not forward signals, or may be dead while their program runs:
     * lists what was launched, "ID" or "ID NAME" per line (NULL: there is no id); and
     * ends it. */
    const char *find, *end[LAUNCHER_ENDS];
    bool leaves; /* it may end before what it launched, which is ended after a failed run
                  */
    bool site;   /* of the configuration: its programs are checked before each start */
} launcher;

/* The built-in rows, in the order in which they are tried, ended by one without a name.
 */
extern const launcher launcher_table[];

/* A launcher, and its program. */
typedef struct launcher_choice {
    launcher row;
    char program[PATH_MAX];
    kvtree *descs; /* owns the texts of a row of the configuration */
} launcher_choice;

/* Any launcher that belongs to no batch system, as a name. */
#define LAUNCHER_MPIRUN "mpirun"

/* Chooses the launcher of that name; NULL: of the name SCR_LAUNCHER, else one of the
 * configuration, else that of the batch system, else one that exists. An exit code, after
 * a message; free in any case. */
int launcher_choose(const tool_prefix *prefix, const char *name, bool simulated,
                    launcher_choice *choice);
void launcher_choice_free(launcher_choice *choice);

/* Adds the command line of a launch. 0, -EINVAL or -ENOMEM with a text. */
int launcher_build(const launcher *with, const launch *l, tool_words *words,
                   kvtree_error *err);

/* Ends what was launched. 0 or -errno with a text. */
int launcher_end(const launcher *with, const launch *l, kvtree_error *err);

/* All ranks of a launch; 0: as in words. */
int launcher_ranks(const launch *l);

/* ---- launcher_values.c ---- */

/* The values of a launch. */
typedef struct launcher_values {
    struct tool_value *list; /* ended by one without a name */
    char **texts;            /* that it owns, ended by NULL */
    hostlist hosts, counts, variables;
} launcher_values;

/* l NULL: only names, for tool_template_check. 0 or -ENOMEM. */
int launcher_values_make(const launch *l, const char *id, launcher_values *values);
void launcher_values_free(launcher_values *values);

#endif
