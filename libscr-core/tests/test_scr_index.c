/* SPDX-License-Identifier: BSD-3-Clause */
/* The index of a prefix directory, and the summary of a dataset. */
#include "base/versions.h"
#include "common/number.h"
#include "indexes.h"
#include <errno.h>
#include <limits.h>
#include <time.h>

/* The example of the SCR Developer Guide 1.2, section 2.15, as it is written today: keys
 * in the order in which they are set. */
#define DATASET(in, id, created)                                                         \
    in "ID\n" in "  " id "\n" in "NAME\n" in "  scr.dataset." id "\n" in "CREATED\n" in  \
       "  " created "\n" in "USER\n" in "  user1\n" in "JOBNAME\n" in                    \
       "  simulation123\n" in "JOBID\n" in "  112573\n" in "CKPT\n" in "  " id "\n" in   \
       "FILES\n" in "  4\n" in "SIZE\n" in "  2097182\n" in "COMPLETE\n" in "  1\n"

#define GUIDE                                                                            \
    "VERSION\n  1\n"                                                                     \
    "DIR\n  scr.dataset.12\n    DSET\n      12\n"                                        \
    "  scr.dataset.18\n    DSET\n      18\n"                                             \
    "DSET\n"                                                                             \
    "  12\n    DIR\n      scr.dataset.12\n        DSET\n" DATASET(                       \
        "          ", "12",                                                              \
        "1312853406814268") "        COMPLETE\n          1\n"                            \
                            "        FLUSHED\n          TIME\n"                          \
                            "        ATTEMPTS\n          1\n"                            \
                            "        FETCHED\n          TIME\n"                          \
                            "  18\n    DIR\n      scr.dataset.18\n        "              \
                            "DSET\n" DATASET(                                            \
                                "          ", "18",                                      \
                                "1312853507675143") "        COMPLETE\n          1\n"    \
                                                    "        FLUSHED\n          TIME\n"  \
                                                    "CURRENT\n  scr.dataset.18\n"

/* Replaces times of the last minute by the word TIME. */
static void hide_times(char *text)
{
    for (char *c = text; *c; c++) {
        struct tm tm = {.tm_isdst = -1};
        char *end = strptime(c, "%Y-%m-%dT%H:%M:%S", &tm);
        if (!end || end - c != 19) continue;
        time_t age = time(NULL) - mktime(&tm);
        assert_true(age >= 0 && age < 60);
        memcpy(c, "TIME", 4);
        memmove(c + 4, end, strlen(end) + 1);
    }
}

static void assert_index(const scr_index *index, const char *text)
{
    char *is = tree_text(index);
    hide_times(is);
    assert_string_equal(is, text);
    free(is);
}

static void written_as_in_the_guide(void **state)
{
    scr_index *index = guide_index();
    assert_index(index, GUIDE);
    kvtree_delete(&index);
}

static void write_and_read(void **state)
{
    struct scratch *s = *state;
    scr_index *index = guide_index(), *read = kvtree_new();
    assert_int_equal(
        kvtree_file_write(s->dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, index, &s->err), 0);
    assert_int_equal(faccessat(s->dir, ".scr/index.scr", R_OK, 0), 0);
    assert_int_equal(scr_index_read(s->dir, read, &s->err), 0);
    assert_index(read, GUIDE);
    assert_string_equal(s->err.text, "");
    kvtree_delete(&index);
    kvtree_delete(&read);
}

