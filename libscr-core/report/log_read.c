/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the log; see report/log_read.h. A buffer of fixed size holds the lines, so memory
 * does not depend on the size or content of the file. */
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

enum {
    BUFFER = 1 << 18, /* more than the longest line with all its escapes */
    ATTEMPTS = 8
};

/* ---- one line ---- */

/* Parses a time. Returns its length with the blank after it; 0: not a time. */
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

/* Returns the character that the escape at *text stands for, and advances *text. */
static char log_parse_escape(const char **text)
{
    const char *at = *text + 1;
    int high = *at == 'x' ? log_hex(at[1]) : -1, low = high < 0 ? -1 : log_hex(at[2]);
    *text = at + (low < 0 ? 1 : 3);
    if (low >= 0 && (high || low)) return (char)(high * 16 + low);
    return *at == 'n' ? '\n' : *at;
}

/* Terminates a value with a NUL. Returns the rest of the line after the value and a
 * blank; NULL for a value without an end. */
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
    off_t at;    /* offset of the byte after the buffer */
    bool is_cut; /* the beginning of the first line is missing */
    size_t size; /* bytes in the buffer */
    char *buffer;
    scr_log_reader *reader;
    void *arg;
} log_lines;

/* Passes the whole lines in the buffer to the reader, and keeps the rest. */
static void log_use_lines(log_lines *l)
{
    scr_log_event event;
    char *end, *text = l->buffer, *last = l->buffer + l->size;
    for (; (end = memchr(text, '\n', (size_t)(last - text))); text = end + 1) {
        *end = 0;
        /* lines of SCR contain no NUL */
        if (!l->is_cut && strlen(text) == (size_t)(end - text) &&
            scr_log_parse(text, &event) == 0)
            l->reader(l->arg, &event);
        l->is_cut = false;
    }
    l->size = (size_t)(last - text);
    if (l->size == BUFFER) { /* a line that is too long */
        l->size = 0;
        l->is_cut = true;
    }
    memmove(l->buffer, text, l->size);
}

static int log_read_lines(log_lines *l, kvtree_error *err)
{
    ssize_t n;
    l->size = 0;
    do {
        n = io_pread(l->fd, l->buffer + l->size, BUFFER - l->size, l->at);
        if (n > 0) {
            l->at += n;
            l->size += (size_t)n;
            log_use_lines(l);
        }
    } while (n > 0);
    return n < 0 ? err_sys(err, (int)n, "read %s", SCR_LOG_TEXT_NAME) : 0;
}

/* The file that was put aside, and the current one; -1: none. */
typedef struct log_files {
    int fd[2];
    struct stat st[2];
} log_files;

static int log_open_file(log_files *f, int i, int prefix, const char *name,
                         kvtree_error *err)
{
    int rc = beneath_open(prefix, name, O_RDONLY, 0, &f->fd[i], err);
    if (rc) f->fd[i] = -1;
    if (!rc && fstat(f->fd[i], &f->st[i]) != 0)
        rc = err_sys(err, -errno, "stat %s", name);
    return rc;
}

static void log_close_files(log_files *f)
{
    io_close(&f->fd[0]);
    io_close(&f->fd[1]);
}

/* Opens both files. One of them is enough. */
static int log_open_either(log_files *f, int prefix, kvtree_error *err)
{
    kvtree_error whys[2] = {{""}, {""}};
    *f = (log_files){.fd = {-1, -1}};
    int rc = log_open_file(f, 1, prefix, SCR_LOG_TEXT_NAME, &whys[1]);
    int before = log_open_file(f, 0, prefix, SCR_LOG_TEXT_NAME SCR_LOG_BEFORE, &whys[0]);
    if ((!rc || rc == -ENOENT) && (!before || before == -ENOENT) && (!rc || !before))
        return 0;
    int bad = !rc || (rc == -ENOENT && before != -ENOENT) ? 0 : 1;
    if (err) *err = whys[bad];
    log_close_files(f);
    return bad ? rc : before;
}

/* Opens the current file first. If it is put aside meanwhile, both names lead to the same
 * file, and there is a new file: then tries again. */
static int log_open_files(log_files *f, int prefix, kvtree_error *err)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        int rc = log_open_either(f, prefix, err);
        if (rc || f->fd[0] < 0 || f->fd[1] < 0 || f->st[0].st_dev != f->st[1].st_dev ||
            f->st[0].st_ino != f->st[1].st_ino)
            return rc;
        log_close_files(f);
    }
    return err_set(err, -EAGAIN, "%s is put aside again and again", SCR_LOG_TEXT_NAME);
}

/* Reads a file, or its last most bytes. */
static int log_read_file(log_lines *l, const log_files *f, int i, int64_t most,
                         kvtree_error *err)
{
    if (f->fd[i] < 0 || most == 0) return 0;
    l->fd = f->fd[i];
    l->is_cut = most > 0 && f->st[i].st_size > most;
    l->at = l->is_cut ? f->st[i].st_size - most : 0;
    return log_read_lines(l, err);
}

int scr_log_read(int prefix, int64_t most, scr_log_reader *reader, void *arg,
                 kvtree_error *err)
{
    log_files f;
    log_lines l = {.buffer = malloc(BUFFER), .reader = reader, .arg = arg};
    int64_t all = most > 0 ? most : INT64_MAX;
    if (!l.buffer) return err_set(err, -ENOMEM, "no memory");
    int rc = log_open_files(&f, prefix, err);
    if (!rc) {
        int64_t rest = f.fd[1] < 0 ? all : all - f.st[1].st_size;
        rc = log_read_file(&l, &f, 0, rest > 0 ? rest : 0, err);
        if (!rc) rc = log_read_file(&l, &f, 1, all, err);
        log_close_files(&f);
    }
    free(l.buffer);
    return rc;
}
