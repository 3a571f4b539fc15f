/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_PROCESS_H
#define TOOL_PROCESS_H

/* Supervision of other programs: several side by side with captured output and time
 * limits, or one launcher that is watched until it ends. Each program runs in its own
 * process group and is stopped in phases: SIGTERM, then SIGKILL, then it is abandoned. */

#include <kvtree/kvtree_error.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Seconds of the monotonic clock. */
double tool_now(void);

/* ---- signals ---- */

/* Signals that are read from a descriptor while they are caught. */
typedef struct tool_signals {
    int fd;
    sigset_t before; /* the original mask, which programs inherit */
    int stop, last;  /* the first and the last signal that asked to end, or 0 */
    bool held;       /* signals that ask to end are not forwarded */
} tool_signals;

/* Catches the signals that end programs, unless they are ignored. all: also SIGUSR1,
 * SIGUSR2 and SIGCHLD. 0 or -errno. */
int tool_signals_catch(tool_signals *signals, bool all);

/* Waits for the given time or until a signal arrives. Forwards signals to the process
 * pid, unless pid is 0. True for a signal that asks to end. */
bool tool_signals_wait(tool_signals *signals, double seconds, pid_t pid);

void tool_signals_release(tool_signals *signals);

/* ---- programs side by side ---- */

/* Called when a program has printed something, with all of its output so far. */
typedef void (*tool_heard)(int task, const char *output, void *arg);

typedef struct tool_limits {
    double seconds;   /* per program */
    size_t bytes;     /* maximum output of one program */
    int most;         /* maximum number of programs side by side; at least 1 */
    double silence;   /* maximum seconds without output; 0: no limit */
    tool_heard heard; /* or NULL; gets the arg of the report */
    double grace;     /* seconds from SIGTERM to SIGKILL; 0: one second */
    bool joined;      /* standard error goes to the captured output, not to ours */
    bool group_only;  /* processes in other groups are not ended with the program */
} tool_limits;

/* The end of one program. */
typedef struct tool_end {
    /* Exit code; -ENOENT: no such program; -ETIMEDOUT, -EFBIG: it was ended because it
     * took too long, was silent for too long, or printed too much; -EIO: a signal ended
     * it; or another -errno. */
    int code;
    const char *text;   /* the reason if code is not 0, for people */
    const char *output; /* terminated by a NUL; never NULL */
    size_t size;
} tool_end;

/* Called at the end of each program; the texts are valid only during the call. */
typedef void (*tool_report)(int task, const tool_end *end, void *arg);

/* Runs the programs, which are found in PATH, with empty standard input. argv is a list
 * of argument vectors. A program that exceeds a limit is ended together with its process
 * group and all processes that it started.
 *
 * 0 when all programs were reported. -EINTR after SIGINT, SIGTERM, SIGHUP or SIGQUIT:
 * running programs are ended without a report, and the signal is raised again for the
 * caller's own handling. -ENOMEM or another -errno in the same way, with a text. */
int tool_process_run(const char *const *const *argv, int count, const tool_limits *limits,
                     tool_report report, void *arg, kvtree_error *err);

/* ---- one launcher ---- */

enum { TOOL_WHY_SIZE = 256 };

typedef struct tool_job {
    const char *const *argv;
    double interval; /* seconds between two checks */
    double patience; /* seconds from SIGTERM (ours: from the signal) to SIGKILL */
    double grace;    /* the same after a failed check */
    /* A command of this project, which ends the programs that it started: signals are not
     * forwarded to it at once, no SIGTERM follows them, and its standard output is
     * out. */
    bool ours;
    int out;
    /* Checks the job. True: the job must be ended, for the reason in why. */
    bool (*check)(void *arg, char why[TOOL_WHY_SIZE]);
    /* Called at the first signal that asks to end, which is then not forwarded; NULL: the
     * signal is forwarded. Unless it is ours, the program then has `notice` seconds to
     * end. */
    void (*first)(void *arg);
    double notice;
    /* Ends processes that the launcher may leave behind. */
    void (*end)(void *arg);
    void *arg;
} tool_job;

typedef struct tool_job_result {
    int code;       /* exit code, or 128 plus the signal that ended it */
    double seconds; /* from start to end */
    bool ended;     /* because of a check */
    bool signalled; /* a signal that asks to end was forwarded */
    char why[TOOL_WHY_SIZE];
} tool_job_result;

/* Runs the launcher until it ends. It has our standard input, unless that is a terminal.
 * 0, or -errno if the launcher did not start. */
int tool_process_watch(const tool_job *job, tool_signals *signals,
                       tool_job_result *result);

#endif