/* The printed example of the guide itself, with its order of keys. */
static void read_from_the_guide(void **state)
{
    scr_index *index = text_tree(
        "VERSION\n  1\nCURRENT\n  scr.dataset.18\n"
        "DIR\n  scr.dataset.18\n    DSET\n      18\n  scr.dataset.12\n    DSET\n      "
        "12\n"
        "DSET\n  18\n    DIR\n      scr.dataset.18\n        COMPLETE\n          1\n"
        "        DSET\n" DATASET(
            "          ", "18",
            "1312853507675143") "        FLUSHED\n          2011-08-08T18:31:47\n"
                                "  12\n    DIR\n      scr.dataset.12\n        FETCHED\n"
                                "          2011-08-08T18:31:47\n        FLUSHED\n        "
                                "  2011-08-08T18:30:30\n"
                                "        COMPLETE\n          1\n"
                                "        DSET\n" DATASET("          ", "12",
                                                         "1312853406814268"));
    scr_dataset d;
    scr_counters highest;
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 18);
    assert_int_equal(scr_index_next_fetch(index, (scr_age){18, 0}, NULL, &d), 0);
    assert_int_equal(d.id, 12);
    assert_int_equal(d.created, 1312853406814268);
    assert_int_equal(scr_index_next_fetch(index, (scr_age){12, 0}, NULL, &d), -ENOENT);
    highest = scr_index_highest(index);
    assert_true(highest.id == 18 && highest.ckpt == 18 && highest.created >= d.created);
    kvtree_delete(&index);
}

/* ---- files ---- */

static void missing_file(void **state)
{
    struct scratch *s = *state;
    scr_counters highest;
    scr_dataset d;
    scr_index *index = kvtree_new();
    assert_int_equal(scr_index_read(s->dir, index, &s->err), -ENOENT);
    assert_says(s->err.text, SCR_INDEX_NAME);
    assert_int_equal(kvtree_size(index), 0);
    assert_int_equal(scr_index_start(index), 0);
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), -ENOENT);
    highest = scr_index_highest(index);
    assert_true(highest.id == 0 && highest.ckpt == 0);
    /* what is written then is an index, even without any dataset */
    assert_int_equal(
        kvtree_file_write(s->dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, index, &s->err), 0);
    kvtree_unset_all(index);
    assert_int_equal(scr_index_read(s->dir, index, &s->err), 0);
    assert_tree(index, "VERSION\n  1\n");
    kvtree_delete(&index);
}

static void other_versions(void **state)
{
    static const char *const cases[][2] = {
        {"2", "is of version 2; this program knows version 1"},
        {"-1", "is of version -1"},
        {"one", "has no version"},
        {NULL, "has no version"}};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scr_index *index = guide_index(), *read = kvtree_new();
        if (cases[i][0])
            kvtree_util_set_str(index, "VERSION", cases[i][0]);
        else
            kvtree_unset(index, "VERSION");
        assert_int_equal(
            kvtree_file_write(s->dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, index, &s->err),
            0);
        assert_int_equal(scr_index_read(s->dir, read, &s->err),
                         i < 2 ? SCR_OTHER_VERSION : -EBADMSG);
        assert_says(s->err.text, SCR_INDEX_NAME);
        assert_says(s->err.text, cases[i][1]);
        assert_int_equal(kvtree_size(read), 0);
        kvtree_delete(&index);
        kvtree_delete(&read);
    }
}

static void damaged_file(void **state)
{
    struct scratch *s = *state;
    struct stat st;
    scr_index *index = guide_index(), *read = kvtree_new();
    assert_int_equal(
        kvtree_file_write(s->dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, index, &s->err), 0);
    assert_int_equal(fstatat(s->dir, SCR_INDEX_NAME, &st, 0), 0);
    for (off_t at = 0; at < st.st_size; at++) {
        scratch_flip(s, SCR_INDEX_NAME, at);
        assert_int_equal(scr_index_read(s->dir, read, &s->err), -EBADMSG);
        assert_int_equal(kvtree_size(read), 0);
        scratch_flip(s, SCR_INDEX_NAME, at);
    }
    assert_says(s->err.text, SCR_INDEX_NAME);
    scratch_put(s, SCR_INDEX_NAME, "", 0);
    assert_int_equal(scr_index_read(s->dir, read, &s->err), -EBADMSG);
    kvtree_delete(&index);
    kvtree_delete(&read);
}

static void unusable_file(void **state)
{
    struct scratch *s = *state;
    scr_index *index = kvtree_new();
    assert_int_equal(mkdirat(s->dir, SCR_INDEX_NAME, 0700), 0);
    int rc = scr_index_read(s->dir, index, &s->err);
    assert_true(rc < 0 && rc != -ENOENT && rc != -EBADMSG);
    assert_says(s->err.text, SCR_INDEX_NAME);
    assert_true(
        kvtree_file_write(s->dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, index, &s->err) < 0);
    kvtree_delete(&index);
}

