/* SPDX-License-Identifier: BSD-3-Clause */
/* What a flush left whose program died: told by its name, and removed; nothing else is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <filo/filo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static int dir = -1;

#define ID 0x00c0ffee12345678u

static const struct {
    const char *path;
    uint64_t id; /* 0: not of a flush */
} names[] = {
    {".00c0ffee12345678-0-0.tmp", ID},
    {".00c0ffee12345678-12-345.tmp", ID},
    {"a/b/.00c0ffee12345678-ctr.3.scr.tmp", ID},
    {"/.00c0ffee12345678-0-0.tmp", ID},
    {".ffffffffffffffff-x.tmp", UINT64_MAX},
    {"00c0ffee12345678-0-0.tmp", 0},
    {".00c0ffee1234567-0-0.tmp", 0},
    {".00c0ffee123456789-0-0.tmp", 0},
    {".00C0FFEE12345678-0-0.tmp", 0},
    {".00c0ffee12345678.tmp", 0}, /* that is one of a file that is replaced */
    {".00c0ffee12345678-.tmp", 0},
    {".00c0ffee12345678-", 0},
    {".00c0ffee12345678-0-0.tmp/x", 0},
    {".00c0ffee12345678-0-0.tmpx", 0},
    {"", 0},
};

static void told_by_name(void **state)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint64_t id = 1;
        int rc = filo_temporary_id(names[i].path, &id);
        if (rc != (names[i].id ? 0 : -ENOENT) || id != (names[i].id ? names[i].id : 1))
            fail_msg("%s: %d, %llx", names[i].path, rc, (unsigned long long)id);
    }
}

static int exists(const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void create(const char *name)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    close(fd);
}

#define OURS ".00c0ffee12345678-0-0.tmp"
#define OTHER ".00c0ffee12345679-0-0.tmp"

static const char *const here[] = {"file",   OURS,         OTHER, "b/" OTHER,
                                   "b/file", "b/c/" OTHER, NULL},
                         *const below[] = {"b/" OURS, "b/c/" OURS, NULL};

static void expect(const char *const list[], int there)
{
    for (; *list; list++)
        if (strcmp(*list, OURS) != 0 && exists(*list) != there)
            fail_msg("%s: %d", *list, !there);
}

static void removed(void **state)
{
    char err[FILO_ERROR_SIZE] = "";
    assert_int_equal(mkdirat(dir, "b", 0700), 0);
    assert_int_equal(mkdirat(dir, "b/c", 0700), 0);
    assert_int_equal(symlinkat("b", dir, "link"), 0);
    for (int i = 0; here[i]; i++)
        create(here[i]);
    for (int i = 0; below[i]; i++)
        create(below[i]);
    assert_int_equal(filo_remove_temporaries(dir, ID, 0, err), 0);
    assert_false(exists(OURS));
    expect(here, 1);
    expect(below, 1);
    int link = openat(dir, "b/c", O_RDONLY | O_DIRECTORY);
    assert_int_equal(symlinkat("..", link, "up"), 0); /* which is not followed */
    close(link);
    assert_int_equal(filo_remove_temporaries(dir, ID, 1, err), 0);
    expect(here, 1);
    expect(below, 0);
    assert_int_equal(filo_remove_temporaries(dir, ID, 1, err), 0);
}

static void removed_of_any_flush(void **state)
{
    static const char last[] = ".ffffffffffffffff-0-0.tmp", plain[] = ".ffffffffffffffff";
    char err[FILO_ERROR_SIZE] = "";
    create(OURS);
    create(last);
    create(plain);
    assert_int_equal(filo_remove_temporaries(dir, 0, 0, err), 0);
    assert_false(exists(OURS));
    assert_false(exists(last));
    assert_true(exists(plain));
    assert_int_equal(unlinkat(dir, plain, 0), 0);
}

static int is_odd(void *arg, uint64_t id)
{
    ++*(int *)arg;
    return id % 2;
}

