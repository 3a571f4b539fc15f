/* SPDX-License-Identifier: BSD-3-Clause */
/* One of the files in which the trees of many ranks lie, made and taken apart; without
 * MPI. More of what is refused: test_kvtree_scatter_mpi.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "build_tree.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "src/kvtree_gather_private.h"
#include "src/kvtree_private.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_names(void **state)
{
    char name[BENEATH_NAME_MAX], large[BENEATH_NAME_MAX];
    assert_int_equal(kvtree_gather_file_name(".scr/rank2file.scr", 0, 12, name), 0);
    assert_string_equal(name, ".scr/rank2file.0.12.scr");
    assert_int_equal(kvtree_gather_file_name("map", 3, 4, name), 0);
    assert_string_equal(name, "map.3.4.scr");
    assert_int_equal(kvtree_gather_file_name(".scr", 3, 4, name), 0);
    assert_string_equal(name, ".scr.3.4.scr");
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    assert_int_equal(kvtree_gather_file_name(large, 0, 0, name), -ENAMETOOLONG);
}

/* The keys of the documented samples. */
static void test_lowest_level(void **state)
{
    static const char *const tops[] = {NULL, "RANK2FILE"};
    for (int i = 0; i < 2; i++) {
        kvtree *items = kvtree_new();
        assert_non_null(kvtree_set(items, "7", sample_tree()));
        kvtree *tree = kvtree_gather_file_make(tops[i], 0, 1, items);
        assert_int_equal(kvtree_size(tree), tops[i] ? 1 : 3);
        kvtree *body = tops[i] ? kvtree_get(tree, tops[i]) : tree;
        assert_non_null(kvtree_getf(body, "LEVEL 0"));
        assert_non_null(kvtree_getf(body, "RANKS 1"));
        assert_non_null(kvtree_getf(body, "RANK 7 RANK 0 FILE foo_0.txt SIZE 1024"));

        kvtree_gather_part part;
        assert_int_equal(kvtree_gather_file_take(tree, tops[i], 0, &part, NULL), 0);
        assert_int_equal(part.level, 0);
        assert_int_equal(part.ranks, 1);
        kvtree *expected = sample_tree();
        assert_true(same_tree(kvtree_get(part.items, "7"), expected));
        kvtree_delete(&expected);
        kvtree_delete(&part.items);
        kvtree_delete(&tree);
    }
}

static void test_upper_level(void **state)
{
    kvtree *items = kvtree_new();
    assert_non_null(kvtree_set(items, "7", kvtree_gather_pointer("a/x.0.7.scr")));
    kvtree *tree = kvtree_gather_file_make("TOP", 1, 12, items);
    assert_non_null(kvtree_getf(tree, "LEVEL 1"));
    assert_non_null(kvtree_getf(tree, "RANKS 12"));
    assert_non_null(kvtree_getf(tree, "RANK 7 OFFSET 0"));
    kvtree_gather_part part;
    assert_int_equal(kvtree_gather_file_take(tree, "TOP", -1, &part, NULL), 0);
    assert_int_equal(part.level, 1);
    assert_int_equal(part.ranks, 12);
    assert_string_equal(kvtree_gather_pointed(kvtree_get(part.items, "7")),
                        "a/x.0.7.scr");
    kvtree_delete(&part.items);
    kvtree_delete(&tree);
}

/* What is refused stays as it was, and the outputs do, too. */
static void test_refused(void **state)
{
    char err[ERRTEXT_SIZE] = "";
    kvtree_gather_part part = {.level = 77};
    kvtree *items = kvtree_new();
    assert_non_null(kvtree_set(items, "7", kvtree_gather_pointer("../x")));
    kvtree *tree = kvtree_gather_file_make(NULL, 1, 12, items);
    assert_int_equal(kvtree_gather_file_take(tree, NULL, 1, &part, err), -EBADMSG);
    assert_string_equal(err, "reader 7: file name \"../x\" has a component \"..\"");
    assert_int_equal(part.level, 77);
    assert_int_equal(kvtree_size(kvtree_get(tree, "RANK")), 1);
    assert_int_equal(kvtree_gather_file_take(NULL, NULL, 0, &part, NULL), -EBADMSG);
    kvtree_delete(&tree);
}

