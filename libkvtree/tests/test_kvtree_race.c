/* SPDX-License-Identifier: BSD-3-Clause */
/* Locked files, call by call: one process stops before each of its system calls while
 * another one reads, replaces, removes or increments the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "nth_syscall.h"
#include "scratch.h"
#include <cmocka.h>
#include <sys/mman.h>

#include "counter.h"

enum { OTHER = 100 }; /* a number written without the lock */

static char path[128];
static nth_result result;

/* The report of the watched child. */
static struct {
    int rc, fd;
    kvtree_error err;
} * told;

static void run(int (*function)(void *), nth_decide *decide, void *arg)
{
    memset(told, 0, sizeof *told);
    int rc = nth_run(function, NULL, decide, arg, &result);
    if (!rc) return;
    print_message("the kernel refuses seccomp notifications: %s\n", strerror(rc));
    skip();
}

static int count_up(void *arg)
{
    told->rc = increment(path);
    return 0;
}

static int is_lock(const nth_call *call)
{
    return nth_is(call, "fcntl") && call->args[1] == F_OFD_SETLKW;
}

static unsigned naming_call(void)
{
    unsigned last = 0;
    for (unsigned n = nth_next(&result, "rename", 0); n;
         n = nth_next(&result, "rename", n))
        last = n;
    return last;
}

/* ---- between two calls ---- */

/* An event at call number `at`, which involves another process or none. */
typedef struct event {
    unsigned at;
    void (*happens)(struct event *self);
    pid_t child;
    int seen, wrong;
} event;

static int at_event(void *arg, unsigned n, const nth_call *call)
{
    event *e = arg;
    if (n == e->at) e->happens(e);
    return NTH_GO;
}

static void somebody_replaces(event *e)
{
    e->wrong += put_number(path, OTHER) != 0;
}

static void somebody_removes(event *e)
{
    e->wrong += unlink(path) != 0 && errno != ENOENT;
}

/* Another process increments, as far as the lock lets it. */
static void somebody_counts_up(event *e)
{
    e->child = start_incrementing(path, 1);
    until_waiting(e->child, inode_of(path));
}

/* Runs count_up with the event at every call, from 1 to the last one; check examines the
 * result. start: the number in the file, 0 for no file. */
static void sweep(const char *name, int start, void (*happens)(event *),
                  int (*check)(const event *e, int start))
{
    int wrong = 0;
    event e = {.at = 1, .happens = happens};
    for (;; e.at++) {
        files_in_folder(1);
        if (start) assert_int_equal(put_number(path, start), 0);
        run(count_up, at_event, &e);
        if (e.child) join(e.child);
        e.child = 0;
        if (result.count < e.at) break;
        if (!check(&e, start)) {
            print_error("%s, from %d: wrong at call %u (%s): %d, then %d in the file\n",
                        name, start, e.at, result.calls[e.at - 1].name, told->rc,
                        number_in(path));
            wrong++;
        }
        wrong += files_in_folder(0) - (number_in(path) != -ENOENT);
    }
    print_message("%s, from %d: at each of %u system calls\n", name, start, e.at - 1);
    assert_int_equal(wrong + e.wrong, 0);
    assert_true(e.at > 20);
}

static int both_count(const event *e, int start)
{
    return told->rc == 0 && number_in(path) == start + 2;
}

static void two_increments(void **state)
{
    sweep("counted up by two", 3, somebody_counts_up, both_count);
    sweep("counted up by two", 0, somebody_counts_up, both_count);
}

/* Returns the last comparison of the name before a temporary file is created. In between,
 * the directory is examined, which determines the mode of the file. */
static unsigned last_look(unsigned naming)
{
    unsigned made = 0, look = 0, other = 0;
    for (unsigned n = nth_next(&result, "open", 0); n && n < naming;
         n = nth_next(&result, "open", n))
        made = n;
    for (unsigned n = nth_next(&result, "stat", 0); n && n < made;
         n = nth_next(&result, "stat", n)) {
        look = other;
        other = n;
    }
    return look;
}

/* Before the last comparison, the replacement is read or noticed; after the rename it
 * remains. Only in between it is lost, which a writer without the lock must accept. */
static int replacing_is_noticed(const event *e, int start)
{
    unsigned naming = naming_call(), look = last_look(naming);
    int number = number_in(path);
    if (told->rc) return told->rc == -ESTALE && number == OTHER;
    if (e->at > look && e->at <= naming) return number == start + 1;
    return number == OTHER + (e->at <= naming);
}

static void replaced_without_the_lock(void **state)
{
    sweep("replaced without lock", 3, somebody_replaces, replacing_is_noticed);
    sweep("replaced without lock", 0, somebody_replaces, replacing_is_noticed);
}

static int removing_is_noticed(const event *e, int start)
{
    unsigned naming = naming_call();
    int number = number_in(path);
    if (told->rc) return told->rc == -ESTALE && number == -ENOENT;
    if (e->at > naming) return number == -ENOENT;
    return number == start + 1 || number == 1;
}

static void removed_without_the_lock(void **state)
{
    sweep("removed without lock", 3, somebody_removes, removing_is_noticed);
    sweep("removed without lock", 0, somebody_removes, removing_is_noticed);
}

/* ---- seen from outside ---- */

/* The numbers that a reader without the lock finds before each call, in order. */
static int read_always(void *arg, unsigned n, const nth_call *call)
{
    event *e = arg;
    int number = number_in(path);
    if (number == -ENOENT && e->seen == 0) return NTH_GO;
    e->wrong += number < e->seen || number > e->seen + 1;
    e->seen = number;
    return NTH_GO;
}

