/* SPDX-License-Identifier: BSD-3-Clause */
/* A program for KVTree 1.5, which includes <kvtree.h>, possibly after another header that
 * names the type, too. The functions do what such programs expect
 * (docs/decisions/0032-functions-of-kvtree.md). */
typedef struct kvtree_struct kvtree;
#include <kvtree.h>
#include <kvtree_util.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "build_tree.h"
#include "kvtree_set.h"
#include "scratch.h"
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

static void put_bytes(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
}

/* ---- elements ---- */

static void elements_are_extracted(void **state)
{
    static const int sizes[] = {3, 100}; /* a wide tree has an index */
    for (int i = 0; i < 2; i++) {
        kvtree *tree = kvtree_new(), *other = kvtree_new();
        for (int key = 0; key < sizes[i]; key++)
            kvtree_setf(tree, NULL, "%d VALUE", key);
        kvtree_set(other, "1", NULL);
        kvtree_elem *one = kvtree_elem_extract_int(tree, 1);
        assert_string_equal(kvtree_elem_key(one), "1");
        assert_int_equal(kvtree_size(kvtree_elem_hash(one)), 1);
        assert_null(kvtree_elem_extract_int(tree, 1));
        assert_null(kvtree_elem_extract_by_addr(tree, one));
        kvtree_elem *two = kvtree_elem_get(tree, "2");
        assert_null(kvtree_elem_extract_by_addr(other, two));
        assert_ptr_equal(kvtree_elem_extract_by_addr(tree, two), two);
        assert_null(kvtree_get(tree, "2"));
        assert_int_equal(kvtree_size(tree), sizes[i] - 2);
        assert_int_equal(kvtree_size(other), 1);
        assert_null(kvtree_elem_extract_by_addr(NULL, two));
        assert_null(kvtree_elem_extract_by_addr(tree, NULL));
        kvtree_elem_delete(&one);
        kvtree_elem_delete(&two);
        kvtree_delete(&other);
        kvtree_delete(&tree);
    }
}

static void keys_by_format(void **state)
{
    kvtree *tree = kvtree_new();
    char address[32];
    snprintf(address, sizeof address, "%p", (void *)tree);
    kvtree *end = kvtree_setf(tree, NULL, "%#x %#lx %p", 255u, 0xabcdefUL, (void *)tree);
    assert_non_null(end);
    assert_ptr_equal(kvtree_getf(tree, "0xff %s %s", "0xabcdef", address), end);
    kvtree_delete(&tree);
}

/* Random bits, which yield all magnitudes. */
static void doubles_keep_every_bit(void **state)
{
    static const double plain[] = {0, -0.0, 17, 0.1, -2.5, 33.333333333333336, 1e-300};
    static const char *const texts[] = {"0.000000",
                                        "-0.000000",
                                        "17.000000",
                                        "0.100000",
                                        "-2.500000",
                                        "33.333333333333336",
                                        "1.0000000000000000e-300"};
    kvtree *tree = kvtree_new();
    uint64_t random = 1;
    for (int i = 0; i < 100000; i++) {
        double value = i < 7 ? plain[i] : 0, back = 1;
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (i >= 7) memcpy(&value, &random, sizeof value);
        int rc = kvtree_util_set_double(tree, "K", value);
        if (rc && i >= 7) continue; /* not a finite number */
        assert_int_equal(kvtree_util_get_double(tree, "K", &back), 0);
        assert_memory_equal(&back, &value, sizeof value);
        if (i < 6) assert_string_equal(kvtree_get_val(tree, "K"), texts[i]);
    }
    kvtree_delete(&tree);
}

/* ---- files ---- */

