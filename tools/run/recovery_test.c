/* SPDX-License-Identifier: BSD-3-Clause */
/* Test of the recovery from the loss of a node; see recovery_test.h. */
#include "run/recovery_test.h"

#include "common/beneath.h"
#include "common/io.h"
#include "common/number.h"
#include "lib/tool.h"
#include "lib/tool_run.h"
#include "report/log.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    CHECKPOINTS = 2,    /* checkpoints before a node is lost */
    OUTPUT = 1 << 12,   /* maximum output of the command in bytes */
    LOG_MOST = 1 << 26, /* maximum bytes of the log that are read */
    NAME = 32           /* size of the name of an event */
};

/* ---- the log ---- */

/* Reads a field of a line without its quotes; "" if the line has no such field. */
static void recovery_read_field(const char *line, const char *name,
                                char text[RECOVERY_TEXT_SIZE])
{
    size_t length = strlen(name);
    *text = 0;
    line += strcspn(line, " ");
    while (*line == ' ') {
        const char *field = ++line, *value;
        line += strcspn(line, "= ");
        if (*line != '=') continue;
        int is = (size_t)(line - field) == length && memcmp(field, name, length) == 0;
        int quoted = *++line == '"';
        value = line += quoted;
        while (*line && *line != (quoted ? '"' : ' '))
            line += line[0] == '\\' && line[1] ? 2 : 1;
        if (is) snprintf(text, RECOVERY_TEXT_SIZE, "%.*s", (int)(line - value), value);
        line += quoted && *line;
    }
}

static int recovery_read_code(const char *line)
{
    char text[RECOVERY_TEXT_SIZE];
    int64_t code = 0;
    recovery_read_field(line, "code", text);
    return number_int64(text, &code) == 0 && code >= 0 && code <= INT_MAX ? (int)code : 0;
}

static void recovery_take_line(const char *line, const char *event, const char *node,
                               recovery_log *c)
{
    char text[RECOVERY_TEXT_SIZE];
    if (strcmp(event, "LAUNCH_START") == 0) {
        *c->dataset = 0;
        if (++c->launches == 2) recovery_read_field(line, "note", c->second);
    } else if (strcmp(event, "LAUNCH_END") == 0 && !c->ended) {
        c->ended = 1;
        c->code = recovery_read_code(line);
        recovery_read_field(line, "note", c->why);
    } else if (strcmp(event, "NODE_LOST") == 0) {
        recovery_read_field(line, "node", text);
        if (strcmp(text, node) != 0) return;
        c->lost = 1;
        recovery_read_field(line, "note", c->found);
    } else if (strcmp(event, "RESTART_OFFERED") == 0 ||
               strcmp(event, "REBUILD_COMPLETE") == 0 ||
               strcmp(event, "FETCH_COMPLETE") == 0) {
        recovery_read_field(line, "name", c->dataset);
    }
}

void recovery_parse_log(const char *text, const char *node, recovery_log *c)
{
    *c = (recovery_log){0};
    while (*text) {
        size_t length = strcspn(text, "\n");
        char *line = strndup(text, length), event[NAME];
        if (line && sscanf(line, "%*s %31s", event) == 1)
            recovery_take_line(line, event, node, c);
        free(line);
        text += length + (text[length] != 0);
    }
}

/* Returns the size of the log; 0 if there is none. */
static off_t recovery_log_size(int prefix)
{
    struct stat st;
    return fstatat(prefix, SCR_LOG_TEXT_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size
                                                                             : 0;
}

/* Reads the lines that were added since the log had the size begin. */
static int recovery_read_log(recovery *c, off_t begin, kvtree_error *err)
{
    int fd;
    off_t size = recovery_log_size(c->prefix) - begin;
    if (size > LOG_MOST) size = LOG_MOST;
    int rc = beneath_open(c->prefix, SCR_LOG_TEXT_NAME, O_RDONLY, 0, &fd, err);
    if (rc) return rc;
    char *text = calloc(1, size > 0 ? (size_t)size + 1 : 1);
    ssize_t n = text ? io_pread(fd, text, size > 0 ? (size_t)size : 0, begin) : -ENOMEM;
    if (n >= 0) recovery_parse_log(text, c->node, &c->log);
    free(text);
    io_close(&fd);
    return n < 0 ? err_sys(err, (int)n, "%s", SCR_LOG_TEXT_NAME) : 0;
}

/* ---- loss of the node ---- */

static void recovery_switch_off(recovery *c)
{
    const tool_limits limits = {.seconds = c->seconds, .bytes = OUTPUT, .joined = true};
    char *line = NULL;
    kvtree_error err = {""};
    tool_answer a = {.code = -1};
    if (asprintf(&line, "%s \"$1\"", c->switch_off) < 0) {
        snprintf(c->trouble, RECOVERY_TEXT_SIZE, "no memory");
        return;
    }
    const char *const argv[] = {"sh", "-c", line, "sh", c->node, NULL};
    if (tool_run_answer(argv, &limits, &a, &err) != 0)
        snprintf(c->trouble, RECOVERY_TEXT_SIZE, "%s", err.text);
    else if (a.code)
        snprintf(c->trouble, RECOVERY_TEXT_SIZE, "%.150s%s%.*s", a.err.text,
                 *a.output ? ": " : "", (int)strcspn(a.output, "\n"), a.output);
    free(a.output);
    free(line);
}

/* Loses the node after some checkpoints, while scr_run runs. */
static bool recovery_check(void *arg, char why[TOOL_WHY_SIZE])
{
    recovery *c = arg;
    run_progress p = c->progress.last;
    if (c->done) return 0;
    run_progress_read(&c->progress, &p, NULL);
    if (p.completed < CHECKPOINTS) return 0;
    c->done = 1;
    if (!c->switch_off) {
        tool_say(SYSTEM_SWITCH_OFF, "now switch off node %s", c->node);
        return 0;
    }
    tool_say(SYSTEM_SWITCH_OFF, "node %s is switched off", c->node);
    recovery_switch_off(c);
    snprintf(why, TOOL_WHY_SIZE, "the node is not off");
    return *c->trouble != 0;
}

static int recovery_switch_on_log(kvtree_error *err)
{
    return setenv("SCR_LOG_ENABLE", "1", 1) == 0 &&
                   setenv("SCR_LOG_TXT_ENABLE", "1", 1) == 0 &&
                   setenv("SCR_LOG_SIZE", "0", 1) == 0 /* the log is read from an offset,
                                                        * so it must not be rotated */
               ? 0
               : err_set(err, -ENOMEM, "no memory");
}

int recovery_run(recovery *c, tool_signals *signals, kvtree_error *err)
{
    run_progress p = {0};
    tool_job_result result = {.code = -1};
    off_t begin = recovery_log_size(c->prefix);
    run_progress_begin(&c->progress, c->prefix);
    run_progress_read(&c->progress, &p, NULL);
    c->done = c->switch_off && !*c->switch_off;
    const tool_job job = {.argv = c->argv,
                          .interval = 1,
                          .patience = c->seconds,
                          .grace = c->seconds,
                          .check = recovery_check,
                          .arg = c};
    int rc = recovery_switch_on_log(err);
    if (rc) return rc;
    rc = tool_process_watch(&job, signals, &result);
    if (rc) return err_sys(err, rc, "%s", c->argv[0]);
    c->code = result.code;
    return recovery_read_log(c, begin, err);
}
