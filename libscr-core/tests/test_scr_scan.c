/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets found on a prefix folder: by the list of names, and by a search. */
#include "records.h"
#include "records/scr_index.h"
#include "records/scr_names.h"
#include "records/scr_scan.h"
#include <errno.h>
#include <filo/filo.h>
#include <limits.h>

/* Makes a folder with all above it. */
static void folder(const struct scratch *s, const char *name)
{
    char path[2 * SCR_NAME_SIZE];
    snprintf(path, sizeof path, "%s", name);
    for (char *c = path; (c = strchr(c, '/')) != NULL; *c++ = '/') {
        *c = 0;
        mkdirat(s->dir, path, 0700);
    }
    mkdirat(s->dir, path, 0700);
}

/* Every rank has one file of 10 bytes in the map; nobody looks at it. */
static int give(void *arg, int rank, int *count, const filo_file **files, char *err)
{
    static char name[32];
    static filo_file file = {.name = name, .size = 10};
    (void)arg;
    (void)err;
    snprintf(name, sizeof name, "rank_%d", rank);
    *count = 1;
    *files = &file;
    return 0;
}

static void put_map(const struct scratch *s, const char *name, int ranks)
{
    char path[2 * SCR_NAME_SIZE];
    char err[ERRTEXT_SIZE];
    snprintf(path, sizeof path, "%s/%s", s->path, name);
    const filo_place place = {.folder = path};
    assert_int_equal(filo_map_write(&place, ranks, give, NULL, err), 0);
}

/* A dataset of that id in the folder, as a flush leaves it. */
static void put_as(const struct scratch *s, const char *name, scr_dataset d)
{
    char path[SCR_NAME_SIZE + 8];
    snprintf(path, sizeof path, "%s/.scr", name);
    folder(s, path);
    int dir = openat(s->dir, name, O_RDONLY | O_DIRECTORY);
    assert_int_equal(scr_summary_write(dir, &d, NULL), 0);
    close(dir);
    put_map(s, name, d.ranks);
}

static scr_dataset dataset(int id, const char *name)
{
    scr_dataset d = {.id = id,
                     .ckpt = id,
                     .ranks = 3,
                     .files = 3,
                     .size = 30,
                     .complete = 1,
                     .named = 1};
    snprintf(d.name, sizeof d.name, "%s", name);
    return d;
}

static void put(const struct scratch *s, int id, const char *name)
{
    put_as(s, name, dataset(id, name));
}

/* What was found, in this order, as "id name complete". */
static void assert_found(const scr_scan *scan, const char *text)
{
    char found[2000] = "";
    int n = 0;
    for (int i = 0; i < scan->count; i++)
        n += snprintf(found + n, sizeof found - (size_t)n, "%d %s %d\n",
                      scan->found[i].id, scan->found[i].name, scan->found[i].complete);
    assert_string_equal(found, text);
}

static void open_scan(struct scratch *s, scr_scan *scan)
{
    assert_int_equal(scr_scan_open(scan, s->path, s->err), 0);
}

static int by_id(const void *a, const void *b)
{
    return ((const scr_dataset *)a)->id - ((const scr_dataset *)b)->id;
}

static void search(struct scratch *s, scr_scan *scan, const scr_scan_limits *limits)
{
    open_scan(s, scan);
    assert_int_equal(scr_scan_folders(scan, limits, s->err), 0);
    qsort(scan->found, (size_t)scan->count, sizeof *scan->found, by_id);
}

/* ---- the list of names ---- */

static void assert_names(struct scratch *s, const char *text)
{
    kvtree *names = kvtree_new();
    assert_int_equal(scr_names_read(s->dir, names, s->err), 0);
    assert_tree(names, text);
    kvtree_delete(&names);
}

