/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of all ranks, written to files and read again by the same number of ranks, by
 * fewer and by more; and the layout of the files. */
#include "gather.h"

static char path[128];
static kvtree_error err;

static void begin(kvtree_gather *to, const char *folder, size_t limit)
{
    gather_begin(to, path, folder);
    to->limit = limit;
    err.text[0] = 0;
}

/* ---- the layout ---- */

/* On rank 0: returns LEVEL and RANKS of a file; -1 if it does not exist. */
static int level_of(const char *name, int *ranks)
{
    char file[256];
    int level = -1;
    kvtree *tree = kvtree_new();
    snprintf(file, sizeof file, "%s/%s", path, name);
    if (kvtree_read_file(file, tree) == 0) {
        kvtree *body = kvtree_get(tree, "TOP");
        if (!body) body = tree;
        CHECK_INT(kvtree_util_get_int(body, "LEVEL", &level), 0);
        CHECK_INT(kvtree_util_get_int(body, "RANKS", ranks), 0);
    }
    kvtree_delete(&tree);
    return level;
}

/* On rank 0: returns the number of files at level, of which the largest has at most most
 * bytes. */
static int files_at(int level, off_t most)
{
    int count = 0;
    for (int rank = 0; rank < check_ranks; rank++) {
        char file[256];
        struct stat st;
        snprintf(file, sizeof file, "%s/set.%d.%d.scr", path, level, rank);
        if (stat(file, &st) != 0) continue;
        if (st.st_size > most) CHECK_INT(st.st_size, most);
        count++;
    }
    return count;
}

/* On rank 0: the root is at level, above the given number of files at each lower level,
 * and all files except those of level 0 have at most most bytes. */
static void expect_layout(int level, const int files[], off_t most, off_t most_at_0)
{
    int ranks = 0;
    struct stat st;
    char root[256];
    if (check_rank != 0) return;
    snprintf(root, sizeof root, "%s/" ROOT_NAME, path);
    CHECK(stat(root, &st) == 0 && st.st_size <= most);
    CHECK_INT(level_of(ROOT_NAME, &ranks), level);
    CHECK_INT(ranks, check_ranks);
    for (int i = 0; i < level; i++)
        CHECK_INT(files_at(i, i ? most : most_at_0), files[i]);
    CHECK_INT(files_at(level, 0), 0);
}

/* ---- the trees ---- */

/* Ranks of comm read what `writers` ranks wrote, of about size bytes each: rank r of R
 * has the trees of r, r + R, ..., apart and in this order, and all in one. */
static void read_by(MPI_Comm comm, kvtree_gather from, int writers, int size)
{
    int rank, ranks, told = 0;
    char root[256];
    kvtree *apart = kvtree_new(), *together = kvtree_new(), *both = kvtree_new();
    from.comm = comm;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    CHECK_INT(kvtree_scatter_read(&from, &told, apart, &err), 0);
    CHECK_STR(err.text, "");
    CHECK_INT(told, writers);
    kvtree_elem *e = kvtree_elem_first(apart);
    for (int w = rank; w < writers; w += ranks, e = kvtree_elem_next(e)) {
        kvtree *expected = gather_tree(w, size);
        CHECK_INT(kvtree_elem_key_int(e), w);
        CHECK(same_tree(kvtree_elem_hash(e), expected));
        kvtree_merge(both, expected);
        kvtree_delete(&expected);
    }
    CHECK(e == NULL);
    snprintf(root, sizeof root, "%s/%s", path, from.name);
    CHECK_INT(kvtree_read_scatter(root, together, comm), from.top ? -EBADMSG : 0);
    if (!from.top) CHECK(same_tree(together, both));
    kvtree_delete(&apart);
    kvtree_delete(&together);
    kvtree_delete(&both);
}

/* All ranks write; all, and fewer, read. */
static void round_trip(const char *folder, size_t limit, int size, const char *top)
{
    kvtree_gather to;
    kvtree *tree = gather_tree(check_rank, size);
    begin(&to, folder, limit);
    to.top = top;
    CHECK_INT(kvtree_gather_write(&to, tree, &err), 0);
    const int readers_of[] = {1, 3, check_ranks};
    for (int i = 0; i < 3; i++) {
        int readers = readers_of[i] < check_ranks ? readers_of[i] : check_ranks;
        MPI_Comm some;
        MPI_Comm_split(MPI_COMM_WORLD, check_rank < readers ? 0 : MPI_UNDEFINED,
                       check_rank, &some);
        if (some == MPI_COMM_NULL) continue;
        read_by(some, to, check_ranks, size);
        MPI_Comm_free(&some);
    }
    kvtree *expected = gather_tree(check_rank, size);
    CHECK(same_tree(tree, expected)); /* it is unchanged */
    kvtree_delete(&expected);
    kvtree_delete(&tree);
    gather_finish(&to);
}

