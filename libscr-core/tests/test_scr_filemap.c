/* SPDX-License-Identifier: BSD-3-Clause */
/* The filemap: in memory, in files, and in hostile files. */
#include "cache/filemap.h"
#include "common/beneath.h"
#include "records.h"
#include <errno.h>

#define OWNER "user1/scr.7"
#define NAME "filemap_0.scriinfo"

/* The example of the SCR Developer Guide 1.2, section 2.4.2, with paths as they are here:
 * ranks 20 and 28, datasets 10 and 11. */
#define GUIDE                                                                            \
    "DSET\n"                                                                             \
    "  10\n    RANK\n      20\n"                                                         \
    "  11\n    RANK\n      20\n      28\n"                                               \
    "RANK\n"                                                                             \
    "  20\n    DSET\n"                                                                   \
    "      10\n        FILES\n          2\n        FILE\n"                               \
    "          /c/user1/scr.7/scr.dataset.10/foo_20.ckpt.10\n"                           \
    "            SIZE\n              100\n"                                              \
    "          /c/user1/scr.7/scr.dataset.10/foo_20.ckpt.10.xor\n"                       \
    "        REDDESC\n          TYPE\n            XOR\n"                                 \
    "        DATADESC\n          ID\n            10\n"                                   \
    "      11\n        FILES\n          1\n        FILE\n"                               \
    "          /c/user1/scr.7/scr.dataset.11/foo_20.ckpt.11\n"                           \
    "  28\n    DSET\n"                                                                   \
    "      11\n        FILES\n          1\n        FILE\n"                               \
    "          /c/user1/scr.7/scr.dataset.11/foo_28.ckpt.11\n"

/* The entries of one rank in one dataset, as in a file. */
#define ONE(rank, dset, path)                                                            \
    "RANK\n  " rank "\n    DSET\n      " dset "\n        FILE\n          " path "\n"

