/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPORT_STATUS_H
#define REPORT_STATUS_H

/* The state of the running or last job of a prefix directory, according to its records:
 * index, flush file, halt file, nodes file, log, and the locks of a run on this machine.
 * Nothing is guessed. Unknown values are 0 for ids and times, -1 for numbers, and NULL
 * for texts. */

#include "halt/halt.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "plan/dataset.h"
#include "report/log.h"
#include "report/meter.h"
#include <stdint.h>

typedef enum status_state {
    STATUS_UNUSED,      /* no run has used the directory */
    STATUS_RUNNING,     /* a process holds a lock of the run */
    STATUS_ENDED,       /* the program called SCR_Finalize */
    STATUS_HALTED,      /* a halt condition ended it */
    STATUS_INTERRUPTED, /* its launch ended, but the run did not record an end */
    STATUS_UNKNOWN      /* no end is recorded: it runs elsewhere, or was killed */
} status_state;

typedef struct status_dataset {
    int id; /* 0: none */
    char name[SCR_NAME_SIZE];
    int64_t created; /* microseconds since 1970 */
    int64_t bytes;
    int ranks; /* ranks that wrote it; 0: unknown */
} status_dataset;

/* The last run in the log. */
typedef struct status_run {
    char id[SCR_LOG_RUN_SIZE], user[129], job[129]; /* "": unknown */
    int64_t ranks, nodes;                           /* 0: unknown */
    int64_t started, ready, last;                   /* microseconds since 1970; 0:
                                                     * unknown */
    int64_t output, output_id; /* time and id of the last complete output; 0: none */
    double computed; /* mean computing time between its outputs; negative: unknown */
    int outputs;
    bool is_ended, is_halted, is_over; /* is_over: the launch has ended */
    bool is_short;                     /* memory was insufficient for all of it */
    char *lost;                        /* nodes that were lost since it began, or NULL */
} status_run;

enum { STATUS_PROBLEMS = 4 };

/* A record that cannot be read; its information is unknown. */
typedef struct status_problem {
    tool_message message;
    kvtree_error err;
} status_problem;

typedef struct status {
    status_state state;
    const char *evidence; /* how the state is known, for people */
    long process;         /* holder of the lock; -1: on another machine; 0: none */
    bool is_logged;       /* the log has a run */
    status_run run;
    int nodes;                                /* nodes of the last run; 0: unknown */
    status_dataset cached, flushed, flushing; /* checkpoints; id 0: none or unknown */
    int64_t done;                             /* bytes of `flushing` that are copied */
    double rate;                              /* bytes per second; negative: unknown */
    int64_t due;                              /* time of the next checkpoint, seconds
                                               * since 1970; 0: unknown */
    bool is_due_configured;                   /* due comes from SCR_CHECKPOINT_SECONDS */
    kvtree *halt;                             /* empty: no condition, or unknown */
    char reason[SCR_HALT_REASON_SIZE];        /* of the condition that holds; or "" */
    char **risk;                              /* names of datasets that are only in the
                                               * caches */
    int risks;
    int64_t now;      /* microseconds since 1970 */
    double lost_work; /* seconds of work since the newest checkpoint on the prefix
                       * directory, or since the run began; negative: unknown */
    status_problem problems[STATUS_PROBLEMS];
    int problem_count;
} status;

/* Reads the records below the configured prefix directory. before: an earlier status, for
 * the rate of a flush; or NULL. 0 or -ENOMEM. */
int status_read(const tool_prefix *prefix, const status *before, status *s);
void status_done(status *s);

/* Returns the bytes that an unfinished flush of the dataset has copied; -1 if they cannot
 * be determined. Blocks that are not written yet do not count. */
int64_t status_staged(int prefix, const char *name);

/* Writes the status for people; color: for a terminal. */
void status_write(FILE *out, const tool_prefix *prefix, const status *s, bool color);

/* Prints the status as a JSON object; an exit code. */
int status_print_json(const tool_prefix *prefix, const status *s);

/* Writes the three most likely next commands. */
void status_write_next(FILE *out, const status *s);

#endif
