/* SPDX-License-Identifier: BSD-3-Clause */
/* Forged or damaged files of gathered trees (tests/support/forge_gather.h), read by one
 * process: -EBADMSG with the name of the file, without delay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "forge_gather.h"
#include "scratch.h"
#include <errno.h>
#include <kvtree/kvtree_gather.h>

static kvtree_error err;

static void fill(kvtree *tree, int rank)
{
    kvtree_util_set_int(tree, "MINE", rank);
}

/* Creates a valid set with one change, in the directory of the test. */
static kvtree_gather_place begin(forged *f, void (*change)(forged *))
{
    kvtree_gather_place at = {
        .dir = open(folder, O_RDONLY | O_DIRECTORY), .name = "set.scr", .top = "TOP"};
    forge(f, "set", at.top, fill);
    if (change) change(f);
    forge_write(f, at.dir);
    err.text[0] = 0;
    return at;
}

static void finish(kvtree_gather_place *at)
{
    char command[128];
    close(at->dir);
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    assert_int_equal(system(command), 0);
}

static int take(void *arg, int rank, kvtree *tree, kvtree_error *cause)
{
    int mine;
    assert_int_equal(kvtree_util_get_int(tree, "MINE", &mine), 0);
    assert_int_equal(mine, rank);
    ++*(int *)arg;
    return 0;
}

static void expect_refused(const kvtree_gather_place *from, int code, const char *text)
{
    int ranks = 77;
    err.text[0] = 0;
    assert_int_equal(kvtree_gather_read_all(from, &ranks, NULL, NULL, &err), code);
    assert_int_equal(ranks, 77);
    if (!strstr(err.text, text)) assert_string_equal(err.text, text); /* shows both */
}

static void expect_good(const kvtree_gather_place *from, int expected)
{
    int ranks = 0, taken = 0;
    assert_int_equal(kvtree_gather_read_all(from, &ranks, take, &taken, &err), 0);
    assert_int_equal(ranks, expected);
    assert_int_equal(taken, expected);
}

static void test_unchanged(void **state)
{
    forged f;
    kvtree_gather_place from = begin(&f, NULL);
    expect_good(&from, 8);
    assert_int_equal(unlinkat(from.dir, "set.scr", 0), 0);
    expect_refused(&from, -ENOENT, "set.scr is missing");
    finish(&from);
}

static void test_changed(void **state)
{
    for (int i = 0; i < FORGE_CASES; i++) {
        forged f;
        char text[256];
        kvtree_gather_place from = begin(&f, forge_cases[i].change);
        forge_text(&f, forge_cases[i].text, text);
        expect_refused(&from, -EBADMSG, text);
        finish(&from);
    }
}

static void test_harmed(void **state)
{
    for (int i = 0; i < FORGE_FILES * FORGE_HARMS; i++) {
        forged f;
        kvtree_gather_place from = begin(&f, NULL);
        const char *name = f.name[i / FORGE_HARMS];
        forge_harm(from.dir, name, i % FORGE_HARMS);
        expect_refused(&from, -EBADMSG, name);
        finish(&from);
    }
}

static void test_chains(void **state)
{
    for (int levels = 1; levels <= 33; levels += 4) {
        forged f;
        kvtree_gather_place from = begin(&f, NULL);
        forge_chain(from.dir, levels, "set.scr", from.top, fill);
        if (levels <= 32)
            expect_good(&from, 4);
        else
            expect_refused(&from, -EBADMSG, "set.scr: LEVEL 33 cannot be that of a root");
        finish(&from);
    }
}

static void test_other_top(void **state)
{
    forged f;
    kvtree_gather_place from = begin(&f, NULL);
    from.top = NULL;
    expect_refused(&from, -EBADMSG, "set.0.0.scr: no valid LEVEL");
    from.top = "OTHER";
    expect_refused(&from, -EBADMSG, "set.0.0.scr: no valid LEVEL");
    finish(&from);
}

/* Each file names the one below twice, over 30 levels: 2^30 files for a reader that
 * trusts them. Counts add up on all levels, with one rank listed by each of all those
 * files. */
