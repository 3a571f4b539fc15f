/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees and elements: position, ownership and order, at any width and depth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "build_tree.h"
#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>

static void check_keys(const kvtree *tree, const char *expected)
{
    char keys[256] = "";
    for (kvtree_elem *e = kvtree_elem_first(tree); e; e = kvtree_elem_next(e)) {
        strcat(keys, kvtree_elem_key(e));
        strcat(keys, " ");
        assert_ptr_equal(kvtree_elem_get(tree, kvtree_elem_key(e)), e);
    }
    assert_string_equal(keys, expected);
}

static void null_is_an_empty_tree(void **state)
{
    kvtree *none = NULL, *tree = kvtree_new();
    kvtree_elem *no_elem = NULL;
    assert_int_equal(kvtree_delete(NULL), 0);
    assert_int_equal(kvtree_delete(&none), 0);
    assert_int_equal(kvtree_elem_delete(&no_elem), 0);
    assert_null(kvtree_set(NULL, "a", tree));
    assert_null(kvtree_set(tree, NULL, NULL));
    assert_null(kvtree_get(NULL, "a"));
    assert_null(kvtree_get(tree, NULL));
    assert_int_equal(kvtree_unset(NULL, "a"), 0);
    assert_int_equal(kvtree_unset(tree, "not there"), 0);
    assert_int_equal(kvtree_unset_all(NULL), 0);
    assert_int_equal(kvtree_size(NULL), 0);
    assert_null(kvtree_extract(NULL, "a"));
    assert_null(kvtree_extract(tree, "a"));
    assert_int_equal(kvtree_merge(tree, NULL), 0);
    assert_int_equal(kvtree_size(tree), 0);
    assert_null(kvtree_elem_first(NULL));
    assert_null(kvtree_elem_next(NULL));
    assert_null(kvtree_elem_key(NULL));
    assert_null(kvtree_elem_hash(NULL));
    assert_int_equal(kvtree_elem_key_int(NULL), 0);
    assert_null(kvtree_elem_extract(NULL, "a"));
    assert_null(kvtree_set_kv(NULL, "a", "b"));
    assert_null(kvtree_set_kv(tree, "a", NULL));
    assert_null(kvtree_get_kv(NULL, "a", "b"));
    assert_int_equal(kvtree_unset_kv(NULL, "a", "b"), 0);
    assert_null(kvtree_get_val(NULL, "a"));
    assert_null(kvtree_elem_get_first_val(NULL, "a"));
    assert_int_equal(kvtree_size(tree), 0);
    kvtree_delete(&tree);
    assert_null(tree);
}

static void elements_keep_the_order_of_insertion(void **state)
{
    kvtree *tree = kvtree_new();
    check_keys(tree, "");
    for (const char *key = "fbxaq"; *key; key++)
        assert_non_null(kvtree_set(tree, (char[]){*key, 0}, NULL));
    check_keys(tree, "f b x a q ");
    kvtree_set(tree, "x", NULL);
    check_keys(tree, "f b x a q ");
    kvtree_unset(tree, "f");
    kvtree_unset(tree, "q");
    kvtree_unset(tree, "x");
    check_keys(tree, "b a ");
    kvtree_set(tree, "f", NULL);
    check_keys(tree, "b a f ");
    kvtree_unset_all(tree);
    check_keys(tree, "");
    kvtree_set(tree, "", NULL);
    assert_int_equal(kvtree_size(tree), 1);
    kvtree_delete(&tree);
}

static void set_replaces_and_owns(void **state)
{
    kvtree *tree = kvtree_new(), *first = kvtree_new(), *second = kvtree_new();
    kvtree_set(first, "1", NULL);
    kvtree_set(second, "2", NULL);
    assert_ptr_equal(kvtree_set(tree, "a", first), first);
    kvtree_elem *elem = kvtree_elem_get(tree, "a");
    assert_ptr_equal(kvtree_set(tree, "a", first), first);
    check_keys(kvtree_get(tree, "a"), "1 ");
    assert_ptr_equal(kvtree_set(tree, "a", second), second);
    assert_ptr_equal(kvtree_elem_get(tree, "a"), elem);
    check_keys(kvtree_get(tree, "a"), "2 ");
    /* the key may belong to the replaced tree */
    kvtree *inner = kvtree_set_kv(tree, "b", "a");
    assert_non_null(inner);
    assert_non_null(kvtree_set(tree, kvtree_get_val(tree, "b"), NULL));
    assert_int_equal(kvtree_size(kvtree_get(tree, "a")), 0);
    kvtree_delete(&tree);
}

