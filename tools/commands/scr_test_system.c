/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_test_system: tests whether jobs on this system survive failures (SCR Developer
 * Guide 1.2, section 2.34). */
#include "common/beneath.h"
#include "common/io.h"
#include "lib/processes.h"
#include "lib/tool.h"
#include "lib/tool_remote.h"
#include "lib/tool_run.h"
#include "lib/tool_table.h"
#include "lib/tool_words.h"
#include "run/prerun.h"
#include "run/program_check.h"
#include "run/recovery_test.h"
#include "run/run.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK ".mark" /* in the directory where ranks create files */

enum {
    NOT_TRIED = -2,
    OUTPUT = 1 << 20,
    TEXT = 400,
    WARMUP = 2 /* seconds before a launch is ended */
};

typedef struct test {
    run run;
    run_request request;
    int seconds; /* timeout of each step */
    const char *switch_off;
    const char *const *program;
    char text[TEXT];    /* findings of the current step */
    recovery recovery;  /* recovery that the last steps inspect */
    int made;           /* 1: the recovery was tested; 0: the test failed; -1: there was
                         * no test */
    char why[TEXT];     /* the reason if made is not 1 */
    tool_answer answer; /* result of the last launch */
} test;

/* ---- launches ---- */

/* Plans a first launch on the given number of nodes. */
static run_why system_plan_first_launch(run_facts *f, int nodes)
{
    f->wanted = nodes;
    f->least = 1;
    f->ranks = 0;
    f->per_node = 1;
    f->attempts = 0;
    f->runs_left = -1;
    for (int i = 0; i < f->count; i++)
        f->nodes[i].used = 0;
    return run_plan(f).why;
}

static int system_count_up(const run *r)
{
    int up = 0;
    for (int i = 0; i < r->nodes.count; i++)
        up += !r->table[i].down;
    return up;
}

/* Runs a command on the nodes that are not down, with one rank each, and sets the answer.
 * 0, or -errno if that was not possible. */
static int system_launch_words(test *t, const char *const *words, double seconds)
{
    /* processes that a launcher leaves behind are part of the test */
    const tool_limits limits = {.seconds = seconds,
                                .bytes = OUTPUT,
                                .grace = RUN_GRACE,
                                .joined = true,
                                .group_only = true};
    char name[64];
    kvtree_error err = {""};
    tool_words argv = {0};
    run *r = &t->run;
    if (system_plan_first_launch(&r->facts, system_count_up(r)) != RUN_LAUNCH)
        return -ENODEV;
    run_take_chosen(r);
    snprintf(name, sizeof name, "scr_test_system.%ld", (long)getpid());
    run_describe(r, name);
    r->launch.words = words;
    free(t->answer.output);
    t->answer.output = NULL;
    int rc = launcher_build(&r->launcher.row, &r->launch, &argv, &err);
    if (!rc) rc = tool_run_answer(tool_words_list(&argv), &limits, &t->answer, &err);
    int code = rc ? rc : t->answer.code;
    if (code < 0) snprintf(t->text, TEXT, "%.390s", rc ? err.text : t->answer.err.text);
    if (!rc && code < 0 && launcher_end(&r->launcher.row, &r->launch, &err) != 0)
        snprintf(t->text, TEXT, "%s", err.text);
    r->launch.name = NULL;
    tool_words_done(&argv);
    return rc;
}

/* Like system_launch_words, with a shell command line. */
static int system_launch_line(test *t, const char *line, double seconds)
{
    const char *const words[] = {"sh", "-c", line, NULL};
    return system_launch_words(t, words, seconds);
}

/* Whether the output has a line with the name of the node, possibly in a longer form:
 * n3.site.org. */
static bool system_has_line_of(const char *output, const char *node)
{
    static const char mark[] = "scr-node ";
    size_t n = strlen(node);
    for (const char *at = output; (at = strstr(at, mark)) != NULL; at += sizeof mark - 1)
        if (strncmp(at + sizeof mark - 1, node, n) == 0 &&
            strchr(".\n", at[sizeof mark - 1 + n]))
            return true;
    return false;
}