static void test_doubling(void **state)
{
    forged f;
    kvtree_gather_place from = begin(&f, NULL);
    for (int level = 0; level <= 30; level++) {
        char name[32], lower[32];
        kvtree *tree = forge_upper(level, 1 << level);
        snprintf(name, sizeof name, "twice.%d", level);
        snprintf(lower, sizeof lower, "twice.%d", level - 1);
        for (int reader = 0; reader < (level ? 2 : 0); reader++)
            forge_pointer(tree, reader, lower);
        if (level == 0) {
            fill(kvtree_set_kv_int(tree, "RANK", 0), 0);
            kvtree *low = kvtree_new();
            kvtree_set(low, "TOP", tree);
            tree = low;
        }
        forge_write_tree(from.dir, level == 30 ? "set.scr" : name, &tree);
    }
    expect_refused(&from, -EBADMSG, "twice.0: rank 0 is listed twice");
    finish(&from);
}

/* Writes file number i of a set with these ranks, and its pointer below root. */
static void put_file(const kvtree_gather_place *to, kvtree *root, int i, int count,
                     const int ranks[])
{
    char name[32];
    kvtree *tree = kvtree_new(), *body = kvtree_set(tree, "TOP", NULL);
    kvtree_util_set_int(body, "LEVEL", 0);
    kvtree_util_set_int(body, "RANKS", count);
    for (int k = 0; k < count; k++)
        fill(kvtree_set_kv_int(body, "RANK", ranks[k]), ranks[k]);
    snprintf(name, sizeof name, "spread.%d", i);
    forge_pointer(root, i, name);
    forge_write_tree(to->dir, name, &tree);
}

/* Spreads ranks over files in any order: with a step through all of them, and a fixed
 * number per file. twice: the last rank of the last file is already listed by an earlier
 * file. */
static void spread(const kvtree_gather_place *to, int ranks, int step, int per_file,
                   int twice)
{
    int list[1000], count = 0;
    kvtree *root = forge_upper(1, ranks);
    for (int done = 0; done < ranks; done++) {
        int is_last = done == ranks - 1;
        list[count++] = is_last && twice >= 0 ? twice : (int)((long)done * step % ranks);
        if (count < per_file && !is_last) continue;
        put_file(to, root, done / per_file, count, list);
        count = 0;
    }
    forge_write_tree(to->dir, "set.scr", &root);
}

static void test_ranks_out_of_order(void **state)
{
    static const int steps[] = {1, 2, 7, 499, 998}; /* all coprime to 999 */
    for (int i = 0; i < 5 * 4; i++) {
        static const int per_file[] = {1, 3, 50, 999};
        forged f;
        int step = steps[i % 5], twice = 998 * (i % 3) / 2;
        kvtree_gather_place from = begin(&f, NULL);
        spread(&from, 999, step, per_file[i / 5], -1);
        expect_good(&from, 999);
        if (per_file[i / 5] < 999 && (998 * step) % 999 != twice) {
            char text[64];
            spread(&from, 999, step, per_file[i / 5], twice);
            snprintf(text, sizeof text, "spread.%d: rank %d is listed twice",
                     998 / per_file[i / 5], twice);
            expect_refused(&from, -EBADMSG, text);
        }
        finish(&from);
    }
}

/* A file that is small beside the earlier ones, with its ranks in no order, and then one
 * of them again. */
static void test_twice_after_a_small_file(void **state)
{
    static const int first[] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18}, second[] = {7, 3, 5},
                     third[] = {1, 9, 11, 13, 15, 17, 3};
    forged f;
    kvtree_gather_place from = begin(&f, NULL);
    kvtree *root = forge_upper(1, 20);
    put_file(&from, root, 0, 10, first);
    put_file(&from, root, 1, 3, second);
    put_file(&from, root, 2, 7, third);
    forge_write_tree(from.dir, "set.scr", &root);
    expect_refused(&from, -EBADMSG, "spread.2: rank 3 is listed twice");
    finish(&from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unchanged, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_changed, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_harmed, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_chains, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_other_top, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_doubling, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_ranks_out_of_order, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_twice_after_a_small_file, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
