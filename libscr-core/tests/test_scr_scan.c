/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets found on a prefix directory by a search, and stages of flushes. */
#include "common/beneath.h"
#include "nth_syscall.h"
#include "prefix/index.h"
#include "prefix/scan.h"
#include "records.h"
#include <errno.h>
#include <filo/filo.h>
#include <limits.h>

/* Makes a directory with all above it. */
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
static int give(void *arg, int rank, int *count, const filo_file **files,
                kvtree_error *err)
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
    kvtree_error err;
    snprintf(path, sizeof path, "%s/%s", s->path, name);
    const filo_place place = {.folder = path};
    assert_int_equal(filo_map_write(&place, ranks, give, NULL, &err), 0);
}

/* A dataset of that id in the directory, as a flush leaves it. */
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
    scr_dataset d = {
        .id = id, .ckpt = id, .ranks = 3, .files = 3, .size = 30, .complete = 1};
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
    assert_int_equal(scr_scan_open(scan, s->path, &s->err), 0);
}

static int by_id(const void *a, const void *b)
{
    return ((const scr_dataset *)a)->id - ((const scr_dataset *)b)->id;
}

static void search(struct scratch *s, scr_scan *scan, const scr_scan_limits *limits)
{
    open_scan(s, scan);
    assert_int_equal(scr_scan_all(scan, limits, &s->err), 0);
    qsort(scan->found, (size_t)scan->count, sizeof *scan->found, by_id);
}

/* Where a flush was interrupted, beside a dataset or alone. */
static void stages(void **state)
{
    static const char *const names[] = {"ckpt.7", "run/ckpt.8", "gone"};
    struct scratch *s = *state;
    scr_scan scan;
    put(s, 7, "ckpt.7");
    put(s, 9, "ckpt.9");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char stage[64];
        snprintf(stage, sizeof stage, "%s/.scr/stage", names[i]);
        assert_int_equal(beneath_mkdirs(s->dir, stage, 0700, &s->err), 0);
    }
    search(s, &scan, NULL);
    assert_found(&scan, "7 ckpt.7 1\n9 ckpt.9 1\n");
    assert_int_equal(kvtree_size(scan.staged), 3);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_non_null(kvtree_get(scan.staged, names[i]));
    scr_scan_close(&scan);
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
        assert_int_equal(scr_scan_one(&scan, none[i], &s->err), -ENOENT);
    assert_int_equal(scan.count + scan.refused, 0);
    assert_int_equal(scr_scan_one(&scan, "a", &s->err), 0);
    assert_found(&scan, "7 a 1\n");
    scr_scan_close(&scan);
    assert_int_equal(scr_scan_open(&scan, "/tmp/scr-test-no-such", &s->err), -ENOENT);
}

/* It is the directory that counts: somebody may have moved or copied it. */
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
    put(s, 8, "folder");
    assert_int_equal(unlinkat(s->dir, "folder/" FILO_MAP, 0), 0);
    assert_int_equal(mkdirat(s->dir, "folder/" FILO_MAP, 0700), 0);
    put(s, 9, "fifo");
    assert_int_equal(unlinkat(s->dir, "fifo/" FILO_MAP, 0), 0);
    assert_int_equal(mkfifoat(s->dir, "fifo/" FILO_MAP, 0700), 0);
    search(s, &scan, NULL);
    assert_found(&scan, "1 incomplete 0\n2 ranks 0\n3 size 0\n4 no map 0\n5 bad map 0\n"
                        "7 good 1\n8 folder 0\n9 fifo 0\n");
    assert_int_equal(scan.refused, 7);
    assert_true(strlen(scan.why.text) > 10);
    scr_scan_close(&scan);
}

/* In a child process: what became of the dataset "a", which is whole. */
enum { AS_IT_IS, SEARCH_FAILED, NOT_SEEN, NOT_COMPLETE, UNSAID };

static int find_whole(void *state)
{
    struct scratch *s = state;
    scr_scan scan;
    int what = UNSAID;
    if (scr_scan_open(&scan, s->path, NULL) != 0) return SEARCH_FAILED;
    if (scr_scan_all(&scan, NULL, NULL) != 0)
        what = SEARCH_FAILED;
    else if (scan.count == 1)
        what = scan.found[0].complete ? AS_IT_IS : NOT_COMPLETE;
    else if (scan.stopped || (scan.refused && !err_is_damage(scan.code)))
        what = NOT_SEEN;
    scr_scan_close(&scan);
    return what;
}

/* A disk or a limit that keeps this process from reading a dataset does not make it one
 * from which nobody restarts: it is found as it is, or not at all and that is said. */
static void cannot_be_read(void **state)
{
    static nth_result result;
    static const int answers[] = {EIO, EACCES, EMFILE, ENOMEM};
    struct scratch *s = *state;
    int seen[UNSAID + 1] = {0};
    put(s, 1, "a");
    nth_fault none = {0, 0};
    int rc = nth_run(find_whole, s, nth_at, &none, &result);
    if (rc) skip();
    assert_int_equal(nth_returned(&result), AS_IT_IS);
    unsigned calls = result.count;
    for (unsigned at = 1; at <= calls; at++)
        for (int i = 0; i < 4; i++) {
            nth_fault fault = {at, answers[i]};
            assert_int_equal(nth_run(find_whole, s, nth_at, &fault, &result), 0);
            int what = nth_returned(&result);
            if (what == NOT_COMPLETE || what == UNSAID)
                fail_msg("errno %d of call %u, %s", answers[i], at,
                         result.calls[at - 1].name);
            seen[what]++;
        }
    assert_true(seen[AS_IT_IS] && seen[SEARCH_FAILED] && seen[NOT_SEEN]);
}

/* Files outside of the directory: the map's names begin at the prefix directory. */
static void scattered_dataset(void **state)
{
    struct scratch *s = *state;
    scr_scan scan;
    scr_dataset d = dataset(7, "a");
    d.scattered = 1;
    put_as(s, "a", d);
    assert_int_equal(unlinkat(s->dir, "a/" FILO_MAP, 0), 0);
    const filo_place place = {.folder = s->path, .map = "a/" FILO_MAP};
    assert_int_equal(filo_map_write(&place, 3, give, NULL, &s->err), 0);
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
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_string_equal(d.name, "run/b");
    assert_int_equal(d.ranks, 3);
    kvtree_delete(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(stages),          scratch_test(one_dataset),
        scratch_test(moved_dataset),   scratch_test(unusable_datasets),
        scratch_test(cannot_be_read),  scratch_test(scattered_dataset),
        scratch_test(found_by_search), scratch_test(limits_of_the_search),
        scratch_test(lost_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