static const char say_node[] = "echo scr-node ${SCR_NODE_NAME:-$(hostname)}";

/* Whether ranks ran on all nodes that are not down, and on no other node. */
static int system_launch_reaches_all(test *t)
{
    const run *r = &t->run;
    if (system_launch_line(t, say_node, t->seconds) != 0) return 0;
    if (t->answer.code > 0) snprintf(t->text, TEXT, "exit code %d", t->answer.code);
    for (int i = 0; i < r->nodes.count && !t->answer.code; i++) {
        const char *node = r->nodes.names[i];
        int spoken = system_has_line_of(t->answer.output, node);
        if (spoken == !r->table[i].down) continue;
        snprintf(t->text, TEXT, spoken ? "a rank ran on %s" : "no rank ran on %s", node);
        return 0;
    }
    return t->answer.code == 0;
}

/* ---- steps: 1 good, 0 bad, -1 not made; with a text ---- */

static int system_step_programs(test *t)
{
    snprintf(t->text, TEXT, "launcher %s (%.300s)", t->run.launcher.row.name,
             t->run.launcher.program);
    return prerun_test_runtime(&t->run.prefix) == COMMAND_GOOD;
}

static int system_step_nodes(test *t)
{
    run *r = &t->run;
    int bad = 0;
    down_nodes_find(&r->prefix, &r->nodes, r->node_time, false, r->reasons);
    for (int i = 0; i < r->nodes.count; i++) {
        r->table[i].down = *r->reasons[i].text != 0;
        if (r->table[i].down && !bad++)
            snprintf(t->text, TEXT, "%s: %s", r->nodes.names[i], r->reasons[i].text);
    }
    if (!bad)
        snprintf(t->text, TEXT, "%d node%s", r->nodes.count,
                 r->nodes.count == 1 ? "" : "s");
    return bad == 0;
}

/* Tests that a program that never ends can be ended with all of its processes on this
 * node. */
static int system_step_end(test *t)
{
    static const processes_filter all = {.spared = NULL};
    if (system_launch_line(t, "exec sleep 100000", WARMUP) != 0) return 0;
    if (t->answer.code != -ETIMEDOUT) {
        snprintf(t->text, TEXT, "the launcher ended early, with code %d", t->answer.code);
        return 0;
    }
    /* processes need a moment to notice that their launcher ended */
    double until = tool_now() + t->seconds;
    int left = processes_signal(&all, 0);
    while (left > 0 && tool_now() < until) {
        tool_signals_wait(&t->run.signals, 0.1, 0);
        left = processes_signal(&all, 0);
    }
    snprintf(t->text, TEXT, "%d processes were left", left);
    processes_end(&all, t->seconds);
    if (left == 0) *t->text = 0;
    return left == 0;
}

/* Each rank creates the first file in directory $0 that no other rank has created,
 * because launchers number ranks differently. The rank with the first file is killed when
 * there are $1 files, or after $2 seconds, since other nodes may see files late. The mark
 * distinguishes the directory from another one that other users gave its name. */
static const char crash_line[] =
    "cd \"$0\" && [ -e " MARK " ] || exit 1\n"
    "rank=0; n=0; set -C\n"
    "until (: >$rank) 2>/dev/null; do\n"
    "    rank=$((rank + 1)); [ $rank -lt $1 ] || exit 1\n"
    "done\n"
    "while [ $rank = 0 ]; do\n"
    "    [ $n -lt $2 ] && [ $(ls | wc -l) -lt $1 ] || kill -9 $$\n"
    "    n=$((n + 1)); sleep 1\n"
    "done\n"
    "exec sleep 100000";

static bool system_is_empty(int folder)
{
    int entries = 0;
    DIR *stream = beneath_list(folder);
    while (stream && readdir(stream))
        entries++;
    if (stream) closedir(stream);
    return entries == 2; /* "." and ".." */
}

/* Creates a directory with the mark. *dir: the open directory. */
static int system_make_folder(char *folder, int *dir)
{
    if (!mkdtemp(folder)) return -errno;
    int fd =
        io_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0) return fd;
    int mark = -ENOTEMPTY;
    if (system_is_empty(fd)) mark = io_open(fd, MARK, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (mark < 0) {
        io_close(&fd);
        return mark;
    }
    *dir = fd;
    return io_close(&mark);
}

