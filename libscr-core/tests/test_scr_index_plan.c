/* SPDX-License-Identifier: BSD-3-Clause */
/* What is decided by an index: which checkpoint a restart tries, which ones leave the
 * prefix directory, and what becomes of datasets that were found there. */
#include "indexes.h"
#include <errno.h>
#include <limits.h>

/* Attempts that come to no end make room for older checkpoints, and are forgotten with
 * the first that does, or when somebody wants that checkpoint. */
static void tried_too_often(void **state)
{
    scr_index *index = guide_index();
    scr_dataset d, over;
    add(index, 19, 1); /* newer than CURRENT */
    for (int i = 0; i < SCR_INDEX_ATTEMPTS; i++) {
        assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
        assert_int_equal(d.id, 18);
        assert_int_equal(scr_index_mark_fetched(index, &d), 0);
    }
    over = d;
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 12); /* not 19, which nobody wanted */
    assert_int_equal(scr_index_unmark_tried(index, &over), 0);
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 18);
    assert_int_equal(scr_index_mark_tried(index, &d), 0);
    assert_int_equal(scr_index_choose(index, &d), 0);
    assert_null(kvtree_getf(index, "DSET 18 DIR scr.dataset.18 ATTEMPTS"));
    assert_int_equal(scr_index_mark_tried(index, &d), 0);
    assert_int_equal(scr_index_mark_good(index, &d), 0);
    assert_int_equal(scr_index_mark_tried(index, &d), 0);
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 18);
    d.id = 99;
    assert_int_equal(scr_index_mark_tried(index, &d), -ENOENT);
    assert_int_equal(scr_index_mark_good(index, &d), -ENOENT);
    assert_int_equal(scr_index_unmark_tried(index, &d), -ENOENT);
    assert_int_equal(scr_index_choose(index, &d), -ENOENT);
    kvtree_delete(&index);
}

/* One copy after the other, the newest first, before anything older. */
static void copies_are_fetched_in_turn(void **state)
{
    static const char *const order[] = {"copy/b", "scr.dataset.18", "copy/a",
                                        "scr.dataset.12"};
    scr_index *index = guide_index();
    kvtree *tried = kvtree_new();
    scr_dataset d = checkpoint(18);
    scr_age below = SCR_AGE_ANY;
    strcpy(d.name, "copy/a");
    d.created -= 5;
    assert_int_equal(scr_index_add(index, &d, 1), 0);
    strcpy(d.name, "copy/b");
    assert_int_equal(scr_index_add(index, &d, 1), 0);
    assert_int_equal(scr_index_set_current(index, &d), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(scr_index_next_fetch(index, below, tried, &d), 0);
        assert_string_equal(d.name, order[i]);
        below = (scr_age){d.id + 1, 0};
        assert_non_null(kvtree_set(tried, d.name, NULL));
    }
    assert_int_equal(scr_index_next_fetch(index, below, tried, &d), -ENOENT);
    kvtree_delete(&tried);
    kvtree_delete(&index);
}

/* ---- the window ---- */

/* Ids of what leaves, as a text. */
static const char *leaving(const scr_index *index, int keep, int flushed, int reading)
{
    static char text[256];
    const scr_window window = {.keep = keep, .flushed = flushed, .reading = reading};
    scr_dataset *list;
    int count, n = 0;
    assert_int_equal(scr_index_leaving(index, &window, &list, &count), 0);
    text[0] = 0;
    for (int i = 0; i < count; i++)
        n += sprintf(text + n, "%d ", list[i].id);
    free(list);
    return text;
}

static scr_index *ten(void)
{
    scr_index *index = kvtree_new();
    for (int i = 0; i < 10; i++) {
        scr_dataset d = checkpoint(i * 7 % 10 + 1);
        d.output = d.id == 2;      /* also wanted for itself */
        if (d.id == 3) d.ckpt = 0; /* output only */
        assert_int_equal(scr_index_add(index, &d, d.id != 4), 0);
    }
    return index;
}