static void one_file(void)
{
    const int files[] = {1};
    round_trip("one", 0, 1000, NULL);
    expect_layout(1, files, 4096, 16384);
    round_trip("one with top", 0, 1000, "TOP");
    expect_layout(1, files, 4096, 16384);
}

/* If no two trees fit into a file, each rank writes one: with 8 ranks, 8 files, 2 that
 * point to them, and the root. */
static void three_levels(void)
{
    const int files[] = {check_ranks, 2};
    round_trip("three", 1, 300, NULL);
    expect_layout(check_ranks == 8 ? 2 : 1, files, 4096, 4096);
    round_trip("three with top", 1, 300, "TOP");
    expect_layout(check_ranks == 8 ? 2 : 1, files, 4096, 4096);
}

/* Ranks in groups: four trees of 500 bytes begin within the width of 2000. */
static void groups(void)
{
    int ranks = 0;
    round_trip("groups", 4128, 500, NULL);
    if (check_rank != 0) return;
    CHECK_INT(files_at(0, 4128), (check_ranks + 3) / 4);
    CHECK_INT(level_of("set.0.0.scr", &ranks), 0);
    CHECK_INT(ranks, check_ranks < 4 ? check_ranks : 4);
}

/* The default limit, for data that needs several files, and for more than one file takes.
 */
static void one_megabyte(void)
{
    const int own[] = {check_ranks};
    round_trip("300 KB", 0, 300000, NULL);
    if (check_rank == 0) {
        int files = files_at(0, 1 << 20);
        CHECK(files >= (check_ranks + 2) / 3 && files <= check_ranks / 2 + 1);
    }
    kvtree_gather to;
    kvtree *tree = gather_tree(check_rank, 3000000);
    begin(&to, "3 MB", 0);
    CHECK_INT(kvtree_gather_write(&to, tree, &err), 0);
    expect_layout(1, own, 4096, 3500000);
    read_by(MPI_COMM_WORLD, to, check_ranks, 3000000);
    kvtree_delete(&tree);
    gather_finish(&to);
}

/* One rank has a large tree and writes it alone; its neighbors share a file. */
static void one_large_tree(void)
{
    kvtree_gather to;
    int ranks = 0, large = check_ranks > 1 && check_rank == 1;
    kvtree *mine = gather_tree(check_rank, large ? 2000000 : 200), *got = kvtree_new();
    begin(&to, "large", 100000);
    CHECK_INT(kvtree_gather_write(&to, mine, &err), 0);
    if (check_rank == 0) {
        CHECK_INT(level_of("set.0.1.scr", &ranks), check_ranks > 1 ? 0 : -1);
        if (check_ranks > 1) CHECK_INT(ranks, 1);
        CHECK_INT(level_of("set.0.0.scr", &ranks), 0);
        CHECK_INT(ranks, check_ranks > 1 ? check_ranks - 1 : 1);
    }
    snprintf(path + strlen(path), 32, "/" ROOT_NAME);
    CHECK_INT(kvtree_read_scatter(path, got, MPI_COMM_WORLD), 0);
    CHECK(same_tree(mine, got));
    kvtree_delete(&mine);
    kvtree_delete(&got);
    gather_finish(&to);
}

/* The first half of the ranks writes, all read: the others get nothing. */
static void more_readers(size_t limit)
{
    kvtree_gather to;
    MPI_Comm some;
    int writers = (check_ranks + 1) / 2;
    begin(&to, limit ? "more, tiny" : "more", limit);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank < writers ? 0 : MPI_UNDEFINED, check_rank,
                   &some);
    if (some != MPI_COMM_NULL) {
        kvtree *tree = gather_tree(check_rank, 400);
        kvtree_gather half = to;
        half.comm = some;
        CHECK_INT(kvtree_gather_write(&half, tree, &err), 0);
        kvtree_delete(&tree);
        MPI_Comm_free(&some);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    read_by(MPI_COMM_WORLD, to, writers, 400);
    gather_finish(&to);
}

