/* SPDX-License-Identifier: BSD-3-Clause */
/* Old or new, never torn: each way of writing a file is killed at every system call that
 * it makes, and gets an error from each. The required state then follows exactly from the
 * number of files renamed before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "build_tree.h"
#include "nth_syscall.h"
#include "scratch.h"
#include <cmocka.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>

enum { MISSING, OLD, EMPTY, NEW, DAMAGED, STATES };

static const char *const state_names[] = {"missing", "old", "empty", "new", "damaged"};

/* The report of a child. */
static struct {
    int rc, fd;
    kvtree_error err;
} * told;

static char path[128];
static kvtree *old_tree, *new_tree;
static nth_result result;

/* ---- ways of writing ---- */

static int plain_write(void *arg)
{
    told->rc = kvtree_file_write(AT_FDCWD, path, KVTREE_ANY_SIZE, new_tree, &told->err);
    return 0;
}

static int write_with_lock(void *arg)
{
    told->rc = kvtree_file_write_with_lock(AT_FDCWD, path, KVTREE_ANY_SIZE, new_tree,
                                           &told->err);
    return 0;
}

static int read_modify_write(void *arg)
{
    kvtree *tree = kvtree_new();
    int fd = -7;
    told->rc = kvtree_file_lock_open_read(AT_FDCWD, path, KVTREE_ANY_SIZE, &fd, tree,
                                          &told->err);
    if (!told->rc) {
        kvtree_unset_all(tree);
        kvtree_merge(tree, new_tree);
        told->rc = kvtree_file_write_close_unlock(AT_FDCWD, path, KVTREE_ANY_SIZE, &fd,
                                                  tree, &told->err);
        told->fd = fd;
    } else {
        told->fd = fd == -7 ? -1 : fd;
    }
    kvtree_delete(&tree);
    return 0;
}

/* A way of writing, with the expected state before it and after each rename. */
typedef struct way {
    const char *name;
    int (*run)(void *arg);
    int states[3];
    int can_only_link; /* on a file system that cannot rename without replacing */
} way;

static const way ways[] = {
    {"write over a file", plain_write, {OLD, NEW}, 0},
    {"write a first file", plain_write, {MISSING, NEW}, 0},
    {"write with lock", write_with_lock, {OLD, NEW}, 0},
    {"write a first file with lock", write_with_lock, {MISSING, NEW}, 0},
    {"the same by link", write_with_lock, {MISSING, NEW}, 1},
    {"read, modify, write", read_modify_write, {OLD, NEW}, 0},
    {"make, modify, write", read_modify_write, {MISSING, EMPTY, NEW}, 0},
    {"the same by link", read_modify_write, {MISSING, EMPTY, NEW}, 1},
};

enum { WAYS = sizeof ways / sizeof *ways };

/* ---- one trial ---- */

static int state_of_file(void)
{
    kvtree *tree = kvtree_new();
    int rc = kvtree_read_file(path, tree), state = DAMAGED;
    if (rc == -ENOENT) state = MISSING;
    if (rc == 0 && kvtree_size(tree) == 0) state = EMPTY;
    if (rc == 0 && same_tree(tree, old_tree)) state = OLD;
    if (rc == 0 && same_tree(tree, new_tree)) state = NEW;
    kvtree_delete(&tree);
    return state;
}

static int gives_name(const nth_call *call)
{
    return nth_is(call, "rename") || nth_is(call, "link");
}

/* Returns the state required after the calls before number n. */
static int expected_state(const way *w, unsigned n)
{
    int named = 0;
    for (unsigned i = 0; i + 1 < n && i < result.count; i++)
        named += gives_name(&result.calls[i]) && result.calls[i].answer == NTH_GO;
    return w->states[named];
}

static int last_state(const way *w)
{
    return w->states[2] != MISSING ? w->states[2] : w->states[1];
}

/* RENAME_NOREPLACE is the only flag used. */
static int without_flags(void *arg, unsigned n, const nth_call *call)
{
    int answer = nth_at(arg, n, call);
    return !answer && call->number == __NR_renameat2 && call->args[4] ? EINVAL : answer;
}

