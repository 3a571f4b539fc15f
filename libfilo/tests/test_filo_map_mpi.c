/* SPDX-License-Identifier: BSD-3-Clause */
/* The map as a tree: the number of levels and files for a limit, and reading by any
 * number of ranks. */
#include "lists.h"

#include <kvtree/kvtree_util.h>
#include <stdbool.h>

static char folder[64], prefix[128];
static filo_error err;

static void begin(const char *name)
{
    err.text[0] = 0;
    snprintf(prefix, sizeof prefix, "%s/%s", folder, name);
}

/* On rank 0: LEVEL and RANKS of a file of the map; -1 if it does not exist. */
static int level_of(const char *name, int *ranks)
{
    char path[256];
    int level = -1;
    kvtree *tree = kvtree_new();
    snprintf(path, sizeof path, "%s/.scr/%s", prefix, name);
    if (kvtree_read_file(path, tree) == 0) {
        kvtree *body = kvtree_get(tree, "RANK2FILE");
        if (!body) body = tree;
        CHECK_INT(kvtree_util_get_int(body, "LEVEL", &level), 0);
        CHECK_INT(kvtree_util_get_int(body, "RANKS", ranks), 0);
    }
    kvtree_delete(&tree);
    return level;
}

/* On rank 0: number of files of the map at level; the largest must not exceed most. */
static int files_at(int level, size_t most)
{
    int count = 0;
    for (int rank = 0; rank < check_ranks; rank++) {
        char path[256];
        struct stat st;
        snprintf(path, sizeof path, "%s/.scr/rank2file.%d.%d.scr", prefix, level, rank);
        if (stat(path, &st) != 0) continue;
        CHECK((size_t)st.st_size <= most);
        count++;
    }
    return count;
}

/* Ranks of comm read the map that all ranks wrote; checks the files that each gets. */
static void read_by(MPI_Comm comm, const list *l)
{
    int ranks = 0, count = 0, rank;
    list mine = *l;
    filo_file *files = NULL;
    MPI_Comm_rank(comm, &rank);
    if (rank != check_rank) list_init(&mine, folder, rank, l->count);
    CHECK_INT(filo_read_map(comm, prefix, NULL, &ranks, &count, &files, NULL, &err), 0);
    CHECK_INT(ranks, check_ranks);
    CHECK_INT(count, mine.count);
    for (int f = 0; f < count; f++) {
        CHECK_STR(files[f].name, mine.name[f]);
        CHECK_INT(files[f].size, mine.files[f].size);
    }
    filo_files_free(count, files);
}

static void test_levels(size_t limit, const char *name, int most_levels)
{
    list l;
    int ranks = 0, level = 0;
    filo_options options = {.map_limit = limit};
    begin(name);
    list_create(&l, folder, check_rank, 2);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options, &err),
              0);
    if (check_rank == 0) {
        level = level_of("rank2file.scr", &ranks);
        CHECK_INT(ranks, check_ranks);
        CHECK(level >= 1 && level <= most_levels);
        for (int i = 1; i < level; i++)
            CHECK(files_at(i, 4096) > 1);
        CHECK_INT(files_at(level, 0), 0);
        CHECK_INT(level_of("rank2file.0.0.scr", &ranks), 0);
    }
    read_by(MPI_COMM_WORLD, &l);
    list_unlink(&l);
}

/* With a tiny limit every rank writes a file of its own, and 8 ranks need three levels:
 * 8 files, 2 files, the root. */
static void test_three_levels(void)
{
    int ranks;
    test_levels(1, "tiny", 2);
    if (check_rank != 0) return;
    CHECK_INT(files_at(0, 4096), check_ranks);
    if (check_ranks < 8) return;
    CHECK_INT(level_of("rank2file.scr", &ranks), 2);
    CHECK_INT(files_at(1, 4096), 2);
    CHECK_INT(level_of("rank2file.1.0.scr", &ranks), 1);
    CHECK(ranks < check_ranks);
}

/* The limit holds for every file whose entries are small enough, and files are well
 * filled: at most twice as many, plus one, as the bytes need. */
static void test_limit_holds(void)
{
    const size_t limit = 2000;
    begin("limit");
    list l;
    filo_options options = {.map_limit = limit};
    list_create(&l, folder, check_rank, 3);
    for (int f = 0; f < 3; f++) /* about 200 bytes each */
        memset(l.name[f] + strlen(l.name[f]), 'x', 150 - (size_t)f);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options, &err),
              0);
    if (check_rank == 0) {
        int files = files_at(0, limit);
        CHECK(files <= 1 + 2 * check_ranks * 700 / (int)limit);
        CHECK(check_ranks < 8 || files > 1);
    }
    read_by(MPI_COMM_WORLD, &l);
    list_unlink(&l);
}

