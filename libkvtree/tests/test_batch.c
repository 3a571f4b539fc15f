/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are renamed into place together (common/batch.h): the batch is killed at
 * every system call that it makes, and gets an error from each. Every file must then be
 * the old or the new one, in the order of the list, and no temporary file may remain
 * unless the batch was killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/batch.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/others.h"
#include "nth_syscall.h"
#include "scratch.h"
#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>

/* The report of a child. */
static struct {
    int rc;
    kvtree_error err;
} * report;

static nth_result result;
static int dir = -1;

/* ---- the files ---- */

enum { FILES = 4 };
static const char *const names[FILES] = {"one", "sub/two", "sub/three", "a/b/four"};
static const char *const temporaries[FILES] = {NULL, ".1-two.tmp", NULL, ".1-four.tmp"};

static void put(const char *name, const char *text, mode_t mode)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static const char *contents(const char *name)
{
    static char text[8][64];
    static int turn;
    char *t = text[turn = (turn + 1) % 8];
    int fd = openat(dir, name, O_RDONLY);
    if (fd < 0) return "missing";
    ssize_t n = read(fd, t, sizeof text[0] - 1);
    close(fd);
    t[n > 0 ? n : 0] = 0;
    return t;
}

static bool is_there(const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Temporary files in the directory and in sub. */
static int count_temporaries(void)
{
    int count = 0;
    for (int i = 0; i < 2; i++) {
        int fd = openat(dir, i ? "sub" : ".", O_RDONLY | O_DIRECTORY);
        DIR *stream = fdopendir(fd);
        for (const struct dirent *e; (e = readdir(stream)) != NULL;)
            count += strstr(e->d_name, ".tmp") != NULL;
        closedir(stream);
    }
    return count;
}

static int renew_folder(void **state)
{
    DIR *stream = beneath_list(dir);
    for (const struct dirent *e; (e = readdir(stream)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(dir, e->d_name, 0) != 0)
            assert_int_equal(beneath_remove_tree(dir, e->d_name, NULL), 0);
    closedir(stream);
    assert_int_equal(mkdirat(dir, "sub", 0700), 0);
    for (int i = 0; i < 3; i++)
        put(names[i], "old", 0600);
    return 0;
}

static int begin(void **state)
{
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED || make_folder(state) != 0) return -1;
    dir = open(folder, O_RDONLY | O_DIRECTORY);
    return dir < 0;
}

static int end(void **state)
{
    close(dir);
    return remove_folder(state);
}

/* ---- the whole batch ---- */

/* Writes a temporary file by its name, as another process would. */
static int write_by_name(const char *name)
{
    int fd = io_open(dir, name, O_WRONLY, 0);
    int rc = fd < 0 ? fd : io_write(fd, "new", 3);
    io_close(&fd);
    return rc;
}

/* The first and the third file are written through descriptors, the others by name: one
 * beside its final name, one at the top, because its directory is created last. */
static int list_files(batch *b, int fd[2], kvtree_error *err)
{
    const batch_file two = {names[1], BATCH_BESIDE, temporaries[1], 3, 0640, false, 0};
    const batch_file four = {names[3], dir, temporaries[3], 3, 0400, false, 0};
    int rc = batch_open(b, names[0], 0, &fd[0], err);
    if (!rc) rc = batch_add(b, &two, err);
    if (!rc) rc = batch_open(b, names[2], 0, &fd[1], err);
    if (!rc) rc = batch_add(b, &four, err);
    return rc ? rc : batch_make(b, err);
}

static int write_all(void *arg)
{
    const batch *how = arg;
    batch b = *how;
    int fd[2];
    b.dir = dir;
    b.folders = 0700;
    int rc = list_files(&b, fd, &report->err);
    for (int i = 0; i < 2 && !rc; i++)
        if ((rc = io_write(fd[i], "new", 3)) != 0)
            err_sys(&report->err, rc, "write %s", names[2 * i]);
    if (!rc) rc = write_by_name("sub/.1-two.tmp");
    if (!rc) rc = write_by_name(".1-four.tmp");
    if (!rc) rc = batch_commit(&b, &report->err);
    batch_drop(&b);
    report->rc = rc;
    return 0;
}

static void run(batch how, nth_fault fault)
{
    assert_int_equal(renew_folder(NULL), 0);
    memset(report, 0, sizeof *report);
    int rc = nth_run(write_all, &how, nth_at, &fault, &result);
    if (rc) {
        print_message("the kernel refuses seccomp notifications: %s\n", strerror(rc));
        skip();
    }
    assert_true(result.count <= NTH_CALLS);
}

/* Files are renamed in the order of the list. */
static void check_files(nth_fault fault)
{
    int renamed = 0;
    for (unsigned i = 0; i < result.count; i++)
        renamed += nth_is(&result.calls[i], "rename") && !result.calls[i].answer;
    for (int i = 0; i < FILES; i++) {
        const char *expected = i < renamed ? "new" : i == 3 ? "missing" : "old";
        if (strcmp(contents(names[i]), expected) != 0)
            fail_msg("call %u (%s): %s is \"%s\", not \"%s\"", fault.at,
                     result.calls[fault.at - 1].name, names[i], contents(names[i]),
                     expected);
    }
}

static void killed_at_any_call(void **state)
{
    unsigned n = 1;
    for (;; n++) {
        run((batch){0}, (nth_fault){n, NTH_KILL});
        if (result.count < n) break;
        assert_true(nth_was_killed(&result));
        check_files((nth_fault){n, NTH_KILL});
        /* the next process takes over named files, and sweeps the others */
        write_all(&(batch){.resumed = true});
        assert_int_equal(report->rc, 0);
        assert_int_equal(batch_sweep(dir, NULL), 0);
        int sub = openat(dir, "sub", O_RDONLY | O_DIRECTORY);
        assert_int_equal(batch_sweep(sub, NULL), 0);
        close(sub);
        for (int i = 0; i < FILES; i++)
            assert_string_equal(contents(names[i]), "new");
        assert_int_equal(count_temporaries(), 0);
    }
    assert_int_equal(report->rc, 0);
    print_message("killed at each of %u system calls\n", n - 1);
    assert_true(n > 50);
}

static bool is_repeated(const nth_call *call)
{
    return nth_is(call, "write") || nth_is(call, "fsync") || nth_is(call, "close") ||
           nth_is(call, "open") || nth_is(call, "getrandom");
}

static void check_error(nth_fault fault)
{
    const nth_call *hit = &result.calls[fault.at - 1];
    assert_int_equal(nth_returned(&result), 0);
    check_files(fault);
    if (report->rc && report->rc != -fault.answer &&
        !(nth_is_memory(hit) && report->rc == -ENOMEM))
        fail_msg("call %u (%s): %d, %s", fault.at, hit->name, report->rc,
                 report->err.text);
    if (report->rc && fault.answer == EINTR && is_repeated(hit))
        fail_msg("call %u (%s) was not repeated", fault.at, hit->name);
    for (int i = 0; i < FILES && !report->rc; i++)
        assert_string_equal(contents(names[i]), "new");
    if (count_temporaries() && !nth_is(hit, "unlink"))
        fail_msg("call %u (%s): %d temporary files stay", fault.at, hit->name,
                 count_temporaries());
}

static void any_call_fails(void **state)
{
    static const int errors[] = {EIO, EINTR, ENOSPC};
    for (int e = 0; e < 3; e++)
        for (nth_fault fault = {1, errors[e]};; fault.at++) {
            run((batch){0}, fault);
            if (result.count < fault.at) break;
            const nth_call *hit = &result.calls[fault.at - 1];
            if (hit->answer == NTH_GO) continue;       /* a sanitizer's */
            if (hit->number == __NR_geteuid) continue; /* which cannot fail */
            check_error(fault);
        }
}

static int count_calls(const char *name, unsigned from)
{
    int count = 0;
    for (unsigned n = nth_next(&result, name, from); n; n = nth_next(&result, name, n))
        count++;
    return count;
}

/* All files are synced before the first rename, each directory after its renames. */
static void what_is_synced(void **state)
{
    run((batch){0}, (nth_fault){0, NTH_GO});
    unsigned first = nth_next(&result, "rename", 0);
    assert_int_equal(count_calls("rename", 0), FILES);
    /* three directories, and two above a/b; before, the one above sub */
    assert_int_equal(count_calls("fsync", first), 3 + 2);
    assert_int_equal(count_calls("fsync", 0) - count_calls("fsync", first), FILES + 2);
    run((batch){.durability = BATCH_SYNCED}, (nth_fault){0, NTH_GO});
    assert_int_equal(count_calls("fsync", 0), 3 + 2 + 2);
    run((batch){.durability = BATCH_UNSYNCED}, (nth_fault){0, NTH_GO});
    assert_int_equal(count_calls("fsync", 0), 0);
    assert_string_equal(contents(names[3]), "new");
}

static mode_t mode_of(const char *name)
{
    struct stat st;
    assert_int_equal(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

static void modes(void **state)
{
    write_all(&(batch){0});
    assert_int_equal(report->rc, 0);
    assert_int_equal(mode_of("one"), 0600);
    assert_int_equal(mode_of("sub/two"), 0640);
    assert_int_equal(mode_of("a/b/four"), 0400);
    assert_int_equal(mode_of("a/b"), 0700);
}

/* ---- what is refused ---- */

static void existing_files_with_exclusive(void **state)
{
    write_all(&(batch){.exclusive = true});
    assert_int_equal(report->rc, -EEXIST);
    assert_string_equal(contents("one"), "old");
    assert_int_equal(count_temporaries(), 0);
    for (int i = 0; i < 3; i++)
        unlinkat(dir, names[i], 0);
    write_all(&(batch){.exclusive = true});
    assert_int_equal(report->rc, 0);
    assert_string_equal(contents("sub/three"), "new");
}

static void links_on_the_way(void **state)
{
    kvtree_error err;
    int fd;
    batch b = {.dir = dir, .folders = 0700};
    assert_int_equal(symlinkat("sub", dir, "link"), 0);
    assert_int_equal(batch_open(&b, "link/two", 0, &fd, &err), -ENOTDIR);
    const batch_file beside = {"link/two", BATCH_BESIDE, ".x.tmp", 0, 0, false, 0};
    assert_int_equal(batch_add(&b, &beside, &err), 0);
    assert_int_equal(batch_make(&b, &err), -ENOTDIR);
    batch_drop(&b);
    assert_int_equal(batch_open(&b, "../one", 0, &fd, &err), -EINVAL);
    batch_drop(&b);
    const batch_file above = {"two", dir, "sub/../.x.tmp", 0, 0, false, 0};
    assert_int_equal(batch_add(&b, &above, &err), 0);
    assert_int_equal(batch_make(&b, &err), -EINVAL);
    batch_drop(&b);
    assert_string_equal(contents("sub/two"), "old");
}

static void folders_in_the_way(void **state)
{
    kvtree_error err;
    batch b = {.dir = dir};
    const batch_file file = {"sub", BATCH_BESIDE, ".x.tmp", 0, 0, false, 0};
    const batch_file nowhere = {"none/one", BATCH_BESIDE, ".x.tmp", 0, 0, false, 0};
    assert_int_equal(batch_add(&b, &file, &err), 0);
    assert_int_equal(batch_make(&b, &err), -EISDIR);
    batch_drop(&b);
    assert_int_equal(batch_add(&b, &nowhere, &err), 0);
    assert_int_equal(batch_make(&b, &err), -ENOENT);
    batch_drop(&b);
    const batch_file from = {"sub", dir, ".x.tmp", 0, 0, false, 0};
    assert_int_equal(batch_add(&b, &from, &err), 0);
    assert_int_equal(batch_make(&b, &err), -EISDIR);
    batch_drop(&b);
    b.folders = 0700; /* the final place is for the commit */
    assert_int_equal(batch_add(&b, &from, &err), 0);
    assert_int_equal(batch_make(&b, &err), 0);
    assert_int_equal(batch_commit(&b, &err), -EISDIR);
    batch_drop(&b);
    assert_int_equal(count_temporaries(), 0);
}

static void temporary_files_in_another_file_system(void **state)
{
    kvtree_error err;
    struct stat here, there;
    int other = open("/proc", O_RDONLY | O_DIRECTORY);
    if (other < 0 || fstat(other, &there) != 0 || fstat(dir, &here) != 0 ||
        there.st_dev == here.st_dev)
        skip();
    batch b = {.dir = dir};
    const batch_file file = {"one", other, ".test_batch.tmp", 0, 0, false, 0};
    assert_int_equal(batch_add(&b, &file, &err), 0);
    assert_int_equal(batch_make(&b, &err), -EXDEV);
    assert_non_null(
        strstr(err.text, "one lies in another file system than the directory .test"));
    batch_drop(&b);
    assert_int_equal(faccessat(other, ".test_batch.tmp", F_OK, 0), -1);
    close(other);
}

/* Checked before a file is created there or renamed to it. */
static void folders_that_others_cannot_change(void **state)
{
    kvtree_error err;
    int fd;
    batch b = {.dir = dir, .shared = OTHERS_ALL};
    assert_int_equal(fchmod(dir, 0777), 0);
    assert_int_equal(batch_open(&b, "sub/two", 0, &fd, &err), -EPERM);
    batch_drop(&b);
    const batch_file beside = {"sub/two", BATCH_BESIDE, ".x.tmp", 0, 0, false, 0};
    assert_int_equal(batch_add(&b, &beside, &err), 0);
    assert_int_equal(batch_make(&b, &err), -EPERM);
    batch_drop(&b);
    b.folders = 0700;
    const batch_file one = {"one", dir, ".1.tmp", 0, 0, false, 0},
                     two = {"sub/two", dir, ".2.tmp", 0, 0, false, 0};
    assert_int_equal(batch_add(&b, &one, &err), 0);
    assert_int_equal(batch_add(&b, &two, &err), 0);
    assert_int_equal(batch_make(&b, &err), 0);
    assert_int_equal(batch_commit(&b, &err), -EPERM);
    assert_non_null(
        strstr(err.text, "sub/two is in a directory that others may not change"));
    batch_drop(&b);
    assert_string_equal(contents("one"), "");
    assert_string_equal(contents("sub/two"), "old");
    assert_int_equal(fchmod(dir, 0700), 0);
    assert_int_equal(count_temporaries(), 0);
}

/* Existing files are replaced; then the batch has only the file. */
static void made_anew(batch *b, const batch_file *file)
{
    assert_int_equal(batch_make(b, NULL), 0);
    batch_drop(b);
    assert_int_equal(batch_add(b, file, NULL), 0);
}

/* A file that an earlier process left may have been replaced meanwhile. */
static void not_taken_over(void **state)
{
    kvtree_error err;
    const batch_file file = {"one", BATCH_BESIDE, ".x.tmp", 2, 0644, false, 0};
    batch b = {.dir = dir, .resumed = true};
    assert_int_equal(batch_add(&b, &file, &err), 0);
    assert_int_equal(fchmodat(dir, "sub/two", 0644, 0), 0);
    assert_int_equal(linkat(dir, "sub/two", dir, ".x.tmp", 0), 0);
    made_anew(&b, &file);
    assert_int_equal(symlinkat("sub/two", dir, ".x.tmp"), 0);
    made_anew(&b, &file);
    assert_int_equal(mkfifoat(dir, ".x.tmp", 0600), 0);
    made_anew(&b, &file);
    assert_int_equal(mkdirat(dir, ".x.tmp", 0700), 0);
    assert_int_equal(batch_make(&b, &err), -EEXIST);
    assert_int_equal(unlinkat(dir, ".x.tmp", AT_REMOVEDIR), 0);
    put(".x.tmp", "private", 0600);
    assert_int_equal(batch_make(&b, &err), 0);
    assert_string_equal(contents(".x.tmp"), "");
    assert_int_equal(mode_of(".x.tmp"), 0644);
    batch_drop(&b);
    assert_int_equal(batch_add(&b, &file, &err), 0);
    put(".x.tmp", "open to others", 0644);
    assert_int_equal(fchmodat(dir, ".x.tmp", 0664, 0), 0);
    assert_int_equal(batch_make(&b, &err), 0);
    assert_string_equal(contents(".x.tmp"), "");
    assert_int_equal(mode_of(".x.tmp"), 0644);
    batch_drop(&b);
    assert_int_equal(batch_add(&b, &file, &err), 0);
    put(".x.tmp", "newer", 0644);
    assert_int_equal(fchmodat(dir, ".x.tmp", 0444, 0), 0);
    assert_int_equal(batch_make(&b, &err), 0);
    assert_int_equal(batch_commit(&b, &err), 0);
    batch_drop(&b);
    assert_string_equal(contents("one"), "ne");
    assert_int_equal(mode_of("one"), 0644);
    assert_string_equal(contents("sub/two"), "old");
}

/* ---- files that exist already ---- */

static void moved_from_elsewhere(void **state)
{
    kvtree_error err;
    int sub = openat(dir, "sub", O_RDONLY | O_DIRECTORY);
    const batch_file two = {"two", sub, "two", 0, 0, false, 0},
                     gone = {"gone", sub, "gone", 0, 0, false, 0};
    batch b = {.dir = dir};
    assert_int_equal(batch_add(&b, &gone, &err), 0);
    assert_int_equal(batch_commit(&b, &err), -ENOENT);
    batch_drop(&b);
    b.resumed = true;
    assert_int_equal(batch_add(&b, &gone, &err), 0);
    assert_int_equal(batch_add(&b, &two, &err), 0);
    assert_int_equal(batch_commit(&b, &err), 0);
    batch_drop(&b);
    assert_string_equal(contents("two"), "old");
    assert_false(is_there("sub/two"));
    assert_int_equal(
        batch_add(&b, &(batch_file){"x", sub, "three", 0, 0, false, 0}, &err), 0);
    batch_drop(&b); /* not created by the batch: it stays */
    assert_true(is_there("sub/three"));
    close(sub);
}

static void removed_again(void **state)
{
    kvtree_error err;
    const batch_file two = {"sub/two", BATCH_BESIDE, ".2.tmp", 0, 0, false, 0};
    const batch_file three = {"sub/three", BATCH_BESIDE, ".3.tmp", 0, 0, false, 0};
    batch b = {.dir = dir};
    assert_int_equal(batch_add(&b, &two, &err), 0);
    assert_int_equal(batch_add(&b, &three, &err), 0);
    batch_remove(&b); /* nothing was made so far */
    assert_true(is_there("sub/two"));
    assert_int_equal(batch_make(&b, &err), 0);
    unlinkat(dir, "sub/.3.tmp", 0);
    b.durability = BATCH_SYNCED;
    assert_int_equal(batch_commit(&b, &err), -ENOENT);
    assert_string_equal(contents("sub/two"), "");
    batch_remove(&b);
    batch_drop(&b);
    assert_false(is_there("sub/two"));
    assert_false(is_there("sub/three"));
    assert_int_equal(count_temporaries(), 0);
}

/* Another file in the place of the created one is not opened. */
static void opened_again(void **state)
{
    kvtree_error err;
    int fd;
    const batch_file file = {
        .name = "one", .from = dir, .temporary = ".y.tmp", .size = 3, .mode = 0600};
    batch b = {.dir = dir};
    assert_int_equal(batch_add(&b, &file, &err), 0);
    assert_int_equal(batch_make(&b, &err), 0);
    assert_int_equal(batch_open_made(&b, 0, O_WRONLY, &fd, &err), 0);
    close(fd);
    assert_int_equal(linkat(dir, ".y.tmp", dir, "kept", 0), 0);
    assert_int_equal(batch_open_made(&b, 0, O_WRONLY, &fd, &err), -ESTALE);
    assert_int_equal(unlinkat(dir, ".y.tmp", 0), 0);
    assert_int_equal(batch_open_made(&b, 0, O_WRONLY, &fd, &err), -ENOENT);
    put(".y.tmp", "new", 0600);
    assert_int_equal(batch_open_made(&b, 0, O_WRONLY, &fd, &err), -ESTALE);
    assert_int_equal(renameat(dir, "kept", dir, ".y.tmp"), 0);
    assert_int_equal(fchmodat(dir, ".y.tmp", 0640, 0), 0);
    assert_int_equal(batch_open_made(&b, 0, O_WRONLY, &fd, &err), -ESTALE);
    batch_drop(&b);
}

static void named_by_paths(void **state)
{
    char path[128];
    kvtree_error err;
    int fd;
    batch b = {.dir = AT_FDCWD, .folders = 0700};
    assert_int_equal(symlinkat("sub", dir, "link"), 0);
    snprintf(path, sizeof path, "%s/link/new/five", folder);
    assert_int_equal(batch_open(&b, path, 0, &fd, &err), 0);
    assert_int_equal(io_write(fd, "new", 3), 0);
    assert_int_equal(batch_commit(&b, &err), 0);
    batch_drop(&b);
    assert_string_equal(contents("sub/new/five"), "new");
    assert_int_equal(batch_open(&b, "/tmp/", 0, &fd, &err), -EINVAL);
    batch_drop(&b);
}

/* ---- files that are written over ---- */

static void spares(void **state)
{
    kvtree_error err;
    int fd;
    static const struct {
        const char *name;
        bool reused;
    } all[] = {{"good", true},      {"linked", false}, {"public", false}, {"pipe", false},
               {"symbolic", false}, {"none", false},   {"sub", false}};
    put("good", "a longer text", 0600);
    put("linked", "linked", 0600);
    put("public", "public", 0644);
    assert_int_equal(linkat(dir, "linked", dir, "second", 0), 0);
    assert_int_equal(mkfifoat(dir, "pipe", 0600), 0);
    assert_int_equal(symlinkat("one", dir, "symbolic"), 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        batch b = {.dir = dir};
        batch_spare spare = {.dir = dir, .name = all[i].name};
        assert_int_equal(batch_open_over(&b, "sub/two", 0600, &spare, &fd, &err), 0);
        assert_int_equal(spare.reused, all[i].reused);
        assert_int_equal(io_write(fd, "new", 3), 0);
        assert_int_equal(batch_commit(&b, &err), 0);
        batch_drop(&b);
        assert_string_equal(contents("sub/two"), all[i].reused ? "newonger text" : "new");
    }
    assert_string_equal(contents("second"), "linked");
    assert_string_equal(contents("one"), "old");
    assert_int_equal(count_temporaries(), 0);
}

/* ---- sweeps ---- */

static void only_abandoned_files_are_swept(void **state)
{
    kvtree_error err;
    int fd;
    batch b = {.dir = dir};
    put(".0123456789abcdef.tmp", "abandoned", 0600);
    put(".0123456789abcdef-1.tmp", "another's", 0600);
    assert_int_equal(batch_open(&b, "one", 0, &fd, &err), 0);
    assert_int_equal(batch_sweep(dir, &err), 0);
    assert_false(is_there(".0123456789abcdef.tmp"));
    assert_true(is_there(".0123456789abcdef-1.tmp"));
    assert_int_equal(io_write(fd, "new", 3), 0);
    assert_int_equal(batch_sync(&b, &err), 0); /* the lock outlives the descriptor */
    assert_int_equal(batch_sweep(dir, &err), 0);
    assert_int_equal(batch_commit(&b, &err), 0);
    batch_drop(&b);
    assert_string_equal(contents("one"), "new");
}

#define TEST(f) cmocka_unit_test_setup(f, renew_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_synced),
        TEST(killed_at_any_call),
        TEST(any_call_fails),
        TEST(modes),
        TEST(existing_files_with_exclusive),
        TEST(links_on_the_way),
        TEST(folders_in_the_way),
        TEST(temporary_files_in_another_file_system),
        TEST(folders_that_others_cannot_change),
        TEST(not_taken_over),
        TEST(moved_from_elsewhere),
        TEST(removed_again),
        TEST(opened_again),
        TEST(named_by_paths),
        TEST(spares),
        TEST(only_abandoned_files_are_swept),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
