/* SPDX-License-Identifier: BSD-3-Clause */
/* Events in memory, as lines of text and as lines of JSON; see report/log.h. Numbers are
 * written without the locale of the application, which may have another decimal point. */
#include "report/log_private.h"

#include "common/number.h"
#include "report/quote.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const void *member(const scr_log_event *event, const scr_log_field *field)
{
    return (const char *)event + field->offset;
}

static const char *text_of(const scr_log_event *event, const scr_log_field *field)
{
    const char *const *text = member(event, field);
    return *text;
}

static int has(const scr_log_event *event, const scr_log_field *field)
{
    return scr_log_types[event->kind].fields >> (field - scr_log_fields) & 1;
}

/* ---- copies ---- */

static void fill_in(scr_log_event *event, const scr_log_options *options)
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

scr_log_event *scr_log_copy(const scr_log_event *event, const scr_log_options *options)
{
    scr_log_event filled = *event;
    const scr_log_field *f;
    size_t size = sizeof filled;
    fill_in(&filled, options);
    for (f = scr_log_fields; f->name; f++)
        if (f->type == SCR_LOG_FIELD_TEXT && has(&filled, f) && text_of(&filled, f))
            size += strnlen(text_of(&filled, f), f->most) + 1;
    char *memory = malloc(size);
    if (!memory) return NULL;
    char *end = memory + sizeof filled;
    for (f = scr_log_fields; f->name; f++) {
        if (f->type != SCR_LOG_FIELD_TEXT) continue;
        const char **text = (void *)((char *)&filled + f->offset);
        if (!has(&filled, f) || !*text) {
            *text = NULL;
            continue;
        }
        size_t length = strnlen(*text, f->most);
        memcpy(end, *text, length);
        end[length] = 0;
        *text = end;
        end += length + 1;
    }
    memcpy(memory, &filled, sizeof filled);
    return (scr_log_event *)(void *)memory;
}

/* ---- values ---- */

static const char *time_text(int64_t time, char buffer[SCR_LOG_VALUE_SIZE])
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

/* What is no time that a run can take, such as a NaN, counts as 0. */
static const char *seconds_text(double seconds, char buffer[SCR_LOG_VALUE_SIZE])
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
    if (!has(event, field)) return NULL;
    switch (field->type) {
    case SCR_LOG_FIELD_TIME:
        return time_text(event->time, buffer);
    case SCR_LOG_FIELD_KIND:
        return scr_log_types[event->kind].name;
    case SCR_LOG_FIELD_NUMBER:
        return number_text_int64(buffer, *(const int64_t *)member(event, field));
    case SCR_LOG_FIELD_SECONDS:
        return seconds_text(*(const double *)member(event, field), buffer);
    case SCR_LOG_FIELD_TEXT:
        text = text_of(event, field);
        return text && *text ? text : NULL;
    }
    return NULL;
}

/* ---- lines ---- */

static void put_quoted(FILE *out, const char *text)
{
    fputc('"', out);
    scr_quote_text(out, text, "\"");
    fputc('"', out);
}

static void put_text_field(FILE *out, const scr_log_field *field, const char *value)
{
    if (field->type == SCR_LOG_FIELD_TIME) {
        fputs(value, out);
    } else if (field->type == SCR_LOG_FIELD_KIND) {
        fprintf(out, " %s", value);
    } else {
        fprintf(out, " %s=", field->name);
        if (field->type == SCR_LOG_FIELD_TEXT)
            put_quoted(out, value);
        else
            fputs(value, out);
    }
}

/* Bytes that are not UTF-8 are given once more, exactly, as <name>_hex. */
static void put_json_field(FILE *out, const scr_log_field *field, const char *value)
{
    int exact = 1, number = field->type == SCR_LOG_FIELD_NUMBER ||
                            field->type == SCR_LOG_FIELD_SECONDS;
    fprintf(out, "%s\"%s\": ", field == scr_log_fields ? "{" : ", ", field->name);
    if (number)
        fputs(value, out);
    else
        exact = scr_quote_json(out, value);
    if (exact) return;
    fprintf(out, ", \"%s_hex\": \"", field->name);
    for (; *value; value++)
        fprintf(out, "%02x", (unsigned char)*value);
    fputc('"', out);
}

static char *line_of(const scr_log_event *event, const char *end, size_t *size,
                     void (*put)(FILE *, const scr_log_field *, const char *))
{
    char *line = NULL, buffer[SCR_LOG_VALUE_SIZE];
    FILE *out = open_memstream(&line, size);
    if (!out) return NULL;
    for (const scr_log_field *f = scr_log_fields; f->name; f++) {
        const char *value = scr_log_value(event, f, buffer);
        /* a time that no calendar has does not take its place from the line */
        if (!value && f->type == SCR_LOG_FIELD_TIME)
            value = "0000-00-00T00:00:00.000000Z";
        if (value) put(out, f, value);
    }
    fputs(end, out);
    int bad = ferror(out);
    if (fclose(out) == 0 && !bad) return line;
    free(line);
    return NULL;
}

char *scr_log_text_line(const scr_log_event *event, size_t *size)
{
    return line_of(event, "\n", size, put_text_field);
}

char *scr_log_json_line(const scr_log_event *event, size_t *size)
{
    return line_of(event, "}\n", size, put_json_field);
}

int scr_log_quote(const char *text, char **quoted)
{
    size_t size;
    char *made = NULL;
    FILE *out = open_memstream(&made, &size);
    if (!out) return -ENOMEM;
    put_quoted(out, text);
    int bad = ferror(out);
    if (fclose(out) != 0 || bad) {
        free(made);
        return -ENOMEM;
    }
    *quoted = made;
    return 0;
}