static void assert_list(int rc, int count, const int *list, int n, const int *expected)
{
    assert_int_equal(rc, 0);
    assert_int_equal(count, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(list[i], expected[i]);
}

/* The datasets of map, its ranks, and the ranks of dataset 11: each in a list that ends
 * with -1. */
static void assert_lists(const scr_filemap *map, const int *dsets, const int *ranks,
                         const int *of_11)
{
    int count, *list, n[3] = {0, 0, 0};
    const int *expected[3] = {dsets, ranks, of_11};
    for (int k = 0; k < 3; k++)
        while (expected[k][n[k]] >= 0)
            n[k]++;
    int rc = scr_filemap_list_datasets(map, &count, &list);
    assert_list(rc, count, list, n[0], dsets);
    free(list);
    rc = scr_filemap_list_ranks(map, &count, &list);
    assert_list(rc, count, list, n[1], ranks);
    free(list);
    rc = scr_filemap_list_ranks_of(map, 11, &count, &list);
    assert_list(rc, count, list, n[2], of_11);
    free(list);
}

#define LIST(...) ((const int[]){__VA_ARGS__ - 1})

static void build_as_in_the_guide(void **state)
{
    scr_filemap *map = kvtree_new();
    kvtree *red = text_tree("TYPE\n  XOR\n"), *data = text_tree("ID\n  10\n");
    char path[64];
    assert_int_equal(scr_filemap_set_expected(map, 10, 20, 2), 0);
    kvtree *meta =
        scr_filemap_add_file(map, 10, 20, "/c/user1/scr.7/scr.dataset.10/foo_20.ckpt.10");
    kvtree_util_set_bytecount(meta, SCR_META_SIZE, 100);
    scr_filemap_add_file(map, 10, 20, "/c/user1/scr.7/scr.dataset.10/foo_20.ckpt.10.xor");
    assert_int_equal(scr_filemap_set_reddesc(map, 10, 20, red), 0);
    assert_int_equal(scr_filemap_set_dataset(map, 10, 20, data), 0);
    for (int rank = 20; rank <= 28; rank += 8) {
        snprintf(path, sizeof path, "/c/user1/scr.7/scr.dataset.11/foo_%d.ckpt.11", rank);
        assert_int_equal(scr_filemap_set_expected(map, 11, rank, 1), 0);
        assert_non_null(scr_filemap_add_file(map, 11, rank, path));
    }
    assert_tree(map, GUIDE);
    assert_lists(map, LIST(10, 11, ), LIST(20, 28, ), LIST(20, 28, ));
    /* existing entries are found, and copies are independent */
    kvtree_unset_all(red);
    assert_tree(scr_filemap_get_reddesc(map, 10, 20), "TYPE\n  XOR\n");
    assert_tree(scr_filemap_get_dataset(map, 10, 20), "ID\n  10\n");
    assert_null(scr_filemap_get_reddesc(map, 11, 20));
    assert_null(scr_filemap_get_dataset(map, 10, 28));
    assert_int_equal(kvtree_size(scr_filemap_files(map, 10, 20)), 2);
    assert_null(scr_filemap_files(map, 12, 20));
    assert_int_equal(scr_filemap_expected(map, 10, 20), 2);
    assert_int_equal(scr_filemap_expected(map, 10, 21), -1);
    /* adding a file again returns its existing meta data */
    meta =
        scr_filemap_add_file(map, 10, 20, "/c/user1/scr.7/scr.dataset.10/foo_20.ckpt.10");
    assert_tree(meta, "SIZE\n  100\n");
    kvtree_delete(&red);
    kvtree_delete(&data);
    kvtree_delete(&map);
}

static void place_of_a_file(void **state)
{
    kvtree *meta = kvtree_new();
    assert_int_equal(scr_meta_set_place(meta, "/p/run/a.ckpt"), 0);
    assert_tree(meta, "ORIGPATH\n  /p/run\nORIGNAME\n  a.ckpt\n");
    assert_int_equal(scr_meta_set_place(meta, "/a"), 0);
    assert_tree(meta, "ORIGPATH\n  /\nORIGNAME\n  a\n");
    assert_int_not_equal(scr_meta_set_place(NULL, "/a"), 0);
    kvtree_delete(&meta);
}

static void empty_map(void **state)
{
    scr_filemap *map = kvtree_new();
    assert_lists(map, LIST(), LIST(), LIST());
    assert_lists(NULL, LIST(), LIST(), LIST());
    assert_int_equal(scr_filemap_remove_dataset(map, 1), 0);
    assert_int_equal(scr_filemap_remove_rank(map, 1, 1), 0);
    assert_int_equal(scr_filemap_remove_file(map, 1, 1, "/x"), 0);
    assert_int_equal(scr_filemap_move_rank(map, 1, NULL), 0);
    assert_int_equal(kvtree_size(map), 0);
    kvtree_delete(&map);
}

/* Without a map, as after a lack of memory, every call fails. */
static void no_map(void **state)
{
    assert_null(scr_filemap_add_file(NULL, 1, 0, "/x"));
    assert_int_equal(scr_filemap_set_expected(NULL, 1, 0, 1), -ENOMEM);
    assert_int_equal(scr_filemap_set_dataset(NULL, 1, 0, NULL), -ENOMEM);
    assert_int_equal(scr_filemap_set_reddesc(NULL, 1, 0, NULL), -ENOMEM);
}

static void remove_entries(void **state)
{
    const char *path = "/c/user1/scr.7/scr.dataset.10/foo_20.ckpt.10";
    scr_filemap *map = text_tree(GUIDE);
    assert_int_equal(scr_filemap_remove_file(map, 10, 20, path), 0);
    assert_int_equal(kvtree_size(scr_filemap_files(map, 10, 20)), 1);
    assert_int_equal(scr_filemap_expected(map, 10, 20), 2);
    scr_filemap_remove_rank(map, 11, 20);
    assert_lists(map, LIST(10, 11, ), LIST(20, 28, ), LIST(28, ));
    scr_filemap_remove_rank(map, 11, 28);
    assert_lists(map, LIST(10, ), LIST(20, ), LIST());
    scr_filemap_remove_rank(map, 10, 20);
    assert_int_equal(kvtree_size(map), 0);
    kvtree_delete(&map);
}

static void remove_datasets(void **state)
{
    scr_filemap *map = text_tree(GUIDE);
    assert_int_equal(scr_filemap_remove_dataset(map, 11), 0);
    assert_lists(map, LIST(10, ), LIST(20, ), LIST());
    assert_int_equal(scr_filemap_remove_dataset(map, 11), 0);
    assert_int_equal(scr_filemap_remove_dataset(map, 10), 0);
    assert_int_equal(kvtree_size(map), 0);
    kvtree_delete(&map);
}

static void move_ranks(void **state)
{
    scr_filemap *map = text_tree(GUIDE), *other = kvtree_new();
    assert_int_equal(scr_filemap_move_rank(map, 20, other), 0);
    assert_lists(map, LIST(11, ), LIST(28, ), LIST(28, ));
    assert_lists(other, LIST(10, 11, ), LIST(20, ), LIST(20, ));
    assert_int_equal(kvtree_size(scr_filemap_files(other, 10, 20)), 2);
    assert_tree(scr_filemap_get_reddesc(other, 10, 20), "TYPE\n  XOR\n");
    assert_int_equal(scr_filemap_move_rank(map, 5, other), 0); /* the rank has none */
    assert_int_equal(scr_filemap_move_rank(map, 28, other), 0);
    assert_int_equal(kvtree_size(map), 0);
    assert_tree(other, GUIDE);
    kvtree_delete(&map);
    kvtree_delete(&other);
}

static void move_fails_whole(void **state)
{
    scr_filemap *map = text_tree(ONE("3", "x", "/f")), *other = kvtree_new();
    assert_int_equal(scr_filemap_move_rank(map, 3, other), -EINVAL);
    assert_int_equal(kvtree_size(other), 0);
    assert_tree(map, ONE("3", "x", "/f"));
    kvtree_delete(&map);
    map = text_tree(GUIDE);
    assert_int_equal(scr_filemap_move_rank(map, 20, NULL), -ENOMEM);
    assert_tree(map, GUIDE);
    kvtree_delete(&map);
    kvtree_delete(&other);
}

/* ---- names ---- */

static void name_below_the_dataset(void **state)
{
    static const struct {
        const char *path, *name;
    } cases[] = {
        {"/c/user1/scr.7/scr.dataset.5/f", "f"},
        {"/c/user1/scr.7/scr.dataset.5/d/e/f", "d/e/f"},
        {"/user1/scr.7/scr.dataset.5/f", "f"},
        {"/c/user1/scr.7/scr.dataset.5/user1/scr.7/scr.dataset.5/f",
         "user1/scr.7/scr.dataset.5/f"},
        {"/c/user1/scr.7/scr.dataset.5/", NULL},
        {"/c/user1/scr.7/scr.dataset.5", NULL},
        {"/c/user1/scr.7/scr.dataset.50/f", NULL},
        {"/c/user1/scr.7/scr.dataset.05/f", NULL},
        {"/c/user1/scr.7/scr.dataset.6/f", NULL},
        {"/c/user1/scr.77/scr.dataset.5/f", NULL},
        {"/c/user2/scr.7/scr.dataset.5/f", NULL},
        {"/c/xuser1/scr.7/scr.dataset.5/f", NULL},
        {"c/user1/scr.7/scr.dataset.5/f", NULL},
        {"cache/user1/scr.7/scr.dataset.5/f", NULL},
        {"user1/scr.7/scr.dataset.5/f", NULL},
        {"/c/user1/scr.7/scr.dataset.5/..", NULL},
        {"/c/user1/scr.7/scr.dataset.5/../f", NULL},
        {"/c/user1/scr.7/scr.dataset.5/d/../../f", NULL},
        {"/c/../user1/scr.7/scr.dataset.5/f", NULL},
        {"/./user1/scr.7/scr.dataset.5/f", NULL},
        {"//user1/scr.7/scr.dataset.5/f", NULL},
        {"/c/user1/scr.7/scr.dataset.5//f", NULL},
        {"/c/user1/scr.7/scr.dataset.5/f/", NULL},
        {"/c/user1/scr.7/scr.dataset.5/f\n", NULL},
        {"/etc/passwd", NULL},
        {"/", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name = scr_filemap_name_of(cases[i].path, OWNER, 5);
        if (!name != !cases[i].name) fail_msg("%s: %s", cases[i].path, name);
        if (name) assert_string_equal(name, cases[i].name);
    }
}

static void name_of_any_length(void **state)
{
    char path[BENEATH_NAME_MAX + 8] = "/user1/scr.7/scr.dataset.5/", owner[2000];
    size_t n = strlen(path);
    memset(path + n, 'f', BENEATH_NAME_MAX - n);
    path[BENEATH_NAME_MAX] = 0;
    assert_non_null(scr_filemap_name_of(path, OWNER, 5));
    path[BENEATH_NAME_MAX] = 'f';
    assert_null(scr_filemap_name_of(path, OWNER, 5));
    memset(owner, 'o', sizeof owner);
    owner[sizeof owner - 1] = 0;
    assert_null(scr_filemap_name_of(path, owner, 5));
}

/* ---- files ---- */

static void write_and_read(void **state)
{
    struct scratch *s = *state;
    scr_filemap *map = text_tree(GUIDE), *read = kvtree_new();
    assert_int_equal(scr_filemap_write(s->dir, NAME, map, &s->err), 0);
    assert_int_equal(scr_filemap_read(s->dir, NAME, OWNER, read, &s->err), 0);
    assert_tree(read, GUIDE);
    assert_string_equal(s->err.text, "");
    kvtree_delete(&map);
    kvtree_delete(&read);
}

static void reading_merges(void **state)
{
    struct scratch *s = *state;
    scr_filemap *all = text_tree(GUIDE), *part = kvtree_new(), *read = kvtree_new();
    scr_filemap_move_rank(all, 20, part);
    assert_int_equal(scr_filemap_write(s->dir, "one", part, &s->err), 0);
    assert_int_equal(scr_filemap_write(s->dir, "two", all, &s->err), 0);
    assert_int_equal(scr_filemap_read(s->dir, "one", OWNER, read, &s->err), 0);
    assert_int_equal(scr_filemap_read(s->dir, "two", OWNER, read, &s->err), 0);
    assert_int_equal(scr_filemap_read(s->dir, "two", OWNER, read, &s->err), 0);
    assert_tree(read, GUIDE);
    kvtree_delete(&all);
    kvtree_delete(&part);
    kvtree_delete(&read);
}

static void missing_file(void **state)
{
    struct scratch *s = *state;
    scr_filemap *map = text_tree(GUIDE);
    assert_int_equal(scr_filemap_read(s->dir, NAME, OWNER, map, &s->err), -ENOENT);
    assert_says(s->err.text, NAME);
    assert_int_equal(scr_filemap_read(s->dir, "../" NAME, OWNER, map, &s->err), -EINVAL);
    assert_int_equal(scr_filemap_write(s->dir, "no/" NAME, map, &s->err), -ENOENT);
    assert_tree(map, GUIDE);
    kvtree_delete(&map);
}

/* The index in a file is not trusted: it is rebuilt from the entries. */
static void index_is_rebuilt(void **state)
{
    static const char *const indices[] = {"", "DSET\n  999\n    RANK\n      4\n",
                                          "DSET\n  ../..\n",
                                          "DSET\n  10\n    RANK\n      x\n"};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
        char text[4096];
        scr_filemap *read = kvtree_new();
        snprintf(text, sizeof text, "%s%s", indices[i], strstr(GUIDE, "RANK\n  20"));
        scr_filemap *map = text_tree(text);
        assert_int_equal(scr_filemap_write(s->dir, NAME, map, &s->err), 0);
        assert_int_equal(scr_filemap_read(s->dir, NAME, OWNER, read, &s->err), 0);
        assert_tree(read, GUIDE);
        kvtree_delete(&map);
        kvtree_delete(&read);
    }
}

/* Other contents of a file do not reach the map. */
static void unknown_keys(void **state)
{
    struct scratch *s = *state;
    scr_filemap *map = text_tree(GUIDE), *read = kvtree_new();
    kvtree_util_set_str(map, "SURPRISE", "1");
    kvtree_set_kv(kvtree_get_kv_int(map, "RANK", 20), "OTHER", "1");
    kvtree_set_kv_int(map, "RANK", 5); /* a rank without datasets */
    assert_int_equal(scr_filemap_write(s->dir, NAME, map, &s->err), 0);
    assert_int_equal(scr_filemap_read(s->dir, NAME, OWNER, read, &s->err), 0);
    assert_tree(read, GUIDE);
    kvtree_delete(&map);
    kvtree_delete(&read);
}

/* A file with one false entry is refused as a whole, with a text that names it. */
static void hostile_files(void **state)
{
#define IN(folder) "/c/user1/scr.7/" folder
    static const char *const cases[][2] = {
        {ONE("3", "5", "/etc/passwd"), "dataset 5 lists \"/etc/passwd\""},
        {ONE("3", "5", IN("scr.dataset.5/../../f")), "dataset 5 lists"},
        {ONE("3", "5", IN("scr.dataset.6/f")), "not in user1/scr.7/scr.dataset.5"},
        {ONE("3", "5", "/c/user2/scr.7/scr.dataset.5/f"), "dataset 5 lists"},
        {ONE("3", "5", "user1/scr.7/scr.dataset.5/f"), "dataset 5 lists"},
        {ONE("3", "5", IN("scr.dataset.5/")), "dataset 5 lists"},
        {ONE("-1", "5", IN("scr.dataset.5/f")), "impossible rank -1"},
        {ONE("03", "5", IN("scr.dataset.5/f")), "impossible rank 3"},
        {ONE("+3", "5", IN("scr.dataset.5/f")), "impossible rank 3"},
        {ONE("x", "5", IN("scr.dataset.5/f")), "a rank that is not a number"},
        {ONE("3x", "5", IN("scr.dataset.5/f")), "a rank that is not a number"},
        {ONE("9999999999", "5", IN("scr.dataset.5/f")), "a rank that is not a number"},
        {ONE("3", "0", IN("scr.dataset.0/f")), "impossible dataset id 0"},
        {ONE("3", "-5", IN("scr.dataset.-5/f")), "impossible dataset id -5"},
        {ONE("3", "05", IN("scr.dataset.5/f")), "impossible dataset id 5"},
        {ONE("3", "2147483647", IN("scr.dataset.2147483647/f")), "impossible dataset id"},
        {ONE("3", "../5", IN("scr.dataset.5/f")), "rank 3 has a dataset id that is not"},
        {ONE("3", "2147483648", IN("scr.dataset.5/f")), "rank 3 has a dataset id"},
        {"RANK\n  3\n    DSET\n      5\n  +3\n    DSET\n      5\n", "impossible rank 3"},
        {"RANK\n  3\n    DSET\n      5\n      05\n", "impossible dataset id 5"},
        {ONE("3", "5", IN("scr.dataset.5/\x1b[2J")), "scr.dataset.5/?[2J\""},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scr_filemap *map = text_tree(GUIDE), *lie = text_tree(cases[i][0]);
        assert_int_equal(kvtree_merge(lie, map), 0); /* amid good entries */
        assert_int_equal(scr_filemap_write(s->dir, NAME, lie, &s->err), 0);
        if (scr_filemap_read(s->dir, NAME, OWNER, map, &s->err) != -EBADMSG)
            fail_msg("case %zu was taken", i);
        assert_says(s->err.text, NAME);
        assert_says(s->err.text, cases[i][1]);
        assert_int_equal(scr_filemap_read(s->dir, NAME, OWNER, map, NULL), -EBADMSG);
        assert_tree(map, GUIDE);
        kvtree_delete(&map);
        kvtree_delete(&lie);
    }
}

static void filemaps_of_a_folder(void **state)
{
    struct scratch *s = *state;
    kvtree *names = kvtree_new(), *master = text_tree("Filemap\n  /c/u/scr.7/filemap_1\n"
                                                      "  /../filemap_1\n  filemap_2\n");
    assert_int_equal(scr_filemap_names(s->dir, 0, names, &s->err), -ENOENT);
    assert_int_equal(
        kvtree_file_write(s->dir, SCR_FILEMAP_MASTER, KVTREE_ANY_SIZE, master, NULL), 0);
    assert_int_equal(scr_filemap_names(s->dir, 0, names, &s->err), 0);
    assert_tree(names, "filemap_1\nfilemap_2\n");
    kvtree_unset_all(names);
    scratch_put(s, "filemap_7.scriinfo", "", 0);
    assert_int_equal(scr_filemap_names(s->dir, 1, names, &s->err), 0);
    assert_tree(names, "filemap_7.scriinfo\n"); /* but not the master filemap */
    kvtree_unset_all(names);
    scratch_flip(s, SCR_FILEMAP_MASTER, 30);
    assert_int_equal(scr_filemap_names(s->dir, 0, names, &s->err), -EBADMSG);
    assert_says(s->err.text, SCR_FILEMAP_MASTER);
    assert_int_equal(kvtree_size(names), 0);
    kvtree_delete(&names);
    kvtree_delete(&master);
}

/* A change of any byte is detected, and the file is not used. */
static void damaged_file(void **state)
{
    struct scratch *s = *state;
    struct stat st;
    scr_filemap *map = text_tree(GUIDE), *read = kvtree_new();
    assert_int_equal(scr_filemap_write(s->dir, NAME, map, &s->err), 0);
    assert_int_equal(fstatat(s->dir, NAME, &st, 0), 0);
    for (off_t at = 0; at < st.st_size; at++) {
        scratch_flip(s, NAME, at);
        assert_int_equal(scr_filemap_read(s->dir, NAME, OWNER, read, &s->err), -EBADMSG);
        assert_int_equal(kvtree_size(read), 0);
        scratch_flip(s, NAME, at);
    }
    assert_int_equal(scr_filemap_read(s->dir, NAME, OWNER, read, &s->err), 0);
    kvtree_delete(&map);
    kvtree_delete(&read);
}

/* Invalid numbers do not count as a number of files. */
static void expected_is_a_number(void **state)
{
    static const char *const values[] = {"x", "", "2 ", "99999999999"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        scr_filemap *map = text_tree(GUIDE);
        kvtree *e = kvtree_getf(map, "RANK 20 DSET 10");
        kvtree_util_set_str(e, "FILES", values[i]);
        assert_int_equal(scr_filemap_expected(map, 10, 20), -1);
        kvtree_delete(&map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(build_as_in_the_guide),
        cmocka_unit_test(place_of_a_file),
        cmocka_unit_test(empty_map),
        cmocka_unit_test(no_map),
        cmocka_unit_test(remove_entries),
        cmocka_unit_test(remove_datasets),
        cmocka_unit_test(move_ranks),
        cmocka_unit_test(move_fails_whole),
        cmocka_unit_test(name_below_the_dataset),
        cmocka_unit_test(name_of_any_length),
        scratch_test(write_and_read),
        scratch_test(reading_merges),
        scratch_test(missing_file),
        scratch_test(index_is_rebuilt),
        scratch_test(unknown_keys),
        scratch_test(hostile_files),
        scratch_test(filemaps_of_a_folder),
        scratch_test(damaged_file),
        cmocka_unit_test(expected_is_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
