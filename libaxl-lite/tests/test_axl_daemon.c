/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers by the process scr_transfer: it outlives the program that dispatched them,
 * and when it dies itself, another process continues. */
#include "scratch.h"
#include "src/axl_private.h"

#include <axl/axl.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 20 };

/* Bytes per second: so slow that the transfer still runs, however busy the machine is. */
#define SLOW 1000.0

static const char program[] = TEST_TRANSFER; /* the path of scr_transfer */

static const char *state_of(const scratch *s)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/transfer", s->folder);
    return path;
}

static void names(const scratch *s, int i, char source[160], char destination[160])
{
    snprintf(source, 160, "%s/in%d", s->folder, i);
    snprintf(destination, 160, "%s/out/%d", s->folder, i);
}

static size_t size_of(int i)
{
    return 1000 * (size_t)i;
}

static axl_transfer *create(const scratch *s, double bandwidth)
{
    axl_transfer *t = NULL;
    char source[160], destination[160];
    axl_error err = {""};
    const axl_options options = {.flags = AXL_CHECKSUM,
                                 .state = state_of(s),
                                 .daemon = program,
                                 .workers = 2,
                                 .bandwidth = bandwidth};
    assert_int_equal(axl_create("daemon", &options, &t, &err), 0);
    for (int i = 0; i < FILES; i++) {
        unsigned char *bytes = scratch_bytes(size_of(i));
        names(s, i, source, destination);
        scratch_write(source, bytes, size_of(i));
        assert_int_equal(axl_add(t, source, destination, NULL), 0);
        free(bytes);
    }
    return t;
}

static void expect_all(const scratch *s)
{
    char source[160], destination[160];
    for (int i = 0; i < FILES; i++) {
        unsigned char *bytes = scratch_bytes(size_of(i));
        names(s, i, source, destination);
        scratch_expect(destination, bytes, size_of(i));
        free(bytes);
    }
    assert_int_equal(scratch_left(s), FILES);
}

/* The process ends soon after: nothing of it may remain. */
static void expect_no_state(const scratch *s)
{
    char lock[160];
    snprintf(lock, sizeof lock, "%s.lock", state_of(s));
    for (int i = 0; i < 500 && access(lock, F_OK) == 0; i++)
        usleep(10000);
    assert_int_equal(access(lock, F_OK), -1);
    assert_int_equal(access(state_of(s), F_OK), -1);
}

static void all_files_arrive(void **state)
{
    scratch *s = *state;
    axl_progress p;
    axl_file file;
    axl_transfer *t = create(s, 0);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    assert_int_equal(axl_progress_get(t, &p), 0);
    assert_true(p.files_done == FILES && p.bytes_done == p.bytes);
    for (size_t i = 0; i < FILES; i++) {
        uint32_t crc;
        assert_int_equal(axl_get(t, i, &file), 0);
        assert_int_equal(file.done, 1);
        assert_int_equal(axl_checksum(file.destination, NULL, &crc, NULL), 0);
        assert_int_equal(file.crc, crc);
    }
    axl_free(t);
    expect_all(s);
    expect_no_state(s);
}

static void one_source_goes_to_two_places(void **state)
{
    scratch *s = *state;
    char second[160];
    axl_transfer *t = NULL;
    const axl_options options = {.state = state_of(s), .daemon = program};
    snprintf(second, sizeof second, "%s/out/second", s->folder);
    scratch_write(s->source, "abc", 3);
    assert_int_equal(axl_create("daemon", &options, &t, NULL), 0);
    assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
    assert_int_equal(axl_add(t, s->source, second, NULL), 0);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    axl_free(t);
    scratch_expect(s->destination, "abc", 3);
    scratch_expect(second, "abc", 3);
    expect_no_state(s);
}