static void system_remove_folder(const char *folder, int dir, int ranks)
{
    char name[16];
    for (int i = 0; i < ranks && dir >= 0; i++) {
        snprintf(name, sizeof name, "%d", i);
        unlinkat(dir, name, 0);
    }
    if (dir >= 0) unlinkat(dir, MARK, 0);
    rmdir(folder);
}

/* Tests that the launcher returns with an error when a rank is killed. The rank is killed
 * only when all ranks have started, because srun asks each node only once to end its
 * ranks. */
static int system_step_crash(test *t)
{
    const run *r = &t->run;
    char *folder = NULL, count[16], wait[16];
    int ranks = system_count_up(r);
    if (asprintf(&folder, "%s/.scr_test_system.XXXXXX", r->prefix.path) < 0) return 0;
    snprintf(count, sizeof count, "%d", ranks);
    snprintf(wait, sizeof wait, "%d", t->seconds / 3);
    const char *const words[] = {"sh", "-c", crash_line, folder, count, wait, NULL};
    int dir = -1, rc = system_make_folder(folder, &dir);
    if (!rc) rc = system_launch_words(t, words, t->seconds);
    if (!rc && t->answer.code != -ETIMEDOUT)
        snprintf(t->text, TEXT, "exit code %d", t->answer.code);
    if (rc && !*t->text) snprintf(t->text, TEXT, "%s: %s", folder, strerror(-rc));
    system_remove_folder(folder, dir, ranks);
    io_close(&dir);
    free(folder);
    return !rc && t->answer.code != -ETIMEDOUT && t->answer.code != 0;
}

/* Tests that the next launch avoids a node, here the last one. */
static int system_step_steer(test *t)
{
    run *r = &t->run;
    int last = r->nodes.count - 1;
    while (last >= 0 && (r->table[last].down || r->table[last].home))
        last--;
    if (last < 1) {
        snprintf(t->text, TEXT, "there is no node to leave out");
        return -1;
    }
    r->table[last].down = 1;
    int good = system_launch_reaches_all(t);
    r->table[last].down = 0;
    if (good) snprintf(t->text, TEXT, "without %s", r->nodes.names[last]);
    return good;
}

/* ---- recovery from the loss of a node ---- */

/* Returns the first node that may be lost among the nodes with which scr_run begins,
 * which are all good nodes but one. NULL: there is none. */
static const char *system_choose_victim(run *r, int nodes)
{
    if (nodes < 1 || system_plan_first_launch(&r->facts, nodes) != RUN_LAUNCH)
        return NULL;
    for (int i = 0; i < r->nodes.count; i++)
        if (r->table[i].chosen && !r->table[i].home) return r->nodes.names[i];
    return NULL;
}

/* Adds the arguments of scr_run. Simulated nodes are called node1, node2, ... */
static void system_add_arguments(const test *t, int nodes, tool_words *argv)
{
    const run_request *q = &t->request;
    tool_words_add(argv, "--prefix=%s", t->run.prefix.path);
    tool_words_add(argv, "--nodes=%d", nodes);
    tool_words_add(argv, "--runs=2");
    if (q->launcher) tool_words_add(argv, "--launcher=%s", q->launcher);
    if (q->simulate) {
        tool_words_add(argv, "--simulate=%s", q->simulate);
        tool_words_add(argv, "--fail=node=%s,after=2checkpoints",
                       t->recovery.node + strlen("node"));
    }
    tool_words_add_all(argv, t->program);
}

/* Runs scr_run. 0, or -errno with a text. */
static int system_make_recovery(test *t, int nodes)
{
    char *command = tool_remote_command("scr_run");
    kvtree_error err = {"no memory"};
    tool_words argv = {0};
    int rc = -ENOMEM;
    tool_words_add(&argv, "%s", command ? command : "scr_run");
    system_add_arguments(t, nodes, &argv);
    t->recovery.prefix = t->run.prefix.dir;
    t->recovery.argv = tool_words_list(&argv);
    t->recovery.switch_off = t->request.simulate ? "" : t->switch_off;
    t->recovery.seconds = t->seconds;
    if (!argv.failed) rc = recovery_run(&t->recovery, &t->run.signals, &err);
    if (rc) snprintf(t->why, TEXT, "%.390s", err.text);
    tool_words_done(&argv);
    free(command);
    return rc;
}

