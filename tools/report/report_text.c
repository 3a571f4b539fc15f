/* SPDX-License-Identifier: BSD-3-Clause */
/* The report as text and as JSON; see report.h. */
#include "lib/tool.h"
#include "lib/tool_table.h"
#include "lib/tool_time.h"
#include "report/report.h"
#include "report/status.h"
#include <string.h>

static const tool_column summary_columns[] = {
    {"kind", NULL, TOOL_TEXT},
    {"prefix", "prefix directory", TOOL_TEXT},
    {"runs", "runs", TOOL_NUMBER},
    {"finished", "of them finished", TOOL_NUMBER},
    {"halted", "halted", TOOL_NUMBER},
    {"interrupted", "interrupted", TOOL_NUMBER},
    {"nodes_lost", "nodes lost", TOOL_NUMBER},
    {"checkpoints", "checkpoints", TOOL_NUMBER},
    {"total", "total seconds, also between runs", TOOL_NUMBER},
    {"compute", "useful computing", TOOL_NUMBER},
    {"lost", "lost computing", TOOL_NUMBER},
    {"output", "writing to the cache", TOOL_NUMBER},
    {"flush", "waiting for flushes", TOOL_NUMBER},
    {"restart", "reading checkpoints", TOOL_NUMBER},
    {"start", "starting", TOOL_NUMBER},
    {"down", "down after interruptions", TOOL_NUMBER},
    {"efficiency", "efficiency in percent", TOOL_NUMBER},
    {"mtbf", "mean time between failures, s", TOOL_NUMBER},
    {"cost", "mean cost of a checkpoint, s", TOOL_NUMBER},
    {"interval", "mean interval between checkpoints, s", TOOL_NUMBER},
    {"best_interval", "best interval, s", TOOL_NUMBER},
    {"saved", "savings by the best interval, s (estimate)", TOOL_NUMBER},
};
enum { SUMMARY = sizeof summary_columns / sizeof *summary_columns };

static const tool_column level_columns[] = {
    {"kind", NULL, TOOL_TEXT},         {"level", "LEVEL", TOOL_TEXT},
    {"count", "COUNT", TOOL_NUMBER},   {"failed", "FAILED", TOOL_NUMBER},
    {"bytes", "BYTES", TOOL_NUMBER},   {"seconds", "SECONDS", TOOL_NUMBER},
    {"mean", "B/s", TOOL_NUMBER},      {"least", "MIN", TOOL_NUMBER},
    {"median", "MEDIAN", TOOL_NUMBER}, {"most", "MAX", TOOL_NUMBER},
};
enum { LEVEL = sizeof level_columns / sizeof *level_columns };

static const tool_column run_columns[] = {
    {"kind", NULL, TOOL_TEXT},           {"run", "RUN", TOOL_TEXT},
    {"job_id", NULL, TOOL_TEXT},         {"started", "BEGAN", TOOL_TEXT},
    {"start", NULL, TOOL_NUMBER},        {"end", NULL, TOOL_NUMBER},
    {"seconds", "SECONDS", TOOL_NUMBER}, {"nodes", NULL, TOOL_NUMBER},
    {"ranks", NULL, TOOL_NUMBER},        {"checkpoints", "CKPTS", TOOL_NUMBER},
    {"ended", "END", TOOL_TEXT},
};
enum { RUN = sizeof run_columns / sizeof *run_columns };

static const tool_column span_columns[] = {{"kind", NULL, TOOL_TEXT},
                                           {"run", NULL, TOOL_TEXT},
                                           {"what", NULL, TOOL_TEXT},
                                           {"from", NULL, TOOL_NUMBER},
                                           {"to", NULL, TOOL_NUMBER}};

static void cell_real(tool_table *t, double number)
{
    if (number < 0)
        tool_table_text(t, NULL);
    else
        tool_table_exact(t, number);
}

/* Adds an amount; for people, with a unit. */
static void cell_bytes(tool_table *t, double bytes, int json)
{
    char text[SCR_AMOUNT_SIZE];
    if (json)
        tool_table_exact(t, bytes);
    else
        tool_table_text(t, scr_text_bytes(bytes, text));
}

