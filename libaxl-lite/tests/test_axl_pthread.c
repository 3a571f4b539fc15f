/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers by threads: files and pieces of files are shared, the first error ends the
 * transfer, and nothing moves after a transfer was canceled or freed. */
#include "scratch.h"
#include "src/axl_private.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <zlib.h>

enum { WORKERS = 4 };

static axl_transfer *create(unsigned flags, double bandwidth)
{
    axl_transfer *t = NULL;
    const axl_options options = {
        .flags = flags, .workers = WORKERS, .bandwidth = bandwidth};
    assert_int_equal(axl_create("pthread", &options, &t, NULL), 0);
    return t;
}

static void numbered(const scratch *s, int i, char source[160], char destination[160])
{
    snprintf(source, 160, "%s/in%d", s->folder, i);
    snprintf(destination, 160, "%s/out/%d/file", s->folder, i % 7);
    if (i >= 7) snprintf(destination, 160, "%s/out/%d/file%d", s->folder, i % 7, i);
}

/* Writes and adds source file number i, of i * 1000 bytes of its own. */
static void add_numbered(axl_transfer *t, const scratch *s, int i)
{
    char source[160], destination[160];
    size_t size = (size_t)i * 1000;
    unsigned char *bytes = malloc(size + 1);
    memset(bytes, i, size);
    numbered(s, i, source, destination);
    scratch_write(source, bytes, size);
    assert_int_equal(axl_add(t, source, destination, NULL), 0);
    free(bytes);
}

static void expect_numbered(const scratch *s, int i)
{
    char source[160], destination[160];
    size_t size = (size_t)i * 1000;
    unsigned char *bytes = malloc(size + 1);
    memset(bytes, i, size);
    numbered(s, i, source, destination);
    scratch_expect(destination, bytes, size);
    free(bytes);
}

static void many_files(void **state)
{
    enum { COUNT = 300 };
    scratch *s = *state;
    axl_progress p;
    axl_file file;
    axl_transfer *t = create(AXL_CHECKSUM, 0);
    uint64_t bytes = 0;
    for (int i = 0; i < COUNT; i++) {
        add_numbered(t, s, i);
        bytes += (uint64_t)i * 1000;
    }
    assert_int_equal(axl_progress_get(t, &p), 0);
    assert_true(p.files == COUNT && p.files_done == 0 && p.bytes_done == 0);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    assert_int_equal(axl_test(t, NULL), 0);
    assert_int_equal(axl_progress_get(t, &p), 0);
    assert_true(p.files_done == COUNT && p.bytes == bytes && p.bytes_done == bytes);
    for (int i = 0; i < COUNT; i++) {
        expect_numbered(s, i);
        assert_int_equal(axl_get(t, (size_t)i, &file), 0);
        assert_int_equal(file.done, 1);
        assert_int_equal(file.size, (uint64_t)i * 1000);
    }
    axl_free(t);
}