static void it_outlives_the_program(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        axl_transfer *t = create(s, 400000);
        _exit(axl_dispatch(t, NULL) != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    char source[160], destination[160];
    names(s, FILES - 1, source, destination);
    for (int i = 0; i < 1000 && access(destination, F_OK) != 0; i++)
        usleep(10000);
    /* the next program determines the result */
    axl_transfer *t = NULL;
    for (int i = 0; i < 500; i++) { /* -EBUSY while the process is about to end */
        int rc = axl_resume(state_of(s), "sync", &t, &err);
        if (!rc) rc = axl_dispatch(t, &err);
        if (rc != -EBUSY) break;
        t = axl_free(t);
        usleep(10000);
    }
    assert_int_equal(axl_wait(t, &err), 0);
    axl_free(t);
    expect_all(s);
    expect_no_state(s);
}

/* Whether a process is scr_transfer and serves this state file. */
static int attends(const char *pid, const scratch *s)
{
    char path[300], line[4096];
    snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
    int fd = open(path, O_RDONLY), found = 0;
    ssize_t size = read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    if (size <= 0) return 0;
    line[size] = 0;
    for (char *word = line; word < line + size; word += strlen(word) + 1)
        found += strcmp(word, state_of(s)) == 0;
    return found && strncmp(line, "scr_transfer", 12) == 0;
}

static pid_t find_process(const scratch *s)
{
    pid_t found = 0;
    DIR *dir = opendir("/proc");
    for (struct dirent *e; (e = readdir(dir));)
        if (atoi(e->d_name) > 0 && attends(e->d_name, s)) found = atoi(e->d_name);
    closedir(dir);
    return found;
}

static void one_that_is_killed_is_followed(void **state)
{
    scratch *s = *state;
    axl_transfer *t = create(s, 50000);
    pid_t process;
    assert_int_equal(axl_dispatch(t, NULL), 0);
    do
        process = find_process(s);
    while (!process && axl_test(t, NULL) == AXL_RUNNING);
    usleep(300000);
    assert_true(process > 0);
    assert_int_equal(kill(process, SIGKILL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    axl_free(t);
    expect_all(s);
    expect_no_state(s);
}

static void cancelled(void **state)
{
    scratch *s = *state;
    axl_transfer *t = create(s, SLOW);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_test(t, NULL), AXL_RUNNING);
    assert_int_equal(axl_cancel(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), -ECANCELED);
    axl_free(t);
    assert_true(scratch_left(s) < FILES);
    char folder[128];
    snprintf(folder, sizeof folder, "%s/out", s->folder);
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        assert_null(strstr(e->d_name, ".tmp"));
    if (dir) closedir(dir);
    expect_no_state(s);
}

static void what_goes_wrong_is_told(void **state)
{
    scratch *s = *state;
    char taken[160];
    axl_error err = {""};
    axl_transfer *t = create(s, 0);
    assert_int_equal(axl_add(t, s->source, s->folder, NULL), 0); /* a directory */
    scratch_write(s->source, "abc", 3);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, &err), -EISDIR);
    assert_non_null(strstr(err.text, s->folder));
    assert_int_equal(axl_cancel(t, NULL), 0);
    axl_free(t);
    expect_no_state(s);

    snprintf(taken, sizeof taken, "%s/no/program", s->folder);
    const axl_options missing = {.state = state_of(s), .daemon = taken};
    assert_int_equal(axl_create("daemon", &missing, &t, NULL), 0);
    assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
    assert_int_equal(axl_dispatch(t, &err), -ENOENT);
    assert_non_null(strstr(err.text, taken));
    assert_int_equal(axl_wait(t, NULL), -ENOENT);
    axl_cancel(t, NULL);
    axl_free(t);
    assert_int_equal(axl_create("daemon", NULL, &t, &err), -EINVAL);
    assert_non_null(strstr(err.text, "state file"));
}

/* The error has the first line of a program that ends at once: here programs that do not
 * know the options. */
static void why_it_did_not_start(void **state)
{
    scratch *s = *state;
    static const char *const cases[][2] = {
        {"ls", "ls could not be started: "},
        {"ls", "background"},
        {"false", "false could not be started: it gave no reason"}};
    scratch_write(s->source, "abc", 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        axl_transfer *t;
        axl_error err = {""};
        const axl_options other = {.state = state_of(s), .daemon = cases[i][0]};
        assert_int_equal(axl_create("daemon", &other, &t, NULL), 0);
        assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
        assert_int_equal(axl_dispatch(t, &err), -ECHILD);
        assert_non_null(strstr(err.text, cases[i][1]));
        axl_cancel(t, NULL);
        axl_free(t);
    }
}

/* The process has the lock at once: a program that looks finds it, and starts no other
 * process. */
static void it_attends_the_file_at_once(void **state)
{
    scratch *s = *state;
    for (int i = 0; i < 5; i++) {
        while (axl_owner_is_there(state_of(s)))
            usleep(1000); /* the last process, while it ends */
        axl_transfer *t = create(s, SLOW);
        assert_int_equal(axl_dispatch(t, NULL), 0);
        assert_int_equal(axl_is_busy(state_of(s)), 1);
        for (int k = 0; k < 20; k++)
            assert_int_equal(axl_test(t, NULL), AXL_RUNNING);
        assert_int_equal(axl_cancel(t, NULL), 0);
        axl_free(t);
        expect_no_state(s);
        assert_int_equal(axl_is_busy(state_of(s)), 0);
    }
    char lock[200];
    snprintf(lock, sizeof lock, "%s.lock", state_of(s));
    assert_int_equal(symlink("nowhere", lock), 0);
    assert_int_equal(axl_is_busy(state_of(s)), -ELOOP);
    assert_int_equal(unlink(lock), 0);
}

/* Before a process serves the first transfer, which never happens here, another transfer
 * writes its list to the file: its progress is not reported for the first one. */
