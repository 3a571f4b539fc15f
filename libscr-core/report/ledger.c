/* SPDX-License-Identifier: BSD-3-Clause */
/* How runs spend their time, from the log; see ledger.h. */
#include "report/ledger.h"

#include "common/array.h"
#include "common/errtext.h"
#include "report/log_read.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const scr_ledger_kind_names[LEDGER_KINDS] = {"start", "compute", "output",
                                                         "flush", "restart", "lost"};
const char *const scr_ledger_end_names[] = {"open", "finished", "halted", "interrupted"};
const char *const scr_ledger_level_names[LEDGER_LEVELS] = {"cache", "flush", "fetch",
                                                           "rebuild"};

/* ---- lists ---- */

static void ledger_add_span(scr_ledger *l, scr_ledger_span span)
{
    scr_ledger_span *list = array_grow(l->spans, (size_t)l->span_count, sizeof *list);
    if (!list) {
        l->is_short = true;
        return;
    }
    l->spans = list;
    l->spans[l->span_count++] = span;
}

static void ledger_add_point(scr_ledger *l, scr_ledger_point point)
{
    scr_ledger_point *list = array_grow(l->points, (size_t)l->point_count, sizeof *list);
    if (!list) {
        l->is_short = true;
        return;
    }
    l->points = list;
    l->points[l->point_count++] = point;
}

static void ledger_add_run(scr_ledger *l, const scr_log_event *e)
{
    scr_ledger_run *list = array_grow(l->runs, (size_t)l->run_count, sizeof *list);
    if (!list) {
        l->is_short = true;
        return;
    }
    l->runs = list;
    scr_ledger_run *run = &l->runs[l->run_count++];
    *run = (scr_ledger_run){.ranks = e->ranks,
                            .nodes = e->nodes,
                            .start = e->time,
                            .end = e->time,
                            .mark = e->time,
                            .doing = LEDGER_START};
    snprintf(run->id, sizeof run->id, "%s", e->run);
    if (e->job_id) snprintf(run->job, sizeof run->job, "%s", e->job_id);
}

/* Finds a run. Runs of one directory rarely overlap, so the search is short. */
static scr_ledger_run *ledger_find_run(scr_ledger *l, const char *id)
{
    for (int i = l->run_count; i > 0; i--)
        if (strcmp(l->runs[i - 1].id, id) == 0) return &l->runs[i - 1];
    return NULL;
}

/* ---- spans ---- */

/* Ends the current span of the run at time, and begins another activity. */
static void ledger_turn(scr_ledger *l, scr_ledger_run *run, int64_t time,
                        scr_ledger_kind doing)
{
    int place = (int)(run - l->runs);
    if (time > run->mark) {
        ledger_add_span(l, (scr_ledger_span){run->doing, place, run->mark, time});
        run->kinds[run->doing] += time - run->mark;
        if (run->doing == LEDGER_COMPUTE) run->recent += time - run->mark;
        run->mark = time;
    }
    run->doing = doing;
}

static bool ledger_is_checkpoint(const scr_log_event *e)
{
    return e->type && strstr(e->type, "checkpoint");
}

static void ledger_take_output(scr_ledger *l, scr_ledger_run *run, const scr_log_event *e)
{
    bool start = e->kind == SCR_LOG_OUTPUT_START;
    ledger_turn(l, run, e->time, start ? LEDGER_OUTPUT : LEDGER_COMPUTE);
    if (!ledger_is_checkpoint(e)) return;
    if (start && e->compute >= 0) {
        l->compute_sum += e->compute;
        l->computes++;
    }
    if (e->kind != SCR_LOG_OUTPUT_COMPLETE) return;
    run->checkpoints++;
    run->newest = run->mark; /* e->time is earlier if the clock was set back */
    run->recent = 0;
    ledger_add_point(l, (scr_ledger_point){e->dset, run->mark, (int)(run - l->runs)});
    if (e->secs < 0) return;
    l->cost_sum += e->secs;
    l->costs++;
}

