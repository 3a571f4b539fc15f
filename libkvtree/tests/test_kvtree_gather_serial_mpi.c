/* SPDX-License-Identifier: BSD-3-Clause */
/* One process and many processes write identical files, and each side reads what the
 * other wrote. */
#include "gather.h"

#include <dirent.h>

static kvtree_error err;

/* A kind of set: the size of each rank's tree, its name and limit. */
typedef struct kind {
    const char *folder;
    int (*size)(int rank);
    size_t limit;
    const char *name, *top;
    int level; /* levels of the root with 8 and ... */
    int level_of_32;
} kind;

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

/* Larger than the limit: the second, the last of eight, and two neighbors. */
static int some_large(int rank)
{
    return rank % 8 == 1 || rank % 8 == 7 || rank % 8 == 6 ? 9000 : uneven(rank);
}

static unsigned drawn; /* the set that any_size is for */

static int any_size(int rank)
{
    unsigned x = (drawn * 1000 + (unsigned)rank) * 2654435761u;
    return (int)((x ^ x >> 15) * 2246822519u >> 16) % 200;
}

#define LONG_NAME                                                                        \
    "a set with a name that is so long that only three pointers to its files fit into "  \
    "a file of the least size, where otherwise there are six of them or even more.scr"

static const kind kinds[] = {
    {"one file", same_size, 0, "set.scr", NULL, 1, 1},
    {"nothing", nothing, 0, "set.scr", "TOP", 1, 1},
    {"a file each", same_size, 1, "set.scr", "TOP", 2, 2},
    {"long name", uneven, 1, LONG_NAME, NULL, 2, 4},
    {"no suffix", uneven, 700, "set", "TOP", 0, 0},
    {"groups", same_size, 2000, "set.scr", NULL, 0, 0},
    {"uneven groups", uneven, 2500, "set.scr", "TOP", 0, 0},
    {"over the heads", some_large, 3000, "set.scr", NULL, 0, 0},
    {"over the heads, tiny", some_large, 300, "set.scr", "A LONG TOP KEY", 0, 0},
    {"folder below", some_large, 1500, "below/set.scr", "TOP", 0, 0},
};

static kvtree *tree_of(const kind *k, int rank)
{
    return gather_tree(rank, k->size(rank));
}

static int give(void *arg, int rank, kvtree *tree, kvtree_error *cause)
{
    kvtree *mine = tree_of(arg, rank);
    int rc = kvtree_merge(tree, mine);
    kvtree_delete(&mine);
    return rc;
}

static int taken;

static int take(void *arg, int rank, kvtree *tree, kvtree_error *cause)
{
    kvtree *mine = tree_of(arg, rank);
    CHECK(same_tree(tree, mine));
    kvtree_delete(&mine);
    taken++;
    return 0;
}

static void begin(const kind *k, const char *who, kvtree_gather *at)
{
    char folder[64], path[128];
    snprintf(folder, sizeof folder, "%s, %s", k->folder, who);
    gather_begin(at, path, folder);
    at->name = k->name;
    at->top = k->top;
    at->limit = k->limit;
    if (check_rank == 0 && strchr(k->name, '/'))
        CHECK(mkdirat(at->dir, "below", 0700) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

static kvtree_gather_place place_of(const kvtree_gather *at)
{
    return (kvtree_gather_place){at->dir, at->name, at->top, at->limit, 0};
}

/* ---- files ---- */

static int same_bytes(int a, int b, const char *name)
{
    static char x[1 << 17], y[1 << 17];
    int f = openat(a, name, O_RDONLY), g = openat(b, name, O_RDONLY);
    ssize_t n = read(f, x, sizeof x), m = read(g, y, sizeof y);
    close(f);
    close(g);
    return n > 0 && n < (ssize_t)sizeof x && n == m && memcmp(x, y, (size_t)n) == 0;
}

/* Requires that each file of directory a is in b with the same bytes. Returns their
 * number. */
static int count_same(int a, int b)
{
    int count = 0;
    DIR *dir = fdopendir(openat(a, ".", O_RDONLY | O_DIRECTORY));
    CHECK(dir != NULL);
    for (const struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.' || e->d_type == DT_DIR) continue;
        if (!same_bytes(a, b, e->d_name)) CHECK_STR(e->d_name, "the same file");
        count++;
    }
    closedir(dir);
    return count;
}

static void compare_folders(const kvtree_gather *a, const kvtree_gather *b)
{
    int x = openat(a->dir, strchr(a->name, '/') ? "below" : ".", O_RDONLY | O_DIRECTORY);
    int y = openat(b->dir, strchr(b->name, '/') ? "below" : ".", O_RDONLY | O_DIRECTORY);
    int files = count_same(x, y);
    CHECK(files >= 2);
    CHECK_INT(count_same(y, x), files);
    close(x);
    close(y);
}

/* Checks that a kind of set has the level that it was made for. */
static void check_level(const kind *k, const kvtree_gather *at)
{
    int level = 0, expected = check_ranks == 8 ? k->level : k->level_of_32;
    kvtree *root = kvtree_new();
    CHECK_INT(kvtree_file_read(at->dir, at->name, KVTREE_ANY_SIZE, root, &err), 0);
    CHECK_INT(kvtree_util_get_int(root, "LEVEL", &level), 0);
    if (expected && check_ranks >= 8) CHECK_INT(level, expected);
    kvtree_delete(&root);
}

/* ---- tests ---- */

static void read_by_mpi(const kind *k, const kvtree_gather *at)
{
    int ranks = 0;
    kvtree *got = kvtree_new(), *mine = tree_of(k, check_rank);
    CHECK_INT(kvtree_scatter_read(at, &ranks, got, &err), 0);
    CHECK_INT(ranks, check_ranks);
    CHECK_INT(kvtree_size(got), 1);
    CHECK(same_tree(kvtree_elem_hash(kvtree_elem_first(got)), mine));
    kvtree_delete(&mine);
    kvtree_delete(&got);
}

static void read_by_one(kind *k, const kvtree_gather *at)
{
    int ranks = 0;
    kvtree_gather_place from = place_of(at);
    taken = 0;
    CHECK_INT(kvtree_gather_read_all(&from, &ranks, take, k, &err), 0);
    CHECK_INT(ranks, check_ranks);
    CHECK_INT(taken, check_ranks);
}

static void both_ways(kind k)
{
    kvtree_gather many, one;
    kvtree *mine = tree_of(&k, check_rank);
    begin(&k, "many", &many);
    begin(&k, "one", &one);
    CHECK_INT(kvtree_gather_write(&many, mine, &err), 0);
    kvtree_gather_place to = place_of(&one);
    if (check_rank == 0)
        CHECK_INT(kvtree_gather_write_all(&to, check_ranks, give, &k, &err), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        compare_folders(&many, &one);
        check_level(&k, &one);
        read_by_one(&k, &many);
    }
    read_by_mpi(&k, &one);
    CHECK_STR(err.text, "");
    kvtree_delete(&mine);
    gather_finish(&many);
    gather_finish(&one);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(gather_base);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        both_ways(kinds[i]);
    for (drawn = 1; drawn <= (check_ranks > 8 ? 10 : 50); drawn++) {
        char folder[32];
        kind any = {.folder = folder, .size = any_size, .name = "set", .top = "TOP"};
        snprintf(folder, sizeof folder, "any %u", drawn);
        any.limit = 250 + 17 * drawn;
        both_ways(any);
    }
    check_remove(gather_base);
    return check_end();
}
