/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TASKS_H
#define TOOL_TASKS_H

/* Runs other programs, several side by side, each for as long as it may take and no
 * longer. What they started is ended with them where time runs out. */

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

/* A program, which is found in PATH, and its arguments, ended by NULL. */
typedef struct tool_task {
    const char *const *argv;
    int joined; /* 1: what it says on standard error goes to its output; 0: to ours */
} tool_task;

typedef struct tool_limits {
    double seconds; /* that one program may take */
    size_t bytes;   /* that one may print */
    int most;       /* side by side; at least 1 */
    double silence; /* seconds that one may print nothing; 0: as long as it runs */
    int group_only; /* 1: what it started in other process groups is not ended with it */
} tool_limits;

/* What became of one. */
typedef struct tool_end {
    /* Its exit code; -ENOENT: there is no such program; -ETIMEDOUT, -EFBIG: it was ended,
     * as it took too long, or said nothing for too long, or too much; -EIO: a signal
     * ended it; or -errno */
    int code;
    const char *text;   /* why, where code is not 0; for people */
    const char *output; /* what it said until then, with a NUL behind it; never NULL */
    size_t size;
} tool_end;

/* Told of each program as it ends; the texts are gone afterwards. */
typedef void (*tool_told)(int task, const tool_end *end, void *arg);

/* Runs them with empty standard input. A program whose time is over gets SIGTERM, and
 * SIGKILL a second later; so do processes of its process group, and those below it.
 *
 * 0 when all were told of. -EINTR when SIGINT, SIGTERM, SIGHUP or SIGQUIT came, of which
 * the caller's own handling is left for afterwards: what runs is ended first, and not
 * told of. -ENOMEM or another -errno, in the same way; with a text. */
int tool_tasks_run(const tool_task *tasks, int count, const tool_limits *limits,
                   tool_told told, void *arg, char *err);

/* ---- what that stands on ---- */

typedef struct tool_start_of {
    const char *const *argv;
    const sigset_t *mask; /* of its signals */
    int out;              /* its standard output; -1: ours */
    int joined;           /* 1: its standard error goes there, too */
    int input;            /* 1: it has our standard input; 0: none */
} tool_start_of;

/* Starts a program in a process group of its own. 0 or -errno. */
int tool_tasks_start(const tool_start_of *how, pid_t *pid);

/* Seconds on a clock that nobody sets. */
double tool_tasks_now(void);

#endif
