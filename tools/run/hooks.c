/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of the site; see hooks.h. */
#include "run/hooks.h"

#include "lib/tool.h"
#include "lib/tool_tasks.h"
#include "lib/tool_user.h"
#include "report/quote.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 60 /* seconds */, OUTPUT = 1 << 24 /* bytes that one may say */ };

typedef struct answer {
    int code;
    char *said, text[ERRTEXT_SIZE];
} answer;

static void take(int task, const tool_end *end, void *arg)
{
    answer *a = arg;
    a->code = end->code;
    a->said = strdup(end->output);
    snprintf(a->text, sizeof a->text, "%s", end->text);
}

static void print_lines(char *text)
{
    char *line;
    while ((line = strsep(&text, "\n")) && (*line || text)) {
        scr_quote_text(stderr, line, "");
        fputc('\n', stderr);
    }
}

/* What it says is shown in any case: one that says no says why. */
static int execute(const char *path, const char *first, const char *second)
{
    const char *const argv[] = {path, first, second, NULL};
    const tool_task task = {argv, 0};
    const tool_limits limits = {.seconds = PATIENCE, .bytes = OUTPUT, .most = 1};
    char err[ERRTEXT_SIZE] = "";
    answer a = {.code = 0};
    if (tool_tasks_run(&task, 1, &limits, take, &a, err) != 0)
        return tool_complain("%s", err);
    if (!a.said) return tool_complain("no memory");
    print_lines(a.said);
    free(a.said);
    return a.code ? tool_complain("%s", a.text) : COMMAND_GOOD;
}

static int run_hook(const char *path, const char *first, const char *second)
{
    char err[ERRTEXT_SIZE] = "", *program;
    if (tool_user_program(path, &program, err) != 0)
        return tool_complain("SCR_SITE_HOOKS: %s", err);
    int code = execute(program, first, second);
    free(program);
    return code;
}

int hooks_call(const tool_prefix *prefix, const char *name, const char *first,
               const char *second)
{
    const char *folder = scr_config_get(&prefix->config, "SCR_SITE_HOOKS", NULL);
    char path[PATH_MAX];
    if (!folder || !*folder) return COMMAND_GOOD;
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return tool_complain("SCR_SITE_HOOKS=%.60s...: %s", folder,
                             strerror(ENAMETOOLONG));
    /* a folder that is missing is a mistake; a program in it need not be there */
    if (access(folder, X_OK) != 0)
        return tool_complain("SCR_SITE_HOOKS=%s: %s", folder, strerror(errno));
    if (access(path, F_OK) != 0 && errno == ENOENT) return COMMAND_GOOD;
    if (setenv("SCR_PREFIX", prefix->path, 1) != 0) return tool_complain("no memory");
    return run_hook(path, first, second);
}
