/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that several processes change: no change is lost, no process waits for a dead
 * one, and files that cannot be locked are refused. test_kvtree_race.c tests what happens
 * between two system calls of a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "build_tree.h"
#include "scratch.h"
#include <cmocka.h>
#include <pthread.h>

#include "counter.h"

enum { PROCESSES = 8, INCREMENTS = 1000, READERS = 2 };

/* Reads until the last number appears; each number is complete, and they never decrease.
 */
static pid_t start_reading(const char *path, int locked, int last)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int seen = 0; seen < last;) {
        kvtree *tree = kvtree_new();
        int rc =
            locked ? kvtree_read_with_lock(path, tree) : kvtree_read_file(path, tree);
        int number = number_of(tree), size = kvtree_size(tree);
        kvtree_delete(&tree);
        if (rc == -ENOENT && seen == 0) continue;
        if (rc || number < seen || size != (number > 0)) _exit(1);
        seen = number;
    }
    _exit(0);
}

static void no_increment_is_lost(void **state)
{
    pid_t children[PROCESSES + READERS];
    const char *path = in_folder("number");
    char other[128];
    assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
    assert_int_equal(symlink("sub/..", in_folder("around")), 0);
    snprintf(other, sizeof other, "%s/around/sub/../number", folder);
    for (int i = 0; i < PROCESSES; i++)
        children[i] = start_incrementing(i % 2 ? path : other, INCREMENTS);
    for (int i = 0; i < READERS; i++)
        children[PROCESSES + i] = start_reading(path, i % 2, PROCESSES * INCREMENTS);
    for (int i = 0; i < PROCESSES + READERS; i++)
        join(children[i]);
    assert_int_equal(number_in(path), PROCESSES * INCREMENTS);
    assert_int_equal(files_in_folder(0), 3);
}

/* All processes find no file at the same time. */
static void first_ones_at_once(void **state)
{
    const char *path = in_folder("number");
    for (int round = 1; round <= 50; round++) {
        pid_t children[PROCESSES], reader = start_reading(path, round % 2, PROCESSES);
        for (int i = 0; i < PROCESSES; i++)
            children[i] = start_incrementing(path, 1);
        for (int i = 0; i < PROCESSES; i++)
            join(children[i]);
        join(reader);
        assert_int_equal(number_in(path), PROCESSES);
        assert_int_equal(files_in_folder(1), 1);
    }
}

static void *increment_in_thread(void *path)
{
    int left = INCREMENTS / 2;
    while (left > 0 && increment(path) == 0)
        left--;
    return left ? path : NULL;
}

static void threads_exclude_each_other(void **state)
{
    pthread_t threads[2];
    char path[128];
    void *failed;
    strcpy(path, in_folder("number"));
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, increment_in_thread, path), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(number_in(path), INCREMENTS);
}

/* ---- who holds a lock ---- */

static void a_lock_excludes_until_it_ends(void **state)
{
    const char *path = in_folder("number");
    int fd = lock(path);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(try_lock(path, F_WRLCK), -EAGAIN);
    assert_int_equal(try_lock(path, F_RDLCK), -EAGAIN);
    close(fd);
    assert_int_equal(try_lock(path, F_WRLCK), 0);
    assert_int_equal(number_in(path), 0);
    assert_int_equal(files_in_folder(0), 1);
}

/* A process with a limit on the wait gets the lock in time, or an error. */
static void patience_ends(void **state)
{
    kvtree_error err = {""};
    int fd = lock(in_folder("number")), other = -7;
    kvtree *tree = kvtree_new();
    const char *path = in_folder("number");
    for (int seconds = 0; seconds < 2; seconds++) {
        assert_int_equal(kvtree_file_lock_within(AT_FDCWD, path, KVTREE_ANY_SIZE, seconds,
                                                 &other, tree, &err),
                         -ETIMEDOUT);
        assert_non_null(strstr(err.text, "another process has had the lock"));
        assert_int_equal(other, -7);
    }
    close(fd);
    assert_int_equal(
        kvtree_file_lock_within(AT_FDCWD, path, KVTREE_ANY_SIZE, 0, &other, tree, &err),
        0);
    assert_int_equal(try_lock(path, F_RDLCK), -EAGAIN);
    close(other);
    kvtree_delete(&tree);
}

