/* SPDX-License-Identifier: BSD-3-Clause */
/* Without memory: each verb runs with its first allocation failing, then its second, and
 * so on until none fails. It must report this, leave nothing behind and change only what
 * it documents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "build_tree.h"
#include "nth_malloc.h"
#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

/* Runs one verb on a tree that it may change; 1 if it succeeded. Sets *whole to 0 where
 * the tree may hold a part after a failure. */
typedef int verb(kvtree *tree, int *whole);

static char path[] = "/tmp/scr-test-XXXXXX/tree";
static char packed_bytes[4096];
static size_t packed_size;

static int do_set(kvtree *tree, int *whole)
{
    return kvtree_set(tree, "new", NULL) != NULL;
}

static int do_set_kv(kvtree *tree, int *whole)
{
    return kvtree_set_kv_int(tree, "new", 3) != NULL;
}

static int do_setf(kvtree *tree, int *whole)
{
    return kvtree_setf(tree, NULL, "RANK new %d and %s", 3, "more") != NULL;
}

static int do_util(kvtree *tree, int *whole)
{
    return kvtree_util_set_int(tree, "RANK", 4) == 0;
}

static int do_merge(kvtree *tree, int *whole)
{
    kvtree *other = NULL;
    int armed = countdown;
    countdown = 0;
    other = wide_tree(30);
    countdown = armed;
    int rc = kvtree_merge(tree, other);
    *whole = 0;
    kvtree_delete(&other);
    assert_true(rc == 0 || rc == -ENOMEM);
    return rc == 0;
}

static int do_sort(kvtree *tree, int *whole)
{
    int rc = kvtree_sort(tree, KVTREE_SORT_DESCENDING);
    assert_true(rc == 0 || rc == -ENOMEM);
    return rc == 0;
}

static int do_list(kvtree *tree, int *whole)
{
    int count = 0, *list = NULL;
    int rc = kvtree_list_int(kvtree_get(tree, "RANK"), &count, &list);
    assert_true(rc == 0 || (rc == -ENOMEM && !list));
    free(list);
    return rc == 0;
}

static int do_unpack(kvtree *tree, int *whole)
{
    kvtree *fresh = kvtree_new();
    if (!fresh) return 0;
    ssize_t used = kvtree_unpack_n(packed_bytes, packed_size, fresh);
    assert_true(used == (ssize_t)packed_size || (used == -ENOMEM && !kvtree_size(fresh)));
    kvtree_delete(&fresh);
    return used > 0;
}

static int do_write(kvtree *tree, int *whole)
{
    kvtree_error err;
    int rc = kvtree_file_write(-100, path, KVTREE_ANY_SIZE, tree, &err);
    assert_true(rc == 0 || rc == -ENOMEM);
    if (rc) assert_non_null(strstr(err.text, "Cannot allocate memory"));
    return rc == 0;
}

static int do_read(kvtree *tree, int *whole)
{
    int rc = kvtree_read_file(path, tree);
    *whole = 0;
    assert_true(rc == 0 || rc == -ENOMEM);
    return rc == 0;
}

/* The result is as if nothing had failed. */
static void assert_done(verb *work, const kvtree *tree, kvtree *same)
{
    int whole;
    assert_true(work(same, &whole));
    assert_true(same_tree(tree, same));
}

/* Lets each allocation fail in turn. Some are not needed: without memory for an index, a
 * search goes through all elements. */
static void fail_each(verb *work, int least, int unneeded)
{
    for (int n = 1;; n++) {
        long before = live;
        int whole = 1;
        kvtree *tree = sample_tree(), *same = sample_tree();
        countdown = n;
        int worked = work(tree, &whole);
        int left = countdown;
        countdown = 0;
        if (!worked && whole) assert_true(same_tree(tree, same));
        if (worked) assert_done(work, tree, same);
        if (worked && !left) unneeded--;
        kvtree_delete(&tree);
        kvtree_delete(&same);
        assert_int_equal(live, before);
        if (!worked || !left) continue;
        assert_true(n > least);
        assert_int_equal(unneeded, 0);
        return;
    }
}

static void each_allocation_may_fail(void **state)
{
    static const struct {
        verb *work;
        int least, unneeded;
    } verbs[] = {{do_set, 1, 0},    {do_set_kv, 2, 0}, {do_setf, 5, 0}, {do_util, 1, 0},
                 {do_merge, 31, 1}, {do_sort, 1, 0},   {do_list, 1, 0}, {do_unpack, 4, 0},
                 {do_write, 4, 0},  {do_read, 4, 0}};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        fail_each(verbs[i].work, verbs[i].least, verbs[i].unneeded);
}

static int prepare(void **state)
{
    kvtree *tree = wide_tree(20);
    path[20] = 0;
    if (!mkdtemp(path)) return -1;
    path[20] = '/';
    kvtree_sort(tree, KVTREE_SORT_DESCENDING); /* unpacking it takes an index */
    packed_size = kvtree_pack(packed_bytes, tree);
    int rc = kvtree_write_file(path, tree);
    kvtree_delete(&tree);
    return rc;
}

static int clean_up(void **state)
{
    unlink(path);
    path[20] = 0;
    return rmdir(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_may_fail)};
    return cmocka_run_group_tests(tests, prepare, clean_up);
}
