/* SPDX-License-Identifier: BSD-3-Clause */
/* axl_copy and axl_checksum with real files: bytes, checksums, modes, directories, and
 * the kinds of files that are refused. */
#include "scratch.h"
#include "src/axl_private.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <zlib.h>

#define BUFFER ((size_t)256 * 1024)

static int questions; /* number of searches for holes */

off_t lseek(int fd, off_t offset, int whence)
{
    questions += whence == SEEK_DATA || whence == SEEK_HOLE;
    return syscall(SYS_lseek, fd, offset, whence);
}

static void check_copy(const scratch *s, size_t size, unsigned flags)
{
    unsigned char *bytes = scratch_bytes(size);
    uint64_t got_size = 77;
    uint32_t got_crc = 77;
    axl_error err = {"untouched"};
    scratch_write(s->source, bytes, size);
    assert_int_equal(
        axl_copy(s->source, s->destination, flags, &got_size, &got_crc, &err), 0);
    assert_string_equal(err.text, "untouched");
    assert_int_equal(got_size, size);
    uint32_t crc = (uint32_t)crc32_z(0, bytes, size);
    assert_int_equal(got_crc, flags & AXL_CHECKSUM ? crc : 77);
    scratch_expect(s->destination, bytes, size);
    assert_int_equal(scratch_left(s), 1);
    assert_int_equal(axl_checksum(s->destination, &got_size, &got_crc, &err), 0);
    assert_int_equal(got_size, size);
    assert_int_equal(got_crc, crc);
    free(bytes);
}

static void test_sizes(void **state)
{
    const size_t sizes[] = {0, 1, BUFFER - 1, BUFFER, BUFFER + 1, 5 * BUFFER + 12345};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_copy(*state, sizes[i], 0);
        check_copy(*state, sizes[i], AXL_CHECKSUM);
    }
}

static void test_results_are_optional(void **state)
{
    scratch *s = *state;
    scratch_write(s->source, "abc", 3);
    assert_int_equal(axl_copy(s->source, s->destination, AXL_CHECKSUM, NULL, NULL, NULL),
                     0);
    assert_int_equal(axl_checksum(s->source, NULL, NULL, NULL), 0);
    assert_int_equal(axl_copy("/does/not/exist", s->destination, 0, NULL, NULL, NULL),
                     -ENOENT);
}

