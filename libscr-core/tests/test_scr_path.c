/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths as components: a test per function, named after it. test_scr_path_text.c has
 * paths as text, test_scr_path_memory.c what happens without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The path has so many components, and is that text. */
static void assert_path(const scr_path *path, int components, const char *text)
{
    char *str = scr_path_strdup(path);
    assert_non_null(path);
    assert_non_null(str);
    assert_string_equal(str, text);
    assert_int_equal(scr_path_components(path), components);
    assert_int_equal(scr_path_is_null(path), components == 0);
    assert_int_equal(scr_path_strlen(path), strlen(text));
    free(str);
}

static void assert_gone(scr_path *path, int components, const char *text)
{
    assert_path(path, components, text);
    scr_path_delete(&path);
    assert_null(path);
}

static void new_and_delete(void **state)
{
    scr_path *none = NULL;
    assert_gone(scr_path_new(), 0, "");
    scr_path_delete(&none);
    scr_path_delete(NULL);
}

static void from_str(void **state)
{
    static const struct {
        const char *str;
        int components;
    } cases[] = {{"", 1},    {"/", 2},     {"//", 3},           {"a", 1},
                 {"/a", 2},  {"a/", 2},    {"/a/", 3},          {"a//b", 3},
                 {"./a", 2}, {"../..", 2}, {"/hello/world", 3}, {"a b/\xc3\xa9", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_gone(scr_path_from_str(cases[i].str), cases[i].components, cases[i].str);
    assert_gone(scr_path_from_str(NULL), 0, "");
}

static void from_strf(void **state)
{
    assert_gone(scr_path_from_strf("/%s/%s/%d", "a", "b/c", -7), 5, "/a/b/c/-7");
    assert_gone(scr_path_from_strf("%s", ""), 1, "");
}

static void dup_is_a_copy(void **state)
{
    scr_path *path = scr_path_from_str("/a/b"), *copy = scr_path_dup(path);
    scr_path_dirname(path);
    assert_gone(path, 2, "/a");
    assert_gone(copy, 3, "/a/b");
    path = scr_path_new();
    assert_gone(scr_path_dup(path), 0, "");
    assert_gone(scr_path_dup(NULL), 0, "");
    scr_path_delete(&path);
}

static void is_absolute(void **state)
{
    static const struct {
        const char *str;
        int absolute;
    } cases[] = {{"/", 1}, {"/a", 1},  {"//a", 1}, {"", 1}, /* as the guide has it */
                 {"a", 0}, {"a/b", 0}, {"..", 0},  {"a/", 0}, {NULL, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scr_path *path = scr_path_from_str(cases[i].str);
        assert_int_equal(scr_path_is_absolute(path), cases[i].absolute);
        scr_path_delete(&path);
    }
    assert_int_equal(scr_path_is_absolute(NULL), 0);
}

static void null_pointers_are_null_paths(void **state)
{
    assert_int_equal(scr_path_components(NULL), 0);
    assert_int_equal(scr_path_is_null(NULL), 1);
    assert_int_equal(scr_path_strlen(NULL), 0);
    assert_gone(scr_path_sub(NULL, 0, 5), 0, "");
    assert_gone(scr_path_relative(NULL, NULL), 0, "");
    scr_path *path = scr_path_from_str("a");
    assert_int_equal(scr_path_append(path, NULL), 0);
    assert_int_equal(scr_path_prepend_str(path, NULL), 0);
    assert_gone(path, 1, "a");
    char *text = scr_path_strdup(NULL);
    assert_string_equal(text, "");
    free(text);
}

static void strcpy_fits_or_leaves_the_buffer(void **state)
{
    char buf[16];
    scr_path *path = scr_path_from_str("/ab/c"), *null = scr_path_new();
    memset(buf, '#', sizeof buf);
    assert_int_equal(scr_path_strcpy(buf, 5, path), -ENAMETOOLONG);
    assert_int_equal(scr_path_strcpy(buf, 0, null), -ENAMETOOLONG);
    assert_memory_equal(buf, "################", sizeof buf);
    assert_int_equal(scr_path_strcpy(buf, 6, path), 0);
    assert_memory_equal(buf, "/ab/c\0##########", sizeof buf);
    assert_int_equal(scr_path_strcpy(buf, 1, null), 0);
    assert_memory_equal(buf, "\0ab/c\0##########", sizeof buf);
    scr_path_delete(&path);
    scr_path_delete(&null);
}

/* What becomes of path with other in it at offset, by each function that can do so. */
static void assert_inserted(const char *path, int offset, const char *other,
                            int components, const char *text)
{
    scr_path *from = scr_path_from_str(other);
    for (int way = 0; way < 9; way++) {
        scr_path *p = scr_path_from_str(path);
        int rc = -1, at_end = offset == scr_path_components(p);
        if (way == 0) rc = scr_path_insert(p, offset, from);
        if (way == 1) rc = scr_path_insert_str(p, offset, other);
        if (way == 2 && other) rc = scr_path_insert_strf(p, offset, "%s", other);
        if (way == 3 && at_end) rc = scr_path_append(p, from);
        if (way == 4 && at_end) rc = scr_path_append_str(p, other);
        if (way == 5 && at_end && other) rc = scr_path_append_strf(p, "%s", other);
        if (way == 6 && !offset) rc = scr_path_prepend(p, from);
        if (way == 7 && !offset) rc = scr_path_prepend_str(p, other);
        if (way == 8 && !offset && other) rc = scr_path_prepend_strf(p, "%s", other);
        if (rc == -1)
            assert_path(p, scr_path_components(p), path ? path : "");
        else
            assert_path(p, components, text);
        assert_true(rc == 0 || rc == -1);
        scr_path_delete(&p);
    }
    assert_path(from, scr_path_components(from), other ? other : "");
    scr_path_delete(&from);
}

static void insert_append_prepend(void **state)
{
    assert_inserted("/a/b", 0, "x", 4, "x//a/b");
    assert_inserted("/a/b", 1, "x/y", 5, "/x/y/a/b");
    assert_inserted("/a/b", 2, "x", 4, "/a/x/b"); /* before the last one */
    assert_inserted("/a/b", 3, "x/y", 5, "/a/b/x/y");
    assert_inserted("a", 1, "/b", 3, "a//b");
    assert_inserted("a", 0, "/b", 3, "/b/a");
    assert_inserted("a", 1, "", 2, "a/");
    assert_inserted("", 1, "a", 2, "/a");
    assert_inserted(NULL, 0, "a/b", 2, "a/b");
    assert_inserted("a/b", 1, NULL, 2, "a/b");
    assert_inserted(NULL, 0, NULL, 0, "");
}

static void insert_refuses_other_offsets(void **state)
{
    scr_path *path = scr_path_from_str("/a"), *other = scr_path_from_str("x");
    const int bad[] = {-1, -2, 3, 1000};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(scr_path_insert(path, bad[i], other), -EINVAL);
        assert_int_equal(scr_path_insert_str(path, bad[i], "x"), -EINVAL);
        assert_int_equal(scr_path_insert_strf(path, bad[i], "%d", 1), -EINVAL);
        assert_path(path, 2, "/a");
    }
    scr_path_delete(&other);
    scr_path_delete(&path);
}

static void a_path_into_itself(void **state)
{
    scr_path *path = scr_path_from_str("a/b");
    assert_int_equal(scr_path_insert(path, 1, path), 0);
    assert_path(path, 4, "a/a/b/b");
    assert_int_equal(scr_path_append(path, path), 0);
    assert_gone(path, 8, "a/a/b/b/a/a/b/b");
}

/* The pieces of "/a/b/c", which has the components "", "a", "b" and "c". */
static const struct piece {
    int offset, length, components;
    const char *text;
} pieces[] = {{0, -1, 4, "/a/b/c"},
              {0, 4, 4, "/a/b/c"},
              {0, 3, 3, "/a/b"},
              {0, 1, 1, ""},
              {0, 0, 0, ""},
              {1, -1, 3, "a/b/c"},
              {1, 2, 2, "a/b"},
              {3, -1, 1, "c"},
              {3, 1, 1, "c"},
              {3, 7, 1, "c"},
              {4, -1, 0, ""},
              {5, 1, 0, ""},
              {-1, -1, 1, "c"},
              {-1, 1, 1, "c"},
              {-2, 1, 1, "b"},
              {-3, 2, 2, "a/b"},
              {-4, -1, 4, "/a/b/c"},
              {-5, 2, 2, "/a"},
              {1, -7, 3, "a/b/c"},
              {2147483647, 1, 0, ""},
              {1, 2147483647, 3, "a/b/c"},
              {-2147483647 - 1, -2147483647 - 1, 4, "/a/b/c"}};

static void slice(void **state)
{
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        scr_path *path = scr_path_from_str("/a/b/c");
        scr_path_slice(path, pieces[i].offset, pieces[i].length);
        assert_gone(path, pieces[i].components, pieces[i].text);
    }
    scr_path *null = scr_path_new();
    scr_path_slice(null, 0, -1);
    scr_path_slice(null, -1, 3);
    assert_gone(null, 0, "");
}

static void sub(void **state)
{
    scr_path *path = scr_path_from_str("/a/b/c");
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        assert_gone(scr_path_sub(path, pieces[i].offset, pieces[i].length),
                    pieces[i].components, pieces[i].text);
    assert_gone(path, 4, "/a/b/c");
}

static void cut(void **state)
{
    static const struct {
        int offset, before, after;
        const char *first, *second;
    } cases[] = {
        {0, 0, 4, "", "/a/b/c"}, {1, 1, 3, "", "a/b/c"},   {2, 2, 2, "/a", "b/c"},
        {3, 3, 1, "/a/b", "c"},  {4, 4, 0, "/a/b/c", ""},  {9, 4, 0, "/a/b/c", ""},
        {-1, 3, 1, "/a/b", "c"}, {-4, 0, 4, "", "/a/b/c"}, {-9, 0, 4, "", "/a/b/c"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scr_path *path = scr_path_from_str("/a/b/c");
        assert_gone(scr_path_cut(path, cases[i].offset), cases[i].after, cases[i].second);
        assert_gone(path, cases[i].before, cases[i].first);
    }
    scr_path *null = scr_path_new();
    assert_gone(scr_path_cut(null, 0), 0, "");
    assert_gone(null, 0, "");
}

static void dirname_and_basename(void **state)
{
    static const struct {
        const char *path;
        int components;
        const char *dir, *base;
    } cases[] = {{"/a/b", 3, "/a", "b"},  {"/a", 2, "", "a"}, {"a", 1, "", "a"},
                 {"a/", 2, "a", ""},      {"/", 2, "", ""},   {"", 1, "", ""},
                 {"../..", 2, "..", ".."}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scr_path *dir = scr_path_from_str(cases[i].path), *base = scr_path_dup(dir);
        scr_path_dirname(dir);
        scr_path_basename(base);
        assert_gone(dir, cases[i].components - 1, cases[i].dir);
        assert_gone(base, 1, cases[i].base);
    }
    scr_path *null = scr_path_new();
    scr_path_dirname(null);
    scr_path_basename(null);
    assert_gone(null, 0, "");
}

static void root_s_files_keep_their_root(void **state)
{
    scr_path *path = scr_path_from_str("/a");
    scr_path_dirname(path);
    assert_int_equal(scr_path_is_absolute(path), 1);
    assert_int_equal(scr_path_append_str(path, "b"), 0);
    assert_gone(path, 2, "/b");
}

static void reduce(void **state)
{
    static const struct {
        const char *path;
        int components;
        const char *reduced;
    } cases[] = {{"/hello/world/../foo/bar/.././", 3, "/hello/foo"},
                 {"/hello/world/./foo/bar/././", 5, "/hello/world/foo/bar"},
                 {"/a/b", 3, "/a/b"},
                 {"/", 2, "/"},
                 {"//", 2, "/"},
                 {"///", 2, "/"},
                 {"/.", 2, "/"},
                 {"/..", 2, "/"},
                 {"/../..", 2, "/"},
                 {"/a/..", 2, "/"},
                 {"/a/../../b", 2, "/b"},
                 {"//a//b//", 3, "/a/b"},
                 {"a", 1, "a"},
                 {"a/", 1, "a"},
                 {"./a/.", 1, "a"},
                 {"a/..", 0, ""},
                 {".", 0, ""},
                 {"./", 0, ""},
                 {"./.", 0, ""},
                 {"..", 1, ".."},
                 {"../../a/..", 2, "../.."},
                 {"a/../..", 1, ".."},
                 {"a/b/../../../c", 2, "../c"},
                 {"../a/../b", 2, "../b"},
                 {".../..a/.b/c..", 4, ".../..a/.b/c.."},
                 {"", 1, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scr_path *path = scr_path_from_str(cases[i].path);
        scr_path_reduce(path);
        assert_path(path, cases[i].components, cases[i].reduced);
        scr_path_reduce(path); /* and nothing is left to do */
        assert_gone(path, cases[i].components, cases[i].reduced);
        char *text = scr_path_strdup_reduce_str(cases[i].path);
        assert_string_equal(text, cases[i].reduced);
        free(text);
    }
    scr_path *null = scr_path_new();
    scr_path_reduce(null);
    assert_gone(null, 0, "");
    char *text = scr_path_strdup_reduce_str(NULL);
    assert_string_equal(text, "");
    free(text);
}

static void relative(void **state)
{
    static const struct {
        const char *src, *dst;
        int components; /* -1: there is none */
        const char *way;
    } cases[] = {{"/hello/world", "/hello/foo", 2, "../foo"},
                 {"/a", "/a/b/c", 2, "b/c"},
                 {"/a/b/c", "/a", 2, "../.."},
                 {"/a", "/a", 0, ""},
                 {"/", "/", 0, ""},
                 {"/", "/a", 1, "a"},
                 {"/a", "/", 1, ".."},
                 {"/a/b", "/c/d", 4, "../../c/d"},
                 {"/ab", "/a", 2, "../a"},
                 {"/a/./b/", "//a/x/../b/c", 1, "c"},
                 {"/../a", "/b", 2, "../b"},
                 {"a", "b", 2, "../b"},
                 {"a/b", "a", 1, ".."},
                 {".", "a", 1, "a"},
                 {"a", ".", 1, ".."},
                 {NULL, "a/b", 2, "a/b"},
                 {"../a", "../b", 2, "../b"},
                 {"a", "..", 2, "../.."},
                 {"a", "../b", 3, "../../b"},
                 {"..", "a", -1, NULL},
                 {"../..", "../a", -1, NULL},
                 {"../a/b", "c", -1, NULL},
                 {"/a", "a", -1, NULL},
                 {"a", "/a", -1, NULL},
                 {NULL, "/a", -1, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scr_path *src = scr_path_from_str(cases[i].src);
        scr_path *dst = scr_path_from_str(cases[i].dst);
        scr_path *way = scr_path_relative(src, dst);
        if (cases[i].components < 0)
            assert_null(way);
        else
            assert_gone(way, cases[i].components, cases[i].way);
        assert_gone(dst, scr_path_components(dst), cases[i].dst);
        scr_path_delete(&src);
    }
}

static void long_paths(void **state)
{
    enum { PARTS = 20000 };
    scr_path *path = scr_path_from_str("x"), *one = scr_path_from_str("y");
    char *deep = malloc(PARTS * 2 + 1), *text;
    for (int i = 0; i < PARTS; i++)
        memcpy(deep + 2 * i, "/a", 3);
    assert_int_equal(scr_path_append_str(path, deep), 0);
    assert_int_equal(scr_path_components(path), PARTS + 2);
    assert_int_equal(scr_path_strlen(path), 2 * PARTS + 2);
    scr_path_reduce(path);
    text = scr_path_strdup(path);
    assert_int_equal(strlen(text), 2 * PARTS + 1);
    assert_string_equal(text + 1, deep);
    free(text);
    scr_path *way = scr_path_relative(path, one);
    assert_int_equal(scr_path_components(way), PARTS + 2);
    assert_int_equal(scr_path_strlen(way), 3 * (PARTS + 1) + 1);
    memset(deep, 'z', PARTS);
    deep[PARTS] = 0;
    assert_gone(scr_path_from_str(deep), 1, deep); /* one long component */
    scr_path_delete(&way);
    scr_path_delete(&path);
    scr_path_delete(&one);
    free(deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_and_delete),
        cmocka_unit_test(from_str),
        cmocka_unit_test(from_strf),
        cmocka_unit_test(dup_is_a_copy),
        cmocka_unit_test(is_absolute),
        cmocka_unit_test(null_pointers_are_null_paths),
        cmocka_unit_test(strcpy_fits_or_leaves_the_buffer),
        cmocka_unit_test(insert_append_prepend),
        cmocka_unit_test(insert_refuses_other_offsets),
        cmocka_unit_test(a_path_into_itself),
        cmocka_unit_test(slice),
        cmocka_unit_test(sub),
        cmocka_unit_test(cut),
        cmocka_unit_test(dirname_and_basename),
        cmocka_unit_test(root_s_files_keep_their_root),
        cmocka_unit_test(reduce),
        cmocka_unit_test(relative),
        cmocka_unit_test(long_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
