/* SPDX-License-Identifier: BSD-3-Clause */
/* Totals of a run, computed from its events on rank 0 and printed at its end. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

/* Events of one kind, with the sums of bytes and seconds. */
struct summary_total {
    int count;
    double bytes, secs;
};

enum summary_kind {
    CKPTS,
    OUTPUTS,
    FLUSHES,
    BACKGROUND,
    FETCHES,
    REBUILDS,
    FAILURES,
    ALL
};

static const char *const summary_names[FAILURES] = {
    [CKPTS] = "checkpoints written", [OUTPUTS] = "outputs written",
    [FLUSHES] = "flushes",           [BACKGROUND] = "asynchronous flushes",
    [FETCHES] = "fetches",           [REBUILDS] = "datasets rebuilt"};

struct scr_summary {
    double start; /* time of scr_clock */
    struct summary_total totals[ALL];
};

void scr_summary_begin(scr_report *report)
{
    if (report->rank == 0) report->summary = calloc(1, sizeof *report->summary);
    if (report->summary) report->summary->start = scr_clock();
}

void scr_summary_end(scr_report *report)
{
    free(report->summary);
    report->summary = NULL;
}

static enum summary_kind summary_kind_of(const scr_log_event *e)
{
    switch (e->kind) {
    case SCR_LOG_OUTPUT_COMPLETE:
        return e->type && strncmp(e->type, "checkpoint", 10) == 0 ? CKPTS : OUTPUTS;
    case SCR_LOG_FLUSH_COMPLETE:
        return e->method && strstr(e->method, "background") ? BACKGROUND : FLUSHES;
    case SCR_LOG_FETCH_COMPLETE:
        return FETCHES;
    case SCR_LOG_REBUILD_COMPLETE:
        return e->rebuilt > 0 ? REBUILDS : ALL;
    case SCR_LOG_OUTPUT_FAILED:
    case SCR_LOG_FLUSH_FAILED:
    case SCR_LOG_FETCH_FAILED:
    case SCR_LOG_REBUILD_FAILED:
        return FAILURES;
    default:
        return ALL;
    }
}

void scr_summary_add(const scr_report *report, const scr_log_event *event)
{
    enum summary_kind kind = summary_kind_of(event);
    if (!report->summary || kind == ALL) return;
    struct summary_total *t = &report->summary->totals[kind];
    t->count++;
    t->bytes += (double)event->bytes;
    t->secs += event->secs;
}

void scr_summary_print(const scr_report *report, double waited)
{
    if (!report->summary) return;
    const struct summary_total *t = report->summary->totals;
    double run = scr_clock() - report->summary->start, spent = waited;
    for (int i = 0; i < FAILURES; i++, t++) {
        if (i != BACKGROUND) spent += t->secs;
        if (t->count > 0)
            scr_say(report, SCR_MSG_RUN_SUMMARY,
                    "summary: %s: %d, %.3f MB in %.3f s, %.1f MB/s", summary_names[i],
                    t->count, t->bytes / 1e6, t->secs,
                    t->secs > 0 ? t->bytes / t->secs / 1e6 : 0.0);
    }
    if (waited >= 0.001)
        scr_say(report, SCR_MSG_RUN_SUMMARY,
                "summary: waited for asynchronous flushes: %.3f s", waited);
    if (t->count > 0)
        scr_say(report, SCR_MSG_RUN_SUMMARY, "summary: failures: %d, see above",
                t->count);
    scr_say(report, SCR_MSG_RUN_SUMMARY,
            "summary: %.3f s of %.3f s were spent with this (%.1f %%)", spent, run,
            run > 0 ? 100 * spent / run : 0.0);
}