/* Called before the steps that inspect the recovery; the first call tests the recovery.
 * If there is no recovery, the text has the reason. */
static void system_get_recovery(test *t)
{
    int nodes = system_count_up(&t->run) - 1;
    bool first = t->made == NOT_TRIED;
    if (first) t->made = -1;
    if (first && !t->program[0])
        snprintf(t->why, TEXT, "no program that uses SCR was named");
    else if (first && !(t->recovery.node = system_choose_victim(&t->run, nodes)))
        snprintf(t->why, TEXT, "there are too few nodes to lose one");
    else if (first)
        t->made = system_make_recovery(t, nodes) == 0;
    if (t->made < 1) snprintf(t->text, TEXT, "%s", t->why);
}

/* Tests that the launcher returned although one of its nodes was lost. */
static int system_step_return(test *t)
{
    const recovery_log *log = &t->recovery.log;
    snprintf(t->text, TEXT, "%s", t->recovery.trouble);
    if (*t->text) return -1;
    snprintf(t->text, TEXT, "exit code %d: %s", log->code, log->why);
    if (!log->ended) snprintf(t->text, TEXT, "no launch has ended");
    if (!log->ended || log->code || log->lost) return log->ended;
    snprintf(t->text, TEXT, "the program ended by itself");
    return -1;
}

static int system_step_detect(test *t)
{
    const recovery_log *log = &t->recovery.log;
    snprintf(t->text, TEXT, "%s: %s", t->recovery.node,
             *t->recovery.trouble ? t->recovery.trouble
             : log->lost          ? log->found
                                  : "it was not found to be down");
    return log->lost;
}

/* Whether the list contains the node; true if the list cannot be parsed. */
static bool system_has_node(const char *list, const char *node)
{
    hostlist nodes = {0};
    bool has = hostlist_parse(list, &nodes, NULL) != 0;
    for (int i = 0; i < nodes.count; i++)
        has |= strcmp(nodes.names[i], node) == 0;
    hostlist_done(&nodes);
    return has;
}

static int system_step_again(test *t)
{
    const recovery_log *log = &t->recovery.log;
    snprintf(t->text, TEXT, "on %s",
             log->launches > 1 ? log->second : "no node: there was no second launch");
    return log->launches > 1 && !system_has_node(log->second, t->recovery.node);
}

static int system_step_cycle(test *t)
{
    const recovery_log *log = &t->recovery.log;
    int good = log->lost && log->launches > 1 && *log->dataset && t->recovery.code == 0;
    snprintf(t->text, TEXT, "%s%s; see " RUN_LOG_NAME,
             !log->lost          ? "no node was lost"
             : log->launches < 2 ? "it was not started again"
             : *log->dataset     ? "from "
                                 : "it began without a checkpoint",
             log->lost && log->launches > 1 ? log->dataset : "");
    /* otherwise the program ended before its node was lost, which was reported already */
    if (t->recovery.code && (log->lost || log->launches > 1))
        snprintf(t->text, TEXT, "exit code %d; see " RUN_LOG_NAME, t->recovery.code);
    return good;
}

static const struct {
    const char *name, *what;
    int (*make)(test *t);
    bool recovery; /* it inspects the recovery */
} steps[] = {
    {"programs", "what is needed is installed", system_step_programs, false},
    {"nodes", "all nodes can be reached and are good", system_step_nodes, false},
    {"launch", "a launch reaches every node, and returns", system_launch_reaches_all,
     false},
    {"end", "a program that never ends can be ended", system_step_end, false},
    {"crash", "the launcher returns when a rank is killed", system_step_crash, false},
    {"steer", "a launch leaves out a node", system_step_steer, false},
    {"return", "the launcher returns when a node is lost", system_step_return, true},
    {"detect", "that node is found to be down", system_step_detect, true},
    {"again", "the next launch avoids it", system_step_again, true},
    {"cycle", "the program restarts from a checkpoint and succeeds", system_step_cycle,
     true},
};

