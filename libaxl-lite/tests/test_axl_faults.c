/* SPDX-License-Identifier: BSD-3-Clause */
/* axl_copy when system calls fail. This program defines the calls that the library makes
 * (the linker uses these instead of those of the C library). Each passes on to the
 * kernel, unless the test has requested a fault at its n-th use. */
#include "scratch.h"

#include <axl/axl.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#define BUFFER ((size_t)256 * 1024)

typedef enum call { READ, WRITE, FSYNC, CLOSE, RENAME, MKDIR, FCHMOD, RANGE, CALLS } call;

static struct {
    int armed;
    call call;                       /* which call */
    int at;                          /* which use of the call, from 1 */
    int error;                       /* errno, or 0: short_by fewer bytes */
    int used[CALLS];                 /* counted since armed */
    void (*meanwhile)(const char *); /* called instead of a failure */
    const char *path;
} fault;

/* Returns 1 when this use of the call must fail. */
static int strikes(call which)
{
    if (!fault.armed || ++fault.used[which] != fault.at || fault.call != which) return 0;
    if (!fault.meanwhile) return 1;
    fault.armed = 0;
    fault.meanwhile(fault.path);
    return 0;
}

#define FAIL_OR(which, number, ...)                                                      \
    if (strikes(which)) {                                                                \
        errno = fault.error;                                                             \
        return -1;                                                                       \
    }                                                                                    \
    return (int)syscall(number, __VA_ARGS__)

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
    if (strikes(READ)) {
        errno = fault.error;
        if (fault.error) return -1;
        size = 1; /* a short read */
    }
    return syscall(SYS_pread64, fd, buf, size, offset);
}

ssize_t pwrite(int fd, const void *buf, size_t size, off_t offset)
{
    if (strikes(WRITE)) {
        errno = fault.error;
        if (fault.error) return -1;
        size = 1;
    }
    return syscall(SYS_pwrite64, fd, buf, size, offset);
}

int fsync(int fd)
{
    FAIL_OR(FSYNC, SYS_fsync, fd);
}

/* As on Linux, the descriptor is closed even when close returns an error. */
int close(int fd)
{
    int fail = strikes(CLOSE), rc = (int)syscall(SYS_close, fd);
    if (!fail) return rc;
    errno = fault.error;
    return -1;
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    FAIL_OR(RENAME, SYS_renameat2, from_dir, from, to_dir, to, 0);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    FAIL_OR(MKDIR, SYS_mkdirat, dir, name, mode);
}

int fchmod(int fd, mode_t mode)
{
    FAIL_OR(FCHMOD, SYS_fchmod, fd, mode);
}

ssize_t copy_file_range(int in, off64_t *in_offset, int out, off64_t *out_offset,
                        size_t size, unsigned flags)
{
    if (strikes(RANGE)) {
        errno = fault.error;
        return fault.error ? -1 : 0; /* 0: "nothing more", before the end */
    }
    if (fault.armed && size > BUFFER) size = BUFFER; /* so that there are several calls */
    return syscall(SYS_copy_file_range, in, in_offset, out, out_offset, size, flags);
}

/* The kernel does not copy files in memory, such as those of the tests. Here they appear
 * to be on disk, unless a test sets this. */
static bool is_memory;

int fstatfs(int fd, struct statfs *fs)
{
    int rc = (int)syscall(SYS_fstatfs, fd, fs);
    if (rc == 0) fs->f_type = is_memory ? TMPFS_MAGIC : EXT4_SUPER_MAGIC;
    return rc;
}

static int copy_with_fault(const scratch *s, unsigned flags, call which, int at,
                           int error, axl_error *err)
{
    memset(&fault, 0, sizeof fault);
    fault.call = which;
    fault.at = at;
    fault.error = error;
    fault.armed = 1;
    int rc = axl_copy(s->source, s->destination, flags, NULL, NULL, err);
    fault.armed = 0;
    return rc;
}

static void write_source(const scratch *s, size_t size)
{
    unsigned char *bytes = scratch_bytes(size);
    scratch_write(s->source, bytes, size);
    free(bytes);
}

static void expect_copy(const scratch *s, size_t size)
{
    unsigned char *bytes = scratch_bytes(size);
    scratch_expect(s->destination, bytes, size);
    assert_int_equal(scratch_left(s), 1);
    free(bytes);
}

/* The n-th use of a call fails, for n = 1, 2, ... until there is no n-th use. Each time
 * the copy returns that error, and the old destination remains as the only file. Only
 * when the directory's fsync fails, the last call of all, the new file is in place. */
