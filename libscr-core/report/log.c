/* SPDX-License-Identifier: BSD-3-Clause */
/* The log: writes each event to all targets, and counts the events that a target does not
 * accept; see report/log.h. */
#include "report/log_private.h"

#include "common/errtext.h"
#include "common/io.h"
#include "report/metrics.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

struct log_target {
    bool is_open, is_reported; /* is_reported: its first failure was reported */
    long dropped;
};

struct scr_log {
    scr_log_options options;
    struct log_target targets[SCR_LOG_TARGETS];
    scr_log_file files[SCR_LOG_SYSLOG]; /* of SCR_LOG_TEXT and SCR_LOG_JSON */
    scr_log_syslog syslog;
    scr_log_queue *queue;
    scr_metrics *metrics;
};

static const char *const log_target_names[] = {
    [SCR_LOG_TEXT] = SCR_LOG_TEXT_NAME,
    [SCR_LOG_JSON] = SCR_LOG_JSON_NAME,
    [SCR_LOG_SYSLOG] = "syslog",
    [SCR_LOG_DATABASE] = "the database",
    [SCR_LOG_METRICS] = "the file SCR_METRICS",
};

static void log_warn(const scr_log *log, scr_message message, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void log_warn(const scr_log *log, scr_message message, const char *format, ...)
{
    char line[sizeof(kvtree_error) + 200];
    va_list args;
    if (!log->options.report) return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log->options.report(log->options.arg, message, line);
}

/* Reports the first failure of a target. Later failures are only counted. */
static void log_report_failure(scr_log *log, int target, const char *err)
{
    if (!log->targets[target].is_reported)
        log_warn(log, SCR_MSG_LOG_TARGET_FAILED, "events are not logged to %s: %s",
                 log_target_names[target], err);
    log->targets[target].is_reported = true;
}

/* ---- open ---- */

static int log_open_database(scr_log *log, kvtree_error *err)
{
    scr_log_sink sink;
    int rc = scr_log_db_open(&log->options, &sink, err);
    if (rc) return rc;
    rc = scr_log_queue_new(&sink, &log->queue);
    if (!rc) return 0;
    sink.done(sink.self);
    return err_sys(err, rc, "start a thread");
}

static int log_open_target(scr_log *log, int target, kvtree_error *err)
{
    const char *socket = log->options.syslog_socket;
    if (target == SCR_LOG_DATABASE) return log_open_database(log, err);
    if (target == SCR_LOG_METRICS)
        return scr_metrics_open(log->options.set.metrics, log->options.prefix,
                                log->options.prefix_path, &log->metrics, err);
    if (target == SCR_LOG_SYSLOG)
        return scr_log_syslog_open(&log->syslog, socket ? socket : "/dev/log", err);
    return scr_log_file_open(&log->files[target], log->options.prefix,
                             log_target_names[target], log->options.set.file_size, err);
}

int scr_log_open(const scr_log_options *options, scr_log **log)
{
    kvtree_error err;
    *log = calloc(1, sizeof **log);
    if (!*log) return -ENOMEM;
    (*log)->options = *options;
    (*log)->files[SCR_LOG_TEXT].fd = (*log)->files[SCR_LOG_JSON].fd = -1;
    (*log)->syslog.fd = -1;
    for (int i = 0; i < SCR_LOG_TARGETS; i++) {
        if (!(options->set.targets >> i & 1)) continue;
        (*log)->targets[i].is_open = log_open_target(*log, i, &err) == 0;
        if (!(*log)->targets[i].is_open) log_report_failure(*log, i, err.text);
    }
    return 0;
}

/* ---- write ---- */

static int log_write_line(scr_log *log, int target, const scr_log_event *event,
                          kvtree_error *err)
{
    size_t size;
    char *line = target == SCR_LOG_JSON ? scr_log_json_line(event, &size)
                                        : scr_log_text_line(event, &size);
    if (!line) return err_set(err, -ENOMEM, "no memory");
    int rc = target == SCR_LOG_SYSLOG
                 ? scr_log_syslog_write(&log->syslog, &log->options.set, line, size, err)
                 : scr_log_file_write(&log->files[target], line, size, err);
    free(line);
    return rc;
}

/* Hands a copy of the event to the thread of the database. */
static int log_queue_event(scr_log *log, const scr_log_event *event, kvtree_error *err)
{
    scr_log_event *copy = scr_log_copy(event, &log->options);
    char *statement = log->options.set.db_debug ? scr_log_statement(event) : NULL;
    if (statement && log->options.report)
        log->options.report(log->options.arg, SCR_MSG_LOG_STATEMENT, statement);
    free(statement);
    if (scr_log_queue_failed(log->queue, err))
        log_report_failure(log, SCR_LOG_DATABASE, err->text);
    if (!copy) return err_set(err, -ENOMEM, "no memory");
    scr_log_queue_add(log->queue, copy);
    return 0;
}

static int log_write_target(scr_log *log, int target, const scr_log_event *event,
                            kvtree_error *err)
{
    if (!event) return err_set(err, -ENOMEM, "no memory");
    if (target == SCR_LOG_METRICS) return scr_metrics_add(log->metrics, event, err);
    return target == SCR_LOG_DATABASE ? log_queue_event(log, event, err)
                                      : log_write_line(log, target, event, err);
}

void scr_log_write(scr_log *log, const scr_log_event *event)
{
    kvtree_error err;
    if (!log || !log->options.set.targets) return;
    scr_log_event *copy = scr_log_copy(event, &log->options);
    for (int i = 0; i < SCR_LOG_TARGETS; i++) {
        struct log_target *t = &log->targets[i];
        if (!(log->options.set.targets >> i & 1)) continue;
        if (t->is_open && log_write_target(log, i, copy, &err) == 0) continue;
        t->dropped++;
        if (t->is_open) log_report_failure(log, i, err.text);
    }
    free(copy);
}

/* ---- close ---- */

scr_log *scr_log_close(scr_log *log)
{
    kvtree_error err;
    if (!log) return NULL;
    if (log->queue) {
        double seconds = log->options.db_end > 0 ? log->options.db_end : 2;
        log->targets[SCR_LOG_DATABASE].dropped +=
            scr_log_queue_close(log->queue, seconds, &err);
        if (err.text[0]) log_report_failure(log, SCR_LOG_DATABASE, err.text);
    }
    for (int i = 0; i < SCR_LOG_TARGETS; i++)
        if (log->targets[i].dropped)
            log_warn(log, SCR_MSG_LOG_EVENTS_DROPPED, "%ld events were not logged to %s",
                     log->targets[i].dropped, log_target_names[i]);
    io_close(&log->files[SCR_LOG_TEXT].fd);
    io_close(&log->files[SCR_LOG_JSON].fd);
    io_close(&log->syslog.fd);
    scr_metrics_close(log->metrics);
    free(log);
    return NULL;
}

void scr_log_run_id(char id[SCR_LOG_RUN_SIZE])
{
    struct tm tm = {0};
    struct timespec now;
    uint32_t random;
    clock_gettime(CLOCK_REALTIME, &now);
    /* without random numbers, the nanoseconds distinguish runs */
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint32_t)now.tv_nsec;
    gmtime_r(&now.tv_sec, &tm);
    snprintf(id, SCR_LOG_RUN_SIZE, "%04d%02d%02dT%02d%02d%02d-%08x",
             (tm.tm_year + 1900) % 10000, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
             tm.tm_min, tm.tm_sec, (unsigned)random);
}