/* ---- entries ---- */

static void incomplete_is_not_fetched(void **state)
{
    scr_index *index = kvtree_new();
    scr_dataset d;
    add(index, 3, 0);
    assert_int_equal(scr_index_get(index, "scr.dataset.3", &d), 0);
    assert_null(kvtree_getf(index, "DSET 3 DIR scr.dataset.3 FLUSHED"));
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), -ENOENT);
    assert_int_equal(apply(index, scr_index_set_current, "scr.dataset.3"), 0);
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), -ENOENT);
    add(index, 3, 1);
    assert_non_null(kvtree_getf(index, "DSET 3 DIR scr.dataset.3 FLUSHED"));
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    add(index, 3, 0); /* being written once more */
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), -ENOENT);
    kvtree_delete(&index);
}

/* The earlier files are there until the new ones are. */
static void same_name_with_a_new_id(void **state)
{
    scr_index *index = guide_index();
    scr_dataset d = checkpoint(18);
    d.id = 20;
    d.ckpt = 19;
    assert_int_equal(scr_index_add(index, &d, 0), 0);
    assert_string_equal(kvtree_get_val(kvtree_getf(index, "DIR scr.dataset.18"), "DSET"),
                        "20");
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 18);
    assert_int_equal(scr_index_get(index, "scr.dataset.18", &d), 0);
    assert_int_equal(d.id, 18);
    d = checkpoint(18);
    d.id = 20;
    assert_int_equal(scr_index_add(index, &d, 1), 0);
    assert_null(kvtree_getf(index, "DSET 18"));
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 20);
    assert_string_equal(d.name, "scr.dataset.18");
    d.id = 22;
    assert_int_equal(scr_index_add(index, &d, 0), 0);
    assert_int_equal(scr_index_remove(index, &d), 0); /* all of that name */
    assert_null(kvtree_getf(index, "DSET 20"));
    assert_null(kvtree_getf(index, "DSET 22"));
    assert_null(kvtree_getf(index, "DIR scr.dataset.18"));
    kvtree_delete(&index);
}

/* Two copies of one dataset id, in two directories. */
static void same_id_with_two_names(void **state)
{
    scr_index *index = kvtree_new();
    scr_dataset d = checkpoint(5), read;
    assert_int_equal(scr_index_add(index, &d, 1), 0);
    strcpy(d.name, "copy/of.5");
    assert_int_equal(scr_index_add(index, &d, 1), 0);
    assert_int_equal(scr_index_get(index, "copy/of.5", &read), 0);
    assert_string_equal(read.name, "copy/of.5");
    assert_int_equal(apply(index, scr_index_remove, "scr.dataset.5"), 0);
    assert_int_equal(scr_index_get(index, "scr.dataset.5", &read), -ENOENT);
    assert_int_equal(scr_index_get(index, "copy/of.5", &read), 0);
    assert_int_equal(apply(index, scr_index_remove, "copy/of.5"), 0);
    assert_tree(index, "VERSION\n  1\n");
    kvtree_delete(&index);
}

static void remove_entries(void **state)
{
    scr_index *index = guide_index();
    scr_dataset d;
    assert_int_equal(apply(index, scr_index_remove, "nothing"), -ENOENT);
    assert_index(index, GUIDE);
    assert_int_equal(apply(index, scr_index_remove, "scr.dataset.18"), 0);
    assert_null(kvtree_get(index, "CURRENT"));
    assert_int_equal(scr_index_get(index, "scr.dataset.18", &d), -ENOENT);
    assert_int_equal(scr_index_get(index, "scr.dataset.12", &d), 0);
    assert_int_equal(apply(index, scr_index_remove, "scr.dataset.18"), -ENOENT);
    assert_int_equal(apply(index, scr_index_remove, "scr.dataset.12"), 0);
    assert_tree(index, "VERSION\n  1\n");
    kvtree_delete(&index);
}