static void try(const way *w, nth_fault fault)
{
    files_in_folder(1);
    if (w->states[0] == OLD) assert_int_equal(kvtree_write_file(path, old_tree), 0);
    memset(told, 0, sizeof *told);
    told->fd = -1;
    int rc =
        nth_run(w->run, NULL, w->can_only_link ? without_flags : nth_at, &fault, &result);
    if (rc) {
        print_message("the kernel refuses seccomp notifications: %s\n", strerror(rc));
        skip();
    }
    assert_true(result.count <= NTH_CALLS);
}

static const nth_call *hit(const nth_fault *fault)
{
    return &result.calls[fault->at - 1];
}

#define WRONG(...) (print_error(__VA_ARGS__), ++wrong)

/* Checks the state after the trial. Returns the number of complaints. */
static int check_state(const way *w, const nth_fault *fault, int expected)
{
    int state = state_of_file(), wrong = 0;
    if (state != expected)
        WRONG("%s: %s at call %u (%s): the file is %s, not %s\n", w->name,
              fault->answer == NTH_KILL ? "killed" : strerror(fault->answer), fault->at,
              hit(fault)->name, state_names[state], state_names[expected]);
    return wrong;
}

/* Writes without any fault, in this process: leftovers must not obstruct it. */
static int check_next_write(const way *w, const nth_fault *fault)
{
    int wrong = 0;
    w->run(NULL);
    if (told->rc || told->fd != -1 || state_of_file() != NEW)
        WRONG("%s: after call %u (%s) the next one fails: %s\n", w->name, fault->at,
              hit(fault)->name, told->err.text);
    return wrong;
}

/* ---- killed ---- */

static int sweep_kills(const way *w, unsigned *points)
{
    int wrong = 0;
    nth_fault fault = {1, NTH_KILL};
    for (;; fault.at++, ++*points) {
        try(w, fault);
        if (result.count < fault.at) break;
        if (!nth_was_killed(&result)) WRONG("%s: survived call %u\n", w->name, fault.at);
        wrong += check_state(w, &fault, expected_state(w, fault.at));
        wrong += check_next_write(w, &fault);
    }
    if (state_of_file() != NEW) WRONG("%s: nothing was written\n", w->name);
    return wrong;
}

static void killed_at_any_call(void **state)
{
    int wrong = 0;
    for (int i = 0; i < WAYS; i++) {
        unsigned points = 0;
        wrong += sweep_kills(&ways[i], &points);
        print_message("%s: killed at each of %u system calls\n", ways[i].name, points);
        assert_true(points > 8);
    }
    assert_int_equal(wrong, 0);
}

/* ---- errors ---- */

/* Calls that are repeated when a signal interrupts them. */
static int is_repeated(const nth_call *call)
{
    return nth_is(call, "read") || nth_is(call, "write") || nth_is(call, "fsync") ||
           nth_is(call, "close") || nth_is(call, "open") || nth_is(call, "getrandom") ||
           (nth_is(call, "fcntl") && call->args[1] == F_OFD_SETLKW);
}

/* The text names the file and the reason; a failed memory call shows as ENOMEM. */
static int check_text(const way *w, const nth_fault *fault)
{
    int wrong = 0, code = told->rc;
    int memory = nth_is_memory(hit(fault)) && code == -ENOMEM;
    if ((code != -fault->answer && !memory) || !strstr(told->err.text, path) ||
        !strstr(told->err.text, strerror(-code)))
        WRONG("%s: %s at call %u (%s) gives %d, \"%s\"\n", w->name,
              strerror(fault->answer), fault->at, hit(fault)->name, code, told->err.text);
    return wrong;
}

