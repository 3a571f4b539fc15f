/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank filemaps: a written filemap can be read; an invalid one is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/filemap.h"
#include "scavenge/rankmap.h"
#include <cmocka.h>
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const scr_dataset dataset = {.id = 6,
                                    .ckpt = 6,
                                    .ranks = 4,
                                    .files = 4,
                                    .complete = 1,
                                    .size = 2097182,
                                    .created = 1312850690668536,
                                    .name = "ckpt.6",
                                    .user = "user1"};

/* Rank 2 with two files, as a tree; to be freed. */
static kvtree *sample(void)
{
    const scavenge_file files[] = {
        {.name = "3_of_4_in_0.xor", .redundancy = 1, .size = 175693},
        {.name = "ckpt.6/rank_2", .size = 524296, .crc = 0x738bb68f, .has_crc = 1}};
    scavenge_rank *rank = scavenge_rank_new(2);
    kvtree *tree = kvtree_new(), *meta = kvtree_new();
    assert_int_equal(kvtree_util_set_str(meta, SCR_META_ORIG, "rank_2"), 0);
    assert_int_equal(scavenge_rank_add(rank, &files[0]), 0);
    scavenge_file with_meta = files[1];
    with_meta.meta = meta;
    assert_int_equal(scavenge_rank_add(rank, &with_meta), 0);
    assert_int_equal(scavenge_rank_to_tree(rank, &dataset, tree), 0);
    kvtree_delete(&meta);
    scavenge_rank_free(rank);
    return tree;
}

static const char *value(const kvtree *tree, const char *path)
{
    const kvtree *at = kvtree_getf(tree, "%s", path);
    return at ? kvtree_elem_key(kvtree_elem_first(at)) : NULL;
}

static void test_round_trip(void **state)
{
    scavenge_rank *rank = NULL;
    scr_dataset d;
    kvtree *tree = sample();
    assert_string_equal(value(tree, "DSET"), "6");
    const kvtree *entry = kvtree_getf(tree, "RANK 2 DSET 6");
    assert_non_null(entry);
    assert_string_equal(value(entry, "FILES"), "2");
    const kvtree *files = kvtree_get(entry, "FILE");
    const kvtree *meta = kvtree_get(kvtree_get(files, "3_of_4_in_0.xor"), "META");
    assert_string_equal(value(meta, "TYPE"), "XOR");
    assert_string_equal(value(meta, "SIZE"), "175693");
    assert_null(value(meta, "CRC"));
    meta = kvtree_get(kvtree_get(files, "ckpt.6/rank_2"), "META");
    assert_string_equal(value(meta, "TYPE"), "FULL");
    assert_string_equal(value(meta, "CRC"), "0x738bb68f");
    assert_string_equal(value(meta, "ORIG"), "rank_2");
    assert_int_equal(scavenge_rank_from_tree(tree, &rank, &d, NULL), 0);
    assert_int_equal(rank->rank, 2);
    assert_int_equal(rank->count, 2);
    assert_true(rank->files[0].redundancy && !rank->files[1].redundancy);
    assert_int_equal(rank->files[1].crc, 0x738bb68f);
    assert_true(rank->files[1].has_crc && !rank->files[0].has_crc);
    assert_int_equal(rank->files[1].size, 524296);
    assert_string_equal(d.name, "ckpt.6");
    assert_int_equal(d.created, dataset.created);
    scavenge_rank_free(rank);
    kvtree_delete(&tree);
}

/* ---- refused filemaps ---- */

static void refuse(kvtree *tree, const char *reason)
{
    kvtree_error err = {""};
    scavenge_rank *rank = NULL;
    scr_dataset d;
    assert_int_equal(scavenge_rank_from_tree(tree, &rank, &d, &err), -EBADMSG);
    assert_null(rank);
    if (!strstr(err.text, reason))
        fail_msg("\"%s\" does not say \"%s\"", err.text, reason);
    kvtree_delete(&tree);
}

static kvtree *entry_of(kvtree *tree)
{
    return (kvtree *)kvtree_getf(tree, "RANK 2 DSET 6");
}

/* Renames the application file. */
static void refuse_name(const char *name, const char *reason)
{
    kvtree *tree = sample(), *files = kvtree_get(entry_of(tree), "FILE");
    assert_non_null(kvtree_set(files, name, kvtree_extract(files, "ckpt.6/rank_2")));
    refuse(tree, reason);
}

