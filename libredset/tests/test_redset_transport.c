/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport within one process, and the comparison over any transport. */
#include "src/set/transport.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PEERS = 3 };

static redset_error err;

static void make_trees(kvtree *out[PEERS], kvtree *in[PEERS])
{
    for (int i = 0; i < PEERS; i++) {
        out[i] = kvtree_new();
        in[i] = kvtree_new();
    }
}

static void drop_trees(kvtree *out[PEERS], kvtree *in[PEERS])
{
    for (int i = 0; i < PEERS; i++) {
        kvtree_delete(&out[i]);
        kvtree_delete(&in[i]);
    }
}

/* Every peer gets the trees that were addressed to it, by sender. */
static void test_exchange(void **state)
{
    kvtree *out[PEERS], *in[PEERS];
    redset_transport *t = redset_transport_local(PEERS);
    make_trees(out, in);
    kvtree_setf(out[0], NULL, "2 A");
    kvtree_setf(out[0], NULL, "1 B");
    kvtree_setf(out[1], NULL, "2 C");
    kvtree_setf(out[2], NULL, "2 D");
    assert_int_equal(t->exchange(t, out, in), 0);
    assert_int_equal(kvtree_size(in[0]), 0);
    assert_int_equal(kvtree_size(in[1]), 1);
    assert_non_null(kvtree_getf(in[1], "0 B"));
    assert_int_equal(kvtree_size(in[2]), 3);
    assert_non_null(kvtree_getf(in[2], "0 A"));
    assert_non_null(kvtree_getf(in[2], "1 C"));
    assert_non_null(kvtree_getf(in[2], "2 D"));
    drop_trees(out, in);
    redset_transport_local_free(t);
}

static void test_shift(void **state)
{
    kvtree *out[PEERS], *in[PEERS];
    redset_transport *t = redset_transport_local(PEERS);
    make_trees(out, in);
    for (int i = 0; i < PEERS; i++)
        kvtree_setf(out[i], NULL, "%d", i);
    kvtree_delete(&in[0]); /* its tree is dropped */
    assert_int_equal(t->shift(t, 2, out, in), 0);
    assert_non_null(kvtree_get(in[1], "2"));
    assert_non_null(kvtree_get(in[2], "0"));
    assert_int_equal(kvtree_size(in[1]) + kvtree_size(in[2]), 2);
    drop_trees(out, in);
    redset_transport_local_free(t);
}

/* Messages between two peers keep their order, independent of the numbers of transfers.
 */
static void test_messages(void **state)
{
    char first[4] = "", second[4] = "", other[4] = "";
    redset_transport *t = redset_transport_local(PEERS);
    assert_int_equal(t->reserve(t, 4), 0);
    t->receive(t, (redset_link){2, 1, 0}, first, 4, &err);
    t->receive(t, (redset_link){1, 1, 2}, other, 4, &err);
    t->receive(t, (redset_link){0, 1, 0}, second, 4, &err);
    assert_int_equal(t->send(t, (redset_link){3, 0, 1}, "one", 4, &err), 0);
    assert_int_equal(t->send(t, (redset_link){3, 0, 1}, "two", 4, &err), 0);
    assert_string_equal(first, "one");
    assert_string_equal(second, "two");
    assert_string_equal(other, "");
    assert_int_equal(t->send(t, (redset_link){3, 0, 1}, "bad", 4, &err), -ECOMM);
    assert_int_equal(t->send(t, (redset_link){3, 2, 1}, "six", 4, NULL), 0);
    assert_string_equal(other, "six");
    for (int i = 0; i < 4; i++)
        assert_int_equal(t->wait(t, i, &err), 0);
    redset_transport_local_free(t);
}

/* ---- a transport with another process, which has values or an error ---- */

static int64_t others[2 * REDSET_VALUES + 1];

static int fake_greatest(redset_transport *t, int count, int64_t values[],
                         redset_error *cause)
{
    assert_int_equal(count, 2 * REDSET_VALUES + 1);
    for (int i = 0; i < count; i++)
        if (others[i] > values[i]) values[i] = others[i];
    return 0;
}

static int fake_agree(redset_transport *t, int code, int count, int64_t sums[],
                      redset_error *cause)
{
    return code ? code : -EIO; /* code of the other process */
}

static void set_others(const int64_t values[REDSET_VALUES], bool failed)
{
    for (int i = 0; i < REDSET_VALUES; i++) {
        others[i] = values ? values[i] : INT64_MIN;
        others[REDSET_VALUES + i] = values ? ~values[i] : INT64_MIN;
    }
    others[2 * REDSET_VALUES] = failed;
}

static void test_compare(void **state)
{
    const int64_t some[REDSET_VALUES] = {1, -2, INT64_MAX, 0}, more[REDSET_VALUES] = {2};
    redset_transport t = {
        .size = 2, .count = 1, .agree_result = fake_agree, .greatest = fake_greatest};
    bool equal = false;
    set_others(some, false);
    assert_int_equal(redset_transport_compare(&t, 0, some, &equal, &err), 0);
    assert_true(equal);
    assert_int_equal(redset_transport_compare(&t, 0, more, &equal, &err), 0);
    assert_false(equal);
    assert_int_equal(redset_transport_compare(&t, 0, NULL, &equal, &err), 0);
    assert_true(equal);
    set_others(NULL, false);
    assert_int_equal(redset_transport_compare(&t, 0, more, &equal, &err), 0);
    assert_true(equal);
    assert_int_equal(redset_transport_compare(&t, -ENOMEM, some, &equal, &err), -ENOMEM);
    set_others(some, true);
    assert_int_equal(redset_transport_compare(&t, 0, some, &equal, &err), -EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange), cmocka_unit_test(test_shift),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_compare)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
