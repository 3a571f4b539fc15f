/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared code of the commands without memory: each allocation fails once in lists of
 * hosts, words of launchers and remote shells, tables, the configuration with prefix
 * directory, owner and nodes, executed programs, the log, and simulated nodes. Code that
 * prints messages instead of returning errors reports that there is no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/errtext.h"
#include "lib/processes.h"
#include "lib/tool.h"
#include "lib/tool_fold.h"
#include "lib/tool_halt.h"
#include "lib/tool_log.h"
#include "lib/tool_manager.h"
#include "lib/tool_remote.h"
#include "lib/tool_run.h"
#include "lib/tool_table.h"
#include "nodes/node_check.h"
#include "nth_each.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include "run/hooks.h"
#include "run/launcher.h"
#include "run/run_progress.h"
#include "run/simulate.h"
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a directory, and the printed output ---- */

static struct {
    char path[64];
    int dir, log;         /* output goes to the file log */
    int out[2];           /* the original standard output and error */
    char said[8192];      /* output of the last try */
    const char *expected; /* output of a successful try; NULL: any */
} here;

static void put(const char *name, const char *text, mode_t mode)
{
    int fd = openat(here.dir, name, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static int setup(void **state)
{
    strcpy(here.path, "/tmp/scr-test-XXXXXX");
    if (!mkdtemp(here.path)) return -1;
    here.dir = open(here.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    here.log = openat(here.dir, "log", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    for (int i = 0; i < 2; i++)
        here.out[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 3);
    put("scr.conf",
        "SCR_NODELIST=n[1-3],n2\nSCR_USER_NAME=u\nSCR_JOB_ID=7\nSCR_LOG_ENABLE=1\n"
        "SCR_LOG_SYSLOG_ENABLE=0\nSCR_REMOTE_SHELL=rsh\nSCR_CNTL_BASE=/c\n",
        0600);
    return here.dir < 0 || here.log < 0 || mkdirat(here.dir, ".scr", 0700) != 0;
}

static int teardown(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", here.path);
    close(here.dir);
    close(here.log);
    close(here.out[0]);
    close(here.out[1]);
    return system(command);
}

static void redirect(void)
{
    int held = nth_hold();
    fflush(stdout);
    assert_int_equal(ftruncate(here.log, 0), 0);
    for (int i = 0; i < 2; i++)
        assert_true(dup2(here.log, i + 1) >= 0);
    countdown = held;
}

/* Returns the error for a code: only a message about memory is expected. */
static int error_of(int code)
{
    int held = nth_hold();
    fflush(stdout);
    for (int i = 0; i < 2; i++)
        dup2(here.out[i], i + 1);
    ssize_t n = pread(here.log, here.said, sizeof here.said - 1, 0);
    here.said[n < 0 ? 0 : n] = 0;
    snprintf(nth_text.text, sizeof nth_text.text, "%.500s", here.said);
    countdown = held;
    if (code == COMMAND_GOOD) {
        if (here.expected && strcmp(here.expected, here.said) != 0)
            fail_msg("it says \"%s\"", here.said);
        return 0;
    }
    return strstr(here.said, "memory") ? -ENOMEM : -EPROTO;
}

/* ---- lists of hosts ---- */

static int do_hosts(void *arg)
{
    hostlist a = {0}, b = {0}, c = {0}, once = {0};
    char *text = NULL;
    int rc = hostlist_parse("n[1-4]-x,login7", &a, &nth_text);
    if (rc) assert_int_equal(a.count, 0);
    if (!rc) rc = hostlist_parse("n[3-5]-x n[3-5]-x", &b, &nth_text);
    if (!rc) rc = hostlist_minus(&a, &b, &c);
    if (!rc) assert_int_equal(c.count, 3);
    if (!rc) rc = hostlist_intersect(&a, &b, &c);
    if (!rc) rc = hostlist_unite(&a, &b, &c);
    if (!rc) rc = hostlist_once(&c, &once);
    if (!rc) rc = (text = hostlist_compress(&once)) ? 0 : -ENOMEM;
    if (!rc) assert_string_equal(text, "login7,n[1-5]-x");
    free(text);
    hostlist_done(&a);
    hostlist_done(&b);
    hostlist_done(&c);
    hostlist_done(&once);
    return rc;
}

/* ---- words ---- */

static const char *const program[] = {"sh", "-c", "echo 'a b'; echo c >&2", NULL};

static int do_launch(void *arg)
{
    const launcher *l = arg;
    char *names[] = {(char[]){"n1"}, (char[]){"n2"}}, *down[] = {(char[]){"n3"}};
    const hostlist nodes = {2, names}, lost = {1, down};
    const int ranks[] = {2, 1};
    int rc = 0;
    for (int raw = 0; raw < 2 && !rc; raw++) {
        tool_words words = {0};
        const launch of = {.nodes = &nodes,
                           .ranks = ranks,
                           .out = &lost,
                           .rest = &lost,
                           .program = "x",
                           .name = "job",
                           .raw = raw,
                           .words = program,
                           .patience = 60};
        rc = launcher_build(l, &of, &words, &nth_text);
        if (!rc) assert_string_equal(words.list[words.count - 1], program[2]);
        tool_words_done(&words);
    }
    return rc;
}

static int do_remote_words(void *arg)
{
    char *names[] = {(char[]){"n1"}};
    const tool_remote remote = {.way = arg,
                                .shell = (char[]){"ssh"},
                                .simulated = here.path,
                                .self = "n9",
                                .brokers = {1, names}};
    tool_words words = {0};
    int rc = tool_remote_words(&remote, "n1", program, &words);
    if (!rc) assert_true(words.count > 1 && !words.list[words.count]);
    tool_words_done(&words);
    return rc;
}

/* ---- tables ---- */

static int do_table(void *arg)
{
    static const tool_column columns[] = {{"name", "NAME", TOOL_TEXT},
                                          {"files", "FILES", TOOL_NUMBER},
                                          {"whole", "WHOLE", TOOL_SWITCH},
                                          {"places", "PLACES", TOOL_LIST}};
    static const char *const places[] = {"CACHE", "PFS"};
    const tool_form *form = arg;
    tool_table *table = tool_table_new(columns, 4);
    redirect();
    for (int i = 0; i < 2; i++) {
        tool_table_text(table, i ? "b" : "a\n");
        tool_table_number(table, 7);
        tool_table_switch(table, i);
        tool_table_list(table, places, 2);
    }
    return error_of(tool_table_print(table, *form));
}

/* ---- configuration ---- */

static int open_prefix(tool_prefix *prefix)
{
    char file[128];
    snprintf(file, sizeof file, "%s/scr.conf", here.path);
    return tool_prefix_configure_by(prefix, here.path, file);
}

static int do_prefix(void *arg)
{
    tool_prefix prefix;
    tool_owner owner;
    char path[TOOL_PATH_SIZE];
    hostlist nodes = {0};
    redirect();
    int code = open_prefix(&prefix);
    if (code == COMMAND_GOOD) code = tool_owner_find(&prefix, &owner);
    if (code == COMMAND_GOOD) code = tool_control_folder(&prefix, NULL, path);
    if (code == COMMAND_GOOD) assert_string_equal(path, "/c/u/scr.7");
    if (code == COMMAND_GOOD) code = tool_manager_nodes(&prefix, &nodes);
    if (code == COMMAND_GOOD) assert_int_equal(nodes.count, 3);
    hostlist_done(&nodes);
    tool_prefix_close(&prefix);
    return error_of(code);
}

static int do_log(void *arg)
{
    tool_prefix prefix;
    const scr_log_event event = {.kind = SCR_LOG_HALT, .note = "enough"};
    int on = 0;
    redirect();
    int code = open_prefix(&prefix);
    if (code == COMMAND_GOOD) code = tool_log_write(&prefix, &event, &on);
    if (code == COMMAND_GOOD) assert_int_equal(on, 1);
    tool_prefix_close(&prefix);
    return error_of(code);
}

/* ---- programs ---- */

static void count_good(int task, const tool_end *end, void *arg)
{
    *(int *)arg += end->code == 0 ? 1 : 100;
}

static int do_tasks(void *arg)
{
    static const char *const other[] = {"true", NULL};
    const char *const *const tasks[] = {program, other};
    const tool_limits limits = {.seconds = 100, .bytes = 1000, .most = 2, .joined = true};
    int done = 0, rc = tool_process_run(tasks, 2, &limits, count_good, &done, &nth_text);
    /* an end that lacked memory in time has an error of its own */
    if (!rc && done != 2) rc = -ENOMEM;
    return rc;
}

static int do_run(void *arg)
{
    char *output = NULL;
    static const char *const words[] = {"echo", "a b", NULL};
    int rc = tool_run(words, 100, &output, &nth_text);
    if (!rc) assert_string_equal(output, "a b\n");
    free(output);
    return rc;
}

static int do_remote_run(void *arg)
{
    tool_prefix prefix;
    tool_remote remote = {.seconds = 100, .bytes = 1000, .joined = 1};
    hostlist nodes = {0};
    int done = 0;
    redirect();
    int code = open_prefix(&prefix);
    int rc = code == COMMAND_GOOD ? hostlist_parse("n[1-2]", &nodes, &nth_text) : 0;
    setenv("SCR_NODE_NAME", "n1", 1);
    if (code == COMMAND_GOOD && !rc) code = tool_remote_choose(&remote, &prefix, &nodes);
    remote.way = "local";
    if (code == COMMAND_GOOD && !rc)
        rc = tool_remote_run(&remote, &nodes, program, count_good, &done, &nth_text);
    if (code == COMMAND_GOOD && !rc && done != 2) rc = -ENOMEM;
    unsetenv("SCR_NODE_NAME");
    tool_remote_done(&remote);
    hostlist_done(&nodes);
    tool_prefix_close(&prefix);
    int error = error_of(code);
    return rc ? rc : error;
}

static int do_command(void *arg)
{
    char *path = tool_remote_command("no-such-command");
    int rc = path ? 0 : -ENOMEM;
    free(path);
    return rc;
}

static int do_hook(void *arg)
{
    tool_prefix prefix;
    redirect();
    int code = open_prefix(&prefix);
    if (code == COMMAND_GOOD) code = hooks_call(&prefix, HOOK_PRERUN, "x", NULL);
    tool_prefix_close(&prefix);
    return error_of(code);
}

static int do_check(void *arg)
{
    char hooks[128];
    snprintf(hooks, sizeof hooks, "%s/hooks", here.path);
    const node_folder folder = {.path = hooks};
    int rc = node_check_folder(&folder, &nth_text);
    return rc ? rc : node_check_programs(hooks, 100, &nth_text);
}

static int do_processes(void *arg)
{
    static const processes_filter nobody = {.variables = {"SCR_NO_SUCH_NAME=1"}};
    int rc = processes_signal(&nobody, 0);
    return rc ? rc : processes_end(&nobody, 10);
}

/* ---- simulated nodes, and progress of a run ---- */

static void is_empty(const char *name)
{
    int held = nth_hold();
    struct stat st;
    assert_int_equal(fstatat(here.dir, name, &st, 0), 0);
    assert_int_equal(st.st_nlink, 2); /* it has no directories */
    countdown = held;
}

static void empty(const char *name)
{
    char command[128];
    int held = nth_hold();
    snprintf(command, sizeof command, "rm -rf %s/%s/*", here.path, name);
    assert_int_equal(system(command), 0);
    countdown = held;
}

static int do_fold(void *arg)
{
    static const char *const nodes[] = {"n1", "n2", "n3", "n1"};
    tool_fold fold = {0};
    int rc = 0;
    for (int i = 0; i < 4 && !rc; i++)
        rc = tool_fold_add(&fold, nodes[i], i == 2 ? "tired" : "down");
    if (!rc)
        assert_true(fold.count == 2 && fold.list[0].nodes.count == 3 &&
                    strcmp(fold.list[0].text, "down") == 0);
    tool_fold_done(&fold);
    return rc;
}

static int do_halt(void *arg)
{
    const kvtree *halt = arg;
    const scr_halt_end none = {0, NULL};
    char reason[SCR_HALT_REASON_SIZE];
    int rc = tool_halt_stopped(halt, &none, 0, reason);
    if (rc < 0) return rc;
    assert_int_equal(rc, 1);
    char *text = tool_halt_remedy(halt, &none, 0, "/a b");
    if (text)
        assert_string_equal(text,
                            "to continue: scr_halt --remove '/a b', and start it again");
    free(text);
    return text ? 0 : -ENOMEM;
}

static int do_simulate(void *arg)
{
    simulate_failure list[SIMULATE_FAILURES];
    hostlist nodes = {0};
    char *folder = NULL;
    int count = 0, lock = -1;
    int rc = simulate_parse_failures("node=1,after=2 node=2", 2, list, &count, &nth_text);
    if (!rc) rc = simulate_open(2, &folder, &lock, &nodes, &nth_text);
    if (!rc) assert_true(count == 2 && nodes.count == 2);
    simulate_close(folder, &lock);
    hostlist_done(&nodes);
    if (rc) is_empty("tmp"); /* removal needs memory, too, which was available */
    if (!rc) empty("tmp");
    return rc;
}

static int do_progress(void *arg)
{
    progress_reader source;
    run_progress p = {0};
    run_progress_begin(&source, here.dir);
    int rc = run_progress_read(&source, &p, &nth_text);
    assert_true(rc ? !p.latest && !p.flushing : p.latest == 11 && p.flushing);
    return rc;
}

/* ---- */

static void lists_and_words(void **state)
{
    static const char *const ways[] = {"local", "simulate", "srun",
                                       "flux",  "pdsh",     "shell"};
    nth_each("hosts", do_hosts, NULL, 20);
    for (const launcher *l = launcher_table; l->name; l++)
        nth_each(l->name, do_launch, (void *)(uintptr_t)l, 10);
    assert_int_equal(mkdirat(here.dir, "n1", 0700), 0);
    for (size_t i = 0; i < 6; i++)
        nth_each(ways[i], do_remote_words, (void *)(uintptr_t)ways[i], 4);
}

static void tables(void **state)
{
    static const char *const texts[] = {
        "NAME  FILES  WHOLE  PLACES\na\\n       7  no     CACHE PFS\n"
        "b         7  yes    CACHE PFS\n",
        NULL, NULL};
    for (tool_form form = TOOL_COLUMNS; form <= TOOL_JSON; form++) {
        here.expected = texts[form];
        nth_each("table", do_table, &form, 16);
    }
    here.expected = NULL;
}

static void configuration(void **state)
{
    here.expected = NULL;
    nth_each("configuration", do_prefix, NULL, 20);
    nth_each("log", do_log, NULL, 20);
}

static void programs(void **state)
{
    char hooks[128];
    snprintf(hooks, sizeof hooks, "%s/hooks", here.path);
    assert_int_equal(mkdirat(here.dir, "hooks", 0700), 0);
    put("hooks/prerun", "#!/bin/sh\necho \"hook $1\"\n", 0700);
    nth_each("programs", do_tasks, NULL, 4);
    nth_each("output", do_run, NULL, 4);
    nth_each("on nodes", do_remote_run, NULL, 20);
    nth_each("a command of ours", do_command, NULL, 1);
    nth_each("checks of a node", do_check, NULL, 4);
    nth_each("processes", do_processes, NULL, 2);
    setenv("SCR_SITE_HOOKS", hooks, 1);
    here.expected = "hook x\n";
    nth_each("hook", do_hook, NULL, 20);
    here.expected = NULL;
    unsetenv("SCR_SITE_HOOKS");
}

static void simulated_nodes(void **state)
{
    char tmp[128];
    kvtree *flush = kvtree_new();
    snprintf(tmp, sizeof tmp, "%s/tmp", here.path);
    assert_int_equal(mkdirat(here.dir, "tmp", 0700), 0);
    setenv("TMPDIR", tmp, 1);
    nth_each("simulated nodes", do_simulate, NULL, 6);
    nth_each("one line for all", do_fold, NULL, 6);
    kvtree *halt = kvtree_new();
    assert_int_equal(kvtree_util_set_str(halt, SCR_HALT_KEY_REASON, "enough"), 0);
    nth_each("halted", do_halt, halt, 6);
    kvtree_delete(&halt);
    hostlist nodes = {0};
    char *folder;
    int lock = -1;
    assert_int_equal(simulate_open(3, &folder, &lock, &nodes, NULL), 0);
    simulate_close(folder, &lock);
    hostlist_done(&nodes);
    is_empty("tmp");
    unsetenv("TMPDIR");
    scr_flush_file_set(flush, 8, "a", SCR_LOCATION_PFS, 1);
    scr_flush_file_set(flush, 9, "b", SCR_LOCATION_FLUSHING, 1);
    assert_int_equal(scr_flush_file_write(here.dir, flush, NULL), 0);
    kvtree_delete(&flush);
    kvtree *index = kvtree_new();
    const scr_dataset d = {.id = 11, .name = "c"};
    assert_int_equal(scr_index_add(index, &d, 1), 0);
    assert_int_equal(
        kvtree_file_write(here.dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, index, NULL), 0);
    kvtree_delete(&index);
    nth_each("progress", do_progress, NULL, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_words), cmocka_unit_test(tables),
        cmocka_unit_test(configuration),   cmocka_unit_test(programs),
        cmocka_unit_test(simulated_nodes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
