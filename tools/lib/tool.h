/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_H
#define TOOL_H

/* Options, help, version and messages of all commands. A command is one call in main,
 * followed by its work:
 *
 *     int json = 0;
 *     const char *dir = NULL;
 *     const tool_option options[] = {
 *         {'d', "dir", "FOLDER", "the prefix folder", .text = &dir},
 *         {'j', "json", NULL, "print JSON", .flag = &json},
 *         {0}};
 *     const tool t = {.arguments = "[OPTION]... ID", .about = ..., .codes = ...,
 *                     .options = options, .least = 1, .most = 1};
 *     tool_args args;
 *     int code = tool_start(&t, argc, argv, &args);
 *     if (code >= 0) return code;
 *
 * Long options may have one dash or two, as in earlier versions of SCR. Exit codes are
 * those of common/command.h, unless a command has more. */

#include "common/command.h"
#include "common/errtext.h"

/* An option; exactly one of the last pointers is set. When an option is repeated the last
 * value counts, except for joined. */
typedef struct tool_option {
    char letter;
    const char *name;  /* without its dashes */
    const char *value; /* name of its value; NULL: it has none */
    const char *help;  /* lines are separated by newlines */
    int *flag;         /* becomes 1 */
    const char **text; /* becomes the value */
    char **joined;     /* becomes all values, separated by blanks, to be freed */
    int *number;       /* the same, from 0 on */
} tool_option;

/* Options of many commands. */
#define TOOL_FOLDER_OPTION(letter, name, to)                                             \
    {                                                                                    \
        letter, name, "FOLDER", "the prefix folder (default: SCR_PREFIX, or this one)",  \
            .text = (to)                                                                 \
    }
#define TOOL_PREFIX_OPTION(to) TOOL_FOLDER_OPTION('p', "prefix", to)
#define TOOL_DIR_OPTION(to) TOOL_FOLDER_OPTION('d', "dir", to)

typedef struct tool {
    const char *arguments;      /* "[OPTION]... [FOLDER]" */
    const char *about;          /* what the command does: lines, each with its newline */
    const char *codes;          /* exit codes, in the same way */
    const tool_option *options; /* ended by one without a name */
    int least, most;            /* arguments that are no options; most -1: any number */
    int program;                /* 1: the first of them is a program with its arguments */
    const char **folder;        /* NULL, or set by the only argument; an option may set it
                                   instead */
} tool;

/* Arguments that are no options. */
typedef struct tool_args {
    int count;
    char **list;
} tool_args;

/* Calls command_open_streams and parses all options, also --help and --version. -1 to
 * continue; otherwise the exit code. */
int tool_start(const tool *t, int argc, char **argv, tool_args *args);

/* Reports wrong usage, and the usage of the command; COMMAND_WRONG_USAGE. */
int tool_misused(const tool *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints "<command>: <text>" to standard error, with control characters quoted.
 * COMMAND_BAD. */
int tool_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a text to standard output, quoted in the same way, without a newline. */
void tool_print(const char *text);

/* The end of a command: code, or COMMAND_BAD when output was lost. */
int tool_finish(int code);

#endif
