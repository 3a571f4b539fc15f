/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_COMMAND_H
#define COMMON_COMMAND_H

/* What all commands say in the same way. For programs only: libraries never print. */

#include "common/prefix.h"
#include <stdarg.h>
#include <stdio.h>

#define command_self COMMON(command_self)
#define command_open_streams COMMON(command_open_streams)
#define command_outlive_reader COMMON(command_outlive_reader)
#define command_write_failed COMMON(command_write_failed)
#define command_flush COMMON(command_flush)
#define command_complain COMMON(command_complain)
#define command_complain_list COMMON(command_complain_list)
#define command_usage COMMON(command_usage)
#define command_wrong_usage COMMON(command_wrong_usage)
#define command_count COMMON(command_count)
#define command_names COMMON(command_names)
#define command_version COMMON(command_version)
#define command_number COMMON(command_number)

/* Exit codes that mean the same everywhere. */
enum { COMMAND_GOOD = 0, COMMAND_BAD = 1, COMMAND_WRONG_USAGE = 2 };

/* The name by which the program was called. */
const char *command_self(void);

/* Prints "<self>: <text>" as a line on standard error, in which a terminal obeys nothing
 * (quote.h): whatever commands say of names and contents that others made. COMMAND_BAD.
 */
int command_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
int command_complain_list(const char *format, va_list list)
    __attribute__((format(printf, 1, 0)));

/* The first thing to do: opens those of the descriptors 0 to 2 that are closed, so that
 * no file gets their numbers, and with it what is printed. They cannot be read or
 * written, as before. */
void command_open_streams(void);

/* For commands that change something, before they do: that nobody reads any more what
 * they print (a pipe to head, a tee that Ctrl-C ended) does not end them, and their exit
 * code tells of their work alone. Commands that only print end by SIGPIPE then. Programs
 * that are started from here do as well: it is a handler, and none outlives exec. */
void command_outlive_reader(void);

/* Says that standard output is lost, for that errno; COMMAND_BAD. COMMAND_GOOD, without a
 * word, where nobody reads it, after command_outlive_reader. */
int command_write_failed(int error);

/* The last thing to do: COMMAND_GOOD if all that was printed was written. */
int command_flush(void);

/* "usage: <self> <arguments>" */
void command_usage(FILE *out, const char *arguments);

/* The same on standard error, and where to find more; COMMAND_WRONG_USAGE. */
int command_wrong_usage(const char *arguments);

/* Whether there are least to most (-1: any number) arguments that are no options. If not,
 * says so, and how the command is used. */
int command_count(const char *usage, int count, int least, int most);

/* The same where one of them is empty, as a variable that is not set makes it. */
int command_names(const char *usage, int count, char **list);

/* The argument of an option that takes a number from 0 on; otherwise says so. */
int command_number(const char *option, const char *text, int *number);

/* Prints name and version; an exit code. */
int command_version(void);

#endif
