/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics; see report/metrics.h. All metrics are gauges: values restart when a log is
 * removed, and the formats of Prometheus and OpenMetrics agree on gauges. */
#include "report/metrics.h"

#include "common/batch.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

typedef struct metrics_source {
    const char *prefix;
    const scr_ledger *ledger;
} metrics_source;

/* Writes the value of a label. Only backslash, quote and newline are escaped. Bytes that
 * are not UTF-8 do not occur in a path that others read. */
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

static void metrics_add(FILE *out, const metrics_source *m, const char *name,
                        const char *label, const char *value, double number)
{
    fprintf(out, "%s{prefix=\"", name);
    metrics_label(out, m->prefix);
    fputc('"', out);
    if (label) fprintf(out, ",%s=\"%s\"", label, value);
    fprintf(out, "} %.6f\n", number);
}

static void metrics_one(FILE *out, const metrics_source *m, const char *name,
                        const char *unit, const char *help, double number)
{
    if (number < 0) return; /* unknown value */
    metrics_begin(out, name, unit, help);
    metrics_add(out, m, name, NULL, NULL, number);
}

static void metrics_moves(FILE *out, const metrics_source *m, const char *name,
                          const char *unit, const char *help, int what)
{
    metrics_begin(out, name, unit, help);
    for (int i = 0; i < LEDGER_LEVELS; i++) {
        const scr_ledger_moves *l = &m->ledger->moves[i];
        const double numbers[] = {l->count, l->failed, l->bytes, l->seconds};
        metrics_add(out, m, name, "level", scr_ledger_level_names[i], numbers[what]);
    }
}

void scr_metrics_write(FILE *out, const char *prefix, const scr_ledger *l,
                       const scr_ledger_sum *s)
{
    const metrics_source source = {prefix, l}, *m = &source;
    /* the locale of the application may have another decimal point */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
    metrics_one(out, m, "scr_runs", NULL, "Runs in the log.", s->runs);
    metrics_one(out, m, "scr_runs_interrupted", NULL, "Runs that ended by a failure.",
                s->interrupted);
    metrics_one(out, m, "scr_nodes_lost", NULL, "Nodes that were found to be down.",
                m->ledger->nodes_lost);
    metrics_one(out, m, "scr_checkpoints", NULL, "Complete checkpoints.", s->checkpoints);
    metrics_begin(out, "scr_time_seconds", "seconds", "What the time was spent on.");
    for (int i = 0; i < LEDGER_KINDS; i++)
        metrics_add(out, m, "scr_time_seconds", "kind", scr_ledger_kind_names[i],
                    s->kinds[i]);
    metrics_add(out, m, "scr_time_seconds", "kind", "down", s->down);
    metrics_one(out, m, "scr_efficiency_ratio", "ratio",
                "Computing that counts, as a share of all time.", s->efficiency);
    metrics_one(out, m, "scr_failure_interval_seconds", "seconds",
                "Mean time between failures.", s->mtbf);
    metrics_one(out, m, "scr_checkpoint_cost_seconds", "seconds",
                "Mean time until a checkpoint is in the cache.", s->cost);
    metrics_one(out, m, "scr_checkpoint_interval_seconds", "seconds",
                "Mean time of computing before a checkpoint.", s->interval);
    metrics_one(out, m, "scr_checkpoint_interval_best_seconds", "seconds",
                "The interval that would have been best.", s->best);
    metrics_moves(out, m, "scr_moves", NULL, "Datasets that were moved.", 0);
    metrics_moves(out, m, "scr_moves_failed", NULL, "Datasets that were not.", 1);
    metrics_moves(out, m, "scr_moved_bytes", "bytes", "Bytes that were moved.", 2);
    metrics_moves(out, m, "scr_move_seconds", "seconds", "Time that it took.", 3);
    metrics_one(out, m, "scr_last_event_timestamp_seconds", "seconds",
                "Time of the newest event in the log.", (double)m->ledger->last / 1e6);
    fputs("# EOF\n", out);
    uselocale(before);
    freelocale(plain);
}

/* ---- a file ---- */

struct scr_metrics {
    char *prefix, *folder;
    const char *name; /* name of the file in folder */
    scr_ledger ledger;
};

int scr_metrics_open(const char *path, int prefix, const char *prefix_path,
                     scr_metrics **metrics, kvtree_error *err)
{
    scr_metrics *m = calloc(1, sizeof *m);
    const char *slash = strrchr(path, '/');
    if (!m) return err_set(err, -ENOMEM, "no memory");
    *metrics = m;
    m->prefix = strdup(prefix_path);
    m->folder = strdup(path);
    if (!m->prefix || !m->folder) return err_set(err, -ENOMEM, "no memory");
    m->name = slash ? m->folder + (slash - path) + 1 : "";
    if (*path != '/' || !*m->name)
        return err_set(err, -EINVAL, "SCR_METRICS=%s is not the absolute path of a file",
                       path);
    m->folder[slash - path] = 0;
    int rc = scr_ledger_begin(prefix, &m->ledger, err);
    return rc == -ENOENT ? 0 : rc;
}

/* Replaces the file without fsync: after a power loss, the next event writes it again. */
static int metrics_replace(const scr_metrics *m, const char *text, size_t size,
                           kvtree_error *err)
{
    batch b = {.dir = -1, .durability = BATCH_UNSYNCED};
    const char *folder = *m->folder ? m->folder : "/";
    int fd, rc;
    b.dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (b.dir < 0) return err_sys(err, -errno, "%s", folder);
    rc = batch_open(&b, m->name, 0644, &fd, err);
    if (!rc && (rc = io_write(fd, text, size)) != 0)
        err_sys(err, rc, "write %s", m->name);
    if (!rc) rc = batch_commit(&b, err);
    batch_drop(&b);
    io_close(&b.dir);
    return rc;
}

int scr_metrics_add(scr_metrics *m, const scr_log_event *event, kvtree_error *err)
{
    scr_ledger_sum sum;
    char *text = NULL;
    size_t size = 0;
    scr_ledger_take(&m->ledger, event);
    int rc = scr_ledger_sum_now(&m->ledger, &sum);
    FILE *out = rc ? NULL : open_memstream(&text, &size);
    if (out) scr_metrics_write(out, m->prefix, &m->ledger, &sum);
    if (!out || fclose(out) != 0) {
        free(text);
        return err_set(err, -ENOMEM, "no memory");
    }
    rc = metrics_replace(m, text, size, err);
    free(text);
    return rc;
}

scr_metrics *scr_metrics_close(scr_metrics *m)
{
    if (!m) return NULL;
    scr_ledger_done(&m->ledger);
    free(m->prefix);
    free(m->folder);
    free(m);
    return NULL;
}
