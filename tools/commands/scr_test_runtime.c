/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_test_runtime: tests whether the programs exist that runs need (SCR Developer Guide
 * 1.2, section 2.25.2). */
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "run/prerun.h"

int main(int argc, char **argv)
{
    const char *dir = NULL, *launcher = NULL;
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&dir),
        {'l', "launcher", "NAME",
         "of the launcher (default: SCR_LAUNCHER, or what is\nthere)", .text = &launcher},
        {0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about = "Tells whether the programs are there that scr_run needs: SCR's own, "
                 "those by which\nnodes are reached, and a launcher. Says which are "
                 "not.\n",
        .codes = "0 they are, 1 some are not, or an error, 2 wrong usage.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    code = tool_prefix_configure(&prefix, dir);
    if (code == COMMAND_GOOD) code = prerun_test_programs(&prefix, launcher);
    tool_prefix_close(&prefix);
    return code;
}