/* Locks the next file before it unlocks the last one, until the test ends it. */
static pid_t start_replacing(const char *path)
{
    char next[140];
    pid_t child = fork();
    assert_true(child >= 0);
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(next, sizeof next, "%s.next", path);
    for (int held = lock(path);;) {
        usleep(300000);
        int other = lock(next);
        if (held < 0 || other < 0 || rename(next, path) != 0) _exit(1);
        close(held);
        held = other;
    }
}

/* The limit holds for the whole wait, even if the file is replaced. */
static void patience_ends_with_new_files(void **state)
{
    kvtree_error err = {""};
    const char *path = in_folder("number");
    kvtree *tree = kvtree_new();
    int other = -7, status;
    pid_t child = start_replacing(path);
    while (try_lock(path, F_RDLCK) != -EAGAIN)
        usleep(1000);
    alarm(20);
    assert_int_equal(
        kvtree_file_lock_within(AT_FDCWD, path, KVTREE_ANY_SIZE, 2, &other, tree, &err),
        -ETIMEDOUT);
    alarm(0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    kvtree_delete(&tree);
}

/* A file that is not a tree, and a missing one, which is created. */
static void lock_of_any_file(void **state)
{
    kvtree_error err = {""};
    const char *path = in_folder("damaged");
    int fd = -7, other = -7;
    kvtree *tree = kvtree_new();
    struct stat st;
    assert_int_equal(kvtree_file_lock_only(AT_FDCWD, in_folder("no/lock"), 0, &fd, &err),
                     -ENOENT);
    assert_int_equal(files_in_folder(0), 0);
    assert_int_equal(kvtree_file_lock_only(AT_FDCWD, path, 0, &fd, &err), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(try_lock(path, F_RDLCK), -EAGAIN);
    close(fd);
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(file, "no tree", 7), 7);
    close(file);
    assert_int_equal(kvtree_file_lock_only(AT_FDCWD, path, 0, &fd, &err), 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(try_lock(path, F_RDLCK), -EAGAIN);
    assert_int_equal(kvtree_file_lock_only(AT_FDCWD, path, 0, &other, &err), -ETIMEDOUT);
    assert_int_equal(
        kvtree_file_lock_within(AT_FDCWD, path, KVTREE_ANY_SIZE, 0, &other, tree, &err),
        -ETIMEDOUT);
    assert_int_equal(other, -7);
    close(fd);
    assert_int_equal(
        kvtree_file_lock_within(AT_FDCWD, path, KVTREE_ANY_SIZE, 0, &other, tree, &err),
        -EBADMSG);
    assert_int_equal(kvtree_file_lock_only(AT_FDCWD, NULL, 0, &fd, &err), -EINVAL);
    assert_int_equal(kvtree_file_lock_only(AT_FDCWD, path, 0, NULL, &err), -EINVAL);
    kvtree_delete(&tree);
}

static mode_t mode_of(const char *name)
{
    struct stat st;
    assert_int_equal(stat(in_folder(name), &st), 0);
    return st.st_mode & 07777;
}

/* A process that can open a file for reading can keep others from locking it. */
static void readers_cannot_lock(void **state)
{
    static const struct {
        mode_t dir, mask, plain, locked, lock;
    } cases[] = {{0755, 022, 0644, 0600, 0600},
                 {0755, 0, 0644, 0600, 0600},
                 {02775, 002, 0664, 0660, 0660},
                 {02775, 022, 0644, 0640, 0660},
                 {02770, 077, 0600, 0600, 0660}};
    const mode_t mask = umask(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd;
        assert_int_equal(chmod(folder, cases[i].dir), 0);
        umask(cases[i].mask);
        assert_int_equal(kvtree_write_with_lock(in_folder("new"), NULL), 0);
        assert_int_equal(kvtree_write_file(in_folder("written"), NULL), 0);
        assert_int_equal(mode_of("written"), cases[i].plain);
        assert_int_equal(kvtree_write_with_lock(in_folder("written"), NULL), 0);
        assert_int_equal(kvtree_write_file(in_folder("changed"), NULL), 0);
        assert_int_equal(increment(in_folder("changed")), 0);
        fd = lock(in_folder("made"));
        close(fd);
        assert_int_equal(kvtree_file_lock_only(AT_FDCWD, in_folder("lock"), 0, &fd, NULL),
                         0);
        close(fd);
        assert_int_equal(mode_of("new"), cases[i].locked);
        assert_int_equal(mode_of("written"), cases[i].locked);
        assert_int_equal(mode_of("changed"), cases[i].locked);
        assert_int_equal(mode_of("made"), cases[i].locked);
        assert_int_equal(mode_of("lock"), cases[i].lock);
        assert_int_equal(files_in_folder(1), 5);
    }
    umask(mask);
}

static void *increment_within(void *path)
{
    for (int i = 0; i < INCREMENTS; i++) {
        kvtree *tree = kvtree_new();
        int fd;
        int rc = kvtree_file_lock_within(AT_FDCWD, path, KVTREE_ANY_SIZE, 600, &fd, tree,
                                         NULL);
        if (!rc) rc = kvtree_util_set_int(tree, "NUMBER", number_of(tree) + 1);
        if (!rc) rc = kvtree_write_close_unlock(path, &fd, tree);
        kvtree_delete(&tree);
        if (rc) return path;
    }
    return NULL;
}

static void those_with_patience_exclude_each_other(void **state)
{
    pthread_t threads[2];
    char path[128];
    snprintf(path, sizeof path, "%s", in_folder("number"));
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, increment_within, path), 0);
    for (int i = 0; i < 2; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(number_in(path), 2 * INCREMENTS);
}

static void readers_share(void **state)
{
    kvtree *tree = kvtree_new();
    struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    assert_int_equal(put_number(in_folder("number"), 7), 0);
    int fd = open(in_folder("number"), O_RDONLY);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &all), 0);
    assert_int_equal(kvtree_read_with_lock(in_folder("number"), tree), 0);
    assert_int_equal(number_of(tree), 7);
    assert_int_equal(try_lock(in_folder("number"), F_WRLCK), -EAGAIN);
    close(fd);
    assert_int_equal(try_lock(in_folder("number"), F_WRLCK), 0);
    kvtree_delete(&tree);
}