/* Files that wait to be synced together are open: so few that descriptors remain free. */
static void many_workers_few_descriptors(void **state)
{
    enum { COUNT = 1500 };
    scratch *s = *state;
    struct rlimit before, limit;
    char source[160], destination[160];
    axl_error err = {""};
    axl_transfer *t = NULL;
    const axl_options options = {.workers = 200};
    assert_int_equal(axl_create("pthread", &options, &t, NULL), 0);
    scratch_write(s->source, "abc", 3);
    for (int i = 0; i < COUNT; i++) {
        numbered(s, i, source, destination);
        assert_int_equal(axl_add(t, s->source, destination, NULL), 0);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int rc = axl_dispatch(t, &err);
    if (!rc) rc = axl_wait(t, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (rc) fail_msg("%s", err.text);
    axl_free(t);
}

/* Takes all descriptors except a few; taken receives them, and their number is returned.
 */
static int take_descriptors(int *taken, int leave)
{
    int n = 0;
    while ((taken[n] = dup(STDIN_FILENO)) >= 0)
        n++;
    assert_int_equal(errno, EMFILE);
    for (; n > 0 && leave > 0; leave--)
        close(taken[--n]);
    return n;
}

/* The program needs nearly all descriptors: files are renamed as soon as none is free. */
static void few_descriptors_are_free(const char *method, bool saves, const scratch *s)
{
    enum { COUNT = 600, LIMIT = 1024, FREE = 12 };
    struct rlimit before, limit;
    char source[160], destination[160], file[160];
    axl_error err = {""};
    int taken[LIMIT];
    axl_transfer *t = NULL;
    const axl_options options = {.workers = 1, .state = saves ? file : NULL};
    snprintf(file, sizeof file, "%s/state", s->folder);
    scratch_write(s->source, "abc", 3);
    assert_int_equal(axl_create(method, &options, &t, NULL), 0);
    t->interval = 0; /* the state file is written again and again */
    for (int i = 0; i < COUNT; i++) {
        numbered(s, i, source, destination);
        assert_int_equal(axl_add(t, s->source, destination, NULL), 0);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = LIMIT;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int n = take_descriptors(taken, FREE);
    int rc = axl_dispatch(t, &err);
    if (!rc) rc = axl_wait(t, &err);
    while (n > 0)
        close(taken[--n]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (rc) fail_msg("%s: %s", method, err.text);
    for (int i = 0; i < COUNT; i++) {
        numbered(s, i, source, destination);
        scratch_expect(destination, "abc", 3);
        assert_int_equal(unlink(destination), 0);
    }
    axl_free(t);
    unlink(file);
}

static void no_descriptor_is_free(void **state)
{
    few_descriptors_are_free("sync", false, *state);
    few_descriptors_are_free("sync", true, *state);
    few_descriptors_are_free("pthread", false, *state);
    few_descriptors_are_free("pthread", true, *state);
}

/* ---- one large file ---- */

/* Data, a hole across the border of two pieces, data, a hole up to the end. */
static const struct part {
    uint64_t offset;
    size_t size;
} parts[] = {{0, 100000}, {2 * AXL_PIECE + 5000, 70000}, {3 * AXL_PIECE - 10, 20}};

static const uint64_t large = 3 * AXL_PIECE + 123456;

static uint32_t write_large(const char *path)
{
    uint64_t at = 0;
    uLong crc = 0;
    static unsigned char zeros[65536];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)large) == 0);
    for (size_t i = 0; i <= sizeof parts / sizeof parts[0]; i++) {
        uint64_t end = i < sizeof parts / sizeof parts[0] ? parts[i].offset : large;
        for (uint64_t n; at < end; at += n) {
            n = end - at < sizeof zeros ? end - at : sizeof zeros;
            crc = crc32_z(crc, zeros, n);
        }
        if (end == large) break;
        unsigned char *bytes = scratch_bytes(parts[i].size);
        assert_int_equal(pwrite(fd, bytes, parts[i].size, (off_t)at), parts[i].size);
        crc = crc32_z(crc, bytes, parts[i].size);
        at += parts[i].size;
        free(bytes);
    }
    close(fd);
    return (uint32_t)crc;
}

static void large_file_with_holes(void **state)
{
    scratch *s = *state;
    struct stat source, destination;
    axl_progress p;
    uint32_t crc = write_large(s->source), found;
    for (unsigned flags = 0; flags <= (AXL_CHECKSUM | AXL_KEEP_MODE | AXL_KEEP_TIMES);
         flags++) {
        axl_file file;
        axl_transfer *t = create(flags, 0);
        assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
        assert_int_equal(axl_dispatch(t, NULL), 0);
        assert_int_equal(axl_wait(t, NULL), 0);
        assert_int_equal(axl_get(t, 0, &file), 0);
        assert_int_equal(axl_progress_get(t, &p), 0);
        assert_true(p.bytes == large && p.bytes_done == large);
        axl_free(t);
        if (flags & AXL_CHECKSUM) assert_int_equal(file.crc, crc);
        assert_int_equal(axl_checksum(s->destination, NULL, &found, NULL), 0);
        assert_int_equal(found, crc);
        assert_int_equal(stat(s->source, &source), 0);
        assert_int_equal(stat(s->destination, &destination), 0);
        assert_int_equal(destination.st_size, large);
        assert_true(destination.st_blocks <= source.st_blocks + 64);
        if (flags & AXL_KEEP_TIMES) {
            assert_int_equal(destination.st_mtim.tv_sec, source.st_mtim.tv_sec);
            assert_int_equal(destination.st_mtim.tv_nsec, source.st_mtim.tv_nsec);
        }
        assert_int_equal(scratch_left(s), 1);
    }
}

/* ---- errors ---- */

static void first_error_ends_all(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    axl_progress p;
    axl_transfer *t = create(0, 0);
    for (int i = 1; i < 50; i++)
        add_numbered(t, s, i);
    scratch_write(s->source, "abc", 3);
    assert_int_equal(axl_add(t, s->source, s->folder, NULL), 0);
    for (int i = 50; i < 100; i++)
        add_numbered(t, s, i);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, &err), -EISDIR);
    assert_non_null(strstr(err.text, s->folder));
    assert_int_equal(axl_test(t, NULL), -EISDIR);
    axl_progress_get(t, &p);
    assert_true(p.files_done < 99);
    for (size_t i = 0; i < axl_count(t); i++) {
        axl_file file;
        assert_int_equal(axl_get(t, i, &file), 0);
        if (i == 49) continue;
        assert_int_equal(access(file.destination, F_OK) == 0, file.done);
    }
    axl_free(t);
}

