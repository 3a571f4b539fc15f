/* SPDX-License-Identifier: BSD-3-Clause */
/* One other program, with a time limit; see tool_run.h. */
#include "lib/tool_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void run_keep(int task, const tool_end *end, void *arg)
{
    tool_answer *a = arg;
    (void)task;
    a->code = end->code;
    a->output = strdup(end->output);
    snprintf(a->err.text, sizeof a->err.text, "%s", end->text);
}

int tool_run_answer(const char *const argv[], const tool_limits *limits,
                    tool_answer *answer, kvtree_error *err)
{
    tool_limits one = *limits;
    one.most = 1;
    *answer = (tool_answer){0};
    int rc = tool_process_run(&argv, 1, &one, run_keep, answer, err);
    return rc || answer->output ? rc : err_set(err, -ENOMEM, "no memory");
}

int tool_run(const char *const argv[], double seconds, char **output, kvtree_error *err)
{
    const tool_limits limits = {.seconds = seconds, .bytes = TOOL_RUN_OUTPUT};
    tool_answer a;
    int rc = tool_run_answer(argv, &limits, &a, err);
    if (!rc && a.code) rc = err_set(err, a.code > 0 ? -EIO : a.code, "%s", a.err.text);
    if (rc)
        free(a.output);
    else
        *output = a.output;
    return rc;
}

static bool run_is_program(const char *folder, size_t n, const char *program,
                           char path[PATH_MAX])
{
    struct stat st;
    int size =
        snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, folder, n ? "/" : "", program);
    return size > 0 && size < PATH_MAX && access(path, X_OK) == 0 &&
           stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool tool_run_find(const char *program, char path[PATH_MAX])
{
    const char *folders = strchr(program, '/') ? NULL : getenv("PATH");
    if (!*program) return false;
    if (!folders) return run_is_program("", 0, program, path);
    while (*folders) {
        size_t n = strcspn(folders, ":");
        if (run_is_program(folders, n, program, path)) return true;
        folders += n + (folders[n] == ':');
    }
    return false;
}

bool tool_run_is_there(const char *program)
{
    char path[PATH_MAX];
    return tool_run_find(program, path);
}
