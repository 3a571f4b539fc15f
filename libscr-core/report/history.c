/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of earlier runs from their log; see report/history.h. Only the end of the
 * log is read, and a limited number of runs is followed at a time, so neither its size
 * nor its content matters. */
#include "report/history.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/number.h"
#include "report/log.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { HISTORY_RUNS = 8, HISTORY_VALUE = 256 };

struct history_run {
    char id[SCR_LOG_RUN_SIZE]; /* empty: not in use */
    int64_t start, last, nodes;
    bool is_ready, is_ended; /* is_ended: or asked to halt */
};

struct history_reader {
    const char *own;
    int64_t now;
    scr_history *history;
    struct history_run runs[HISTORY_RUNS];
    char ckpts_of[SCR_LOG_RUN_SIZE]; /* the run that history->ckpts belong to */
};

/* ---- one line ---- */

struct history_line {
    int64_t time;
    char event[HISTORY_VALUE], run[HISTORY_VALUE], type[HISTORY_VALUE],
        nodes[HISTORY_VALUE], secs[HISTORY_VALUE];
};

/* Returns the length, with the blank after it; 0: it is not a time. */
static int history_parse_time(const char *text, int64_t *micro)
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

static void history_copy(char value[HISTORY_VALUE], const char *begin, size_t length)
{
    if (length >= HISTORY_VALUE) return;
    memcpy(value, begin, length);
    value[length] = 0;
}

