/* SPDX-License-Identifier: BSD-3-Clause */
/* The flush file: where cached datasets are. */
#include "prefix/flush_file.h"
#include "records.h"
#include <errno.h>

/* SCR Developer Guide 1.2, section 2.19, in the order in which keys are set. */
#define GUIDE                                                                            \
    "DSET\n"                                                                             \
    "  17\n    DIR\n      scr.dataset.17\n    LOCATION\n      CACHE\n"                   \
    "  18\n    DIR\n      scr.dataset.18\n    LOCATION\n      CACHE\n      PFS\n"

static void set(kvtree *flush, int id, const char *location, int on)
{
    char name[32];
    snprintf(name, sizeof name, "scr.dataset.%d", id);
    assert_int_equal(scr_flush_file_set(flush, id, name, location, on), 0);
}

static kvtree *guide_file(void)
{
    kvtree *flush = kvtree_new();
    set(flush, 17, SCR_LOCATION_CACHE, 1);
    set(flush, 18, SCR_LOCATION_CACHE, 1);
    set(flush, 18, SCR_LOCATION_FLUSHING, 1);
    set(flush, 18, SCR_LOCATION_PFS, 1);
    set(flush, 18, SCR_LOCATION_FLUSHING, 0);
    return flush;
}

static void written_as_in_the_guide(void **state)
{
    kvtree *flush = guide_file();
    assert_tree(flush, GUIDE);
    kvtree_delete(&flush);
}

static void locations(void **state)
{
    static const char *const names[] = {SCR_LOCATION_CACHE, SCR_LOCATION_PFS,
                                        SCR_LOCATION_FLUSHING};
    /* each way from any set of locations to any other */
    for (int from = 0; from < 8; from++)
        for (int to = 0; to < 8; to++) {
            kvtree *flush = kvtree_new();
            for (int i = 0; i < 3; i++)
                set(flush, 5, names[i], from >> i & 1);
            for (int i = 0; i < 3; i++)
                set(flush, 5, names[i], to >> i & 1);
            for (int i = 0; i < 3; i++) {
                assert_int_equal(scr_flush_file_has(flush, 5, names[i]), to >> i & 1);
                assert_int_equal(scr_flush_file_has(flush, 6, names[i]), 0);
            }
            kvtree_delete(&flush);
        }
}

static void name_is_the_last_one(void **state)
{
    kvtree *flush = kvtree_new();
    set(flush, 5, SCR_LOCATION_CACHE, 1);
    assert_int_equal(scr_flush_file_set(flush, 5, "ckpt.5", SCR_LOCATION_PFS, 1), 0);
    assert_tree(flush, "DSET\n  5\n    DIR\n      ckpt.5\n    LOCATION\n      CACHE\n"
                       "      PFS\n");
    kvtree_delete(&flush);
}

static void kinds(void **state)
{
    for (int i = 0; i < 16; i++) {
        kvtree *flush = guide_file();
        assert_int_equal(scr_flush_file_set_kind(flush, 17, i & 1, i & 2), 0);
        assert_int_equal(scr_flush_file_set_kind(flush, 17, i & 4, i & 8), 0);
        assert_int_equal(scr_flush_file_is(flush, 17, SCR_FLUSH_CKPT), (i & 4) != 0);
        assert_int_equal(scr_flush_file_is(flush, 17, SCR_FLUSH_OUTPUT), (i & 8) != 0);
        assert_int_equal(scr_flush_file_is(flush, 18, SCR_FLUSH_CKPT), 0);
        assert_int_equal(scr_flush_file_is(flush, 19, SCR_FLUSH_CKPT), 0);
        kvtree_delete(&flush);
    }
    assert_int_equal(scr_flush_file_set_kind(NULL, 1, true, true), -ENOMEM);
    kvtree *flush = text_tree("DSET\n  17\n    CKPT\n      0\n    OUTPUT\n");
    assert_int_equal(scr_flush_file_is(flush, 17, SCR_FLUSH_CKPT), 0);
    assert_int_equal(scr_flush_file_is(flush, 17, SCR_FLUSH_OUTPUT), 0);
    kvtree_delete(&flush);
}

static void clearing_what_is_not_there(void **state)
{
    kvtree *flush = guide_file();
    set(flush, 99, SCR_LOCATION_FLUSHING, 0);
    set(flush, 17, SCR_LOCATION_PFS, 0);
    assert_tree(flush, GUIDE);
    kvtree_delete(&flush);
    assert_int_equal(scr_flush_file_set(NULL, 1, "x", SCR_LOCATION_PFS, 1), -ENOMEM);
    assert_int_equal(scr_flush_file_has(NULL, 1, SCR_LOCATION_PFS), 0);
}

