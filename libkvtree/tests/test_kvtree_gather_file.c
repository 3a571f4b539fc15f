/* SPDX-License-Identifier: BSD-3-Clause */
/* One of the files that hold the trees of many ranks, built and taken apart without MPI.
 * test_kvtree_scatter_mpi.c has more refused files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "build_tree.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/record_size.h"
#include "scratch.h"
#include "src/kvtree_gather_private.h"
#include "src/kvtree_private.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int place = -1; /* an open directory */

static int open_place(void **state)
{
    place = make_folder(state) == 0 ? open(folder, O_RDONLY | O_DIRECTORY) : -1;
    return place < 0;
}

static int close_place(void **state)
{
    close(place);
    return remove_folder(state);
}

static void test_names(void **state)
{
    char name[BENEATH_NAME_MAX], large[BENEATH_NAME_MAX];
    assert_int_equal(kvtree_gather_file_name(".scr/rank2file.scr", 0, 12, name), 0);
    assert_string_equal(name, ".scr/rank2file.0.12.scr");
    assert_int_equal(kvtree_gather_file_name("map", 3, 4, name), 0);
    assert_string_equal(name, "map.3.4");
    assert_int_equal(kvtree_gather_file_name(".scr", 3, 4, name), 0);
    assert_string_equal(name, ".scr.3.4");
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    assert_int_equal(kvtree_gather_file_name(large, 0, 0, name), -ENAMETOOLONG);
}

/* Unpacks an item into its tree, and frees the item. */
static kvtree *unpacked(kvtree_gather_item item)
{
    kvtree *tree = kvtree_new();
    assert_int_equal(kvtree_unpack_merge(item.bytes + 4, item.size - 4, tree, NULL), 0);
    free(item.bytes);
    return tree;
}

static void check_pointer(const kvtree_gather_place *to, int level, const char *name)
{
    kvtree_gather_item item;
    kvtree_error err = {""};
    uint64_t room;
    assert_int_equal(kvtree_gather_pack_pointer(to, level, 7, 5, &item, &room, &err), 0);
    assert_int_equal(room, strlen("7") + 1 + item.size - 4);
    assert_int_equal(kvtree_get32(item.bytes), 5);
    kvtree *pointer = unpacked(item);
    assert_non_null(kvtree_getf(pointer, "OFFSET 0"));
    assert_non_null(kvtree_getf(pointer, "FILE %s", name));
    kvtree_delete(&pointer);
}

/* Writes the tree of rank 7 to a file, and reads that. */
static kvtree *written(const kvtree_gather_place *to, int level, int ranks, kvtree *value)
{
    char name[BENEATH_NAME_MAX];
    kvtree_error err = {""};
    kvtree_gather_group group = {0};
    kvtree_gather_item item, short_one = {malloc(7), 7}, none = {NULL, 0};
    kvtree *tree = kvtree_new();
    uint64_t room;
    assert_int_equal(kvtree_gather_pack(to, 7, ranks, value, &item, &room, &err), 0);
    kvtree_delete(&value);
    assert_int_equal(kvtree_gather_group_add(&group, 7, item), 0);
    assert_int_equal(kvtree_gather_group_add(&group, 7, short_one), -EBADMSG);
    assert_int_equal(kvtree_gather_group_add(&group, 7, none), -EBADMSG);
    assert_int_equal(kvtree_gather_group_write(&group, to, level, 7, level == 2, &err),
                     0);
    assert_int_equal(kvtree_gather_file_name(to->name, level, 7, name), 0);
    assert_true(group.count == 0 && !group.members && group.ranks == 0);
    check_pointer(to, level, name);
    if (level == 2) snprintf(name, sizeof name, "%s", to->name);
    assert_int_equal(kvtree_file_read(to->dir, name, KVTREE_ANY_SIZE, tree, &err), 0);
    return tree;
}

static kvtree *pointer_to(const char *name)
{
    kvtree *pointer = kvtree_new();
    kvtree_set_kv(pointer, "OFFSET", "0");
    kvtree_set_kv(pointer, "FILE", name);
    return pointer;
}