static void bytes_of_a_file(void **state)
{
    kvtree *trees[] = {sample_tree(), kvtree_new(), wide_tree(5000)};
    for (int i = 0; i < 3; i++) {
        void *bytes = NULL;
        size_t size = 0;
        assert_int_equal(kvtree_write_persist(&bytes, &size, trees[i]), KVTREE_SUCCESS);
        put_bytes(in_folder("persisted"), bytes, size);
        kvtree *back = kvtree_new();
        assert_int_equal(kvtree_read_file(in_folder("persisted"), back), KVTREE_SUCCESS);
        assert_true(same_tree(back, trees[i]));
        char *written = malloc(size + 1);
        assert_int_equal(kvtree_write_file(in_folder("written"), trees[i]), 0);
        int fd = open(in_folder("written"), O_RDONLY);
        assert_int_equal(read(fd, written, size + 1), size);
        assert_memory_equal(written, bytes, size);
        close(fd);
        free(written);
        free(bytes);
        kvtree_delete(&back);
        kvtree_delete(&trees[i]);
    }
    size_t size = 7;
    void *bytes = NULL;
    assert_int_equal(kvtree_write_persist(NULL, &size, NULL), -EINVAL);
    assert_int_equal(kvtree_write_persist(&bytes, NULL, NULL), -EINVAL);
    assert_null(bytes);
}

static void trees_behind_each_other(void **state)
{
    kvtree *tree = sample_tree(), *back = kvtree_new();
    const char *path = in_folder("file");
    int fd = open(path, O_RDWR | O_CREAT, 0600), ends[2];
    ssize_t size = kvtree_write_fd(path, fd, tree);
    assert_int_equal(size, 24 + kvtree_pack_size(tree));
    assert_int_equal(kvtree_write_fd(path, fd, tree), size);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(kvtree_read_fd(path, fd, back), size);
    assert_int_equal(kvtree_read_fd(path, fd, back), size);
    assert_true(same_tree(back, tree));
    assert_int_equal(kvtree_read_fd(path, fd, back), 0); /* the end */
    assert_int_equal(ftruncate(fd, size + 3), 0);
    assert_int_equal(lseek(fd, size, SEEK_SET), size);
    assert_int_equal(kvtree_read_fd(path, fd, back), -EBADMSG);
    assert_int_equal(kvtree_read_fd(path, -1, back), -EBADF);
    assert_int_equal(kvtree_read_fd(NULL, fd, back), -EINVAL);
    assert_int_equal(kvtree_read_fd(path, fd, NULL), -EINVAL);
    assert_int_equal(kvtree_write_fd(path, -1, tree), -EBADF);
    assert_int_equal(kvtree_write_fd(NULL, fd, tree), -EINVAL);
    close(fd);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(kvtree_write_fd(path, ends[1], tree), size);
    close(ends[1]);
    assert_int_equal(kvtree_read_fd(path, ends[0], back), size);
    assert_int_equal(kvtree_read_fd(path, ends[0], back), 0);
    close(ends[0]);
    assert_true(same_tree(back, tree));
    kvtree_delete(&back);
    kvtree_delete(&tree);
}

/* KVTree creates an empty file when it reads a missing one. */
static void files_that_were_never_written(void **state)
{
    kvtree_error err;
    const char *path = in_folder("new");
    kvtree *tree = kvtree_new();
    int fd, number = 0;
    assert_int_equal(kvtree_read_file(path, tree), -ENOENT);
    assert_int_equal(kvtree_read_with_lock(path, tree), KVTREE_SUCCESS);
    put_bytes(path, "", 0);
    assert_int_equal(kvtree_read_file(path, tree), KVTREE_SUCCESS);
    assert_int_equal(kvtree_read_with_lock(path, tree), KVTREE_SUCCESS);
    assert_int_equal(kvtree_size(tree), 0);
    assert_int_equal(kvtree_file_read(AT_FDCWD, path, 1000, tree, &err), -EBADMSG);
    assert_int_equal(kvtree_lock_open_read(path, &fd, tree), KVTREE_SUCCESS);
    kvtree_util_set_int(tree, "RUNS", 1);
    assert_int_equal(kvtree_write_close_unlock(path, &fd, tree), KVTREE_SUCCESS);
    assert_int_equal(fd, -1);
    kvtree_unset_all(tree);
    assert_int_equal(kvtree_read_with_lock(path, tree), KVTREE_SUCCESS);
    assert_int_equal(kvtree_util_get_int(tree, "RUNS", &number), KVTREE_SUCCESS);
    assert_int_equal(number, 1);
    put_bytes(path, "x", 1);
    assert_int_equal(kvtree_read_file(path, tree), -EBADMSG);
    assert_int_equal(kvtree_read_with_lock(path, tree), -EBADMSG);
    assert_int_equal(kvtree_lock_open_read(path, &fd, tree), -EBADMSG);
    kvtree_delete(&tree);
}