static void a_tree_has_one_owner(void **state)
{
    kvtree *tree = kvtree_new(), *value = kvtree_new();
    kvtree_set_kv(value, "deep", "deeper");
    kvtree_set(tree, "a", value);
    assert_null(kvtree_set(tree, "b", value));
    assert_null(kvtree_set(tree, "b", tree));
    kvtree *below = kvtree_getf(tree, "a deep deeper");
    assert_null(kvtree_set(below, "b", tree));
    kvtree *inside = value;
    assert_int_equal(kvtree_delete(&inside), -EINVAL);
    assert_ptr_equal(inside, value);
    kvtree_elem *elem = kvtree_elem_get(tree, "a");
    assert_int_equal(kvtree_elem_delete(&elem), -EINVAL);
    assert_int_equal(kvtree_size(tree), 1);
    kvtree_delete(&tree);
}

static void extracted_values_live_on(void **state)
{
    kvtree *tree = kvtree_new(), *given = kvtree_new();
    kvtree_set_kv(tree, "made", "1"); /* a value inside its element */
    kvtree_set(tree, "given", given); /* and one from the caller */
    kvtree_set(given, "2", NULL);
    kvtree *made = kvtree_extract(tree, "made");
    assert_ptr_equal(kvtree_extract(tree, "given"), given);
    assert_int_equal(kvtree_size(tree), 0);
    kvtree_delete(&tree);
    check_keys(made, "1 ");
    check_keys(given, "2 ");
    assert_ptr_equal(kvtree_set(given, "again", made), made);
    check_keys(kvtree_get(given, "again"), "1 ");
    assert_non_null(kvtree_set(given, "again", NULL));
    check_keys(kvtree_get(given, "again"), "");
    made = kvtree_extract(given, "again");
    assert_int_equal(kvtree_delete(&made), 0);
    kvtree_delete(&given);
}

static void extracted_elements_are_the_callers(void **state)
{
    kvtree *tree = sample_tree();
    kvtree_elem *elem = kvtree_elem_extract(tree, "RANK");
    assert_int_equal(kvtree_size(tree), 0);
    assert_string_equal(kvtree_elem_key(elem), "RANK");
    assert_null(kvtree_elem_next(elem));
    check_keys(kvtree_elem_hash(elem), "0 1 ");
    kvtree_merge(tree, kvtree_elem_hash(elem));
    check_keys(tree, "0 1 ");
    assert_int_equal(kvtree_elem_delete(&elem), 0);
    assert_null(elem);
    kvtree_delete(&tree);
}

static void keys_as_numbers(void **state)
{
    static const struct {
        const char *key;
        int number;
    } cases[] = {
        {"7", 7},   {"-3", -3},         {"2147483647", INT_MAX},  {"2147483648", 0},
        {"7x", 0},  {"99999999999", 0}, {"-2147483648", INT_MIN}, {"", 0},
        {"rank", 0}};
    kvtree *tree = kvtree_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kvtree_set(tree, cases[i].key, NULL);
        assert_int_equal(kvtree_elem_key_int(kvtree_elem_get(tree, cases[i].key)),
                         cases[i].number);
    }
    kvtree_delete(&tree);
}

static void removing_others_during_a_walk(void **state)
{
    kvtree *tree = wide_tree(1000);
    int seen = 0;
    for (kvtree_elem *e = kvtree_elem_first(tree); e; e = kvtree_elem_next(e), seen++) {
        char other[32];
        int number = 0;
        assert_int_equal(sscanf(kvtree_elem_key(e), "key %d", &number), 1);
        snprintf(other, sizeof other, "key %d", number + 1);
        kvtree_unset(tree, other);
        snprintf(other, sizeof other, "key %d", number - 2);
        kvtree_unset(tree, other);
        kvtree_set(tree, kvtree_elem_key(e), NULL);
    }
    assert_int_equal(seen, 500);
    assert_int_equal(kvtree_size(tree), 1);
    check_keys(tree, "key 998 ");
    kvtree_delete(&tree);
}

/* Random operations, compared with a plain array, over the widths at which an index
 * appears and disappears. */
static void wide_trees_find_their_elements(void **state)
{
    enum { KEYS = 3000, STEPS = 60000 };
    static char there[KEYS];
    int count = 0;
    unsigned random = 1;
    kvtree *tree = kvtree_new();
    for (int step = 0; step < STEPS; step++) {
        char key[16];
        random = random * 1103515245u + 12345u;
        unsigned range = step % 20000 < 10000 ? KEYS : 12, n = (random >> 8) % range;
        snprintf(key, sizeof key, "%u", n);
        assert_int_equal(kvtree_get(tree, key) != NULL, there[n]);
        if (random >> 30 & 1) {
            assert_non_null(kvtree_set(tree, key, NULL));
            count += !there[n];
            there[n] = 1;
        } else {
            kvtree_unset(tree, key);
            count -= there[n];
            there[n] = 0;
        }
        assert_int_equal(kvtree_size(tree), count);
    }
    for (unsigned n = 0; n < KEYS; n++) {
        char key[16];
        snprintf(key, sizeof key, "%u", n);
        kvtree *value = kvtree_extract(tree, key);
        assert_int_equal(value != NULL, there[n]);
        kvtree_delete(&value);
    }
    assert_int_equal(kvtree_size(tree), 0);
    kvtree_delete(&tree);
}

