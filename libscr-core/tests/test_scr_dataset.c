/* SPDX-License-Identifier: BSD-3-Clause */
/* Dataset descriptions: written and read back; with every field missing, altered, or
 * hostile. */
#include "plan/dataset.h"
#include "records.h"
#include <errno.h>
#include <limits.h>

static const scr_dataset full = {.id = 18,
                                 .ckpt = 17,
                                 .output = 1,
                                 .scattered = 1,
                                 .ranks = 4,
                                 .files = 8,
                                 .complete = 1,
                                 .size = 2097182,
                                 .created = 1312853507675143,
                                 .name = "out/ckpt 18",
                                 .user = "user1",
                                 .job_id = "112573",
                                 .job_name = "simulation123",
                                 .cluster = "atlas"};

#define FULL_TEXT                                                                        \
    "ID\n  18\nNAME\n  out/ckpt 18\nCREATED\n  1312853507675143\nUSER\n  user1\n"        \
    "JOBNAME\n  simulation123\nJOBID\n  112573\nCLUSTER\n  atlas\nCKPT\n  17\n"          \
    "OUTPUT\n  1\nSCATTERED\n  1\nRANKS\n  4\nFILES\n  8\n"                              \
    "SIZE\n  2097182\nCOMPLETE\n  1\n"

static void assert_same(const scr_dataset *a, const scr_dataset *b)
{
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->ckpt, b->ckpt);
    assert_int_equal(a->output, b->output);
    assert_int_equal(a->scattered, b->scattered);
    assert_int_equal(a->ranks, b->ranks);
    assert_int_equal(a->files, b->files);
    assert_int_equal(a->complete, b->complete);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->created, b->created);
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->user, b->user);
    assert_string_equal(a->job_id, b->job_id);
    assert_string_equal(a->job_name, b->job_name);
    assert_string_equal(a->cluster, b->cluster);
}

static void comes_back(const scr_dataset *dataset)
{
    scr_dataset read;
    kvtree_error err = {""};
    kvtree *tree = kvtree_new();
    kvtree_util_set_str(tree, "LEFT", "over");
    assert_int_equal(scr_dataset_to_tree(dataset, tree), 0);
    assert_null(kvtree_get(tree, "LEFT"));
    assert_int_equal(scr_dataset_from_tree(tree, &read, &err), 0);
    assert_string_equal(err.text, "");
    assert_same(&read, dataset);
    kvtree_delete(&tree);
}

static void written_as_documented(void **state)
{
    kvtree *tree = kvtree_new();
    assert_int_equal(scr_dataset_to_tree(&full, tree), 0);
    assert_tree(tree, FULL_TEXT);
    kvtree_delete(&tree);
}

static void round_trip(void **state)
{
    scr_dataset d = full;
    comes_back(&d);
    d = (scr_dataset){.id = 1, .name = "x"}; /* nothing else is known */
    comes_back(&d);
    d = (scr_dataset){.id = SCR_ID_MAX,
                      .ckpt = SCR_ID_MAX,
                      .ranks = INT_MAX,
                      .files = LONG_MAX,
                      .size = ULONG_MAX,
                      .created = INT64_MAX};
    memset(d.name, 'n', sizeof d.name - 1);
    memset(d.user, 'u', sizeof d.user - 1);
    memset(d.job_id, 'j', sizeof d.job_id - 1);
    memset(d.job_name, '/', sizeof d.job_name - 1);
    memset(d.cluster, '\xc3', sizeof d.cluster - 1);
    comes_back(&d);
}

static void read_as_in_the_guide(void **state)
{
    /* SCR Developer Guide 1.2, section 2.15: no RANKS, and another order */
    kvtree *tree = text_tree("COMPLETE\n  1\nSIZE\n  2097182\nFILES\n  4\nID\n  12\n"
                             "NAME\n  scr.dataset.12\nCREATED\n  1312853406814268\n"
                             "USER\n  user1\nJOBNAME\n  simulation123\nJOBID\n  112573\n"
                             "CKPT\n  12\n");
    scr_dataset d;
    assert_int_equal(scr_dataset_from_tree(tree, &d, NULL), 0);
    const scr_dataset expected = {.id = 12,
                                  .ckpt = 12,
                                  .files = 4,
                                  .complete = 1,
                                  .size = 2097182,
                                  .created = 1312853406814268,
                                  .name = "scr.dataset.12",
                                  .user = "user1",
                                  .job_id = "112573",
                                  .job_name = "simulation123"};
    assert_same(&d, &expected);
    comes_back(&d);
    kvtree_delete(&tree);
}

