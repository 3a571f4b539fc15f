/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_halt: sets and removes the conditions that end a run (SCR Developer Guide 1.2,
 * section 2.20). */
#include "common/beneath.h"
#include "common/io.h"
#include "common/number.h"
#include "config/identity.h"
#include "config/parameters.h"
#include "halt/halt.h"
#include "lib/tool.h"
#include "lib/tool_halt.h"
#include "lib/tool_prefix.h"
#include "lib/tool_table.h"
#include "lib/tool_time.h"
#include <errno.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum condition { REASON, LEFT, AFTER, BEFORE, SECONDS, CONDITIONS };

static const char *const keys[CONDITIONS] = {SCR_HALT_KEY_REASON, SCR_HALT_KEY_LEFT,
                                             SCR_HALT_KEY_AFTER, SCR_HALT_KEY_BEFORE,
                                             SCR_HALT_KEY_SECONDS};

enum { VALUE_SIZE = 1024, PATIENCE_MS = 5000 };

typedef struct request {
    const char *dir;
    int list, json, immediate, remove, verbose, bare;
    const char *given[CONDITIONS]; /* text on the command line */
    int unset[CONDITIONS];
    char value[CONDITIONS][VALUE_SIZE]; /* value for the file; "": not given */
} request;

/* ---- the request ---- */

static int halt_take_time(const tool *t, request *r, enum condition which)
{
    int64_t when;
    const char *text = r->given[which];
    if (!text) return -1;
    if (tool_time_parse(text, time(NULL), &when) != 0)
        return tool_misused(t, "--%s %s: not a time; valid are " TOOL_TIME_FORMS,
                            which == AFTER ? "after" : "before", text);
    snprintf(r->value[which], VALUE_SIZE, "%" PRId64, when);
    return -1;
}

static int halt_take_numbers(const tool *t, request *r)
{
    int64_t value;
    const char *left = r->given[LEFT], *seconds = r->given[SECONDS];
    if (left && (number_int64(left, &value) != 0 || value < 0 || value > 1000000000))
        return tool_misused(t, "--checkpoints %s: not a number of checkpoints, such as 3",
                            left);
    if (left) snprintf(r->value[LEFT], VALUE_SIZE, "%" PRId64, value);
    if (seconds && scr_parse_seconds(seconds, &value) != 0)
        return tool_misused(
            t, "--seconds %s: not a number of seconds, such as 600 or 10min", seconds);
    if (seconds) snprintf(r->value[SECONDS], VALUE_SIZE, "%" PRId64, value);
    return -1;
}

static int halt_take_reason(const tool *t, request *r)
{
    char user[SCR_USER_SIZE];
    const char *text = r->given[REASON];
    if (text && (!*text || strlen(text) >= VALUE_SIZE))
        return tool_misused(t, "a reason has 1 to %d bytes", VALUE_SIZE - 1);
    scr_identity_user(user);
    if (text)
        strcpy(r->value[REASON], text);
    else if (r->immediate || r->bare)
        snprintf(r->value[REASON], VALUE_SIZE, "JOB_HALTED by %s", user);
    return -1;
}

/* Checks the request. -1 to continue, or an exit code. */
static int halt_take_request(const tool *t, request *r)
{
    int changes = r->immediate || r->remove;
    for (int i = 0; i < CONDITIONS; i++) {
        changes |= r->given[i] || r->unset[i];
        if (r->unset[i] && (r->given[i] || (i == REASON && r->immediate)))
            return tool_misused(t, "%s cannot be set and unset", keys[i]);
        if (r->remove && (r->given[i] || r->unset[i] || r->immediate))
            return tool_misused(t, "--remove goes alone");
    }
    if (changes && r->list) return tool_misused(t, "--list changes nothing");
    r->bare = !changes && !r->list;
    if (r->bare && r->json)
        return tool_misused(t, "--json goes with --list, or with a condition");
    int code = halt_take_time(t, r, AFTER);
    if (code < 0) code = halt_take_time(t, r, BEFORE);
    if (code < 0) code = halt_take_numbers(t, r);
    return code < 0 ? halt_take_reason(t, r) : code;
}

/* ---- the file ---- */

/* Removes a condition; 1 if it existed. */
static int halt_unset(kvtree *halt, const char *key)
{
    int there = kvtree_get(halt, key) != NULL;
    kvtree_unset(halt, key);
    return there;
}

static int halt_apply(kvtree *halt, void *arg)
{
    const request *r = arg;
    int changed = 0;
    for (int i = 0; i < CONDITIONS; i++) {
        const char *value = kvtree_get_val(halt, keys[i]);
        if (r->unset[i]) changed |= halt_unset(halt, keys[i]);
        if (!*r->value[i] || (value && strcmp(value, r->value[i]) == 0)) continue;
        if (kvtree_util_set_str(halt, keys[i], r->value[i]) != 0) return -ENOMEM;
        changed = 1;
    }
    /* from now on a request of the user, even if a run had set it */
    if (r->unset[SECONDS] || *r->value[SECONDS])
        changed |= halt_unset(halt, SCR_HALT_KEY_OF_RUN);
    if (r->immediate && !kvtree_get(halt, SCR_HALT_KEY_NOW)) {
        if (kvtree_util_set_str(halt, SCR_HALT_KEY_NOW, "1") != 0) return -ENOMEM;
        changed = 1;
    }
    if (r->unset[REASON]) changed |= halt_unset(halt, SCR_HALT_KEY_NOW);
    return changed;
}

