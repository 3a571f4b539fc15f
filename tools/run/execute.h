/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXECUTE_H
#define EXECUTE_H

/* Starts a launcher, watches it, passes signals on, and ends it where that is due; never
 * waits for ever. */

#include <signal.h>

/* The signals that scr_run handles: they come to a descriptor, for as long as it lives.
 */
typedef struct execute_signals {
    int fd;
    sigset_t before; /* the mask that programs get */
    int stop, last;  /* the first and the last signal that told it to end, or 0 */
    int out; /* open: standard output of commands of ours (execute_job); -1: as here */
} execute_signals;

/* 0 or -errno. */
int execute_catch(execute_signals *signals);

/* Waits so many seconds at most, or until a signal comes; passes those for the program on
 * to pid, unless that is 0. 1 when one came that is a wish to end. */
int execute_wait(execute_signals *signals, double seconds, int pid);

void execute_release(execute_signals *signals);

enum { EXECUTE_WHY_SIZE = 256 };

typedef struct execute_job {
    const char *const *argv;
    double interval; /* seconds between two looks */
    double patience; /* seconds that the program has to end after a signal to us */
    double grace;    /* the same when look wants its end */
    /* 1: a command of ours, which ends all that it started: no SIGTERM follows a signal,
     * and those that are for the program are not passed on. */
    int ours;
    /* Looks at the job; 1: it must be ended, with a text why. */
    int (*look)(void *arg, char why[EXECUTE_WHY_SIZE]);
    /* With ours: called at the first signal, which is not passed on then; NULL: it is. */
    void (*first)(void *arg);
    /* Ends what the launcher may leave behind. */
    void (*end)(void *arg);
    void *arg;
} execute_job;

typedef struct execute_result {
    int code;       /* exit code; 128 and the signal that ended it */
    double seconds; /* that it took */
    int ended;      /* 1: it was ended for a reason that look gave */
    int signalled;  /* 1: it was told to end by a signal that was passed on */
    char why[EXECUTE_WHY_SIZE];
} execute_result;

/* Runs it to its end. Its standard input is ours, unless that is a terminal. 0, or
 * -errno when it was not started. */
int execute(const execute_job *job, execute_signals *signals, execute_result *result);

/* Starts a program in a process group of its own; out -1: with our standard output.
 * Gives its id, or -errno. */
int execute_start(const char *const *argv, const execute_signals *signals, int out);

#endif