/* NULL and empty trees are listed as well. */
static void nothing_to_say(void)
{
    kvtree_gather to;
    int told = 0;
    kvtree *mine = check_rank % 2 ? kvtree_new() : NULL, *got = kvtree_new();
    begin(&to, "nothing", 0);
    CHECK_INT(kvtree_gather_write(&to, mine, &err), 0);
    CHECK_INT(kvtree_scatter_read(&to, &told, got, &err), 0);
    CHECK_INT(told, check_ranks);
    CHECK_INT(kvtree_size(got), 1);
    CHECK_INT(kvtree_elem_key_int(kvtree_elem_first(got)), check_rank);
    CHECK_INT(kvtree_size(kvtree_elem_hash(kvtree_elem_first(got))), 0);
    CHECK_INT(kvtree_scatter_read(&to, NULL, NULL, &err), 0); /* to check it */
    snprintf(path + strlen(path), 32, "/" ROOT_NAME);
    kvtree_unset_all(got);
    CHECK_INT(kvtree_read_scatter(path, got, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(got), 0);
    CHECK_INT(kvtree_read_scatter(path, NULL, MPI_COMM_WORLD), 0);
    kvtree_delete(&mine);
    kvtree_delete(&got);
    gather_finish(&to);
}

/* A reader keeps its earlier content, and the received trees are added. */
static void merged(void)
{
    kvtree_gather to;
    kvtree *mine = gather_tree(check_rank, 300), *got = kvtree_new();
    begin(&to, "merged", 0);
    CHECK_INT(kvtree_gather_write(&to, mine, &err), 0);
    if (check_rank % 2 == 0) kvtree_set_kv(got, "KEPT", "1");
    kvtree_set_kv_int(got, "RANK", check_rank);
    CHECK_INT(kvtree_scatter_read(&to, NULL, got, &err), 0);
    CHECK(kvtree_get_kv_int(got, "RANK", check_rank) != NULL);
    CHECK_INT(kvtree_size(got), check_rank % 2 ? 2 : 3);
    char rank[16];
    snprintf(rank, sizeof rank, "%d", check_rank);
    CHECK(same_tree(kvtree_get(got, rank), mine));
    kvtree_unset(got, rank);
    snprintf(path + strlen(path), 32, "/" ROOT_NAME);
    CHECK_INT(kvtree_read_scatter(path, got, MPI_COMM_WORLD), 0);
    CHECK_INT(kvtree_size(got), kvtree_size(mine) + (check_rank % 2 ? 1 : 2));
    kvtree_delete(&mine);
    kvtree_delete(&got);
    gather_finish(&to);
}

/* Each write replaces the set, even if files of a larger one remain. */
static void written_again(void)
{
    kvtree_gather to;
    begin(&to, "again", 1);
    for (int round = 0; round < 4; round++) {
        int size = round % 2 ? 100 : 900;
        kvtree *tree = gather_tree(check_rank, size);
        to.limit = round % 2 ? 0 : 1;
        CHECK_INT(kvtree_gather_write(&to, tree, &err), 0);
        read_by(MPI_COMM_WORLD, to, check_ranks, size);
        kvtree_delete(&tree);
    }
    if (check_rank == 0) CHECK_INT(files_at(0, 4096), check_ranks);
    gather_finish(&to);
}

/* A path, through a link, by another name; and after a move of the directory. */
static void by_path(void)
{
    kvtree_gather to;
    char root[256], moved[128];
    kvtree *mine = gather_tree(check_rank, 500), *got = kvtree_new();
    begin(&to, "path", 0);
    snprintf(moved, sizeof moved, "%s/link", gather_base);
    if (check_rank == 0) CHECK(symlink("path", moved) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(root, sizeof root, "%s/trees", moved);
    CHECK_INT(kvtree_write_gather(root, mine, MPI_COMM_WORLD), 0);
    snprintf(root, sizeof root, "%s/trees.0.0", path);
    CHECK(access(root, F_OK) == 0);
    snprintf(moved, sizeof moved, "%s/moved", gather_base);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) CHECK(rename(path, moved) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(root, sizeof root, "%s/trees", moved);
    CHECK_INT(kvtree_read_scatter(root, got, MPI_COMM_WORLD), 0);
    CHECK(same_tree(mine, got));
    kvtree_delete(&mine);
    kvtree_delete(&got);
    gather_finish(&to);
}

/* A set below the open directory names its files relative to that directory. */
static void below(void)
{
    kvtree_gather to;
    char file[256];
    kvtree *mine = gather_tree(check_rank, 500), *got = kvtree_new();
    begin(&to, "below", 1);
    to.name = "a/b/" ROOT_NAME;
    if (check_rank == 0)
        CHECK(mkdirat(to.dir, "a", 0700) == 0 && mkdirat(to.dir, "a/b", 0700) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(kvtree_gather_write(&to, mine, &err), 0);
    snprintf(file, sizeof file, "%s/a/b/set.0.%d.scr", path, check_rank);
    CHECK(access(file, F_OK) == 0);
    CHECK_INT(kvtree_scatter_read(&to, NULL, got, &err), 0);
    CHECK(same_tree(kvtree_elem_hash(kvtree_elem_first(got)), mine));
    kvtree_delete(&mine);
    kvtree_delete(&got);
    gather_finish(&to);
}

/* ---- a directory that is opened on demand ---- */

typedef struct opener {
    int dir, calls, rc;
} opener;

static int open_late(void *arg, int *dir, kvtree_error *cause)
{
    opener *o = arg;
    o->calls++;
    if (o->rc) {
        snprintf(cause->text, sizeof cause->text, "no directory today");
        return o->rc;
    }
    *dir = o->dir;
    return 0;
}

/* Only rank 0 if one file holds everything; with tiny files each rank, once. */
static void opened_late(void)
{
    for (int tiny = 0; tiny < 2; tiny++)
        for (int fails = 0; fails < 2; fails++) {
            kvtree_gather to;
            char name[16];
            snprintf(name, sizeof name, "late%d%d", tiny, fails);
            begin(&to, name, (size_t)tiny);
            opener o = {to.dir, 0, fails && check_rank == check_ranks - 1 ? -ENOENT : 0};
            kvtree *tree = gather_tree(check_rank, 300);
            to.open = open_late;
            to.arg = &o;
            if (check_rank > 0) to.dir = -1;
            int fail = fails && tiny && check_ranks > 1;
            gather_expect(kvtree_gather_write(&to, tree, &err), fail ? -ENOENT : 0,
                          err.text, fail ? "no directory today" : "");
            CHECK_INT(o.calls, tiny && check_rank > 0);
            kvtree_delete(&tree);
            to.dir = o.dir;
            if (!fail) read_by(MPI_COMM_WORLD, to, check_ranks, 300);
            gather_finish(&to);
        }
}

static void own_names(void)
{
    CHECK_INT(kvtree_gather_owns("a/set.scr", "a/set.scr"), 1);
    CHECK_INT(kvtree_gather_owns("a/set.scr", "a/set.0.12.scr"), 1);
    CHECK_INT(kvtree_gather_owns("a/set.scr", "a/sets"), 0);
    CHECK_INT(kvtree_gather_owns("a/set.scr", "a/other.0.0.scr"), 0);
    CHECK_INT(kvtree_gather_owns("set", "settle"), 0);
    CHECK_INT(kvtree_gather_owns("set", "set"), 1);
    CHECK_INT(kvtree_gather_owns(NULL, "set"), 0);
    CHECK_INT(kvtree_gather_owns("set", NULL), 0);
}

/* Arguments that would end the program or wait forever. */
static void refused_places(void)
{
    MPI_Comm half, both;
    kvtree *tree = kvtree_new();
    CHECK_INT(kvtree_gather_write(NULL, tree, &err), -EINVAL);
    CHECK_INT(kvtree_scatter_read(NULL, NULL, tree, &err), -EINVAL);
    if (check_ranks > 1) {
        int side = check_rank % 2;
        MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 1, &both);
        CHECK_INT(kvtree_write_gather("both.scr", tree, both), -EINVAL);
        CHECK_INT(kvtree_read_scatter("both.scr", tree, both), -EINVAL);
        MPI_Comm_free(&both);
        MPI_Comm_free(&half);
    }
    kvtree_delete(&tree);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(gather_base);
    one_file();
    three_levels();
    groups();
    one_megabyte();
    one_large_tree();
    more_readers(0);
    more_readers(1);
    nothing_to_say();
    merged();
    written_again();
    by_path();
    below();
    opened_late();
    own_names();
    refused_places();
    check_remove(gather_base);
    return check_end();
}
