/* SPDX-License-Identifier: BSD-3-Clause */
/* The transfer: its list, its states, its methods, and what remains when it fails. */
#include "scratch.h"
#include "src/axl_private.h"

#include <errno.h>
#include <math.h>
#include <zlib.h>

typedef struct fixture {
    scratch s;
    char folder[96];
} fixture;

static axl_transfer *create(unsigned flags)
{
    axl_transfer *t = NULL;
    const axl_options options = {.flags = flags};
    assert_int_equal(axl_create("sync", &options, &t, NULL), 0);
    assert_non_null(t);
    return t;
}

/* Writes source file number i, which holds its own name, and adds it. */
static void add_numbered(axl_transfer *t, const scratch *s, int i)
{
    char source[160], destination[160];
    snprintf(source, sizeof source, "%s/in%d", s->folder, i);
    snprintf(destination, sizeof destination, "%s/out/%d/file", s->folder, i);
    scratch_write(source, source, strlen(source));
    assert_int_equal(axl_add(t, source, destination, NULL), 0);
}

static void test_methods(void **state)
{
    const char *missing[] = {"bbapi", "dw"};
    axl_error err;
    axl_transfer *t = NULL;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(axl_create(missing[i], NULL, &t, &err), -ENOTSUP);
        assert_non_null(strstr(err.text, missing[i]));
        assert_non_null(strstr(err.text, "available: sync, pthread"));
    }
    assert_int_equal(axl_create("carrier pigeon", NULL, &t, &err), -EINVAL);
    assert_non_null(strstr(err.text, "\"carrier pigeon\"; available: sync"));
    assert_int_equal(axl_create(NULL, NULL, &t, &err), -EINVAL);
    assert_null(t);
}

static void test_options(void **state)
{
    const axl_options bad[] = {{.flags = 64},      {.workers = -1},
                               {.workers = 10000}, {.buffer = (size_t)1 << 40},
                               {.bandwidth = -1},  {.bandwidth = NAN},
                               {.percent = -0.1},  {.percent = NAN},
                               {.percent = 1e-7},  {.bandwidth = INFINITY}};
    axl_transfer *t = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        axl_error err = {""};
        assert_int_equal(axl_create("sync", &bad[i], &t, &err), -EINVAL);
        assert_true(err.text[0]);
    }
    assert_null(t);
}

static void test_several_files(void **state)
{
    scratch *s = *state;
    axl_transfer *t = create(AXL_CHECKSUM);
    axl_file file;
    for (int i = 0; i < 40; i++)
        add_numbered(t, s, i);
    assert_int_equal(axl_count(t), 40);
    assert_int_equal(axl_get(t, 39, &file), 0);
    assert_int_equal(file.done, 0);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_test(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    for (size_t i = 0; i < 40; i++) {
        assert_int_equal(axl_get(t, i, &file), 0);
        size_t length = strlen(file.source);
        assert_int_equal(file.done, 1);
        assert_int_equal(file.size, length);
        assert_int_equal(file.crc,
                         crc32_z(0, (const unsigned char *)file.source, length));
        scratch_expect(file.destination, file.source, length);
    }
    assert_int_equal(axl_get(t, 40, &file), -EINVAL);
    assert_null(axl_free(t));
}

typedef struct noted {
    uint64_t done, total;
    int calls;
} noted;

/* The threads that move files call this one after another. */
static void note(void *arg, uint64_t done, uint64_t total)
{
    noted *n = arg;
    assert_true(done >= n->done && done <= total);
    *n = (noted){done, total, n->calls + 1};
}

static void test_reports(void **state)
{
    scratch *s = *state;
    enum { SIZE = 1000000, BUFFER = 10000 };
    unsigned char *bytes = scratch_bytes(SIZE);
    const char *methods[] = {"sync", "pthread"};
    scratch_write(s->source, bytes, SIZE);
    for (int i = 0; i < 4; i++) {
        noted n = {0};
        axl_transfer *t;
        const axl_options options = {
            .flags = AXL_CHECKSUM, .buffer = BUFFER, .workers = 3};
        assert_int_equal(axl_create(methods[i % 2], &options, &t, NULL), 0);
        axl_set_progress(t, i < 2 ? note : NULL, &n);
        assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
        assert_int_equal(axl_dispatch(t, NULL), 0);
        assert_int_equal(axl_wait(t, NULL), 0);
        assert_int_equal(n.done, i < 2 ? SIZE : 0);
        assert_int_equal(n.total, i < 2 ? SIZE : 0);
        assert_int_equal(n.calls, i < 2 ? SIZE / BUFFER + 1 : 0);
        axl_free(t);
    }
    free(bytes);
}

static void test_no_files(void **state)
{
    axl_transfer *t = create(0);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    axl_free(t);
    assert_null(axl_free(NULL));
}

static void test_order_of_calls(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    axl_transfer *t = create(0);
    assert_int_equal(axl_test(t, &err), -EINVAL);
    assert_int_equal(axl_wait(t, &err), -EINVAL);
    assert_non_null(strstr(err.text, "not dispatched"));
    add_numbered(t, s, 1);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_dispatch(t, &err), -EINVAL);
    assert_int_equal(axl_add(t, "a", "b", &err), -EINVAL);
    assert_non_null(strstr(err.text, "dispatched already"));
    assert_int_equal(axl_wait(t, NULL), 0);
    axl_free(t);
}