/* Whether the request changes anything. */
static bool halt_is_change(const request *r)
{
    int is = r->remove || r->immediate;
    for (int i = 0; i < CONDITIONS; i++)
        is |= *r->value[i] || r->unset[i];
    return is;
}

static int halt_change(const tool_prefix *prefix, request *r, kvtree *halt,
                       kvtree_error *err)
{
    if (halt_is_change(r)) command_outlive_reader();
    if (r->remove) return beneath_unlink(prefix->dir, SCR_HALT_NAME, err);
    int rc = scr_halt_read(prefix->dir, halt, err);
    if (rc) return rc;
    int wanted = halt_apply(halt, r);
    kvtree_unset_all(halt);
    if (wanted < 0) return err_set(err, wanted, "no memory");
    /* conditions may be set before the first run */
    if (wanted) rc = beneath_mkdirs(prefix->dir, ".scr", 0777, err);
    return rc ? rc : scr_halt_change(prefix->dir, halt_apply, r, halt, err);
}

/* ---- output ---- */

static void halt_add_cell(tool_table *table, const kvtree *halt, enum condition which,
                          int json)
{
    char text[VALUE_SIZE + TOOL_TIME_SIZE + 64];
    int64_t number;
    const char *value = kvtree_elem_get_first_val(halt, keys[which]);
    if (!value || which == REASON) {
        tool_table_text(table, value);
    } else if (kvtree_util_get_int64(halt, keys[which], &number) != 0) {
        snprintf(text, sizeof text, "%.200s (not a number: without effect)", value);
        tool_table_text(table, json ? NULL : text);
        tool_table_mark(table, TOOL_WARN);
    } else if (json || which == LEFT || which == SECONDS) {
        tool_table_number(table, number);
    } else {
        tool_time_text(number, text);
        tool_table_text(table, text);
    }
}

static int halt_print(const kvtree *halt, const request *r)
{
    static const tool_column columns[] = {
        {"reason", "ExitReason", TOOL_TEXT},
        {"checkpoints_left", "CheckpointsLeft", TOOL_NUMBER},
        {"exit_after", "ExitAfter", TOOL_TEXT},
        {"exit_before", "ExitBefore", TOOL_TEXT},
        {"halt_seconds", "HaltSeconds", TOOL_NUMBER}};
    tool_table *table = tool_table_new(columns, CONDITIONS);
    int any = 0;
    for (int i = 0; i < CONDITIONS; i++) {
        any |= kvtree_elem_get_first_val(halt, keys[i]) != NULL;
        halt_add_cell(table, halt, (enum condition)i, r->json);
    }
    if (!any && !r->json) printf("no halt conditions\n");
    return tool_table_print(table, r->json ? TOOL_JSON : TOOL_LINES);
}

static void halt_report_damaged(const tool_prefix *prefix)
{
    char *remedy = tool_halt_damaged(prefix->path);
    if (remedy) tool_say(HALT_REMEDY, "%s", remedy);
    free(remedy);
}

/* Explains to people what the conditions do now and how to undo them. */
static void halt_explain(const tool_prefix *prefix, const kvtree *halt)
{
    char reason[SCR_HALT_REASON_SIZE];
    scr_halt_end end = {0, NULL};
    int64_t now = time(NULL);
    scr_halt_find_end(&end, NULL); /* scr_run queries the batch system for other ends */
    if (!scr_halt_check(halt, &end, now, reason)) return;
    if (tool_halt_is_own(halt, &end, now)) {
        tool_say(HALT_RECORDED,
                 "the last run recorded why it ended; the next one removes that");
        return;
    }
    char *remedy = tool_halt_remedy(halt, &end, now, prefix->path);
    tool_say(HALT_IN_FORCE, "a run ends at its next chance, and none begins: %s; %s",
             reason, remedy ? remedy : "no memory");
    free(remedy);
}

static int halt_run(request *r, const char *dir)
{
    kvtree_error err = {"no memory"};
    tool_prefix prefix;
    kvtree *halt = kvtree_new();
    int code = tool_prefix_open(&prefix, dir);
    if (code == COMMAND_GOOD) {
        /* before a change creates .scr: conditions in a wrong directory have no effect */
        if (!r->json) tool_prefix_tell_unused(&prefix);
        int rc = halt ? halt_change(&prefix, r, halt, &err) : -ENOMEM;
        code = rc ? tool_say(HALT_FILE_UNREADABLE, "%s: %s", prefix.path, err.text)
                  : halt_print(halt, r);
        if (rc == -EBADMSG) halt_report_damaged(&prefix);
        if (!rc && !r->json) halt_explain(&prefix, halt);
    }
    tool_prefix_close(&prefix);
    kvtree_delete(&halt);
    return tool_finish(code);
}

