/* SPDX-License-Identifier: BSD-3-Clause */
/* Files in places where others may write: names and links in the way of files below a
 * directory, including links that are planted while SCR resolves a path; directories of
 * other users; and links, fifos and directories in the place of records.
 * docs/reliability.md lists the tests for other things that are not trusted. */
#include "records.h"

#include "cache/filemap.h"
#include "common/beneath.h"
#include "halt/halt.h"
#include "nth_syscall.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include <errno.h>
#include <sys/mman.h>

enum { LONG_NAME = 4096 };

/* ---- names ---- */

static void refused_names(void **state)
{
    struct scratch *s = *state;
    char longest[LONG_NAME + 1];
    const char *const names[] = {"",       "/",    "/etc/passwd", "..",  "../x",
                                 "a/../b", "a/..", ".",           "./a", "a//b",
                                 "a/",     "a/.",  "a\nb",        "\t",  "a\x7f",
                                 "a/\x01", "\n",   longest,       "//",  "a/./b"};
    memset(longest, 'x', LONG_NAME);
    for (int i = 100; i < LONG_NAME; i += 100)
        longest[i] = '/'; /* each component by itself is short enough */
    longest[LONG_NAME] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct stat st;
        const char *last;
        int fd = -1, rc = beneath_check_name(names[i], &s->err);
        assert_int_equal(rc, -EINVAL);
        assert_null(strpbrk(s->err.text, "\n\t\x7f\x01"));
        assert_int_equal(beneath_open(s->dir, names[i], O_RDONLY, 0, &fd, NULL), -EINVAL);
        assert_int_equal(beneath_open_parent(s->dir, names[i], 0700, &fd, &last, NULL),
                         -EINVAL);
        assert_int_equal(beneath_mkdirs(s->dir, names[i], 0700, NULL), -EINVAL);
        assert_int_equal(beneath_make_durable(s->dir, names[i], 0700, NULL), -EINVAL);
        assert_int_equal(beneath_unlink(s->dir, names[i], NULL), -EINVAL);
        assert_int_equal(beneath_rmdir(s->dir, names[i], NULL), -EINVAL);
        assert_int_equal(beneath_remove_tree(s->dir, names[i], NULL), -EINVAL);
        assert_int_equal(beneath_stat(s->dir, names[i], &st, NULL), -EINVAL);
        assert_int_equal(beneath_private_folder(s->path, names[i], &fd, NULL), -EINVAL);
        assert_int_equal(fd, -1);
    }
    longest[BENEATH_NAME_MAX - 1] = 0; /* the longest that is accepted */
    assert_int_equal(beneath_check_name(longest, &s->err), 0);
    longest[BENEATH_NAME_MAX - 1] = 'x';
    longest[BENEATH_NAME_MAX] = 0;
    assert_int_equal(beneath_check_name(longest, &s->err), -EINVAL);
}

/* ---- links that are planted on the way ---- */

/* "in/a/b/file" is ours; "out" has the same names and belongs to somebody else. Before
 * one of the child's calls "in/a" or another part is replaced by a link to its
 * counterpart in "out". */
static struct {
    const struct scratch *s;
    const char *part;
    unsigned at;
    int planted;
} thief;

static nth_result result;

static void make_trees(const struct scratch *s)
{
    static const char *const folders[] = {"in",  "in/a",  "in/a/b",
                                          "out", "out/a", "out/a/b"};
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s/in %s/out %s/in.*", s->path, s->path,
             s->path);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdirat(s->dir, folders[i], 0700), 0);
    scratch_put(s, "in/a/b/file", "ours", 4);
    scratch_put(s, "out/a/b/file", "theirs", 6);
}

/* Plants the link; the part itself is renamed to "in.old". */
static int plant(void *arg, unsigned n, const nth_call *call)
{
    char link[100], target[300];
    if (n != thief.at) return NTH_GO;
    snprintf(link, sizeof link, "in/%s", thief.part);
    snprintf(target, sizeof target, "%s/out/%s", thief.s->path, thief.part);
    thief.planted = renameat(thief.s->dir, link, thief.s->dir, "in.old") == 0 &&
                    symlinkat(target, thief.s->dir, link) == 0;
    return NTH_GO;
}

static int open_ours(const struct scratch *s)
{
    return openat(s->dir, "in", O_RDONLY | O_DIRECTORY);
}

/* 0: our file was read; 1: refused; 2: the file of somebody else was read. */
static int read_file(void *arg)
{
    char text[8] = "";
    int fd, dir = open_ours(arg);
    if (beneath_open(dir, "a/b/file", O_RDONLY, 0, &fd, NULL) != 0) return 1;
    ssize_t n = read(fd, text, sizeof text - 1);
    return n == 4 && strcmp(text, "ours") == 0 ? 0 : 2;
}

