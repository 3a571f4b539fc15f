/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run did, in a few lines at its end: made of the events that went by, on rank 0.
 */
#include "ops/context.h"

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
    double start; /* MPI_Wtime */
    struct total totals[ALL];
};

void scr_summary_begin(struct scr *scr)
{
    if (scr->job.rank == 0) scr->report.summary = calloc(1, sizeof *scr->report.summary);
    if (scr->report.summary) scr->report.summary->start = MPI_Wtime();
}

void scr_summary_end(struct scr *scr)
{
    free(scr->report.summary);
    scr->report.summary = NULL;
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

void scr_summary_add(const struct scr *scr, const scr_log_event *event)
{
    enum which which = which_of(event);
    if (!scr->report.summary || which == ALL) return;
    struct total *t = &scr->report.summary->totals[which];
    t->count++;
    t->bytes += (double)event->bytes;
    t->secs += event->secs;
}

static void tell(const struct scr *scr, enum which which, const char *what)
{
    const struct total *t = &scr->report.summary->totals[which];
    if (t->count == 0) return;
    scr_say(scr, 1, "summary: %s: %d, %.3f MB in %.3f s, %.1f MB/s", what, t->count,
            t->bytes / 1e6, t->secs, t->secs > 0 ? t->bytes / t->secs / 1e6 : 0.0);
}

void scr_summary_tell(const struct scr *scr)
{
    if (!scr->report.summary) return;
    const struct total *t = scr->report.summary->totals;
    double run = MPI_Wtime() - scr->report.summary->start;
    double ours = t[CHECKPOINTS].secs + t[OUTPUTS].secs + t[FLUSHES].secs +
                  t[FETCHES].secs + t[REBUILDS].secs + scr->flush.waited;
    tell(scr, CHECKPOINTS, "checkpoints written");
    tell(scr, OUTPUTS, "outputs written");
    tell(scr, FLUSHES, "flushes");
    tell(scr, BACKGROUND, "asynchronous flushes");
    tell(scr, FETCHES, "fetches");
    tell(scr, REBUILDS, "datasets rebuilt");
    if (scr->flush.waited >= 0.001)
        scr_say(scr, 1, "summary: waited for asynchronous flushes: %.3f s",
                scr->flush.waited);
    if (t[FAILURES].count > 0)
        scr_say(scr, 1, "summary: failures: %d, see above", t[FAILURES].count);
    scr_say(scr, 1, "summary: %.3f s of %.3f s were spent with this (%.1f %%)", ours, run,
            run > 0 ? 100 * ours / run : 0.0);
}