/* A piece cannot be read because its source was shortened: the other workers do not wait
 * for it. */
static void source_that_shrinks(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    write_large(s->source);
    axl_transfer *t = create(AXL_CHECKSUM, 1e6);
    assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(truncate(s->source, 5), 0);
    assert_int_equal(axl_wait(t, &err), -ESTALE);
    assert_non_null(strstr(err.text, s->source));
    axl_free(t);
    assert_int_equal(scratch_left(s), 0);
}

/* ---- stopping early ---- */

/* A transfer of 100 MB that takes 100 s. */
static axl_transfer *start_slow(const scratch *s)
{
    write_large(s->source);
    int fd = open(s->source, O_WRONLY);
    static char bytes[1 << 20];
    memset(bytes, 7, sizeof bytes);
    for (int i = 0; i < 100; i++)
        assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
    close(fd);
    axl_transfer *t = create(AXL_CHECKSUM, 1e6);
    assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
    add_numbered(t, s, 5);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_test(t, NULL), AXL_RUNNING);
    return t;
}

static void cancelled(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    axl_file file;
    axl_progress p;
    int open = scratch_count("/proc/self/fd");
    axl_transfer *t = start_slow(s);
    do
        axl_progress_get(t, &p);
    while (p.bytes_done == 0);
    assert_true(p.bytes_done < p.bytes);
    assert_int_equal(axl_get(t, 0, &file), 0);
    assert_int_equal(file.done, 0);
    assert_int_equal(axl_cancel(t, &err), 0);
    assert_int_equal(axl_test(t, &err), -ECANCELED);
    assert_non_null(strstr(err.text, "cancelled"));
    assert_int_equal(axl_wait(t, NULL), -ECANCELED);
    assert_int_equal(axl_cancel(t, NULL), 0);
    axl_free(t);
    assert_int_equal(access(s->destination, F_OK), -1);
    assert_int_equal(scratch_count("/proc/self/fd"), open);
}

static void cancel_of_what_is_over(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    axl_transfer *t = create(0, 0);
    add_numbered(t, s, 3);
    assert_int_equal(axl_cancel(t, &err), -EINVAL);
    assert_non_null(strstr(err.text, "not dispatched"));
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    assert_int_equal(axl_cancel(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    axl_free(t);
    expect_numbered(s, 3);
}

static void freed_while_it_runs(void **state)
{
    scratch *s = *state;
    axl_free(start_slow(s));
    assert_int_equal(access(s->destination, F_OK), -1);
    assert_int_equal(scratch_left(s), 0);
}

static int caught;

static void catch (int number)
{
    caught += number == SIGALRM;
}

/* The application's signals reach the application's thread. */
static void signals_stay_away(void **state)
{
    scratch *s = *state;
    sigset_t alarm, before;
    signal(SIGALRM, catch);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    axl_transfer *t = start_slow(s);
    pthread_sigmask(SIG_BLOCK, &alarm, &before);
    kill(getpid(), SIGALRM);
    usleep(50000);
    assert_int_equal(caught, 0); /* no worker caught it */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(caught, 1);
    axl_free(t);
}

int main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(many_files),
        WITH_FOLDER(many_workers_few_descriptors),
        WITH_FOLDER(no_descriptor_is_free),
        WITH_FOLDER(large_file_with_holes),
        WITH_FOLDER(first_error_ends_all),
        WITH_FOLDER(source_that_shrinks),
        WITH_FOLDER(cancelled),
        WITH_FOLDER(cancel_of_what_is_over),
        WITH_FOLDER(freed_while_it_runs),
        WITH_FOLDER(signals_stay_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
