/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_RUN_H
#define TOOL_RUN_H

/* Runs one other program, such as a command of the batch system, with a time limit. */

#include "common/errtext.h"
#include "lib/tool_process.h"
#include <limits.h>

/* Maximum output that tool_run accepts, in bytes. */
#define TOOL_RUN_OUTPUT (16 << 20)

/* Runs argv[0], which is found in PATH, with empty standard input and our standard error.
 * *output is its output, a text to be freed. 0; -ENOENT: no such program; -ETIMEDOUT,
 * -EFBIG: it was ended; -EIO: it failed; each with a text. */
int tool_run(const char *const argv[], double seconds, char **output, kvtree_error *err);

typedef struct tool_answer {
    int code;     /* as in tool_end */
    char *output; /* ended by a NUL, to be freed; never NULL */
    kvtree_error err;
} tool_answer;

/* Runs one program and keeps its result. limits->most is ignored. 0, or -errno as
 * tool_process_run, with a text and without an answer. */
int tool_run_answer(const char *const argv[], const tool_limits *limits,
                    tool_answer *answer, kvtree_error *err);

/* Whether the program, a path or a name in PATH, can be executed; tool_run_find also gets
 * its path. */
bool tool_run_find(const char *program, char path[PATH_MAX]);
bool tool_run_is_there(const char *program);

#endif
