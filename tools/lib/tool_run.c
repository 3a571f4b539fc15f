/* SPDX-License-Identifier: BSD-3-Clause */
/* Another program, with a time limit; see tool_run.h. */
#include "lib/tool_run.h"

#include "common/errtext.h"
#include "lib/tool_tasks.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct answer {
    int rc;
    char *output, *err;
} answer;

static void take(int task, const tool_end *end, void *arg)
{
    answer *a = arg;
    if (end->code == 0) a->output = strdup(end->output);
    if (end->code == 0)
        a->rc = a->output ? 0 : err_set(a->err, -ENOMEM, "no memory");
    else
        a->rc = err_set(a->err, end->code > 0 ? -EIO : end->code, "%s", end->text);
}

int tool_run(const char *const argv[], double seconds, char **output, char *err)
{
    const tool_task task = {argv, 0};
    const tool_limits limits = {.seconds = seconds, .bytes = TOOL_RUN_OUTPUT, .most = 1};
    answer a = {0, NULL, err};
    int rc = tool_tasks_run(&task, 1, &limits, take, &a, err);
    if (!rc) rc = a.rc;
    if (!rc)
        *output = a.output;
    else
        free(a.output);
    return rc;
}

static int is_program(const char *folder, size_t n, const char *program,
                      char path[PATH_MAX])
{
    struct stat st;
    int size =
        snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, folder, n ? "/" : "", program);
    return size > 0 && size < PATH_MAX && access(path, X_OK) == 0 &&
           stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

int tool_run_find(const char *program, char path[PATH_MAX])
{
    const char *folders = strchr(program, '/') ? NULL : getenv("PATH");
    if (!*program) return 0;
    if (!folders) return is_program("", 0, program, path);
    while (*folders) {
        size_t n = strcspn(folders, ":");
        if (is_program(folders, n, program, path)) return 1;
        folders += n + (folders[n] == ':');
    }
    return 0;
}

int tool_run_is_there(const char *program)
{
    char path[PATH_MAX];
    return tool_run_find(program, path);
}