/* ---- the trees of many ranks ---- */

static kvtree *trees_of(int ranks)
{
    kvtree *all = kvtree_new();
    for (int i = 0; i < ranks; i++) { /* not in their order */
        char key[16];
        snprintf(key, sizeof key, "%d", (i + ranks / 2) % ranks);
        kvtree_util_set_str(all, key, "data");
    }
    return all;
}

static void expect_trees(const char *path, int ranks)
{
    kvtree *all = kvtree_new(), *expected = trees_of(ranks);
    kvtree_sort_int(expected, KVTREE_SORT_ASCENDING);
    assert_int_equal(kvtree_read_scatter_single(path, all), KVTREE_SUCCESS);
    assert_true(same_tree(all, expected));
    kvtree_delete(&expected);
    kvtree_delete(&all);
}

static void all_ranks_in_one_tree(void **state)
{
    static const int sizes[] = {1, 3, 30000}; /* the last one needs several files */
    const char *path = in_folder("PREFIX");
    for (int i = 0; i < 3; i++) {
        kvtree *all = trees_of(sizes[i]);
        assert_int_equal(kvtree_write_to_gather(path, all, sizes[i]), KVTREE_SUCCESS);
        assert_int_equal(files_in_folder(0) > 2, i == 2);
        expect_trees(path, sizes[i]);
        kvtree_delete(&all);
    }
    kvtree *all = kvtree_new();
    kvtree_set(all, "before", NULL);
    assert_int_equal(unlink(in_folder("PREFIX.0.0")), 0);
    assert_int_equal(kvtree_read_scatter_single(path, all), -EBADMSG);
    assert_int_equal(kvtree_read_scatter_single(in_folder("other"), all), -ENOENT);
    assert_int_equal(kvtree_read_scatter_single(path, NULL), -EINVAL);
    assert_int_equal(kvtree_read_scatter_single(NULL, all), -EINVAL);
    assert_int_equal(kvtree_size(all), 1);
    kvtree_delete(&all);
}

static void expect_values(const char *path, int ranks)
{
    kvtree *all = kvtree_new();
    assert_int_equal(kvtree_read_scatter_single(path, all), KVTREE_SUCCESS);
    assert_int_equal(kvtree_size(all), ranks);
    for (int rank = 0; rank < ranks; rank++)
        assert_non_null(kvtree_getf(all, "%d VALUE %d", rank, rank));
    kvtree_delete(&all);
}

static void sets_that_kvtree_wrote(void **state)
{
    kvtree *all = kvtree_new();
    assert_true(kvtree_set_flat(in_folder("flat"), 5));
    assert_true(kvtree_set_deep(in_folder("deep.scr"), 7));
    expect_values(in_folder("flat"), 5);
    expect_values(in_folder("deep.scr"), 7);
    assert_true(kvtree_set_put_ranks(in_folder("flat"), 4, 2, 5));
    assert_int_equal(kvtree_read_scatter_single(in_folder("flat"), all), -EBADMSG);
    assert_int_equal(unlink(in_folder("flat.0.4")), 0);
    assert_int_equal(kvtree_read_scatter_single(in_folder("flat"), all), -EBADMSG);
    assert_int_equal(unlink(in_folder("deep.scr.1.4")), 0);
    assert_int_equal(kvtree_read_scatter_single(in_folder("deep.scr"), all), -EBADMSG);
    assert_int_equal(kvtree_size(all), 0);
    kvtree_delete(&all);
}