static void window_keeps_the_newest(void **state)
{
    scr_index *index = ten();
    assert_string_equal(leaving(index, 0, 10, 0), "");
    assert_string_equal(leaving(index, 10, 10, 0), "");
    assert_string_equal(leaving(index, 7, 10, 0), "");
    assert_string_equal(leaving(index, 6, 10, 0), "1 ");
    assert_string_equal(leaving(index, 2, 10, 0), "1 5 6 7 8 ");
    assert_string_equal(leaving(index, 2, 10, 6), "1 5 7 8 ");
    assert_string_equal(leaving(index, 2, 5, 0), "1 6 7 8 "); /* flushed late */
    assert_int_equal(apply(index, scr_index_set_current, "scr.dataset.7"), 0);
    assert_string_equal(leaving(index, 2, 10, 0), "1 5 6 8 ");
    kvtree_delete(&index);
}

static void window_spares_what_shall_stay(void **state)
{
    scr_index *index = ten();
    kvtree *stay = kvtree_new();
    const scr_window window = {.keep = 2, .flushed = 10, .stay = stay};
    const int ids[] = {1, 5, 7, 8};
    scr_dataset *list;
    int count;
    assert_non_null(kvtree_setf(stay, NULL, "%d", 6));
    assert_non_null(kvtree_setf(stay, NULL, "%d", 10));
    assert_int_equal(scr_index_leaving(index, &window, &list, &count), 0);
    assert_int_equal(count, 4);
    for (int i = 0; i < count; i++)
        assert_int_equal(list[i].id, ids[i]);
    free(list);
    kvtree_delete(&stay);
    kvtree_delete(&index);
}

/* What nobody can restart from does not count, but leaves when it is old. */
static void window_counts_what_is_good(void **state)
{
    scr_index *index = ten();
    assert_int_equal(apply(index, scr_index_mark_failed, "scr.dataset.10"), 0);
    assert_int_equal(apply(index, scr_index_mark_failed, "scr.dataset.7"), 0);
    for (int i = 0; i < SCR_INDEX_ATTEMPTS; i++)
        assert_int_equal(apply(index, scr_index_mark_tried, "scr.dataset.9"), 0);
    assert_string_equal(leaving(index, 2, 8, 0), "1 5 ");
    assert_string_equal(leaving(index, 1, 8, 0), "1 5 6 7 ");
    kvtree_delete(&index);
}

/* A deletion that was begun is ended, whatever it was. */
static void window_ends_deletions(void **state)
{
    scr_index *index = ten();
    scr_dataset d;
    assert_int_equal(apply(index, scr_index_set_current, "scr.dataset.2"), 0);
    assert_int_equal(apply(index, scr_index_mark_deleting, "scr.dataset.2"), 0);
    assert_int_equal(apply(index, scr_index_mark_deleting, "scr.dataset.9"), 0);
    assert_null(kvtree_get(index, "CURRENT"));
    assert_string_equal(leaving(index, 0, 0, 0), "2 9 ");
    assert_int_equal(scr_index_next_fetch(index, (scr_age){10, 0}, NULL, &d), 0);
    assert_int_equal(d.id, 8);
    add(index, 9, 1); /* written again */
    assert_string_equal(leaving(index, 0, 0, 0), "2 ");
    assert_int_equal(apply(index, scr_index_mark_deleting, "nothing"), -ENOENT);
    kvtree_delete(&index);
}

/* ---- made again from what was found ---- */

static void restored(void **state)
{
    scr_dataset found[5], d;
    scr_index_state entry;
    for (int i = 0; i < 5; i++)
        found[i] = checkpoint(i + 1);
    found[4].complete = 0;
    found[3].ckpt = 0;
    found[1].id = 3; /* a copy of 3 */
    found[1].created = found[2].created;
    found[2].flushed = found[4].flushed = 1300000000;
    scr_index *index = kvtree_new();
    assert_int_equal(scr_index_start(index), 0);
    assert_int_equal(scr_index_restore(index, found, 5), 0);
    assert_string_equal(kvtree_get_val(index, "CURRENT"), "scr.dataset.2");
    assert_null(kvtree_getf(index, "DSET 1 DIR scr.dataset.1 FLUSHED")); /* not known */
    assert_non_null(
        strstr(scr_index_time(index, &found[2], SCR_INDEX_FLUSHED), "2011-03-1"));
    assert_null(scr_index_time(index, &found[4], SCR_INDEX_FLUSHED)); /* not complete */
    assert_int_equal(scr_index_get(index, "scr.dataset.5", &d), 0);
    assert_int_equal(scr_index_look(index, &d, &entry), 0);
    assert_int_equal(entry.complete, 0);
    found[3].ckpt = 4; /* found later: CURRENT is no older one */
    assert_int_equal(scr_index_restore(index, &found[3], 1), 0);
    assert_string_equal(kvtree_get_val(index, "CURRENT"), "scr.dataset.4");
    kvtree_delete(&index);
    index = kvtree_new();
    assert_int_equal(scr_index_restore(index, found, 0), 0);
    assert_int_equal(kvtree_size(index), 0);
    kvtree_delete(&index);
}

