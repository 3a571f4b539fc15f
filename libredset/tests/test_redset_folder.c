/* SPDX-License-Identifier: BSD-3-Clause */
/* A rebuild without MPI that is killed at any system call, or in which any system call
 * fails: no file ever has its name and wrong bytes, survivors are unchanged, and the next
 * rebuild restores everything. */
#include "alone.h"
#include "nth_syscall.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { MEMBERS = 4, FIRST = 1, SECOND = 3, OF_MEMBER = ALONE_FILES + 1 };

static alone set;
static nth_result result;
static struct told {
    int rc;
    redset_error err;
} * told;

/* Removes all files of one member, and changes a byte of another member. */
static void damage(void)
{
    for (int i = 0; i < OF_MEMBER; i++)
        alone_unlink(&set, FIRST * OF_MEMBER + i);
    scratch_flip(set.folder, set.names[SECOND * OF_MEMBER], 7);
}

static int is_lost(int i)
{
    return i / OF_MEMBER == FIRST || i / OF_MEMBER == SECOND;
}

static void remove_temporary_files(void)
{
    DIR *dir = opendir(set.folder);
    for (struct dirent *e; (e = readdir(dir));)
        if (strstr(e->d_name, ".tmp")) unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
}

static int temporary_files(void)
{
    int count = 0;
    DIR *dir = opendir(set.folder);
    for (struct dirent *e; (e = readdir(dir));)
        count += strstr(e->d_name, ".tmp") != NULL;
    closedir(dir);
    return count;
}

static int rebuild(void *arg)
{
    redset_found *found = NULL;
    told->rc =
        redset_rebuild_folder(AT_FDCWD, set.folder, NULL, REDSET_ALL, &found, &told->err);
    redset_found_free(found);
    return 0;
}

static void try(nth_fault fault)
{
    remove_temporary_files();
    for (int i = 0; i < set.count; i++)
        alone_put(&set, i);
    damage();
    memset(told, 0, sizeof *told);
    int rc = nth_run(rebuild, NULL, nth_at, &fault, &result);
    if (rc) {
        print_message("the kernel refuses seccomp notifications: %s\n", strerror(rc));
        skip();
    }
    /* a sanitizer may free memory in hundreds of calls, at the end */
    assert_true(NTH_SANITIZED || result.count <= NTH_CALLS);
}

#define WRONG(...) (print_error(__VA_ARGS__), ++wrong)

/* Whether the lost file number i is missing, damaged as before, or complete. */
static int is_old_or_new(int i)
{
    size_t size;
    unsigned char *bytes = scratch_read(set.folder, set.names[i], &size);
    if (bytes && i == SECOND * OF_MEMBER) bytes[7] ^= 4;
    int old = !bytes || (size == set.sizes[i] && !memcmp(bytes, set.bytes[i], size));
    free(bytes);
    return old || alone_same(&set, i);
}

static int check_files(const nth_fault *fault)
{
    int wrong = 0;
    for (int i = 0; i < set.count; i++)
        if (is_lost(i) ? !is_old_or_new(i) : !alone_same(&set, i))
            WRONG("%s is neither old nor new after call %u (%s)\n", set.names[i],
                  fault->at, result.calls[fault->at - 1].name);
    return wrong;
}

/* Checks that the next rebuild succeeds, whatever is left. */
static int check_next(const nth_fault *fault)
{
    int wrong = 0;
    rebuild(NULL);
    if (told->rc) WRONG("after call %u: %s\n", fault->at, told->err.text);
    for (int i = 0; i < set.count; i++)
        if (!alone_same(&set, i))
            WRONG("after call %u %s does not come back\n", fault->at, set.names[i]);
    return wrong;
}

static void killed_at_any_call(void **state)
{
    int wrong = 0;
    nth_fault fault = {1, NTH_KILL};
    for (; fault.at <= NTH_CALLS; fault.at++) {
        try(fault);
        if (result.count < fault.at) break;
        assert_true(nth_was_killed(&result));
        wrong += check_files(&fault) + check_next(&fault);
    }
    print_message("killed at each of %u system calls\n", fault.at - 1);
    assert_int_equal(nth_returned(&result), 0);
    assert_int_equal(told->rc, 0);
    assert_true(fault.at > 100);
    assert_int_equal(wrong, 0);
}

/* Checks the report of a rebuild in which one call failed. A file that cannot be read
 * counts as lost, and more than two lost members are too many. */
static int check_told(const nth_fault *fault)
{
    int wrong = 0;
    const nth_call *call = &result.calls[fault->at - 1];
    if (nth_returned(&result) != 0)
        return WRONG("dead after call %u (%s)\n", fault->at, call->name);
    if (told->rc == 0)
        for (int i = 0; i < set.count; i++)
            if (!alone_same(&set, i))
                WRONG("success without %s after call %u (%s)\n", set.names[i], fault->at,
                      call->name);
    if ((told->rc == 0) != (told->err.text[0] == 0))
        WRONG("%d with text '%s'\n", told->rc, told->err.text);
    if (told->rc && !nth_is_memory(call) &&
        !strstr(told->err.text, strerror(fault->answer)))
        WRONG("%s at call %u (%s) is told as: %s\n", strerror(fault->answer), fault->at,
              call->name, told->err.text);
    if (temporary_files() > nth_is(call, "unlink"))
        WRONG("%d temporary files left by call %u (%s)\n", temporary_files(), fault->at,
              call->name);
    return wrong;
}

