/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUN_LOG_H
#define RUN_LOG_H

/* Log of scr_run for people: lines on standard error and in the file .scr/runs.log of the
 * prefix directory. */

#define RUN_LOG_NAME ".scr/runs.log"

#include "lib/tool.h"
#include <stdbool.h>

typedef struct run_log {
    int fd;     /* -1: no file */
    bool quiet; /* only errors go to standard error */
} run_log;

/* Opens the file below the open prefix directory and holds a shared lock on it until it
 * is closed or the process ends. A process that tests for an exclusive lock learns that
 * scr_run is running (single_instance_holder); where the file system has locks, on other
 * machines, too. 0, or -errno with a text; lines then go to standard error only. */
int run_log_open(run_log *log, int prefix, kvtree_error *err);

/* Adds a message as a line, which begins with the time in the file. Errors go to standard
 * error even if the log is quiet. */
void run_log_add(run_log *log, tool_message message, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void run_log_close(run_log *log);

#endif
