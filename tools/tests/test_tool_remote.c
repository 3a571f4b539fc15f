/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on other nodes: the words of each method, the choice of the method, and nodes
 * that answer, hang, or do not exist. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/tool.h"
#include "lib/tool_remote.h"
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NODES = 4 };

static const char *const command[] = {"scr_copy", "--prefix", "/a b", NULL};

/* ---- a directory with programs and simulated nodes, and nothing else in PATH ---- */

static char *old_path;

static void put_program(const char *name, const char *script)
{
    char path[64];
    snprintf(path, sizeof path, "bin/%s", name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fprintf(out, "#!/bin/sh\n%s\n", script);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

static int setup(void **state)
{
    static char folder[64];
    char path[5000];
    strcpy(folder, "/tmp/scr-remote-XXXXXX");
    if (!mkdtemp(folder) || chdir(folder) != 0 || mkdir("bin", 0700) != 0) return -1;
    for (char **entry = environ; *entry;) {
        char name[256];
        size_t n = strcspn(*entry, "=");
        int ours = strncmp(*entry, "SCR_", 4) == 0 || strncmp(*entry, "SLURM_", 6) == 0 ||
                   strncmp(*entry, "HYDRA_", 6) == 0 || strncmp(*entry, "PBS_", 4) == 0 ||
                   strncmp(*entry, "LSB_", 4) == 0 || strncmp(*entry, "FLUX_", 5) == 0;
        snprintf(name, sizeof name, "%.*s", (int)n, *entry);
        if (!ours || unsetenv(name) != 0) entry++;
    }
    old_path = strdup(getenv("PATH"));
    snprintf(path, sizeof path, "%s/bin:/usr/bin:/bin", folder);
    setenv("PATH", path, 1);
    setenv("SCR_PREFIX", folder, 1);
    setenv("SCR_NODE_NAME", "here", 1);
    *state = folder;
    return 0;
}

static int teardown(void **state)
{
    char line[128];
    setenv("PATH", old_path, 1);
    free(old_path);
    snprintf(line, sizeof line, "rm -r '%s'", (const char *)*state);
    return chdir("/") == 0 && system(line) == 0 ? 0 : -1;
}

static hostlist listed(const char *text)
{
    hostlist list = {0, NULL};
    kvtree_error err = {""};
    assert_int_equal(hostlist_parse(text, &list, &err), 0);
    return list;
}

/* Returns the result of tool_remote_choose for these nodes. */
static int choose(tool_remote *remote, const char *nodes)
{
    tool_prefix prefix;
    hostlist list = listed(nodes);
    assert_int_equal(tool_prefix_configure(&prefix, NULL), COMMAND_GOOD);
    int code = tool_remote_choose(remote, &prefix, &list);
    tool_prefix_close(&prefix);
    hostlist_done(&list);
    return code;
}

static void expect_way(const char *nodes, const char *way)
{
    tool_remote remote = {0};
    assert_int_equal(choose(&remote, nodes), COMMAND_GOOD);
    assert_string_equal(remote.way, way);
    assert_string_equal(remote.self, "here");
    tool_remote_done(&remote);
}

/* ---- words ---- */

static void expect_words(tool_remote *remote, const char *way, const char *node,
                         const char *const wanted[])
{
    tool_words words = {0};
    remote->way = way;
    assert_int_equal(tool_remote_words(remote, node, command, &words), 0);
    for (int i = 0; wanted[i] || i < words.count; i++) {
        if (!wanted[i]) fail_msg("%s: one word too many: %s", way, words.list[i]);
        if (i >= words.count) fail_msg("%s: '%s' is missing", way, wanted[i]);
        assert_string_equal(words.list[i], wanted[i]);
    }
    tool_words_done(&words);
}

#define WORDS(...)                                                                       \
    (const char *const[])                                                                \
    {                                                                                    \
        __VA_ARGS__, NULL                                                                \
    }

static void test_words(void **state)
{
    tool_remote r = {.self = "here"};
    char line[512], path[128], base[128], cntl[128], shell[] = "/x/nslaunch",
                                                     ssh[] = "/bin/ssh";
    expect_words(&r, "local", "n1", command);
    expect_words(&r, "srun", "n1",
                 WORDS("srun", "--quiet", "--nodes=1", "--ntasks=1", "--overlap",
                       "--mpi=none", "--nodelist=n1", "scr_copy", "--prefix", "/a b"));
    expect_words(&r, "srun", "here", command);
    snprintf(line, sizeof line,
             "env 'SCR_JOB_NAME=it'\\''s' SCR_PREFIX=%s scr_copy "
             "--prefix '/a b'",
             (const char *)*state);
    unsetenv("SCR_PREFIX");
    setenv("SCR_JOB_NAME", "it's", 1);
    setenv("SCR_LOG_DB_PASS", "secret", 1); /* on no command line */
    setenv("SCR_DB_PASS", "secret", 1);     /* its earlier name */
    setenv("SCR_PREFIX", *state, 1);
    expect_words(&r, "pdsh", "n1", WORDS("pdsh", "-S", "-N", "-w", "n1", line));
    r.shell = ssh;
    r.is_ssh = 1;
    expect_words(&r, "shell", "n1",
                 WORDS("/bin/ssh", "-x", "-oBatchMode=yes", "n1", line));
    r.shell = shell;
    r.is_ssh = 0;
    expect_words(&r, "shell", "n1", WORDS("/x/nslaunch", "n1", line));
    unsetenv("SCR_JOB_NAME");
    unsetenv("SCR_LOG_DB_PASS");
    unsetenv("SCR_DB_PASS");

    r.brokers = listed("n[0-3]");
    snprintf(path, sizeof path, "SCR_PREFIX=%s", (const char *)*state);
    expect_words(&r, "flux", "n2",
                 WORDS("flux", "exec", "--noinput", "--rank=2", "env", path, "scr_copy",
                       "--prefix", "/a b"));
    tool_words words = {0};
    assert_int_equal(tool_remote_words(&r, "n7", command, &words), -EHOSTDOWN);
    tool_words_done(&words);
    hostlist_done(&r.brokers);

    assert_int_equal(mkdir("n1", 0700), 0);
    r.simulated = *state;
    snprintf(base, sizeof base, "SCR_CACHE_BASE=%s/n1/cache", (const char *)*state);
    snprintf(cntl, sizeof cntl, "SCR_CNTL_BASE=%s/n1/cntl", (const char *)*state);
    expect_words(
        &r, "simulate", "n1",
        WORDS("env", "SCR_NODE_NAME=n1", base, cntl, "scr_copy", "--prefix", "/a b"));
    assert_int_equal(rmdir("n1"), 0);
    assert_int_equal(tool_remote_words(&r, "n1", command, &words), -EHOSTDOWN);
    tool_words_done(&words);
}

/* ---- choice of the method ---- */

/* A missing shell is an error, since others may create it later. */
static void expect_shell(const char *variable, const char *name, const char *folder)
{
    char path[128];
    tool_remote remote = {0};
    setenv(variable, name, 1);
    assert_int_equal(choose(&remote, "here,n1"), COMMAND_BAD);
    tool_remote_done(&remote);
    put_program(name, "");
    assert_int_equal(choose(&remote, "here,n1"), COMMAND_GOOD);
    assert_string_equal(remote.way, "shell");
    snprintf(path, sizeof path, "%s/bin/%s", folder, name);
    assert_string_equal(remote.shell, path);
    tool_remote_done(&remote);
}

static void test_choice(void **state)
{
    tool_remote remote = {0};
    /* pdsh may be installed here */
    setenv("PATH", "bin", 1);
    expect_way("here", "local");
    assert_int_equal(choose(&remote, "here,n1"), COMMAND_BAD); /* no ssh */
    tool_remote_done(&remote);
    put_program("ssh", "");
    expect_way("here,n1", "shell");
    put_program("pdsh", "");
    expect_way("here,n1", "pdsh");
    expect_shell("HYDRA_LAUNCHER_EXEC", "nslaunch", *state);
    expect_shell("SCR_REMOTE_SHELL", "rsh", *state);
    setenv("SLURM_JOB_ID", "17", 1);
    expect_way("here,n1", "shell");
    put_program("srun", "");
    expect_way("here,n1", "srun");
    unsetenv("SLURM_JOB_ID");
    setenv("FLUX_URI", "local:///u", 1);
    put_program("flux", "[ \"$*\" = 'getattr hostlist' ] && echo 'n[0-1]'");
    expect_way("here,n1", "flux");
    unsetenv("FLUX_URI");
    setenv("SCR_REMOTE", "pdsh", 1);
    expect_way("here,n1", "pdsh");
    setenv("SCR_REMOTE", "carrier-pigeon", 1);
    assert_int_equal(choose(&remote, "n1"), COMMAND_BAD);
    tool_remote_done(&remote);
    setenv("SCR_REMOTE", "simulate", 1);
    assert_int_equal(choose(&remote, "n1"), COMMAND_BAD);
    tool_remote_done(&remote);
    unsetenv("SCR_REMOTE");
    setenv("SCR_SIMULATE", *state, 1);
    expect_way("here", "simulate");
}

/* ---- runs ---- */

typedef struct told {
    int count, code[NODES];
    char output[NODES][512];
    kvtree_error err[NODES];
} told;

static void take(int node, const tool_end *end, void *arg)
{
    told *t = arg;
    t->count++;
    t->code[node] = end->code;
    snprintf(t->err[node].text, sizeof t->err[node].text, "%s", end->text);
    snprintf(t->output[node], sizeof t->output[node], "%s", end->output);
}

static told run(double seconds, const char *nodes, const char *script)
{
    kvtree_error err = {""};
    tool_remote remote = {.seconds = seconds, .bytes = 400, .joined = 1};
    const char *const argv[] = {"sh", "-c", script, NULL};
    hostlist list = listed(nodes);
    told t = {0};
    assert_int_equal(choose(&remote, nodes), COMMAND_GOOD);
    assert_int_equal(tool_remote_run(&remote, &list, argv, take, &t, &err), 0);
    assert_int_equal(t.count, list.count);
    tool_remote_done(&remote);
    hostlist_done(&list);
    return t;
}

static void test_simulated_nodes(void **state)
{
    setenv("SCR_SIMULATE", *state, 1);
    assert_int_equal(mkdir("n1", 0700) | mkdir("n2", 0700) | mkdir("n4", 0700), 0);
    int fd = open("n4/hung", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    told t = run(5, "n[1-4]",
                 "echo $SCR_NODE_NAME ${SCR_CACHE_BASE#$SCR_SIMULATE}; "
                 "[ $SCR_NODE_NAME = n1 ] || { echo sorry >&2; exit 3; }");
    assert_int_equal(t.code[0], 0);
    assert_string_equal(t.output[0], "n1 /n1/cache\n");
    assert_int_equal(t.code[1], 3);
    assert_string_equal(t.output[1], "n2 /n2/cache\nsorry\n");
    assert_string_equal(t.err[1].text, "env: exit code 3");
    assert_int_equal(t.code[2], -EHOSTDOWN);
    assert_string_equal(t.err[2].text, "n3: Host is down");
    assert_int_equal(t.code[3], -ETIMEDOUT);
}

static void test_remote_shell(void **state)
{
    unsetenv("SCR_SIMULATE");
    /* like a remote shell: the words become one line of a shell on the node */
    put_program("rsh",
                "[ $1 = n2 ] && { echo no route >&2; exit 255; }\n"
                "node=$1; shift; exec env -i NODE=$node PATH=\"$PATH\" sh -c \"$*\"");
    setenv("SCR_REMOTE", "shell", 1);
    setenv("SCR_REMOTE_SHELL", "rsh", 1);
    setenv("SCR_JOB_NAME", "a 'job' $HOME", 1);
    told t = run(300, "n[1-2],here", "echo \"$NODE:$SCR_NODE_NAME:$SCR_JOB_NAME\"");
    assert_int_equal(t.code[0], 0);
    assert_string_equal(t.output[0], "n1::a 'job' $HOME\n");
    assert_int_equal(t.code[1], -EHOSTUNREACH);
    assert_string_equal(t.output[1], "no route\n");
    assert_string_equal(t.output[2], ":here:a 'job' $HOME\n");
}

/* pdsh -S exits with the code of the command, or with 254 if it could not connect
 * itself. */
static void test_pdsh(void **state)
{
    put_program("pdsh",
                "case $4 in n1) exit 254;; n2) echo 'pdsh@a: n2: ssh exited with exit "
                "code 255' >&2; exit 255;; n3) exit 253;; esac\n"
                "shift 4; exec sh -c \"$*\"");
    setenv("SCR_REMOTE", "pdsh", 1);
    told t = run(300, "n[1-4]", "exit 2");
    assert_int_equal(t.code[0], -EHOSTUNREACH);
    assert_int_equal(t.code[1], -EHOSTUNREACH);
    assert_string_equal(t.output[1], "pdsh@a: n2: ssh exited with exit code 255\n");
    assert_int_equal(t.code[2], 253);
    assert_int_equal(t.code[3], 2);
    t = run(300, "here", "exit 255");
    assert_int_equal(t.code[0], 255);
}

static void expect_reason(const char *output, const char *reason)
{
    const tool_end end = {1, "sh: exit code 1", output, strlen(output)};
    char line[16];
    tool_remote_reason(&end, "scr_copy", line, sizeof line);
    assert_string_equal(line, reason);
}

/* Output of launchers and remote shells around it does not matter. */
static void test_reason(void **state)
{
    expect_reason("", "");
    expect_reason("\n\n", "");
    expect_reason("no route\nsorry\n", "no route");
    expect_reason("scr_copy: full\nsrun: exit code 1\n", "full");
    expect_reason("srun: exit code 1\n\nscr_copy: full\nscr_copy: more\n", "full");
    expect_reason("srun: scr_copy: no\nscr_copying: no\n", "srun: scr_copy:");
    expect_reason("srun\nscr_copy: ", "");
}

static void test_our_commands(void **state)
{
    char *other = tool_remote_command("test_tool_remote");
    char *none = tool_remote_command("scr-no-such-command");
    assert_non_null(other);
    assert_non_null(none);
    assert_int_equal(other[0], '/');
    assert_int_equal(access(other, X_OK), 0);
    assert_string_equal(none, "scr-no-such-command");
    free(other);
    free(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_words, setup, teardown),
        cmocka_unit_test_setup_teardown(test_choice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_simulated_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_remote_shell, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pdsh, setup, teardown),
        cmocka_unit_test(test_reason),
        cmocka_unit_test(test_our_commands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