static void each_use_fails(const scratch *s, unsigned flags, call which, int error)
{
    for (int at = 1;; at++) {
        axl_error err = {""};
        unlink(s->destination);
        assert_int_equal(axl_copy(s->source, s->destination, 0, NULL, NULL, &err), 0);
        scratch_write(s->destination, "old", 3);
        int rc = copy_with_fault(s, flags, which, at, error, &err);
        if (fault.used[which] < at) {
            assert_int_equal(rc, 0);
            assert_true(at > 1);
            return;
        }
        /* closing a file that was only read cannot lose data */
        if (which == CLOSE && rc == 0) continue;
        assert_int_equal(rc, -error);
        assert_non_null(strstr(err.text, strerror(error)));
        assert_int_equal(scratch_left(s), 1);
        if (!strstr(err.text, "is in place")) scratch_expect(s->destination, "old", 3);
    }
}

static void test_each_failure(void **state)
{
    scratch *s = *state;
    write_source(s, 3 * BUFFER);
    each_use_fails(s, AXL_CHECKSUM, READ, EIO);
    each_use_fails(s, AXL_CHECKSUM, WRITE, ENOSPC);
    each_use_fails(s, AXL_CHECKSUM, WRITE, EDQUOT);
    each_use_fails(s, AXL_CHECKSUM, FSYNC, EIO);
    each_use_fails(s, 0, CLOSE, EDQUOT);
    each_use_fails(s, 0, RENAME, EACCES);
    each_use_fails(s, 0, RANGE, ENOSPC);
    each_use_fails(s, AXL_KEEP_MODE, FCHMOD, EPERM);
}

static void test_close_error_is_told(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    int told = 0;
    write_source(s, 10);
    assert_int_equal(axl_copy(s->source, s->destination, 0, NULL, NULL, &err), 0);
    for (int at = 1; at < 10; at++)
        told += copy_with_fault(s, 0, CLOSE, at, EIO, &err) == -EIO;
    assert_int_equal(told, 1);
}

/* One of three files that are synced together cannot be synced: none of them is renamed,
 * and the transfer has failed. The same for a part. */
static void test_fsync_error_is_no_success(void **state)
{
    const call calls[] = {FSYNC, CLOSE};
    scratch *s = *state;
    write_source(s, 10);
    assert_int_equal(axl_copy(s->source, s->destination, 0, NULL, NULL, NULL), 0);
    for (int i = 0; i < 4; i++) {
        char path[160];
        axl_error err = {""};
        axl_transfer *t = NULL;
        axl_file file;
        const axl_part part = {s->source, 0, s->destination, 100, 10, 0, 0, NULL};
        assert_int_equal(axl_create("sync", NULL, &t, NULL), 0);
        for (int k = 0; k < 3 && i < 2; k++) {
            snprintf(path, sizeof path, "%s/out/%d", s->folder, k);
            assert_int_equal(axl_add(t, s->source, path, NULL), 0);
        }
        if (i >= 2) assert_int_equal(axl_add_part(t, &part, NULL), 0);
        memset(&fault, 0, sizeof fault);
        fault.call = calls[i & 1];
        /* sources are closed once when they are examined, and once when read */
        fault.at = fault.call == FSYNC ? i < 2 ? 2 : 1 : i < 2 ? 3 + 3 + 2 : 1 + 1 + 1;
        fault.error = EIO;
        fault.armed = 1;
        int rc = axl_dispatch(t, NULL);
        if (!rc) rc = axl_wait(t, &err);
        fault.armed = 0;
        assert_int_equal(rc, -EIO);
        assert_non_null(strstr(err.text, fault.call == FSYNC ? "fsync" : "close"));
        for (size_t k = 0; k < axl_count(t); k++) {
            assert_int_equal(axl_get(t, k, &file), 0);
            assert_int_equal(file.done, 0);
        }
        axl_free(t);
        assert_int_equal(scratch_left(s), 1);
    }
}

static void test_folders_are_synced(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    write_source(s, 10);
    /* out was created: its parent, then the file, then out */
    assert_int_equal(copy_with_fault(s, 0, CALLS, 0, 0, &err), 0);
    assert_int_equal(fault.used[FSYNC], 3);
    assert_int_equal(copy_with_fault(s, 0, CALLS, 0, 0, &err), 0);
    assert_int_equal(fault.used[FSYNC], 2);
}

static void test_folder_cannot_be_made(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    write_source(s, 10);
    assert_int_equal(copy_with_fault(s, 0, MKDIR, 1, ENOSPC, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "/out"));
    assert_int_equal(copy_with_fault(s, 0, FSYNC, 1, EIO, &err), -EIO);
    assert_int_equal(scratch_left(s), 0);
}

/* The kernel declines to copy at the start or in the middle: the buffer copies the same
 * bytes. */
static void test_kernel_declines(void **state)
{
    const int errors[] = {0, EXDEV, ENOSYS, EINVAL, EOPNOTSUPP};
    scratch *s = *state;
    axl_error err = {""};
    write_source(s, 4 * BUFFER + 5);
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        for (int at = 1; at <= 3; at += 2) {
            assert_int_equal(copy_with_fault(s, 0, RANGE, at, errors[i], &err), 0);
            assert_int_equal(fault.used[RANGE], at);
            expect_copy(s, 4 * BUFFER + 5);
        }
    }
}

