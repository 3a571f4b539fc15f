/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUN_LOG_H
#define RUN_LOG_H

/* What scr_run does, for people: a line each on standard error and in the file
 * .scr/runs.log of the prefix folder. */

#define RUN_LOG_NAME ".scr/runs.log"

typedef struct run_log {
    int fd;    /* -1: there is no file */
    int quiet; /* 1: only the file */
} run_log;

/* Opens it below the open prefix folder. 0, or -errno with a text; then lines only go to
 * standard error. */
int run_log_open(run_log *log, int prefix, char *err);

/* Adds a line, with the time in front in the file. */
void run_log_add(run_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for a complaint, which goes to standard error in any case. */
void run_log_complain(run_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void run_log_close(run_log *log);

#endif
