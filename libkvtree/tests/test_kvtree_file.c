/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees in files: written completely or not at all, read only if every byte is right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "build_tree.h"
#include "src/kvtree_private.h"
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[2][128];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static int make_folder(void **state)
{
    strcpy(folder, "/tmp/scr-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static int entries(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

static void put(const char *name, const char *bytes, size_t size)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Returns the bytes of the file of a tree. */
static char *file_of(const kvtree *tree, size_t *size)
{
    assert_int_equal(kvtree_write_file(in_folder("made"), tree), 0);
    FILE *file = fopen(in_folder("made"), "r");
    char *bytes = malloc(4096);
    *size = fread(bytes, 1, 4096, file);
    fclose(file);
    unlink(in_folder("made"));
    return bytes;
}

static void seal(char *bytes, size_t size)
{
    kvtree_put32(bytes + size - 4, (uint32_t)crc32(0, (Bytef *)bytes, (uInt)(size - 4)));
}

static void comes_back_and_merges(void **state)
{
    struct stat st;
    const mode_t mask = umask(0);
    umask(mask);
    kvtree *tree = sample_tree(), *back = kvtree_new(), *both = kvtree_new();
    assert_int_equal(kvtree_write_file(in_folder("a"), tree), 0);
    assert_int_equal(kvtree_read_file(in_folder("a"), back), 0);
    assert_true(same_tree(tree, back));
    assert_int_equal(stat(in_folder("a"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600); /* like the directory */
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(kvtree_write_file(in_folder("a"), tree), 0);
    assert_int_equal(stat(in_folder("a"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644 & ~mask);
    assert_int_equal(st.st_size, 20 + kvtree_pack_size(tree) + 4);
    kvtree_set_kv(both, "OTHER", "1");
    assert_int_equal(kvtree_read_file(in_folder("a"), both), 0);
    assert_int_equal(kvtree_size(both), 2);
    assert_true(same_tree(kvtree_get(both, "RANK"), kvtree_get(tree, "RANK")));
    assert_int_equal(kvtree_write_file(in_folder("a"), NULL), 0);
    kvtree_unset_all(back);
    assert_int_equal(kvtree_read_file(in_folder("a"), back), 0);
    assert_int_equal(kvtree_size(back), 0);
    assert_int_equal(entries(), 1);
    kvtree_delete(&tree);
    kvtree_delete(&back);
    kvtree_delete(&both);
}

static void a_million_levels_and_wide(void **state)
{
    kvtree *trees[] = {deep_tree(1000000), wide_tree(100000)};
    for (int i = 0; i < 2; i++) {
        kvtree *back = kvtree_new();
        assert_int_equal(kvtree_write_file(in_folder("a"), trees[i]), 0);
        assert_int_equal(kvtree_read_file(in_folder("a"), back), 0);
        assert_true(same_tree(trees[i], back));
        kvtree_delete(&back);
        kvtree_delete(&trees[i]);
    }
}

static void check_read(const char *name, int rc, const char *text)
{
    kvtree_error err = {""};
    kvtree *full = sample_tree(), *as_before = sample_tree(), *empty = kvtree_new();
    assert_int_equal(
        kvtree_file_read(AT_FDCWD, in_folder(name), KVTREE_ANY_SIZE, empty, &err), rc);
    if (!strstr(err.text, text) || !strstr(err.text, in_folder(name)))
        fail_msg("\"%s\" lacks \"%s\" or the path", err.text, text);
    assert_int_equal(kvtree_size(empty), 0);
    assert_int_equal(
        kvtree_file_read(AT_FDCWD, in_folder(name), KVTREE_ANY_SIZE, full, NULL), rc);
    bool is_empty = strstr(err.text, "cut off: 0 bytes") != NULL;
    assert_int_equal(kvtree_read_file(in_folder(name), full), is_empty ? 0 : rc);
    assert_true(same_tree(full, as_before));
    kvtree_delete(&full);
    kvtree_delete(&as_before);
    kvtree_delete(&empty);
}

static void what_is_no_file(void **state)
{
    put("empty", "", 0);
    put("short", "\x95\x1f", 2);
    assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
    assert_int_equal(symlink("empty", in_folder("link")), 0);
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    check_read("missing", -ENOENT, "is missing");
    check_read("nowhere/missing", -ENOENT, "No such file");
    check_read("empty", -EBADMSG, "cut off: 0 bytes");
    check_read("short", -EBADMSG, "cut off: 2 bytes");
    check_read("sub", -EINVAL, "not a regular file");
    check_read("fifo", -EINVAL, "not a regular file");
    check_read("link", -ELOOP, "a symbolic link, which is not followed");
    kvtree_error err = {""};
    assert_int_equal(kvtree_read_file(in_folder("empty"), NULL), -EINVAL);
    assert_int_equal(kvtree_file_read(AT_FDCWD, NULL, KVTREE_ANY_SIZE, NULL, &err),
                     -EINVAL);
    assert_int_equal(kvtree_file_write(AT_FDCWD, NULL, KVTREE_ANY_SIZE, NULL, &err),
                     -EINVAL);
    assert_int_equal(kvtree_file_write(AT_FDCWD, "", KVTREE_ANY_SIZE, NULL, &err),
                     -EINVAL);
    assert_int_equal(
        kvtree_file_write(AT_FDCWD, in_folder("sub/"), KVTREE_ANY_SIZE, NULL, &err),
        -EINVAL);
    assert_int_equal(
        kvtree_file_write(AT_FDCWD, in_folder("sub"), KVTREE_ANY_SIZE, NULL, &err),
        -EISDIR);
    assert_int_equal(kvtree_write_file(in_folder("nowhere/file"), NULL), -ENOENT);
}

enum {
    MAGIC_AT = 0,
    TYPE_AT = 4,
    VERSION_AT = 6,
    SIZE_AT = 8,
    FLAGS_AT = 16,
    TREE_AT = 20
};

static void each_damage_has_its_text(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *text;
    } cases[] = {
        {MAGIC_AT, 0x951fc3f4, "magic number 0x951fc3f4, not 0x951fc3f5"},
        {TYPE_AT, 0x00020001, "damaged: checksum 0x"},
        {TYPE_AT, 0x00010002, "damaged: checksum 0x"},
        {SIZE_AT, 0x80000000, "cut off: size field 92233720368547"},
        {SIZE_AT + 4, 27, "size field 27 is too small"},
        {SIZE_AT + 4, 5000, "cut off: size field 5000"},
        {SIZE_AT + 4, 28, "trailing bytes: size field 28"},
        {FLAGS_AT, 3, "damaged: checksum 0x"},
        {FLAGS_AT, 0x80000001, "damaged: checksum 0x"},
        {FLAGS_AT, 0x400, "damaged: no checksum, and unknown flags 0x00000400"},
        {TREE_AT, 2, "damaged: checksum 0x"},
        {TREE_AT + 5, 0x41414141, "damaged: checksum 0x"},
    };
    size_t size;
    kvtree *tree = sample_tree();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *bytes = file_of(tree, &size);
        kvtree_put32(bytes + cases[i].at, cases[i].value);
        put("damaged", bytes, size);
        check_read("damaged", -EBADMSG, cases[i].text);
        free(bytes);
    }
    kvtree_delete(&tree);
}

/* An intact file in a format that this program does not know. */
static void other_formats(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *text;
    } cases[] = {
        {TYPE_AT, 0x00020001, "file type 2; this program knows type 1: use the program"},
        {TYPE_AT, 0x00010002, "file version 2; this program knows version 1: use the"},
        {FLAGS_AT, 3, "unknown flags 0x00000002"},
        {FLAGS_AT, 0x80000001, "unknown flags 0x80000000"},
    };
    size_t size;
    kvtree *tree = sample_tree();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *bytes = file_of(tree, &size);
        kvtree_put32(bytes + cases[i].at, cases[i].value);
        seal(bytes, size);
        put("other", bytes, size);
        check_read("other", -EPROTONOSUPPORT, cases[i].text);
        put("other", bytes, size - 1);
        check_read("other", -EBADMSG, "cut off: size field");
        kvtree_put32(bytes + FLAGS_AT, kvtree_get32(bytes + FLAGS_AT) & ~1u);
        seal(bytes, size);
        put("other", bytes, size);
        check_read("other", -EBADMSG, "damaged: no checksum, and ");
        free(bytes);
    }
    kvtree_delete(&tree);
}

/* A right checksum over wrong bytes: a foreign writer, not a broken disk. */
static void a_good_checksum_is_not_enough(void **state)
{
    size_t size;
    kvtree *tree = sample_tree();
    char *bytes = file_of(tree, &size);
    kvtree_put32(bytes + SIZE_AT + 4, (uint32_t)size + 2);
    memmove(bytes + size - 2, bytes + size - 4, 4);
    seal(bytes, size + 2);
    put("longer", bytes, size + 2);
    check_read("longer", -EBADMSG, "2 bytes too many between the tree and the end");
    free(bytes);
    bytes = file_of(tree, &size);
    kvtree_put32(bytes + TREE_AT, 0x7fffffff);
    seal(bytes, size);
    put("many", bytes, size);
    check_read("many", -EBADMSG, "count 2147483647 at byte 0");
    free(bytes);
    kvtree_delete(&tree);
}

static void every_flip_and_every_cut_is_noticed(void **state)
{
    size_t size;
    kvtree *tree = sample_tree(), *back = kvtree_new();
    char *bytes = file_of(tree, &size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        put("flip", bytes, size);
        /* Without its flag a checksum is four bytes too many. */
        assert_int_equal(kvtree_read_file(in_folder("flip"), back), -EBADMSG);
        assert_int_equal(kvtree_size(back), 0);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut++) {
        put("cut", bytes, cut);
        assert_int_equal(kvtree_read_file(in_folder("cut"), back), cut ? -EBADMSG : 0);
        assert_int_equal(
            kvtree_file_read(AT_FDCWD, in_folder("cut"), KVTREE_ANY_SIZE, back, NULL),
            -EBADMSG);
    }
    put("whole", bytes, size);
    assert_int_equal(kvtree_read_file(in_folder("whole"), back), 0);
    free(bytes);
    kvtree_delete(&tree);
    kvtree_delete(&back);
}

static void without_a_checksum(void **state)
{
    size_t size;
    kvtree *tree = sample_tree(), *back = kvtree_new();
    char *bytes = file_of(tree, &size);
    kvtree_put32(bytes + FLAGS_AT, 0);
    kvtree_put32(bytes + SIZE_AT + 4, (uint32_t)size - 4);
    put("plain", bytes, size - 4);
    assert_int_equal(kvtree_read_file(in_folder("plain"), back), 0);
    assert_true(same_tree(tree, back));
    free(bytes);
    kvtree_delete(&tree);
    kvtree_delete(&back);
}

static void below_an_open_folder(void **state)
{
    kvtree_error err = {""};
    kvtree *tree = sample_tree(), *back = kvtree_new();
    assert_int_equal(mkdir(in_folder("real"), 0700), 0);
    assert_int_equal(symlink("real", in_folder("alias")), 0);
    int dir = open(folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(kvtree_file_write(dir, "real/file", KVTREE_ANY_SIZE, tree, &err), 0);
    assert_int_equal(kvtree_file_read(dir, "real/file", KVTREE_ANY_SIZE, back, &err), 0);
    assert_true(same_tree(tree, back));
    static const char *const refused[] = {"../file",      "/file",  "real//file",
                                          "real/../file", "./file", ""};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(kvtree_file_write(dir, refused[i], KVTREE_ANY_SIZE, tree, &err),
                         -EINVAL);
        assert_int_equal(kvtree_file_read(dir, refused[i], KVTREE_ANY_SIZE, back, NULL),
                         -EINVAL);
    }
    /* below a descriptor no link is followed; by path, directories may be links */
    assert_true(kvtree_file_write(dir, "alias/file", KVTREE_ANY_SIZE, tree, &err) < 0);
    assert_true(kvtree_file_read(dir, "alias/file", KVTREE_ANY_SIZE, back, &err) < 0);
    assert_int_equal(kvtree_write_file(in_folder("alias/file"), NULL), 0);
    kvtree_unset_all(back);
    assert_int_equal(kvtree_file_read(dir, "real/file", KVTREE_ANY_SIZE, back, &err), 0);
    assert_int_equal(kvtree_size(back), 0);
    close(dir);
    kvtree_delete(&tree);
    kvtree_delete(&back);
}

static void relative_paths(void **state)
{
    char here[512];
    kvtree *tree = sample_tree(), *back = kvtree_new();
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkdir("d", 0700), 0);
    assert_int_equal(kvtree_write_file("d/../plain", tree), 0);
    assert_int_equal(kvtree_read_file("plain", back), 0);
    assert_true(same_tree(tree, back));
    assert_int_equal(chdir(here), 0);
    kvtree_delete(&tree);
    kvtree_delete(&back);
}

/* Replaces a link, and never writes through it. */
static void a_link_is_replaced(void **state)
{
    struct stat st;
    put("target", "mine", 4);
    assert_int_equal(symlink("target", in_folder("name")), 0);
    assert_int_equal(kvtree_write_file(in_folder("name"), NULL), 0);
    assert_int_equal(lstat(in_folder("name"), &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(stat(in_folder("target"), &st), 0);
    assert_int_equal(st.st_size, 4);
}

static void the_old_file_outlives_a_failed_write(void **state)
{
    kvtree_error err = {""};
    struct rlimit before, small = {0, 0};
    kvtree *old = sample_tree(), *new = wide_tree(1000), *back = kvtree_new();
    assert_int_equal(kvtree_write_file(in_folder("state"), old), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    for (rlim_t limit = 0; limit < 8000; limit += 1000) {
        small.rlim_cur = limit;
        setrlimit(RLIMIT_FSIZE, &small);
        int rc =
            kvtree_file_write(AT_FDCWD, in_folder("state"), KVTREE_ANY_SIZE, new, &err);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(rc, -EFBIG);
        assert_non_null(strstr(err.text, "state: write a tree of "));
        assert_int_equal(entries(), 1);
        kvtree_unset_all(back);
        assert_int_equal(kvtree_read_file(in_folder("state"), back), 0);
        assert_true(same_tree(old, back));
    }
    assert_int_equal(kvtree_write_file(in_folder("state"), new), 0);
    kvtree_unset_all(back);
    assert_int_equal(kvtree_read_file(in_folder("state"), back), 0);
    assert_true(same_tree(new, back));
    kvtree_delete(&old);
    kvtree_delete(&new);
    kvtree_delete(&back);
}

static void inside_a_larger_file(void **state)
{
    char rest[8] = "";
    kvtree_error err = {""};
    kvtree *trees[] = {sample_tree(), kvtree_new(), wide_tree(20)}, *back = kvtree_new();
    put("large", "start", 5);
    int fd = open(in_folder("large"), O_RDWR | O_APPEND);
    for (int i = 0; i < 3; i++)
        assert_int_equal(kvtree_fd_write(fd, KVTREE_ANY_SIZE, trees[i], &err),
                         24 + kvtree_pack_size(trees[i]));
    assert_int_equal(write(fd, "end", 3), 3);
    assert_int_equal(lseek(fd, 5, SEEK_SET), 5);
    for (int i = 0; i < 3; i++) {
        kvtree_unset_all(back);
        assert_int_equal(kvtree_fd_read(fd, KVTREE_ANY_SIZE, back, &err),
                         24 + kvtree_pack_size(trees[i]));
        assert_true(same_tree(back, trees[i]));
        kvtree_delete(&trees[i]);
    }
    assert_int_equal(read(fd, rest, sizeof rest), 3);
    assert_string_equal(rest, "end");
    kvtree_unset_all(back);
    assert_int_equal(kvtree_fd_read(fd, KVTREE_ANY_SIZE, back, &err), -EBADMSG);
    assert_int_equal(kvtree_fd_read(fd, KVTREE_ANY_SIZE, NULL, &err), -EINVAL);
    assert_int_equal(kvtree_fd_read(-1, KVTREE_ANY_SIZE, back, &err), -EBADF);
    assert_int_equal(kvtree_fd_write(-1, KVTREE_ANY_SIZE, back, &err), -EBADF);
    close(fd);
    kvtree_delete(&back);
}

static void through_a_pipe(void **state)
{
    kvtree_error err = {""};
    int ends[2];
    kvtree *trees[] = {sample_tree(), kvtree_new()}, *back = kvtree_new();
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < 2; i++)
        assert_true(kvtree_fd_write(ends[1], KVTREE_ANY_SIZE, trees[i], &err) > 0);
    assert_int_equal(write(ends[1], "end", 3), 3);
    close(ends[1]);
    for (int i = 0; i < 2; i++) {
        kvtree_unset_all(back);
        assert_int_equal(kvtree_fd_read(ends[0], KVTREE_ANY_SIZE, back, &err),
                         24 + kvtree_pack_size(trees[i]));
        assert_true(same_tree(back, trees[i]));
        kvtree_delete(&trees[i]);
    }
    assert_int_equal(kvtree_fd_read(ends[0], KVTREE_ANY_SIZE, back, &err), -EBADMSG);
    assert_string_equal(err.text, "cut off: 3 bytes where 20 were expected");
    close(ends[0]);
    kvtree_delete(&back);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(comes_back_and_merges),
        TEST(a_million_levels_and_wide),
        TEST(what_is_no_file),
        TEST(each_damage_has_its_text),
        TEST(other_formats),
        TEST(a_good_checksum_is_not_enough),
        TEST(every_flip_and_every_cut_is_noticed),
        TEST(without_a_checksum),
        TEST(below_an_open_folder),
        TEST(relative_paths),
        TEST(a_link_is_replaced),
        TEST(the_old_file_outlives_a_failed_write),
        TEST(inside_a_larger_file),
        TEST(through_a_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
