/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths without memory: each function that needs some is run with its first allocation
 * failing, then its second, and so on until none fails. It must say so, leave nothing
 * behind, and leave the path as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include "nth_malloc.h"
#include <cmocka.h>
#include <errno.h>
#include <string.h>

/* Works on "/a/b", given "x/y" besides; 1 if it succeeded. */
typedef int verb(scr_path *path, const scr_path *other);

/* 1 for what a function returned, which is freed. */
static int got_path(scr_path *path)
{
    int got = path != NULL;
    scr_path_delete(&path);
    return got;
}

static int got_text(char *text)
{
    int got = text != NULL;
    free(text);
    return got;
}

static int is_done(int rc)
{
    assert_true(rc == 0 || rc == -ENOMEM);
    return rc == 0;
}

static int do_new(scr_path *path, const scr_path *other)
{
    return got_path(scr_path_new());
}

static int do_from_str(scr_path *path, const scr_path *other)
{
    return got_path(scr_path_from_str("/a/b"));
}

static int do_from_strf(scr_path *path, const scr_path *other)
{
    return got_path(scr_path_from_strf("/a/%d", 3));
}

static int do_dup(scr_path *path, const scr_path *other)
{
    return got_path(scr_path_dup(path));
}

static int do_strdup(scr_path *path, const scr_path *other)
{
    return got_text(scr_path_strdup(path));
}

static int do_insert(scr_path *path, const scr_path *other)
{
    return is_done(scr_path_insert(path, 1, other));
}

static int do_prepend_str(scr_path *path, const scr_path *other)
{
    return is_done(scr_path_prepend_str(path, "x/y"));
}

static int do_append_strf(scr_path *path, const scr_path *other)
{
    return is_done(scr_path_append_strf(path, "x/%d", 3));
}

static int do_cut(scr_path *path, const scr_path *other)
{
    return got_path(scr_path_cut(path, 1));
}

static int do_sub(scr_path *path, const scr_path *other)
{
    return got_path(scr_path_sub(path, 1, 1));
}

static int do_reduce_str(scr_path *path, const scr_path *other)
{
    return got_text(scr_path_strdup_reduce_str("/a/./b"));
}

static int do_relative(scr_path *path, const scr_path *other)
{
    scr_path *target = scr_path_sub(path, 0, 1);
    if (!target) return 0;
    int got = got_path(scr_path_relative(path, target));
    scr_path_delete(&target);
    return got;
}

static int do_absolute(scr_path *path, const scr_path *other)
{
    return got_text(scr_path_absolute("/a", "b"));
}

static int do_join(scr_path *path, const scr_path *other)
{
    return got_text(scr_path_join("/a", "b"));
}

static void assert_text(const scr_path *path, const char *text)
{
    char buf[32];
    assert_int_equal(scr_path_strcpy(buf, sizeof buf, path), 0);
    assert_string_equal(buf, text);
}

/* Returns how many allocations it cannot do without. (Printing to memory can, in the end:
 * then it only wanted less.) */
static int fail_each(verb *work)
{
    for (int n = 1, needed = 0;; n++) {
        long before = live;
        scr_path *path = scr_path_from_str("/a/b"), *other = scr_path_from_str("x/y");
        countdown = n;
        int worked = work(path, other), left = countdown;
        countdown = 0;
        if (!worked) assert_text(path, "/a/b");
        assert_text(other, "x/y");
        scr_path_delete(&path);
        scr_path_delete(&other);
        assert_int_equal(live, before);
        assert_true(worked || !left);
        if (left) return needed;
        needed += !worked;
    }
}

static void each_allocation_may_fail(void **state)
{
    static const struct {
        verb *work;
        int least;
    } verbs[] = {{do_new, 1},         {do_from_str, 5},    {do_from_strf, 5},
                 {do_dup, 5},         {do_strdup, 1},      {do_insert, 5},
                 {do_prepend_str, 5}, {do_append_strf, 5}, {do_cut, 4},
                 {do_sub, 3},         {do_reduce_str, 6},  {do_relative, 10},
                 {do_absolute, 6},    {do_join, 1}};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        assert_true(fail_each(verbs[i].work) >= verbs[i].least);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
