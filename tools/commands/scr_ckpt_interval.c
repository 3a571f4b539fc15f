/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_ckpt_interval: computes the time between two checkpoints from the log of earlier
 * runs, or from numbers (SCR Developer Guide 1.2, section 2.14). */
#include "common/number.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "lib/tool_table.h"
#include "plan/cadence.h"
#include "prefix/nodes.h"
#include "report/history.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct request {
    const char *dir, *cost_text, *mtbf_text;
    int nodes, json;
    double cost, mtbf; /* seconds; 0: not given */
} request;

typedef struct findings {
    scr_history history;
    int nodes;
    double cost, mtbf;
} findings;

/* ---- the log ---- */

/* Completes the findings from the log; an exit code. */
static int ckpt_interval_read_log(const tool_prefix *prefix, findings *f)
{
    kvtree_error err = {""};
    int64_t now = (int64_t)time(NULL) * 1000000;
    int rc = scr_history_read(prefix->dir, NULL, now, &f->history, &err);
    if (rc && rc != -ENOENT) return tool_say(LOG_UNREADABLE, "%s", err.text);
    if (f->cost <= 0 && f->history.ckpts > 0)
        f->cost = f->history.ckpt_seconds / f->history.ckpts;
    if (f->cost <= 0)
        return tool_say(LOG_WITHOUT_CHECKPOINT, "%s checkpoint: --cost is needed",
                        rc ? "there is no log of a" : "the log has no");
    if (!f->nodes && scr_nodes_read(prefix->dir, &f->nodes, &err) != 0) f->nodes = 1;
    if (f->mtbf <= 0) f->mtbf = scr_history_mtbf(&f->history, f->nodes, 0);
    return COMMAND_GOOD;
}

/* ---- output ---- */

static int ckpt_interval_print(const findings *f, int json)
{
    static const tool_column columns[] = {
        {"interval", "seconds between checkpoints", TOOL_NUMBER},
        {"young", "the same by Young's formula", TOOL_NUMBER},
        {"cost", "seconds that a checkpoint takes", TOOL_NUMBER},
        {"mtbf", "seconds between failures", TOOL_NUMBER},
        {"runs", "runs in the log", TOOL_NUMBER},
        {"interrupted", "of them interrupted", TOOL_NUMBER},
        {"nodes", "nodes", TOOL_NUMBER}};
    tool_table *table = tool_table_new(columns, 7);
    tool_table_real(table, scr_cadence_daly(f->cost, f->mtbf));
    tool_table_real(table, scr_cadence_young(f->cost, f->mtbf));
    tool_table_real(table, f->cost);
    tool_table_real(table, f->mtbf);
    if (f->nodes) {
        tool_table_number(table, f->history.runs);
        tool_table_number(table, f->history.interrupted);
        tool_table_number(table, f->nodes);
    } else {
        for (int i = 0; i < 3; i++)
            tool_table_text(table, NULL);
    }
    return tool_table_print(table, json ? TOOL_JSON : TOOL_LINES);
}

/* ---- arguments ---- */

static int ckpt_interval_parse_seconds(const tool *t, const char *text, double *seconds)
{
    int64_t whole;
    if (!text) return -1;
    if (number_double(text, seconds) == 0 && *seconds > 0 && *seconds < 1e12) return -1;
    if (scr_parse_seconds(text, &whole) != 0 || whole <= 0)
        return tool_misused(t, "'%s' is not a time, such as 12.5, 90, 30min or 2d", text);
    *seconds = (double)whole;
    return -1;
}

static int ckpt_interval_run(const request *r)
{
    findings f = {.nodes = r->nodes, .cost = r->cost, .mtbf = r->mtbf};
    tool_prefix prefix;
    if (r->cost > 0 && r->mtbf > 0) {
        f.nodes = 0;
        return ckpt_interval_print(&f, r->json);
    }
    int code = tool_prefix_open(&prefix, r->dir);
    if (code == COMMAND_GOOD) code = ckpt_interval_read_log(&prefix, &f);
    if (code == COMMAND_GOOD) code = ckpt_interval_print(&f, r->json);
    tool_prefix_close(&prefix);
    return code;
}

int main(int argc, char **argv)
{
    request r = {.dir = NULL};
    const tool_option options[] = {
        TOOL_DIR_OPTIONS(&r.dir),
        {'c', "cost", "TIME", "what a checkpoint takes (12.5, 90, 2min)",
         .text = &r.cost_text},
        {'m', "mtbf", "TIME", "mean time between failures of the whole job (36h)",
         .text = &r.mtbf_text},
        {'n', "nodes", "N", "nodes of the next run (default: those of the last one)",
         .number = &r.nodes},
        {'j', "json", NULL, "print a JSON object", .flag = &r.json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... [DIRECTORY]",
        .about =
            "Prints how long to compute between two checkpoints, so that checkpoints "
            "and\nfailures together cost the least time. What is not given comes from "
            "the log\nof earlier runs in the prefix directory DIRECTORY.\n",
        .codes = "0 done, 1 an error, or nothing is known, 2 wrong usage.\n",
        .options = options,
        .most = 1,
        .folder = &r.dir};
    tool_args args;
    int code = tool_start(&t, argc, argv, &args);
    if (code < 0) code = ckpt_interval_parse_seconds(&t, r.cost_text, &r.cost);
    if (code < 0) code = ckpt_interval_parse_seconds(&t, r.mtbf_text, &r.mtbf);
    return code >= 0 ? code : tool_finish(ckpt_interval_run(&r));
}
