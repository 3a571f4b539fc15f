/* SPDX-License-Identifier: BSD-3-Clause */
/* The report as metrics; see report.h. All are gauges: a log that was removed begins
 * anew, and the format of Prometheus and that of OpenMetrics agree on gauges. */
#include "report/report.h"
#include <inttypes.h>

/* The value of a label: only these three are escaped, and bytes that are no UTF-8 do not
 * occur in a path that others read. */
static void metrics_label(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"') fputc('\\', out);
        if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    }
}

static void metrics_begin(FILE *out, const char *name, const char *unit, const char *help)
{
    fprintf(out, "# TYPE %s gauge\n", name);
    if (unit) fprintf(out, "# UNIT %s %s\n", name, unit);
    fprintf(out, "# HELP %s %s\n", name, help);
}

static void metrics_add(FILE *out, const report *r, const char *name, const char *label,
                        const char *value, double number)
{
    fprintf(out, "%s{prefix=\"", name);
    metrics_label(out, r->prefix);
    fputc('"', out);
    if (label) fprintf(out, ",%s=\"%s\"", label, value);
    fprintf(out, "} %.6f\n", number);
}

static void metrics_one(FILE *out, const report *r, const char *name, const char *unit,
                        const char *help, double number)
{
    if (number < 0) return; /* unknown */
    metrics_begin(out, name, unit, help);
    metrics_add(out, r, name, NULL, NULL, number);
}

static void metrics_moves(FILE *out, const report *r, const char *name, const char *unit,
                          const char *help, int what)
{
    metrics_begin(out, name, unit, help);
    for (int i = 0; i < LEDGER_LEVELS; i++) {
        const ledger_moves *m = &r->ledger->moves[i];
        const double numbers[] = {m->count, m->failed, m->bytes, m->seconds};
        metrics_add(out, r, name, "level", ledger_level_names[i], numbers[what]);
    }
}

void report_write_metrics(FILE *out, const report *r)
{
    const ledger_sum *s = &r->sum;
    metrics_one(out, r, "scr_runs", NULL, "Runs in the log.", s->runs);
    metrics_one(out, r, "scr_runs_interrupted", NULL, "Runs that ended by a failure.",
                s->interrupted);
    metrics_one(out, r, "scr_nodes_lost", NULL, "Nodes that were found to be down.",
                r->ledger->nodes_lost);
    metrics_one(out, r, "scr_checkpoints", NULL, "Complete checkpoints.", s->checkpoints);
    metrics_begin(out, "scr_time_seconds", "seconds", "What the time was spent on.");
    for (int i = 0; i < LEDGER_KINDS; i++)
        metrics_add(out, r, "scr_time_seconds", "kind", ledger_kind_names[i],
                    s->kinds[i]);
    metrics_add(out, r, "scr_time_seconds", "kind", "down", s->down);
    metrics_one(out, r, "scr_efficiency_ratio", "ratio",
                "Computing that counts, as a share of all time.", s->efficiency);
    metrics_one(out, r, "scr_failure_interval_seconds", "seconds",
                "Mean time between failures.", s->mtbf);
    metrics_one(out, r, "scr_checkpoint_cost_seconds", "seconds",
                "Mean time until a checkpoint is in the cache.", s->cost);
    metrics_one(out, r, "scr_checkpoint_interval_seconds", "seconds",
                "Mean time of computing before a checkpoint.", s->interval);
    metrics_one(out, r, "scr_checkpoint_interval_best_seconds", "seconds",
                "The interval that would have been best.", s->best);
    metrics_moves(out, r, "scr_moves", NULL, "Datasets that were moved.", 0);
    metrics_moves(out, r, "scr_moves_failed", NULL, "Datasets that were not.", 1);
    metrics_moves(out, r, "scr_moved_bytes", "bytes", "Bytes that were moved.", 2);
    metrics_moves(out, r, "scr_move_seconds", "seconds", "Time that it took.", 3);
    metrics_one(out, r, "scr_last_event_timestamp_seconds", "seconds",
                "Time of the newest event in the log.", (double)r->ledger->last / 1e6);
    fputs("# EOF\n", out);
}
