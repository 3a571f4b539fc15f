/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of many ranks, written and read by one process: the trees read back, the
 * layout of the files, the errors passed on, and the memory needed.
 * test_kvtree_gather_serial_mpi.c checks that the files are those of MPI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "build_tree.h"
#include "scratch.h"
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_gather.h>
#include <malloc.h>
#include <stdbool.h>

static kvtree_error err;

/* Data of both callbacks: rank r has a tree of about size(r) bytes. */
typedef struct trees {
    int (*size)(int rank);
    int version;
    int ranks, taken;        /* reading: expected number of ranks; number taken */
    int rank_of_end, end;    /* this rank ends the call with that code */
    size_t base, most;       /* bytes of malloc: at the start; maximum */
    unsigned char seen[400]; /* set for each rank taken */
} trees;

static kvtree *tree_of(const trees *t, int rank)
{
    kvtree *tree = gather_tree(rank, t->size(rank));
    kvtree_util_set_int(tree, "VERSION", t->version);
    return tree;
}

static int end_here(const trees *t, int rank, kvtree_error *cause)
{
    if (!t->end || rank != t->rank_of_end) return 0;
    snprintf(cause->text, sizeof cause->text, "the end comes at rank %d", rank);
    return t->end;
}

static int give(void *arg, int rank, kvtree *tree, kvtree_error *cause)
{
    trees *t = arg;
    assert_int_equal(rank, t->taken++);
    assert_int_equal(kvtree_size(tree), 0);
    kvtree *mine = tree_of(t, rank);
    kvtree_merge(tree, mine);
    kvtree_delete(&mine);
    return end_here(t, rank, cause);
}

/* Trees may be changed, and are changed here. */
static int take(void *arg, int rank, kvtree *tree, kvtree_error *cause)
{
    trees *t = arg;
    kvtree *mine = tree_of(t, rank);
    assert_true(same_tree(tree, mine));
    kvtree_delete(&mine);
    assert_true(rank < (int)sizeof t->seen && !t->seen[rank]++);
    t->taken++;
    kvtree_unset_all(tree);
    return end_here(t, rank, cause);
}

static kvtree_gather_place place(size_t limit)
{
    err.text[0] = 0;
    return (kvtree_gather_place){
        .dir = open(folder, O_RDONLY | O_DIRECTORY), .name = "set.scr", .limit = limit};
}

static int write_set(const kvtree_gather_place *to, int ranks, trees *t)
{
    t->taken = 0;
    return kvtree_gather_write_all(to, ranks, give, t, &err);
}

/* Returns the version that is stored; 0 for none. */
static int read_set(const kvtree_gather_place *from, int ranks, trees *t)
{
    int told = 0;
    t->taken = 0;
    memset(t->seen, 0, sizeof t->seen);
    int rc = kvtree_gather_read_all(from, &told, take, t, &err);
    assert_true(rc || told == ranks);
    assert_true(rc || t->taken == ranks);
    return rc;
}

/* Reads each rank alone, and ranks that do not exist. */
static void read_each(const kvtree_gather_place *from, int ranks, const trees *t)
{
    for (int rank = -1; rank <= ranks; rank++) {
        const bool is_there = rank >= 0 && rank < ranks;
        kvtree *tree = kvtree_new(), *mine = tree_of(t, is_there ? rank : 0);
        int told = 0;
        err.text[0] = 0;
        int rc = kvtree_gather_read_one(from, rank, &told, tree, &err);
        assert_int_equal(rc, is_there ? 0 : -ENOENT);
        assert_true(is_there ? same_tree(tree, mine) && told == ranks
                             : kvtree_size(tree) == 0 && strstr(err.text, "no rank"));
        kvtree_delete(&tree);
        kvtree_delete(&mine);
    }
    err.text[0] = 0;
}

/* ---- sizes of trees ---- */

static int same_size(int rank)
{
    return 300;
}

static int nothing(int rank)
{
    return 0;
}

static int uneven(int rank)
{
    return rank * 7919 % 11 * 60;
}

/* Every seventh tree is larger than most limits here. */
static int some_large(int rank)
{
    return rank % 7 == 3 ? 20000 : uneven(rank);
}

/* ---- what comes back, and the layout ---- */

/* Returns the LEVEL of the root. */
static int level_of_root(void)
{
    int level = -1;
    kvtree *tree = kvtree_new();
    assert_int_equal(kvtree_read_file(in_folder("set.scr"), tree), 0);
    assert_int_equal(kvtree_util_get_int(tree, "LEVEL", &level), 0);
    kvtree_delete(&tree);
    return level;
}