static void test_flags(void **state)
{
    scratch *s = *state;
    const unsigned none[] = {AXL_COMPARE, AXL_CHECKSUM | AXL_COMPARE, 16};
    scratch_write(s->source, "abc", 3);
    for (int i = 0; i < 3; i++) {
        axl_error err = {""};
        assert_int_equal(axl_copy(s->source, s->destination, none[i], NULL, NULL, &err),
                         -EINVAL);
        assert_true(strlen(err.text) > 10);
        assert_int_equal(scratch_left(s), 0);
    }
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void test_mode(void **state)
{
    scratch *s = *state;
    mode_t old = umask(027);
    scratch_write(s->source, "abc", 3);
    assert_int_equal(chmod(s->source, 0751), 0);
    assert_int_equal(axl_copy(s->source, s->destination, 0, NULL, NULL, NULL), 0);
    assert_int_equal(mode_of(s->destination), 0640);
    assert_int_equal(axl_copy(s->source, s->destination, AXL_KEEP_MODE, NULL, NULL, NULL),
                     0);
    assert_int_equal(mode_of(s->destination), 0751);
    assert_int_equal(chmod(s->source, 04755), 0);
    assert_int_equal(axl_copy(s->source, s->destination, AXL_KEEP_MODE, NULL, NULL, NULL),
                     0);
    assert_int_equal(mode_of(s->destination), 0755);
    umask(old);
}

/* Requires that the copy fails with code and a text that contains text, and leaves
 * nothing. */
static void refuse(const scratch *s, int code, const char *text)
{
    axl_error err = {""};
    uint64_t size = 77;
    uint32_t crc = 77;
    assert_int_equal(axl_copy(s->source, s->destination, AXL_CHECKSUM, &size, &crc, &err),
                     code);
    assert_non_null(strstr(err.text, text));
    assert_non_null(strstr(err.text, s->folder));
    assert_int_equal(size, 77);
    assert_int_equal(crc, 77);
    assert_int_equal(scratch_left(s), 0);
}

static void test_source_missing(void **state)
{
    refuse(*state, -ENOENT, "source: No such file or directory");
}

static void test_source_is_link(void **state)
{
    scratch *s = *state;
    assert_int_equal(symlink("/etc/hostname", s->source), 0);
    refuse(s, -ELOOP, "symbolic link");
    axl_error err = {""};
    assert_int_equal(axl_checksum(s->source, NULL, NULL, &err), -ELOOP);
    assert_non_null(strstr(err.text, s->source));
}

static void test_source_is_folder(void **state)
{
    scratch *s = *state;
    assert_int_equal(mkdir(s->source, 0700), 0);
    refuse(s, -EISDIR, "not a regular file");
}

static void test_source_is_fifo(void **state)
{
    scratch *s = *state;
    assert_int_equal(mkfifo(s->source, 0600), 0);
    refuse(s, -EINVAL, "not a regular file");
}

static void test_folders_are_made(void **state)
{
    scratch *s = *state;
    char deep[256];
    snprintf(deep, sizeof deep, "%s/out/a//b/c/file", s->folder);
    scratch_write(s->source, "abc", 3);
    assert_int_equal(axl_copy(s->source, deep, 0, NULL, NULL, NULL), 0);
    scratch_expect(deep, "abc", 3);
}

static void test_folder_cannot_be_made(void **state)
{
    scratch *s = *state;
    char path[256];
    axl_error err = {""};
    scratch_write(s->source, "abc", 3);
    snprintf(path, sizeof path, "%s/below", s->source);
    assert_int_equal(axl_copy(s->source, path, 0, NULL, NULL, &err), -ENOTDIR);
    assert_non_null(strstr(err.text, s->source));
}

static void test_destination_is_folder(void **state)
{
    scratch *s = *state;
    char path[256];
    axl_error err = {""};
    scratch_write(s->source, "abc", 3);
    assert_int_equal(axl_copy(s->source, s->folder, 0, NULL, NULL, &err), -EISDIR);
    assert_non_null(strstr(err.text, "is a directory"));
    snprintf(path, sizeof path, "%s/new/", s->folder);
    assert_int_equal(axl_copy(s->source, path, 0, NULL, NULL, &err), -EISDIR);
    assert_int_equal(scratch_count(s->folder), 1);
}

static void test_destination_is_link(void **state)
{
    scratch *s = *state;
    char target[128];
    snprintf(target, sizeof target, "%s/target", s->folder);
    snprintf(s->destination, sizeof s->destination, "%s/link", s->folder);
    scratch_write(s->source, "abc", 3);
    scratch_write(target, "keep", 4);
    assert_int_equal(symlink(target, s->destination), 0);
    assert_int_equal(axl_copy(s->source, s->destination, 0, NULL, NULL, NULL), 0);
    scratch_expect(s->destination, "abc", 3);
    scratch_expect(target, "keep", 4);
}

static void test_destination_is_replaced(void **state)
{
    scratch *s = *state;
    scratch_write(s->source, "a longer text", 13);
    assert_int_equal(axl_copy(s->source, s->destination, 0, NULL, NULL, NULL), 0);
    scratch_write(s->source, "abc", 3);
    assert_int_equal(axl_copy(s->source, s->destination, 0, NULL, NULL, NULL), 0);
    scratch_expect(s->destination, "abc", 3);
    assert_int_equal(scratch_left(s), 1);
}

/* Copies to a full file system: a small tmpfs, if it may be mounted, in a separate
 * namespace so that it cannot outlive the test. Returns the exit code of the child. */
static int copy_to_full_disk(const scratch *s, unsigned flags)
{
    char folder[128];
    axl_error err;
    snprintf(folder, sizeof folder, "%s/out", s->folder);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) return 2;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", folder, "tmpfs", 0, "size=1m") != 0)
        return 77;
    scratch_write(s->destination, "old", 3);
    if (axl_copy(s->source, s->destination, flags, NULL, NULL, &err) != -ENOSPC) return 3;
    if (!strstr(err.text, s->destination)) return 4;
    scratch_expect(s->destination, "old", 3);
    return scratch_count(folder) == 1 ? 0 : 5;
}