static void current(void **state)
{
    scr_index *index = guide_index();
    scr_dataset d;
    assert_int_equal(apply(index, scr_index_set_current, "nothing"), -ENOENT);
    assert_string_equal(kvtree_get_val(index, "CURRENT"), "scr.dataset.18");
    assert_int_equal(apply(index, scr_index_set_current, "scr.dataset.12"), 0);
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 12); /* the current one, although 18 is newer */
    assert_int_equal(scr_index_next_fetch(index, (scr_age){19, 0}, NULL, &d), 0);
    assert_int_equal(d.id, 18); /* it counts for the first attempt only */
    assert_int_equal(apply(index, scr_index_remove, "scr.dataset.18"), 0);
    assert_string_equal(kvtree_get_val(index, "CURRENT"), "scr.dataset.12");
    kvtree_delete(&index);
}

static void fetched_and_failed(void **state)
{
    scr_index *index = guide_index();
    scr_dataset d;
    assert_int_equal(apply(index, scr_index_mark_fetched, "nothing"), -ENOENT);
    assert_int_equal(apply(index, scr_index_mark_failed, "nothing"), -ENOENT);
    assert_index(index, GUIDE);
    assert_int_equal(apply(index, scr_index_mark_fetched, "scr.dataset.18"), 0);
    assert_non_null(kvtree_getf(index, "DSET 18 DIR scr.dataset.18 FETCHED"));
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 18); /* an attempt is no failure */
    assert_int_equal(apply(index, scr_index_mark_failed, "scr.dataset.18"), 0);
    assert_non_null(kvtree_getf(index, "DSET 18 DIR scr.dataset.18 FAILED"));
    assert_null(kvtree_get(index, "CURRENT"));
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 12);
    assert_int_equal(apply(index, scr_index_set_current, "scr.dataset.18"), 0);
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 12); /* CURRENT alone does not clear that, a wish does */
    assert_int_equal(apply(index, scr_index_choose, "scr.dataset.18"), 0);
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 18);
    assert_int_equal(apply(index, scr_index_mark_failed, "scr.dataset.18"), 0);
    add(index, 18, 1); /* a new copy has not failed either */
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 18);
    kvtree_delete(&index);
}

/* No copy is of use: a flush of the same dataset does not change that, one of another
 * does. */
static void refused(void **state)
{
    scr_index *index = guide_index();
    scr_dataset d;
    assert_int_equal(apply(index, scr_index_mark_refused, "nothing"), -ENOENT);
    assert_int_equal(apply(index, scr_index_mark_refused, "scr.dataset.18"), 0);
    for (int complete = 0; complete < 2; complete++) {
        add(index, 18, complete);
        assert_non_null(kvtree_getf(index, "DSET 18 DIR scr.dataset.18 FAILED"));
        assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
        assert_int_equal(d.id, 12);
    }
    assert_int_equal(apply(index, scr_index_choose, "scr.dataset.18"), 0);
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 18);
    assert_null(kvtree_getf(index, "DSET 18 DIR scr.dataset.18 REFUSED"));
    assert_int_equal(apply(index, scr_index_mark_refused, "scr.dataset.18"), 0);
    assert_int_equal(scr_index_get(index, "scr.dataset.18", &d), 0);
    d.created++; /* of another job */
    assert_int_equal(scr_index_add(index, &d, 1), 0);
    assert_null(kvtree_getf(index, "DSET 18 DIR scr.dataset.18 REFUSED"));
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 18);
    kvtree_delete(&index);
}

/* One that could not be saved: why, until it is there. */
static void incomplete(void **state)
{
    scr_index *index = guide_index();
    scr_dataset d;
    scr_index_state state_of;
    assert_int_equal(scr_index_get(index, "scr.dataset.18", &d), 0);
    assert_int_equal(scr_index_mark_incomplete(index, &d, "rank 3 is lost"), 0);
    assert_int_equal(scr_index_look(index, &d, &state_of), 0);
    assert_int_equal(state_of.complete, 0);
    assert_string_equal(scr_index_time(index, &d, SCR_INDEX_REASON), "rank 3 is lost");
    assert_int_equal(scr_index_mark_incomplete(index, &d, "so is 4"), 0);
    assert_string_equal(scr_index_time(index, &d, SCR_INDEX_REASON), "so is 4");
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_int_equal(d.id, 12);
    add(index, 18, 1);
    assert_int_equal(scr_index_get(index, "scr.dataset.18", &d), 0);
    assert_null(scr_index_time(index, &d, SCR_INDEX_REASON));
    d.id = 99;
    assert_int_equal(scr_index_mark_incomplete(index, &d, "x"), -ENOENT);
    kvtree_delete(&index);
}