static void names_come_and_go(void **state)
{
    struct scratch *s = *state;
    kvtree *names = kvtree_new();
    assert_int_equal(scr_names_read(s->dir, names, s->err), -ENOENT);
    kvtree_delete(&names);
    static const char *const lines[] = {"+a/b", "+c", "-a/b", "+d e", "+c", "+a/b"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(scr_names_add(s->dir, lines[i] + 1, lines[i][0] == '+', s->err),
                         0);
    assert_names(s, "c\nd e\na/b\n");
    assert_int_equal(scr_names_add(s->dir, "../x", 1, s->err), -EINVAL);
    assert_int_equal(scr_names_add(s->dir, "x\n+y", 1, s->err), -EINVAL);
    assert_names(s, "c\nd e\na/b\n");
}

/* Lines that are none cost only themselves. */
static void damaged_names(void **state)
{
    struct scratch *s = *state;
    static const char bytes[] = "+a\n?b\n+../c\n\n+\n+d\0e\n-nothing\n+f\n/etc\n+cut";
    scratch_put(s, SCR_NAMES_NAME, bytes, sizeof bytes - 1);
    assert_names(s, "a\nf\n"); /* a last line without its end may lack something */
    assert_int_equal(scr_names_add(s->dir, "g", 1, s->err), 0);
    assert_names(s, "a\nf\ncut\ng\n");
}

static void names_not_to_be_read(void **state)
{
    struct scratch *s = *state;
    kvtree *names = kvtree_new();
    scratch_put(s, SCR_NAMES_NAME, "+a\n", 3);
    int fd = openat(s->dir, SCR_NAMES_NAME, O_WRONLY);
    assert_int_equal(ftruncate(fd, (off_t)SCR_NAMES_MAX + 1), 0);
    close(fd);
    assert_int_equal(scr_names_read(s->dir, names, s->err), -EFBIG);
    assert_says(s->err, SCR_NAMES_NAME);
    assert_int_equal(unlinkat(s->dir, SCR_NAMES_NAME, 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", s->dir, SCR_NAMES_NAME), 0);
    assert_true(scr_names_read(s->dir, names, s->err) < 0);
    assert_true(scr_names_add(s->dir, "a", 1, s->err) < 0);
    assert_int_equal(kvtree_size(names), 0);
    kvtree_delete(&names);
}

static void found_by_names(void **state)
{
    struct scratch *s = *state;
    scr_scan scan;
    open_scan(s, &scan);
    assert_int_equal(scr_scan_names(&scan, s->err), -ENOENT);
    put(s, 7, "ckpt.7");
    put(s, 8, "run/deep/ckpt.8");
    put(s, 9, "not listed");
    assert_int_equal(scr_names_add(s->dir, "gone", 1, s->err), 0);
    assert_int_equal(scr_names_add(s->dir, "ckpt.7", 1, s->err), 0);
    assert_int_equal(scr_names_add(s->dir, "run/deep/ckpt.8", 1, s->err), 0);
    assert_int_equal(scr_names_add(s->dir, ".scr/x", 1, s->err), 0);
    assert_int_equal(scr_scan_names(&scan, s->err), 0);
    assert_found(&scan, "7 ckpt.7 1\n8 run/deep/ckpt.8 1\n");
    assert_int_equal(scan.refused, 0);
    scr_scan_close(&scan);
}

static void found_by_names_that_no_index_has(void **state)
{
    struct scratch *s = *state;
    scr_scan scan;
    scr_dataset known = {.id = 7, .name = "ckpt.7", .complete = 1};
    scr_index *index = kvtree_new();
    assert_int_equal(scr_index_start(index), 0);
    assert_int_equal(scr_index_add(index, &known, 1), 0);
    open_scan(s, &scan);
    assert_int_equal(scr_scan_unknown(&scan, index, s->err), 0); /* there is no list */
    put(s, 7, "ckpt.7");
    put(s, 8, "ckpt.8");
    assert_int_equal(scr_names_add(s->dir, "ckpt.7", 1, s->err), 0);
    assert_int_equal(scr_names_add(s->dir, "ckpt.8", 1, s->err), 0);
    assert_int_equal(scr_names_add(s->dir, "gone", 1, s->err), 0);
    assert_int_equal(scr_scan_unknown(&scan, index, s->err), 0);
    assert_found(&scan, "8 ckpt.8 1\n");
    scr_scan_close(&scan);
    kvtree_delete(&index);
}

/* ---- one dataset ---- */

static void one_dataset(void **state)
{
    struct scratch *s = *state;
    scr_scan scan;
    put(s, 7, "a");
    folder(s, "b/.scr");
    folder(s, "plain");
    scratch_put(s, "file", "x", 1);
    assert_int_equal(symlinkat("a", s->dir, "link"), 0);
    open_scan(s, &scan);
    static const char *const none[] = {"b",  "plain", "file", "file/x", "link",
                                       "no", "../a",  "/a",   "",       ".scr"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(scr_scan_one(&scan, none[i], s->err), -ENOENT);
    assert_int_equal(scan.count + scan.refused, 0);
    assert_int_equal(scr_scan_one(&scan, "a", s->err), 0);
    assert_found(&scan, "7 a 1\n");
    scr_scan_close(&scan);
    assert_int_equal(scr_scan_open(&scan, "/tmp/scr-test-no-such", s->err), -ENOENT);
}

/* It is the folder that counts: somebody may have moved or copied it. */
static void moved_dataset(void **state)
{
    struct scratch *s = *state;
    scr_scan scan;
    put(s, 7, "a");
    put_as(s, "kept/good", dataset(7, "a"));
    search(s, &scan, NULL);
    assert_int_equal(scan.count, 2);
    assert_true(strcmp(scan.found[0].name, scan.found[1].name) != 0);
    scr_scan_close(&scan);
}

/* Not complete, a map of something else, no map, no summary that can be read: it is
 * there, but nobody restarts from it. */
static void unusable_datasets(void **state)
{
    struct scratch *s = *state;
    scr_scan scan;
    scr_dataset d = dataset(1, "incomplete");
    d.complete = 0;
    put_as(s, d.name, d);
    put(s, 2, "ranks");
    put_map(s, "ranks", 4);
    d = dataset(3, "size");
    d.size = 31;
    put_as(s, d.name, d);
    put(s, 4, "no map");
    assert_int_equal(unlinkat(s->dir, "no map/" FILO_MAP, 0), 0);
    put(s, 5, "bad map");
    scratch_flip(s, "bad map/.scr/rank2file.0.0.scr", 40);
    put(s, 6, "bad summary");
    scratch_flip(s, "bad summary/" SCR_SUMMARY_NAME, 40);
    put(s, 7, "good");
    search(s, &scan, NULL);
    assert_found(&scan, "1 incomplete 0\n2 ranks 0\n3 size 0\n4 no map 0\n5 bad map 0\n"
                        "7 good 1\n");
    assert_int_equal(scan.refused, 5);
    assert_true(strlen(scan.why) > 10);
    scr_scan_close(&scan);
}

/* Files outside of the folder: the map's names begin at the prefix folder. */
static void scattered_dataset(void **state)
{
    struct scratch *s = *state;
    scr_scan scan;
    scr_dataset d = dataset(7, "a");
    d.scattered = 1;
    put_as(s, "a", d);
    assert_int_equal(unlinkat(s->dir, "a/" FILO_MAP, 0), 0);
    const filo_place place = {.folder = s->path, .map = "a/" FILO_MAP};
    assert_int_equal(filo_map_write(&place, 3, give, NULL, s->err), 0);
    search(s, &scan, NULL);
    assert_found(&scan, "7 a 1\n");
    scr_scan_close(&scan);
}

/* ---- the search ---- */

static void found_by_search(void **state)
{
    struct scratch *s = *state;
    scr_scan scan;
    put(s, 1, "a");
    put(s, 2, "a/b"); /* within another one */
    put(s, 3, "x/y/z");
    put(s, 4, ".hidden");
    folder(s, "empty/er");
    folder(s, ".scr/x/.scr");
    scratch_put(s, "x/file", "x", 1);
    assert_int_equal(symlinkat("..", s->dir, "x/up"), 0);
    assert_int_equal(symlinkat("/", s->dir, "root"), 0);
    search(s, &scan, NULL);
    assert_found(&scan, "1 a 1\n2 a/b 1\n3 x/y/z 1\n4 .hidden 1\n");
    assert_true(!scan.stopped && !scan.refused);
    scr_scan_close(&scan);
}

static void limits_of_the_search(void **state)
{
    struct scratch *s = *state;
    scr_scan scan;
    const scr_scan_limits flat = {2, 1000}, few = {8, 60};
    put(s, 1, "a");
    put(s, 2, "x/b");
    put(s, 3, "x/y/c");
    search(s, &scan, &flat);
    assert_found(&scan, "1 a 1\n2 x/b 1\n");
    assert_int_equal(scan.stopped, 1);
    scr_scan_close(&scan);
    for (int i = 0; i < 100; i++) { /* files of a dataset are the last to be looked at */
        char name[32];
        snprintf(name, sizeof name, "a/rank_%d", i);
        scratch_put(s, name, "x", 1);
    }
    search(s, &scan, &few);
    assert_found(&scan, "1 a 1\n2 x/b 1\n3 x/y/c 1\n");
    assert_int_equal(scan.stopped, 1);
    scr_scan_close(&scan);
}

/* From what is on disk to an index that restarts from the right one. */
static void lost_index(void **state)
{
    struct scratch *s = *state;
    scr_scan scan;
    scr_dataset d;
    kvtree *index = kvtree_new();
    put(s, 1, "a");
    put(s, 2, "run/b");
    search(s, &scan, NULL);
    assert_int_equal(scr_index_restore(index, scan.found, scan.count), 0);
    scr_scan_close(&scan);
    assert_int_equal(scr_index_next_fetch(index, INT_MAX, NULL, &d), 0);
    assert_string_equal(d.name, "run/b");
    assert_int_equal(d.ranks, 3);
    kvtree_delete(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(names_come_and_go),
        scratch_test(damaged_names),
        scratch_test(names_not_to_be_read),
        scratch_test(found_by_names),
        scratch_test(names_not_to_be_read),
        scratch_test(found_by_names_that_no_index_has),
        scratch_test(one_dataset),
        scratch_test(moved_dataset),
        scratch_test(unusable_datasets),
        scratch_test(scattered_dataset),
        scratch_test(found_by_search),
        scratch_test(limits_of_the_search),
        scratch_test(lost_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