static void test_free_before_dispatch(void **state)
{
    scratch *s = *state;
    axl_transfer *t = create(0);
    add_numbered(t, s, 1);
    axl_free(t);
    assert_int_equal(scratch_left(s), 0);
}

static void test_destination_twice(void **state)
{
    axl_error err = {""};
    axl_transfer *t = create(0);
    assert_int_equal(axl_add(t, "/a", "/x", NULL), 0);
    assert_int_equal(axl_add(t, "/b", "/x", &err), -EEXIST);
    assert_string_equal(err.text, "add /b: /x is the destination of /a already");
    assert_int_equal(axl_count(t), 1);
    assert_int_equal(axl_add(t, "", "/y", &err), -EINVAL);
    assert_int_equal(axl_add(t, "/a", NULL, &err), -EINVAL);
    axl_free(t);
}

static void test_source_twice(void **state)
{
    scratch *s = *state;
    char second[160];
    snprintf(second, sizeof second, "%s/out/second", s->folder);
    scratch_write(s->source, "abc", 3);
    for (int i = 0; i < 2; i++) {
        axl_file file;
        axl_transfer *t = NULL;
        const axl_options options = {.flags = AXL_CHECKSUM};
        assert_int_equal(axl_create(i ? "pthread" : "sync", &options, &t, NULL), 0);
        assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
        assert_int_equal(axl_add(t, s->source, second, NULL), 0);
        assert_int_equal(axl_dispatch(t, NULL), 0);
        assert_int_equal(axl_wait(t, NULL), 0);
        scratch_expect(s->destination, "abc", 3);
        scratch_expect(second, "abc", 3);
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(axl_get(t, k, &file), 0);
            assert_int_equal(file.crc, crc32_z(0, (const unsigned char *)"abc", 3));
        }
        axl_free(t);
        assert_int_equal(scratch_left(s), 2);
        assert_int_equal(unlink(s->destination), 0);
        assert_int_equal(unlink(second), 0);
    }
}

static void test_missing_source_starts_nothing(void **state)
{
    scratch *s = *state;
    axl_error err = {""}, again = {""};
    axl_transfer *t = create(0);
    add_numbered(t, s, 1);
    assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
    assert_int_equal(axl_dispatch(t, &err), -ENOENT);
    assert_non_null(strstr(err.text, s->source));
    assert_int_equal(axl_wait(t, &again), -ENOENT);
    assert_string_equal(again.text, err.text);
    assert_int_equal(axl_test(t, NULL), -ENOENT);
    assert_int_equal(scratch_left(s), 0);
    axl_free(t);
}

/* The second of three files cannot be placed at its destination. */
static void test_first_error_counts(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    axl_file file;
    axl_transfer *t = create(0);
    scratch_write(s->source, "abc", 3);
    add_numbered(t, s, 1);
    assert_int_equal(axl_add(t, s->source, s->folder, NULL), 0);
    add_numbered(t, s, 3);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, &err), -EISDIR);
    assert_non_null(strstr(err.text, s->folder));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(axl_get(t, i, &file), 0);
        assert_int_equal(file.done, i == 0);
        assert_int_equal(access(file.destination, F_OK) == 0, i <= 1);
    }
    axl_free(t);
}