/* The buffer for the value of a field; NULL: the field is not needed. */
static char *history_buffer(struct history_line *line, const char *name, size_t length)
{
    static const char *const names[] = {"run", "type", "nodes", "secs"};
    char *const buffers[] = {line->run, line->type, line->nodes, line->secs};
    for (int i = 0; i < 4; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return buffers[i];
    return NULL;
}

/* Copies a value without its quotes; escapes stay in it. Returns its end, or NULL for a
 * value without an end. */
static const char *history_parse_value(const char *text, char *value)
{
    bool is_quoted = *text == '"';
    const char *begin = text += is_quoted;
    if (!is_quoted)
        text += strcspn(text, " ");
    else
        while (*text && *text != '"')
            text += text[0] == '\\' && text[1] ? 2 : 1;
    if (value) history_copy(value, begin, (size_t)(text - begin));
    if (is_quoted && *text++ != '"') return NULL;
    return *text && *text != ' ' ? NULL : text;
}

static bool history_parse_line(const char *text, struct history_line *line)
{
    memset(line, 0, sizeof *line);
    int length = history_parse_time(text, &line->time);
    if (!length) return false;
    text = history_parse_value(text + length, line->event);
    while (text && *text == ' ') {
        const char *name = ++text;
        text += strcspn(text, "= ");
        if (*text != '=') return false;
        char *buffer = history_buffer(line, name, (size_t)(text - name));
        text = history_parse_value(text + 1, buffer);
    }
    return text && line->run[0] && strlen(line->run) < SCR_LOG_RUN_SIZE;
}

/* ---- runs ---- */

/* Adds a run that gets no more lines. */
static void history_count_run(struct history_reader *r, struct history_run *run)
{
    if (run->id[0] && run->is_ready) {
        r->history->runs++;
        r->history->interrupted += !run->is_ended;
        r->history->node_seconds +=
            (double)(run->last - run->start) / 1e6 * (double)run->nodes;
    }
    run->id[0] = 0;
}

static struct history_run *history_find_run(struct history_reader *r, const char *id)
{
    for (int i = 0; i < HISTORY_RUNS; i++)
        if (strcmp(r->runs[i].id, id) == 0) return &r->runs[i];
    return NULL;
}

/* Replaces the run that has been silent for the longest time. */
static void history_begin_run(struct history_reader *r, const struct history_line *line)
{
    struct history_run *run = &r->runs[0];
    int64_t nodes = 0;
    if (number_int64(line->nodes, &nodes) != 0 || nodes < 1) return;
    for (int i = 0; i < HISTORY_RUNS && run->id[0]; i++)
        if (!r->runs[i].id[0] || r->runs[i].last < run->last) run = &r->runs[i];
    history_count_run(r, run);
    *run = (struct history_run){.start = line->time, .last = line->time, .nodes = nodes};
    strcpy(run->id, line->run);
}

static void history_count_ckpt(struct history_reader *r, const struct history_line *line)
{
    double seconds;
    if (!strstr(line->type, "checkpoint") || number_double(line->secs, &seconds) != 0 ||
        seconds < 0)
        return;
    if (strcmp(r->ckpts_of, line->run) != 0) {
        strcpy(r->ckpts_of, line->run);
        r->history->ckpts = 0;
        r->history->ckpt_seconds = 0;
    }
    r->history->ckpts++;
    r->history->ckpt_seconds += seconds;
}

static void history_use_line(struct history_reader *r, const char *text)
{
    struct history_line line;
    if (!history_parse_line(text, &line) || line.time > r->now) return;
    if (r->own && strcmp(line.run, r->own) == 0) return;
    struct history_run *run = history_find_run(r, line.run);
    if (!run && strcmp(line.event, "RUN_START") == 0) history_begin_run(r, &line);
    if (!run) return;
    if (line.time > run->last) run->last = line.time;
    if (strcmp(line.event, "RUN_READY") == 0) run->is_ready = true;
    if (strcmp(line.event, "OUTPUT_COMPLETE") == 0) history_count_ckpt(r, &line);
    if (strcmp(line.event, "HALT") == 0 || strcmp(line.event, "RUN_END") == 0)
        run->is_ended = true;
}

/* ---- the file ---- */

/* Uses the whole lines of the text; is_cut: the begin of the first one is missing. */
static void history_use_lines(struct history_reader *r, char *text, size_t size,
                              bool is_cut)
{
    char *end;
    for (; (end = memchr(text, '\n', size)); text = end + 1) {
        *end = 0;
        size -= (size_t)(end + 1 - text);
        /* no line of SCR has a NUL in it */
        if (!is_cut && strlen(text) == (size_t)(end - text)) history_use_line(r, text);
        is_cut = false;
    }
    for (int i = 0; i < HISTORY_RUNS; i++)
        history_count_run(r, &r->runs[i]);
}

static int history_read_file(struct history_reader *r, int fd, kvtree_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return err_sys(err, -errno, "stat %s", SCR_LOG_TEXT_NAME);
    bool is_cut = st.st_size > SCR_HISTORY_BYTES;
    size_t size = (size_t)(is_cut ? SCR_HISTORY_BYTES : st.st_size);
    char *text = malloc(size + 1);
    if (!text) return err_set(err, -ENOMEM, "no memory");
    ssize_t n = io_pread(fd, text, size, st.st_size - (off_t)size);
    if (n >= 0) history_use_lines(r, text, (size_t)n, is_cut);
    free(text);
    return n < 0 ? err_sys(err, (int)n, "read %s", SCR_LOG_TEXT_NAME) : 0;
}

int scr_history_read(int prefix, const char *own, int64_t now, scr_history *history,
                     kvtree_error *err)
{
    scr_history found = {0};
    struct history_reader r = {.own = own, .now = now, .history = &found};
    int fd = -1, rc = beneath_open(prefix, SCR_LOG_TEXT_NAME, O_RDONLY, 0, &fd, err);
    if (rc) return rc;
    rc = history_read_file(&r, fd, err);
    io_close(&fd);
    if (!rc) *history = found;
    return rc;
}

/* ---- the estimate ---- */

double scr_history_mtbf(const scr_history *history, int nodes, double elapsed)
{
    double k = history->interrupted, total = history->node_seconds / nodes + elapsed;
    if (k < 1) return fmax(total, SCR_HISTORY_MTBF);
    return exp((k * log(fmax(total, 1) / k) + log(SCR_HISTORY_MTBF)) / (k + 1));
}