/* Reads the full record with key replaced by value (NULL: without key). If the record is
 * refused, the output stays unchanged. */
static int read_with(const char *key, const char *value, scr_dataset *d,
                     kvtree_error *err)
{
    kvtree *tree = text_tree(FULL_TEXT);
    err->text[0] = 0;
    if (value)
        kvtree_util_set_str(tree, key, value);
    else
        kvtree_unset(tree, key);
    memset(d, 0x5a, sizeof *d);
    int rc = scr_dataset_from_tree(tree, d, err);
    assert_int_equal(scr_dataset_from_tree(tree, &(scr_dataset){.id = 0}, NULL), rc);
    kvtree_delete(&tree);
    if (rc) {
        assert_int_equal(rc, -EBADMSG);
        assert_true(err->text[0] != 0);
        for (size_t i = 0; i < sizeof *d; i++)
            assert_int_equal(((char *)d)[i], 0x5a);
    } else {
        assert_string_equal(err->text, "");
    }
    return rc;
}

static void missing_fields(void **state)
{
    static const char *const optional[] = {"CREATED", "USER",  "JOBNAME", "JOBID",
                                           "CLUSTER", "CKPT",  "OUTPUT",  "SCATTERED",
                                           "RANKS",   "FILES", "SIZE",    "COMPLETE"};
    scr_dataset d;
    kvtree_error err;
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        assert_int_equal(read_with(optional[i], NULL, &d, &err), 0);
    assert_int_equal(d.complete, 0); /* complete only if recorded */
    assert_int_equal(d.id, 18);
    assert_int_equal(read_with("ID", NULL, &d, &err), -EBADMSG);
    assert_int_equal(read_with("NAME", NULL, &d, &err), -EBADMSG);
    assert_says(err.text, "dataset 18: empty file name");
    assert_int_equal(scr_dataset_from_tree(NULL, &d, &err), -EBADMSG);
}

static void impossible_numbers(void **state)
{
    static const char *const cases[][2] = {{"ID", "0"},
                                           {"ID", "-1"},
                                           {"ID", "1000000001"},
                                           {"ID", "2147483648"},
                                           {"ID", "x"},
                                           {"ID", ""},
                                           {"ID", "1 "},
                                           {"ID", "0x1"},
                                           {"CKPT", "-1"},
                                           {"CKPT", "1000000001"},
                                           {"CKPT", "1.0"},
                                           {"RANKS", "0"},
                                           {"RANKS", "-4"},
                                           {"RANKS", "9999999999"},
                                           {"FILES", "-1"},
                                           {"FILES", "many"},
                                           {"OUTPUT", "2"},
                                           {"OUTPUT", "-1"},
                                           {"SCATTERED", "-1"},
                                           {"COMPLETE", "2"},
                                           {"COMPLETE", "-1"},
                                           {"SIZE", "-1"},
                                           {"SIZE", "18446744073709551616"},
                                           {"SIZE", "0x10"},
                                           {"SIZE", "10GB"},
                                           {"CREATED", "-1"},
                                           {"CREATED", "yesterday"},
                                           {"CREATED", "9223372036854775808"}};
    scr_dataset d;
    kvtree_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (read_with(cases[i][0], cases[i][1], &d, &err) == 0)
            fail_msg("%s=%s was taken", cases[i][0], cases[i][1]);
}

static void hostile_names(void **state)
{
    static const char *const names[] = {"",       "/",       "/abs", "..",     "../x",
                                        "a/../b", "a/..",    ".",    "a//b",   "a/",
                                        "a\nb",   "\033[2J", ".scr", ".scr/x", "./a"};
    scr_dataset d;
    char huge[SCR_NAME_SIZE + 1];
    kvtree_error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (read_with("NAME", names[i], &d, &err) == 0)
            fail_msg("%s was taken", names[i]);
        assert_says(err.text, "dataset 18");
    }
    memset(huge, 'n', SCR_NAME_SIZE);
    huge[SCR_NAME_SIZE] = 0;
    assert_int_equal(read_with("NAME", huge, &d, &err), -EBADMSG);
    assert_says(err.text, "too long");
    static const char *const good[] = {".scrx", "scr", "a/.scrx",
                                       "...",   "a b", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(read_with("NAME", good[i], &d, &err), 0);
}