static void readers_without_the_lock(void **state)
{
    event e = {0};
    for (int number = 1; number <= 3; number++) {
        run(count_up, read_always, &e);
        assert_int_equal(told->rc, 0);
        assert_int_equal(number_in(path), number);
    }
    assert_int_equal(e.wrong, 0);
}

/* ---- waiting ---- */

static void who_waited_gets_the_new_file(void **state)
{
    kvtree *tree = tree_of(10);
    int fd = lock(path);
    ino_t old = inode_of(path);
    assert_true(fd >= 0);
    pid_t waiting = start_incrementing(path, 1);
    until_waiting(waiting, old);
    assert_int_equal(kvtree_write_close_unlock(path, &fd, tree), 0);
    assert_int_not_equal(inode_of(path), old);
    join(waiting);
    assert_int_equal(number_in(path), 11);
    kvtree_delete(&tree);
}

/* Killed after the rename: one process waits for the lock of the old file, another one
 * opens the new file. */
static int kill_after_naming(void *arg, unsigned n, const nth_call *call)
{
    event *e = arg;
    if (n == e->at) somebody_counts_up(e);
    return n == e->at + 1 ? NTH_KILL : NTH_GO;
}

static void killed_before_it_unlocks(void **state)
{
    event e = {0};
    assert_int_equal(put_number(path, 3), 0);
    run(count_up, at_event, &e);
    e.at = naming_call();
    run(count_up, kill_after_naming, &e);
    assert_true(nth_was_killed(&result));
    join(e.child);
    assert_int_equal(number_in(path), 6);
    assert_int_equal(increment(path), 0);
    assert_int_equal(number_in(path), 7);
}

/* ---- no longer the locked file ---- */

static void check_stale(int *fd, int number)
{
    kvtree_error err = {""};
    kvtree *tree = tree_of(1);
    assert_int_equal(
        kvtree_file_write_close_unlock(AT_FDCWD, path, KVTREE_ANY_SIZE, fd, tree, &err),
        -ESTALE);
    assert_non_null(strstr(err.text, path));
    assert_non_null(
        strstr(err.text, "nothing written: the file was replaced or removed"));
    assert_int_equal(*fd, -1);
    assert_int_equal(number_in(path), number);
    assert_int_equal(files_in_folder(0), number != -ENOENT);
    kvtree_delete(&tree);
}

static void a_stale_lock_writes_nothing(void **state)
{
    int fd = lock(path);
    assert_int_equal(put_number(path, OTHER), 0);
    check_stale(&fd, OTHER);
    fd = lock(path);
    assert_int_equal(unlink(path), 0);
    check_stale(&fd, -ENOENT);
    fd = lock(path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("nowhere", path), 0);
    check_stale(&fd, -ELOOP);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(increment(path), 0);
    assert_int_equal(number_in(path), 1);
}

/* ---- a file system without locks ---- */

static int without_locks(void *arg, unsigned n, const nth_call *call)
{
    return is_lock(call) ? *(int *)arg : NTH_GO;
}

static int read_without_locks(void *arg)
{
    kvtree *tree = kvtree_new();
    told->rc =
        kvtree_file_read_with_lock(AT_FDCWD, path, KVTREE_ANY_SIZE, tree, &told->err);
    told->fd = kvtree_size(tree) ? 0 : -7;
    kvtree_delete(&tree);
    return 0;
}

static int write_without_locks(void *arg)
{
    told->fd = -7;
    told->rc =
        kvtree_file_write_with_lock(AT_FDCWD, path, KVTREE_ANY_SIZE, NULL, &told->err);
    return 0;
}

static int lock_without_locks(void *arg)
{
    kvtree *tree = kvtree_new();
    told->fd = -7;
    told->rc = kvtree_file_lock_open_read(AT_FDCWD, path, KVTREE_ANY_SIZE, &told->fd,
                                          tree, &told->err);
    kvtree_delete(&tree);
    return 0;
}

static void file_systems_without_locks(void **state)
{
    static int errors[] = {ENOLCK, ENOTSUP, ENOSYS, EINVAL};
    static int (*const functions[])(void *) = {read_without_locks, write_without_locks,
                                               lock_without_locks};
    assert_int_equal(put_number(path, 3), 0);
    for (int i = 0; i < 12; i++) {
        int error = errors[i / 3];
        run(functions[i % 3], without_locks, &error);
        assert_int_equal(told->rc, -error);
        assert_non_null(strstr(told->err.text, path));
        assert_non_null(strstr(told->err.text,
                               "the file system has no locks (mount it with "
                               "locks, or put the file elsewhere)"));
        assert_non_null(strstr(told->err.text, strerror(error)));
        assert_int_equal(told->fd, -7);
        assert_int_equal(number_in(path), 3);
        assert_int_equal(files_in_folder(0), 1);
    }
}

static int make_path(void **state)
{
    if (make_folder(state) != 0) return -1;
    snprintf(path, sizeof path, "%s/number", folder);
    return 0;
}

static int share_memory(void **state)
{
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    return told == MAP_FAILED ? -1 : 0;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_path, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(two_increments),
        TEST(replaced_without_the_lock),
        TEST(removed_without_the_lock),
        TEST(readers_without_the_lock),
        TEST(who_waited_gets_the_new_file),
        TEST(killed_before_it_unlocks),
        TEST(a_stale_lock_writes_nothing),
        TEST(file_systems_without_locks),
    };
    return cmocka_run_group_tests(tests, share_memory, NULL);
}