/* One rank's entry is larger than the limit: a file of its own, the others share. */
static void test_large_entry(void)
{
    list l;
    begin("large");
    filo_options options = {.map_limit = 1000};
    list_create(&l, folder, check_rank, check_rank == 1 ? 6 : 1);
    if (check_rank == 1)
        for (int f = 0; f < 6; f++)
            memset(l.name[f] + strlen(l.name[f]), 'y', 200);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options, &err),
              0);
    if (check_rank == 0) {
        int ranks = 0;
        int own = level_of("rank2file.0.1.scr", &ranks);
        CHECK_INT(own, check_ranks > 1 ? 0 : -1);
        if (check_ranks > 1) CHECK_INT(ranks, 1);
        /* the neighbors of rank 1 share one file, although rank 1 is between them */
        CHECK_INT(level_of("rank2file.0.0.scr", &ranks), 0);
        CHECK(check_ranks > 4 || ranks == (check_ranks > 1 ? check_ranks - 1 : 1));
    }
    read_by(MPI_COMM_WORLD, &l);
    list_unlink(&l);
}

/* All ranks write; the first half of them, or one, reads. */
static void test_fewer_readers(size_t limit)
{
    list l;
    MPI_Comm some;
    filo_options options = {.map_limit = limit};
    begin(limit ? "fewer tiny" : "fewer");
    list_create(&l, folder, check_rank, 2);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options, &err),
              0);
    for (int readers = 1; readers <= check_ranks; readers = 2 * readers + 1) {
        MPI_Comm_split(MPI_COMM_WORLD, check_rank < readers ? 0 : MPI_UNDEFINED,
                       check_rank, &some);
        if (some == MPI_COMM_NULL) continue;
        read_by(some, &l);
        MPI_Comm_free(&some);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    list_unlink(&l);
}

/* The first half of the ranks writes; all read, and the others have no files. */
static void test_more_readers(size_t limit)
{
    list l;
    MPI_Comm some;
    int ranks = 0, count = 77, writers = (check_ranks + 1) / 2;
    filo_file *files = NULL;
    filo_options options = {.map_limit = limit};
    begin(limit ? "more tiny" : "more");
    int writes = check_rank < writers;
    list_create(&l, folder, check_rank, writes ? 2 : 0);
    MPI_Comm_split(MPI_COMM_WORLD, writes ? 0 : MPI_UNDEFINED, check_rank, &some);
    if (writes) {
        CHECK_INT(filo_flush(some, prefix, NULL, l.count, l.files, &options, &err), 0);
        MPI_Comm_free(&some);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err),
        0);
    CHECK_INT(ranks, writers);
    list_adopt(&l, count, files);
    filo_files_free(count, files);
    list_unlink(&l);
}

/* No rank has any file: the map exists and lists none. */
static void test_no_files(void)
{
    int ranks = 0, count = 77;
    filo_file *files = NULL;
    begin("none");
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, 0, NULL, NULL, &err), 0);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err),
        0);
    CHECK_INT(ranks, check_ranks);
    CHECK_INT(count, 0);
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, count, files, NULL, &err), 0);
    filo_files_free(count, files);
}

/* The smaller map is valid, although files of a larger map are still there. */
static void test_map_is_replaced(void)
{
    list l;
    filo_options tiny = {.map_limit = 1};
    begin("replaced");
    list_create(&l, folder, check_rank, 3);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &tiny, &err), 0);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, 1, l.files, NULL, &err), 0);
    list one = l;
    one.count = 1;
    read_by(MPI_COMM_WORLD, &one);
    list_unlink(&l);
}

/* ---- the files of another number of ranks ---- */

enum { FILES = 2, OTHERS_MAX = 64 };

/* The process that has the files of a rank. */
static int holder_of(int rank)
{
    return (rank * 5 + 3) % check_ranks;
}

/* The files of all ranks that this process has; rank 2 has none. */
static int list_others(int ranks, list lists[OTHERS_MAX], filo_file files[])
{
    int count = 0;
    for (int r = 0; r < ranks; r++) {
        if (holder_of(r) != check_rank) continue;
        list_create(&lists[r], folder, r, r == 2 ? 0 : FILES);
        for (int f = 0; f < lists[r].count; f++) {
            files[count] = lists[r].files[f];
            files[count++].rank = r;
        }
    }
    return count;
}

