/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_MANAGER_TABLE_H
#define TOOL_MANAGER_TABLE_H

/* Batch systems as data: a row for each, and one for machines without any. Commands are
 * templates (tool_template.h) with these values:
 *
 *     {job}       the id of the allocation    {hostlist}  nodes: n[1-3]
 *     {name}      of a job step               {id}        of a job step
 */

#include "config/identity.h"
#include "lib/tool_template.h"
#include <kvtree/kvtree_error.h>
#include <stdbool.h>
#include <stdint.h>

enum { MANAGER_ENDS = 4 };

typedef struct manager {
    const char *name;
    const char *job[2];    /* variables; within an allocation, one of them is set to its
                            * id */
    const char *within;    /* a variable that is set where `job` is not; or NULL */
    const char *ask_job;   /* a command that prints the id where `job` is not set, and
                            * fails if there is none; or NULL */
    const char *ask_nodes; /* a command that lists the nodes; or NULL */
    const char *nodes[2];  /* variables with a list of nodes */
    const char *counted;   /* a variable with nodes and their numbers of processors: "n1 4
                            * n2 4" */
    const char *file;      /* a variable with the name of a file that has a list of
                            * nodes */
    /* Commands that list nodes: nodes that are down; nodes that work, but on which
     * nothing new should start. NULL: the batch system cannot be asked. */
    const char *down, *drained;
    bool drained_waits; /* a program that needs a drained node never starts; otherwise it
                         * does */
    /* The end of the allocation: a command, its name for people, and the reader of its
     * output, which gives seconds since 1970, or 0 for an unknown end; -EINVAL with a
     * text. */
    const char *end, *end_source;
    int reserve; /* seconds before the end in which scr_run saves, unless SCR_SAVE_SECONDS
                    is set */
    int (*end_read)(char *output, const char *job, int64_t *end, kvtree_error *err);
    /* Whether the allocation is over: a command, and the reader of its output. */
    const char *over;
    bool (*over_read)(char *output, const char *job);
    const char *requeue; /* a command that puts the job back into the queue; or NULL */
    /* Job steps: a command that lists their ids; whether a text is such an id; and
     * commands that end a step. */
    const char *steps;
    bool (*step_is)(const char *id);
    bool step_has_job; /* a step id begins with the id of its job: "17.3"; such ids are
                        * recognized everywhere */
    const char *step_end[MANAGER_ENDS];
    const char *lost; /* what happens to the allocation when a node is lost */
} manager;

/* Ended by the row without a batch system, which has no variables. */
extern const manager manager_table[];

/* The row of this allocation; the id of the allocation, NULL without one. */
const manager *manager_find(void);
const char *manager_job_id(const manager *m);

/* Gets the id of the allocation; asks the batch system if the environment has none. 1; 0:
 * there is none; or as tool_run with a text. */
int manager_find_job(const manager *m, char job[SCR_JOB_ID_SIZE], kvtree_error *err);

/* Runs a command of a row; *output is to be freed. values may be NULL, and may name
 * another job. 0, or as tool_run with a text. */
int manager_ask(const manager *m, const char *command, const tool_value *values,
                double seconds, char **output, kvtree_error *err);

/* Whether the text is the id of a job step of Slurm: "17.3", "17_2.3", "17+1.0"; false
 * for the id of a job. */
bool manager_is_slurm_step(const char *id);

/* Readers of command output. */
int manager_read_squeue_end(char *output, const char *job, int64_t *end,
                            kvtree_error *err);
int manager_read_qstat_end(char *output, const char *job, int64_t *end,
                           kvtree_error *err);
int manager_read_bjobs_end(char *output, const char *job, int64_t *end,
                           kvtree_error *err);
int manager_read_timeleft(char *output, const char *job, int64_t *end, kvtree_error *err);
bool manager_read_squeue_over(char *output, const char *job);

#endif
