/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs side by side: their output, their ends, time limits, and that no process is
 * left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/tool_heartbeat.h"
#include "lib/tool_process.h"
#include "lib/tool_words.h"

#include "common/errtext.h"
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TASKS = 8 };

#define SCRIPT(text)                                                                     \
    (const char *const[])                                                                \
    {                                                                                    \
        "sh", "-c", text, NULL                                                           \
    }

/* Reports of each program. */
typedef struct told {
    int count, times[TASKS], code[TASKS];
    char output[TASKS][64];
    kvtree_error err[TASKS];
    size_t size[TASKS];
} told;

static void take(int task, const tool_end *end, void *arg)
{
    told *t = arg;
    t->count++;
    t->times[task]++;
    t->code[task] = end->code;
    t->size[task] = end->size;
    snprintf(t->err[task].text, sizeof t->err[task].text, "%s", end->text);
    snprintf(t->output[task], sizeof t->output[task], "%s", end->output);
    assert_int_equal(end->output[end->size], 0);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_ends(void **state)
{
    kvtree_error err = {""};
    const tool_limits limits = {.seconds = 300, .bytes = 1000, .most = 3, .joined = true};
    const char *const missing[] = {"scr-no-such-program", NULL};
    setenv("PATH", "/usr/bin:/bin", 1); /* a PATH without inaccessible directories:
                                         * EACCES */
    const char *const *const tasks[] = {
        SCRIPT("echo one"),        SCRIPT("printf two; exit 7"),
        SCRIPT("kill -9 $$"),      missing,
        SCRIPT("echo bad >&2"),    SCRIPT("cat"), /* empty input */
        SCRIPT("exec >&-; exit 3")};
    told t = {0};
    assert_int_equal(tool_process_run(tasks, 7, &limits, take, &t, &err), 0);
    assert_int_equal(t.count, 7);
    static const int codes[] = {0, 7, -EIO, -ENOENT, 0, 0, 3};
    for (int i = 0; i < 7; i++) {
        assert_int_equal(t.times[i], 1);
        assert_int_equal(t.code[i], codes[i]);
        assert_int_equal(!t.err[i].text[0], codes[i] == 0);
    }
    assert_string_equal(t.output[0], "one\n");
    assert_string_equal(t.output[1], "two");
    assert_string_equal(t.output[4], "bad\n");
    assert_string_equal(t.err[1].text, "sh: exit code 7");
    assert_string_equal(t.err[2].text, "sh: ended by signal 9");
    assert_int_equal(tool_process_run(tasks, 0, &limits, take, &t, &err), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* all were reaped */
}

/* Each program waits for the other: they end only if they run side by side. */
static void test_side_by_side(void **state)
{
    char folder[] = "/tmp/scr-tasks-XXXXXX";
    kvtree_error err = {""};
    const tool_limits two = {.seconds = 300, .bytes = 100, .most = 2},
                      one = {.seconds = 0.3, .bytes = 100, .most = 1};
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    const char *const *const tasks[] = {
        SCRIPT("mkfifo a 2>/dev/null; echo x >a"),
        SCRIPT("mkfifo a 2>/dev/null; read y <a; echo $y")};
    told t = {0};
    assert_int_equal(tool_process_run(tasks, 2, &two, take, &t, &err), 0);
    assert_int_equal(t.code[0], 0);
    assert_int_equal(t.code[1], 0);
    assert_string_equal(t.output[1], "x\n");
    t = (told){0};
    assert_int_equal(tool_process_run(tasks, 2, &one, take, &t, &err), 0);
    assert_int_equal(t.code[0], -ETIMEDOUT);
    assert_int_equal(t.code[1], -ETIMEDOUT);
    assert_int_equal(unlink("a"), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Expects that the program and its processes are ended, and that earlier output is
 * reported. */
static void time_out(const char *script)
{
    kvtree_error err = {""};
    const tool_limits limits = {.seconds = 3, .bytes = 1000, .most = 4};
    const char *const *const tasks[] = {SCRIPT(script)};
    told t = {0};
    double begin = now();
    assert_int_equal(tool_process_run(tasks, 1, &limits, take, &t, &err), 0);
    assert_true(now() - begin >= 3);
    assert_int_equal(t.code[0], -ETIMEDOUT);
    assert_string_equal(t.err[0].text, "sh: it did not end within 3 seconds");
    long child = strtol(t.output[0], NULL, 10);
    assert_true(child > 1);
    /* its parent is gone, so this process has adopted it and can wait for it */
    assert_int_equal(waitpid((pid_t)child, NULL, 0), child);
    /* all of its processes have ended, too */
    pid_t left = 0;
    for (begin = now(); left >= 0 && now() < begin + 20; usleep(10000))
        left = waitpid(-1, NULL, WNOHANG);
    if (left == 0) fail_msg("%s: a process is left", script);
    assert_int_equal(errno, ECHILD);
}

static void test_time_is_over(void **state)
{
    time_out("sleep 1000 & echo $!; wait");
    /* a program that ignores SIGTERM, and one that left a process with its output */
    time_out("trap '' TERM; sleep 1000 & echo $!; wait");
    time_out("sleep 1000 & echo $!");
    /* in its own session, as pdsh does with remote shells */
    time_out("setsid sh -c 'trap : TERM; echo $$; exec >&- 2>&-; "
             "while :; do sleep 1000; done' & wait");
    /* the same with a parent that ended earlier */
    time_out("setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'; exec sleep 1000");
    /* a program that permanently starts others in their own sessions */
    time_out("setsid sh -c 'trap \"\" TERM; echo $$; exec >&- 2>&-; "
             "while sleep 0.02; do setsid sleep 1000 & done' & wait");
}

/* A program receives a signal to end although its caller has blocked the signal. */
static void test_blocked(void **state)
{
    char mask[64];
    kvtree_error err = {""};
    const tool_limits limits = {.seconds = 300, .bytes = 1000, .most = 1};
    const char *const *const tasks[] = {SCRIPT("grep ^SigBlk /proc/self/status")};
    sigset_t set, before;
    told t = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &set, &before), 0);
    assert_int_equal(tool_process_run(tasks, 1, &limits, take, &t, &err), 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    assert_int_equal(sscanf(t.output[0], "SigBlk: %60s", mask), 1);
    assert_int_equal(strspn(mask, "0"), strlen(mask));
}

static void test_too_much(void **state)
{
    kvtree_error err = {""};
    const tool_limits limits = {.seconds = 300, .bytes = 10, .most = 2};
    const char *const *const tasks[] = {SCRIPT("printf 0123456789"), SCRIPT("yes")};
    told t = {0};
    assert_int_equal(tool_process_run(tasks, 2, &limits, take, &t, &err), 0);
    assert_int_equal(t.code[0], 0);
    assert_int_equal(t.size[0], 10);
    assert_int_equal(t.code[1], -EFBIG);
    assert_int_equal(t.size[1], 10);
}

static volatile sig_atomic_t interrupts;

static void count_interrupt(int signal)
{
    interrupts++;
}

/* Runs in a child process, so that the signal cannot arrive before the handler exists. */
static void interrupted(void)
{
    kvtree_error err = {""};
    const tool_limits limits = {.seconds = 300, .bytes = 100, .most = 1};
    /* the program itself sends the signal; the second one never begins */
    char script[100];
    snprintf(script, sizeof script, "kill -INT %d; echo $$ >pid; sleep 1000", getpid());
    const char *const *const tasks[] = {SCRIPT(script), SCRIPT("echo >second")};
    const struct sigaction action = {.sa_handler = count_interrupt};
    told t = {0};
    sigaction(SIGINT, &action, NULL);
    int rc = tool_process_run(tasks, 2, &limits, take, &t, &err);
    _exit(rc == -EINTR && interrupts == 1 && t.count == 0 ? 0 : 1);
}

static void test_interrupted(void **state)
{
    char folder[] = "/tmp/scr-tasks-XXXXXX";
    int status;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    pid_t child = fork();
    if (child == 0) interrupted();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(access("second", F_OK), -1);
    unlink("pid"); /* if it got that far */
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A silent program is ended early; a program that prints something is not. */
static void test_silence(void **state)
{
    kvtree_error err = {""};
    const tool_limits limits = {.seconds = 300, .bytes = 1000, .most = 2, .silence = 3};
    const char *const *const tasks[] = {
        SCRIPT("echo begun; exec sleep 1000"),
        SCRIPT("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done; exit 7")};
    told t = {0};
    assert_int_equal(tool_process_run(tasks, 2, &limits, take, &t, &err), 0);
    assert_int_equal(t.code[0], -ETIMEDOUT);
    assert_string_equal(t.err[0].text, "sh: there was no sign of it for 3 seconds");
    assert_string_equal(t.output[0], "begun\n");
    assert_int_equal(t.code[1], 7);
}

static void read_sign(int fd)
{
    char sign = 0;
    assert_int_equal(read(fd, &sign, 1), 1);
    assert_int_equal(sign, '\n');
}

static void test_heartbeat(void **state)
{
    int ends[2], out = dup(1);
    tool_heartbeat heartbeat;
    tool_heartbeat_begin(&heartbeat, 0);
    assert_false(heartbeat.runs);
    tool_heartbeat_end(&heartbeat);
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    assert_int_equal(dup2(ends[1], 1), 1);
    tool_heartbeat_begin(&heartbeat, 1);
    assert_true(heartbeat.runs);
    read_sign(ends[0]);
    read_sign(ends[0]);
    tool_heartbeat_end(&heartbeat);
    assert_false(heartbeat.runs);
    assert_int_equal(dup2(out, 1), 1);
    close(ends[1]);
    char rest[100];
    while (read(ends[0], rest, sizeof rest) > 0) /* it has ended: nothing can print
                                                  * there */
        ;
    close(ends[0]);
    close(out);
}

static void test_words(void **state)
{
    tool_words words = {0};
    const char *const list[] = {"a", "b c", "", "it's", "$(x)", "k=v", NULL};
    tool_words_add(&words, "-n%d", 3);
    tool_words_add_all(&words, list);
    tool_words_add_quoted(&words, list);
    assert_false(words.failed);
    assert_int_equal(words.count, 8);
    assert_string_equal(words.list[0], "-n3");
    assert_string_equal(words.list[2], "b c");
    assert_string_equal(words.list[7], "a 'b c' '' 'it'\\''s' '$(x)' k=v");
    assert_null(words.list[8]);
    tool_words_done(&words);
    assert_null(words.list);
}

int main(void)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),         cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_time_is_over), cmocka_unit_test(test_blocked),
        cmocka_unit_test(test_too_much),     cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_silence),      cmocka_unit_test(test_heartbeat),
        cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