/* A process forked meanwhile has a copy of the descriptor and lives on. */
static void a_forked_child_does_not_keep_it(void **state)
{
    int ends[2], fd = lock(in_folder("number"));
    int old = open(in_folder("number"), O_RDWR | O_CLOEXEC);
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) != 0);
    }
    assert_int_equal(fcntl(old, F_OFD_SETLK, &all), -1);
    assert_int_equal(kvtree_write_close_unlock(in_folder("number"), &fd, NULL), 0);
    assert_int_equal(fcntl(old, F_OFD_SETLK, &all), 0);
    close(old);
    close(ends[0]);
    close(ends[1]);
    join(child);
}

static void a_killed_holder_blocks_nobody(void **state)
{
    int ends[2];
    char byte;
    const char *path = in_folder("number");
    assert_int_equal(put_number(path, 5), 0);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        lock(path);
        if (write(ends[1], "x", 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(try_lock(path, F_WRLCK), -EAGAIN);
    pid_t waiting = start_incrementing(path, 1);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    join(waiting);
    assert_int_equal(number_in(path), 6);
    close(ends[0]);
    close(ends[1]);
}

/* ---- missing, read-only and irregular files ---- */

static void missing_files(void **state)
{
    kvtree_error err = {"as before"};
    kvtree *tree = tree_of(3);
    int fd = -7;
    assert_int_equal(kvtree_read_with_lock(in_folder("number"), tree), 0);
    assert_int_equal(number_of(tree), 3);
    assert_int_equal(access(in_folder("number"), F_OK), -1);
    assert_int_equal(kvtree_file_read_with_lock(AT_FDCWD, in_folder("number"),
                                                KVTREE_ANY_SIZE, tree, NULL),
                     -ENOENT);
    assert_int_equal(files_in_folder(0), 0);
    assert_int_equal(kvtree_file_write_with_lock(AT_FDCWD, in_folder("number"),
                                                 KVTREE_ANY_SIZE, tree, &err),
                     0);
    assert_int_equal(number_in(in_folder("number")), 3);
    kvtree_unset_all(tree);
    assert_int_equal(kvtree_file_lock_open_read(AT_FDCWD, in_folder("new"),
                                                KVTREE_ANY_SIZE, &fd, tree, &err),
                     0);
    assert_int_equal(kvtree_size(tree), 0);
    close(fd);
    fd = -7;
    assert_int_equal(files_in_folder(0), 2);
    assert_string_equal(err.text, "as before");
    assert_int_equal(kvtree_read_with_lock(in_folder("no/number"), tree), -ENOENT);
    assert_int_equal(kvtree_write_with_lock(in_folder("no/number"), tree), -ENOENT);
    assert_int_equal(kvtree_lock_open_read(in_folder("no/number"), &fd, tree), -ENOENT);
    assert_int_equal(fd, -7);
    kvtree_delete(&tree);
}

static void damaged_files(void **state)
{
    kvtree_error err = {""};
    kvtree *tree = tree_of(3);
    int fd = -7, file = open(in_folder("number"), O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(file, "no tree, but long enough", 24), 24);
    close(file);
    assert_int_equal(kvtree_file_lock_open_read(AT_FDCWD, in_folder("number"),
                                                KVTREE_ANY_SIZE, &fd, tree, &err),
                     -EBADMSG);
    assert_non_null(strstr(err.text, "number: not a tree file"));
    assert_int_equal(fd, -7);
    assert_int_equal(number_of(tree), 3);
    assert_int_equal(try_lock(in_folder("number"), F_WRLCK), 0);
    assert_int_equal(kvtree_file_read_with_lock(AT_FDCWD, in_folder("number"),
                                                KVTREE_ANY_SIZE, tree, &err),
                     -EBADMSG);
    assert_int_equal(try_lock(in_folder("number"), F_WRLCK), 0);
    assert_int_equal(kvtree_write_with_lock(in_folder("number"), tree), 0);
    assert_int_equal(number_in(in_folder("number")), 3);
    kvtree_delete(&tree);
}

/* As a user who may read the file, but not write it. */
static int read_only(void *arg)
{
    int fd = -7;
    kvtree *tree = kvtree_new();
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 1;
    if (kvtree_read_with_lock(arg, tree) != 0 || number_of(tree) != 9) return 2;
    if (kvtree_lock_open_read(arg, &fd, tree) != -EACCES || fd != -7) return 3;
    if (kvtree_write_with_lock(arg, tree) != -EACCES) return 4;
    return 0;
}

static void files_without_permission_to_write(void **state)
{
    char path[128];
    strcpy(path, in_folder("number"));
    assert_int_equal(put_number(path, 9), 0);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    pid_t child = fork();
    if (child == 0) _exit(read_only(path));
    join(child);
    assert_int_equal(number_in(path), 9);
}

static void only_plain_files(void **state)
{
    kvtree_error err;
    kvtree *tree = tree_of(1);
    int fd = -7;
    assert_int_equal(put_number(in_folder("number"), 4), 0);
    assert_int_equal(symlink("number", in_folder("link")), 0);
    assert_int_equal(symlink("nowhere", in_folder("dangling")), 0);
    assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    const struct {
        const char *name;
        int read, write;
    } cases[] = {{"link", -ELOOP, -ELOOP},
                 {"dangling", -ELOOP, -ELOOP},
                 {"sub", -EINVAL, -EISDIR},
                 {"sub/", -EINVAL, -EINVAL},
                 {"fifo", -EINVAL, -EINVAL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = in_folder(cases[i].name);
        assert_int_equal(
            kvtree_file_read_with_lock(AT_FDCWD, path, KVTREE_ANY_SIZE, tree, &err),
            cases[i].read);
        assert_non_null(strstr(err.text, path));
        assert_int_equal(
            kvtree_file_write_with_lock(AT_FDCWD, path, KVTREE_ANY_SIZE, tree, &err),
            cases[i].write);
        assert_non_null(strstr(err.text, path));
        assert_int_equal(
            kvtree_file_lock_open_read(AT_FDCWD, path, KVTREE_ANY_SIZE, &fd, tree, &err),
            cases[i].write);
        assert_non_null(strstr(err.text, path));
        assert_int_equal(fd, -7);
    }
    assert_int_equal(number_in(in_folder("number")), 4);
    assert_int_equal(files_in_folder(0), 5);
    kvtree_delete(&tree);
}

static void missing_arguments(void **state)
{
    kvtree_error err;
    kvtree *tree = kvtree_new();
    int fd = -7;
    const char *path = in_folder("number");
    assert_int_equal(kvtree_read_with_lock(NULL, tree), -EINVAL);
    assert_int_equal(kvtree_read_with_lock(path, NULL), -EINVAL);
    assert_int_equal(kvtree_write_with_lock(NULL, tree), -EINVAL);
    assert_int_equal(kvtree_lock_open_read(NULL, &fd, tree), -EINVAL);
    assert_int_equal(kvtree_lock_open_read(path, NULL, tree), -EINVAL);
    assert_int_equal(kvtree_lock_open_read(path, &fd, NULL), -EINVAL);
    assert_int_equal(fd, -7);
    assert_int_equal(files_in_folder(0), 0);
    assert_int_equal(kvtree_write_with_lock(path, NULL), 0);
    assert_int_equal(kvtree_write_close_unlock(path, NULL, tree), -EINVAL);
    fd = lock(path);
    assert_int_equal(
        kvtree_file_write_close_unlock(AT_FDCWD, NULL, KVTREE_ANY_SIZE, &fd, tree, &err),
        -EINVAL);
    assert_string_equal(err.text, "write a tree file: no file name");
    assert_int_equal(fd, -1);
    assert_int_equal(try_lock(path, F_WRLCK), 0);
    assert_int_equal(kvtree_write_close_unlock(path, &fd, tree), -EBADF);
    kvtree_delete(&tree);
}

static void below_an_open_folder(void **state)
{
    kvtree_error err = {""};
    kvtree *tree = tree_of(2), *back = kvtree_new();
    int fd = -7, dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
    assert_int_equal(symlink("sub", in_folder("alias")), 0);
    assert_int_equal(
        kvtree_file_write_with_lock(dir, "sub/number", KVTREE_ANY_SIZE, tree, &err), 0);
    assert_int_equal(
        kvtree_file_read_with_lock(dir, "sub/number", KVTREE_ANY_SIZE, back, &err), 0);
    assert_true(same_tree(tree, back));
    assert_int_equal(
        kvtree_file_lock_open_read(dir, "sub/number", KVTREE_ANY_SIZE, &fd, tree, &err),
        0);
    kvtree_util_set_int(tree, "NUMBER", 3);
    assert_int_equal(kvtree_file_write_close_unlock(dir, "sub/number", KVTREE_ANY_SIZE,
                                                    &fd, tree, &err),
                     0);
    assert_int_equal(fd, -1);
    assert_int_equal(number_in(in_folder("sub/number")), 3);
    assert_int_equal(
        kvtree_file_lock_open_read(dir, "new", KVTREE_ANY_SIZE, &fd, back, &err), 0);
    close(fd);
    fd = -7;
    static const char *const refused[] = {"../number", "/number", "sub/../new", ""};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(
            kvtree_file_read_with_lock(dir, refused[i], KVTREE_ANY_SIZE, tree, &err),
            -EINVAL);
        assert_int_equal(
            kvtree_file_write_with_lock(dir, refused[i], KVTREE_ANY_SIZE, tree, &err),
            -EINVAL);
        assert_int_equal(
            kvtree_file_lock_open_read(dir, refused[i], KVTREE_ANY_SIZE, &fd, tree, &err),
            -EINVAL);
    }
    assert_int_equal(
        kvtree_file_read_with_lock(dir, "alias/number", KVTREE_ANY_SIZE, tree, &err),
        -ENOTDIR);
    assert_int_equal(
        kvtree_file_lock_open_read(dir, "alias/new", KVTREE_ANY_SIZE, &fd, tree, &err),
        -ENOTDIR);
    assert_int_equal(
        kvtree_file_lock_open_read(-1, "new", KVTREE_ANY_SIZE, &fd, tree, &err), -EBADF);
    assert_int_equal(fd, -7);
    close(dir);
    kvtree_delete(&tree);
    kvtree_delete(&back);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(no_increment_is_lost),
        TEST(first_ones_at_once),
        TEST(threads_exclude_each_other),
        TEST(a_lock_excludes_until_it_ends),
        TEST(lock_of_any_file),
        TEST(readers_cannot_lock),
        TEST(patience_ends),
        TEST(patience_ends_with_new_files),
        TEST(those_with_patience_exclude_each_other),
        TEST(readers_share),
        TEST(a_forked_child_does_not_keep_it),
        TEST(a_killed_holder_blocks_nobody),
        TEST(missing_files),
        TEST(damaged_files),
        TEST(files_without_permission_to_write),
        TEST(only_plain_files),
        TEST(missing_arguments),
        TEST(below_an_open_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