static int in_child(int (*body)(const scratch *, unsigned), const scratch *s,
                    unsigned flags)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0) _exit(body(s, flags));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_full_disk(void **state)
{
    scratch *s = *state;
    unsigned char *bytes = scratch_bytes(8 * BUFFER);
    scratch_write(s->source, bytes, 8 * BUFFER);
    free(bytes);
    int status = in_child(copy_to_full_disk, s, AXL_CHECKSUM);
    if (status == 77) skip(); /* only root may mount; the next test needs no rights */
    assert_int_equal(status, 0);
    assert_int_equal(in_child(copy_to_full_disk, s, 0), 0);
}

static int copy_beyond_limit(const scratch *s, unsigned flags)
{
    axl_error err;
    struct rlimit limit = {BUFFER, BUFFER};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    if (axl_copy(s->source, s->destination, flags, NULL, NULL, &err) != -EFBIG) return 3;
    if (!strstr(err.text, s->destination)) return 4;
    return scratch_left(s) == 0 ? 0 : 5;
}

static void test_file_limit(void **state)
{
    scratch *s = *state;
    unsigned char *bytes = scratch_bytes(2 * BUFFER);
    scratch_write(s->source, bytes, 2 * BUFFER);
    free(bytes);
    assert_int_equal(in_child(copy_beyond_limit, s, AXL_CHECKSUM), 0);
    assert_int_equal(in_child(copy_beyond_limit, s, 0), 0);
}

/* A search for the next hole may cost as much as reading up to it. A file without holes
 * is not searched, and a file with holes is. */
static void test_asks_for_holes(void **state)
{
    const scratch *s = *state;
    struct stat st;
    questions = 0;
    check_copy(s, 3 * BUFFER, AXL_CHECKSUM);
    assert_int_equal(questions, 0);
    assert_int_equal(truncate(s->source, (off_t)(64 * BUFFER)), 0);
    assert_int_equal(axl_copy(s->source, s->destination, 0, NULL, NULL, NULL), 0);
    assert_true(questions > 0);
    assert_int_equal(stat(s->destination, &st), 0);
    assert_true(st.st_blocks * 512 < st.st_size / 2);
}

/* A file of 16 pieces of data behind a hole. */
static unsigned char *write_behind_hole(const scratch *s)
{
    unsigned char *bytes = scratch_bytes(17 * BUFFER);
    memset(bytes, 0, BUFFER);
    int fd = open(s->source, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(pwrite(fd, bytes + BUFFER, 16 * BUFFER, (off_t)BUFFER), 16 * BUFFER);
    close(fd);
    return bytes;
}

/* The extent of data is searched once, and not for each part or piece in it. */
static void test_asks_once(void **state)
{
    enum { PARTS = 68 };
    const scratch *s = *state;
    const uint64_t part = 17 * BUFFER / PARTS;
    unsigned char *bytes = write_behind_hole(s);
    for (int parts = 0; parts < 2; parts++) {
        axl_transfer *t = NULL;
        assert_int_equal(axl_create("sync", NULL, &t, NULL), 0);
        t->piece = part;
        if (!parts) assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
        for (uint64_t i = 0; parts && i < PARTS; i++) {
            const axl_part one = {.source = s->source,
                                  .source_offset = i * part,
                                  .destination = s->destination,
                                  .destination_offset = i * part,
                                  .length = part};
            assert_int_equal(axl_add_part(t, &one, NULL), 0);
        }
        questions = 0;
        assert_int_equal(axl_dispatch(t, NULL), 0);
        assert_int_equal(axl_wait(t, NULL), 0);
        axl_free(t);
        assert_int_equal(questions, PARTS / 17 + 2); /* the hole ends after 4 of them */
        scratch_expect(s->destination, bytes, 17 * BUFFER);
    }
    free(bytes);
}

int main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_sizes),
        WITH_FOLDER(test_asks_for_holes),
        WITH_FOLDER(test_asks_once),
        WITH_FOLDER(test_results_are_optional),
        WITH_FOLDER(test_flags),
        WITH_FOLDER(test_mode),
        WITH_FOLDER(test_source_missing),
        WITH_FOLDER(test_source_is_link),
        WITH_FOLDER(test_source_is_folder),
        WITH_FOLDER(test_source_is_fifo),
        WITH_FOLDER(test_folders_are_made),
        WITH_FOLDER(test_folder_cannot_be_made),
        WITH_FOLDER(test_destination_is_folder),
        WITH_FOLDER(test_destination_is_link),
        WITH_FOLDER(test_destination_is_replaced),
        WITH_FOLDER(test_full_disk),
        WITH_FOLDER(test_file_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
