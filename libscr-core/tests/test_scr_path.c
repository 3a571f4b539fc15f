/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths as text. test_scr_path_memory.c has the failures without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void reduced(void **state)
{
    static const char *const cases[][2] = {
        {"/hello/world/../foo/bar/.././", "/hello/foo"},
        {"/hello/world/./foo/bar/././", "/hello/world/foo/bar"},
        {"/a/b", "/a/b"},
        {"/", "/"},
        {"//", "/"},
        {"///", "/"},
        {"/.", "/"},
        {"/..", "/"},
        {"/../..", "/"},
        {"/a/..", "/"},
        {"/a/../../b", "/b"},
        {"//a//b//", "/a/b"},
        {"a", "a"},
        {"a/", "a"},
        {"./a/.", "a"},
        {"a/..", ""},
        {".", ""},
        {"./", ""},
        {"./.", ""},
        {"..", ".."},
        {"../../a/..", "../.."},
        {"a/../..", ".."},
        {"a/b/../../../c", "../c"},
        {"../a/../b", "../b"},
        {".../..a/.b/c..", ".../..a/.b/c.."},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *once = scr_path_reduce(cases[i][0]);
        assert_string_equal(once, cases[i][1]);
        char *twice = scr_path_reduce(once);
        assert_string_equal(twice, once);
        free(once);
        free(twice);
    }
}

static void absolute_is_reduced(void **state)
{
    static const struct {
        const char *cwd, *path, *result;
    } cases[] = {
        {"/", "", "/"},
        {"/", ".", "/"},
        {"/", "..", "/"},
        {"/", "../..", "/"},
        {"/", "a", "/a"},
        {"/w", "", "/w"},
        {"/w", "a", "/w/a"},
        {"/w/", "a", "/w/a"},
        {"/w", "./a", "/w/a"},
        {"/w", "a/.", "/w/a"},
        {"/w", "a/", "/w/a"},
        {"/w", "a//b///c", "/w/a/b/c"},
        {"/w", "..", "/"},
        {"/w", "../a", "/a"},
        {"/w/x", "../a", "/w/a"},
        {"/w/x", "../../../a", "/a"},
        {"/w", "a/../b", "/w/b"},
        {"/w", "a/b/../../c", "/w/c"},
        {"/w", "a/..", "/w"},
        {"/w", "/a", "/a"},
        {"/w", "//a", "/a"},
        {"/w", "/a/../../b", "/b"},
        {"/w/../v/.", "a", "/v/a"},
        {"/w", "...", "/w/..."},
        {"/w", "..a/.b/c..", "/w/..a/.b/c.."},
        {"/w", "a b/\xc3\xa9", "/w/a b/\xc3\xa9"},
        {"w", "a", "/w/a"},
        {"w/v", "a/b", "/w/v/a/b"},
        {"", "a", "/a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = scr_path_absolute(cases[i].cwd, cases[i].path);
        assert_non_null(path);
        assert_string_equal(path, cases[i].result);
        free(path);
    }
}

static void absolute_takes_long_paths(void **state)
{
    size_t size = 100000;
    char *long_path = malloc(size + 1);
    memset(long_path, 'x', size);
    for (size_t i = 1; i < size; i += 2)
        long_path[i] = '/';
    long_path[size] = 0;
    char *path = scr_path_absolute("/", long_path);
    assert_int_equal(strlen(path), size); /* the first slash for the last one */
    free(path);
    for (size_t i = 0; i + 2 < size; i += 3)
        memcpy(long_path + i, "../", 3);
    long_path[size - 1] = 'x';
    path = scr_path_absolute("/a/b", long_path);
    assert_string_equal(path, "/x");
    free(path);
    free(long_path);
}

static void join(void **state)
{
    static const struct {
        const char *dir, *name, *result;
    } cases[] = {{"/a", "b", "/a/b"},
                 {"/a/", "b", "/a/b"},
                 {"/", "b", "/b"},
                 {"a", "b/c", "a/b/c"},
                 {"a", "", "a/"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = scr_path_join(cases[i].dir, cases[i].name);
        assert_string_equal(path, cases[i].result);
        free(path);
    }
}

static void below(void **state)
{
    static const struct {
        const char *dir, *path, *result;
    } cases[] = {{"/a", "/a/b", "b"},  {"/a", "/a/b/c", "b/c"}, {"/", "/b", "b"},
                 {"/", "/", NULL},     {"/a", "/a", NULL},      {"/a", "/a/", NULL},
                 {"/a", "/ab", NULL},  {"/a", "/ab/c", NULL},   {"/a", "/b/a/c", NULL},
                 {"/a/b", "/a", NULL}, {"/a", "", NULL},        {"/", "", NULL},
                 {"/", "b", NULL},     {"/a", "a/b", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *rest = scr_path_below(cases[i].dir, cases[i].path);
        if (!cases[i].result) {
            assert_null(rest);
            continue;
        }
        assert_string_equal(rest, cases[i].result);
        assert_ptr_equal(rest + strlen(rest), cases[i].path + strlen(cases[i].path));
    }
}

static void last_component(void **state)
{
    assert_string_equal(scr_path_basename("/a/b"), "b");
    assert_string_equal(scr_path_basename("b"), "b");
    assert_string_equal(scr_path_basename("/"), "");
    assert_string_equal(scr_path_basename("a/"), "");
    assert_string_equal(scr_path_basename(""), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reduced),
                                       cmocka_unit_test(absolute_is_reduced),
                                       cmocka_unit_test(absolute_takes_long_paths),
                                       cmocka_unit_test(join),
                                       cmocka_unit_test(below),
                                       cmocka_unit_test(last_component)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