/* ---- all steps ---- */

static int system_make_all(test *t, int json)
{
    static const tool_column columns[] = {{"step", "STEP", TOOL_TEXT},
                                          {"result", "RESULT", TOOL_TEXT},
                                          {"what", "WHAT", TOOL_TEXT},
                                          {"found", "FOUND", TOOL_TEXT}};
    tool_table *table = tool_table_new(columns, 4);
    int bad = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !t->run.signals.stop; i++) {
        tool_say(SYSTEM_STEP, "%s ...", steps[i].what);
        *t->text = 0;
        if (steps[i].recovery) system_get_recovery(t);
        int result = steps[i].recovery && t->made < 1 ? t->made : steps[i].make(t);
        bad += result == 0;
        tool_table_text(table, steps[i].name);
        tool_table_text(table, result > 0 ? "good" : result ? "not made" : "BAD");
        tool_table_mark(table, result > 0 ? TOOL_GOOD : result ? TOOL_WARN : TOOL_BAD);
        tool_table_text(table, steps[i].what);
        tool_table_text(table, *t->text ? t->text : NULL);
        tool_signals_wait(&t->run.signals, 0, 0);
        processes_reap();
    }
    int printed = tool_table_print(table, json ? TOOL_JSON : TOOL_COLUMNS);
    return bad || t->run.signals.stop ? COMMAND_BAD : printed;
}

int main(int argc, char **argv)
{
    test t = {.seconds = 60, .made = NOT_TRIED};
    int json = 0, nodes, per_node;
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&t.request.dir),
        {'l', "launcher", "NAME",
         "of the launcher (default: SCR_LAUNCHER, or what is\nthere)",
         .text = &t.request.launcher},
        {'s', "simulate", "NODESxRANKS", "on simulated nodes on this machine, as 4x2",
         .text = &t.request.simulate},
        {'t', "seconds", "N", "seconds that a launch may take (default: 60)",
         .number = &t.seconds},
        {'o', "switch-off", "COMMAND",
         "COMMAND NODE switches a node off (default: you do)", .text = &t.switch_off},
        {'j', "json", NULL, "print a JSON object per step", .flag = &json},
        {0}};
    const tool described = {
        .arguments = "[OPTION]... [PROGRAM [ARGUMENT]...]",
        .about =
            "Tests in an allocation whether jobs on this system survive failures, step "
            "by\nstep, and prints a report. PROGRAM uses SCR; it is "
            "started for the last steps, in\nwhich a node is lost; a real one is "
            "switched off by "
            "--switch-off, or by you when\nthe command asks for it.\n",
        .codes = "0 no step was bad, 1 one was, or an error, 2 wrong usage.\n",
        .options = options,
        .most = -1,
        .program = 1};
    tool_args args;
    int code = tool_start(&described, argc, argv, &args);
    if (code < 0 && t.request.simulate && t.request.launcher)
        code = tool_misused(&described, "--simulate needs no launcher");
    if (code < 0 && t.request.simulate &&
        simulate_parse(t.request.simulate, &nodes, &per_node) != 0)
        code = tool_misused(&described, "'%s' is not NODESxRANKS, as 4x2",
                            t.request.simulate);
    if (code < 0 && t.request.simulate && t.switch_off)
        code = tool_misused(&described, "--simulate needs no --switch-off");
    if (code < 0 && t.switch_off && !*t.switch_off)
        code = tool_misused(&described, "--switch-off needs a command");
    if (code < 0 && args.count) code = program_check(&described, argv, &args, true);
    if (code >= 0) return code;
    t.program = (const char *const *)args.list;
    command_outlive_reader();
    code = run_open(&t.run, &t.request);
    if (code == COMMAND_GOOD) code = system_make_all(&t, json);
    run_close(&t.run);
    free(t.answer.output);
    return tool_finish(code);
}