/* Every second of 20 checkpoints can be fetched, and they were entered in no order. */
static void walk_from_new_to_old(void **state)
{
    scr_index *index = kvtree_new();
    scr_dataset d;
    scr_age below = SCR_AGE_ANY;
    int expected = 20;
    scr_counters highest;
    for (int i = 0; i < 20; i++) {
        int id = i * 7 % 20 + 1;
        scr_dataset one = checkpoint(id);
        if (id % 4 == 3) one.ckpt = 0; /* not a checkpoint */
        assert_int_equal(scr_index_add(index, &one, id % 4 != 1), 0);
    }
    for (; scr_index_next_fetch(index, below, NULL, &d) == 0; expected -= 2) {
        assert_int_equal(d.id, expected);
        below = scr_dataset_age(&d);
    }
    assert_int_equal(expected, 0);
    d.id = 77;
    assert_int_equal(scr_index_next_fetch(index, (scr_age){2, 0}, NULL, &d), -ENOENT);
    assert_int_equal(d.id, 77);
    highest = scr_index_highest(index);
    assert_true(highest.id == 20 && highest.ckpt == 20);
    kvtree_delete(&index);
}

/* Entries that contradict themselves are not offered, and do not count. */
static void hostile_entries(void **state)
{
    static const char *const lies[][2] = {
        {"ID", "19"},         {"ID", "99"},  {"ID", "0"},           {"ID", "2147483647"},
        {"NAME", "../../x"},  {"NAME", "/"}, {"NAME", "other"},     {"NAME", ".scr"},
        {"COMPLETE", "true"}, {"CKPT", "x"}, {"CKPT", "2147483647"}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        scr_dataset d = {.id = 77};
        scr_counters highest;
        scr_index *index = guide_index();
        kvtree *about = kvtree_getf(index, "DSET 18 DIR scr.dataset.18 DSET");
        kvtree_util_set_str(about, lies[i][0], lies[i][1]);
        assert_int_equal(scr_index_get(index, "scr.dataset.18", &d), -ENOENT);
        assert_int_equal(d.id, 77);
        assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
        assert_int_equal(d.id, 12);
        highest = scr_index_highest(index);
        assert_true(highest.id <= 99 && highest.ckpt <= 18);
        kvtree_delete(&index);
    }
}

/* What is not written as the id is, would be offered again and again: nobody finds it to
 * say that it failed. */
static void hostile_ids(void **state)
{
    static const char *const ids[] = {"+19", "019"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        scr_dataset d, *list;
        int count;
        scr_index *index = guide_index();
        add(index, 19, 1);
        kvtree *entry = kvtree_extract(kvtree_get(index, "DSET"), "19");
        assert_non_null(kvtree_set(kvtree_get(index, "DSET"), ids[i], entry));
        assert_int_equal(scr_index_list(index, &list, &count), 0);
        assert_int_equal(count, 2);
        free(list);
        assert_int_equal(scr_index_get(index, "scr.dataset.19", &d), -ENOENT);
        kvtree_unset(index, "CURRENT");
        assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
        assert_int_equal(d.id, 18);
        kvtree_delete(&index);
    }
}

static void hostile_shape(void **state)
{
    static const char *const texts[] = {
        "",
        "DSET\n",
        "DSET\n  18\n",
        "DSET\n  18\n    DIR\n",
        "CURRENT\n  x\n",
        "DSET\n  x\n    DIR\n      y\n        DSET\n          ID\n            1\n",
        "CURRENT\n  a\n  b\nDIR\n  a\n    DSET\n      1\n      2\n",
        "CURRENT\n  a\nDIR\n  a\n    DSET\n      -1\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        scr_dataset d;
        scr_counters highest;
        scr_index *index = text_tree(texts[i]);
        assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), -ENOENT);
        assert_int_equal(scr_index_get(index, "a", &d), -ENOENT);
        assert_int_equal(apply(index, scr_index_mark_fetched, "a"), -ENOENT);
        assert_int_equal(apply(index, scr_index_remove, "a"), -ENOENT);
        highest = scr_index_highest(index);
        assert_true(highest.id == 0 && highest.ckpt == 0);
        add(index, 4, 1);
        assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
        assert_int_equal(d.id, 4);
        kvtree_delete(&index);
    }
}

