/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPORT_STATUS_H
#define REPORT_STATUS_H

/* What is known of the running or last job of a prefix directory, from the records there:
 * index, flush file, halt file, nodes file, log, and the locks of a run on this machine.
 * Nothing is guessed: what the records do not say is unknown, which is 0 for ids and
 * times, -1 for numbers, and NULL for texts. */

#include "halt/halt.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "plan/dataset.h"
#include "report/log.h"
#include "report/meter.h"
#include <stdint.h>

typedef enum status_state {
    STATUS_UNUSED,      /* no run was here */
    STATUS_RUNNING,     /* a process holds a lock of it */
    STATUS_ENDED,       /* SCR_Finalize */
    STATUS_HALTED,      /* it ended because of a halt condition */
    STATUS_INTERRUPTED, /* its launch ended, and it did not */
    STATUS_UNKNOWN      /* no end is recorded: it runs elsewhere, or was killed */
} status_state;

typedef struct status_dataset {
    int id; /* 0: there is none */
    char name[SCR_NAME_SIZE];
    int64_t created; /* microseconds since 1970 */
    int64_t bytes;
    int ranks; /* that wrote it; 0: unknown */
} status_dataset;

/* The last run in the log. */
typedef struct status_run {
    char id[SCR_LOG_RUN_SIZE], user[129], job[129]; /* "": unknown */
    int64_t ranks, nodes;                           /* 0: unknown */
    int64_t started, ready, last;                   /* microseconds since 1970; 0 */
    int64_t output, output_id; /* when its last output was complete; 0: none */
    double computed; /* time of computing between its outputs, on average; below 0 */
    int outputs;
    bool is_ended, is_halted, is_over; /* is_over: the launch has ended */
    bool is_short;                     /* memory was not enough for all of it */
    char *lost;                        /* nodes lost since it began, or NULL */
} status_run;

enum { STATUS_PROBLEMS = 4 };

/* A record that cannot be read: what it would tell is unknown. */
typedef struct status_problem {
    tool_message message;
    kvtree_error err;
} status_problem;

typedef struct status {
    status_state state;
    const char *evidence; /* what the state is known from */
    long process;         /* that holds the lock; -1: of another machine; 0 */
    bool is_logged;       /* there is a log with a run in it */
    status_run run;
    int nodes;                                /* of the last run; 0: unknown */
    status_dataset cached, flushed, flushing; /* checkpoints; id 0: none or unknown */
    int64_t done;                             /* bytes of flushing that are copied */
    double rate;                              /* bytes per second; below 0: unknown */
    int64_t due;                              /* seconds since 1970; 0: unknown */
    bool is_due_configured;                   /* by SCR_CHECKPOINT_SECONDS */
    kvtree *halt;                             /* empty: no condition, or unknown */
    char reason[SCR_HALT_REASON_SIZE];        /* of the condition that holds; "" */
    char **risk;                              /* names of what is in the caches alone */
    int risks;
    int64_t now;      /* microseconds since 1970 */
    double lost_work; /* seconds of work since the newest checkpoint on the prefix
                         directory, or since the run began; below 0: unknown */
    status_problem problems[STATUS_PROBLEMS];
    int problem_count;
} status;

/* Reads the records below the prefix directory, which was configured. before: an earlier
 * status, for the rate of a flush; or NULL. -ENOMEM. */
int status_read(const tool_prefix *prefix, const status *before, status *s);
void status_done(status *s);

/* Bytes that an unfinished flush of the dataset has copied, -1 where that cannot be read.
 * Blocks that are not written yet do not count. */
int64_t status_staged(int prefix, const char *name);

/* For people, at most width columns of text per line; color: for a terminal. */
void status_write(FILE *out, const tool_prefix *prefix, const status *s, bool color);

/* An object of JSON; an exit code. */
int status_print_json(const tool_prefix *prefix, const status *s);

/* The three most likely next commands. */
void status_write_next(FILE *out, const status *s);

#endif
