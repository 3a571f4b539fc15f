/* SPDX-License-Identifier: BSD-3-Clause */
/* Events in memory, as lines of text, and as lines of JSON; see report/log.h. Numbers do
 * not depend on the locale of the application, which may have another decimal point. */
#include "common/io.h"
#include "report/log_private.h"

#include "common/number.h"
#include "report/quote.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const void *log_event_member(const scr_log_event *event,
                                    const scr_log_field *field)
{
    return (const char *)event + field->offset;
}

static bool log_event_has(const scr_log_event *event, const scr_log_field *field)
{
    return scr_log_types[event->kind].fields >> (field - scr_log_fields) & 1;
}

/* ---- copies ---- */

static void log_event_fill(scr_log_event *event, const scr_log_options *options)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (!event->time) event->time = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    if (!event->run) event->run = options->run;
    if (!event->user) event->user = options->user;
    if (!event->job_id) event->job_id = options->job_id;
    if (!event->host) event->host = options->host;
    if (!event->bandwidth && event->secs > 0) {
        double bandwidth = (double)event->bytes / event->secs;
        event->bandwidth = bandwidth < 9e18 ? (int64_t)bandwidth : INT64_MAX;
    }
}

/* Returns the address of the text of a field; NULL if the event has no text for it. */
static const char **log_event_text(scr_log_event *event, const scr_log_field *field)
{
    const char **text = (void *)((char *)event + field->offset);
    if (field->type != SCR_LOG_FIELD_TEXT) return NULL;
    if (!log_event_has(event, field)) *text = NULL;
    return *text ? text : NULL;
}

scr_log_event *scr_log_copy(const scr_log_event *event, const scr_log_options *options)
{
    scr_log_event filled = *event;
    const scr_log_field *f;
    const char **text;
    size_t size = sizeof filled;
    log_event_fill(&filled, options);
    for (f = scr_log_fields; f->name; f++)
        if ((text = log_event_text(&filled, f))) size += strnlen(*text, f->most) + 1;
    scr_log_event *copy = calloc(1, size);
    if (!copy) return NULL;
    char *end = (char *)(copy + 1);
    for (f = scr_log_fields; f->name; f++) {
        if (!(text = log_event_text(&filled, f))) continue;
        size_t length = strnlen(*text, f->most);
        memcpy(end, *text, length);
        *text = end;
        end += length + 1;
    }
    *copy = filled;
    return copy;
}

/* ---- values ---- */

static const char *log_event_time(int64_t time, char buffer[SCR_LOG_VALUE_SIZE])
{
    struct tm tm;
    int64_t second = time / 1000000, part = time % 1000000;
    if (part < 0) {
        part += 1000000;
        second--;
    }
    time_t t = (time_t)second;
    if (!gmtime_r(&t, &tm) || tm.tm_year > 8099 || tm.tm_year < -1900) return NULL;
    snprintf(buffer, SCR_LOG_VALUE_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ",
             tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
             tm.tm_sec, (int)part);
    return buffer;
}

/* Writes seconds. An invalid run time, such as a NaN, counts as 0. */
static const char *log_event_seconds(double seconds, char buffer[SCR_LOG_VALUE_SIZE])
{
    if (!(seconds > 0 && seconds < 1e12)) seconds = 0;
    long long micro = (long long)(seconds * 1e6 + 0.5);
    snprintf(buffer, SCR_LOG_VALUE_SIZE, "%lld.%06lld", micro / 1000000, micro % 1000000);
    return buffer;
}

const char *scr_log_value(const scr_log_event *event, const scr_log_field *field,
                          char buffer[SCR_LOG_VALUE_SIZE])
{
    const char *text;
    if (!log_event_has(event, field)) return NULL;
    switch (field->type) {
    case SCR_LOG_FIELD_TIME:
        return log_event_time(event->time, buffer);
    case SCR_LOG_FIELD_KIND:
        return scr_log_types[event->kind].name;
    case SCR_LOG_FIELD_NUMBER:
        return number_text_int64(buffer,
                                 *(const int64_t *)log_event_member(event, field));
    case SCR_LOG_FIELD_SECONDS:
        return log_event_seconds(*(const double *)log_event_member(event, field), buffer);
    case SCR_LOG_FIELD_TEXT:
        text = *(const char *const *)log_event_member(event, field);
        return text && *text ? text : NULL;
    }
    return NULL;
}

/* ---- lines ---- */

void scr_log_quote(FILE *out, const char *text)
{
    fputc('"', out);
    scr_quote_text(out, text, "\"");
    fputc('"', out);
}

static void log_event_put_text(FILE *out, const scr_log_field *field, const char *value)
{
    if (field->type == SCR_LOG_FIELD_KIND)
        fputc(' ', out);
    else if (field->type != SCR_LOG_FIELD_TIME)
        fprintf(out, " %s=", field->name);
    if (field->type == SCR_LOG_FIELD_TEXT)
        scr_log_quote(out, value);
    else
        fputs(value, out);
}

/* Writes a field. If value is not valid UTF-8, its exact bytes follow as <name>_hex. */
static void log_event_put_json(FILE *out, const scr_log_field *field, const char *value)
{
    bool is_exact = true;
    fprintf(out, "%s\"%s\": ", field == scr_log_fields ? "{" : ", ", field->name);
    if (field->type == SCR_LOG_FIELD_NUMBER || field->type == SCR_LOG_FIELD_SECONDS)
        fputs(value, out);
    else
        is_exact = scr_quote_json(out, value);
    if (is_exact) return;
    fprintf(out, ", \"%s_hex\": \"", field->name);
    for (; *value; value++)
        fprintf(out, "%02x", (unsigned char)*value);
    fputc('"', out);
}

static char *log_event_line(const scr_log_event *event, const char *end, size_t *size,
                            void (*put)(FILE *, const scr_log_field *, const char *))
{
    char *line = NULL, buffer[SCR_LOG_VALUE_SIZE];
    FILE *out = open_memstream(&line, size);
    if (!out) return NULL;
    for (const scr_log_field *f = scr_log_fields; f->name; f++) {
        const char *value = scr_log_value(event, f, buffer);
        /* every line begins with a time, even if the time is beyond the calendar */
        if (!value && f->type == SCR_LOG_FIELD_TIME)
            value = "0000-00-00T00:00:00.000000Z";
        if (value) put(out, f, value);
    }
    fputs(end, out);
    return io_text_end(out, &line);
}

char *scr_log_text_line(const scr_log_event *event, size_t *size)
{
    return log_event_line(event, "\n", size, log_event_put_text);
}

char *scr_log_json_line(const scr_log_event *event, size_t *size)
{
    return log_event_line(event, "}\n", size, log_event_put_json);
}