/* Everything that it opened, allocated (sanitizers check this) and created is gone, even
 * if its error was never queried. */
static void test_failed_transfer_is_freed(void **state)
{
    static const char *const methods[] = {"sync", "pthread"};
    scratch *s = *state;
    char path[160], out[160];
    snprintf(path, sizeof path, "%s/state", s->folder);
    snprintf(out, sizeof out, "%s/out", s->folder);
    scratch_write(s->source, "abc", 3);
    int open = scratch_count("/proc/self/fd");
    for (int i = 0; i < 8; i++) {
        axl_transfer *t = NULL;
        const axl_options options = {.flags = AXL_CHECKSUM, .state = i & 2 ? path : NULL};
        assert_int_equal(axl_create(methods[i & 1], &options, &t, NULL), 0);
        assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
        assert_int_equal(
            axl_add(t, i & 4 ? "/does/not/exist" : s->source, s->folder, NULL), 0);
        assert_int_equal(axl_dispatch(t, NULL), i & 4 ? -ENOENT : 0);
        if (!(i & 4)) assert_int_equal(axl_wait(t, NULL), -EISDIR);
        assert_null(axl_free(t));
        assert_int_equal(scratch_count("/proc/self/fd"), open);
        assert_int_equal(access(path, F_OK) == 0, (i & 6) == 2); /* kept for resuming */
        unlink(path);
        unlink(s->destination);
        /* with a state file, temporary files stay for resuming */
        if (!(i & 2)) assert_int_equal(scratch_left(s), 0);
        nftw(out, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
    }
}

static void test_buffer_of_zero_is_the_default(void **state)
{
    const size_t sizes[] = {0, 1, 5000, 1 << 20};
    scratch *s = *state;
    unsigned char *bytes = scratch_bytes(700001);
    scratch_write(s->source, bytes, 700001);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        axl_transfer *t = NULL;
        axl_file file;
        const axl_options options = {.flags = AXL_CHECKSUM, .buffer = sizes[i]};
        assert_int_equal(axl_create("pthread", &options, &t, NULL), 0);
        assert_int_equal(t->buffer, sizes[i] ? sizes[i] : 256 * 1024);
        assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
        assert_int_equal(axl_dispatch(t, NULL), 0);
        assert_int_equal(axl_wait(t, NULL), 0);
        assert_int_equal(axl_get(t, 0, &file), 0);
        assert_int_equal(file.crc, crc32_z(0, bytes, 700001));
        axl_free(t);
        scratch_expect(s->destination, bytes, 700001);
    }
    free(bytes);
}

/* With a linear search through the list this would take minutes and exceed the time limit
 * of the test program. */
static void test_many_files(void **state)
{
    char destination[64];
    axl_file file;
    axl_transfer *t = create(0);
    for (int i = 0; i < 200000; i++) {
        snprintf(destination, sizeof destination, "/folder/of/many/files/%d", i);
        assert_int_equal(axl_add(t, "/source", destination, NULL), 0);
    }
    for (int i = 0; i < 200000; i += 1000) {
        snprintf(destination, sizeof destination, "/folder/of/many/files/%d", i);
        assert_int_equal(axl_add(t, "/other", destination, NULL), -EEXIST);
    }
    assert_int_equal(axl_count(t), 200000);
    assert_int_equal(axl_get(t, 123456, &file), 0);
    assert_string_equal(file.destination, "/folder/of/many/files/123456");
    axl_free(t);
}

int main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_options),
        WITH_FOLDER(test_several_files),
        WITH_FOLDER(test_reports),
        cmocka_unit_test(test_no_files),
        WITH_FOLDER(test_order_of_calls),
        WITH_FOLDER(test_free_before_dispatch),
        cmocka_unit_test(test_destination_twice),
        WITH_FOLDER(test_source_twice),
        WITH_FOLDER(test_missing_source_starts_nothing),
        WITH_FOLDER(test_first_error_counts),
        WITH_FOLDER(test_failed_transfer_is_freed),
        WITH_FOLDER(test_buffer_of_zero_is_the_default),
        cmocka_unit_test(test_many_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
