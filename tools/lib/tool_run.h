/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_RUN_H
#define TOOL_RUN_H

#include <limits.h>

/* Runs another program, such as a command of the batch system, for as long as it may
 * take and no longer. */

/* Most bytes that it may print. */
#define TOOL_RUN_OUTPUT (16 << 20)

/* Runs argv[0], which is found in PATH, with empty standard input and our standard error.
 * What it prints goes to *output as text, to be freed. 0; -ENOENT where there is no such
 * program; -ETIMEDOUT after so many seconds, -EFBIG for too much output, and it is killed
 * then, with what it started; -EIO when it fails, each with a text. */
int tool_run(const char *const argv[], double seconds, char **output, char *err);

/* 1 if PATH has the program, or it is a path, and it may be run; where it is. */
int tool_run_find(const char *program, char path[PATH_MAX]);
int tool_run_is_there(const char *program);

#endif
