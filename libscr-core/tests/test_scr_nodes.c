/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes file: what is written is read, and nothing else is believed. */
#include "prefix/nodes.h"
#include "records.h"
#include <errno.h>

static void file(void **state)
{
    struct scratch *s = *state;
    int nodes = -1;
    assert_int_equal(scr_nodes_read(s->dir, &nodes, &s->err), -ENOENT);
    assert_int_equal(scr_nodes_write(s->dir, 4, &s->err), 0);
    assert_int_equal(scr_nodes_read(s->dir, &nodes, &s->err), 0);
    assert_int_equal(nodes, 4);
    scratch_flip(s, SCR_NODES_NAME, 25);
    assert_int_equal(scr_nodes_read(s->dir, &nodes, &s->err), -EBADMSG);
    assert_int_equal(nodes, 4);
}

static void no_number(void **state)
{
    static const char *const texts[] = {"",
                                        "NODES\n",
                                        "NODES\n  0\n",
                                        "NODES\n  -4\n",
                                        "NODES\n  four\n",
                                        "NODES\n  4\n  5\n",
                                        "NODES\n  2147483648\n"};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int nodes = -1;
        kvtree *tree = text_tree(texts[i]);
        assert_int_equal(
            kvtree_file_write(s->dir, SCR_NODES_NAME, KVTREE_ANY_SIZE, tree, &s->err), 0);
        if (scr_nodes_read(s->dir, &nodes, &s->err) != -EBADMSG) fail_msg("%s", texts[i]);
        assert_says(s->err.text, SCR_NODES_NAME);
        assert_int_equal(nodes, -1);
        kvtree_delete(&tree);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {scratch_test(file), scratch_test(no_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