static int remove_file(void *arg)
{
    int dir = open_ours(arg);
    return beneath_unlink(dir, "a/b/file", NULL) != 0;
}

static int remove_all(void *arg)
{
    int dir = open_ours(arg);
    return beneath_remove_tree(dir, "a", NULL) != 0;
}

static int make_below(void *arg)
{
    int dir = open_ours(arg);
    return beneath_make_durable(dir, "a/b/new/folder", 0700, NULL) != 0;
}

static int make_private(void *arg)
{
    const struct scratch *s = arg;
    char base[100];
    int dir;
    snprintf(base, sizeof base, "%s/in", s->path);
    if (beneath_private_folder(base, "a/b", &dir, NULL) != 0) return 1;
    return mkdirat(dir, "new", 0700) != 0;
}

/* Nothing was read, removed or created at the target of the link. */
static void check_theirs(const struct scratch *s)
{
    struct stat st;
    assert_int_equal(fstatat(s->dir, "out/a/b/file", &st, 0), 0);
    assert_int_equal(st.st_size, 6);
    assert_int_equal(fstatat(s->dir, "out/a/b/new", &st, 0), -1);
}

/* First without a link, which gives the number of calls. */
static void swap_while(const struct scratch *s, int (*act)(void *), const char *part)
{
    unsigned calls = 0;
    int planted = 0;
    for (unsigned at = 0; at <= calls; at++) {
        make_trees(s);
        thief.s = s;
        thief.part = part;
        thief.at = at;
        thief.planted = 0;
        int rc = nth_run(act, (void *)(uintptr_t)s, plant, NULL, &result);
        if (rc) {
            print_message("the kernel refuses seccomp notifications: %s\n", strerror(rc));
            skip();
        }
        int returned = nth_returned(&result);
        assert_true(returned == 0 || returned == 1);
        check_theirs(s);
        planted += thief.planted;
        calls = result.count > calls ? result.count : calls;
    }
    assert_true(planted > 2);
}

static void links_planted_on_the_way(void **state)
{
    static int (*const acts[])(void *) = {read_file, remove_file, remove_all, make_below,
                                          make_private};
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        swap_while(*state, acts[i], "a");
        swap_while(*state, acts[i], "a/b");
    }
    swap_while(*state, read_file, "a/b/file");
    swap_while(*state, remove_file, "a/b/file");
}

/* ---- directories on the way are not opened for reading ---- */

static int make_folder(void *arg)
{
    int dir = open_ours(arg);
    return beneath_mkdirs(dir, "a/b/new", 0700, NULL) != 0;
}

static int unlink_durably(void *arg)
{
    int dir = open_ours(arg);
    return beneath_unlink_durable(dir, "a/b/file", NULL) != 0;
}

static int open_parent(void *arg)
{
    int parent, dir = open_ours(arg);
    const char *last;
    return beneath_open_parent(dir, "a/b/file", 0, &parent, &last, NULL) != 0;
}

/* A file server opens and closes a directory unless it is opened with O_PATH: only the
 * directory that is created, synced, or returned for other uses, and that of open_ours,
 * are opened without it. */
static void directories_that_are_passed(void **state)
{
    const struct {
        int (*act)(void *);
        unsigned opened, passed;
    } acts[] = {{read_file, 1, 2},
                {remove_file, 1, 2},
                {make_folder, 2, 2}, /* looks for the third one in vain */
                {unlink_durably, 2, 1},
                {open_parent, 2, 1}};
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        unsigned opened = 0, passed = 0;
        make_trees(*state);
        nth_fault none = {.at = 0};
        int rc = nth_run(acts[i].act, *state, nth_at, &none, &result);
        if (rc) {
            print_message("the kernel refuses seccomp notifications: %s\n", strerror(rc));
            skip();
        }
        assert_int_equal(nth_returned(&result), 0);
        for (unsigned n = 0; n < result.count; n++) {
            const nth_call *call = &result.calls[n];
            if (strcmp(call->name, "open") || !(call->args[2] & O_DIRECTORY)) continue;
            *(call->args[2] & O_PATH ? &passed : &opened) += 1;
        }
        assert_int_equal(opened, acts[i].opened);
        assert_int_equal(passed, acts[i].passed);
    }
}

/* ---- private directories ---- */

