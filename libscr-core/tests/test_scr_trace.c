/* SPDX-License-Identifier: BSD-3-Clause */
/* What flushes leave: the folder that all of it lies below, and what files say of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "prefix/index.h"
#include "prefix/trace.h"
#include "records.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <string.h>

static void below(void **state)
{
    static const struct {
        const char *dataset, *name, *below;
    } all[] = {
        {"a", "a/x", "a"},         {"a", "a/b/x", "a"},
        {"a", "b/x", ""},          {"a", "x", ""},
        {"a", "ab/x", ""},         {"ab", "a/x", ""},
        {"a/b", "a/b/x", "a/b"},   {"a/b", "a/x", "a"},
        {"a/b", "a/bc/x", "a"},    {"a/bc", "a/b/x", "a"},
        {"a/b", "a/c/b/x", "a"},   {"a/b/c", "a/b/d/x", "a/b"},
        {"a/b/c", "a/x/c/x", "a"}, {"a/b/c", "b/b/c/x", ""},
        {"a/b", "a/b", "a"},       {"out/c1", "out/rank/3", "out"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t n = scr_trace_below(all[i].dataset, all[i].name);
        if (n != strlen(all[i].below) || strncmp(all[i].dataset, all[i].below, n) != 0)
            fail_msg("%s, %s: %zu", all[i].dataset, all[i].name, n);
    }
}

static void written_and_read(void **state)
{
    kvtree *tree = kvtree_new();
    scr_trace t = {.id = 0xc0ffee}, back;
    assert_null(scr_trace_first(tree));
    assert_non_null(scr_trace_enter(tree, &t));
    strcpy(t.below, "a/b");
    t.id = UINT64_MAX;
    assert_non_null(scr_trace_enter(tree, &t));
    assert_tree(tree, "FLUSH\n  0000000000c0ffee\n    BELOW\n      .\n"
                      "  ffffffffffffffff\n    BELOW\n      a/b\n");
    const kvtree_elem *e = scr_trace_first(tree);
    assert_int_equal(scr_trace_read(e, "a/b/c", &back), 0);
    assert_true(back.id == 0xc0ffee);
    assert_string_equal(back.below, "");
    assert_int_equal(scr_trace_read(kvtree_elem_next(e), "a/b/c", &back), 0);
    assert_true(back.id == UINT64_MAX);
    assert_string_equal(back.below, "a/b");
    scr_trace_remove(tree, 0xc0ffef);
    scr_trace_remove(tree, 0xc0ffee);
    assert_int_equal(kvtree_size(kvtree_get(tree, "FLUSH")), 1);
    scr_trace_clear(tree);
    assert_int_equal(kvtree_size(tree), 0);
    kvtree_delete(&tree);
    assert_null(scr_trace_enter(NULL, &t));
}

/* Nothing outside of the dataset's own way is ever searched. */
static void hostile(void **state)
{
    static const struct {
        const char *id, *below;
        int rc;
    } all[] = {
        {"0000000000c0ffee", NULL, 0},
        {"0000000000c0ffee", ".", 0},
        {"0000000000c0ffee", "a", 0},
        {"0000000000c0ffee", "a/b", 0},
        {"0000000000c0ffee", "a/b/c", -EBADMSG},
        {"0000000000c0ffee", "a/", -EBADMSG},
        {"0000000000c0ffee", "", -EBADMSG},
        {"0000000000c0ffee", "/", -EBADMSG},
        {"0000000000c0ffee", "..", -EBADMSG},
        {"0000000000c0ffee", "a/..", -EBADMSG},
        {"0000000000c0ffee", "/a", -EBADMSG},
        {"0000000000c0ffee", "b", -EBADMSG},
        {"0000000000c0ffee", "./a", -EBADMSG},
        {"0000000000000000", ".", -EBADMSG},
        {"c0ffee", ".", -EBADMSG},
        {"0000000000C0FFEE", ".", -EBADMSG},
        {"", ".", -EBADMSG},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        kvtree *tree = kvtree_new(), *at = kvtree_set_kv(tree, "FLUSH", all[i].id);
        scr_trace t = {.id = 77};
        if (all[i].below) assert_non_null(kvtree_set_kv(at, "BELOW", all[i].below));
        if (scr_trace_read(scr_trace_first(tree), "a/b", &t) != all[i].rc ||
            (all[i].rc && t.id != 77))
            fail_msg("%s %s", all[i].id, all[i].below);
        if (!all[i].below) assert_string_equal(t.below, "a/b");
        kvtree_delete(&tree);
    }
}

static scr_dataset dataset_of(int id, const char *name)
{
    scr_dataset d = {.id = id, .ckpt = id, .created = id, .ranks = 1, .complete = 1};
    snprintf(d.name, sizeof d.name, "%s", name);
    return d;
}

/* Till the dataset is complete, also beside an earlier one of its name. */
static void in_the_index(void **state)
{
    kvtree *index = kvtree_new();
    scr_dataset d = dataset_of(1, "a"), newer = dataset_of(2, "a"), found;
    scr_trace t = {.id = 7, .below = "a"}, back;
    assert_int_equal(scr_index_set_trace(index, &d, &t), -ENOENT);
    assert_int_equal(scr_index_add(index, &d, 1), 0);
    assert_int_equal(scr_index_get_trace(index, 0, &found, &back), -ENOENT);
    assert_int_equal(scr_index_add(index, &newer, 0), 0);
    assert_int_equal(scr_index_set_trace(index, &newer, &t), 0);
    t = (scr_trace){.id = 8};
    assert_int_equal(scr_index_set_trace(index, &newer, &t), 0);
    assert_int_equal(scr_index_get_trace(index, 0, &found, &back), 0);
    assert_true(found.id == 2 && back.id == 7 && strcmp(back.below, "a") == 0);
    assert_int_equal(scr_index_get_trace(index, 1, &found, &back), 0);
    assert_true(found.id == 2 && back.id == 8 && !*back.below);
    assert_int_equal(scr_index_get_trace(index, 2, &found, &back), -ENOENT);
    assert_int_equal(scr_index_add(index, &newer, 0), 0); /* flushed again */
    assert_int_equal(scr_index_get_trace(index, 1, &found, &back), 0);
    scr_index_unset_trace(index, 7);
    assert_int_equal(scr_index_get_trace(index, 0, &found, &back), 0);
    assert_true(back.id == 8);
    assert_int_equal(scr_index_add(index, &newer, 1), 0);
    assert_int_equal(scr_index_get_trace(index, 0, &found, &back), -ENOENT);
    kvtree_delete(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(below),
        cmocka_unit_test(written_and_read),
        cmocka_unit_test(hostile),
        cmocka_unit_test(in_the_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