/* A wide tree that has become narrow finds keys added later. */
static void narrow_again(void **state)
{
    char key[32];
    kvtree *tree = wide_tree(20);
    for (int i = 3; i < 20; i++) {
        snprintf(key, sizeof key, "key %d", i);
        assert_int_equal(kvtree_unset(tree, key), 0);
    }
    assert_non_null(kvtree_set(tree, "new", NULL));
    assert_non_null(kvtree_get(tree, "new"));
    assert_non_null(kvtree_set(tree, "new", NULL));
    check_keys(tree, "key 0 key 1 key 2 new ");
    assert_int_equal(kvtree_unset(tree, "new"), 0);
    check_keys(tree, "key 0 key 1 key 2 ");
    kvtree_delete(&tree);
}

static void a_hundred_thousand_children(void **state)
{
    enum { WIDTH = 100000 };
    kvtree *tree = wide_tree(WIDTH), *copy = kvtree_new();
    assert_int_equal(kvtree_size(tree), WIDTH);
    assert_int_equal(kvtree_merge(copy, tree), 0);
    assert_true(same_tree(tree, copy));
    int i = 0;
    char key[32];
    for (kvtree_elem *e = kvtree_elem_first(tree); e; e = kvtree_elem_next(e), i++) {
        snprintf(key, sizeof key, "key %d", i);
        assert_string_equal(kvtree_elem_key(e), key);
    }
    for (i = WIDTH - 1; i >= 0; i--) {
        snprintf(key, sizeof key, "key %d", i);
        kvtree *value = kvtree_extract(tree, key);
        assert_non_null(value);
        kvtree_delete(&value);
    }
    assert_int_equal(kvtree_size(tree), 0);
    kvtree_delete(&tree);
    kvtree_delete(&copy);
}

static void a_million_levels(void **state)
{
    enum { DEPTH = 1000000 };
    kvtree *tree = deep_tree(DEPTH), *copy = kvtree_new(), *side = kvtree_new();
    assert_int_equal(kvtree_pack_size(tree), 4 + DEPTH * 6);
    kvtree_set_kv(copy, "other", "1");
    assert_int_equal(kvtree_merge(copy, tree), 0);
    assert_int_equal(kvtree_merge(copy, tree), 0);
    assert_int_equal(kvtree_pack_size(kvtree_get(copy, "x")), 4 + (DEPTH - 1) * 6);
    assert_int_equal(kvtree_set(side, "side", tree) == tree, 1);
    assert_int_equal(kvtree_unset(side, "side"), 0);
    kvtree_delete(&side);
    kvtree_delete(&copy);
}

/* Does a merge, key by key. */
static void add_one_by_one(kvtree *tree, const kvtree *source)
{
    for (kvtree_elem *e = kvtree_elem_first(source); e; e = kvtree_elem_next(e)) {
        kvtree *value = kvtree_get(tree, kvtree_elem_key(e));
        if (!value) value = kvtree_set(tree, kvtree_elem_key(e), NULL);
        add_one_by_one(value, kvtree_elem_hash(e));
    }
}

static kvtree *random_tree(unsigned *random)
{
    kvtree *tree = kvtree_new();
    *random = *random * 1103515245u + 12345u;
    for (unsigned left = *random >> 8 & 63; left > 0; left--) {
        unsigned path = *random = *random * 1103515245u + 12345u;
        kvtree_setf(tree, NULL, "%d %d %d", (int)(path >> 8 & 15), (int)(path >> 12 & 3),
                    (int)(path >> 16 & 15));
    }
    return tree;
}

/* Trees of up to 16 keys on three levels, with any part in common. */
static void merge_is_adding_one_by_one(void **state)
{
    unsigned random = 1;
    for (int i = 0; i < 3000; i++) {
        kvtree *source = random_tree(&random), *merged = random_tree(&random);
        kvtree *expected = kvtree_new();
        add_one_by_one(expected, merged);
        add_one_by_one(expected, source);
        assert_int_equal(kvtree_merge(merged, source), 0);
        assert_true(same_tree(merged, expected));
        assert_int_equal(kvtree_merge(merged, source), 0);
        assert_true(same_tree(merged, expected));
        kvtree_delete(&source);
        kvtree_delete(&merged);
        kvtree_delete(&expected);
    }
}