/* The limit holds for any items that begin within a width, and two pointers always fit
 * within one. */
static void test_width(void **state)
{
    char name[BENEATH_NAME_MAX];
    static const char *const tops[] = {NULL, "T", "a top key that is longer than others"};
    for (int i = 0; i < 3; i++) {
        const uint64_t width = kvtree_gather_width("x.scr", tops[i], 5000, 0);
        for (int level = 0; level <= 1; level++) {
            kvtree *tree =
                kvtree_gather_file_make(tops[i], level, 2147483647, kvtree_new());
            assert_true(24 + kvtree_pack_size(tree) + 2 * width <= 5000);
            assert_true(24 + kvtree_pack_size(tree) + 2 * width > 4800);
            kvtree_delete(&tree);
        }
    }
    assert_true(kvtree_gather_width("x.scr", NULL, 0, 0) <= 1 << 19);
    assert_true(kvtree_gather_width("x.scr", NULL, 0, 0) >= (1 << 19) - 100);
    assert_int_equal(kvtree_gather_width("x.scr", NULL, 1, 0), 0);

    assert_int_equal(
        kvtree_gather_file_name("x.scr", KVTREE_GATHER_LEVEL_MAX, 2147483647, name), 0);
    kvtree *pointer = kvtree_gather_pointer(name);
    assert_true(2 * (kvtree_pack_size(pointer) + sizeof "2147483647") <=
                kvtree_gather_width("x.scr", NULL, 1, 1));
    kvtree_delete(&pointer);
}

static void test_size(void **state)
{
    char err[ERRTEXT_SIZE] = "";
    assert_int_equal(kvtree_gather_check_size(NULL, 1 << 20, err), 0);
    assert_int_equal(kvtree_gather_check_size(NULL, KVTREE_GATHER_FILE_MAX, err), -EFBIG);
    assert_string_equal(err, "a tree of 1073741824 bytes does not fit into a file");
}

static void test_open(void **state)
{
    char folder[] = "/tmp/kvtree-gather-XXXXXX", path[64], err[ERRTEXT_SIZE] = "";
    const char *name = NULL;
    int dir = -1;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x.scr", folder);
    assert_int_equal(folder_of(AT_FDCWD, path, 0, &dir, &name, err), 0);
    assert_string_equal(name, "x.scr");
    int fd = openat(dir, name, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0 && close(fd) == 0 && access(path, F_OK) == 0);
    assert_int_equal(kvtree_gather_remove_root(dir, name, err), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(kvtree_gather_remove_root(dir, name, err), 0);
    assert_int_equal(mkdirat(dir, name, 0700), 0);
    assert_int_equal(kvtree_gather_remove_root(dir, name, err), -EISDIR);
    assert_string_equal(err, "remove x.scr: Is a directory");
    assert_int_equal(rmdir(path), 0);
    close(dir);
    assert_int_equal(rmdir(folder), 0);

    assert_int_equal(folder_of(AT_FDCWD, path, 0, &dir, &name, err), -ENOENT);
    assert_int_equal(folder_of(AT_FDCWD, NULL, 0, &dir, &name, err), -EINVAL);
    assert_int_equal(folder_of(AT_FDCWD, "/x.scr", 0, &dir, &name, err), 0);
    assert_string_equal(name, "x.scr");
    close(dir);
    assert_int_equal(folder_of(AT_FDCWD, "x.scr", 0, &dir, &name, err), 0);
    assert_string_equal(name, "x.scr");
    close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),       cmocka_unit_test(test_lowest_level),
        cmocka_unit_test(test_upper_level), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_width),       cmocka_unit_test(test_size),
        cmocka_unit_test(test_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
