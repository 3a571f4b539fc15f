/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_prerun: prepares an allocation (SCR Developer Guide 1.2, section 2.25.3). */
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "run/prerun.h"

static int prerun_work(const tool_prefix *prefix)
{
    scr_problems problems = {.count = 0};
    int enabled = 1;
    scr_config_switch(&prefix->config, "SCR_ENABLE", &enabled, &problems);
    int code = tool_tell_problems(&problems);
    if (code != COMMAND_GOOD || !enabled) return code;
    code = prerun_test_programs(prefix, NULL);
    return code == COMMAND_GOOD ? prerun_prefix(prefix) : code;
}

int main(int argc, char **argv)
{
    const char *dir = NULL;
    int verbose = 0;
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&dir), TOOL_VERBOSE_OPTION(&verbose), {0}};
    const tool t = {.arguments = "[OPTION]... [DIRECTORY]",
                    .about = "Prepares an allocation for runs with SCR in DIRECTORY. "
                             "scr_run does so itself.\n",
                    .codes = "0 it is ready, 1 it is not, or an error, 2 wrong usage.\n",
                    .options = options,
                    .most = 1,
                    .folder = &dir};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    command_outlive_reader();
    code = tool_prefix_configure(&prefix, dir);
    if (code == COMMAND_GOOD) code = prerun_work(&prefix);
    tool_prefix_close(&prefix);
    return code;
}
