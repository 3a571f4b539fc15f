/* SPDX-License-Identifier: BSD-3-Clause */
/* Packed trees: the documented bytes, and bytes of any other origin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "build_tree.h"
#include "src/kvtree_gather_private.h"
#include "src/kvtree_private.h"
#include <cmocka.h>
#include <errno.h>

/* Unpacks from memory of exactly this size, so that a sanitizer sees any read beyond. */
static ssize_t unpack_exactly(const char *bytes, size_t size, kvtree *tree,
                              kvtree_error *err)
{
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    ssize_t used = kvtree_unpack_err(copy, size, tree, err);
    free(copy);
    return used;
}

static char *packed(const kvtree *tree, size_t *size)
{
    *size = kvtree_pack_size(tree);
    char *bytes = malloc(*size);
    assert_int_equal(kvtree_pack(bytes, tree), *size);
    return bytes;
}

static void the_documented_bytes(void **state)
{
    static const char expected[] = "\0\0\0\2"
                                   "AB\0\0\0\0\1"
                                   "c\0\0\0\0\0"
                                   "\0\0\0\0";
    char bytes[sizeof expected];
    kvtree *tree = kvtree_new(), *back = kvtree_new();
    kvtree_set_kv(tree, "AB", "c");
    kvtree_set(tree, "", NULL);
    assert_int_equal(kvtree_pack_size(tree), sizeof expected);
    assert_int_equal(kvtree_pack(bytes, tree), sizeof expected);
    assert_memory_equal(bytes, expected, sizeof expected);
    assert_int_equal(kvtree_unpack(bytes, back), sizeof expected);
    assert_true(same_tree(tree, back));
    assert_int_equal(kvtree_pack_size(NULL), 4);
    assert_int_equal(kvtree_pack(bytes, NULL), 4);
    assert_memory_equal(bytes, "\0\0\0", 4);
    kvtree_delete(&tree);
    kvtree_delete(&back);
}

static void any_shape_comes_back(void **state)
{
    kvtree *shapes[] = {kvtree_new(), sample_tree(), wide_tree(100000),
                        deep_tree(1000000)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t size;
        char *bytes = packed(shapes[i], &size);
        kvtree *back = kvtree_new();
        assert_int_equal(unpack_exactly(bytes, size, back, NULL), size);
        assert_true(same_tree(shapes[i], back));
        assert_int_equal(kvtree_unpack_n(bytes, size, back),
                         kvtree_size(back) ? -EINVAL : (int)size);
        assert_true(same_tree(shapes[i], back));
        kvtree_delete(&back);
        kvtree_delete(&shapes[i]);
        free(bytes);
    }
}

static void bytes_behind_the_tree_are_left(void **state)
{
    size_t size;
    kvtree *tree = sample_tree(), *back = kvtree_new();
    char *bytes = packed(tree, &size), *more = calloc(1, size + 3);
    memcpy(more, bytes, size);
    assert_int_equal(kvtree_unpack_n(more, size + 3, back), size);
    assert_true(same_tree(tree, back));
    free(bytes);
    free(more);
    kvtree_delete(&tree);
    kvtree_delete(&back);
}

static void each_damage_has_its_text(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } cases[] = {
        {"", 0, "ends within the count at byte 0"},
        {"\0\0\0", 3, "ends within the count at byte 0"},
        {"\0\0\0\1", 4, "count 1 at byte 0 is more than 0 bytes"},
        {"\xff\xff\xff\xff"
         "a\0\0\0\0",
         9, "count 4294967295 at byte 0 is more than 5"},
        {"\0\0\0\2"
         "a\0\0\0\0\0",
         10, "count 2 at byte 0 is more than 6 bytes"},
        {"\0\0\0\1"
         "abcdefgh",
         12, "key at byte 4 has no end"},
        {"\0\0\0\1"
         "abcd\0\0\0",
         11, "ends within the count at byte 9"},
        {"\0\0\0\2"
         "a\0\0\0\0\0"
         "a\0\0\0\0\0",
         16, "key at byte 10 is there for the"},
        {"\0\0\0\1"
         "a\0\0\0\0\1"
         "b\0\0\0\0",
         15, "ends within the count at byte 12"},
        /* the inner count claims bytes already claimed by the outer count */
        {"\0\0\0\2"
         "a\0\0\0\0\1"
         "b\0\0\0\0\0"
         "\0\0\0",
         19, "count 1 at byte 6"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kvtree_error err = {""};
        kvtree *tree = kvtree_new();
        assert_int_equal(unpack_exactly(cases[i].bytes, cases[i].size, tree, &err),
                         -EBADMSG);
        if (!strstr(err.text, cases[i].text))
            fail_msg("\"%s\" lacks \"%s\"", err.text, cases[i].text);
        assert_int_equal(kvtree_unpack_n(cases[i].bytes, cases[i].size, tree), -EBADMSG);
        assert_int_equal(kvtree_size(tree), 0);
        kvtree_delete(&tree);
    }
    kvtree *tree = kvtree_new();
    assert_int_equal(kvtree_unpack_n(NULL, 10, tree), -EINVAL);
    assert_int_equal(kvtree_unpack_n("\0\0\0", 4, NULL), -EINVAL);
    assert_int_equal(kvtree_pack(NULL, tree), 0);
    kvtree_delete(&tree);
}

