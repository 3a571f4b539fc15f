/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_nodes_file: prints how many nodes the last run used (SCR Developer Guide 1.2,
 * section 2.21). */
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "prefix/nodes.h"
#include <stdio.h>

int main(int argc, char **argv)
{
    const char *dir = NULL;
    const tool_option options[] = {TOOL_DIR_OPTIONS(&dir), {0}};
    const tool t = {.arguments = "[OPTION]... [DIRECTORY]",
                    .about = "Prints how many nodes the last run in DIRECTORY used.\n",
                    .codes =
                        "0 printed, 1 there was no run, or an error, 2 wrong usage.\n",
                    .options = options,
                    .most = 1,
                    .folder = &dir};
    kvtree_error err = {""};
    int nodes;
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    code = tool_prefix_open(&prefix, dir);
    if (code == COMMAND_GOOD && scr_nodes_read(prefix.dir, &nodes, &err) != 0) {
        code = tool_say(RUN_NODES_UNKNOWN, "%s: %s", prefix.path, err.text);
        tool_prefix_tell_unused(&prefix);
    } else if (code == COMMAND_GOOD)
        printf("%d\n", nodes);
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