/* In memory the kernel is not asked. */
static void test_memory_is_copied_by_hand(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    write_source(s, 4 * BUFFER + 5);
    is_memory = true;
    assert_int_equal(copy_with_fault(s, 0, CALLS, 0, 0, &err), 0);
    is_memory = false;
    assert_int_equal(fault.used[RANGE], 0);
    assert_true(fault.used[WRITE] > 4);
    expect_copy(s, 4 * BUFFER + 5);
}

static void test_interrupted(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    write_source(s, 2 * BUFFER + 5);
    assert_int_equal(copy_with_fault(s, 0, RANGE, 2, EINTR, &err), 0);
    assert_int_equal(copy_with_fault(s, AXL_CHECKSUM, READ, 2, EINTR, &err), 0);
    assert_int_equal(copy_with_fault(s, AXL_CHECKSUM, WRITE, 2, EINTR, &err), 0);
    assert_int_equal(copy_with_fault(s, AXL_CHECKSUM, FSYNC, 1, EINTR, &err), 0);
    expect_copy(s, 2 * BUFFER + 5);
}

static void test_short_reads_and_writes(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    write_source(s, 2 * BUFFER + 5);
    assert_int_equal(copy_with_fault(s, AXL_CHECKSUM, READ, 2, 0, &err), 0);
    expect_copy(s, 2 * BUFFER + 5);
    assert_int_equal(copy_with_fault(s, AXL_CHECKSUM, WRITE, 2, 0, &err), 0);
    expect_copy(s, 2 * BUFFER + 5);
}

/* Moves the time of the last change by some nanoseconds, since the kernel's clock for
 * file times may not have ticked since the first write. 0 restores the old time. */
static void set_time(const char *path, const struct stat *was, long nanoseconds)
{
    struct timespec times[2] = {{0, UTIME_OMIT}, was->st_mtim};
    times[1].tv_nsec = (times[1].tv_nsec + nanoseconds) % 1000000000;
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Makes the file longer without a visible change of its time. */
static void append_byte(const char *path)
{
    struct stat was;
    assert_int_equal(stat(path, &was), 0);
    assert_int_equal(truncate(path, 3 * BUFFER + 1), 0);
    set_time(path, &was, 0);
}

/* Makes the file shorter, likewise. */
static void cut(const char *path)
{
    struct stat was;
    assert_int_equal(stat(path, &was), 0);
    assert_int_equal(truncate(path, BUFFER), 0);
    set_time(path, &was, 0);
}

/* Changes a byte and keeps the size. */
static void rewrite_byte(const char *path)
{
    struct stat was;
    assert_int_equal(stat(path, &was), 0);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fputc('x', f), 'x');
    assert_int_equal(fclose(f), 0);
    set_time(path, &was, 1);
}

static void changes(const scratch *s, unsigned flags, void (*change)(const char *))
{
    axl_error err = {""};
    write_source(s, 3 * BUFFER);
    memset(&fault, 0, sizeof fault);
    fault.call = flags & AXL_CHECKSUM ? READ : RANGE;
    fault.at = 2;
    fault.meanwhile = change;
    fault.path = s->source;
    fault.armed = 1;
    assert_int_equal(axl_copy(s->source, s->destination, flags, NULL, NULL, &err),
                     -ESTALE);
    assert_int_equal(fault.armed, 0);
    assert_non_null(strstr(err.text, s->source));
    assert_non_null(strstr(err.text, "changed"));
    assert_int_equal(scratch_left(s), 0);
}

static void test_source_changes(void **state)
{
    scratch *s = *state;
    changes(s, AXL_CHECKSUM, append_byte);
    changes(s, AXL_CHECKSUM, cut);
    changes(s, AXL_CHECKSUM, rewrite_byte);
    changes(s, 0, append_byte);
    changes(s, 0, cut);
    changes(s, 0, rewrite_byte);
}

static void test_checksum_fails(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    uint32_t crc = 77;
    write_source(s, 3 * BUFFER);
    memset(&fault, 0, sizeof fault);
    fault.call = READ;
    fault.at = 2;
    fault.error = EIO;
    fault.armed = 1;
    assert_int_equal(axl_checksum(s->source, NULL, &crc, &err), -EIO);
    fault.armed = 0;
    assert_int_equal(crc, 77);
    assert_non_null(strstr(err.text, s->source));
}

int main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_memory_is_copied_by_hand),
        WITH_FOLDER(test_each_failure),
        WITH_FOLDER(test_close_error_is_told),
        WITH_FOLDER(test_folders_are_synced),
        WITH_FOLDER(test_folder_cannot_be_made),
        WITH_FOLDER(test_kernel_declines),
        WITH_FOLDER(test_interrupted),
        WITH_FOLDER(test_short_reads_and_writes),
        WITH_FOLDER(test_source_changes),
        WITH_FOLDER(test_checksum_fails),
        WITH_FOLDER(test_fsync_error_is_no_success),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
