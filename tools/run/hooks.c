/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of the site; see hooks.h. */
#include "run/hooks.h"

#include "lib/tool.h"
#include "lib/tool_run.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 60 /* seconds */ };

static void print_lines(char *text)
{
    char *line;
    while ((line = strsep(&text, "\n")) && (*line || text)) {
        tool_print(line);
        printf("\n");
    }
    fflush(stdout);
}

static int run_hook(const char *path, const char *first, const char *second)
{
    const char *const argv[] = {path, first, second, NULL};
    char err[ERRTEXT_SIZE] = "", *output = NULL;
    if (tool_run(argv, PATIENCE, &output, err) != 0) return tool_complain("%s", err);
    print_lines(output);
    free(output);
    return COMMAND_GOOD;
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
