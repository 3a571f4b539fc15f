/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the log; see report/log_read.h. A buffer of fixed size holds the lines, so that
 * neither the size of the file nor its content matters. */
#include "report/log_read.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/number.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { BUFFER = 1 << 18 }; /* more than the longest line, with all of its escapes */

/* ---- one line ---- */

/* Returns the length, with the blank after it; 0: it is not a time. */
static int log_parse_time(const char *text, int64_t *micro)
{
    struct tm tm = {.tm_isdst = 0};
    int part, end = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%6dZ %n", &tm.tm_year, &tm.tm_mon,
               &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &part, &end) != 7 ||
        end != sizeof "2026-11-21T21:40:27.123456Z")
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    if (tm.tm_year < 70 || tm.tm_mon < 0 || tm.tm_mon > 11 || part < 0) return 0;
    *micro = (int64_t)timegm(&tm) * 1000000 + part;
    return end;
}

static int log_hex(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* The character that the escape at *text stands for, which is passed over. */
static char log_parse_escape(const char **text)
{
    const char *at = *text + 1;
    int high = *at == 'x' ? log_hex(at[1]) : -1, low = high < 0 ? -1 : log_hex(at[2]);
    *text = at + (low < 0 ? 1 : 3);
    if (low >= 0 && (high || low)) return (char)(high * 16 + low);
    return *at == 'n' ? '\n' : *at;
}

/* Makes a value a text of its own. Returns what follows: a blank, which becomes the end
 * of the value, or the end of the line; NULL for a value without an end. */
static char *log_parse_value(char *text, char **value)
{
    bool is_quoted = *text == '"';
    const char *at = *value = text + is_quoted;
    char *to = *value;
    while (*at && *at != (is_quoted ? '"' : ' '))
        if (is_quoted && at[0] == '\\' && at[1])
            *to++ = log_parse_escape(&at);
        else
            *to++ = *at++;
    char *end = text + (at - text);
    if (is_quoted && *end++ != '"') return NULL;
    if (*end && *end != ' ') return NULL;
    end += *end == ' ';
    *to = 0;
    return end;
}

static void log_parse_kind(const char *name, scr_log_event *event)
{
    event->kind = SCR_LOG_OTHER;
    for (int i = 0; i < SCR_LOG_KINDS; i++)
        if (strcmp(scr_log_types[i].name, name) == 0) event->kind = (scr_log_kind)i;
}

static void log_set_field(scr_log_event *event, const char *name, const char *value)
{
    const scr_log_field *field = scr_log_fields;
    double seconds;
    while (field->name && strcmp(field->name, name) != 0)
        field++;
    char *at = (char *)event + field->offset;
    if (!field->name) return;
    if (field->type == SCR_LOG_FIELD_TEXT && strlen(value) <= field->most)
        memcpy(at, &value, sizeof value);
    if (field->type == SCR_LOG_FIELD_NUMBER) {
        int64_t number = 0;
        if (number_int64(value, &number) == 0) memcpy(at, &number, sizeof number);
    }
    if (field->type == SCR_LOG_FIELD_SECONDS && number_double(value, &seconds) == 0)
        memcpy(at, &seconds, sizeof seconds);
}

int scr_log_parse(char *line, scr_log_event *event)
{
    scr_log_event found = {.secs = -1, .compute = -1};
    char *value;
    int length = log_parse_time(line, &found.time);
    char *text = length ? log_parse_value(line + length, &value) : NULL;
    if (!text) return -EBADMSG;
    log_parse_kind(value, &found);
    while (*text) {
        const char *name = text;
        text += strcspn(text, "= ");
        if (*text != '=') return -EBADMSG;
        *text++ = 0;
        text = log_parse_value(text, &value);
        if (!text) return -EBADMSG;
        log_set_field(&found, name, value);
    }
    *event = found;
    return 0;
}

/* ---- the file ---- */

typedef struct log_lines {
    int fd;
    off_t at;    /* of the byte after those in the buffer */
    bool is_cut; /* the begin of the first line is missing */
    size_t size; /* bytes in the buffer */
    char *buffer;
    scr_log_reader *reader;
    void *arg;
} log_lines;

/* Uses the whole lines of the buffer, and keeps the rest. */
static void log_use_lines(log_lines *l)
{
    scr_log_event event;
    char *end, *text = l->buffer, *last = l->buffer + l->size;
    for (; (end = memchr(text, '\n', (size_t)(last - text))); text = end + 1) {
        *end = 0;
        /* no line of SCR has a NUL in it */
        if (!l->is_cut && strlen(text) == (size_t)(end - text) &&
            scr_log_parse(text, &event) == 0)
            l->reader(l->arg, &event);
        l->is_cut = false;
    }
    l->size = (size_t)(last - text);
    if (l->size == BUFFER) { /* a line without an end */
        l->size = 0;
        l->is_cut = true;
    }
    memmove(l->buffer, text, l->size);
}

static int log_read_lines(log_lines *l, kvtree_error *err)
{
    ssize_t n;
    l->buffer = malloc(BUFFER);
    if (!l->buffer) return err_set(err, -ENOMEM, "no memory");
    do {
        n = io_pread(l->fd, l->buffer + l->size, BUFFER - l->size, l->at);
        if (n > 0) {
            l->at += n;
            l->size += (size_t)n;
            log_use_lines(l);
        }
    } while (n > 0);
    free(l->buffer);
    return n < 0 ? err_sys(err, (int)n, "read %s", SCR_LOG_TEXT_NAME) : 0;
}

int scr_log_read(int prefix, int64_t most, scr_log_reader *reader, void *arg,
                 kvtree_error *err)
{
    struct stat st;
    log_lines l = {.reader = reader, .arg = arg};
    int rc = beneath_open(prefix, SCR_LOG_TEXT_NAME, O_RDONLY, 0, &l.fd, err);
    if (rc) return rc;
    if (fstat(l.fd, &st) != 0) rc = err_sys(err, -errno, "stat %s", SCR_LOG_TEXT_NAME);
    if (!rc && most > 0 && st.st_size > most) {
        l.at = st.st_size - most;
        l.is_cut = true;
    }
    if (!rc) rc = log_read_lines(&l, err);
    io_close(&l.fd);
    return rc;
}
