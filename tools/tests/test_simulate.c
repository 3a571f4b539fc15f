/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories of simulated nodes: stale directories are removed, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/errtext.h"
#include "run/simulate.h"
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char tmp[] = "/tmp/scr-simulate-XXXXXX";

static int is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* Starts a process with nodes, which lives until it is killed, and returns their
 * directory. */
static pid_t other_with_nodes(char folder[256])
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        hostlist nodes = {0, NULL};
        char *path;
        int lock;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (simulate_open(2, &path, &lock, &nodes, NULL) != 0) _exit(1);
        ssize_t n = write(ends[1], path, strlen(path) + 1);
        pause();
        _exit(n > 0);
    }
    close(ends[1]);
    assert_true(read(ends[0], folder, 256) > 0);
    close(ends[0]);
    return pid;
}

static void end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Opens nodes, as the next scr_run does, and closes them. */
static void next_one(void)
{
    char *folder;
    kvtree_error err = {""};
    hostlist nodes = {0, NULL};
    int lock;
    assert_int_equal(simulate_open(3, &folder, &lock, &nodes, &err), 0);
    assert_int_equal(nodes.count, 3);
    assert_true(is_there(folder));
    hostlist_done(&nodes);
    assert_int_equal(rmdir(folder), -1); /* it has nodes */
    char *path = strdup(folder);
    simulate_close(folder, &lock);
    assert_int_equal(lock, -1);
    assert_false(is_there(path));
    free(path);
}

/* Where others may rename directories, they can give the name of a stale directory to a
 * private one. */
static void test_renamed(void **state)
{
    char base[64], folder[96], file[128];
    (void)state;
    snprintf(base, sizeof base, "%s/open", tmp);
    snprintf(folder, sizeof folder, "%s/scr-nodes-abcdef", base);
    snprintf(file, sizeof file, "%s/work", folder);
    assert_int_equal(mkdir(base, 0700), 0);
    assert_int_equal(chmod(base, 0777), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    fclose(fopen(file, "w"));
    assert_int_equal(setenv("TMPDIR", base, 1), 0);
    next_one();
    assert_int_equal(setenv("TMPDIR", tmp, 1), 0);
    assert_true(is_there(file));
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(base), 0);
}

static void test_killed(void **state)
{
    char killed[256], alive[256], file[300];
    pid_t first = other_with_nodes(killed), second = other_with_nodes(alive);
    next_one();
    assert_true(is_there(killed) && is_there(alive));
    snprintf(file, sizeof file, "%s/node2/cache", killed);
    assert_int_equal(mkdir(file, 0700), 0);
    end(first);
    next_one();
    assert_true(!is_there(killed) && is_there(alive));
    end(second);
    next_one();
    assert_false(is_there(alive));
}

/* A name alone does not make a directory stale. */
static void test_of_others(void **state)
{
    static const char *const names[] = {"scr-nodes-file01",  "scr-nodes-link01",
                                        "scr-nodes-toolong", "scr-nodes-",
                                        "scr-other-abcdef",  "scr-nodes-owned1"};
    char path[300], elsewhere[300];
    int count = geteuid() == 0 ? 6 : 5;
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", tmp);
    assert_int_equal(mkdir(elsewhere, 0700), 0);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", tmp, names[i]);
        if (i == 0)
            assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
        else if (i == 1)
            assert_int_equal(symlink("elsewhere", path), 0);
        else
            assert_int_equal(mkdir(path, 0700), 0);
    }
    if (count == 6) assert_int_equal(chown(path, 12345, 12345), 0);
    next_one();
    assert_true(is_there(elsewhere));
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", tmp, names[i]);
        assert_true(is_there(path));
        assert_int_equal(remove(path), 0);
    }
    assert_int_equal(rmdir(elsewhere), 0);
}

static void test_no_place(void **state)
{
    char *folder = NULL;
    kvtree_error err = {""};
    hostlist nodes = {0, NULL};
    int lock;
    setenv("TMPDIR", "/does/not/exist", 1);
    assert_int_equal(simulate_open(1, &folder, &lock, &nodes, &err), -ENOENT);
    assert_string_equal(err.text,
                        "simulated nodes: /does/not/exist: No such file or directory");
    assert_null(folder);
    setenv("TMPDIR", tmp, 1);
}

static int begin(void **state)
{
    return mkdtemp(tmp) ? setenv("TMPDIR", tmp, 1) : -1;
}

static int end_all(void **state)
{
    return rmdir(tmp); /* nothing is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renamed), cmocka_unit_test(test_killed),
        cmocka_unit_test(test_of_others), cmocka_unit_test(test_no_place)};
    return cmocka_run_group_tests(tests, begin, end_all);
}