static void names_for_people(void **state)
{
    char text[60];
    scr_index *index = kvtree_new();
    scr_index_names(index, text, sizeof text);
    assert_string_equal(text, "none");
    add(index, 3, 1);
    add(index, 12, 0);
    scr_index_names(index, text, sizeof text);
    assert_string_equal(text, "scr.dataset.12, scr.dataset.3");
    for (int i = 20; i < 30; i++)
        add(index, i, 1);
    scr_index_names(index, text, sizeof text);
    assert_string_equal(text, "scr.dataset.29, scr.dataset.28 and 10 more");
    kvtree_delete(&index);
}

/* Another job has used id and name for a dataset of another time: what is said of one
 * says nothing of the other. What earlier versions wrote without a time may be either. */
static void another_of_the_same_id(void **state)
{
    int (*const changes[])(scr_index *, const scr_dataset *) = {
        scr_index_set_current,   scr_index_choose,     scr_index_mark_fetched,
        scr_index_mark_tried,    scr_index_mark_good,  scr_index_unmark_tried,
        scr_index_mark_deleting, scr_index_mark_failed};
    scr_index_state is;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        scr_index *index = guide_index();
        scr_dataset ours = checkpoint(18), other = ours, d;
        other.created++;
        char *before = tree_text(index);
        assert_int_equal(scr_index_look(index, &other, &is), -ENOENT);
        assert_int_equal(changes[i](index, &other), -ENOENT);
        assert_int_equal(scr_index_mark_incomplete(index, &other, "why"), -ENOENT);
        char *after = tree_text(index);
        assert_string_equal(after, before);
        other.created = 0;
        assert_int_equal(scr_index_look(index, &other, &is), 0);
        assert_int_equal(changes[i](index, &other), 0);
        ours.created++;
        assert_int_equal(scr_index_add(index, &ours, 1), 0);
        assert_int_equal(scr_index_get(index, ours.name, &d), 0);
        assert_int_equal(d.created, ours.created);
        free(before);
        free(after);
        kvtree_delete(&index);
    }
}

/* A newer one of the name counts where it is complete, and was not found damaged. */
static void has_newer(void **state)
{
    scr_dataset old = checkpoint(18), newer = old;
    newer.created++;
    scr_index *index = kvtree_new();
    assert_int_equal(scr_index_has_newer(index, &old), 0);
    assert_int_equal(scr_index_add(index, &newer, 0), 0);
    assert_int_equal(scr_index_has_newer(index, &old), 0);
    assert_int_equal(scr_index_add(index, &newer, 1), 0);
    assert_int_equal(scr_index_has_newer(index, &old), 1);
    assert_int_equal(scr_index_has_newer(index, &newer), 0);
    assert_int_equal(scr_index_mark_failed(index, &newer), 0);
    assert_int_equal(scr_index_has_newer(index, &old), 0);
    kvtree_delete(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tried_too_often),
        cmocka_unit_test(copies_are_fetched_in_turn),
        cmocka_unit_test(window_keeps_the_newest),
        cmocka_unit_test(window_spares_what_shall_stay),
        cmocka_unit_test(window_counts_what_is_good),
        cmocka_unit_test(window_ends_deletions),
        cmocka_unit_test(restored),
        cmocka_unit_test(names_for_people),
        cmocka_unit_test(another_of_the_same_id),
        cmocka_unit_test(has_newer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
