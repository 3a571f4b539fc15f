/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_H
#define TOOL_H

/* Options, help, version and messages of all commands. A command is one call in main,
 * followed by its work:
 *
 *     int json = 0;
 *     const char *dir = NULL;
 *     const tool_option options[] = {
 *         {'d', "dir", "DIRECTORY", "the prefix directory", .text = &dir},
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
#include "common/message.h"

/* An option; exactly one of the last pointers is set. If an option is repeated, the last
 * value counts, except for joined. */
typedef struct tool_option {
    char letter;
    const char *name;  /* without dashes */
    const char *value; /* name of its value; NULL: the option has no value */
    const char *help;  /* lines, separated by newlines */
    int *flag;         /* set to 1 */
    const char **text; /* set to the value */
    char **joined;     /* set to all values, separated by blanks, to be freed */
    int *number;       /* set to the value, a number of at least 0 */
} tool_option;

/* Options of many commands. */
#define TOOL_FOLDER_OPTION(letter, name, to)                                             \
    {                                                                                    \
        letter, name, "DIRECTORY",                                                       \
            "prefix directory (default: SCR_PREFIX, or this one)", .text = (to)          \
    }
#define TOOL_PREFIX_OPTION(to) TOOL_FOLDER_OPTION('p', "prefix", to)
/* For commands that have had --dir since their first version. */
#define TOOL_DIR_OPTIONS(to)                                                             \
    TOOL_FOLDER_OPTION('d', "dir", to), TOOL_FOLDER_OPTION('p', "prefix", to)

/* Job scripts of SCR 3 use these options. */
#define TOOL_LAUNCHER_OPTION(to)                                                         \
    {                                                                                    \
        'j', "joblauncher", "NAME", "without effect, for scripts of SCR 3", .text = (to) \
    }
#define TOOL_VERBOSE_OPTION(to)                                                          \
    {                                                                                    \
        'v', "verbose", NULL, "without effect, for scripts of SCR 3", .flag = (to)       \
    }

typedef struct tool {
    const char *arguments;      /* "[OPTION]... [DIRECTORY]" */
    const char *about;          /* what the command does: lines, each with its newline */
    const char *codes;          /* exit codes, in the same form */
    const tool_option *options; /* ended by an element without a name */
    int least, most;            /* number of arguments that are not options; most -1: no
                                 * limit */
    int program;                /* 1: the first argument is a program, followed by its
                                 * arguments */
    const char **folder;        /* NULL, or set to the only argument; an option may set it
                                 * instead */
} tool;

/* Arguments that are not options. */
typedef struct tool_args {
    int count;
    char **list;
} tool_args;

/* Calls command_open_streams and parses all options, including --help and --version.
 * Returns -1 to continue; otherwise the exit code. */
int tool_start(const tool *t, int argc, char **argv, tool_args *args);

/* ---- messages ---- */

/* TOOL_MSG_<IDENTIFIER>: the messages of a run, with the numbers of scr_message, since
 * commands print these, too; and the messages of commands. */
#define MESSAGE(identifier, severity, meaning, cause, remedy) TOOL_MSG_##identifier,
typedef enum tool_message {
#include "report/messages.def"
/* clang-format off */
#include "lib/messages.def"
    /* clang-format on */
} tool_message;
#undef MESSAGE

extern const message_kind tool_messages[];

/* "warning: " or "", the prefix of the text. */
const char *tool_message_word(tool_message message);

/* tool_say(IDENTIFIER, "text, as for printf", ...) prints "<command>: <text>
 * [IDENTIFIER]" to standard error and quotes control characters. Returns COMMAND_BAD. */
#define tool_say(identifier, ...) tool_print_message(TOOL_MSG_##identifier, __VA_ARGS__)
int tool_print_message(tool_message message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets a function that is called before each message to clear the terminal; NULL:
 * none. */
void tool_set_hide(void (*hide)(void));

/* Reports a failed function with its error text; an exit code. */
#define tool_result(identifier, rc, err)                                                 \
    ((rc) ? tool_say(identifier, "%s", (err)->text) : COMMAND_GOOD)

#define tool_no_memory() tool_say(MEMORY_EXHAUSTED, "no memory")

/* Reports wrong usage and prints the usage of the command; returns
 * COMMAND_WRONG_USAGE. */
#define tool_misused(t, ...) command_misused((t)->arguments, __VA_ARGS__)

/* ---- output ---- */

/* Prints a text to standard output without a newline; control characters are quoted. */
void tool_print(const char *text);

/* Prints a text in lines of at most width columns, and a newline. The first line already
 * has `used` columns; the others begin with indent blanks. A newline in the text counts
 * as a blank, unless a blank, '[' or another newline follows it. */
void tool_print_wrapped(const char *text, int used, int indent, int width);

/* Flushes the output at the end of a command. Returns code, or COMMAND_BAD if output was
 * lost. */
int tool_finish(int code);

#endif