static int report_print_summary(const report *r, tool_form form)
{
    tool_table *t = tool_table_new(summary_columns, SUMMARY);
    const scr_ledger_sum *s = &r->sum;
    tool_table_text(t, "summary");
    tool_table_text(t, r->prefix);
    tool_table_number(t, s->runs);
    tool_table_number(t, s->finished);
    tool_table_number(t, s->halted);
    tool_table_number(t, s->interrupted);
    tool_table_number(t, r->ledger->nodes_lost);
    tool_table_number(t, s->checkpoints);
    cell_real(t, s->total);
    cell_real(t, s->kinds[LEDGER_COMPUTE]);
    cell_real(t, s->kinds[LEDGER_LOST]);
    cell_real(t, s->kinds[LEDGER_OUTPUT]);
    cell_real(t, s->kinds[LEDGER_FLUSH]);
    cell_real(t, s->kinds[LEDGER_RESTART]);
    cell_real(t, s->kinds[LEDGER_START]);
    cell_real(t, s->down);
    cell_real(t, s->efficiency < 0 ? -1 : s->efficiency * 100);
    cell_real(t, s->mtbf);
    cell_real(t, s->cost);
    cell_real(t, s->interval);
    cell_real(t, s->best);
    cell_real(t, s->saved);
    return tool_table_print(t, form);
}

static int report_print_levels(const report *r, int json)
{
    tool_table *t = tool_table_new(level_columns, LEVEL);
    double spread[3];
    for (int i = 0; i < LEDGER_LEVELS; i++) {
        scr_ledger_moves *m = &r->ledger->moves[i];
        if (!m->count && !m->failed) continue;
        tool_table_text(t, "level");
        tool_table_text(t, scr_ledger_level_names[i]);
        tool_table_number(t, m->count);
        tool_table_number(t, m->failed);
        cell_bytes(t, m->bytes, json);
        cell_real(t, m->seconds);
        if (m->rate_count) {
            scr_ledger_spread(m, &spread[0], &spread[1], &spread[2]);
            cell_bytes(t, m->bytes / m->seconds, json);
            for (int k = 0; k < 3; k++)
                cell_bytes(t, spread[k], json);
        } else {
            for (int k = 0; k < 4; k++)
                tool_table_text(t, NULL);
        }
    }
    return tool_table_print(t, json ? TOOL_JSON : TOOL_COLUMNS);
}

static int report_print_runs(const report *r, int json)
{
    tool_table *t = tool_table_new(run_columns, RUN);
    char when[TOOL_TIME_SIZE];
    static const tool_mark marks[] = {TOOL_WARN, TOOL_GOOD, TOOL_WARN, TOOL_BAD};
    for (int i = 0; i < r->ledger->run_count; i++) {
        const scr_ledger_run *run = &r->ledger->runs[i];
        tool_time_text(run->start / 1000000, when);
        tool_table_text(t, "run");
        tool_table_text(t, run->id);
        tool_table_text(t, run->job[0] ? run->job : NULL);
        tool_table_text(t, when);
        cell_real(t, (double)run->start / 1e6);
        cell_real(t, (double)run->end / 1e6);
        cell_real(t, (double)(run->end - run->start) / 1e6);
        tool_table_number(t, run->nodes);
        tool_table_number(t, run->ranks);
        tool_table_number(t, run->checkpoints);
        tool_table_text(t, scr_ledger_end_names[run->how]);
        tool_table_mark(t, marks[run->how]);
    }
    return tool_table_print(t, json ? TOOL_JSON : TOOL_COLUMNS);
}

static int report_print_spans(const report *r)
{
    tool_table *t = tool_table_new(span_columns, 5);
    for (int i = 0; i < r->ledger->span_count; i++) {
        const scr_ledger_span *s = &r->ledger->spans[i];
        tool_table_text(t, "span");
        tool_table_text(t, r->ledger->runs[s->run].id);
        tool_table_text(t, scr_ledger_kind_names[s->kind]);
        cell_real(t, (double)s->from / 1e6);
        cell_real(t, (double)s->to / 1e6);
    }
    return tool_table_print(t, TOOL_JSON);
}

int report_print_json(const report *r)
{
    int code = report_print_summary(r, TOOL_JSON);
    if (code == COMMAND_GOOD) code = report_print_levels(r, 1);
    if (code == COMMAND_GOOD) code = report_print_runs(r, 1);
    if (code == COMMAND_GOOD) code = report_print_spans(r);
    return code;
}

int report_print(const report *r)
{
    int code = report_print_summary(r, TOOL_LINES);
    if (code == COMMAND_GOOD) printf("\n");
    if (code == COMMAND_GOOD) code = report_print_levels(r, 0);
    if (code == COMMAND_GOOD) printf("\n");
    return code == COMMAND_GOOD ? report_print_runs(r, 0) : code;
}