/* Takes an event of a flush. A background flush is no span. */
static void ledger_take_flush(scr_ledger *l, scr_ledger_run *run, const scr_log_event *e)
{
    if (e->method && strstr(e->method, "background")) return;
    if (e->kind == SCR_LOG_FLUSH_START && run->doing == LEDGER_COMPUTE)
        ledger_turn(l, run, e->time, LEDGER_FLUSH);
    else if (e->kind != SCR_LOG_FLUSH_START && run->doing == LEDGER_FLUSH)
        ledger_turn(l, run, e->time, LEDGER_COMPUTE);
}

/* Returns the time that a run has computed since time. Totals give the result for the
 * begin of the run and for its newest checkpoint; otherwise the spans are added up. */
static int64_t ledger_computed_since(const scr_ledger *l, int run, int64_t time)
{
    int64_t computed = 0;
    if (time <= l->runs[run].start) return l->runs[run].kinds[LEDGER_COMPUTE];
    if (time == l->runs[run].newest) return l->runs[run].recent;
    for (int i = 0; i < l->span_count; i++) {
        const scr_ledger_span *s = &l->spans[i];
        if (s->kind == LEDGER_COMPUTE && s->run == run && s->from >= time)
            computed += s->to - s->from;
    }
    return computed;
}

/* Marks as lost what runs from since up to before have computed since time, when the
 * checkpoint was complete. */
static void ledger_lose(scr_ledger *l, int before, int since, int64_t time)
{
    for (int k = since; k < before; k++) {
        scr_ledger_run *run = &l->runs[k];
        const int64_t lost = ledger_computed_since(l, k, time);
        run->kinds[LEDGER_COMPUTE] -= lost;
        run->kinds[LEDGER_LOST] += lost;
        run->recent -= time > run->newest ? lost : run->recent;
    }
    for (int i = 0; i < l->span_count; i++) {
        scr_ledger_span *s = &l->spans[i];
        if (s->kind == LEDGER_COMPUTE && s->run < before && s->run >= since &&
            s->from >= time)
            s->kind = LEDGER_LOST;
    }
}

static void ledger_take_restart(scr_ledger *l, scr_ledger_run *run,
                                const scr_log_event *e)
{
    bool start = e->kind == SCR_LOG_RESTART_START;
    ledger_turn(l, run, e->time, start ? LEDGER_RESTART : LEDGER_COMPUTE);
    if (e->kind != SCR_LOG_RESTART_COMPLETE) return;
    run->restarted = true;
    int place = (int)(run - l->runs);
    for (int i = l->point_count; i > 0; i--) {
        const scr_ledger_point *p = &l->points[i - 1];
        if (p->dset != e->dset || p->run >= place) continue;
        /* closes runs whose end becomes known by the next run only */
        for (int k = p->run; k < place; k++)
            ledger_turn(l, &l->runs[k], l->runs[k].end, l->runs[k].doing);
        ledger_lose(l, place, p->run, p->time);
        return;
    }
}

/* ---- events ---- */

static scr_ledger_level ledger_level_of(scr_log_kind kind)
{
    switch (kind) {
    case SCR_LOG_OUTPUT_COMPLETE:
    case SCR_LOG_OUTPUT_FAILED:
        return LEDGER_CACHE;
    case SCR_LOG_FLUSH_COMPLETE:
    case SCR_LOG_FLUSH_FAILED:
        return LEDGER_TO_PREFIX;
    case SCR_LOG_FETCH_COMPLETE:
    case SCR_LOG_FETCH_FAILED:
        return LEDGER_FROM_PREFIX;
    case SCR_LOG_REBUILD_COMPLETE:
    case SCR_LOG_REBUILD_FAILED:
        return LEDGER_REBUILT;
    default:
        return LEDGER_LEVELS;
    }
}