static void texts_of_any_length(void **state)
{
    static const char *const keys[] = {"USER", "JOBID", "JOBNAME", "CLUSTER"};
    char text[129];
    kvtree_error err;
    scr_dataset d;
    for (size_t i = 0; i < 4; i++) {
        memset(text, 't', sizeof text);
        text[128] = 0;
        assert_int_equal(read_with(keys[i], text, &d, &err), -EBADMSG);
        assert_says(err.text, "too long");
        text[127] = 0;
        assert_int_equal(read_with(keys[i], text, &d, &err), 0);
    }
}

/* A key with two values has no valid value. */
static void two_values(void **state)
{
    kvtree *tree = text_tree(FULL_TEXT);
    const kvtree_elem *e = kvtree_elem_first(tree);
    for (; e; e = kvtree_elem_next(e)) {
        scr_dataset d;
        kvtree *values = kvtree_elem_hash(e);
        assert_non_null(kvtree_set(values, "7", NULL));
        assert_int_equal(scr_dataset_from_tree(tree, &d, NULL), -EBADMSG);
        kvtree_unset(values, "7");
        assert_int_equal(scr_dataset_from_tree(tree, &d, NULL), 0);
    }
    kvtree_delete(&tree);
}

/* By time, then by id. */
static void in_order(void **state)
{
    const scr_dataset list[] = {{.id = 7, .created = 1},
                                {.id = 2, .created = 3},
                                {.id = 2, .created = 4},
                                {.id = 3, .created = 4},
                                {.id = SCR_ID_MAX, .created = 9}};
    enum { COUNT = sizeof list / sizeof *list };
    for (int i = 0; i < COUNT; i++) {
        assert_true(scr_dataset_is_older(&list[i], SCR_AGE_ANY));
        for (int k = 0; k < COUNT; k++) {
            assert_int_equal(scr_dataset_is_older(&list[i], scr_dataset_age(&list[k])),
                             i < k);
            assert_int_equal(scr_dataset_is_newer(&list[i], &list[k]), i > k);
        }
    }
}

/* If a time is unknown, ids decide: also for limits such as "all below id 4". */
static void in_order_without_times(void **state)
{
    const scr_dataset old = {.id = 3, .created = 50}, unknown = {.id = 4};
    assert_true(scr_dataset_is_newer(&unknown, &old));
    assert_false(scr_dataset_is_newer(&old, &unknown));
    assert_true(scr_dataset_is_older(&old, (scr_age){4, 0}));
    assert_false(scr_dataset_is_older(&old, (scr_age){3, 0}));
}

/* A clock that is set back does not make a new dataset older than a known one. */
static void dated_after_all_known(void **state)
{
    scr_counters last = {0, 0, 0};
    const scr_dataset known[] = {{.id = 8, .ckpt = 2, .created = 100},
                                 {.id = 5, .ckpt = 4, .created = 90}};
    for (int i = 0; i < 2; i++)
        scr_counters_include(&last, &known[i]);
    assert_true(last.id == 8 && last.ckpt == 4 && last.created == 100);
    assert_int_equal(scr_counters_date(&last, 40), 101);
    assert_int_equal(scr_counters_date(&last, 40), 102);
    assert_int_equal(scr_counters_date(&last, 102), 103);
    assert_int_equal(scr_counters_date(&last, 500), 500);
    last.created = INT64_MAX;
    assert_int_equal(scr_counters_date(&last, 40), INT64_MAX);
}

/* The key of a dataset in its map. */
static void key_of_a_dataset(void **state)
{
    char key[SCR_DATASET_KEY_SIZE];
    scr_dataset d = {.id = SCR_ID_MAX, .created = INT64_MAX};
    scr_dataset_key(&d, key);
    assert_string_equal(key, "1000000000.9223372036854775807");
    d.created = 0; /* unknown */
    scr_dataset_key(&d, key);
    assert_string_equal(key, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_as_documented),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(read_as_in_the_guide),
        cmocka_unit_test(missing_fields),
        cmocka_unit_test(impossible_numbers),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(texts_of_any_length),
        cmocka_unit_test(two_values),
        cmocka_unit_test(in_order),
        cmocka_unit_test(in_order_without_times),
        cmocka_unit_test(dated_after_all_known),
        cmocka_unit_test(key_of_a_dataset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
