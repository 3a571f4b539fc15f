/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_kill_jobstep: ends a job step, and nothing else of the job. */
#include "lib/tool.h"
#include "lib/tool_jobstep.h"
#include <errno.h>

int main(int argc, char **argv)
{
    const char *step = NULL;
    int seconds = 10;
    const tool_option options[] = {
        {'j', "jobStepId", "ID", "the job step, as an option", .text = &step},
        {'s', "seconds", "N", "seconds between SIGTERM and SIGKILL (default: 10)",
         .number = &seconds},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... [ID]",
        .about =
            "Ends the job step ID, as scr_get_jobstep_id prints it; the job continues.\n",
        .codes = "0 it has ended, or had already, 1 an error, 2 wrong usage.\n",
        .options = options,
        .most = 1};
    kvtree_error err = {""};
    tool_args args;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if ((step != NULL) == (args.count > 0))
        return tool_misused(&t, "one job step is needed");
    if (!step) step = args.list[0];
    if (tool_jobstep_check(step) != 0)
        return tool_misused(&t, "'%.60s' is not an id of a job step", step);
    command_outlive_reader();
    int rc = tool_jobstep_kill(step, seconds, &err);
    if (rc)
        tool_print_message(rc == -ESRCH ? TOOL_MSG_JOBSTEP_OVER
                                        : TOOL_MSG_JOBSTEP_NOT_ENDED,
                           "%s", err.text);
    return rc && rc != -ESRCH ? COMMAND_BAD : COMMAND_GOOD;
}