/* ---- several directories ---- */

/* Runs in another process. A signal that ends the parent process ends this one, too. */
static int halt_run_apart(request *r, const char *dir, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0 || getppid() != parent)
        return COMMAND_BAD;
    return halt_run(r, dir);
}

/* Starts a process for the directory: as root, it becomes the owner of the directory and
 * remains so. The owner can delay it, which must not delay the other directories: this
 * function returns after some seconds in any case. */
static pid_t halt_start(request *r, const char *dir)
{
    int ends[2];
    const pid_t parent = getpid();
    if (pipe(ends) != 0) ends[0] = ends[1] = -1;
    pid_t pid = ends[0] < 0 ? -1 : fork();
    if (pid == 0) _exit(halt_run_apart(r, dir, parent));
    if (pid < 0) tool_say(PROCESS_CONTROL_FAILED, "%s: %s", dir, strerror(errno));
    io_close(&ends[1]);
    /* the pipe remains open in the other process as long as it runs */
    struct pollfd other = {.fd = ends[0], .events = POLLIN};
    if (pid > 0 && poll(&other, 1, PATIENCE_MS) == 0)
        tool_say(HALT_SLOW, "%s: this takes long, and goes on beside the next one", dir);
    io_close(&ends[0]);
    return pid;
}

static int halt_wait(pid_t pid)
{
    int status;
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return COMMAND_BAD;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : COMMAND_BAD;
}

static int halt_run_several(request *r, const tool_args *args)
{
    int code = COMMAND_GOOD;
    pid_t *pids = calloc((size_t)args->count, sizeof *pids);
    if (!pids) return tool_no_memory();
    for (int i = 0; i < args->count; i++) {
        if (!r->json) {
            tool_print(args->list[i]);
            printf(":\n");
        }
        if (command_flush() != COMMAND_GOOD) code = COMMAND_BAD;
        pids[i] = halt_start(r, args->list[i]);
    }
    for (int i = 0; i < args->count; i++)
        if (halt_wait(pids[i]) != COMMAND_GOOD) code = COMMAND_BAD;
    free(pids);
    return code;
}

static int halt_run_all(request *r, const tool_args *args)
{
    if (args->count > 1) return halt_run_several(r, args);
    return halt_run(r, args->count ? args->list[0] : r->dir);
}

int main(int argc, char **argv)
{
    request r = {.dir = NULL};
    const tool_option options[] = {
        TOOL_DIR_OPTIONS(&r.dir),
        {'c', "checkpoints", "N", "end after N more checkpoints", .text = &r.given[LEFT]},
        {'a', "after", "TIME", "end at the first chance after TIME",
         .text = &r.given[AFTER]},
        {'b', "before", "TIME", "end before TIME, by the time of --seconds",
         .text = &r.given[BEFORE]},
        {'s', "seconds", "N",
         "end that many seconds before --before, or before the\n"
         "allocation ends (600, 10min)",
         .text = &r.given[SECONDS]},
        {'T', "reason", "TEXT", "end at the next chance, for this reason",
         .text = &r.given[REASON]},
        {'i', "immediate", NULL,
         "end at once, where scr_run runs the job; else at the next\nchance",
         .flag = &r.immediate},
        {'l', "list", NULL, "only list the conditions", .flag = &r.list},
        {'C', "unset-checkpoints", NULL, "remove --checkpoints", .flag = &r.unset[LEFT]},
        {'A', "unset-after", NULL, "remove --after", .flag = &r.unset[AFTER]},
        {'B', "unset-before", NULL, "remove --before", .flag = &r.unset[BEFORE]},
        {'S', "unset-seconds", NULL, "remove --seconds", .flag = &r.unset[SECONDS]},
        {'R', "unset-reason", NULL, "remove --reason and --immediate",
         .flag = &r.unset[REASON]},
        {'r', "remove", NULL, "remove all conditions with the halt file",
         .flag = &r.remove},
        {'j', "json", NULL, "print a JSON object", .flag = &r.json},
        TOOL_VERBOSE_OPTION(&r.verbose),
        {0}};
    const tool t = {.arguments = "[OPTION]... [DIRECTORY]...",
                    .about = "Sets when the run in each DIRECTORY ends, and prints the "
                             "conditions. SCR checks them "
                             "after\neach checkpoint, and whenever the program "
                             "asks. Without a condition the run ends at\nits next "
                             "chance.\nTIME: " TOOL_TIME_FORMS ".\n",
                    .codes = "0 done, 1 an error, 2 wrong usage.\n",
                    .options = options,
                    .most = -1};
    tool_args args;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if (r.dir && args.count) return tool_misused(&t, "two prefix directories");
    code = halt_take_request(&t, &r);
    return code >= 0 ? code : halt_run_all(&r, &args);
}