static int check_error(const way *w, const nth_fault *fault)
{
    int wrong = 0, expected = told->rc ? expected_state(w, fault->at) : NEW;
    if (nth_returned(&result) != 0)
        return WRONG("%s: dead after %s at call %u (%s)\n", w->name,
                     strerror(fault->answer), fault->at, hit(fault)->name);
    if (told->rc) wrong += check_text(w, fault);
    if (told->rc && fault->answer == EINTR && is_repeated(hit(fault)))
        WRONG("%s: %s was not repeated\n", w->name, hit(fault)->name);
    /* Nothing fails after the new file has its name, except the directory's fsync. */
    if (told->rc && expected == last_state(w) && !nth_is(hit(fault), "fsync"))
        WRONG("%s: %s fails with the new file in place\n", w->name, hit(fault)->name);
    wrong += check_state(w, fault, expected);
    if (told->fd != -1) WRONG("%s: descriptor %d is left\n", w->name, told->fd);
    /* Only a temporary file that could not be removed may remain. */
    int files = files_in_folder(0) - (expected != MISSING);
    if (files && !(files == 1 && nth_is(hit(fault), "unlink")))
        WRONG("%s: %d temporary files left by %s at call %u (%s)\n", w->name, files,
              strerror(fault->answer), fault->at, hit(fault)->name);
    return wrong;
}

static int sweep_errors(const way *w, int error, unsigned *points)
{
    int wrong = 0;
    nth_fault fault = {1, error};
    for (;; fault.at++) {
        try(w, fault);
        if (result.count < fault.at) break;
        if (hit(&fault)->answer == NTH_GO) continue; /* of a sanitizer's memory */
        wrong += check_error(w, &fault);
        wrong += check_next_write(w, &fault);
        ++*points;
    }
    return wrong;
}

static void any_call_fails(void **state)
{
    static const int errors[] = {EIO, EINTR, ENOSPC, EDQUOT};
    int wrong = 0;
    for (int i = 0; i < WAYS; i++) {
        unsigned points = 0;
        /* Two errors suffice where only the renaming differs from another way. */
        for (int e = 0; e < (ways[i].can_only_link ? 2 : 4); e++)
            wrong += sweep_errors(&ways[i], errors[e], &points);
        print_message("%s: %u failing system calls\n", ways[i].name, points);
        assert_true(points > 2 * 8);
    }
    assert_int_equal(wrong, 0);
}

/* ---- order ---- */

static unsigned last_before(const char *name, unsigned n)
{
    unsigned found = 0;
    for (unsigned at = nth_next(&result, name, 0); at && at < n;
         at = nth_next(&result, name, at))
        found = at;
    return found;
}

/* The fsync of that descriptor after call number n. */
static unsigned fsync_of(unsigned long long fd, unsigned n)
{
    unsigned at = nth_next(&result, "fsync", n);
    while (at && result.calls[at - 1].args[0] != fd)
        at = nth_next(&result, "fsync", at);
    return at;
}

/* Write, fsync of the same file, name, fsync of the directory. */
static void check_order(unsigned naming)
{
    unsigned written = last_before("write", naming);
    assert_true(written > 0);
    unsigned synced = fsync_of(result.calls[written - 1].args[0], written);
    assert_true(synced > written && synced < naming);
    assert_true(fsync_of(result.calls[naming - 1].args[0], naming) > naming);
}

static void synced_before_and_after(void **state)
{
    for (int i = 0; i < WAYS; i++) {
        int named = 0;
        try(&ways[i], (nth_fault){0, NTH_GO});
        assert_int_equal(nth_returned(&result), 0);
        for (unsigned n = 1; n <= result.count; n++) {
            const nth_call *call = &result.calls[n - 1];
            if (!gives_name(call) || call->answer != NTH_GO) continue;
            check_order(n);
            named++;
        }
        assert_int_equal(ways[i].states[named], last_state(&ways[i]));
        assert_int_equal(files_in_folder(0), 1);
    }
}

/* A tree so large that it takes memory from the system each time. */
static kvtree *long_tree(void)
{
    static char key[300000];
    kvtree *tree = wide_tree(20);
    memset(key, 'x', sizeof key - 1);
    kvtree_set(tree, key, NULL);
    return tree;
}

static int begin(void **state)
{
    mallopt(M_MMAP_THRESHOLD, 64 * 1024);
    old_tree = sample_tree();
    new_tree = long_tree();
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    if (told == MAP_FAILED || make_folder(state) != 0) return -1;
    snprintf(path, sizeof path, "%s/state", folder);
    return 0;
}

static int end(void **state)
{
    kvtree_delete(&old_tree);
    kvtree_delete(&new_tree);
    return remove_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synced_before_and_after),
        cmocka_unit_test(killed_at_any_call),
        cmocka_unit_test(any_call_fails),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