static void trees_that_are_not_all_ranks(void **state)
{
    static const char *const extra[] = {"4", "-1", "01", "x"};
    const char *path = in_folder("PREFIX");
    for (int i = 0; i < 4; i++) {
        kvtree *all = trees_of(3);
        kvtree_set(all, extra[i], NULL);
        assert_int_equal(kvtree_write_to_gather(path, all, 4), -EINVAL);
        assert_int_equal(kvtree_write_to_gather(path, all, 3), -EINVAL);
        kvtree_unset(all, extra[i]);
        assert_int_equal(kvtree_write_to_gather(path, all, 4), -EINVAL);
        assert_int_equal(kvtree_write_to_gather(path, all, 0), -EINVAL);
        assert_int_equal(kvtree_write_to_gather(NULL, all, 3), -EINVAL);
        kvtree_delete(&all);
    }
    assert_int_equal(kvtree_write_to_gather(path, NULL, 1), -EINVAL);
    assert_int_equal(kvtree_write_to_gather(path, NULL, 0), -EINVAL);
    assert_int_equal(files_in_folder(0), 0);
}

/* All processes of a job write the same files. */
static void several_write_the_same(void **state)
{
    enum { WRITERS = 4, TIMES = 20 };
    const char *path = in_folder("PREFIX");
    for (int i = 0; i < WRITERS; i++) {
        if (fork() != 0) continue;
        kvtree *all = trees_of(3);
        int rc = 0;
        for (int n = 0; n < TIMES && !rc; n++)
            rc = kvtree_write_to_gather(path, all, 3);
        kvtree_delete(&all);
        _exit(rc != 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    expect_trees(path, 3);
}

/* ---- print ---- */

enum { LOG = -1 };

static void expect_print(const kvtree *tree, int indent, int mode, int result,
                         const char *expected)
{
    char text[200] = "";
    FILE *file = tmpfile();
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    int rc = mode == LOG ? kvtree_log(tree, 1, indent)
             : mode      ? kvtree_print_mode(tree, indent, mode)
                         : kvtree_print(tree, indent);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    assert_int_equal(rc, result);
    assert_true(pread(fileno(file), text, sizeof text - 1, 0) >= 0);
    assert_string_equal(text, expected);
    fclose(file);
}

static void prints_as_expected(void **state)
{
    static const char tree_text[] = "  RANK\n    0\n      FILES\n        2\n";
    kvtree *tree = kvtree_new();
    kvtree_util_set_int(kvtree_set_kv_int(tree, "RANK", 0), "FILES", 2);
    expect_print(tree, 0, 0, 0, tree_text);
    expect_print(tree, -5, 0, 0, tree_text);
    expect_print(tree, 0, KVTREE_PRINT_TREE, 0, tree_text);
    expect_print(tree, 0, LOG, 0, tree_text);
    expect_print(tree, 3, 0, 0, "     RANK\n       0\n         FILES\n           2\n");
    expect_print(tree, 1, KVTREE_PRINT_KEYVAL, 0, "   RANK\n     0\n       FILES = 2\n");
    expect_print(tree, 0, 3, -EINVAL, "");
    expect_print(NULL, 4, 0, 0, "    NULL LIST\n");
    kvtree_unset_all(tree);
    expect_print(tree, 4, KVTREE_PRINT_KEYVAL, 0, "");
    kvtree_delete(&tree);
}

static void names_of_the_header(void **state)
{
    struct kvtree_elem_struct *elem = NULL;
    kvtree_elem *same = elem;
    char name[KVTREE_MAX_FILENAME] = KVTREE_VERSION;
    assert_null(same);
    assert_string_equal(name, "1.5.0");
}

int main(void)
{
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_extracted),
        cmocka_unit_test(keys_by_format),
        cmocka_unit_test(doubles_keep_every_bit),
        IN_FOLDER(bytes_of_a_file),
        IN_FOLDER(trees_behind_each_other),
        IN_FOLDER(files_that_were_never_written),
        IN_FOLDER(all_ranks_in_one_tree),
        IN_FOLDER(sets_that_kvtree_wrote),
        IN_FOLDER(trees_that_are_not_all_ranks),
        IN_FOLDER(several_write_the_same),
        cmocka_unit_test(prints_as_expected),
        cmocka_unit_test(names_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
