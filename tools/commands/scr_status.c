/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_status: prints the state of the running or last job in a prefix directory, once or
 * repeatedly. */
#include "common/number.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "lib/tool_process.h"
#include "report/screen.h"
#include "report/status.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct request {
    const char *dir, *interval_text;
    int json, watch, next, count;
    double interval;
} request;

/* Seconds between two readings of a flush, from which its rate is computed. */
#define LOOK 0.5

/* ---- once ---- */

static void scr_status_tell_problems(const status *s)
{
    for (int i = 0; i < s->problem_count; i++)
        tool_print_message(s->problems[i].message, "%s", s->problems[i].err.text);
}

static int scr_status_print(const tool_prefix *prefix, const request *r, const status *s)
{
    if (r->json) return status_print_json(prefix, s);
    status_write(stdout, prefix, s, screen_has_colors());
    if (r->next) status_write_next(stdout, s);
    return COMMAND_GOOD;
}

static int scr_status_once(const tool_prefix *prefix, const request *r)
{
    status first, second, *s = &first;
    int code = status_read(prefix, NULL, &first) ? tool_no_memory() : COMMAND_GOOD;
    bool again = code == COMMAND_GOOD && first.flushing.id && first.done >= 0;
    if (again) {
        usleep((useconds_t)(LOOK * 1e6));
        s = &second;
        if (status_read(prefix, &first, &second)) code = tool_no_memory();
    }
    if (code == COMMAND_GOOD) code = scr_status_print(prefix, r, s);
    if (code == COMMAND_GOOD && s->problem_count) code = COMMAND_BAD;
    scr_status_tell_problems(s);
    status_done(&first);
    if (again) status_done(&second);
    return code;
}

/* ---- repeatedly ---- */

static int scr_status_show(screen *sc, const tool_prefix *prefix, const request *r,
                           const status *s)
{
    char *text = NULL;
    size_t size;
    if (r->json) return status_print_json(prefix, s);
    FILE *out = open_memstream(&text, &size);
    if (!out) return tool_no_memory();
    status_write(out, prefix, s, screen_has_colors());
    if (fclose(out) != 0) {
        free(text);
        return tool_no_memory();
    }
    screen_show(sc, text);
    free(text);
    return COMMAND_GOOD;
}

static int scr_status_watch(const tool_prefix *prefix, const request *r)
{
    status before, s;
    screen sc;
    int code = COMMAND_GOOD, shown = 0;
    bool more = true;
    screen_begin(&sc, !r->json);
    while (more && code == COMMAND_GOOD) {
        int rc = status_read(prefix, shown ? &before : NULL, &s);
        if (shown) status_done(&before);
        before = s;
        shown++;
        code = rc ? tool_no_memory() : scr_status_show(&sc, prefix, r, &s);
        if (code == COMMAND_GOOD) code = command_flush();
        more = r->count == 0 || shown < r->count;
        /* a new size only changes the layout, so nothing is read again */
        while (more && code == COMMAND_GOOD &&
               screen_wait(&sc, r->interval) == SCREEN_RESIZED)
            code = scr_status_show(&sc, prefix, r, &s);
        if (sc.is_ended) more = false;
    }
    screen_end(&sc);
    if (shown) status_done(&before);
    return code;
}

/* ---- arguments ---- */

static int scr_status_take_interval(const tool *t, request *r)
{
    r->interval = 2;
    if (!r->interval_text) return -1;
    if (number_double(r->interval_text, &r->interval) != 0 || r->interval < 0.1 ||
        r->interval > 86400)
        return tool_misused(t, "--interval %s: not a number of seconds from 0.1 to 86400",
                            r->interval_text);
    return -1;
}

static int scr_status_run(const request *r)
{
    tool_prefix prefix;
    int code = tool_prefix_configure_anyway(&prefix, r->dir);
    if (code == COMMAND_GOOD)
        code = r->watch ? scr_status_watch(&prefix, r) : scr_status_once(&prefix, r);
    tool_prefix_close(&prefix);
    /* each output was flushed already */
    return r->watch ? code : tool_finish(code);
}

int main(int argc, char **argv)
{
    request r = {.dir = NULL};
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&r.dir),
        {'j', "json", NULL, "print a JSON object", .flag = &r.json},
        {'n', "next", NULL, "also print the three most likely next commands",
         .flag = &r.next},
        {'w', "watch", NULL, "refresh it until Ctrl-C, q or --count", .flag = &r.watch},
        {'i', "interval", "SECONDS", "time between two looks (default: 2)",
         .text = &r.interval_text},
        {'c', "count", "N", "end after N looks (default: 0, never)", .number = &r.count},
        {0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about = "Prints what the records of the prefix directory tell of the running or "
                 "last job:\nits nodes, newest checkpoints, flush, halt conditions, and "
                 "what would be lost if\nall nodes failed now. What no record tells is "
                 "unknown.\n",
        .codes = "0 printed, 1 an error, or a record cannot be read, 2 wrong usage.\n",
        .options = options};
    tool_args args;
    int code = tool_start(&t, argc, argv, &args);
    if (code < 0) code = scr_status_take_interval(&t, &r);
    if (code < 0 && !r.watch && (r.interval_text || r.count))
        code = tool_misused(&t, "--interval and --count go with --watch");
    if (code < 0 && r.watch && r.next)
        code = tool_misused(&t, "--next goes without --watch");
    return code >= 0 ? code : scr_status_run(&r);
}
