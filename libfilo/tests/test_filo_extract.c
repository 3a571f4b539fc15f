/* SPDX-License-Identifier: BSD-3-Clause */
/* filo_extract: the file that appears, the files that stay unchanged, and the state after
 * a kill or an error at each system call. More kinds of damage, and whole datasets:
 * scr_extract.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "nth_syscall.h"
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <filo/filo.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

enum { SIZE = 150000, FIRST = 100000 };

static char folder[64];
static filo_error err;
static unsigned char bytes[SIZE];
static int dir = -1;

/* The file lies in two containers: after ten bytes of one, and at the beginning of the
 * other. */
static char name[] = "file", one[] = "one", two[] = "two";
static filo_segment segments[] = {{one, 10, FIRST}, {two, 0, SIZE - FIRST}};
static const filo_file packed = {.name = name,
                                 .size = SIZE,
                                 .has_crc = 1,
                                 .packed = 1,
                                 .mode = 0604,
                                 .segments = 2,
                                 .segment = segments};

static filo_file sample(void)
{
    filo_file file = packed;
    file.crc = (uint32_t)crc32(0, bytes, SIZE);
    return file;
}

/* ---- files ---- */

static void put(const char *file, const void *data, size_t size, size_t before)
{
    int fd = openat(dir, file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && pwrite(fd, data, size, (off_t)before) == (ssize_t)size);
    assert_int_equal(close(fd), 0);
}

/* 1: the file exists with all its bytes; -1: it has other bytes. */
static int there(const char *file)
{
    static unsigned char found[SIZE + 1];
    int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW);
    if (fd < 0) return 0;
    ssize_t n = read(fd, found, sizeof found);
    close(fd);
    return n == SIZE && memcmp(found, bytes, SIZE) == 0 ? 1 : -1;
}

static int is_temporary(const char *file)
{
    size_t n = strlen(file);
    return n > 4 && strcmp(file + n - 4, ".tmp") == 0;
}

static int remove_temporary(const char *path, const struct stat *st, int type,
                            struct FTW *walk)
{
    return is_temporary(path) ? unlink(path) : 0;
}

static int begin(void **state)
{
    strcpy(folder, "/dev/shm/scr-test-XXXXXX");
    if (!mkdtemp(folder) && !mkdtemp(strcpy(folder, "/tmp/scr-test-XXXXXX"))) return -1;
    dir = open(folder, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)(i * 31 + i / 251);
    put(one, bytes, FIRST, 10);
    put(two, bytes + FIRST, SIZE - FIRST, 0);
    err.text[0] = 0;
    return 0;
}

static int end(void **state)
{
    char command[96];
    close(dir);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* ---- results ---- */

static void test_good(void **state)
{
    struct stat st;
    const filo_file file = sample();
    const filo_target to = {.dir = dir, .name = "a/b/c"};
    assert_int_equal(fchmodat(dir, one, 0644, 0) | fchmodat(dir, two, 0644, 0), 0);
    assert_int_equal(filo_extract(dir, &file, NULL, &err), 0);
    assert_int_equal(filo_extract(dir, &file, &to, &err), 0);
    assert_int_equal(there("a/b/c"), 1);
    assert_true(fstatat(dir, "a/b/c", &st, 0) == 0 && (st.st_mode & 07777) == 0604);
    assert_int_equal(filo_extract(dir, &file, &to, &err), FILO_THERE);
    assert_string_equal(err.text, "");
    /* the container itself is a file that is not packed */
    char lies[] = "a/b/c";
    filo_file plain = {.name = lies, .size = SIZE, .crc = file.crc, .has_crc = 1};
    const filo_target copy = {.dir = dir, .name = "copy"};
    assert_int_equal(filo_extract(dir, &plain, NULL, &err), 0);
    assert_int_equal(filo_extract(dir, &plain, &copy, &err), 0);
    assert_int_equal(there("copy"), 1);
    assert_true(fstatat(dir, "copy", &st, 0) == 0 && (st.st_mode & 07777) == 0604);
    plain.size--;
    assert_int_equal(filo_extract(dir, &plain, NULL, &err), FILO_DAMAGED);
    assert_string_equal(err.text, "a/b/c has 150000 bytes, not 149999");
}

static void note_bytes(void *arg, uint64_t done, uint64_t total)
{
    uint64_t *before = arg;
    assert_true(done > *before && done <= *before + 65536 && total == SIZE);
    *before = done;
}

/* Each piece is reported, whether the file is copied or only read. */
static void test_reports(void **state)
{
    filo_file file = sample();
    const filo_target to = {.dir = dir, .name = "copy"};
    for (int copies = 0; copies < 2; copies++) {
        uint64_t done = 0;
        assert_int_equal(
            filo_extract_with(dir, &file, copies ? &to : NULL, note_bytes, &done, &err),
            0);
        assert_int_equal(done, SIZE);
    }
}

/* The map may belong to another user. */
static void test_private_container(void **state)
{
    static const struct {
        mode_t first, second, map, wanted;
        gid_t group; /* group of the first container; only root can change it */
    } cases[] = {{0600, 0644, 0755, 0700, -1},   {0644, 0600, 0666, 0600, -1},
                 {0640, 0644, 0755, 0750, -1},   {0644, 0644, 0755, 0755, -1},
                 {0604, 0604, 0664, 0604, -1},   {0640, 0644, 0644, 0600, 12345},
                 {0644, 0644, 0644, 0644, 12345}};
    struct stat st;
    filo_file file = sample();
    const filo_target to = {.dir = dir, .name = "copy"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].group != (gid_t)-1 && geteuid() != 0) break;
        assert_int_equal(fchownat(dir, one, (uid_t)-1, cases[i].group, 0), 0);
        file.mode = cases[i].map;
        assert_int_equal(fchmodat(dir, one, cases[i].first, 0), 0);
        assert_int_equal(fchmodat(dir, two, cases[i].second, 0), 0);
        assert_int_equal(filo_extract(dir, &file, &to, &err), 0);
        assert_int_equal(fstatat(dir, "copy", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, cases[i].wanted);
        assert_int_equal(unlinkat(dir, "copy", 0), 0);
    }
}

