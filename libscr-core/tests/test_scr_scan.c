/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets found on a prefix folder: by the list of names, and by a search. */
#include "nth_syscall.h"
#include "prefix/index.h"
#include "prefix/names.h"
#include "prefix/scan.h"
#include "records.h"
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

/* A list with these lines, whose checksums are right. */
static void write_names(struct scratch *s, const char *const lines[], int count)
{
    unlinkat(s->dir, SCR_NAMES_NAME, 0);
    for (int i = 0; i < count; i++)
        assert_int_equal(scr_names_add(s->dir, lines[i] + 1, lines[i][0] == '+', s->err),
                         0);
}

static size_t read_bytes(struct scratch *s, char bytes[400])
{
    int fd = openat(s->dir, SCR_NAMES_NAME, O_RDONLY);
    ssize_t size = read(fd, bytes, 400);
    assert_true(size > 0 && size < 400);
    close(fd);
    return (size_t)size;
}

static void assert_damaged(struct scratch *s, const char *text)
{
    kvtree *names = kvtree_new();
    assert_int_equal(scr_names_read(s->dir, names, s->err), -EBADMSG);
    assert_says(s->err, SCR_NAMES_NAME " is damaged");
    if (text) assert_tree(names, text);
    kvtree_delete(&names);
}

static const char *const some_names[] = {"+a", "+b c", "-a", "+d/e", "+f"};
#define SOME_NAMES (int)(sizeof some_names / sizeof *some_names)

/* Whatever byte is another one, and whatever line is missing but the last. */
static void damaged_names(void **state)
{
    struct scratch *s = *state;
    char whole[400], lacking[400];
    write_names(s, some_names, SOME_NAMES);
    size_t size = read_bytes(s, whole);
    for (size_t i = 0; i < size; i++) {
        scratch_flip(s, SCR_NAMES_NAME, (off_t)i);
        assert_damaged(s, NULL);
        scratch_flip(s, SCR_NAMES_NAME, (off_t)i);
    }
    assert_names(s, "b c\nd/e\nf\n");
    for (size_t begin = 0, end; begin < size; begin = end) {
        end = begin + strcspn(whole + begin, "\n") + 1;
        memcpy(lacking, whole, begin);
        memcpy(lacking + begin, whole + end, size - end);
        scratch_put(s, SCR_NAMES_NAME, lacking, size - (end - begin));
        if (end < size) assert_damaged(s, NULL);
    }
    memset(whole, 0, size);
    scratch_put(s, SCR_NAMES_NAME, whole, size);
    assert_damaged(s, "");
}

/* What is left of the names is told; one that may not have left is there. */
static void names_that_are_left(void **state)
{
    struct scratch *s = *state;
    write_names(s, some_names, SOME_NAMES);
    scratch_flip(s, SCR_NAMES_NAME, 1); /* "+a" */
    assert_damaged(s, "q\nb c\nd/e\nf\n");
    static const char bytes[] = "+a e8b7be43\n?b\n+../c 00000000\n\n+\n+g\0h 12345678\n";
    scratch_put(s, SCR_NAMES_NAME, bytes, sizeof bytes - 1);
    assert_damaged(s, NULL);
    scratch_put(s, SCR_NAMES_NAME, "", 0);
    kvtree *names = kvtree_new();
    assert_int_equal(scr_names_read(s->dir, names, s->err), -ENOENT);
    kvtree_delete(&names);
}

/* A crash cuts the last line off. Nothing is missing: it goes on after the line before.
 */
static void names_cut_by_a_crash(void **state)
{
    struct scratch *s = *state;
    char whole[400];
    write_names(s, some_names, SOME_NAMES);
    size_t size = read_bytes(s, whole);
    for (size_t cut = 1; cut < strlen("+f 12345678\n"); cut++) {
        scratch_put(s, SCR_NAMES_NAME, whole, size - cut);
        assert_damaged(s, "b c\nd/e\n");
        assert_int_equal(scr_names_add(s->dir, "g", 1, s->err), 0);
        assert_names(s, cut > 1 ? "b c\nd/e\ng\n" : "b c\nd/e\nf\ng\n");
    }
}