/* ---- summary ---- */

#define SUMMARY                                                                          \
    "VERSION\n  6\nCOMPLETE\n  1\nDSET\n" DATASET("  ", "18", "1312853507675143")

static void summary_round_trip(void **state)
{
    struct scratch *s = *state;
    scr_dataset d = checkpoint(18), read;
    kvtree *tree = kvtree_new();
    assert_int_equal(scr_summary_write(s->dir, &d, &s->err), 0);
    assert_int_equal(
        kvtree_file_read(s->dir, ".scr/summary.scr", KVTREE_ANY_SIZE, tree, &s->err), 0);
    assert_tree(tree, SUMMARY); /* as in the guide, section 2.16 */
    assert_int_equal(scr_summary_read(s->dir, &read, &s->err), 0);
    assert_int_equal(read.id, 18);
    assert_int_equal(read.size, 2097182);
    assert_string_equal(read.name, d.name);
    assert_string_equal(s->err.text, "");
    kvtree_delete(&tree);
}

static void summary_refused(void **state)
{
    static const char *const cases[][3] = {
        {"VERSION", "5", "knows version 6"},
        {"VERSION", "x", "has no version"},
        {"DSET", "x", "a dataset record has a missing"}};
    struct scratch *s = *state;
    scr_dataset d = {.id = 77};
    assert_int_equal(scr_summary_read(s->dir, &d, &s->err), -ENOENT);
    assert_says(s->err.text, SCR_SUMMARY_NAME);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kvtree *tree = text_tree(SUMMARY);
        kvtree_util_set_str(tree, cases[i][0], cases[i][1]);
        assert_int_equal(
            kvtree_file_write(s->dir, SCR_SUMMARY_NAME, KVTREE_ANY_SIZE, tree, &s->err),
            0);
        assert_int_equal(scr_summary_read(s->dir, &d, &s->err),
                         i == 0 ? SCR_OTHER_VERSION : -EBADMSG);
        assert_says(s->err.text, cases[i][2]);
        kvtree_delete(&tree);
    }
    scratch_flip(s, SCR_SUMMARY_NAME, 30);
    assert_int_equal(scr_summary_read(s->dir, &d, &s->err), -EBADMSG);
    assert_int_equal(d.id, 77);
}

static void summary_cannot_be_written(void **state)
{
    struct scratch *s = *state;
    scr_dataset d = checkpoint(18);
    assert_int_equal(unlinkat(s->dir, ".scr", AT_REMOVEDIR), 0);
    assert_int_equal(scr_summary_write(s->dir, &d, &s->err), -ENOENT);
    assert_says(s->err.text, SCR_SUMMARY_NAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_as_in_the_guide),
        scratch_test(write_and_read),
        cmocka_unit_test(read_from_the_guide),
        scratch_test(missing_file),
        scratch_test(other_versions),
        scratch_test(damaged_file),
        scratch_test(unusable_file),
        cmocka_unit_test(incomplete_is_not_fetched),
        cmocka_unit_test(same_name_with_a_new_id),
        cmocka_unit_test(same_id_with_two_names),
        cmocka_unit_test(remove_entries),
        cmocka_unit_test(current),
        cmocka_unit_test(fetched_and_failed),
        cmocka_unit_test(refused),
        cmocka_unit_test(incomplete),
        cmocka_unit_test(walk_from_new_to_old),
        cmocka_unit_test(hostile_entries),
        cmocka_unit_test(hostile_ids),
        cmocka_unit_test(hostile_shape),
        scratch_test(summary_round_trip),
        scratch_test(summary_refused),
        scratch_test(summary_cannot_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