static void private_folders(void **state)
{
    struct scratch *s = *state;
    int dir;
    assert_int_equal(beneath_private_folder(s->path, "u/j", &dir, &s->err), 0);
    struct stat st;
    assert_int_equal(fstat(dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    close(dir);
    for (int mode = 0; mode < 0100; mode++) {
        const char *name = mode % 2 ? "u" : "u/j";
        assert_int_equal(fchmodat(s->dir, name, (mode_t)(0700 | mode), 0), 0);
        int wanted = mode & 022 ? -EPERM : 0;
        assert_int_equal(beneath_private_folder(s->path, "u/j", &dir, &s->err), wanted);
        if (wanted)
            assert_non_null(strstr(s->err.text, "can be written by others"));
        else
            close(dir);
        assert_int_equal(fchmodat(s->dir, name, 0700, 0), 0);
    }
    if (geteuid() != 0) return; /* only root can give directories away */
    assert_int_equal(fchownat(s->dir, "u", 12345, (gid_t)-1, 0), 0);
    assert_int_equal(beneath_private_folder(s->path, "u/j", &dir, &s->err), -EPERM);
    assert_non_null(strstr(s->err.text, "belongs to user 12345"));
}

/* The mode of a file that somebody else placed under the name of our file stays
 * unchanged. */
static void modes_of_others(void **state)
{
    struct scratch *s = *state;
    struct stat st;
    close(openat(s->dir, "ours", O_WRONLY | O_CREAT, 0600));
    close(openat(s->dir, "private", O_WRONLY | O_CREAT, 0600));
    for (mode_t more = 01; more <= 040; more <<= 1)
        assert_int_equal(beneath_chmod(s->dir, "private", 0600 | more, &s->err), -EPERM);
    assert_non_null(
        strstr(s->err.text, "private is more private than what should be there"));
    assert_int_equal(fchmodat(s->dir, "ours", 0644, 0), 0);
    assert_int_equal(beneath_chmod(s->dir, "ours", 0444, &s->err), 0);
    assert_int_equal(fstatat(s->dir, "ours", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0444);
    assert_int_equal(symlinkat("private", s->dir, "link"), 0);
    assert_int_equal(linkat(s->dir, "private", s->dir, "second", 0), 0);
    assert_int_equal(beneath_chmod(s->dir, "link", 0444, &s->err), -EPERM);
    assert_int_equal(beneath_chmod(s->dir, "second", 0444, &s->err), -EPERM);
    assert_non_null(strstr(s->err.text, "second is a link, or not our own"));
    assert_int_equal(beneath_chmod(s->dir, "none", 0444, &s->err), -ENOENT);
    assert_int_equal(fstatat(s->dir, "private", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    if (geteuid() != 0) return;
    assert_int_equal(fchownat(s->dir, "ours", 12345, (gid_t)-1, 0), 0);
    assert_int_equal(beneath_chmod(s->dir, "ours", 0400, &s->err), -EPERM);
}

/* A file that grows in place may be another user's, under another name. */
static void files_of_two_names(void **state)
{
    struct scratch *s = *state;
    int fd = -1;
    scratch_put(s, "ours", "text", 4);
    assert_int_equal(linkat(s->dir, "ours", s->dir, "second", 0), 0);
    assert_int_equal(beneath_open(s->dir, "ours", O_RDWR | O_CREAT, 0600, &fd, &s->err),
                     -EPERM);
    assert_non_null(strstr(s->err.text, "ours has another name, too (a hard link)"));
    assert_int_equal(fd, -1);
    assert_int_equal(beneath_open(s->dir, "ours", O_RDONLY, 0, &fd, &s->err), 0);
    close(fd);
    assert_int_equal(unlinkat(s->dir, "second", 0), 0);
    assert_int_equal(beneath_open(s->dir, "ours", O_RDWR | O_CREAT, 0600, &fd, &s->err),
                     0);
    close(fd);
}

/* ---- other things in the place of a record ---- */

#define FILEMAP "filemap_0.scriinfo"

static int read_index(int dir, kvtree *tree, kvtree_error *err)
{
    return scr_index_read(dir, tree, err);
}

static int read_filemap(int dir, kvtree *tree, kvtree_error *err)
{
    return scr_filemap_read(dir, FILEMAP, "u/scr.1", tree, err);
}

static int read_summary(int dir, kvtree *tree, kvtree_error *err)
{
    scr_dataset d;
    return scr_summary_read(dir, &d, err);
}

static int read_flush_file(int dir, kvtree *tree, kvtree_error *err)
{
    (void)scr_flush_file_read(dir, tree, err); /* unreadable records count as missing */
    return kvtree_size(tree) ? 0 : -EINVAL;
}

static int write_index(int dir, kvtree *tree, kvtree_error *err)
{
    return kvtree_file_write(dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, tree, err);
}

static int write_filemap(int dir, kvtree *tree, kvtree_error *err)
{
    return scr_filemap_write(dir, FILEMAP, tree, err);
}

static int write_summary(int dir, kvtree *tree, kvtree_error *err)
{
    const scr_dataset d = {.id = 1, .name = "a"};
    return scr_summary_write(dir, &d, err);
}

static const struct {
    const char *name;
    int (*read)(int dir, kvtree *tree, kvtree_error *err);
    int (*write)(int dir, kvtree *tree, kvtree_error *err);
} records[] = {{SCR_INDEX_NAME, read_index, write_index},
               {SCR_HALT_NAME, scr_halt_read, NULL},
               {SCR_FLUSH_FILE_NAME, read_flush_file, NULL},
               {SCR_SUMMARY_NAME, read_summary, write_summary},
               {FILEMAP, read_filemap, write_filemap}};

enum { RECORDS = sizeof records / sizeof *records };

static int write_record(int i, int dir, kvtree_error *err)
{
    kvtree *tree = kvtree_new();
    assert_int_equal(scr_index_start(tree), 0); /* any tree will do */
    int rc = records[i].write                  ? records[i].write(dir, tree, err)
             : strstr(records[i].name, "halt") ? scr_halt_write(dir, tree, err)
                                               : scr_flush_file_write(dir, tree, err);
    kvtree_delete(&tree);
    return rc;
}

static int read_record(int i, int dir, kvtree_error *err)
{
    kvtree *tree = kvtree_new();
    int rc = records[i].read(dir, tree, err);
    assert_true(rc == 0 || kvtree_size(tree) == 0);
    kvtree_delete(&tree);
    return rc;
}

/* A valid record that is reached by a link does not count, and is not written to. */
static void links_instead_of_records(void **state)
{
    struct scratch *s = *state;
    for (int i = 0; i < RECORDS; i++) {
        const char *name = records[i].name;
        struct stat before, after;
        assert_int_equal(write_record(i, s->dir, &s->err), 0);
        assert_int_equal(renameat(s->dir, name, s->dir, "victim"), 0);
        assert_int_equal(fstatat(s->dir, "victim", &before, 0), 0);
        char target[100];
        snprintf(target, sizeof target, "%s/victim", s->path);
        assert_int_equal(symlinkat(target, s->dir, name), 0);
        assert_true(read_record(i, s->dir, &s->err) < 0);
        assert_int_equal(write_record(i, s->dir, &s->err), 0);
        assert_int_equal(fstatat(s->dir, name, &after, AT_SYMLINK_NOFOLLOW), 0);
        assert_true(S_ISREG(after.st_mode));
        assert_int_equal(fstatat(s->dir, "victim", &after, 0), 0);
        assert_true(before.st_ino == after.st_ino &&
                    before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    }
}

/* The directory of the records must not be a link either. */
static void link_instead_of_their_folder(void **state)
{
    struct scratch *s = *state;
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(write_record(i, s->dir, &s->err), 0);
    assert_int_equal(renameat(s->dir, ".scr", s->dir, "elsewhere"), 0);
    assert_int_equal(symlinkat("elsewhere", s->dir, ".scr"), 0);
    for (int i = 0; i < RECORDS; i++) {
        if (!strchr(records[i].name, '/')) continue;
        assert_true(read_record(i, s->dir, &s->err) < 0);
        assert_true(write_record(i, s->dir, &s->err) < 0);
    }
}

/* No call waits for another process to open the other end of a fifo. */
static void fifos_and_folders(void **state)
{
    struct scratch *s = *state;
    for (int i = 0; i < RECORDS; i++) {
        assert_int_equal(mkfifoat(s->dir, records[i].name, 0600), 0);
        assert_true(read_record(i, s->dir, &s->err) < 0);
        assert_int_equal(unlinkat(s->dir, records[i].name, 0), 0);
        assert_int_equal(mkdirat(s->dir, records[i].name, 0700), 0);
        assert_true(read_record(i, s->dir, &s->err) < 0);
        assert_true(write_record(i, s->dir, &s->err) < 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(refused_names),
        scratch_test(links_planted_on_the_way),
        scratch_test(directories_that_are_passed),
        scratch_test(private_folders),
        scratch_test(modes_of_others),
        scratch_test(files_of_two_names),
        scratch_test(links_instead_of_records),
        scratch_test(link_instead_of_their_folder),
        scratch_test(fifos_and_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