static void ledger_take_move(scr_ledger *l, const scr_log_event *e)
{
    scr_ledger_level level = ledger_level_of(e->kind);
    if (level == LEDGER_LEVELS) return;
    scr_ledger_moves *m = &l->moves[level];
    if (e->kind == SCR_LOG_OUTPUT_FAILED || e->kind == SCR_LOG_FLUSH_FAILED ||
        e->kind == SCR_LOG_FETCH_FAILED || e->kind == SCR_LOG_REBUILD_FAILED) {
        m->failed++;
        return;
    }
    m->count++;
    if (!(e->secs > 0) || e->bytes <= 0) return;
    m->bytes += (double)e->bytes;
    m->seconds += e->secs;
    double *rates = array_grow(m->rates, (size_t)m->rate_count, sizeof *rates);
    if (!rates) {
        l->is_short = true;
        return;
    }
    m->rates = rates;
    m->rates[m->rate_count++] = (double)e->bytes / e->secs;
}

static void ledger_end_run(scr_ledger_run *run, int64_t time)
{
    if (!run || run->is_finished || run->is_over) return;
    if (time > run->end) run->end = time;
    run->is_over = true;
}

/* Takes the end of a program, which also ends a run without an end of its own. If the
 * event has no run id (the launcher did not pass it to the program, or the log has
 * version 1), this is the last run. */
static void ledger_take_launch_end(scr_ledger *l, const scr_log_event *e)
{
    scr_ledger_run *run = e->run ? ledger_find_run(l, e->run) : NULL;
    if (!run && l->run_count) run = &l->runs[l->run_count - 1];
    ledger_end_run(run, e->time);
}

static void ledger_take_of_run(scr_ledger *l, scr_ledger_run *run, const scr_log_event *e)
{
    if (run->is_finished || run->is_over) return;
    if (e->kind == SCR_LOG_NODE_LOST || e->kind == SCR_LOG_LAUNCH_START) return;
    if (e->kind == SCR_LOG_RUN_INTERRUPTED) {
        ledger_end_run(run, run->start + (e->secs > 0 ? (int64_t)(e->secs * 1e6) : 0));
        return;
    }
    if (e->time > run->end) run->end = e->time;
    switch (e->kind) {
    case SCR_LOG_RUN_READY:
        run->is_ready = true;
        ledger_turn(l, run, e->time, LEDGER_COMPUTE);
        break;
    case SCR_LOG_RUN_END:
        run->is_finished = true;
        break;
    case SCR_LOG_HALT:
        run->is_halted = true;
        break;
    case SCR_LOG_OUTPUT_START:
    case SCR_LOG_OUTPUT_COMPLETE:
    case SCR_LOG_OUTPUT_FAILED:
        ledger_take_output(l, run, e);
        break;
    case SCR_LOG_FLUSH_START:
    case SCR_LOG_FLUSH_COMPLETE:
    case SCR_LOG_FLUSH_FAILED:
    case SCR_LOG_FLUSH_STOPPED:
        ledger_take_flush(l, run, e);
        break;
    case SCR_LOG_RESTART_START:
    case SCR_LOG_RESTART_COMPLETE:
    case SCR_LOG_RESTART_FAILED:
        ledger_take_restart(l, run, e);
        break;
    default:
        break;
    }
}

static bool ledger_is_of_running(scr_log_kind kind)
{
    return kind >= SCR_LOG_OUTPUT_START && kind <= SCR_LOG_FLUSH_STOPPED;
}

/* Begins a run whose first events are no longer in the log (SCR_LOG_SIZE): the run is
 * known from this event on. */
static scr_ledger_run *ledger_join_run(scr_ledger *l, const scr_log_event *e)
{
    int before = l->run_count;
    ledger_add_run(l, e);
    if (l->run_count == before) return NULL;
    l->runs[before].is_ready = true;
    l->runs[before].doing = LEDGER_COMPUTE;
    return &l->runs[before];
}