/* Process p gets the files of ranks p, p + size, ... */
static void read_share(int ranks, bool fetched)
{
    int told = 0, count = 0, wanted = 0;
    filo_file *files = NULL;
    filo_options options = {.every = 1};
    CHECK_INT(filo_read_map(MPI_COMM_WORLD, prefix, NULL, &told, &count, &files, &options,
                            &err),
              0);
    CHECK_INT(told, ranks);
    for (int r = check_rank; r < ranks; r += check_ranks) {
        list l;
        list_init(&l, folder, r, r == 2 ? 0 : FILES);
        for (int f = 0; f < l.count; f++, wanted++) {
            CHECK(wanted < count);
            if (wanted >= count) continue;
            CHECK_STR(files[wanted].name, l.name[f]);
            CHECK_INT(files[wanted].size, l.files[f].size);
            CHECK_INT(files[wanted].rank, r);
            files[wanted].local = strdup(l.local[f]);
        }
    }
    CHECK_INT(count, wanted);
    if (fetched) {
        options = (filo_options){.checksum = 1};
        CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, count, files, &options, &err), 0);
        for (int i = 0; i < count; i++)
            CHECK(list_file_is_good(files[i].local, files[i].rank, i % FILES));
    }
    filo_files_free(count, files);
}

/* A map of more or fewer ranks than processes, with and without the files. */
static void test_other_ranks(int ranks, uint64_t container)
{
    static list lists[OTHERS_MAX];
    static filo_file files[OTHERS_MAX * FILES];
    char name[64];
    filo_options options = {
        .ranks = ranks, .checksum = 1, .container = container, .map_limit = 400};
    snprintf(name, sizeof name, "others-%d-%d", ranks, container != 0);
    begin(name);
    MPI_Barrier(MPI_COMM_WORLD); /* the files of the last test are gone */
    int count = list_others(ranks, lists, files);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, count, files, &options, &err), 0);
    for (int r = 0; r < ranks; r++)
        if (holder_of(r) == check_rank) list_unlink(&lists[r]);
    MPI_Barrier(MPI_COMM_WORLD);
    read_share(ranks, true);
    strcat(name, "-alone");
    begin(name);
    if (check_rank == 0) CHECK_INT(mkdir(prefix, 0700), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(filo_write_map(MPI_COMM_WORLD, prefix, NULL, count, files, &options, &err),
              0);
    read_share(ranks, false);
}

static void test_others_refused(void)
{
    char name[16], same[] = "the same";
    filo_file file = {.name = name, .rank = 3};
    filo_options options = {.ranks = 3};
    snprintf(name, sizeof name, "%d", check_rank);
    begin("refused");
    CHECK_INT(filo_write_map(MPI_COMM_WORLD, folder, NULL, 1, &file, &options, &err),
              -EINVAL);
    CHECK(strstr(err.text, "rank 3 of 3"));
    file.rank = -1;
    CHECK_INT(filo_write_map(MPI_COMM_WORLD, folder, NULL, 1, &file, &options, &err),
              -EINVAL);
    file.rank = 0;
    options.ranks = -1;
    CHECK_INT(filo_write_map(MPI_COMM_WORLD, folder, NULL, 1, &file, &options, &err),
              -EINVAL);
    options.ranks = 3 + (check_rank == 1);
    CHECK_INT(filo_write_map(MPI_COMM_WORLD, folder, NULL, 1, &file, &options, &err),
              check_ranks > 1 ? -EINVAL : 0);
    options.ranks = 3;
    file.name = same;
    CHECK_INT(filo_write_map(MPI_COMM_WORLD, folder, NULL, 1, &file, &options, &err),
              check_ranks > 1 ? -EEXIST : 0);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(folder);
    test_levels(0, "default", 1);
    test_three_levels();
    test_levels(400, "small", 2);
    test_limit_holds();
    test_large_entry();
    test_fewer_readers(0);
    test_fewer_readers(1);
    test_more_readers(0);
    test_more_readers(1);
    test_no_files();
    test_map_is_replaced();
    static const int others[] = {1, 3, 7, 30};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        test_other_ranks(others[i], 0);
        test_other_ranks(others[i], 100000);
    }
    test_others_refused();
    check_remove(folder);
    return check_end();
}