/* Packs the numbers of keys, with the number at `second` in place of that at `first`. */
static size_t pack_numbers(char *bytes, const int *keys, int count, int first, int second)
{
    char *p = kvtree_put32(bytes, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        int n = sprintf(p, "%d", keys[i == second ? first : i]);
        p = kvtree_put32(p + n + 1, 0);
    }
    return (size_t)(p - bytes);
}

static void check_repetitions(const int *keys, int count)
{
    char bytes[512];
    kvtree_error err;
    kvtree *tree = kvtree_new();
    for (int second = 0; second < count; second++)
        for (int first = 0; first < second; first++) {
            size_t size = pack_numbers(bytes, keys, count, first, second);
            assert_int_equal(unpack_exactly(bytes, size, tree, &err), -EBADMSG);
            assert_non_null(strstr(err.text, "for the second time"));
        }
    size_t size = pack_numbers(bytes, keys, count, -1, -1);
    assert_int_equal(unpack_exactly(bytes, size, tree, &err), size);
    for (int i = 0; i < count; i++)
        assert_non_null(kvtree_getf(tree, "%d", keys[i]));
    kvtree_delete(&tree);
}

/* A repeated key at any two places, in trees of any width whose keys ascend, descend, or
 * do neither. */
static void no_key_comes_twice(void **state)
{
    int up[40], down[40], mixed[40];
    for (int width = 1; width <= 40; width++) {
        for (int i = 0; i < width; i++) {
            up[i] = i;
            down[width - 1 - i] = i;
            mixed[i] = i * 7 % 41;
        }
        check_repetitions(up, width);
        check_repetitions(down, width);
        check_repetitions(mixed, width);
    }
}

static void every_truncation_is_refused(void **state)
{
    size_t size;
    kvtree *tree = sample_tree(), *back = kvtree_new();
    char *bytes = packed(tree, &size);
    for (size_t cut = 0; cut < size; cut++) {
        assert_int_equal(unpack_exactly(bytes, cut, back, NULL), -EBADMSG);
        assert_int_equal(kvtree_size(back), 0);
    }
    free(bytes);
    kvtree_delete(&tree);
    kvtree_delete(&back);
}

/* A changed byte may yield another valid tree, which must pack to those bytes. */
static void check_mutant(const char *bytes, size_t size)
{
    kvtree *tree = kvtree_new();
    ssize_t used = unpack_exactly(bytes, size, tree, NULL);
    if (used < 0) {
        assert_int_equal(used, -EBADMSG);
        assert_int_equal(kvtree_size(tree), 0);
    } else {
        size_t again;
        char *copy = packed(tree, &again);
        assert_int_equal(again, used);
        assert_memory_equal(copy, bytes, again);
        free(copy);
    }
    kvtree_delete(&tree);
}

