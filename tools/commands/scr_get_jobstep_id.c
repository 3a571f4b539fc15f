/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_get_jobstep_id: prints the job step of a launcher (SCR Developer Guide 1.2, section
 * 2.25.1). */
#include "common/number.h"
#include "lib/tool.h"
#include "lib/tool_jobstep.h"
#include <limits.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const tool_option options[] = {{0}};
    const tool t = {
        .arguments = "[OPTION]... PID",
        .about = "Prints the id of the job step that the launcher of process id PID "
                 "started, for\nscr_kill_jobstep.\n",
        .codes =
            "0 printed, 1 there is none (-1 is printed), or an error, 2 wrong usage.\n",
        .options = options,
        .least = 1,
        .most = 1};
    char step[TOOL_JOBSTEP_SIZE];
    kvtree_error err = {""};
    int64_t pid;
    tool_args args;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if (number_int64(args.list[0], &pid) != 0 || pid < 2 || pid > INT_MAX)
        return tool_misused(&t, "'%s' is not a process id", args.list[0]);
    code = COMMAND_GOOD;
    if (tool_jobstep_find((pid_t)pid, step, &err) != 0) {
        code = tool_say(JOBSTEP_UNKNOWN, "%s", err.text);
        snprintf(step, sizeof step, "-1");
    }
    printf("%s\n", step);
    return tool_finish(code);
}
