/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_H
#define TOOL_H

/* What all commands share: their options and what comes out of them, help and version,
 * and complaints. A command is one call in main, and then work:
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
 * Long options may have one dash or two, as the commands of earlier versions of SCR took
 * them. Exit codes are those of common/command.h, unless a command says more. */

#include "common/command.h"
#include "common/errtext.h"

/* An option; exactly one of the pointers at its end is set. Where an option is given more
 * than once the last value counts, but for joined. */
typedef struct tool_option {
    char letter;
    const char *name;  /* without its dashes */
    const char *value; /* what its value is called; NULL: it has none */
    const char *help;  /* lines are separated by newlines */
    int *flag;         /* becomes 1 */
    const char **text; /* becomes the value */
    char **joined;     /* gets all values, with blanks between them, to be freed */
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
    int program; /* 1: the first of them is a program, and what follows is for it */
} tool;

/* Arguments that are no options. */
typedef struct tool_args {
    int count;
    char **list;
} tool_args;

/* Calls command_open_streams, and takes all options, also --help and --version, which
 * every command has. -1 to go on; otherwise the exit code. */
int tool_start(const tool *t, int argc, char **argv, tool_args *args);

/* Says what is wrong, and how the command is used; COMMAND_WRONG_USAGE. */
int tool_misused(const tool *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For commands whose one argument is a folder that an option may name as well. -1 to go
 * on, with *folder left alone where there is no argument; otherwise an exit code. */
int tool_one_folder(const tool *t, const tool_args *args, const char **folder);

/* Prints "<command>: <text>" to standard error. Nothing in the text moves the cursor,
 * whatever it was made of. COMMAND_BAD. */
int tool_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a text to standard output, in the same way; no newline. */
void tool_print(const char *text);

/* The end of a command: code, or COMMAND_BAD when output was lost. */
int tool_finish(int code);

#endif
