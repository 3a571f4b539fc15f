/* SPDX-License-Identifier: BSD-3-Clause */
/* Learning from the log of earlier runs; see report/history.h. It is read in pieces, and
 * a few runs are followed at a time, so that neither its size nor its content matters. */
#include "report/history.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/number.h"
#include "report/log.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { PIECE = 1 << 16, RUNS = 8, VALUE = 256 };

struct run {
    char id[SCR_LOG_RUN_SIZE]; /* empty: not in use */
    int64_t start, last;
    int64_t nodes;
    int ready, told; /* told: that it ends, or should */
};

struct reader {
    const char *own;
    int64_t now;
    scr_history *history;
    struct run runs[RUNS];
    char ckpts_of[SCR_LOG_RUN_SIZE]; /* the run that history->ckpts are of */
};

/* ---- one line ---- */

struct line {
    int64_t time;
    char event[32], run[VALUE], type[VALUE], nodes[VALUE], secs[VALUE];
};

static int parse_time(const char *text, int64_t *micro)
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

/* Where the value of line with that name goes; NULL: it does not matter. */
static char *place_of(struct line *line, const char *name, size_t length)
{
    const struct {
        const char *name;
        char *place;
    } places[] = {{"run", line->run},
                  {"type", line->type},
                  {"nodes", line->nodes},
                  {"secs", line->secs}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strlen(places[i].name) == length && memcmp(places[i].name, name, length) == 0)
            return places[i].place;
    return NULL;
}

/* A value as it stands, without its quotes; what is escaped in it stays so. Returns what
 * follows, or NULL when it does not end. */
static const char *parse_value(const char *text, char *value)
{
    const char *begin = text, *end;
    if (*text == '"') {
        begin = ++text;
        while (*text && *text != '"')
            text += text[0] == '\\' && text[1] ? 2 : 1;
        if (*text != '"') return NULL;
        end = text++;
    } else {
        text += strcspn(text, " ");
        end = text;
    }
    if (*text && *text != ' ') return NULL;
    if (value && end - begin < VALUE) {
        memcpy(value, begin, (size_t)(end - begin));
        value[end - begin] = 0;
    }
    return text;
}

/* 1 when it is a line of the log. */
static int parse_line(const char *text, struct line *line)
{
    memset(line, 0, sizeof *line);
    int at = parse_time(text, &line->time);
    if (!at) return 0;
    text += at;
    size_t length = strcspn(text, " ");
    if (length >= sizeof line->event) return 0;
    memcpy(line->event, text, length);
    text += length;
    while (*text == ' ') {
        const char *name = ++text;
        text += strcspn(text, "= ");
        if (*text != '=') return 0;
        char *place = place_of(line, name, (size_t)(text - name));
        text = parse_value(text + 1, place);
        if (!text) return 0;
    }
    return !*text && line->run[0] && strlen(line->run) < SCR_LOG_RUN_SIZE;
}

/* ---- runs ---- */

/* No more will come of this run. */
static void account(struct reader *r, struct run *run)
{
    if (run->id[0] && run->ready) {
        r->history->runs++;
        r->history->interrupted += !run->told;
        r->history->node_seconds +=
            (double)(run->last - run->start) / 1e6 * (double)run->nodes;
    }
    run->id[0] = 0;
}

static struct run *find_run(struct reader *r, const char *id)
{
    for (int i = 0; i < RUNS; i++)
        if (strcmp(r->runs[i].id, id) == 0) return &r->runs[i];
    return NULL;
}

/* The place of the run that has been silent for the longest time is given away. */
static void begin_run(struct reader *r, const struct line *line)
{
    struct run *run = &r->runs[0];
    int64_t nodes = 0;
    if (number_int64(line->nodes, &nodes) != 0 || nodes < 1) return;
    for (int i = 0; i < RUNS && run->id[0]; i++)
        if (!r->runs[i].id[0] || r->runs[i].last < run->last) run = &r->runs[i];
    account(r, run);
    *run = (struct run){.start = line->time, .last = line->time, .nodes = nodes};
    strcpy(run->id, line->run);
}

static void count_checkpoint(struct reader *r, const struct line *line)
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

static void take_line(struct reader *r, const char *text)
{
    struct line line;
    if (!parse_line(text, &line) || line.time > r->now) return;
    if (r->own && strcmp(line.run, r->own) == 0) return;
    struct run *run = find_run(r, line.run);
    if (!run && strcmp(line.event, "RUN_START") == 0) begin_run(r, &line);
    if (!run) return;
    if (line.time > run->last) run->last = line.time;
    if (strcmp(line.event, "RUN_READY") == 0) run->ready = 1;
    if (strcmp(line.event, "OUTPUT_COMPLETE") == 0) count_checkpoint(r, &line);
    if (strcmp(line.event, "HALT") == 0 || strcmp(line.event, "RUN_END") == 0)
        run->told = 1;
}

/* ---- the file ---- */

/* Takes the whole lines of the n bytes in buffer; returns how many bytes are left over,
 * which are moved to its begin. */
static size_t take_lines(struct reader *r, char *buffer, size_t n, int *skip)
{
    char *begin = buffer, *end;
    while ((end = memchr(begin, '\n', n - (size_t)(begin - buffer)))) {
        *end = 0;
        /* a NUL within a line is no text of ours */
        if (!*skip && strlen(begin) == (size_t)(end - begin)) take_line(r, begin);
        *skip = 0;
        begin = end + 1;
    }
    size_t left = n - (size_t)(begin - buffer);
    memmove(buffer, begin, left);
    return left;
}

static int read_file(struct reader *r, int fd, char *buffer, char *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return err_sys(err, -errno, "stat %s", SCR_LOG_TEXT_NAME);
    off_t at = st.st_size > SCR_HISTORY_BYTES ? st.st_size - SCR_HISTORY_BYTES : 0;
    int skip = at > 0;
    size_t have = 0;
    while (at < st.st_size) { /* what is appended meanwhile is of this run */
        ssize_t n = io_pread(fd, buffer + have, PIECE - have, at);
        if (n < 0) return err_sys(err, (int)n, "read %s", SCR_LOG_TEXT_NAME);
        if (n == 0) break;
        at += n;
        have = take_lines(r, buffer, have + (size_t)n, &skip);
        if (have < PIECE) continue;
        have = 0; /* no line is that long */
        skip = 1;
    }
    for (int i = 0; i < RUNS; i++)
        account(r, &r->runs[i]);
    return 0;
}

int scr_history_read(int prefix, const char *own, int64_t now, scr_history *history,
                     char *err)
{
    scr_history found = {0};
    struct reader r = {.own = own, .now = now, .history = &found};
    int fd = -1, rc = beneath_open(prefix, SCR_LOG_TEXT_NAME, O_RDONLY, 0, &fd, err);
    if (rc) return rc;
    char *buffer = malloc(PIECE);
    rc = buffer ? read_file(&r, fd, buffer, err) : err_set(err, -ENOMEM, "no memory");
    free(buffer);
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
