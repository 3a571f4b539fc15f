/* SPDX-License-Identifier: BSD-3-Clause */
/* Files larger than their reader accepts: they are refused before memory is allocated for
 * them, and are not written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "build_tree.h"
#include "common/record_size.h"
#include "nth_syscall.h"
#include "scratch.h"
#include "src/kvtree_private.h"
#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define HUGE_SIZE ((uint64_t)3 << 30)

/* Address space of a reader beyond that of its process. */
#define ROOM ((rlim_t)256 << 20)

static kvtree *tree;
static uint64_t size; /* size of the file of tree */

static int begin(void **state)
{
    tree = sample_tree();
    size = 24 + kvtree_pack_size(tree);
    return make_folder(state) || kvtree_write_file(in_folder("record"), tree);
}

static int end(void **state)
{
    kvtree_delete(&tree);
    return remove_folder(state);
}

/* ---- at the limit ---- */

typedef int reader(uint64_t limit, kvtree *back, kvtree_error *err);

static int read_plain(uint64_t limit, kvtree *back, kvtree_error *err)
{
    return kvtree_file_read(AT_FDCWD, in_folder("record"), limit, back, err);
}

static int read_shared(uint64_t limit, kvtree *back, kvtree_error *err)
{
    return kvtree_file_read_with_lock(AT_FDCWD, in_folder("record"), limit, back, err);
}

static int read_to_change(uint64_t limit, kvtree *back, kvtree_error *err)
{
    int fd = -1;
    int rc =
        kvtree_file_lock_open_read(AT_FDCWD, in_folder("record"), limit, &fd, back, err);
    if (rc == 0) close(fd);
    return rc;
}

static int read_to_change_within(uint64_t limit, kvtree *back, kvtree_error *err)
{
    int fd = -1;
    int rc =
        kvtree_file_lock_within(AT_FDCWD, in_folder("record"), limit, 1, &fd, back, err);
    if (rc == 0) close(fd);
    return rc;
}

static int read_inside(uint64_t limit, kvtree *back, kvtree_error *err)
{
    int fd = open(in_folder("record"), O_RDONLY);
    ssize_t n = kvtree_fd_read(fd, limit, back, err);
    close(fd);
    return n < 0 ? (int)n : 0;
}

static int read_pipe(uint64_t limit, kvtree *back, kvtree_error *err)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(kvtree_fd_write(ends[1], KVTREE_ANY_SIZE, tree, NULL), size);
    close(ends[1]);
    ssize_t n = kvtree_fd_read(ends[0], limit, back, err);
    close(ends[0]);
    return n < 0 ? (int)n : 0;
}

static reader *const readers[] = {read_plain,  read_shared, read_to_change,
                                  read_inside, read_pipe,   read_to_change_within};
enum { READERS = sizeof readers / sizeof *readers };

static void at_the_limit_is_read(void **state)
{
    char text[96];
    kvtree_error err = {""};
    snprintf(text, sizeof text, "too large: %llu bytes, but only %llu are accepted",
             (unsigned long long)size, (unsigned long long)size - 1);
    for (int i = 0; i < READERS; i++) {
        kvtree *back = kvtree_new();
        assert_int_equal(readers[i](size, back, &err), 0);
        assert_true(same_tree(back, tree));
        kvtree_unset_all(back);
        assert_int_equal(readers[i](size - 1, back, &err), -EBADMSG);
        if (!strstr(err.text, text)) fail_msg("reader %d: \"%s\"", i, err.text);
        assert_int_equal(kvtree_size(back), 0);
        kvtree_delete(&back);
    }
}

/* Bytes after the tree are damage, whatever the limit. */
static void bytes_behind_the_tree(void **state)
{
    kvtree_error err = {""};
    kvtree *back = kvtree_new();
    assert_int_equal(truncate(in_folder("record"), (off_t)size + 1), 0);
    assert_int_equal(read_plain(size + 1, back, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "trailing bytes"));
    assert_int_equal(read_plain(size, back, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "trailing bytes"));
    assert_int_equal(read_inside(size, back, &err), 0);
    kvtree_delete(&back);
}

/* Another version may have another limit: its file is not damaged. */
static void of_another_version(void **state)
{
    kvtree_error err = {""};
    kvtree *back = kvtree_new();
    int fd = open(in_folder("record"), O_WRONLY);
    assert_int_equal(pwrite(fd, "\2", 1, 7), 1);
    close(fd);
    assert_int_equal(read_plain(size - 1, back, &err), -EPROTONOSUPPORT);
    assert_non_null(strstr(err.text, "file version 2"));
    assert_int_equal(read_plain(size, back, &err), -EBADMSG); /* its checksum */
    assert_int_equal(truncate(in_folder("record"), (off_t)size - 1), 0);
    assert_int_equal(read_plain(size - 2, back, &err), -EBADMSG); /* its size */
    kvtree_delete(&back);
}