static void remove_and_keep(void **state)
{
    kvtree *flush = guide_file();
    scr_flush_file_remove(flush, 18);
    scr_flush_file_remove(flush, 99);
    assert_int_equal(scr_flush_file_has(flush, 18, SCR_LOCATION_CACHE), 0);
    assert_int_equal(scr_flush_file_has(flush, 17, SCR_LOCATION_CACHE), 1);
    scr_flush_file_remove(flush, 17);
    assert_int_equal(kvtree_size(flush), 0);
    kvtree_delete(&flush);
}

static void keep_what_the_cache_has(void **state)
{
    static const struct {
        int ids[3], count;
        const char *left;
    } cases[] = {{{17, 18}, 2, "1718"},
                 {{18, 99}, 2, "18"},
                 {{17}, 1, "17"},
                 {{0}, 0, ""},
                 {{18, 1, 17}, 3, "1718"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char left[64] = "";
        kvtree *flush = guide_file();
        assert_int_equal(scr_flush_file_keep(flush, cases[i].ids, cases[i].count), 0);
        const kvtree_elem *e = kvtree_elem_first(kvtree_get(flush, "DSET"));
        for (; e; e = kvtree_elem_next(e))
            strcat(left, kvtree_elem_key(e));
        assert_string_equal(left, cases[i].left);
        kvtree_delete(&flush);
    }
}

static void keep_nothing_that_is_not_ours(void **state)
{
    const int ids[] = {17};
    kvtree *flush = text_tree("DSET\n  17\n  ../x\n");
    assert_int_equal(scr_flush_file_keep(flush, ids, 1), 0);
    assert_int_equal(kvtree_size(flush), 0);
    assert_int_equal(scr_flush_file_keep(flush, ids, 1), 0);
    kvtree_delete(&flush);
}

static void file(void **state)
{
    struct scratch *s = *state;
    kvtree *flush = guide_file(), *read = kvtree_new();
    assert_int_equal(scr_flush_file_read(s->dir, read, &s->err), -ENOENT);
    assert_int_equal(kvtree_size(read), 0);
    assert_int_equal(scr_flush_file_write(s->dir, flush, &s->err), 0);
    assert_int_equal(faccessat(s->dir, ".scr/flush.scr", R_OK, 0), 0);
    assert_int_equal(scr_flush_file_read(s->dir, read, &s->err), 0);
    assert_tree(read, GUIDE);
    kvtree_unset_all(read);
    scratch_flip(s, SCR_FLUSH_FILE_NAME, 40);
    assert_int_equal(scr_flush_file_read(s->dir, read, &s->err), -EBADMSG);
    assert_says(s->err.text, SCR_FLUSH_FILE_NAME);
    assert_int_equal(kvtree_size(read), 0);
    assert_int_equal(unlinkat(s->dir, SCR_FLUSH_FILE_NAME, 0), 0);
    assert_int_equal(unlinkat(s->dir, ".scr", AT_REMOVEDIR), 0);
    assert_int_equal(scr_flush_file_write(s->dir, flush, &s->err), -ENOENT);
    assert_says(s->err.text, SCR_FLUSH_FILE_NAME);
    kvtree_delete(&flush);
    kvtree_delete(&read);
}

/* "+1" is a number, too, but nothing that stands there would be found. */
static void impossible_ids(void **state)
{
    static const char *const ids[] = {"x", "0", "-1", "+1", "01", "1000000001", ""};
    struct scratch *s = *state;
    kvtree *read = kvtree_new();
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        kvtree *flush = guide_file();
        assert_non_null(kvtree_set_kv(flush, "DSET", ids[i]));
        assert_int_equal(scr_flush_file_write(s->dir, flush, &s->err), 0);
        if (scr_flush_file_read(s->dir, read, &s->err) != -EBADMSG)
            fail_msg("id \"%s\" was taken", ids[i]);
        assert_says(s->err.text, "impossible dataset id");
        assert_int_equal(kvtree_size(read), 0);
        kvtree_delete(&flush);
    }
    kvtree_delete(&read);
}

static void impossible_names(void **state)
{
    static const char *const names[] = {"../a", "/a", ".scr", ".scr/a", "a\x1b[2J", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        kvtree *flush = kvtree_new();
        assert_int_equal(scr_flush_file_set(flush, 1, names[i], SCR_LOCATION_PFS, 1), 0);
        if (scr_flush_file_name(flush, 1)) fail_msg("\"%s\" was taken", names[i]);
        assert_int_equal(scr_flush_file_set(flush, 1, "a", SCR_LOCATION_PFS, 1), 0);
        assert_string_equal(scr_flush_file_name(flush, 1), "a");
        kvtree_delete(&flush);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_as_in_the_guide),
        cmocka_unit_test(locations),
        cmocka_unit_test(name_is_the_last_one),
        cmocka_unit_test(kinds),
        cmocka_unit_test(clearing_what_is_not_there),
        cmocka_unit_test(remove_and_keep),
        cmocka_unit_test(keep_what_the_cache_has),
        cmocka_unit_test(keep_nothing_that_is_not_ours),
        scratch_test(file),
        scratch_test(impossible_ids),
        cmocka_unit_test(impossible_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
