/* SPDX-License-Identifier: BSD-3-Clause */
/* folder_make: directories by path, created if missing. mount_user_of. */
#include "scratch.h"

#include "common/errtext.h"
#include "common/folder.h"
#include "common/mount.h"
#include <errno.h>
#include <sys/sysmacros.h>

/* The directory that fd is open on is the one at path, and can be listed and synced. */
static void same_folder(int fd, const char *path)
{
    struct stat a, b;
    assert_int_equal(fstat(fd, &a), 0);
    assert_int_equal(stat(path, &b), 0);
    assert_true(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
    assert_int_equal(fsync(fd), 0);
    close(fd);
}

static void test_opens(void **state)
{
    scratch *s = *state;
    int fd = -1;
    kvtree_error err = {""};
    assert_int_equal(folder_make(s->folder, 0, &fd, &err), 0);
    same_folder(fd, s->folder);
    assert_int_equal(folder_make("", 0777, &fd, &err), 0);
    same_folder(fd, ".");
    fd = 77;
    assert_int_equal(folder_make(s->source, 0, &fd, &err), -ENOENT);
    assert_non_null(strstr(err.text, s->source));
    assert_int_equal(fd, 77);
}

static void test_makes(void **state)
{
    scratch *s = *state;
    struct stat st;
    char path[256], odd[256];
    int fd = -1;
    mode_t old = umask(022);
    snprintf(path, sizeof path, "%s/a/b/c", s->folder);
    snprintf(odd, sizeof odd, "%s//a/./b/../b/c//", s->folder);
    assert_int_equal(folder_make(path, 0777, &fd, NULL), 0);
    same_folder(fd, path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    umask(old);
    assert_int_equal(folder_make(odd, 0777, &fd, NULL), 0);
    same_folder(fd, path);
}

static void test_relative(void **state)
{
    scratch *s = *state;
    int here = open(".", O_RDONLY | O_DIRECTORY), fd;
    assert_int_equal(chdir(s->folder), 0);
    assert_int_equal(folder_make("x/y", 0700, &fd, NULL), 0);
    same_folder(fd, "x/y");
    assert_int_equal(fchdir(here), 0);
    close(here);
}

static void test_links_on_the_way(void **state)
{
    scratch *s = *state;
    char link[128], path[256], target[256];
    int fd;
    snprintf(link, sizeof link, "%s/link", s->folder);
    snprintf(path, sizeof path, "%s/link/new", s->folder);
    snprintf(target, sizeof target, "%s/real", s->folder);
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(folder_make(path, 0700, &fd, NULL), -ENOENT); /* leads nowhere */
    assert_int_equal(mkdir(target, 0700), 0);
    assert_int_equal(folder_make(path, 0700, &fd, NULL), 0);
    snprintf(target, sizeof target, "%s/real/new", s->folder);
    same_folder(fd, target);
}

static void test_refuses(void **state)
{
    scratch *s = *state;
    char path[512];
    kvtree_error err;
    int fd = 77;
    scratch_write(s->source, "", 0);
    snprintf(path, sizeof path, "%s/x", s->source);
    assert_int_equal(folder_make(path, 0700, &fd, &err), -ENOTDIR);
    assert_int_equal(folder_make(s->source, 0700, &fd, &err), -ENOTDIR);
    snprintf(path, sizeof path, "%s/new/%0300d", s->folder, 7);
    assert_int_equal(folder_make(path, 0700, &fd, &err), -ENAMETOOLONG);
    assert_int_equal(fd, 77);
}

/* The user who serves a file system, in lines of /proc/self/mountinfo. */
static void test_mount_user(void **state)
{
    static const struct {
        const char *line;
        int user;
    } rows[] = {
        {"40 25 0:35 / /mnt rw - fuse.sshfs me@host: rw,user_id=1000,group_id=7", 1000},
        {"40 25 0:35 / /mnt rw - fuse /dev/x rw,relatime,user_id=0,group_id=0", 0},
        {"40 25 0:35 / /mnt rw - virtiofs tag rw", 0},
        {"40 25 0:35 / /mnt rw - fuse.virtiofs tag rw", -1},
        {"40 25 0:35 / /mnt rw - fuse virtiofs rw", -1},
        {"40 25 0:35 / /mnt rw - fuse ,user_id=0 rw", -1},
        {"40 25 0:36 / /mnt rw - virtiofs tag rw", -1},
        {"40 25 0:36 / /0:35 rw - virtiofs 0:35 rw", -1},
        {"40 25 0:35 / /mnt rw", -1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal((int)mount_user_of(rows[i].line, makedev(0, 35)), rows[i].user);
}

int main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_opens),    WITH_FOLDER(test_makes),
        WITH_FOLDER(test_relative), WITH_FOLDER(test_links_on_the_way),
        WITH_FOLDER(test_refuses),  cmocka_unit_test(test_mount_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