/* Only a file with one rank is larger than the limit. */
static void check_limit(size_t limit, const char *top)
{
    struct stat st;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        assert_int_equal(fstatat(dirfd(dir), e->d_name, &st, 0), 0);
        if ((size_t)st.st_size <= limit) continue;
        int ranks = 0;
        kvtree *tree = kvtree_new();
        assert_int_equal(
            kvtree_file_read(dirfd(dir), e->d_name, KVTREE_ANY_SIZE, tree, &err), 0);
        kvtree *body = top ? kvtree_get(tree, top) : tree;
        assert_int_equal(kvtree_util_get_int(body, "RANKS", &ranks), 0);
        assert_int_equal(ranks, 1);
        kvtree_delete(&tree);
    }
    closedir(dir);
}

static void test_round_trips(void **state)
{
    static int (*const sizes[])(int) = {same_size, nothing, uneven, some_large};
    static const int ranks[] = {1, 2, 3, 8, 100, 301};
    static const size_t limits[] = {0, 1500, 5000, 1 << 16};
    static const char *const tops[] = {NULL, "TOP"};
    for (int i = 0; i < 4 * 6 * 4 * 2; i++) {
        trees t = {.size = sizes[i % 4], .version = i};
        int n = ranks[i / 4 % 6];
        kvtree_gather_place at = place(limits[i / 24 % 4]);
        at.top = tops[i / 96];
        assert_int_equal(write_set(&at, n, &t), 0);
        assert_int_equal(read_set(&at, n, &t), 0);
        if (n < 100 || i % 5 == 0) read_each(&at, n, &t);
        assert_int_equal(kvtree_gather_read_all(&at, NULL, NULL, NULL, &err), 0);
        check_limit(at.limit ? at.limit : 1 << 20, at.top);
        assert_string_equal(err.text, "");
        close(at.dir);
        assert_true(files_in_folder(1) >= 2);
    }
}

/* A limit below any tree: each rank has its own file, and six pointers begin within the
 * least width. */
static void test_many_levels(void **state)
{
    trees t = {.size = same_size};
    kvtree_gather_place at = place(1);
    assert_int_equal(write_set(&at, 301, &t), 0);
    assert_int_equal(level_of_root(), 4);
    assert_true(files_in_folder(0) > 301 + 301 / 7 + 301 / 49 + 2);
    assert_int_equal(read_set(&at, 301, &t), 0);
    /* in a directory below, with a longer name, fewer pointers fit */
    assert_int_equal(mkdirat(at.dir, "below", 0700), 0);
    at.name = "below/a name that is so long that the pointers which have it in them are "
              "much longer than the numbers around it";
    assert_int_equal(write_set(&at, 301, &t), 0);
    assert_int_equal(read_set(&at, 301, &t), 0);
    close(at.dir);
}

/* Returns the number of files, besides the root, without which rank cannot be read. */
static int needed_for(const kvtree_gather_place *from, int rank)
{
    int needed = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.' || strcmp(e->d_name, from->name) == 0) continue;
        kvtree *tree = kvtree_new();
        assert_int_equal(renameat(from->dir, e->d_name, from->dir, ".hidden"), 0);
        needed += kvtree_gather_read_one(from, rank, NULL, tree, NULL) != 0;
        assert_int_equal(renameat(from->dir, ".hidden", from->dir, e->d_name), 0);
        kvtree_delete(&tree);
    }
    closedir(dir);
    return needed;
}

/* For one rank, one file of each level is read, and one for each large tree on the way.
 */
static void test_one_rank_of_many(void **state)
{
    trees t = {.size = same_size};
    kvtree_gather_place at = place(1500);
    assert_int_equal(write_set(&at, 301, &t), 0);
    assert_true(files_in_folder(0) > 50 && level_of_root() > 1);
    for (int rank = 0; rank < 301; rank += 75)
        assert_int_equal(needed_for(&at, rank), level_of_root());
    t.size = some_large; /* 3, 10, 17, ... */
    assert_int_equal(write_set(&at, 301, &t), 0);
    assert_int_equal(needed_for(&at, 150), level_of_root());
    assert_in_range(needed_for(&at, 152), level_of_root(), level_of_root() + 2);
    /* a missing file is damage, whatever the rank */
    assert_int_equal(unlinkat(at.dir, "set.0.0.scr", 0), 0);
    kvtree *tree = kvtree_new();
    assert_int_equal(kvtree_gather_read_one(&at, 0, NULL, tree, &err), -EBADMSG);
    assert_int_equal(kvtree_gather_read_one(NULL, 0, NULL, tree, &err), -EINVAL);
    kvtree_delete(&tree);
    close(at.dir);
}