static void tidy(struct scratch *s, const kvtree *indexed, int rc)
{
    assert_int_equal(scr_names_tidy(s->dir, indexed, s->err), rc);
}

/* Then the next run finds it whole again, with all that the index has. */
static void names_made_again(void **state)
{
    struct scratch *s = *state;
    char before[400], after[400];
    kvtree *indexed = text_tree("b c\nlost\n../x\n");
    tidy(s, indexed, 0); /* there is none */
    assert_int_equal(faccessat(s->dir, SCR_NAMES_NAME, F_OK, 0), -1);
    write_names(s, some_names, SOME_NAMES);
    size_t size = read_bytes(s, before);
    tidy(s, indexed, 0);
    assert_int_equal(read_bytes(s, after), size);
    assert_memory_equal(before, after, size);
    scratch_flip(s, SCR_NAMES_NAME, (off_t)size - 2);
    tidy(s, indexed, 1);
    assert_says(s->err, "is damaged; it is made again");
    assert_names(s, "b c\nd/e\nlost\n"); /* f was in none of the two */
    assert_int_equal(scr_names_add(s->dir, "g", 1, s->err), 0);
    assert_names(s, "b c\nd/e\nlost\ng\n");
    kvtree_delete(&indexed);
}

/* A prefix folder that keeps few datasets gets a list of any length. */
static void names_made_short(void **state)
{
    struct scratch *s = *state;
    char after[400], name[32];
    static const char *const kept[] = {"+kept"};
    write_names(s, kept, 1);
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(scr_names_add(s->dir, name, 1, s->err), 0);
        assert_int_equal(scr_names_add(s->dir, name, 0, s->err), 0);
    }
    tidy(s, NULL, 0);
    assert_int_equal(read_bytes(s, after), strlen("+kept 12345678\n"));
    assert_names(s, "kept\n");
}

static void names_not_to_be_read(void **state)
{
    struct scratch *s = *state;
    kvtree *names = kvtree_new();
    write_names(s, some_names, 1);
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

/* What the list has lost is found by the search, and nothing twice. */
static void found_with_a_damaged_list(void **state)
{
    struct scratch *s = *state;
    scr_scan scan;
    put(s, 7, "ckpt.7");
    put(s, 8, "ckpt.8");
    static const char *const lines[] = {"+ckpt.7", "+ckpt.8"};
    write_names(s, lines, 2);
    open_scan(s, &scan);
    assert_int_equal(scr_scan_all(&scan, s->err), 0);
    assert_found(&scan, "7 ckpt.7 1\n8 ckpt.8 1\n");
    scr_scan_close(&scan);
    put(s, 9, "not listed");
    scratch_flip(s, SCR_NAMES_NAME, 1);
    open_scan(s, &scan);
    assert_int_equal(scr_scan_all(&scan, s->err), 0);
    qsort(scan.found, (size_t)scan.count, sizeof *scan.found, by_id);
    assert_found(&scan, "7 ckpt.7 1\n8 ckpt.8 1\n9 not listed 1\n");
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
    assert_true(strlen(scan.why) > 10);
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
    if (scr_scan_all(&scan, NULL) != 0)
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
    assert_int_equal(scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d), 0);
    assert_string_equal(d.name, "run/b");
    assert_int_equal(d.ranks, 3);
    kvtree_delete(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(names_come_and_go),
        scratch_test(damaged_names),
        scratch_test(names_that_are_left),
        scratch_test(names_cut_by_a_crash),
        scratch_test(names_made_again),
        scratch_test(names_made_short),
        scratch_test(found_with_a_damaged_list),
        scratch_test(names_not_to_be_read),
        scratch_test(found_by_names),
        scratch_test(names_not_to_be_read),
        scratch_test(found_by_names_that_no_index_has),
        scratch_test(one_dataset),
        scratch_test(moved_dataset),
        scratch_test(unusable_datasets),
        scratch_test(cannot_be_read),
        scratch_test(scattered_dataset),
        scratch_test(found_by_search),
        scratch_test(limits_of_the_search),
        scratch_test(lost_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
