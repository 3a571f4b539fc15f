/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a batch that stay open after their creation (batch.hold): as many as there is
 * room for; each is the created file, and none stays open at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/batch.h"
#include "scratch.h"
#include <cmocka.h>
#include <fcntl.h>

enum { FILES = 4, SIZE = 5 };

static int dir = -1;

static int open_folder(void **state)
{
    int rc = make_folder(state);
    dir = open(folder, O_RDONLY | O_DIRECTORY);
    return rc ? rc : dir < 0;
}

static int close_folder(void **state)
{
    close(dir);
    return remove_folder(state);
}

static const char *temporary(int i)
{
    static char name[16];
    snprintf(name, sizeof name, ".%d.tmp", i);
    return name;
}

static batch make(int hold, int resumed)
{
    batch b = {.dir = dir, .durability = BATCH_SYNCED, .hold = hold, .resumed = resumed};
    kvtree_error err = {""};
    for (int i = 0; i < FILES; i++) {
        const batch_file file = {.name = temporary(i) + 1,
                                 .from = BATCH_BESIDE,
                                 .temporary = temporary(i),
                                 .size = SIZE,
                                 .mode = 0600};
        assert_int_equal(batch_add(&b, &file, &err), 0);
    }
    if (batch_make(&b, &err) != 0) fail_msg("%s", err.text);
    return b;
}

static long size_of(const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, 0) == 0 ? (long)st.st_size : -1;
}

static int count_open(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int next_free(void)
{
    int fd = dup(dir);
    close(fd);
    return fd;
}

/* Held files are empty, and data written to them appears under the names. The directory
 * is open, too, while they are created. */
static void as_many_as_fit(void **state)
{
    const int open_before = count_open();
    for (int held = 0; held <= FILES; held++) {
        kvtree_error err = {""};
        batch b = make(held ? next_free() + 1 + held : 0, 0);
        assert_int_equal(count_open(), open_before + held);
        for (int i = 0; i < FILES; i++) {
            int fd = batch_take(&b, (size_t)i);
            assert_int_equal(fd >= 0, i < held);
            assert_int_equal(size_of(temporary(i)), i < held ? 0 : SIZE);
            assert_int_equal(batch_take(&b, (size_t)i), -1);
            if (fd < 0) continue;
            assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
            assert_int_equal(write(fd, "abc", 3), 3);
            close(fd);
        }
        if (batch_commit(&b, &err) != 0) fail_msg("%s", err.text);
        batch_drop(&b);
        for (int i = 0; i < FILES; i++)
            assert_int_equal(size_of(temporary(i) + 1), i < held ? 3 : SIZE);
        assert_int_equal(count_open(), open_before);
    }
}

/* Descriptors that are not taken are closed, with or without a commit. */
static void not_taken(void **state)
{
    const int open_before = count_open();
    kvtree_error err = {""};
    batch b = make(256, 0);
    assert_int_equal(batch_commit(&b, &err), 0);
    batch_drop(&b);
    assert_int_equal(count_open(), open_before);
    b = make(256, 0);
    batch_drop(&b);
    assert_int_equal(count_open(), open_before);
    assert_int_equal(files_in_folder(0), FILES);
}

/* A file that an earlier process created gets its final size, and keeps its bytes. */
static void taken_over(void **state)
{
    kvtree_error err = {""};
    for (int i = 0; i < 2; i++) {
        int fd = openat(dir, temporary(i), O_WRONLY | O_CREAT, 0600);
        assert_int_equal(write(fd, "0123456789", i ? 10 : 2), i ? 10 : 2);
        close(fd);
    }
    batch b = make(256, 1);
    assert_int_equal(size_of(temporary(0)), SIZE);
    assert_int_equal(size_of(temporary(1)), SIZE);
    assert_int_equal(batch_take(&b, 0), -1);
    assert_int_equal(batch_commit(&b, &err), 0);
    batch_drop(&b);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_folder, close_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(as_many_as_fit),
        TEST(not_taken),
        TEST(taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
