/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_retries_halt: tests whether a job script should start the program again (SCR
 * Developer Guide 1.2, section 2.25.4). */
#include "halt/halt.h"
#include "lib/tool.h"
#include "lib/tool_halt.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { GO_ON = 1, UNKNOWN = 3 }; /* exit codes besides 0, halt */

typedef struct request {
    const char *dir;
    int quiet;
} request;

/* Prints the remedy to standard error, since scripts read the reason from standard
 * output. */
static void retries_halt_report_remedy(const tool_prefix *prefix, const kvtree *halt,
                                       const scr_halt_end *end)
{
    char *text = tool_halt_remedy(halt, end, time(NULL), prefix->path);
    if (text) tool_say(HALT_REMEDY, "%s", text);
    free(text);
}

static int retries_halt_check(const tool_prefix *prefix, const request *r)
{
    char reason[SCR_HALT_REASON_SIZE];
    scr_halt_end end = {0, NULL};
    kvtree *halt = kvtree_new();
    int found = tool_halt_find(prefix, halt, &end, reason);
    if (found == 1 && !r->quiet) {
        tool_print(reason);
        printf("\n");
        retries_halt_report_remedy(prefix, halt, &end);
    }
    kvtree_delete(&halt);
    return found < 0 ? (int)UNKNOWN : found ? COMMAND_GOOD : (int)GO_ON;
}

int main(int argc, char **argv)
{
    request r = {.dir = NULL};
    const tool_option options[] = {
        TOOL_DIR_OPTIONS(&r.dir),
        {'q', "quiet", NULL, "print neither the reason nor what to do", .flag = &r.quiet},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... [DIRECTORY]",
        .about =
            "Tests whether the run in DIRECTORY should end, and no other one start: a "
            "condition in\nthe halt file holds. Prints the reason then, and how to "
            "continue the job to "
            "standard\nerror.\n",
        .codes = "0 it should end, 1 it may continue, 2 wrong usage, 3 unknown\n"
                 "(the halt file is damaged, or the configuration has mistakes).\n",
        .options = options,
        .most = 1,
        .folder = &r.dir};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    code = tool_prefix_configure(&prefix, r.dir);
    code = code == COMMAND_GOOD ? retries_halt_check(&prefix, &r) : UNKNOWN;
    tool_prefix_close(&prefix);
    /* if the reason could not be printed, the run must not continue */
    return command_flush() == COMMAND_GOOD || code != COMMAND_GOOD ? code : UNKNOWN;
}