/* The keys of the documented samples. */
static void test_lowest_level(void **state)
{
    static const char *const tops[] = {NULL, "RANK2FILE"};
    for (int i = 0; i < 2; i++) {
        const kvtree_gather_place to = {place, "x.scr", tops[i], 0, 0};
        kvtree *tree = written(&to, 0, 1, sample_tree());
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
    const kvtree_gather_place to = {place, "x.scr", "TOP", 0, 0};
    for (int level = 1; level <= 2; level++) { /* at 2 the root */
        kvtree *tree = written(&to, level, 12, pointer_to("a/x.0.7.scr"));
        assert_non_null(kvtree_getf(tree, "LEVEL %d", level));
        assert_non_null(kvtree_getf(tree, "RANKS 12"));
        assert_non_null(kvtree_getf(tree, "RANK 7 OFFSET 0"));
        kvtree_gather_part part;
        assert_int_equal(kvtree_gather_file_take(tree, "TOP", -1, &part, NULL), 0);
        assert_int_equal(part.level, level);
        assert_int_equal(part.ranks, 12);
        assert_non_null(kvtree_getf(part.items, "7 FILE a/x.0.7.scr"));
        kvtree_delete(&part.items);
        kvtree_delete(&tree);
    }
}

/* A refused tree is unchanged, and so are the outputs. */
static void test_refused(void **state)
{
    const kvtree_gather_place to = {place, "x.scr", NULL, 0, 0};
    kvtree_error err = {""};
    kvtree_gather_part part = {.level = 77};
    kvtree *tree = written(&to, 1, 12, pointer_to("../x"));
    assert_int_equal(kvtree_gather_file_take(tree, NULL, 1, &part, &err), -EBADMSG);
    assert_string_equal(err.text, "reader 7: file name \"../x\" has a component \"..\"");
    assert_int_equal(part.level, 77);
    assert_int_equal(kvtree_size(kvtree_get(tree, "RANK")), 1);
    assert_int_equal(kvtree_gather_file_take(NULL, NULL, 0, &part, NULL), -EBADMSG);
    kvtree_delete(&tree);
}

static uint64_t width_of(const char *top, size_t limit, int level)
{
    return kvtree_gather_width(&(kvtree_gather_place){-1, "x.scr", top, limit, 0}, level);
}

/* The limit holds for any items that begin within a width, and two pointers always fit
 * into a width. */
static void test_width(void **state)
{
    char name[BENEATH_NAME_MAX];
    static const char *const tops[] = {NULL, "T", "a top key that is longer than others"};
    for (int i = 0; i < 3; i++) {
        const uint64_t width = width_of(tops[i], 5000, 0);
        const kvtree_gather_place to = {place, "x.scr", tops[i], 5000, 0};
        for (int level = 0; level <= 1; level++) {
            kvtree *tree = written(&to, level, 2147483647, pointer_to("x"));
            kvtree *body = level == 0 && tops[i] ? kvtree_get(tree, tops[i]) : tree;
            kvtree_unset_all(kvtree_get(body, "RANK"));
            assert_true(24 + kvtree_pack_size(tree) + 2 * width <= 5000);
            assert_true(24 + kvtree_pack_size(tree) + 2 * width > 4800);
            kvtree_delete(&tree);
        }
    }
    assert_true(width_of(NULL, 0, 0) <= 1 << 19);
    assert_true(width_of(NULL, 0, 0) >= (1 << 19) - 100);
    assert_int_equal(width_of(NULL, 1, 0), 0);

    assert_int_equal(
        kvtree_gather_file_name("x.scr", KVTREE_GATHER_LEVEL_MAX, 2147483647, name), 0);
    kvtree *pointer = pointer_to(name);
    assert_true(2 * (kvtree_pack_size(pointer) + sizeof "2147483647") <=
                width_of(NULL, 1, 1));
    kvtree_delete(&pointer);
}

static void test_size(void **state)
{
    kvtree_error err = {""};
    assert_int_equal(kvtree_gather_check_size(NULL, 1 << 20, &err), 0);
    assert_int_equal(kvtree_gather_check_size(NULL, RECORD_SIZE_FILES, &err), -EFBIG);
    assert_string_equal(err.text, "a tree of 268435456 bytes does not fit into a file");
}

static void test_open(void **state)
{
    char below[] = "/tmp/kvtree-gather-XXXXXX", path[64];
    kvtree_error err = {""};
    const char *name = NULL;
    int dir = -1;
    assert_non_null(mkdtemp(below));
    snprintf(path, sizeof path, "%s/x.scr", below);
    assert_int_equal(folder_of(AT_FDCWD, path, 0, &dir, &name, &err), 0);
    assert_string_equal(name, "x.scr");
    int fd = openat(dir, name, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0 && close(fd) == 0 && access(path, F_OK) == 0);
    assert_int_equal(beneath_unlink_durable(dir, name, &err), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(beneath_unlink_durable(dir, name, &err), 0);
    assert_int_equal(mkdirat(dir, name, 0700), 0);
    assert_int_equal(beneath_unlink_durable(dir, name, &err), -EISDIR);
    assert_string_equal(err.text, "remove x.scr: Is a directory");
    assert_int_equal(rmdir(path), 0);
    close(dir);
    assert_int_equal(rmdir(below), 0);

    assert_int_equal(folder_of(AT_FDCWD, path, 0, &dir, &name, &err), -ENOENT);
    assert_int_equal(folder_of(AT_FDCWD, NULL, 0, &dir, &name, &err), -EINVAL);
    assert_int_equal(folder_of(AT_FDCWD, "/x.scr", 0, &dir, &name, &err), 0);
    assert_string_equal(name, "x.scr");
    close(dir);
    assert_int_equal(folder_of(AT_FDCWD, "x.scr", 0, &dir, &name, &err), 0);
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
    return cmocka_run_group_tests(tests, open_place, close_place);
}