static void above_the_limit_is_not_written(void **state)
{
    char text[96];
    int fd;
    kvtree_error err = {""};
    kvtree *back = kvtree_new();
    const char *path = in_folder("record");
    kvtree_set_kv(tree, "MORE", "1");
    uint64_t larger = 24 + kvtree_pack_size(tree);
    snprintf(text, sizeof text, "a tree of %llu bytes; no reader accepts more than %llu",
             (unsigned long long)larger, (unsigned long long)size);

    assert_int_equal(kvtree_file_write(AT_FDCWD, path, size, tree, &err), -EFBIG);
    assert_non_null(strstr(err.text, text));
    assert_int_equal(kvtree_file_write_with_lock(AT_FDCWD, path, size, tree, &err),
                     -EFBIG);
    assert_int_equal(kvtree_lock_open_read(path, &fd, back), 0);
    assert_int_equal(
        kvtree_file_write_close_unlock(AT_FDCWD, path, size, &fd, tree, &err), -EFBIG);
    assert_non_null(strstr(err.text, text));
    assert_int_equal(fd, -1);
    assert_int_equal(kvtree_fd_write(-1, size, tree, &err), -EFBIG);
    assert_int_equal(files_in_folder(0), 1);
    kvtree_unset_all(back);
    assert_int_equal(read_plain(size, back, &err), 0);
    assert_false(same_tree(back, tree));

    assert_int_equal(kvtree_file_write(AT_FDCWD, path, larger, tree, &err), 0);
    kvtree_unset_all(back);
    assert_int_equal(read_plain(larger, back, &err), 0);
    assert_true(same_tree(back, tree));
    kvtree_delete(&back);
}

/* ---- huge files ---- */

static void leave_room(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    int n = file ? fscanf(file, "%lu", &pages) : 0;
    if (file) fclose(file);
    rlim_t bytes = n == 1 ? pages * (rlim_t)sysconf(_SC_PAGESIZE) + ROOM : RLIM_INFINITY;
    setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
}

/* Creates a sparse file whose header has its size. */
static void make_huge(void)
{
    int fd = open(in_folder("record"), O_WRONLY);
    char field[8];
    kvtree_put32(kvtree_put32(field, HUGE_SIZE >> 32), (uint32_t)HUGE_SIZE);
    if (pwrite(fd, field, sizeof field, 8) != sizeof field ||
        ftruncate(fd, (off_t)HUGE_SIZE) != 0)
        fail_msg("cannot make a sparse file: %s", strerror(errno));
    close(fd);
}

static void without_memory_for_it(void **state)
{
    if (NTH_SANITIZED) skip();
    make_huge();
    for (int i = 0; i < READERS; i++) {
        if (readers[i] == read_pipe) continue;
        pid_t child = fork();
        if (child == 0) {
            kvtree *back = kvtree_new();
            leave_room();
            _exit(-readers[i](RECORD_SIZE_FILES, back, NULL));
        }
        int status = 0;
        waitpid(child, &status, 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), EBADMSG);
    }
}

/* The report of the watched child. */
static struct {
    int rc, same;
} * told;

static int read_watched(void *arg)
{
    kvtree *back = kvtree_new();
    leave_room();
    told->rc = read_plain(size, back, NULL);
    told->same = same_tree(back, tree);
    kvtree_delete(&back);
    return 0;
}

static int grow_at(void *arg, unsigned n, const nth_call *call)
{
    if (n == *(unsigned *)arg) make_huge();
    return NTH_GO;
}

/* The file, of the largest accepted size, becomes huge before each call of its reader. */
static void grows_while_it_is_read(void **state)
{
    static nth_result result;
    unsigned at = 1, refused = 0;
    if (NTH_SANITIZED) skip();
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    for (;; at++) {
        assert_int_equal(kvtree_write_file(in_folder("record"), tree), 0);
        int rc = nth_run(read_watched, NULL, grow_at, &at, &result);
        if (rc) skip();
        if (result.count < at) break;
        refused += told->rc == -EBADMSG;
        if (told->rc != -EBADMSG && (told->rc != 0 || !told->same))
            fail_msg("call %u (%s): %s", at, result.calls[at - 1].name,
                     strerror(-told->rc));
    }
    munmap(told, sizeof *told);
    assert_in_range(refused, 5, at - 2); /* it may grow too late */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(at_the_limit_is_read, begin, end),
        cmocka_unit_test_setup_teardown(bytes_behind_the_tree, begin, end),
        cmocka_unit_test_setup_teardown(of_another_version, begin, end),
        cmocka_unit_test_setup_teardown(above_the_limit_is_not_written, begin, end),
        cmocka_unit_test_setup_teardown(without_memory_for_it, begin, end),
        cmocka_unit_test_setup_teardown(grows_while_it_is_read, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