static void test_there(void **state)
{
    filo_file file = sample();
    filo_target to = {.dir = dir, .name = name};
    put(name, "other", 5, 0);
    assert_int_equal(filo_extract(dir, &file, &to, &err), -EEXIST);
    assert_string_equal(err.text, "file is there already, and not known to be the same");
    put(name, "x", 1, SIZE - 1);
    assert_int_equal(filo_extract(dir, &file, &to, &err), -EEXIST);
    assert_int_equal(there(name), -1);
    to.replace = 1;
    err.text[0] = 0;
    assert_int_equal(filo_extract(dir, &file, &to, &err), 0);
    assert_string_equal(err.text, "");
    assert_int_equal(there(name), 1);
    assert_int_equal(filo_extract(dir, &file, &to, &err), FILO_THERE);
    /* without a checksum the file is written again, or refused as another file */
    file.has_crc = 0;
    assert_int_equal(filo_extract(dir, &file, &to, &err), 0);
    to.replace = 0;
    assert_int_equal(filo_extract(dir, &file, &to, &err), -EEXIST);
}

static void test_damaged(void **state)
{
    filo_file file = sample();
    const filo_target to = {.dir = dir, .name = "a/file"};
    file.crc ^= 1;
    assert_int_equal(filo_extract(dir, &file, &to, &err), FILO_DAMAGED);
    assert_non_null(strstr(err.text, "altered: CRC32 0x"));
    file = sample();
    file.size++;
    assert_int_equal(filo_extract(dir, &file, &to, &err), FILO_DAMAGED);
    assert_string_equal(err.text, "the segments have 150000 bytes, not 150001");
    put(two, bytes, 1, 0);
    file = sample();
    assert_int_equal(filo_extract(dir, &file, &to, &err), FILO_DAMAGED);
    assert_string_equal(err.text,
                        "two has 1 bytes, but 50000 of the file are at 0 in it");
    assert_int_equal(unlinkat(dir, two, 0), 0);
    assert_int_equal(filo_extract(dir, &file, &to, &err), FILO_DAMAGED);
    assert_string_equal(err.text, "two is missing");
    assert_int_equal(there("a/file"), 0);
    assert_int_equal(unlinkat(dir, "a", AT_REMOVEDIR), 0); /* the directory is empty */
}

static void test_refused(void **state)
{
    filo_file file = sample();
    const filo_target out = {.dir = dir, .name = "../x"}, none = {.dir = dir};
    const filo_target closed = {.dir = -1, .name = "x"};
    assert_int_equal(filo_extract(dir, NULL, NULL, &err), -EINVAL);
    assert_int_equal(filo_extract(dir, &file, &out, &err), -EINVAL);
    assert_non_null(strstr(err.text, "file name \"../x\""));
    assert_int_equal(filo_extract(dir, &file, &none, &err), -EINVAL);
    assert_int_equal(filo_extract(dir, &file, &closed, &err), -EBADF);
    assert_int_equal(filo_extract(-1, &file, NULL, &err), -EBADF);
    file.name = NULL;
    assert_int_equal(filo_extract(dir, &file, NULL, &err), -EINVAL);
}

/* ---- at each system call ---- */

/* What a child leaves behind. */
static struct {
    int rc;
    filo_error err;
} * told;

static nth_result result;

static int extract(void *replace)
{
    const filo_file file = sample();
    const filo_target to = {.dir = dir, .name = "new/file", .replace = replace != NULL};
    told->rc = filo_extract(dir, &file, &to, &told->err);
    return 0;
}