/* Of other folders those files go only whose flush is asked for. */
static void removed_among_others(void **state)
{
    char err[FILO_ERROR_SIZE] = "";
    int asked = 0;
    create("b/.0123456789abcdef.tmp"); /* might be somebody's */
    create(OURS);
    create(OTHER);
    create("b/c/" OURS);
    assert_int_equal(filo_remove_temporaries_below(dir, is_odd, &asked, 0, err), 0);
    assert_true(exists(OURS) && exists("b/c/" OURS) && exists("b/.0123456789abcdef.tmp"));
    assert_false(exists(OTHER) || exists("b/" OTHER) || exists("b/c/" OTHER));
    assert_true(exists("file") && exists("b/file"));
    assert_int_equal(asked, 5);
    create("b/c/" OTHER);
    asked = 0;
    assert_int_equal(filo_remove_temporaries_below(dir, is_odd, &asked, 2, err), -E2BIG);
    assert_true(asked <= 2);
    assert_int_equal(filo_remove_temporaries_below(dir, is_odd, &asked, 100, err), 0);
    assert_false(exists("b/c/" OTHER));
    assert_int_equal(unlinkat(dir, "b/.0123456789abcdef.tmp", 0), 0);
}

/* No more folders are open at a time than there may be. */
static void deep_folders(void **state)
{
    char err[FILO_ERROR_SIZE] = "", name[3 * 70 + 40] = "x";
    int asked = 0, depth;
    for (depth = 1; depth < 70; depth++) {
        assert_int_equal(mkdirat(dir, name, 0700), 0);
        strcat(name, "/x");
    }
    assert_int_equal(filo_remove_temporaries_below(dir, is_odd, &asked, 0, err), -E2BIG);
    assert_int_equal(filo_remove_temporaries(dir, ID, 1, err), -E2BIG);
    while (--depth > 0) {
        *strrchr(name, '/') = 0;
        assert_int_equal(unlinkat(dir, name, AT_REMOVEDIR), 0);
    }
}

/* Files that are replaced are no flush's: the locked one is in work. */
static void of_the_map(void **state)
{
    char err[FILO_ERROR_SIZE] = "";
    const struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    create(".0123456789abcdef.tmp");
    create("b/.0123456789abcdef.tmp");
    create("b/.0123456789abcdff.tmp");
    assert_int_equal(symlinkat("file", dir, ".0123456789abcdee.tmp"), 0);
    int fd = openat(dir, "b/.0123456789abcdff.tmp", O_RDWR);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &all), 0);
    assert_int_equal(filo_remove_temporaries(dir, ID, 1, err), 0);
    assert_false(exists(".0123456789abcdef.tmp"));
    assert_false(exists("b/.0123456789abcdef.tmp"));
    assert_true(exists("b/.0123456789abcdff.tmp"));
    close(fd);
    assert_int_equal(filo_remove_temporaries(dir, ID, 1, err), 0);
    assert_false(exists("b/.0123456789abcdff.tmp"));
    assert_true(exists("file"));
    assert_int_equal(unlinkat(dir, ".0123456789abcdee.tmp", 0), 0);
}

/* A folder of that name cannot be removed so; the rest is. */
static void goes_on_after_a_failure(void **state)
{
    char err[FILO_ERROR_SIZE] = "";
    assert_int_equal(mkdirat(dir, ".00c0ffee12345678-1-1.tmp", 0700), 0);
    create(OURS);
    create("b/c/" OURS);
    assert_true(filo_remove_temporaries(dir, ID, 1, err) < 0);
    assert_non_null(strstr(err, ".00c0ffee12345678-1-1.tmp"));
    assert_false(exists(OURS));
    expect(below, 0);
    assert_true(filo_remove_temporaries(-1, ID, 1, err) < 0);
}

static int make_folder(void **state)
{
    strcpy(folder, "/dev/shm/scr-test-XXXXXX");
    if (!mkdtemp(folder)) {
        strcpy(folder, "/tmp/scr-test-XXXXXX");
        if (!mkdtemp(folder)) return -1;
    }
    dir = open(folder, O_RDONLY | O_DIRECTORY);
    return dir < 0;
}

static int remove_folder(void **state)
{
    char command[96];
    close(dir);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told_by_name),
        cmocka_unit_test(removed),
        cmocka_unit_test(removed_of_any_flush),
        cmocka_unit_test(removed_among_others),
        cmocka_unit_test(deep_folders),
        cmocka_unit_test(of_the_map),
        cmocka_unit_test(goes_on_after_a_failure),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
