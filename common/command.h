/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_COMMAND_H
#define COMMON_COMMAND_H

/* Messages and exit codes of all commands. For programs only: libraries never print. */

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
#define command_misused COMMON(command_misused)
#define command_count COMMON(command_count)
#define command_names COMMON(command_names)
#define command_version COMMON(command_version)
#define command_number COMMON(command_number)

/* Exit codes of all commands. */
enum { COMMAND_GOOD = 0, COMMAND_BAD = 1, COMMAND_WRONG_USAGE = 2 };

/* Returns the name by which the program was called. */
const char *command_self(void);

/* Prints "<self>: <word><text> [<identifier>]" as a line on standard error, with control
 * characters quoted (quote.h), since names and contents may come from others. A text that
 * is too long is truncated, the identifier is not. Identifiers are those of
 * tools/lib/messages.def. command_complain is for errors, which have no word. Returns
 * COMMAND_BAD. */
int command_complain(const char *identifier, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int command_complain_list(const char *identifier, const char *word, const char *format,
                          va_list list) __attribute__((format(printf, 3, 0)));

/* Opens the closed ones of the descriptors 0 to 2, so that no file gets their numbers and
 * the program's output. Reading and writing still fail. Call this first. */
void command_open_streams(void);

/* For commands that change something, to be called before the change: if the reader of
 * the output ends (a pipe to head, a tee after Ctrl-C), the command continues, and its
 * exit code reports only its work. Commands that only print are ended by SIGPIPE, and so
 * are programs started by this command: handlers do not survive exec. */
void command_outlive_reader(void);

/* Reports that standard output is lost, with the given errno; returns COMMAND_BAD. After
 * command_outlive_reader and if the reader has ended: COMMAND_GOOD without a message. */
int command_write_failed(int error);

/* Returns COMMAND_GOOD if all output was written. Call this last. */
int command_flush(void);

/* Prints "usage: <self> <arguments>". */
void command_usage(FILE *out, const char *arguments);

/* Prints the usage on standard error, with a reference to --help: command_wrong_usage
 * after a message of getopt, command_misused after the formatted text. Returns
 * COMMAND_WRONG_USAGE. */
int command_wrong_usage(const char *arguments);
int command_misused(const char *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Checks that there are least to most (-1: any number) arguments besides options. If not,
 * reports this and the usage. */
int command_count(const char *usage, int count, int least, int most);

/* Checks that no argument is empty, for example from an unset variable, in the same way.
 */
int command_names(const char *usage, int count, char **list);

/* Parses the value of an option that takes a number from 0 on. Reports other values and
 * the usage. */
int command_number(const char *usage, const char *option, const char *text, int *number);

/* Prints name and version. Returns an exit code. */
int command_version(void);

#endif
