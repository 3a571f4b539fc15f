/* SPDX-License-Identifier: BSD-3-Clause */
/* The callback for TotalView, with a stand-in that stores rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "build_tree.h"
#include "debug/kvtree_totalview.c"
#include <cmocka.h>

struct row {
    char name[300], type[20];
    const void *address;
};

static struct {
    struct row rows[MOST_ROWS + 10];
    int count, room;
} window = {.room = MOST_ROWS + 10};

int TV_ttf_add_row(const char *field_name, const char *type_name,
                   const void *value_address)
{
    if (window.count == window.room) return TV_ttf_ec_buffer_exhausted;
    for (const char *c = field_name; *c; c++)
        if (*c < ' ' || *c > '~') return TV_ttf_ec_invalid_characters;
    struct row *row = &window.rows[window.count++];
    snprintf(row->name, sizeof row->name, "%s", field_name);
    snprintf(row->type, sizeof row->type, "%s", type_name);
    row->address = value_address;
    return TV_ttf_ec_ok;
}

static const struct row *display(const kvtree *tree, int count)
{
    memset(window.rows, 0, sizeof window.rows);
    window.count = 0;
    assert_int_equal(TV_ttf_display_type(tree), TV_ttf_format_ok);
    assert_int_equal(window.count, count);
    return window.rows;
}

static void assert_text(const struct row *row, const char *name, const char *value)
{
    assert_string_equal(row->name, name);
    assert_string_equal(row->type, "$string");
    assert_string_equal(row->address, value);
}

static const void *assert_tree(const struct row *row, const char *name)
{
    assert_string_equal(row->name, name);
    assert_string_equal(row->type, "kvtree");
    return row->address;
}

static void dives_through_the_example_of_the_guide(void **state)
{
    kvtree *tree = guide_tree();
    const struct row *rows = display(tree, 1);
    const void *rank = assert_tree(&rows[0], "RANK");
    rows = display(rank, 2);
    const void *first = assert_tree(&rows[0], "0");
    assert_tree(&rows[1], "1");
    rows = display(first, 2);
    assert_text(&rows[0], "FILES", "2");
    rows = display(assert_tree(&rows[1], "FILE"), 2);
    assert_tree(&rows[1], "bar_0.txt");
    rows = display(assert_tree(&rows[0], "foo_0.txt"), 2);
    assert_text(&rows[0], "SIZE", "1024");
    assert_text(&rows[1], "COMPLETE", "1");
    kvtree_delete(&tree);
}

static void names_are_clean(void **state)
{
    kvtree *tree = kvtree_new();
    char longest[1000];
    memset(longest, '\n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    kvtree_set(tree, "", NULL);
    kvtree_set(tree, "a\tb\\\x1b\xff", NULL);
    kvtree_set(tree, longest, NULL);
    const struct row *rows = display(tree, 3);
    assert_tree(&rows[0], "\\0");
    assert_tree(&rows[1], "a\\x09b\\\\\\x1b\\xff");
    size_t length = strlen(rows[2].name);
    assert_in_range(length, 200, NAME_SIZE - 1);
    assert_string_equal(rows[2].name + length - 7, "\\x0a...");
    kvtree_delete(&tree);
}

static void empty_and_null(void **state)
{
    kvtree *tree = kvtree_new();
    display(tree, 0);
    assert_int_equal(TV_ttf_display_type(NULL), TV_ttf_format_failed);
    kvtree_delete(&tree);
}

static void rows_are_bounded(void **state)
{
    kvtree *tree = wide_tree(MOST_ROWS);
    const struct row *rows = display(tree, MOST_ROWS);
    assert_tree(&rows[MOST_ROWS - 1], "key 499");
    kvtree_set(tree, "one", NULL);
    kvtree_set(tree, "two", NULL);
    rows = display(tree, MOST_ROWS + 1);
    assert_text(&rows[MOST_ROWS], "...", "there are more");
    kvtree_delete(&tree);
}

static void a_full_buffer_is_told(void **state)
{
    kvtree *tree = guide_tree();
    window.count = 0;
    window.room = 1;
    assert_int_equal(TV_ttf_display_type(kvtree_get(tree, "RANK")), TV_ttf_format_failed);
    kvtree_delete(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dives_through_the_example_of_the_guide),
        cmocka_unit_test(names_are_clean),
        cmocka_unit_test(empty_and_null),
        cmocka_unit_test(rows_are_bounded),
        cmocka_unit_test(a_full_buffer_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
