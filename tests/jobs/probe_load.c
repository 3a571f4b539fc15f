/* SPDX-License-Identifier: BSD-3-Clause */
/* Repeated operations: series of checkpoints, many files, a whole day. Each consists of
 * operations of probe_verbs.c. */
#include "probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Executes another operation, unless an earlier one has failed. Keeps its text only if it
 * fails, so that successful ranks have the same text. *flag: its flag. */
static void also(struct probe *p, struct result *r, int *flag, const char *verb,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

static void also(struct probe *p, struct result *r, int *flag, const char *verb,
                 const char *format, ...)
{
    static struct result one; /* large */
    char arg[PROBE_TEXT];
    va_list args;
    if (r->code) return;
    va_start(args, format);
    vsnprintf(arg, sizeof arg, format, args);
    va_end(args);
    memset(&one, 0, sizeof one);
    probe_verb(verb)->run(p, arg, &one);
    r->code = one.code;
    if (flag) *flag = one.flag;
    if (!one.code) return;
    r->has_text = one.has_text;
    memcpy(r->text, one.text, sizeof r->text);
}

/* Ends an operation that began, whatever happened in between. */
static void end(struct probe *p, struct result *r, const char *verb)
{
    struct result failed = *r;
    r->code = 0;
    also(p, r, NULL, verb, "%d", !failed.code);
    if (failed.code) *r = failed;
}

void probe_series(struct probe *p, const char *arg, struct result *r)
{
    long i = 0, last = -1;
    sscanf(arg, "%ld:%ld", &i, &last);
    for (; i <= last && r->code == 0; i++) {
        also(p, r, NULL, "start", "c%ld:c", i);
        if (r->code) return;
        also(p, r, NULL, "put", "c%ld/rank_%d:1000", i, p->rank);
        end(p, r, "complete");
    }
}

/* Names differ between ranks; some hundred files share a directory. */
static void each_file(struct probe *p, const char *arg, struct result *r,
                      const char *verb)
{
    char name[256] = "";
    int count = 0;
    sscanf(arg, "%255[^:]:%d", name, &count);
    for (int i = 0; i < count; i++)
        also(p, r, NULL, verb, "%s/part_%d/rank_%d.%d:100", name, i / 500, p->rank, i);
}

void probe_put_many(struct probe *p, const char *arg, struct result *r)
{
    each_file(p, arg, r, "put");
}

void probe_get_many(struct probe *p, const char *arg, struct result *r)
{
    each_file(p, arg, r, "get");
}

void probe_abandon_many(struct probe *p, const char *arg, struct result *r)
{
    static int number;
    const int count = atoi(arg);
    for (int i = 0; i < count && r->code == 0; i++) {
        int flag = 0;
        also(p, r, NULL, "init", "%s", "");
        also(p, r, &flag, "have", "%s", "");
        if (flag) also(p, r, NULL, "start_restart", "%s", "");
        if (flag && i % 2) also(p, r, NULL, "abandon", "%s", "");
        if (flag && i % 2) continue;
        if (flag) also(p, r, NULL, "complete_restart", "1");
        also(p, r, NULL, "start", "many_%d:c", number++);
        also(p, r, NULL, "put", "%s/rank_%d:1000", p->tag, p->rank);
        end(p, r, "complete");
        also(p, r, NULL, "abandon", "%s", "");
    }
}

void probe_compute(struct probe *p, const char *arg, struct result *r)
{
    long hours = 0, step = 1, cost = 0, seconds = 0;
    int wanted = 0, stop = 0;
    sscanf(arg, "%ld:%ld:%ld", &hours, &step, &cost);
    for (; seconds < hours * 3600 && !stop && r->code == 0; seconds += step) {
        probe_advance(step);
        also(p, r, &wanted, "need", "%s", "");
        if (!r->code && wanted) {
            r->flag++;
            also(p, r, NULL, "start", "t%06ld:c", seconds);
            if (r->code) break;
            also(p, r, NULL, "put", "t%06ld/rank_%d:1000", seconds, p->rank);
            probe_advance(cost);
            seconds += cost;
            end(p, r, "complete");
        }
        also(p, r, &stop, "exit", "%s", "");
    }
    r->has_flag = 1;
    if (r->code) return;
    r->has_text = 1;
    snprintf(r->text, sizeof r->text, "%ld", seconds);
}
