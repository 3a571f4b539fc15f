/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of earlier runs from their log; see report/history.h. Reads only the end of
 * the log and follows a limited number of runs at a time, so time and memory do not
 * depend on the size or content of the log. */
#include "report/history.h"

#include "report/log_read.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { HISTORY_RUNS = 8 };

struct history_run {
    char id[SCR_LOG_RUN_SIZE]; /* empty: unused */
    int64_t start, last, nodes;
    bool is_ready, is_ended; /* is_ended: or asked to halt */
};

struct history_reader {
    const char *own;
    int64_t now;
    scr_history *history;
    struct history_run runs[HISTORY_RUNS];
    char ckpts_of[SCR_LOG_RUN_SIZE]; /* the run that history->ckpts belong to */
};

/* ---- runs ---- */

/* Counts a run of which no further lines are expected. */
static void history_count_run(struct history_reader *r, struct history_run *run)
{
    if (run->id[0] && run->is_ready) {
        r->history->runs++;
        r->history->interrupted += !run->is_ended;
        r->history->node_seconds +=
            (double)(run->last - run->start) / 1e6 * (double)run->nodes;
    }
    run->id[0] = 0;
}

static struct history_run *history_find_run(struct history_reader *r, const char *id)
{
    for (int i = 0; i < HISTORY_RUNS; i++)
        if (strcmp(r->runs[i].id, id) == 0) return &r->runs[i];
    return NULL;
}

/* Begins a run. If there is no free entry, replaces the run whose last event is the
 * oldest. */
static void history_begin_run(struct history_reader *r, const scr_log_event *e)
{
    struct history_run *run = &r->runs[0];
    if (e->nodes < 1) return;
    for (int i = 0; i < HISTORY_RUNS && run->id[0]; i++)
        if (!r->runs[i].id[0] || r->runs[i].last < run->last) run = &r->runs[i];
    history_count_run(r, run);
    *run = (struct history_run){.start = e->time, .last = e->time, .nodes = e->nodes};
    strcpy(run->id, e->run);
}

static void history_count_ckpt(struct history_reader *r, const scr_log_event *e)
{
    if (!e->type || !strstr(e->type, "checkpoint") || e->secs < 0) return;
    if (strcmp(r->ckpts_of, e->run) != 0) {
        strcpy(r->ckpts_of, e->run);
        r->history->ckpts = 0;
        r->history->ckpt_seconds = 0;
    }
    r->history->ckpts++;
    r->history->ckpt_seconds += e->secs;
}

static void history_use_event(void *arg, const scr_log_event *e)
{
    struct history_reader *r = arg;
    if (!e->run || !e->run[0] || strlen(e->run) >= SCR_LOG_RUN_SIZE || e->time > r->now)
        return;
    if (r->own && strcmp(e->run, r->own) == 0) return;
    struct history_run *run = history_find_run(r, e->run);
    if (!run && e->kind == SCR_LOG_RUN_START) history_begin_run(r, e);
    /* scr_run may log these long after the run has ended */
    if (!run || e->kind == SCR_LOG_NODE_LOST || e->kind == SCR_LOG_RUN_INTERRUPTED)
        return;
    if (e->time > run->last) run->last = e->time;
    if (e->kind == SCR_LOG_RUN_READY) run->is_ready = true;
    if (e->kind == SCR_LOG_OUTPUT_COMPLETE) history_count_ckpt(r, e);
    if (e->kind == SCR_LOG_HALT || e->kind == SCR_LOG_RUN_END) run->is_ended = true;
}

/* ---- the file ---- */

int scr_history_read(int prefix, const char *own, int64_t now, scr_history *history,
                     kvtree_error *err)
{
    scr_history found = {0};
    struct history_reader r = {.own = own, .now = now, .history = &found};
    int rc = scr_log_read(prefix, SCR_HISTORY_BYTES, history_use_event, &r, err);
    if (rc) return rc;
    for (int i = 0; i < HISTORY_RUNS; i++)
        history_count_run(&r, &r.runs[i]);
    *history = found;
    return 0;
}

/* ---- the estimate ---- */

double scr_history_mtbf(const scr_history *history, int nodes, double elapsed)
{
    double k = history->interrupted, total = history->node_seconds / nodes + elapsed;
    if (k < 1) return fmax(total, SCR_HISTORY_MTBF);
    return exp((k * log(fmax(total, 1) / k) + log(SCR_HISTORY_MTBF)) / (k + 1));
}
