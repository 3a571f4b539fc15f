/* SPDX-License-Identifier: BSD-3-Clause */
/* Events from commands; see tool_log.h. */
#include "lib/tool_log.h"

#include "common/number.h"
#include "config/log_config.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "lib/tool_time.h"
#include "report/open_runs.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MICRO 1000000

/* ---- events ---- */

static const scr_log_field *log_event_find_field(scr_log_kind kind, const char *name)
{
    for (int i = 0; scr_log_fields[i].name; i++)
        if (strcmp(scr_log_fields[i].name, name) == 0)
            return scr_log_types[kind].fields >> i & 1 ? &scr_log_fields[i] : NULL;
    return NULL;
}

bool tool_log_has(scr_log_kind kind, const char *field)
{
    return log_event_find_field(kind, field) != NULL;
}

static int log_event_set_time(int64_t *micro, const char *text)
{
    int64_t seconds;
    if (tool_time_parse(text, time(NULL), &seconds) != 0 || seconds > INT64_MAX / MICRO)
        return -EINVAL;
    *micro = seconds * MICRO;
    return 0;
}

static int log_event_set_seconds(double *seconds, const char *text)
{
    double value;
    if (number_double(text, &value) != 0 || value < 0) return -EINVAL;
    *seconds = value;
    return 0;
}

int tool_log_set(scr_log_event *event, const char *field, const char *text)
{
    const scr_log_field *f = log_event_find_field(event->kind, field);
    int64_t number;
    if (!f || f->type == SCR_LOG_FIELD_KIND) return -ENOENT;
    void *member = (char *)event + f->offset;
    switch (f->type) {
    case SCR_LOG_FIELD_TIME:
        return log_event_set_time(member, text);
    case SCR_LOG_FIELD_SECONDS:
        return log_event_set_seconds(member, text);
    case SCR_LOG_FIELD_NUMBER:
        if (number_int64(text, &number) != 0) return -EINVAL;
        /* only error codes may be negative */
        if (number < 0 && f->offset != offsetof(scr_log_event, code)) return -EINVAL;
        *(int64_t *)member = number;
        return 0;
    case SCR_LOG_FIELD_KIND:
    case SCR_LOG_FIELD_TEXT:
        *(const char **)member = text;
        return 0;
    }
    return -ENOENT;
}

/* ---- the log ---- */

/* Reports that a target of the log failed. */
static void log_event_report_line(void *failed, scr_message message, const char *text)
{
    *(int *)failed = 1;
    tool_print_message((tool_message)message, "%s", text);
}

int tool_log_write(const tool_prefix *prefix, const scr_log_event *event, int *on)
{
    scr_problems problems = {.count = 0};
    tool_owner owner;
    scr_log *log = NULL;
    int failed = 0;
    scr_log_options options = {.prefix = prefix->dir,
                               .prefix_path = prefix->path,
                               .report = log_event_report_line,
                               .arg = &failed};
    scr_log_configure(&prefix->config, &options.set, &problems);
    if (tool_tell_problems(&problems) != COMMAND_GOOD) return COMMAND_BAD;
    if (on) *on = options.set.targets != 0;
    if (!options.set.targets) return COMMAND_GOOD;
    if (tool_owner_find(prefix, &owner) != COMMAND_GOOD) return COMMAND_BAD;
    options.user = owner.user;
    options.job_id = owner.job;
    options.host = owner.node;
    if (scr_log_open(&options, &log) != 0) return tool_no_memory();
    scr_log_write(log, event);
    scr_log_close(log);
    return failed ? COMMAND_BAD : COMMAND_GOOD;
}

void tool_log_find_run(const tool_prefix *prefix, char id[SCR_LOG_RUN_SIZE])
{
    kvtree_error err;
    tool_owner owner;
    scr_open_runs runs;
    *id = 0;
    if (scr_open_runs_read(prefix->dir, NULL, &runs, &err) != 0 || !runs.count) return;
    if (tool_owner_find(prefix, &owner) != COMMAND_GOOD) return;
    for (int i = 0; i < runs.count; i++)
        if (strcmp(runs.list[i].job, owner.job) == 0) strcpy(id, runs.list[i].id);
}

void tool_log_end_runs(const tool_prefix *prefix, const char *id, const char *note)
{
    kvtree_error err;
    tool_owner owner;
    scr_open_runs runs;
    struct timespec now;
    /* if the log cannot be read, there are no open runs */
    if (scr_open_runs_read(prefix->dir, NULL, &runs, &err) != 0 || !runs.count) return;
    if (tool_owner_find(prefix, &owner) != COMMAND_GOOD) return;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < runs.count; i++) {
        const scr_open_run *run = &runs.list[i];
        bool is_now = id && strcmp(run->id, id) == 0;
        const scr_log_event event = scr_open_run_end(
            run, is_now ? (int64_t)now.tv_sec * MICRO + now.tv_nsec / 1000 : run->last,
            note);
        if (strcmp(run->job, owner.job) == 0) tool_log_write(prefix, &event, NULL);
    }
}

/* ---- arguments ---- */

static int log_event_list_kinds(int transfer)
{
    for (int i = 0; i < SCR_LOG_KINDS; i++) {
        if (transfer && !tool_log_has((scr_log_kind)i, "from")) continue;
        printf("%s:", scr_log_types[i].name);
        for (int f = 0; scr_log_fields[f].name; f++)
            if (scr_log_types[i].fields >> f & 1 &&
                scr_log_fields[f].type != SCR_LOG_FIELD_KIND)
                printf(" %s", scr_log_fields[f].name);
        printf("\n");
    }
    return command_flush();
}

