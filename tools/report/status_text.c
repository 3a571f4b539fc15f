/* SPDX-License-Identifier: BSD-3-Clause */
/* The status of a job for people and for programs; see status.h. */
#include "report/status.h"

#include "lib/tool_table.h"
#include "lib/tool_time.h"
#include "report/quote.h"
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <stdarg.h>
#include <string.h>

/* ---- lines ---- */

typedef struct lines {
    FILE *out;
    bool color;
    const status *s;
} lines;

static void lines_title(const lines *l, const char *title)
{
    fprintf(l->out, "%s%-12s%s", l->color ? "\033[1m" : "", title,
            l->color ? "\033[0m" : "");
}

static void lines_add(const lines *l, const char *title, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void lines_add(const lines *l, const char *title, const char *format, ...)
{
    va_list args;
    lines_title(l, title);
    va_start(args, format);
    vfprintf(l->out, format, args);
    va_end(args);
    fputc('\n', l->out);
}

/* Writes a text that other users may have chosen, with control characters quoted. */
static void lines_quote(const lines *l, const char *text)
{
    scr_quote_text(l->out, text, "");
}

static void lines_ago(const lines *l, const char *before, int64_t micro)
{
    char span[SCR_AMOUNT_SIZE];
    if (micro > 0 && micro <= l->s->now)
        fprintf(l->out, "%s%s ago", before,
                scr_text_span((double)(l->s->now - micro) / 1e6, span));
}

static const char *const status_names[] = {"unused", "running",     "ended",
                                           "halted", "interrupted", "unknown"};

static void lines_state(const lines *l)
{
    static const char *const colors[] = {"",         "\033[32m", "\033[32m",
                                         "\033[33m", "\033[31m", "\033[33m"};
    const status *s = l->s;
    lines_title(l, "state");
    fprintf(l->out, "%s%s%s", l->color ? colors[s->state] : "", status_names[s->state],
            l->color ? "\033[0m" : "");
    if (s->evidence) fprintf(l->out, ": %s", s->evidence);
    if (s->process > 0) fprintf(l->out, " (%ld)", s->process);
    fputc('\n', l->out);
}

static void lines_run(const lines *l)
{
    const status_run *r = &l->s->run;
    char started[TOOL_TIME_SIZE];
    lines_title(l, "run");
    if (!l->s->is_logged) {
        fprintf(l->out, "unknown: no log has it (SCR_LOG_ENABLE=1 makes one)\n");
        return;
    }
    tool_time_text(r->started / 1000000, started);
    lines_quote(l, r->id);
    if (r->job[0]) {
        fprintf(l->out, " of job ");
        lines_quote(l, r->job);
    }
    fprintf(l->out, "\n");
    lines_title(l, "");
    fprintf(l->out, "began %s", started);
    lines_ago(l, "; last event ", r->last);
    fputc('\n', l->out);
}

static void lines_nodes(const lines *l)
{
    const status *s = l->s;
    int64_t nodes = s->is_logged && s->run.nodes ? s->run.nodes : s->nodes;
    lines_title(l, "nodes");
    if (nodes)
        fprintf(l->out, "%" PRId64, nodes);
    else
        fprintf(l->out, "unknown");
    if (s->run.ranks) fprintf(l->out, ", %" PRId64 " ranks", s->run.ranks);
    fprintf(l->out, "; lost since then: ");
    if (s->run.lost)
        lines_quote(l, s->run.lost);
    else
        fprintf(l->out, s->is_logged ? "none is logged" : "unknown");
    fputc('\n', l->out);
}

static void lines_dataset(const lines *l, const char *title, const char *where,
                          const status_dataset *d)
{
    lines_title(l, title);
    fprintf(l->out, "%s", where);
    if (d->id) {
        lines_quote(l, d->name);
        fprintf(l->out, " (dataset %d)", d->id);
        lines_ago(l, ", ", d->created);
    } else {
        fprintf(l->out, "none");
    }
    fputc('\n', l->out);
}

static void lines_flush(const lines *l)
{
    const status *s = l->s;
    char text[SCR_AMOUNT_SIZE];
    lines_title(l, "flush");
    if (!s->flushing.id) {
        fprintf(l->out, "none under way\n");
        return;
    }
    lines_quote(l, s->flushing.name);
    fprintf(l->out, ": %s", s->done < 0 ? "?" : scr_text_bytes((double)s->done, text));
    fprintf(l->out, " of %s",
            s->flushing.bytes < 0 ? "?"
                                  : scr_text_bytes((double)s->flushing.bytes, text));
    if (s->rate > 0) fprintf(l->out, ", %s/s", scr_text_bytes(s->rate, text));
    if (s->rate > 0 && s->flushing.bytes >= s->done)
        fprintf(l->out, ", %s left",
                scr_text_span((double)(s->flushing.bytes - s->done) / s->rate, text));
    if (s->rate <= 0) fprintf(l->out, ", time left unknown");
    if (s->state != STATUS_RUNNING && s->rate <= 0)
        fprintf(l->out, "; maybe interrupted");
    fputc('\n', l->out);
}

static void lines_next(const lines *l)
{
    const status *s = l->s;
    char span[SCR_AMOUNT_SIZE];
    int64_t left = s->due - s->now / 1000000;
    if (s->state != STATUS_RUNNING && s->state != STATUS_UNKNOWN) return;
    if (!s->due)
        lines_add(l, "next", "checkpoint: unknown");
    else
        lines_add(l, "next", "checkpoint %s%s (%s)", left < 0 ? "overdue by " : "in ",
                  scr_text_span((double)(left < 0 ? -left : left), span),
                  s->is_due_configured ? "SCR_CHECKPOINT_SECONDS"
                                       : "as between earlier ones");
}

/* Writes the conditions of the halt file in words. */
static void lines_halt(const lines *l)
{
    const kvtree *halt = l->s->halt;
    const char *reason = kvtree_elem_get_first_val(halt, SCR_HALT_KEY_REASON);
    char when[TOOL_TIME_SIZE] = "the end";
    int64_t n;
    int count = 0;
    lines_title(l, "halt");
    if (kvtree_util_get_int64(halt, SCR_HALT_KEY_LEFT, &n) == 0)
        fprintf(l->out, "%safter %" PRId64 " more checkpoint%s", count++ ? "; " : "", n,
                n == 1 ? "" : "s");
    if (kvtree_util_get_int64(halt, SCR_HALT_KEY_AFTER, &n) == 0) {
        tool_time_text(n, when);
        fprintf(l->out, "%safter %s", count++ ? "; " : "", when);
        strcpy(when, "the end");
    }
    bool before = kvtree_util_get_int64(halt, SCR_HALT_KEY_BEFORE, &n) == 0;
    if (before) tool_time_text(n, when);
    if (kvtree_util_get_int64(halt, SCR_HALT_KEY_SECONDS, &n) == 0)
        fprintf(l->out, "%s%" PRId64 " s before %s", count++ ? "; " : "", n, when);
    else if (before)
        fprintf(l->out, "%sbefore %s", count++ ? "; " : "", when);
    if (reason && strcmp(reason, SCR_HALT_FINALIZED) == 0) {
        fprintf(l->out, "%slast run has ended (%s)", count++ ? "; " : "", reason);
    } else if (reason) {
        fputs(count++ ? "; " : "", l->out);
        lines_quote(l, reason);
    }
    fprintf(l->out, "%s\n", count ? "" : "no condition");
}

static void lines_risk(const lines *l)
{
    enum { SHOWN = 3 };
    const status *s = l->s;
    char span[SCR_AMOUNT_SIZE];
    lines_title(l, "at risk");
    if (s->lost_work >= 0)
        fprintf(l->out, "%s of work, at least%s", scr_text_span(s->lost_work, span),
                s->risks ? "; " : "");
    for (int i = 0; i < s->risks && i < SHOWN; i++) {
        fprintf(l->out, "%s", i ? ", " : "");
        lines_quote(l, s->risk[s->risks - 1 - i]);
    }
    if (s->risks > SHOWN) fprintf(l->out, " and %d more", s->risks - SHOWN);
    if (s->risks) fprintf(l->out, " only in caches");
    if (!s->risks && s->lost_work < 0) fprintf(l->out, "nothing that is known");
    fputc('\n', l->out);
}

void status_write(FILE *out, const tool_prefix *prefix, const status *s, bool color)
{
    const lines l = {out, color, s};
    lines_title(&l, "directory");
    lines_quote(&l, prefix->path);
    fputc('\n', out);
    lines_state(&l);
    if (s->state == STATUS_UNUSED) return;
    lines_run(&l);
    lines_nodes(&l);
    lines_dataset(&l, "checkpoint", "newest in the cache: ", &s->cached);
    lines_dataset(&l, "", "newest that is flushed: ", &s->flushed);
    lines_flush(&l);
    lines_next(&l);
    lines_halt(&l);
    lines_risk(&l);
    for (int i = 0; i < s->problem_count; i++) {
        lines_title(&l, i ? "" : "unreadable");
        lines_quote(&l, s->problems[i].err.text);
        fputc('\n', out);
    }
}

/* Writes a command. A run gets the number of ranks of the newest checkpoint, since other
 * numbers cannot use the checkpoint as it is. */
static void next_write(FILE *out, const status *s, const char *command, const char *about)
{
    char run[64] = "scr run ./program";
    const int ranks = s->flushed.ranks ? s->flushed.ranks : s->cached.ranks;
    if (strcmp(command, run) != 0)
        snprintf(run, sizeof run, "%s", command);
    else if (ranks > 0)
        snprintf(run, sizeof run, "scr run -n %d ./program", ranks);
    fprintf(out, "  %-24s%s\n", run, about);
}

void status_write_next(FILE *out, const status *s)
{
    static const char *const next[][3][2] = {
        [STATUS_UNUSED] = {{"scr run ./program",
                            "run a program, and again after failures"},
                           {"scr doctor", "check this site, and say what to do"},
                           {"scr config", "parameters and mistakes in them"}},
        [STATUS_RUNNING] = {{"scr top", "the same, refreshed until Ctrl-C"},
                            {"scr halt -c 1", "end the run after its next checkpoint"},
                            {"scr list", "list the datasets on the prefix directory"}},
        [STATUS_ENDED] = {{"scr list", "list the datasets on the prefix directory"},
                          {"scr report", "what the runs did, and what failures cost"},
                          {"scr run ./program", "begin another run"}},
        [STATUS_HALTED] = {{"scr halt --remove", "remove all halt conditions"},
                           {"scr run ./program", "resume from the newest checkpoint"},
                           {"scr list", "list the datasets on the prefix directory"}},
        [STATUS_INTERRUPTED] = {{"scr run ./program",
                                 "resume from the newest checkpoint"},
                                {"scr save", "save what is only in the caches"},
                                {"scr nodes --reason",
                                 "which nodes cannot be used, and why"}},
        [STATUS_UNKNOWN] = {{"scr top", "the same, refreshed until Ctrl-C"},
                            {"scr list", "list the datasets on the prefix directory"},
                            {"scr run ./program", "resume from the newest checkpoint"}},
    };
    fprintf(out, "\nnext:\n");
    for (int i = 0; i < 3; i++) {
        const char *const *row = next[s->state][i];
        if (strcmp(row[0], "scr report") == 0 && !s->is_logged)
            next_write(out, s, "scr verify", "read and check these files");
        else
            next_write(out, s, row[0], row[1]);
    }
}

/* ---- JSON ---- */

static const tool_column status_columns[] = {
    {"prefix", "", TOOL_TEXT},
    {"time", "", TOOL_NUMBER},
    {"state", "", TOOL_TEXT},
    {"evidence", "", TOOL_TEXT},
    {"process", "", TOOL_NUMBER},
    {"run", "", TOOL_TEXT},
    {"user", "", TOOL_TEXT},
    {"job_id", "", TOOL_TEXT},
    {"started", "", TOOL_NUMBER},
    {"last_event", "", TOOL_NUMBER},
    {"ranks", "", TOOL_NUMBER},
    {"nodes", "", TOOL_NUMBER},
    {"nodes_lost", "", TOOL_TEXT},
    {"cached_id", "", TOOL_NUMBER},
    {"cached_name", "", TOOL_TEXT},
    {"cached_created", "", TOOL_NUMBER},
    {"prefix_id", "", TOOL_NUMBER},
    {"prefix_name", "", TOOL_TEXT},
    {"prefix_created", "", TOOL_NUMBER},
    {"flush_id", "", TOOL_NUMBER},
    {"flush_name", "", TOOL_TEXT},
    {"flush_done", "", TOOL_NUMBER},
    {"flush_bytes", "", TOOL_NUMBER},
    {"flush_rate", "", TOOL_NUMBER},
    {"flush_seconds_left", "", TOOL_NUMBER},
    {"next_checkpoint", "", TOOL_NUMBER},
    {"next_checkpoint_by", "", TOOL_TEXT},
    {"halt", "", TOOL_TEXT},
    {"halt_checkpoints_left", "", TOOL_NUMBER},
    {"halt_exit_after", "", TOOL_NUMBER},
    {"halt_exit_before", "", TOOL_NUMBER},
    {"halt_seconds", "", TOOL_NUMBER},
    {"only_in_caches", "", TOOL_LIST},
    {"work_at_risk", "", TOOL_NUMBER},
};
enum { STATUS_COLUMNS = sizeof status_columns / sizeof *status_columns };

static void row_text(tool_table *t, const char *text)
{
    tool_table_text(t, text && *text ? text : NULL);
}

static void row_number(tool_table *t, int64_t number, bool is_known)
{
    if (is_known)
        tool_table_number(t, number);
    else
        tool_table_text(t, NULL);
}

static void row_real(tool_table *t, double number, bool is_known)
{
    if (is_known)
        tool_table_real(t, number);
    else
        tool_table_text(t, NULL);
}

static void row_time(tool_table *t, int64_t micro)
{
    row_number(t, micro / 1000000, micro > 0);
}

static void row_dataset(tool_table *t, const status_dataset *d)
{
    row_number(t, d->id, d->id > 0);
    row_text(t, d->name);
    row_time(t, d->created);
}

static void row_flush(tool_table *t, const status *s)
{
    const status_dataset *d = &s->flushing;
    bool known = s->rate > 0 && d->bytes >= s->done;
    row_number(t, d->id, d->id > 0);
    row_text(t, d->name);
    row_number(t, s->done, d->id > 0 && s->done >= 0);
    row_number(t, d->bytes, d->id > 0 && d->bytes >= 0);
    row_real(t, s->rate, s->rate >= 0);
    row_real(t, known ? (double)(d->bytes - s->done) / s->rate : 0, known);
    row_number(t, s->due, s->due > 0);
    row_text(t, !s->due                ? NULL
                : s->is_due_configured ? "SCR_CHECKPOINT_SECONDS"
                                       : "earlier checkpoints");
}

static void row_halt(tool_table *t, const status *s)
{
    static const char *const keys[] = {SCR_HALT_KEY_LEFT, SCR_HALT_KEY_AFTER,
                                       SCR_HALT_KEY_BEFORE, SCR_HALT_KEY_SECONDS};
    row_text(t, s->reason);
    for (int i = 0; i < 4; i++) {
        int64_t n = 0;
        bool known = kvtree_util_get_int64(s->halt, keys[i], &n) == 0;
        row_number(t, n, known);
    }
}

int status_print_json(const tool_prefix *prefix, const status *s)
{
    tool_table *t = tool_table_new(status_columns, STATUS_COLUMNS);
    int64_t nodes = s->is_logged && s->run.nodes ? s->run.nodes : s->nodes;
    tool_table_text(t, prefix->path);
    tool_table_number(t, s->now / 1000000);
    tool_table_text(t, status_names[s->state]);
    row_text(t, s->evidence);
    row_number(t, s->process, s->process > 0);
    row_text(t, s->run.id);
    row_text(t, s->run.user);
    row_text(t, s->run.job);
    row_time(t, s->run.started);
    row_time(t, s->run.last);
    row_number(t, s->run.ranks, s->run.ranks > 0);
    row_number(t, nodes, nodes > 0);
    row_text(t, s->run.lost);
    row_dataset(t, &s->cached);
    row_dataset(t, &s->flushed);
    row_flush(t, s);
    row_halt(t, s);
    tool_table_list(t, (const char *const *)s->risk, s->risks);
    row_real(t, s->lost_work, s->lost_work >= 0);
    return tool_table_print(t, TOOL_JSON);
}
