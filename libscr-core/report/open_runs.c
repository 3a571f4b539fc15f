/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs without an end in the log; see report/open_runs.h. */
#include "report/open_runs.h"

#include "report/history.h"
#include "report/log_read.h"
#include <stdio.h>
#include <string.h>

struct open_runs_reader {
    const char *id;
    scr_open_runs *runs;
    bool ended[SCR_OPEN_RUNS]; /* by index in runs->list */
};

static int open_runs_find(const scr_open_runs *runs, const char *id)
{
    for (int i = runs->count; i > 0; i--)
        if (strcmp(runs->list[i - 1].id, id) == 0) return i - 1;
    return -1;
}

/* Removes a run from the list. Only the last runs are of interest: earlier runs have been
 * closed, or a version wrote them that did not log ends. */
static void open_runs_remove(struct open_runs_reader *r, int i)
{
    scr_open_runs *runs = r->runs;
    size_t after = (size_t)(--runs->count - i);
    memmove(&runs->list[i], &runs->list[i + 1], after * sizeof *runs->list);
    memmove(&r->ended[i], &r->ended[i + 1], after * sizeof *r->ended);
}

static void open_runs_begin(struct open_runs_reader *r, const scr_log_event *e)
{
    scr_open_runs *runs = r->runs;
    if (runs->count == SCR_OPEN_RUNS) open_runs_remove(r, 0);
    scr_open_run *run = &runs->list[runs->count];
    *run = (scr_open_run){.start = e->time, .last = e->time};
    snprintf(run->id, sizeof run->id, "%s", e->run);
    snprintf(run->job, sizeof run->job, "%s", e->job_id ? e->job_id : "");
    r->ended[runs->count++] = false;
    if (r->id && strcmp(run->id, r->id) == 0) runs->is_known = true;
}

/* Whether the program logs events of this kind. scr_run and scripts log the others. */
static bool open_runs_is_of_program(scr_log_kind kind)
{
    return kind < SCR_LOG_NODE_LOST && kind != SCR_LOG_RUN_INTERRUPTED;
}

static void open_runs_use_event(void *arg, const scr_log_event *e)
{
    struct open_runs_reader *r = arg;
    if (!e->run || !e->run[0] || strlen(e->run) >= SCR_LOG_RUN_SIZE) return;
    int i = open_runs_find(r->runs, e->run);
    if (e->kind == SCR_LOG_RUN_END || e->kind == SCR_LOG_RUN_INTERRUPTED) {
        if (i >= 0) r->ended[i] = true;
        return;
    }
    if (!open_runs_is_of_program(e->kind)) return;
    if (i < 0)
        open_runs_begin(r, e); /* a long run began before the part that is read */
    else if (e->time > r->runs->list[i].last)
        r->runs->list[i].last = e->time;
}

int scr_open_runs_read(int prefix, const char *id, scr_open_runs *runs, kvtree_error *err)
{
    struct open_runs_reader r = {.id = id, .runs = runs};
    *runs = (scr_open_runs){.count = 0};
    int rc = scr_log_read(prefix, SCR_HISTORY_BYTES, open_runs_use_event, &r, err);
    for (int i = runs->count; i > 0; i--)
        if (r.ended[i - 1]) open_runs_remove(&r, i - 1);
    return rc;
}

scr_log_event scr_open_run_end(const scr_open_run *run, int64_t end, const char *note)
{
    return (scr_log_event){.kind = SCR_LOG_RUN_INTERRUPTED,
                           .run = run->id,
                           .job_id = run->job,
                           .secs = (double)(end - run->start) / 1e6,
                           .note = note};
}
