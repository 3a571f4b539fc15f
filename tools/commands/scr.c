/* SPDX-License-Identifier: BSD-3-Clause */
/* scr: one name for the commands that people use. Each verb in a table is another command
 * in this directory, possibly with a first option, and replaces this process. Therefore a
 * verb has the options, the exit codes and the user of its command. */
#include "config/problems.h"
#include "lib/tool.h"
#include "lib/tool_remote.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct verb {
    const char *name;
    const char *command;
    const char *option; /* the first option, or NULL */
    const char *value;  /* name of the option's value, which is the first argument; or
                         * NULL */
    const char *about;
} verb;

static const verb verbs[] = {
    {"run", "scr_run", NULL, NULL, "run a program through failures"},
    {"simulate", "scr_run", "--simulate", "NODESxRANKS",
     "the same on simulated nodes of this machine"},
    {"status", "scr_status", NULL, NULL, "what is going on in the prefix directory"},
    {"top", "scr_status", "--watch", NULL, "the same, refreshed until Ctrl-C"},
    {"report", "scr_report", NULL, NULL, "what runs did, and what failures cost"},
    {"list", "scr_index", "--list", NULL, "list the datasets on the prefix directory"},
    {"verify", "scr_index", "--verify", NULL, "read and check their files"},
    {"restore", "scr_index", "--current", "NAME", "let the next run begin with NAME"},
    {"import", "scr_index", "--import", "DIR", "make a dataset of files in DIR"},
    {"extract", "scr_extract", NULL, NULL, "extract files of a dataset from containers"},
    {"save", "scr_postrun", NULL, NULL, "save what is only in the caches of a job"},
    {"inspect", "scr_inspect", NULL, NULL, "list the datasets in the caches of nodes"},
    {"halt", "scr_halt", NULL, NULL, "end the run, now or later"},
    {"interval", "scr_ckpt_interval", NULL, NULL,
     "how long to compute between checkpoints"},
    {"config", "scr_params", NULL, NULL, "parameters, their values and mistakes"},
    {"doctor", "scr_doctor", NULL, NULL, "check a site before the first run"},
    {"nodes", "scr_list_down_nodes", NULL, NULL, "which nodes cannot be used, and why"},
    {"test-system", "scr_test_system", NULL, NULL, "whether jobs survive failures here"},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static const verb *scr_find_verb(const char *name)
{
    for (int i = 0; i < VERBS; i++)
        if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
    return NULL;
}

/* Returns the text of --help, to be freed; NULL without memory. */
static char *scr_describe(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    fprintf(out,
            "Calls the command for VERB. Without one, prints what is going on in the "
            "prefix\ndirectory, and the three most likely next commands.\n\n");
    for (int i = 0; i < VERBS; i++)
        fprintf(out, "  %-14s%s\n", verbs[i].name, verbs[i].about);
    fprintf(out, "\nscr VERB --help, or scr help VERB, describes a verb.\n");
    if (fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

static bool scr_asks_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-help") == 0 ||
           strcmp(argument, "-h") == 0;
}

/* Whether the first argument of a verb with a value may stand without the value. */
static bool scr_asks_only(const char *argument)
{
    return scr_asks_help(argument) || strcmp(argument, "--version") == 0 ||
           strcmp(argument, "-version") == 0 || strcmp(argument, "-V") == 0;
}

/* Printed before the help of a command that does more than the verb. */
static void scr_explain(const verb *v)
{
    const char *blank = v->value ? " " : "", *value = v->value ? v->value : "";
    printf("scr %s%s%s is %s %s%s%s.\n\n", v->name, blank, value, v->command, v->option,
           blank, value);
    fflush(stdout); /* the command reports a failure of standard output */
}

/* Executes the command. If that fails: an exit code, after a message. */
static int scr_execute(const verb *v, char **arguments, int count)
{
    int n = 0;
    char self[64], *path = tool_remote_command(v->command);
    char **argv = calloc((size_t)count + 3, sizeof *argv);
    if (!path || !argv) {
        free(path);
        free(argv);
        return tool_no_memory();
    }
    snprintf(self, sizeof self, "scr%s%s", v->name ? " " : "", v->name ? v->name : "");
    argv[n++] = self;
    bool bare = v->value && scr_asks_only(arguments[0]);
    if (v->option && !bare) argv[n++] = (char *)v->option;
    for (int i = 0; i < count; i++)
        argv[n++] = arguments[i];
    if (v->name && v->option && count > 0 && scr_asks_help(arguments[0])) scr_explain(v);
    /* a name without a slash would be any program of that name in PATH */
    if (strchr(path, '/')) {
        execv(path, argv);
        tool_say(PROGRAM_MISSING, "%s: %s", path, strerror(errno));
    } else {
        tool_say(PROGRAM_MISSING,
                 "%s is not beside this command, or others can change it", v->command);
    }
    free(path);
    free(argv);
    return COMMAND_BAD;
}

static int scr_miss_verb(const tool *t, const char *name)
{
    scr_nearest nearest = {.name = name};
    for (int i = 0; i < VERBS; i++)
        scr_nearest_try(&nearest, verbs[i].name);
    return tool_misused(t, "there is no verb '%s'; '%s' is the most similar one", name,
                        nearest.best);
}

/* Handles scr help [VERB]. */
static int scr_help(const tool *t, const tool_args *args)
{
    char help[] = "--help", *ask[] = {help};
    const verb self = {NULL, "scr", NULL, NULL, NULL};
    const verb *v = args->count > 1 ? scr_find_verb(args->list[1]) : &self;
    return v ? scr_execute(v, ask, 1) : scr_miss_verb(t, args->list[1]);
}

static int scr_call(const tool *t, const tool_args *args)
{
    static const verb bare = {"status", "scr_status", "--next", NULL, NULL};
    if (args->count == 0) return scr_execute(&bare, NULL, 0);
    if (strcmp(args->list[0], "help") == 0) return scr_help(t, args);
    const verb *v = scr_find_verb(args->list[0]);
    if (!v) return scr_miss_verb(t, args->list[0]);
    if (v->value &&
        (args->count < 2 || (args->list[1][0] == '-' && !scr_asks_only(args->list[1]))))
        return tool_misused(t, "%s needs %s, before its options: scr %s %s [OPTION]...",
                            v->name, v->value, v->name, v->value);
    return scr_execute(v, args->list + 1, args->count - 1);
}

int main(int argc, char **argv)
{
    const char *dir = NULL;
    const tool_option options[] = {TOOL_PREFIX_OPTION(&dir), {0}};
    char *about = scr_describe();
    const tool t = {.arguments = "[OPTION]... [VERB [ARGUMENT]...]",
                    .about = about ? about : "",
                    .codes =
                        "that of the command; 1 it cannot be executed, 2 wrong usage.\n",
                    .options = options,
                    .most = -1,
                    .program = 1};
    tool_args args;
    int code = about ? tool_start(&t, argc, argv, &args) : tool_no_memory();
    if (code < 0 && dir && !*dir) code = tool_misused(&t, "--prefix: an empty name");
    if (code < 0 && dir && setenv("SCR_PREFIX", dir, 1) != 0) code = tool_no_memory();
    if (code < 0) code = scr_call(&t, &args);
    free(about);
    return code;
}