static void changed_bytes_do_no_harm(void **state)
{
    size_t size;
    unsigned random = 7;
    kvtree *tree = sample_tree();
    char *bytes = packed(tree, &size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        check_mutant(bytes, size);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (int i = 0; i < 20000; i++) {
        random = random * 1103515245u + 12345u;
        bytes[(random >> 16) % size] = (char)(random >> 8 & (i % 3 ? 0xff : 1));
        if (i % 50 == 0) kvtree_pack(bytes, tree);
        check_mutant(bytes, size);
    }
    free(bytes);
    kvtree_delete(&tree);
}

/* The number of levels is bounded (here by a lower bound), when reading ... */
static void too_many_levels_are_refused(void **state)
{
    size_t size;
    kvtree_error err = {""};
    kvtree *tree = deep_tree(100), *back = kvtree_new();
    char *bytes = packed(tree, &size);
    assert_int_equal(kvtree_unpack_within(bytes, size, back, 99, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "more than 99 levels at byte 598"));
    assert_int_equal(kvtree_size(back), 0);
    assert_int_equal(kvtree_unpack_within(bytes, size, back, 100, &err), size);
    assert_true(same_tree(tree, back));
    free(bytes);
    kvtree_delete(&tree);
    kvtree_delete(&back);
}

/* Packs a tree below the levels of a file of many ranks. */
static void pack_for_file(const kvtree *tree, const char *top, int expected)
{
    const kvtree_gather_place to = {-1, "x", top, 0, 0};
    kvtree_gather_item item = {NULL, 0};
    kvtree_error err = {""};
    uint64_t room;
    assert_int_equal(kvtree_gather_pack(&to, 0, 1, tree, &item, &room, &err), expected);
    assert_int_equal(!item.bytes, expected != 0);
    if (expected) assert_non_null(strstr(err.text, " levels: more than 41943"));
    free(item.bytes);
}

static const kvtree *first_value(const kvtree *tree)
{
    return kvtree_elem_hash(kvtree_elem_first(tree));
}

/* ... and when writing: a tree that no reader accepts is not written. */
static void too_many_levels_are_not_written(void **state)
{
    kvtree_error err = {""};
    kvtree *tree = deep_tree(KVTREE_DEPTH_MAX + 1);
    assert_int_equal(kvtree_fd_write(-1, KVTREE_ANY_SIZE, tree, &err), -EOVERFLOW);
    assert_non_null(strstr(err.text, "4194305 levels"));
    const kvtree *less = first_value(first_value(tree)); /* KVTREE_DEPTH_MAX - 1 */
    pack_for_file(less, NULL, -EOVERFLOW);
    pack_for_file(first_value(less), NULL, 0);
    pack_for_file(first_value(less), "TOP", -EOVERFLOW);
    pack_for_file(first_value(first_value(less)), "TOP", 0);
    kvtree_delete(&tree);
}

/* Pieces of any size make up the same bytes. */
static void pieces_make_up_the_bytes(void **state)
{
    size_t size;
    kvtree *tree = sample_tree();
    char *bytes = packed(tree, &size), *copy = malloc(size + 1);
    for (size_t piece = 1; piece <= size + 1; piece++) {
        struct kvtree_packer packer = {.tree = tree};
        size_t used = 0, n;
        while (
            (n = kvtree_packer_next(&packer, copy + used,
                                    piece < size + 1 - used ? piece : size + 1 - used)))
            used += n;
        assert_true(packer.end);
        assert_int_equal(used, size);
        assert_memory_equal(copy, bytes, size);
    }
    free(bytes);
    free(copy);
    kvtree_delete(&tree);
}

/* Unpacked elements share memory, and outlive each other in any order. */
static void unpacked_elements_go_one_by_one(void **state)
{
    size_t size;
    char key[32], *big = malloc(40000);
    kvtree *tree = wide_tree(5000), *back = kvtree_new(), *kept[50];
    memset(big, 'k', 40000);
    big[39999] = 0;
    assert_non_null(kvtree_set_kv(tree, "key 7", big));
    char *bytes = packed(tree, &size);
    assert_int_equal(kvtree_unpack_n(bytes, size, back), size);
    assert_true(same_tree(tree, back));
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "key %d", i * 7 % 5000);
        if (i % 100 == 0)
            assert_non_null(kept[i / 100] = kvtree_extract(back, key));
        else
            assert_int_equal(kvtree_unset(back, key), 0);
    }
    assert_int_equal(kvtree_size(back), 0);
    kvtree_delete(&back);
    for (int i = 0; i < 50; i++) {
        assert_non_null(kvtree_set_kv(kept[i], "still", "here"));
        kvtree_delete(&kept[i]);
    }
    free(bytes);
    free(big);
    kvtree_delete(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_bytes),
        cmocka_unit_test(any_shape_comes_back),
        cmocka_unit_test(bytes_behind_the_tree_are_left),
        cmocka_unit_test(each_damage_has_its_text),
        cmocka_unit_test(no_key_comes_twice),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(changed_bytes_do_no_harm),
        cmocka_unit_test(too_many_levels_are_refused),
        cmocka_unit_test(too_many_levels_are_not_written),
        cmocka_unit_test(pieces_make_up_the_bytes),
        cmocka_unit_test(unpacked_elements_go_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