/* Writes a file at level (32: the root) with three pointers to the file of the next
 * level. */
static void write_pointers(int dir, int level)
{
    kvtree *tree = kvtree_new();
    char name[32], next[32];
    snprintf(name, sizeof name, level < 32 ? "set.%d.0.scr" : "set.scr", level);
    snprintf(next, sizeof next, "set.%d.0.scr", level - 1);
    assert_int_equal(kvtree_util_set_int(tree, "LEVEL", level), 0);
    assert_int_equal(kvtree_util_set_int(tree, "RANKS", 4), 0);
    for (int rank = 0; rank < 3; rank++) {
        kvtree *pointer = kvtree_set_kv_int(tree, "RANK", rank);
        assert_int_equal(kvtree_util_set_int(pointer, "OFFSET", 0), 0);
        assert_int_equal(kvtree_util_set_str(pointer, "FILE", next), 0);
    }
    assert_int_equal(kvtree_file_write(dir, name, KVTREE_ANY_SIZE, tree, &err), 0);
    kvtree_delete(&tree);
}

/* Few files that name each other repeatedly: none is followed twice. */
static void test_one_rank_without_end(void **state)
{
    trees t = {.size = same_size};
    kvtree_gather_place at = place(0);
    assert_int_equal(write_set(&at, 1, &t), 0);
    for (int level = 1; level <= 32; level++)
        write_pointers(at.dir, level);
    for (int rank = 1; rank < 4; rank++) {
        kvtree *tree = kvtree_new();
        assert_int_equal(kvtree_gather_read_one(&at, rank, NULL, tree, &err), -EBADMSG);
        assert_non_null(strstr(err.text, "is listed twice"));
        kvtree_delete(&tree);
    }
    close(at.dir);
}

/* A smaller set over a larger one has only its own files. */
static void test_written_again(void **state)
{
    kvtree_gather_place at = place(1500);
    for (int i = 1; i < 8; i++) {
        trees t = {.size = uneven, .version = i};
        int ranks = i % 2 ? 100 : 7;
        assert_int_equal(write_set(&at, ranks, &t), 0);
        assert_int_equal(read_set(&at, ranks, &t), 0);
    }
    close(at.dir);
}

/* ---- errors ---- */

static void test_errors_of_callers(void **state)
{
    static const int codes[] = {-EIO, 1, 42};
    kvtree_gather_place at = place(1500);
    for (int i = 0; i < 9; i++) {
        trees old = {.size = same_size, .version = 1}, t = {.size = same_size};
        assert_int_equal(write_set(&at, 50, &old), 0);
        t.end = codes[i % 3];
        t.rank_of_end = i < 3 ? 0 : i < 6 ? 25 : 49;
        assert_int_equal(write_set(&at, 50, &t), t.end);
        assert_non_null(strstr(err.text, "the end comes at rank "));
        assert_int_equal(t.taken, t.rank_of_end + 1);
        /* a write that did not begin keeps the earlier set */
        assert_int_equal(read_set(&at, 50, &old), i < 3 ? 0 : -ENOENT);

        old.end = codes[i % 3];
        old.rank_of_end = t.rank_of_end;
        assert_int_equal(write_set(&at, 50, &(trees){.size = same_size, .version = 1}),
                         0);
        err.text[0] = 0;
        assert_int_equal(read_set(&at, 50, &old), old.end);
        assert_int_equal(old.taken, old.rank_of_end + 1);
        assert_non_null(strstr(err.text, "the end comes at rank "));
    }
    close(at.dir);
}

static void test_refused_arguments(void **state)
{
    static const char *const bad[] = {NULL, "", "../set.scr", "/tmp/set.scr", "set\n"};
    trees t = {.size = same_size};
    kvtree_gather_place at = place(0), other = at;
    char large[1014];
    assert_int_equal(write_set(&at, 3, &t), 0);
    assert_int_equal(kvtree_gather_write_all(NULL, 1, give, &t, &err), -EINVAL);
    assert_int_equal(kvtree_gather_write_all(&at, 1, NULL, &t, &err), -EINVAL);
    assert_int_equal(kvtree_gather_write_all(&at, 0, give, &t, &err), -EINVAL);
    assert_string_equal(err.text, "write the trees of 0 ranks");
    assert_int_equal(kvtree_gather_write_all(&at, -1, give, &t, NULL), -EINVAL);
    assert_int_equal(kvtree_gather_read_all(NULL, NULL, take, &t, &err), -EINVAL);
    for (int i = 0; i < 5; i++) {
        other.name = bad[i];
        assert_int_equal(kvtree_gather_write_all(&other, 3, give, &t, &err), -EINVAL);
        assert_non_null(strstr(err.text, "file name"));
        assert_int_equal(kvtree_gather_read_all(&other, NULL, take, &t, &err), -EINVAL);
    }
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    other.name = large;
    assert_int_equal(kvtree_gather_write_all(&other, 3, give, &t, &err), -ENAMETOOLONG);
    assert_int_equal(read_set(&at, 3, &t), 0);
    other = at;
    other.dir = -1;
    assert_int_equal(write_set(&other, 3, &t), -EBADF);
    assert_int_equal(read_set(&other, 3, &t), -EBADF);
    close(at.dir);
}

