/* SPDX-License-Identifier: BSD-3-Clause */
/* The log: one event to all targets, and what they did not take; see report/log.h. */
#include "report/log_private.h"

#include "common/errtext.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

struct target {
    int on;
    int told; /* that it failed */
    long dropped;
};

struct scr_log {
    scr_log_options options;
    struct target targets[SCR_LOG_TARGETS];
    scr_log_file text, json;
    scr_log_syslog syslog;
    scr_log_queue *queue;
    char *copies[5]; /* what options points to */
};

static const char *const target_names[] = {
    [SCR_LOG_TEXT] = SCR_LOG_TEXT_NAME,
    [SCR_LOG_JSON] = SCR_LOG_JSON_NAME,
    [SCR_LOG_SYSLOG] = "syslog",
    [SCR_LOG_DATABASE] = "the database",
};

static void say(const scr_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const scr_log *log, const char *format, ...)
{
    char text[ERRTEXT_SIZE + 180], line[ERRTEXT_SIZE + 200];
    va_list args;
    if (!log->options.report) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(line, sizeof line, "warning: %s", text);
    log->options.report(log->options.arg, line);
}

/* The first failure of a target is told, the others are only counted. */
static void failed(scr_log *log, int target, const char *err)
{
    if (!log->targets[target].told)
        say(log, "events are not logged to %s: %s", target_names[target], err);
    log->targets[target].told = 1;
}

/* ---- open ---- */

static int open_database(scr_log *log, char *err)
{
    scr_log_sink sink;
    int rc = scr_log_db_open(&log->options, &sink, err);
    if (rc) return rc;
    rc = scr_log_queue_new(&sink, &log->queue);
    if (!rc) return 0;
    sink.done(sink.self);
    return err_sys(err, rc, "start a thread");
}

static void open_target(scr_log *log, int target)
{
    char err[ERRTEXT_SIZE] = "";
    int rc = 0, prefix = log->options.prefix;
    const char *socket = log->options.syslog_socket;
    if (!(log->options.set.targets >> target & 1)) return;
    if (target == SCR_LOG_TEXT)
        rc = scr_log_file_open(&log->text, prefix, SCR_LOG_TEXT_NAME, err);
    else if (target == SCR_LOG_JSON)
        rc = scr_log_file_open(&log->json, prefix, SCR_LOG_JSON_NAME, err);
    else if (target == SCR_LOG_SYSLOG)
        rc = scr_log_syslog_open(&log->syslog, socket ? socket : "/dev/log", err);
    else
        rc = open_database(log, err);
    log->targets[target].on = !rc;
    if (rc) failed(log, target, err);
}

static int copy_options(scr_log *log, const scr_log_options *options)
{
    scr_log_options *o = &log->options;
    *o = *options;
    const char **texts[] = {&o->run, &o->user, &o->job_id, &o->host, &o->syslog_socket};
    for (int i = 0; i < 5; i++) {
        if (!*texts[i]) continue;
        log->copies[i] = strdup(*texts[i]);
        if (!log->copies[i]) return -1;
        *texts[i] = log->copies[i];
    }
    return 0;
}

static void free_log(scr_log *log)
{
    for (int i = 0; i < 5; i++)
        free(log->copies[i]);
    free(log);
}

int scr_log_open(const scr_log_options *options, scr_log **log)
{
    *log = NULL;
    scr_log *made = calloc(1, sizeof *made);
    if (!made) return -ENOMEM;
    made->text.fd = made->json.fd = made->syslog.fd = -1;
    if (copy_options(made, options) != 0) {
        free_log(made);
        return -ENOMEM;
    }
    for (int i = 0; i < SCR_LOG_TARGETS; i++)
        open_target(made, i);
    *log = made;
    return 0;
}

/* ---- write ---- */

static void count(scr_log *log, int target, int rc, const char *err)
{
    if (!rc) return;
    log->targets[target].dropped++;
    failed(log, target, err);
}

/* 1: the target gets the event. One that could not be opened, which was told then, only
 * counts it. */
static int takes(scr_log *log, int target)
{
    struct target *t = &log->targets[target];
    if (!t->on && log->options.set.targets >> target & 1) t->dropped++;
    return t->on;
}

static void write_lines(scr_log *log, const scr_log_event *event)
{
    char err[ERRTEXT_SIZE] = "no memory";
    size_t size = 0;
    int text = takes(log, SCR_LOG_TEXT), syslog = takes(log, SCR_LOG_SYSLOG);
    char *line = text || syslog ? scr_log_text_line(event, &size) : NULL;
    if (text)
        count(log, SCR_LOG_TEXT,
              line ? scr_log_file_write(&log->text, line, size, err) : -1, err);
    if (syslog)
        count(log, SCR_LOG_SYSLOG,
              line ? scr_log_syslog_write(&log->syslog, line, size, err) : -1, err);
    free(line);
    if (!takes(log, SCR_LOG_JSON)) return;
    strcpy(err, "no memory");
    line = scr_log_json_line(event, &size);
    count(log, SCR_LOG_JSON, line ? scr_log_file_write(&log->json, line, size, err) : -1,
          err);
    free(line);
}

static void tell_news(scr_log *log)
{
    char err[ERRTEXT_SIZE];
    if (scr_log_queue_news(log->queue, err)) failed(log, SCR_LOG_DATABASE, err);
}

/* Takes the event over. */
static void queue_event(scr_log *log, scr_log_event *event)
{
    char *statement = log->options.set.db_debug ? scr_log_statement(event) : NULL;
    if (statement && log->options.report) log->options.report(log->options.arg, statement);
    free(statement);
    tell_news(log);
    scr_log_queue_add(log->queue, event);
}

void scr_log_write(scr_log *log, const scr_log_event *event)
{
    if (!log || !log->options.set.targets) return;
    scr_log_event *copy = scr_log_copy(event, &log->options);
    if (!copy) {
        for (int i = 0; i < SCR_LOG_TARGETS; i++)
            log->targets[i].dropped += log->options.set.targets >> i & 1;
        return;
    }
    write_lines(log, copy);
    if (takes(log, SCR_LOG_DATABASE))
        queue_event(log, copy);
    else
        free(copy);
}

/* ---- close ---- */

scr_log *scr_log_close(scr_log *log)
{
    char err[ERRTEXT_SIZE];
    if (!log) return NULL;
    if (log->queue) {
        double end = log->options.db_end > 0 ? log->options.db_end : 2;
        tell_news(log);
        log->targets[SCR_LOG_DATABASE].dropped +=
            scr_log_queue_close(log->queue, end, err);
        if (err[0]) failed(log, SCR_LOG_DATABASE, err);
    }
    scr_log_file_close(&log->text);
    scr_log_file_close(&log->json);
    scr_log_syslog_close(&log->syslog);
    for (int i = 0; i < SCR_LOG_TARGETS; i++)
        if (log->targets[i].dropped)
            say(log, "%ld events were not logged to %s", log->targets[i].dropped,
                target_names[i]);
    free_log(log);
    return NULL;
}

void scr_log_run_id(char id[SCR_LOG_RUN_SIZE])
{
    struct tm tm = {0};
    struct timespec now;
    uint32_t random;
    clock_gettime(CLOCK_REALTIME, &now);
    /* without random numbers the nanoseconds tell two runs apart */
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint32_t)now.tv_nsec;
    gmtime_r(&now.tv_sec, &tm);
    snprintf(id, SCR_LOG_RUN_SIZE, "%04d%02d%02dT%02d%02d%02d-%08x",
             (tm.tm_year + 1900) % 10000, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
             tm.tm_min, tm.tm_sec, (unsigned)random);
}
