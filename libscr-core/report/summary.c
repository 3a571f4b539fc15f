/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run did, in a few lines at its end: made of the events that went by, on rank 0.
 */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

/* Events of one kind, each with its bytes and seconds. */
struct total {
    int count;
    double bytes, secs;
};

enum which {
    CHECKPOINTS,
    OUTPUTS,
    FLUSHES,
    BACKGROUND,
    FETCHES,
    REBUILDS,
    FAILURES,
    ALL
};

struct scr_summary {
    double start; /* scr_clock */
    struct total totals[ALL];
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

static enum which which_of(const scr_log_event *e)
{
    switch (e->kind) {
    case SCR_LOG_OUTPUT_COMPLETE:
        return e->type && strncmp(e->type, "checkpoint", 10) == 0 ? CHECKPOINTS : OUTPUTS;
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
    enum which which = which_of(event);
    if (!report->summary || which == ALL) return;
    struct total *t = &report->summary->totals[which];
    t->count++;
    t->bytes += (double)event->bytes;
    t->secs += event->secs;
}

static void tell(const scr_report *report, enum which which, const char *what)
{
    const struct total *t = &report->summary->totals[which];
    if (t->count == 0) return;
    scr_say(report, 1, "summary: %s: %d, %.3f MB in %.3f s, %.1f MB/s", what, t->count,
            t->bytes / 1e6, t->secs, t->secs > 0 ? t->bytes / t->secs / 1e6 : 0.0);
}

void scr_summary_tell(const scr_report *report, double waited)
{
    if (!report->summary) return;
    const struct total *t = report->summary->totals;
    double run = scr_clock() - report->summary->start;
    double ours = t[CHECKPOINTS].secs + t[OUTPUTS].secs + t[FLUSHES].secs +
                  t[FETCHES].secs + t[REBUILDS].secs + waited;
    tell(report, CHECKPOINTS, "checkpoints written");
    tell(report, OUTPUTS, "outputs written");
    tell(report, FLUSHES, "flushes");
    tell(report, BACKGROUND, "asynchronous flushes");
    tell(report, FETCHES, "fetches");
    tell(report, REBUILDS, "datasets rebuilt");
    if (waited >= 0.001)
        scr_say(report, 1, "summary: waited for asynchronous flushes: %.3f s", waited);
    if (t[FAILURES].count > 0)
        scr_say(report, 1, "summary: failures: %d, see above", t[FAILURES].count);
    scr_say(report, 1, "summary: %.3f s of %.3f s were spent with this (%.1f %%)", ours,
            run, run > 0 ? 100 * ours / run : 0.0);
}