static void test_own_names(void **state)
{
    assert_int_equal(kvtree_gather_owns("a/set.scr", "a/set.scr"), 1);
    assert_int_equal(kvtree_gather_owns("a/set.scr", "a/set.0.12.scr"), 1);
    assert_int_equal(kvtree_gather_owns("a/set.scr", "a/sets"), 0);
    assert_int_equal(kvtree_gather_owns("a/set.scr", "a/other.0.0.scr"), 0);
    assert_int_equal(kvtree_gather_owns("set", "settle"), 0);
    assert_int_equal(kvtree_gather_owns("set", "set"), 1);
    assert_int_equal(kvtree_gather_owns(NULL, "set"), 0);
    assert_int_equal(kvtree_gather_owns("set", NULL), 0);
}

/* ---- memory ---- */

static size_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void watch_memory(trees *t, int rank)
{
    size_t now = rank % 16 ? 0 : bytes_in_use();
    if (now > t->base && now - t->base > t->most) t->most = now - t->base;
}

static int give_small(void *arg, int rank, kvtree *tree, kvtree_error *cause)
{
    char name[32];
    snprintf(name, sizeof name, "rank_%d.ckpt", rank);
    kvtree *file = kvtree_set_kv(tree, "FILE", name);
    watch_memory(arg, rank);
    return kvtree_util_set_bytecount(file, "SIZE", 1000000UL + (unsigned long)rank);
}

/* Ranks come in order, as no tree is large. */
static int take_small(void *arg, int rank, kvtree *tree, kvtree_error *cause)
{
    trees *t = arg;
    char name[32];
    unsigned long size = 0;
    snprintf(name, sizeof name, "rank_%d.ckpt", rank);
    kvtree_util_get_bytecount(kvtree_get_kv(tree, "FILE", name), "SIZE", &size);
    assert_int_equal(size, 1000000 + rank);
    assert_int_equal(rank, t->taken++);
    watch_memory(t, rank);
    return 0;
}

static void write_and_read(trees *t, int ranks, const kvtree_gather_place *at)
{
    int told = 0;
    t->taken = 0;
    t->base = bytes_in_use();
    assert_int_equal(kvtree_gather_write_all(at, ranks, give_small, t, &err), 0);
    assert_int_equal(kvtree_gather_read_all(at, &told, take_small, t, &err), 0);
    assert_int_equal(told, ranks);
    assert_int_equal(t->taken, ranks);
}

/* Returns the maximum bytes of malloc for that number of ranks. In the first run malloc
 * keeps some free blocks of each small size, which it counts as used. */
static size_t memory_for(int ranks, size_t limit)
{
    trees t = {.taken = 0};
    kvtree_gather_place at = place(limit);
    write_and_read(&t, ranks, &at);
    malloc_trim(0);
    t.most = 0;
    write_and_read(&t, ranks, &at);
    assert_int_equal(bytes_in_use(), t.base);
    close(at.dir);
    files_in_folder(1);
    return t.most;
}

/* All trees take 40 MB, ten times as much as those of the fewer ranks. The memory needed
 * is six times the size of a file, here 32 kB, for its tree, plus a few bytes per file.
 */
static void test_many_ranks(void **state)
{
    size_t few = memory_for(10000, 1 << 16), many = memory_for(100000, 1 << 16);
    printf("%zu and %zu bytes of memory for 10000 and 100000 ranks\n", few, many);
    assert_true(few < 400000);
    assert_true(many < few + 100000);
    assert_true(bytes_in_use() == 0 || few > 10000); /* sanitizers have no figures */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trips, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_many_levels, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_one_rank_of_many, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_one_rank_without_end, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_written_again, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_errors_of_callers, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_refused_arguments, make_folder,
                                        remove_folder),
        cmocka_unit_test(test_own_names),
        cmocka_unit_test_setup_teardown(test_many_ranks, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
