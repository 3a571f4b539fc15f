/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_prefix: prints the prefix directory (SCR Developer Guide 1.2, section 2.24.6). */
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include <stdio.h>

int main(int argc, char **argv)
{
    const tool_option options[] = {{0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about = "Prints the prefix directory, without links: SCR_PREFIX, as the "
                 "environment or a\nconfiguration file has it, else the "
                 "current directory.\n",
        .codes = "0 printed, 1 there is no such directory, or the configuration "
                 "has mistakes,\n2 wrong usage.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    code = tool_prefix_open(&prefix, NULL);
    if (code == COMMAND_GOOD) {
        tool_print(prefix.path);
        printf("\n");
    }
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