/* The state before: no directory, or an older file in it. */
static void try(int replace, nth_fault fault)
{
    unlinkat(dir, "new/file", 0);
    nftw(folder, remove_temporary, 8, FTW_PHYS);
    if (replace)
        assert_true(mkdirat(dir, "new", 0700) == 0 || errno == EEXIST);
    else
        assert_true(unlinkat(dir, "new", AT_REMOVEDIR) == 0 || errno == ENOENT);
    if (replace) put("new/file", "older", 5, 0);
    memset(told, 0, sizeof *told);
    int rc = nth_run(extract, replace ? told : NULL, nth_at, &fault, &result);
    if (rc) {
        print_message("the kernel refuses seccomp notifications: %s\n", strerror(rc));
        skip();
    }
    assert_true(result.count <= NTH_CALLS);
}

/* The file appears with the rename; until then the earlier state remains. */
static int is_right(int replace, unsigned n)
{
    unsigned renamed = nth_next(&result, "rename", 0);
    int named = renamed && renamed < n && result.calls[renamed - 1].answer == NTH_GO;
    return there("new/file") == (named ? 1 : replace ? -1 : 0);
}

static void test_killed_at_any_call(void **state)
{
    for (int replace = 0; replace < 2; replace++) {
        nth_fault fault = {1, NTH_KILL};
        for (;; fault.at++) {
            try(replace, fault);
            if (result.count < fault.at) break;
            assert_true(nth_was_killed(&result) && is_right(replace, fault.at));
        }
        assert_true(told->rc == 0 && there("new/file") == 1);
        print_message("killed at each of %u system calls\n", fault.at - 1);
        assert_true(fault.at > 25);
    }
}

static void test_any_call_fails(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EINTR};
    int failures = 0;
    for (int i = 0; i < 6; i++) {
        nth_fault fault = {1, errors[i / 2]};
        for (;; fault.at++) {
            try(i % 2, fault);
            if (result.count < fault.at) break;
            if (result.calls[fault.at - 1].answer == NTH_GO) continue;
            assert_int_equal(nth_returned(&result), 0);
            assert_true(is_right(i % 2, UINT32_MAX));
            if (told->rc == 0) assert_int_equal(there("new/file"), 1);
            if (told->rc == 0) continue;
            failures++;
            if (told->rc == -fault.answer && strstr(told->err.text, strerror(-told->rc)))
                continue;
            print_error("call %u (%s): %d, \"%s\"\n", fault.at,
                        result.calls[fault.at - 1].name, told->rc, told->err.text);
            fail();
        }
    }
    print_message("%d failures were told\n", failures);
    assert_true(failures > 60);
}

/* Another process creates a file of that name at the last moment. */
static int be_faster(void *arg, unsigned n, const nth_call *call)
{
    if (nth_is(call, "rename")) put("new/file", "theirs", 6, 0);
    return NTH_GO;
}

static void test_somebody_is_faster(void **state)
{
    try(0, (nth_fault){0, NTH_GO});
    assert_int_equal(unlinkat(dir, "new/file", 0), 0);
    if (nth_run(extract, NULL, be_faster, NULL, &result)) skip();
    assert_int_equal(told->rc, -EEXIST);
    assert_int_equal(there("new/file"), -1);
    assert_true(nth_next(&result, "unlink", nth_next(&result, "rename", 0)) > 0);
}

/* A new directory, the file and its name reach the disk in this order. */
static void test_synced(void **state)
{
    try(0, (nth_fault){0, NTH_GO});
    unsigned made = nth_next(&result, "mkdir", 0), written = 0;
    for (unsigned at = 0; (at = nth_next(&result, "write", at)) != 0;)
        written = at;
    unsigned folder_synced = nth_next(&result, "fsync", made);
    unsigned synced = nth_next(&result, "fsync", written);
    unsigned renamed = nth_next(&result, "rename", 0);
    assert_true(made > 0 && folder_synced > made && folder_synced < written);
    assert_true(synced > written && renamed > synced);
    assert_int_equal(result.calls[synced - 1].args[0], result.calls[written - 1].args[0]);
    assert_true(nth_next(&result, "fsync", renamed) > renamed);
    unsigned mode = nth_next(&result, "fchmod", 0);
    assert_true(mode > written && mode < synced);
}

static int share(void **state)
{
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    return told == MAP_FAILED ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_good, begin, end),
        cmocka_unit_test_setup_teardown(test_reports, begin, end),
        cmocka_unit_test_setup_teardown(test_private_container, begin, end),
        cmocka_unit_test_setup_teardown(test_there, begin, end),
        cmocka_unit_test_setup_teardown(test_damaged, begin, end),
        cmocka_unit_test_setup_teardown(test_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_synced, begin, end),
        cmocka_unit_test_setup_teardown(test_somebody_is_faster, begin, end),
        cmocka_unit_test_setup_teardown(test_killed_at_any_call, begin, end),
        cmocka_unit_test_setup_teardown(test_any_call_fails, begin, end),
    };
    return cmocka_run_group_tests(tests, share, NULL);
}