/* Returns -1 to continue. */
static int log_event_set_kind(const tool *t, const char *name, int transfer,
                              scr_log_kind *kind)
{
    char whole[64];
    if (!name || !*name) return tool_misused(t, "--type is needed");
    snprintf(whole, sizeof whole, "%.40s_COMPLETE", name);
    int found =
        scr_log_find(name, kind) == 0 || (transfer && scr_log_find(whole, kind) == 0);
    if (!found && !transfer) {
        *kind = SCR_LOG_SCRIPT;
        return -1;
    }
    if (!found || (transfer && !tool_log_has(*kind, "from")))
        return tool_misused(t, "'%s' is not an event; --kinds lists them", name);
    return -1;
}

static int log_event_set_field(const tool *t, scr_log_event *event, const char *field,
                               const char *text)
{
    int rc = tool_log_set(event, field, text);
    if (rc == -ENOENT)
        return tool_misused(t, "an event %s has no field %s",
                            scr_log_types[event->kind].name, field);
    if (rc) return tool_misused(t, "'%s' is not a value of %s", text, field);
    return -1;
}

/* Parses FIELD=VALUE. */
static int log_event_parse_argument(const tool *t, scr_log_event *event, char *argument)
{
    char *value = strchr(argument, '=');
    if (!value) return tool_misused(t, "'%s' is not FIELD=VALUE", argument);
    *value = 0;
    return log_event_set_field(t, event, argument, value + 1);
}

/* Options with a field of their own follow the others. */
enum { FIRST_FIELD = 4, FIELDS = 12, NOTE_SIZE = 1024 };

/* Whether the option applies to the event: scripts of SCR 3 give every event the name of
 * the job. */
static bool log_event_takes(const scr_log_event *event, const char *field)
{
    return strcmp(field, "jobname") != 0 || tool_log_has(event->kind, field);
}

/* Prefixes the note of a script's event with the script's own name for the event. */
static void log_event_name(scr_log_event *event, const char *type, char *text,
                           size_t size)
{
    const char *note = event->note && *event->note ? event->note : NULL;
    if (event->kind != SCR_LOG_SCRIPT || strcmp(type, "SCRIPT") == 0) return;
    snprintf(text, size, "%s%s%s", type, note ? ": " : "", note ? note : "");
    event->note = text;
}

static int log_event_set_all(const tool *t, const tool_args *args, scr_log_event *event)
{
    int code = -1;
    for (const tool_option *o = t->options + FIRST_FIELD; o->name && code < 0; o++)
        if (*o->text && log_event_takes(event, o->name))
            code = log_event_set_field(
                t, event, strcmp(o->name, "start") == 0 ? "time" : o->name, *o->text);
    for (int i = 0; i < args->count && code < 0; i++)
        code = log_event_parse_argument(t, event, args->list[i]);
    return code;
}

int tool_log_main(int argc, char **argv, int transfer)
{
    const char *dir = NULL, *type = NULL, *start = NULL, *v[FIELDS] = {NULL};
    char note[NOTE_SIZE];
    int64_t begun;
    int kinds = 0, on = 1;
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&dir),
        {'T', "type", "EVENT",
         transfer ? "FLUSH, FETCH, or the name of an event"
                  : "name of the event; one that --kinds does not list is\n"
                    "logged as SCRIPT",
         .text = &type},
        {'k', "kinds", NULL, "list all events, with their fields", .flag = &kinds},
        {'s', "jobstart", "TIME", "without effect, for scripts of SCR 3", .text = &start},
        {'i', "jobid", "ID", "the allocation", .text = &v[0]},
        {'u', "user", "NAME", "the user of the job", .text = &v[1]},
        {'j', "jobname", "NAME", "name of the job", .text = &v[2]},
        {'D', "dset", "ID", "id of the dataset", .text = &v[3]},
        {'n', "name", "NAME", "name of the dataset", .text = &v[4]},
        {'N', "note", "TEXT", "a reason, for people", .text = &v[5]},
        {'S', "start", "TIME", "time of the event (default: now)", .text = &v[6]},
        {'L', "secs", "N", "duration in seconds", .text = &v[7]},
        {'X', "from", "DIRECTORY", "source of files", .text = &v[8]},
        {'Y', "to", "DIRECTORY", "their destination", .text = &v[9]},
        {'B', "bytes", "N", "bytes of all files", .text = &v[10]},
        {'F', "files", "N", "number of files", .text = &v[11]},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... [FIELD=VALUE]...",
        .about = transfer
                     ? "Adds the transfer of a dataset to the log of a prefix "
                       "directory, with the values\nof its fields. TIME: " TOOL_TIME_FORMS
                       ".\n"
                     : "Adds an event to the log of a prefix directory, with the values "
                       "of its fields.\nTIME: " TOOL_TIME_FORMS ".\n",
        .codes = "0 logged, or the log is off; 1 an error, or not all targets of the\n"
                 "log took it; 2 wrong usage.\n",
        .options = options,
        .most = -1};
    tool_args args;
    tool_prefix prefix;
    scr_log_event event = {.kind = SCR_LOG_ERROR};
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if (kinds) return log_event_list_kinds(transfer);
    code = log_event_set_kind(&t, type, transfer, &event.kind);
    if (code < 0 && start && tool_time_parse(start, time(NULL), &begun) != 0)
        code = tool_misused(&t, "--jobstart %s: not a time; valid are " TOOL_TIME_FORMS,
                            start);
    if (code < 0) code = log_event_set_all(&t, &args, &event);
    if (code >= 0) return code;
    log_event_name(&event, type, note, sizeof note);
    command_outlive_reader();
    code = tool_prefix_configure(&prefix, dir);
    if (code == COMMAND_GOOD) code = tool_log_write(&prefix, &event, &on);
    if (!on) tool_say(LOG_OFF, "nothing is logged (SCR_LOG_ENABLE)");
    tool_prefix_close(&prefix);
    return code;
}
