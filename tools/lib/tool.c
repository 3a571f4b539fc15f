/* SPDX-License-Identifier: BSD-3-Clause */
/* Options, help and messages of all commands; see tool.h. */
#include "lib/tool.h"

#include "report/quote.h"
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 40, HELP_COLUMN = 26, HELP_WIDTH = 80 };

/* ---- text ---- */

const message_kind tool_messages[] = {
#define MESSAGE(identifier, severity, meaning, cause, remedy)                            \
    {#identifier, MESSAGE_##severity},
#include "report/messages.def"
/* clang-format off */
#include "lib/messages.def"
    /* clang-format on */
};

const char *tool_message_word(tool_message message)
{
    const message_kind *kind = &tool_messages[message];
    return kind->severity == MESSAGE_ERROR ? "" : message_word(kind);
}

/* Global, as standard error belongs to the whole process, too. */
static void (*tool_hides)(void);

void tool_set_hide(void (*hide)(void))
{
    tool_hides = hide;
}

int tool_print_message(tool_message message, const char *format, ...)
{
    va_list list;
    if (tool_hides) tool_hides();
    va_start(list, format);
    command_complain_list(tool_messages[message].identifier, tool_message_word(message),
                          format, list);
    va_end(list);
    return COMMAND_BAD;
}

void tool_print(const char *text)
{
    scr_quote_text(stdout, text, "");
}

int tool_finish(int code)
{
    int flushed = command_flush();
    return code == COMMAND_GOOD ? flushed : code;
}

/* ---- help ---- */

void tool_print_wrapped(const char *text, int used, int indent, int width)
{
    int blanks = 0;
    for (int n; *text; text += n) {
        n = (int)strcspn(text, " \n");
        if (n > 0) {
            const bool fits = used <= indent || used + blanks + n <= width;
            if (!fits) {
                printf("\n");
                used = blanks = 0;
            }
            used += printf("%*s%.*s", blanks + (used ? 0 : indent), "", n, text);
            blanks = 0;
            continue;
        }
        n = 1;
        blanks++;
        if (*text == ' ' || !text[1] || !strchr(" [\n", text[1])) continue;
        printf(text[1] == '\n' ? "\n\n" : "\n");
        n += text[1] == '\n';
        used = blanks = 0;
    }
    printf("\n");
}

static void tool_print_option(char letter, const char *name, const char *value,
                              const char *help)
{
    int width =
        printf("  -%c, --%s%s%s", letter, name, value ? " " : "", value ? value : "");
    if (width + 2 > HELP_COLUMN) {
        printf("\n");
        width = 0;
    }
    printf("%*s", HELP_COLUMN - width, "");
    tool_print_wrapped(help, HELP_COLUMN, HELP_COLUMN, HELP_WIDTH);
}

static int tool_print_help(const tool *t)
{
    command_usage(stdout, t->arguments);
    tool_print_wrapped(t->about, 0, 0, HELP_WIDTH);
    printf("\n");
    for (const tool_option *o = t->options; o->name; o++)
        tool_print_option(o->letter, o->name, o->value, o->help);
    tool_print_option('h', "help", NULL, "print this text");
    tool_print_option('V', "version", NULL, "print the version");
    tool_print_wrapped(t->codes, printf("\nExit code: ") - 1, 0, HELP_WIDTH);
    return command_flush();
}

/* ---- options ---- */

/* Translates the options for getopt; returns their number. */
static int tool_translate_options(const tool *t, struct option longs[], char *shorts)
{
    int n = 0;
    for (const tool_option *o = t->options; o->name && n < OPTIONS_MAX; o++, n++) {
        longs[n] = (struct option){o->name, o->value ? required_argument : no_argument,
                                   NULL, o->letter};
        *shorts++ = o->letter;
        if (o->value) *shorts++ = ':';
    }
    longs[n] = (struct option){"help", no_argument, NULL, 'h'};
    longs[n + 1] = (struct option){"version", no_argument, NULL, 'V'};
    longs[n + 2] = (struct option){NULL, 0, NULL, 0};
    strcpy(shorts, "hV");
    return n;
}

/* 0 or -ENOMEM. */
static int tool_join_values(char **all, const char *value)
{
    char *text;
    const char *before = *all ? *all : "";
    if (asprintf(&text, "%s%s%s", before, *before ? " " : "", value) < 0) return -ENOMEM;
    free(*all);
    *all = text;
    return 0;
}

/* -1 to continue, or an exit code. */
static int tool_take_option(const tool *t, int letter)
{
    const tool_option *o = t->options;
    if (letter == 'h') return tool_print_help(t);
    if (letter == 'V') return command_version();
    while (o->name && o->letter != letter)
        o++;
    if (!o->name) return command_wrong_usage(t->arguments);
    if (o->flag) *o->flag = 1;
    if (o->text) *o->text = optarg;
    if (o->joined && tool_join_values(o->joined, optarg) != 0) return tool_no_memory();
    if (o->number) {
        char name[64];
        snprintf(name, sizeof name, "--%s", o->name);
        if (command_number(t->arguments, name, optarg, o->number) != COMMAND_GOOD)
            return COMMAND_WRONG_USAGE;
    }
    return -1;
}

static bool tool_has_option(const tool *t, const char *name)
{
    for (const tool_option *o = t->options; o->name; o++)
        if (strcmp(o->name, name) == 0) return true;
    return false;
}

/* -1 to continue, or an exit code. */
static int tool_check_count(const tool *t, const tool_args *args)
{
    if (args->count < t->least)
        return command_count(t->arguments, args->count, t->least, t->most);
    if (t->most < 0 || args->count <= t->most) return -1;
    const char *first = args->list[t->most];
    if (t->most == 0)
        return tool_misused(t, "'%s': only options are taken%s", first,
                            tool_has_option(t, "prefix")
                                ? "; --prefix DIRECTORY names the prefix directory"
                                : "");
    return tool_misused(t, "'%s' is one argument too many", first);
}

static int tool_take_folder(const tool *t, const tool_args *args)
{
    if (!t->folder || args->count == 0) return -1;
    if (*t->folder) return tool_misused(t, "two prefix directories");
    *t->folder = args->list[0];
    return -1;
}

int tool_start(const tool *t, int argc, char **argv, tool_args *args)
{
    struct option longs[OPTIONS_MAX + 3];
    char shorts[2 * OPTIONS_MAX + 4] = "+";
    command_open_streams();
    tool_translate_options(t, longs, shorts + 1);
    /* with "+", getopt stops at the first argument */
    const char *letters = t->program ? shorts : shorts + 1;
    for (int c; (c = getopt_long_only(argc, argv, letters, longs, NULL)) != -1;) {
        int code = tool_take_option(t, c);
        if (code >= 0) return code;
    }
    args->count = argc - optind;
    args->list = argv + optind;
    int code = tool_check_count(t, args);
    return code >= 0 ? code : tool_take_folder(t, args);
}