static void a_state_file_is_of_one(void **state)
{
    scratch *s = *state;
    char mine[160], other[160];
    axl_error err = {""};
    const axl_options idle = {.state = state_of(s), .daemon = "true"};
    axl_transfer *first = NULL, *t = create(s, 0);
    names(s, 0, mine, other);
    snprintf(other, sizeof other, "%s/first", s->folder);
    assert_int_equal(axl_create("daemon", &idle, &first, NULL), 0);
    assert_int_equal(axl_add(first, mine, other, NULL), 0);
    assert_int_equal(axl_dispatch(first, NULL), 0);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    assert_int_equal(axl_wait(first, &err), -EBUSY);
    assert_non_null(strstr(err.text, "was taken by another transfer"));
    assert_int_equal(axl_cancel(first, NULL), 0);
    axl_free(first);
    assert_int_equal(access(state_of(s), F_OK), 0);
    axl_free(t);
    expect_all(s);
    expect_no_state(s);
}

/* The first transfer does not cancel the other one, either. */
static void nobody_else_is_cancelled(void **state)
{
    scratch *s = *state;
    char source[160], destination[160];
    const axl_options idle = {.state = state_of(s), .daemon = "true"};
    axl_transfer *first = NULL, *t = create(s, 0);
    names(s, 0, source, destination);
    snprintf(destination, sizeof destination, "%s/first", s->folder);
    assert_int_equal(axl_create("daemon", &idle, &first, NULL), 0);
    assert_int_equal(axl_add(first, source, destination, NULL), 0);
    assert_int_equal(axl_dispatch(first, NULL), 0);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_cancel(first, NULL), 0);
    assert_int_equal(axl_wait(first, NULL), -EBUSY);
    axl_free(first);
    assert_int_equal(axl_wait(t, NULL), 0);
    axl_free(t);
    expect_all(s);
    expect_no_state(s);
}

/* A process that still moves the files of an abandoned transfer reports nothing about the
 * next one, and then moves that one. */
static void an_earlier_one_writes_nothing(void **state)
{
    scratch *s = *state;
    char source[160], destination[160];
    axl_error err = {""};
    axl_news news = {.running = false};
    axl_command command;
    const axl_options slow = {
        .state = state_of(s), .daemon = program, .bandwidth = SLOW / 10};
    axl_transfer *first = NULL, *t = create(s, 0);
    names(s, FILES - 1, source, destination);
    snprintf(destination, sizeof destination, "%s/first/file", s->folder);
    assert_int_equal(axl_create("daemon", &slow, &first, NULL), 0);
    assert_int_equal(axl_add(first, source, destination, NULL), 0);
    assert_int_equal(axl_dispatch(first, NULL), 0);
    for (int i = 0; i < 1000 && !news.running; i++, usleep(10000))
        axl_state_peek(state_of(s), &news, &command);
    assert_true(news.running);
    assert_int_equal(unlink(state_of(s)), 0);
    assert_int_equal(axl_dispatch(t, &err), 0);
    assert_int_equal(axl_wait(t, &err), 0);
    axl_free(t);
    assert_int_equal(axl_cancel(first, NULL), 0);
    axl_free(first);
    expect_all(s);
    expect_no_state(s);
}

/* ---- a list that is written while the process leaves ---- */

static axl_transfer *late; /* dispatched when the lock file is removed */

/* The linker uses this function, for the library as well. */
int unlink(const char *path)
{
    axl_transfer *t = late;
    if (t && strcmp(path + strlen(path) - 5, ".lock") == 0) {
        late = NULL;
        assert_int_equal(axl_dispatch(t, NULL), 0);
    }
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

static void a_late_list_is_attended(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    const volatile int stop = 0;
    axl_news news = {.done = 0};
    axl_command command;
    axl_transfer *t = create(s, 0);
    axl_service service = {
        .path = state_of(s), .interval = 0.01, .leave = true, .stop = &stop, .owner = -1};
    late = t;
    assert_int_equal(axl_serve(&service, &err), 0);
    assert_null(late);
    assert_int_equal(axl_state_peek(state_of(s), &news, &command), 0);
    assert_true(news.done);
    assert_int_equal(axl_wait(t, &err), 0);
    axl_free(t);
    expect_all(s);
    expect_no_state(s);
}

int main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(all_files_arrive),
        WITH_FOLDER(one_source_goes_to_two_places),
        WITH_FOLDER(it_outlives_the_program),
        WITH_FOLDER(one_that_is_killed_is_followed),
        WITH_FOLDER(cancelled),
        WITH_FOLDER(it_attends_the_file_at_once),
        WITH_FOLDER(a_state_file_is_of_one),
        WITH_FOLDER(nobody_else_is_cancelled),
        WITH_FOLDER(an_earlier_one_writes_nothing),
        WITH_FOLDER(what_goes_wrong_is_told),
        WITH_FOLDER(why_it_did_not_start),
        WITH_FOLDER(a_late_list_is_attended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