static void merge_adds_and_keeps(void **state)
{
    kvtree *a = sample_tree(), *b = kvtree_new(), *c = sample_tree();
    kvtree_setf(b, NULL, "RANK 1 FILE bar SIZE 9");
    kvtree_setf(b, NULL, "RANK 2");
    kvtree_setf(b, NULL, "NEW");
    assert_int_equal(kvtree_merge(a, b), 0);
    check_keys(a, "RANK NEW ");
    check_keys(kvtree_get(a, "RANK"), "0 1 2 ");
    check_keys(kvtree_getf(a, "RANK 1 FILE"), "foo_1.txt bar ");
    check_keys(kvtree_getf(a, "RANK 1 FILE bar SIZE"), "9 ");
    check_keys(kvtree_getf(a, "RANK 1 FILE foo_1.txt SIZE"), "2048 ");
    assert_int_equal(kvtree_merge(c, c), 0);
    kvtree *below = kvtree_getf(c, "RANK 1");
    assert_int_equal(kvtree_merge(c, below), -EINVAL);
    assert_int_equal(kvtree_merge(below, c), -EINVAL);
    assert_int_equal(kvtree_merge(NULL, c), -EINVAL);
    kvtree *fresh = sample_tree();
    assert_true(same_tree(c, fresh));
    kvtree_delete(&fresh);
    kvtree_delete(&a);
    kvtree_delete(&b);
    kvtree_delete(&c);
}

/* Returns the bytes that this program uses. */
static size_t memory_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* For a copy into an empty tree, as much is known in advance as for packed bytes, at
 * widths that take less than a block, one, and several. */
static void a_copy_takes_no_more_memory_than_unpacking(void **state)
{
    for (int width = 10; width < 200000; width = width * 7 / 2) {
        kvtree *tree = wide_tree(width), *copy = kvtree_new(), *unpacked = kvtree_new();
        size_t size = kvtree_pack_size(tree), before;
        char *bytes = malloc(size);
        assert_int_equal(kvtree_pack(bytes, tree), size);
        before = memory_in_use();
        assert_int_equal(kvtree_unpack_n(bytes, size, unpacked), size);
        size_t by_unpacking = memory_in_use() - before;
        kvtree_delete(&unpacked);
        before = memory_in_use();
        assert_int_equal(kvtree_merge(copy, tree), 0);
        assert_true(memory_in_use() - before <= by_unpacking + 1024);
        assert_true(same_tree(tree, copy));
        kvtree_delete(&copy);
        kvtree_delete(&tree);
        free(bytes);
    }
}

static void two_keys_as_key_and_value(void **state)
{
    kvtree *tree = kvtree_new();
    kvtree *zero = kvtree_set_kv_int(tree, "RANK", 0);
    assert_ptr_equal(kvtree_set_kv(tree, "RANK", "0"), zero);
    assert_ptr_equal(kvtree_get_kv_int(tree, "RANK", 0), zero);
    assert_null(kvtree_get_kv(tree, "RANK", "1"));
    assert_null(kvtree_get_kv(tree, "rank", "0"));
    assert_string_equal(kvtree_get_val(tree, "RANK"), "0");
    kvtree_set_kv_int(tree, "RANK", INT_MIN);
    assert_null(kvtree_get_val(tree, "RANK"));
    assert_string_equal(kvtree_elem_get_first_val(tree, "RANK"), "0");
    check_keys(kvtree_get(tree, "RANK"), "0 -2147483648 ");
    kvtree_unset_kv(tree, "RANK", "5");
    kvtree_unset_kv_int(tree, "RANK", 0);
    check_keys(kvtree_get(tree, "RANK"), "-2147483648 ");
    kvtree_unset_kv_int(tree, "RANK", INT_MIN);
    check_keys(tree, "");
    kvtree_delete(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_an_empty_tree),
        cmocka_unit_test(elements_keep_the_order_of_insertion),
        cmocka_unit_test(set_replaces_and_owns),
        cmocka_unit_test(a_tree_has_one_owner),
        cmocka_unit_test(extracted_values_live_on),
        cmocka_unit_test(extracted_elements_are_the_callers),
        cmocka_unit_test(keys_as_numbers),
        cmocka_unit_test(removing_others_during_a_walk),
        cmocka_unit_test(wide_trees_find_their_elements),
        cmocka_unit_test(narrow_again),
        cmocka_unit_test(a_hundred_thousand_children),
        cmocka_unit_test(a_million_levels),
        cmocka_unit_test(merge_is_adding_one_by_one),
        cmocka_unit_test(merge_adds_and_keeps),
        cmocka_unit_test(a_copy_takes_no_more_memory_than_unpacking),
        cmocka_unit_test(two_keys_as_key_and_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
