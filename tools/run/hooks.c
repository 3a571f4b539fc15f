/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of the site; see hooks.h. */
#include "run/hooks.h"

#include "lib/tool.h"
#include "lib/tool_run.h"
#include "lib/tool_user.h"
#include "report/quote.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 60 /* seconds per program */, OUTPUT = 1 << 24 /* bytes of output */ };

static void hooks_print_lines(char *text)
{
    char *line;
    while ((line = strsep(&text, "\n")) && (*line || text)) {
        scr_quote_text(stderr, line, "");
        fputc('\n', stderr);
    }
}

/* Runs a program of the site. Its output is always shown, since a program that refuses
 * prints its reason. */
static int hooks_run(const char *path, const char *first, const char *second)
{
    const tool_limits limits = {.seconds = PATIENCE, .bytes = OUTPUT};
    char *program;
    kvtree_error err = {""};
    tool_answer a = {0};
    if (tool_user_program(path, &program, &err) != 0)
        return tool_say(HOOK_UNUSABLE, "SCR_SITE_HOOKS: %s", err.text);
    const char *const argv[] = {program, first, second, NULL};
    int code = COMMAND_GOOD;
    if (tool_run_answer(argv, &limits, &a, &err) != 0)
        code = tool_say(HOOK_FAILED, "%s", err.text);
    else
        hooks_print_lines(a.output);
    if (a.code) code = tool_say(HOOK_FAILED, "%s", a.err.text);
    free(a.output);
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
        return tool_say(HOOK_UNUSABLE, "SCR_SITE_HOOKS: %s", strerror(ENAMETOOLONG));
    /* a missing directory is a mistake; a program in it is optional */
    if (access(folder, X_OK) != 0)
        return tool_say(HOOK_UNUSABLE, "SCR_SITE_HOOKS=%s: %s", folder, strerror(errno));
    if (access(path, F_OK) != 0 && errno == ENOENT) return COMMAND_GOOD;
    if (setenv("SCR_PREFIX", prefix->path, 1) != 0) return tool_no_memory();
    return hooks_run(path, first, second);
}
