/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of many ranks, written by one process that is killed at each of its system
 * calls, or gets an error from each. Afterwards there is the earlier set, none, or the
 * new set, as determined by the calls before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "build_tree.h"
#include "nth_syscall.h"
#include "scratch.h"
#include <cmocka.h>
#include <fcntl.h>
#include <kvtree/kvtree_gather.h>
#include <sys/mman.h>

/* In files of one rank each: eight files, two that point to them, and the root. */
enum { RANKS = 8, FILES = 11, NONE = 0, OLD = 1, NEW = 2, DAMAGED = -1 };

/* The report of a child. */
static struct {
    int rc;
    kvtree_error err;
} * told;

static kvtree_gather_place at = {.name = "set.scr", .top = "TOP", .limit = 1};
static nth_result result;

static kvtree *tree_of(int rank, int version)
{
    kvtree *tree = gather_tree(rank, 200);
    kvtree_util_set_int(tree, "VERSION", version);
    return tree;
}

static int give(void *version, int rank, kvtree *tree, kvtree_error *err)
{
    kvtree *mine = tree_of(rank, *(int *)version);
    int rc = kvtree_merge(tree, mine);
    if (rc && err) snprintf(err->text, sizeof err->text, "set.: %s", strerror(-rc));
    kvtree_delete(&mine);
    return rc;
}

static int write_new(void *arg)
{
    int version = NEW;
    told->rc = kvtree_gather_write_all(&at, RANKS, give, &version, &told->err);
    return 0;
}

/* All trees have the version of the first. */
static int take(void *version, int rank, kvtree *tree, kvtree_error *err)
{
    int mine = DAMAGED, *all = version;
    kvtree_util_get_int(tree, "VERSION", &mine);
    if (*all == NONE) *all = mine;
    kvtree *expected = tree_of(rank, *all);
    int good = same_tree(tree, expected);
    kvtree_delete(&expected);
    return good ? 0 : -EILSEQ;
}

static int version_there(void)
{
    int version = NONE, ranks = 0;
    int rc = kvtree_gather_read_all(&at, &ranks, take, &version, NULL);
    if (rc == -ENOENT) return NONE;
    return rc || ranks != RANKS ? DAMAGED : version;
}

static void try(int before, nth_fault fault)
{
    files_in_folder(1);
    if (before)
        assert_int_equal(kvtree_gather_write_all(&at, RANKS, give, &before, NULL), 0);
    memset(told, 0, sizeof *told);
    int rc = nth_run(write_new, NULL, nth_at, &fault, &result);
    if (rc) {
        print_message("the kernel refuses seccomp notifications: %s\n", strerror(rc));
        skip();
    }
    assert_true(result.count <= NTH_CALLS);
}

static int happened(const char *name, unsigned before)
{
    int count = 0;
    for (unsigned i = 0; i + 1 < before && i < result.count; i++)
        count += nth_is(&result.calls[i], name) && result.calls[i].answer == NTH_GO;
    return count;
}

/* Until the first rename only a root can be removed; after that there is none. */
static int expected_version(int before, unsigned n)
{
    if (happened("rename", n) == FILES) return NEW;
    return happened("unlink", n) ? NONE : before;
}

static int check_version(int before, const nth_fault *fault, unsigned n)
{
    int version = version_there(), expected = expected_version(before, n);
    if (version == expected) return 0;
    print_error("%d at call %u (%s): version %d is there, not %d\n", fault->answer,
                fault->at, result.calls[fault->at - 1].name, version, expected);
    return 1;
}

static int sweep_kills(int before)
{
    int wrong = 0;
    nth_fault fault = {1, NTH_KILL};
    for (;; fault.at++) {
        try(before, fault);
        if (result.count < fault.at) break;
        wrong += !nth_was_killed(&result) + check_version(before, &fault, fault.at);
    }
    assert_int_equal(version_there(), NEW);
    assert_int_equal(files_in_folder(0), FILES);
    print_message("killed at each of %u system calls\n", fault.at - 1);
    assert_true(fault.at > 8 * FILES);
    return wrong;
}

static void killed_at_any_call(void **state)
{
    assert_int_equal(sweep_kills(OLD) + sweep_kills(NONE), 0);
}

/* The error is that of the call, and names the file. */
static int check_error(int before, const nth_fault *fault)
{
    const nth_call *call = &result.calls[fault->at - 1];
    int wrong = check_version(before, fault, told->rc ? result.count + 1 : UINT32_MAX);
    if (nth_returned(&result) != 0) wrong++;
    if (!told->rc) return wrong + (version_there() != NEW);
    int memory = nth_is_memory(call) && told->rc == -ENOMEM;
    if ((told->rc == -fault->answer || memory) && strstr(told->err.text, "set.") &&
        strstr(told->err.text, strerror(-told->rc)))
        return wrong;
    print_error("%s at call %u (%s) gives %d, \"%s\"\n", strerror(fault->answer),
                fault->at, call->name, told->rc, told->err.text);
    return wrong + 1;
}

static void any_call_fails(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EINTR};
    int wrong = 0, points = 0, errors_told = 0;
    for (int i = 0; i < 3; i++) {
        nth_fault fault = {1, errors[i]};
        for (;; fault.at++) {
            try(OLD, fault);
            if (result.count < fault.at) break;
            if (result.calls[fault.at - 1].answer == NTH_GO) continue;
            wrong += check_error(OLD, &fault);
            errors_told += told->rc != 0;
            points++;
        }
    }
    print_message("%d failing system calls, %d of them told\n", points, errors_told);
    assert_int_equal(wrong, 0);
    assert_true(errors_told > 2 * 6 * FILES);
}

/* The directory is synced after the root was removed, before any file is made. */
static void root_goes_first(void **state)
{
    try(OLD, (nth_fault){0, NTH_GO});
    unsigned removed = nth_next(&result, "unlink", 0);
    unsigned synced = nth_next(&result, "fsync", removed);
    assert_true(removed > 0 && synced > removed);
    assert_int_equal(result.calls[synced - 1].args[0], result.calls[removed - 1].args[0]);
    assert_true(nth_next(&result, "write", 0) > synced);
    assert_true(nth_next(&result, "rename", 0) > synced);
    assert_int_equal(happened("rename", UINT32_MAX), FILES);
    assert_int_equal(happened("unlink", UINT32_MAX), 1);
}

static int begin(void **state)
{
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    if (told == MAP_FAILED || make_folder(state) != 0) return -1;
    at.dir = open(folder, O_RDONLY | O_DIRECTORY);
    return at.dir < 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(root_goes_first),
        cmocka_unit_test(killed_at_any_call),
        cmocka_unit_test(any_call_fails),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