static void any_call_fails(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EMFILE, EINTR};
    int wrong = 0;
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        nth_fault fault = {1, errors[e]};
        unsigned points = 0, failed = 0;
        for (; fault.at <= NTH_CALLS; fault.at++) {
            try(fault);
            if (result.count < fault.at) break;
            if (result.calls[fault.at - 1].answer == NTH_GO) continue;
            failed += told->rc != 0;
            wrong += check_told(&fault) + check_files(&fault) + check_next(&fault);
            points++;
        }
        print_message("%s at each of %u system calls: %u rebuilds failed\n",
                      strerror(errors[e]), points, failed);
    }
    assert_int_equal(wrong, 0);
}

/* ---- names and arguments ---- */

static void what_cannot_be(void **state)
{
    char long_name[5000];
    redset_error err = {""};
    redset_found *found = NULL;
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    static const struct {
        const char *folder, *redundancy;
        int id, rc;
    } calls[] = {{"/no/such/folder", NULL, REDSET_ALL, -ENOENT},
                 {"/etc/passwd", NULL, REDSET_ALL, -ENOTDIR},
                 {set.folder, "no", REDSET_ALL, -ENOENT},
                 {set.folder, "..", REDSET_ALL, -EINVAL},
                 {set.folder, "/tmp", REDSET_ALL, -EINVAL},
                 {set.folder, "1", REDSET_ALL, -ENOENT},
                 {set.folder, NULL, 5, -ENOENT}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        err.text[0] = 0;
        assert_int_equal(redset_rebuild_folder(AT_FDCWD, calls[i].folder,
                                               calls[i].redundancy, calls[i].id, &found,
                                               &err),
                         calls[i].rc);
        assert_true(err.text[0]);
        assert_int_equal(redset_verify_folder(AT_FDCWD, calls[i].folder,
                                              calls[i].redundancy, calls[i].id, &found,
                                              NULL),
                         calls[i].rc);
        assert_null(found);
    }
    assert_int_equal(
        redset_verify_folder(AT_FDCWD, long_name, NULL, REDSET_ALL, &found, &err),
        -ENAMETOOLONG);
    assert_null(redset_found_free(NULL));
}

/* ---- lists of other users ---- */

/* Other users who may change a list of files cannot make a rebuild write a file to one of
 * the user's own directories. */
static void names_of_others(void **state)
{
    char own[1200], list[1200];
    for (int i = 0; i < set.count; i++)
        alone_put(&set, i);
    damage();
    scratch_path(list, set.folder, "");
    scratch_path(own, set.folder, "1");
    assert_int_equal(chmod(list, 0777) | chmod(own, 0755), 0);
    rebuild(NULL);
    assert_int_equal(told->rc, -EPERM);
    assert_non_null(
        strstr(told->err.text, "1/a is in a directory that others may not change"));
    assert_true(!alone_same(&set, FIRST * OF_MEMBER));
    assert_int_equal(chmod(own, 0777), 0);
    scratch_path(own, set.folder, "3");
    assert_int_equal(chmod(own, 0777), 0);
    rebuild(NULL);
    assert_int_equal(told->rc, 0);
    assert_true(alone_same(&set, FIRST * OF_MEMBER));
    assert_int_equal(chmod(list, 0700), 0);
}

/* ---- reports ---- */

static void tells_what_is_lost(void **state)
{
    redset_error err = {"as before"};
    redset_found *found = NULL;
    for (int i = 0; i < set.count; i++)
        alone_put(&set, i);
    assert_int_equal(redset_verify_folder(AT_FDCWD, set.folder, NULL, 0, &found, &err),
                     0);
    assert_string_equal(err.text, "as before");
    assert_int_equal(found->sets[0].lost, 0);
    assert_null(found->sets[0].text);
    found = redset_found_free(found);
    damage();
    assert_int_equal(
        redset_verify_folder(AT_FDCWD, set.folder, NULL, REDSET_ALL, &found, &err),
        REDSET_RECOVERABLE);
    const redset_found_set *s = &found->sets[0];
    assert_int_equal(found->ranks, MEMBERS);
    assert_int_equal(found->count, 1);
    assert_int_equal(s->lost, 2);
    assert_int_equal(s->verdict, REDSET_RECOVERABLE);
    assert_string_equal(s->text, err.text);
    for (int m = 0; m < MEMBERS; m++) {
        const redset_found_member *member = &s->members[m];
        assert_int_equal(member->rank, m);
        assert_int_equal(member->lost, m == FIRST || m == SECOND);
        assert_int_equal(member->manifest->count, ALONE_FILES);
        assert_string_equal(member->manifest->files[0].name, set.names[m * OF_MEMBER]);
        assert_int_equal(member->manifest->files[0].size, alone_size(m));
        assert_int_equal(member->manifest->file_size,
                         member->lost ? 0 : set.sizes[m * OF_MEMBER + ALONE_FILES]);
    }
    assert_non_null(strstr(s->members[SECOND].reason, "3/a has checksum"));
    redset_found_free(found);
}

static int begin(void **state)
{
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    alone_begin(&set, REDSET_RS, MEMBERS, 2);
    return told == MAP_FAILED;
}

static int end(void **state)
{
    alone_end(&set);
    munmap(told, sizeof *told);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_any_call), cmocka_unit_test(any_call_fails),
        cmocka_unit_test(what_cannot_be), cmocka_unit_test(names_of_others),
        cmocka_unit_test(tells_what_is_lost)};
    return cmocka_run_group_tests(tests, begin, end);
}
