/* SPDX-License-Identifier: BSD-3-Clause */
/* File systems without room for files or for the state file: a small tmpfs, where that
 * may be mounted, in a namespace of its own so that it cannot outlive the test. */
#include "scratch.h"
#include "src/axl_private.h"

#include <axl/axl.h>
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

enum { ROOM = 1 << 20, PAGE = 4096, FILES = 100, NOT_HERE = 77 };

static const char program[] = TEST_TRANSFER; /* the path of scr_transfer */

static char small[128];      /* the directory of the small file system, */
static char state_file[160]; /* a state file in it */

static int mount_small(const scratch *s)
{
    snprintf(small, sizeof small, "%s/small", s->folder);
    snprintf(state_file, sizeof state_file, "%s/transfer", small);
    if (mkdir(small, 0700) != 0) return 2;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", small, "tmpfs", 0, "size=1m,mode=700") != 0)
        return NOT_HERE;
    return 0;
}

/* Runs each test in its own process, which has that file system. */
static void with_small(void **state, void (*body)(const scratch *))
{
    scratch *s = *state;
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0) {
        int rc = mount_small(s);
        if (!rc) body(s);
        fflush(NULL);
        _exit(rc);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NOT_HERE) skip(); /* only root may mount */
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In the child, an assertion of cmocka would continue with the next test. */
#define EXPECT(condition)                                                                \
    do {                                                                                 \
        if (condition) break;                                                            \
        fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);          \
        _exit(1);                                                                        \
    } while (0)

static axl_transfer *create(const char *method, double bandwidth)
{
    axl_transfer *t = NULL;
    const axl_options options = {
        .state = state_file, .daemon = program, .buffer = PAGE, .bandwidth = bandwidth};
    EXPECT(axl_create(method, &options, &t, NULL) == 0);
    return t;
}

/* Starts a transfer of ten seconds that records its progress every second; the first file
 * moves. */
static axl_transfer *begin_many(const scratch *s)
{
    char destination[160];
    axl_transfer *t = create("daemon", FILES * PAGE / 10.0);
    for (int i = 0; i < FILES; i++) {
        snprintf(destination, sizeof destination, "%s/out/%d", s->folder, i);
        EXPECT(axl_add(t, s->source, destination, NULL) == 0);
    }
    EXPECT(axl_dispatch(t, NULL) == 0);
    while (scratch_left(s) < 1)
        usleep(1000);
    return t;
}

static void write_source(const scratch *s, size_t size)
{
    unsigned char *bytes = scratch_bytes(size);
    scratch_write(s->source, bytes, size);
    free(bytes);
}

static void fill(void)
{
    char path[160];
    static const char page[PAGE];
    snprintf(path, sizeof path, "%s/filler", small);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    EXPECT(fd >= 0);
    while (write(fd, page, sizeof page) > 0) {
    }
    EXPECT(errno == ENOSPC && close(fd) == 0);
}

/* Waits until no process serves the file; the process looks once a second. */
static void expect_nobody(void)
{
    for (int i = 0; i < 500 && axl_owner_is_there(state_file); i++)
        usleep(10000);
    EXPECT(!axl_owner_is_there(state_file));
}

/* The file does not fit beside its state file, but the result does. */
static void the_result_finds_room(const scratch *s)
{
    static const char *const methods[] = {"sync", "pthread", "daemon"};
    char destination[160];
    axl_error err;
    snprintf(destination, sizeof destination, "%s/file", small);
    write_source(s, 2 * ROOM);
    for (int i = 0; i < 3; i++) {
        axl_transfer *again = NULL, *t = create(methods[i], 0);
        EXPECT(axl_add(t, s->source, destination, NULL) == 0);
        axl_dispatch(t, NULL); /* "sync" fails here */
        EXPECT(axl_wait(t, &err) == -ENOSPC && strstr(err.text, destination));
        EXPECT(axl_free(t) == NULL);
        expect_nobody();
        EXPECT(scratch_count(small) == 1); /* the state file */
        EXPECT(axl_resume(state_file, methods[i], &again, &err) == 0);
        EXPECT(axl_cancel(again, &err) == 0);
        axl_free(again);
        EXPECT(scratch_count(small) == 0);
    }
}

/* Not even the result can be written: scr_transfer ends, and this is reported. */
static void no_room_for_the_result(const scratch *s)
{
    axl_error err;
    write_source(s, PAGE);
    axl_transfer *t = begin_many(s);
    fill();
    EXPECT(axl_wait(t, &err) == -ECHILD && strstr(err.text, state_file));
    expect_nobody();
    EXPECT(axl_cancel(t, &err) == 0);
    axl_free(t);
    EXPECT(scratch_count(small) == 1); /* the file that fills it */
}

/* The command to stop cannot be written, but scr_transfer stops. */
static void no_room_to_cancel(const scratch *s)
{
    axl_error err = {""};
    write_source(s, PAGE);
    axl_transfer *t = begin_many(s);
    fill();
    EXPECT(axl_cancel(t, &err) == 0);
    EXPECT(!axl_owner_is_there(state_file));
    EXPECT(axl_wait(t, &err) == -ECANCELED);
    axl_free(t);
    EXPECT(scratch_count(small) == 1);
    EXPECT(scratch_left(s) < FILES / 2);
}

static void test_result_finds_room(void **state)
{
    with_small(state, the_result_finds_room);
}

static void test_no_room_for_result(void **state)
{
    with_small(state, no_room_for_the_result);
}

static void test_no_room_to_cancel(void **state)
{
    with_small(state, no_room_to_cancel);
}

int main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_result_finds_room),
        WITH_FOLDER(test_no_room_for_result),
        WITH_FOLDER(test_no_room_to_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