void scr_ledger_take(void *arg, const scr_log_event *e)
{
    scr_ledger *l = arg;
    if (e->time > l->last) l->last = e->time;
    if (e->kind == SCR_LOG_NODE_LOST) l->nodes_lost++;
    if (e->kind == SCR_LOG_LAUNCH_END) ledger_take_launch_end(l, e);
    if (!e->run || !e->run[0] || strlen(e->run) >= SCR_LOG_RUN_SIZE) return;
    scr_ledger_run *run = ledger_find_run(l, e->run);
    if (!run && e->kind == SCR_LOG_RUN_START) {
        ledger_add_run(l, e);
        return;
    }
    if (!run && ledger_is_of_running(e->kind)) run = ledger_join_run(l, e);
    if (!run) return;
    ledger_take_of_run(l, run, e);
    ledger_take_move(l, e);
}

/* ---- ends of runs and lost work ---- */

static void ledger_find_ends(scr_ledger *l)
{
    for (int i = 0; i < l->run_count; i++) {
        scr_ledger_run *run = &l->runs[i];
        ledger_turn(l, run, run->end, run->doing);
        if (run->is_finished)
            run->how = run->is_halted ? LEDGER_HALTED : LEDGER_FINISHED;
        else if (run->is_over || i + 1 < l->run_count)
            run->how = run->is_halted ? LEDGER_HALTED : LEDGER_INTERRUPTED;
    }
}

/* Finds lost work. If a run starts from the beginning, all work since the last finished
 * run is lost. If no run follows, the work since the newest checkpoint is lost. */
static void ledger_find_lost(scr_ledger *l)
{
    int since = 0;
    for (int i = 0; i < l->run_count; i++) {
        scr_ledger_run *run = &l->runs[i];
        if (i && run->is_ready && !run->restarted) {
            if (l->runs[i - 1].how == LEDGER_INTERRUPTED) ledger_lose(l, i, since, 0);
            since = i;
        }
        if (run->how == LEDGER_FINISHED) since = i + 1;
    }
    if (l->run_count == 0) return;
    scr_ledger_run *last = &l->runs[l->run_count - 1];
    if (last->how == LEDGER_INTERRUPTED)
        ledger_lose(l, l->run_count, l->run_count - 1, last->newest);
}

void scr_ledger_close(scr_ledger *l)
{
    ledger_find_ends(l);
    ledger_find_lost(l);
}

int scr_ledger_begin(int prefix, scr_ledger *l, kvtree_error *err)
{
    *l = (scr_ledger){0};
    int rc = scr_log_read(prefix, 0, scr_ledger_take, l, err);
    if (!rc && l->is_short) rc = err_set(err, -ENOMEM, "no memory");
    if (rc) scr_ledger_done(l);
    return rc;
}

int scr_ledger_read(int prefix, scr_ledger *l, kvtree_error *err)
{
    int rc = scr_ledger_begin(prefix, l, err);
    if (rc) return rc;
    scr_ledger_close(l);
    if (!l->is_short) return 0;
    scr_ledger_done(l);
    return err_set(err, -ENOMEM, "no memory");
}

int scr_ledger_sum_now(const scr_ledger *l, scr_ledger_sum *sum)
{
    /* closing needs the totals of the runs, but no spans */
    scr_ledger now = *l;
    now.spans = NULL;
    now.span_count = 0;
    now.runs = calloc((size_t)l->run_count + 1, sizeof *now.runs);
    if (now.runs && l->run_count)
        memcpy(now.runs, l->runs, (size_t)l->run_count * sizeof *now.runs);
    if (now.runs) scr_ledger_close(&now);
    bool is_short = !now.runs || now.is_short;
    if (!is_short) *sum = scr_ledger_add_up(&now);
    free(now.runs);
    free(now.spans);
    return is_short ? -ENOMEM : 0;
}

void scr_ledger_done(scr_ledger *l)
{
    for (int i = 0; i < LEDGER_LEVELS; i++)
        free(l->moves[i].rates);
    free(l->runs);
    free(l->spans);
    free(l->points);
    *l = (scr_ledger){0};
}