static void test_names(void **state)
{
    static const char *const bad[] = {"../a",   "/a", "a//b", "a/./b",
                                      "a/../b", "",   "a\n",  "a/"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuse_name(bad[i], "");
    refuse_name(".scr/x", "reserved for SCR");
    refuse_name("a/.scr", "reserved for SCR");
    assert_int_equal(scavenge_check_name("a/.scrx/b", NULL), 0);
    char longest[1100];
    memset(longest, 'x', sizeof longest);
    longest[1099] = 0;
    refuse_name(longest, "");
    /* of a redundancy file */
    kvtree *tree = sample(), *files = kvtree_get(entry_of(tree), "FILE");
    kvtree_set(files, "../3_of_4_in_0.xor", kvtree_extract(files, "3_of_4_in_0.xor"));
    refuse(tree, "is invalid");
    tree = sample();
    files = kvtree_get(entry_of(tree), "FILE");
    kvtree_set(files, "3_of_4_in_0.rs", kvtree_extract(files, "3_of_4_in_0.xor"));
    refuse(tree, "is invalid");
}

/* Changes a value of the application file; NULL: removes it. */
static void refuse_meta(const char *key, const char *text)
{
    kvtree *tree = sample();
    kvtree *file = kvtree_get(kvtree_get(entry_of(tree), "FILE"), "ckpt.6/rank_2");
    kvtree *meta = kvtree_get(file, "META");
    kvtree_unset(meta, key);
    if (text) kvtree_set_kv(meta, key, text);
    refuse(tree, "is invalid");
}

static void test_values(void **state)
{
    refuse_meta("SIZE", NULL);
    refuse_meta("SIZE", "-1");
    refuse_meta("SIZE", "18446744073709551615");
    refuse_meta("SIZE", "5x");
    refuse_meta("CRC", "red");
    refuse_meta("TYPE", NULL);
    refuse_meta("TYPE", "XOR");
    kvtree *tree = sample();
    kvtree_util_set_int(entry_of(tree), "FILES", 3);
    refuse(tree, "is not FILES");
    tree = sample();
    kvtree_unset(entry_of(tree), "FILES");
    refuse(tree, "is not FILES");
    tree = sample();
    kvtree_unset(entry_of(tree), "DSETDESC");
    refuse(tree, "");
}

static void test_numbers(void **state)
{
    kvtree *tree = sample();
    kvtree_set_kv_int(tree, "RANK", 3);
    refuse(tree, "exactly one rank");
    tree = sample();
    kvtree *ranks = kvtree_get(tree, "RANK");
    kvtree_set(ranks, "02", kvtree_extract(ranks, "2"));
    refuse(tree, "exactly one rank");
    tree = sample();
    ranks = kvtree_get(tree, "RANK");
    kvtree_set(ranks, "4", kvtree_extract(ranks, "2")); /* of 4 ranks */
    refuse(tree, "of another dataset");
    tree = sample();
    kvtree_set_kv_int(kvtree_get_kv_int(tree, "RANK", 2), "DSET", 7);
    refuse(tree, "exactly one dataset");
    tree = sample();
    kvtree *ids = kvtree_get(kvtree_get_kv_int(tree, "RANK", 2), "DSET");
    kvtree_set(ids, "7", kvtree_extract(ids, "6"));
    refuse(tree, "of another dataset");
    refuse(kvtree_new(), "exactly one rank");
}

static void test_file_names(void **state)
{
    char name[SCAVENGE_NAME_SIZE];
    int rank = -1;
    scavenge_rank_name(12, name);
    assert_string_equal(name, ".scr/12.scrfilemap");
    assert_int_equal(scavenge_rank_from_name("12.scrfilemap", &rank), 0);
    assert_int_equal(rank, 12);
    static const char *const bad[] = {".scrfilemap",   "-1.scrfilemap",
                                      "01.scrfilemap", "+1.scrfilemap",
                                      "1.scrfilemapx", "1",
                                      "a.scrfilemap",  "2147483648.scrfilemap"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(scavenge_rank_from_name(bad[i], &rank), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_names),
        cmocka_unit_test(test_values),     cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_file_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
