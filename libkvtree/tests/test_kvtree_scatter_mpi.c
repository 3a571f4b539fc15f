/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of gathered trees that somebody made up or broke: every rank gets -EBADMSG with
 * the name of the file, nobody waits, nothing is given out. Each case starts from a good
 * set of eight ranks in two files,
 *
 *     set.scr          LEVEL 2   reader 0
 *     set.1.0.scr      LEVEL 1   readers 0, 4
 *     set.0.0.scr      LEVEL 0   ranks 0 to 3
 *     set.0.4.scr      LEVEL 0   ranks 4 to 7
 *
 * and changes one thing in the trees before they are written. */
#include "gather.h"

enum { ROOT, MIDDLE, LOW, HIGH, FILES };

static const char *const names[FILES] = {ROOT_NAME, "set.1.0.scr", "set.0.0.scr",
                                         "set.0.4.scr"};

typedef struct set {
    kvtree *tree[FILES];
} set;

static void add_pointer(kvtree *tree, int reader, const char *name)
{
    kvtree *pointer = kvtree_set_kv_int(tree, "RANK", reader);
    kvtree_util_set_int(pointer, "OFFSET", 0);
    kvtree_util_set_str(pointer, "FILE", name);
}

static kvtree *make_upper(int level)
{
    kvtree *tree = kvtree_new();
    kvtree_util_set_int(tree, "LEVEL", level);
    kvtree_util_set_int(tree, "RANKS", 8);
    return tree;
}

static kvtree *make_lower(int first)
{
    kvtree *tree = kvtree_new(), *body = kvtree_set(tree, "TOP", NULL);
    kvtree_util_set_int(body, "LEVEL", 0);
    kvtree_util_set_int(body, "RANKS", 4);
    for (int rank = first; rank < first + 4; rank++) {
        kvtree *tree_of_rank = kvtree_set_kv_int(body, "RANK", rank);
        kvtree_util_set_int(tree_of_rank, "MINE", rank);
    }
    return tree;
}

static void make_good(set *m)
{
    m->tree[ROOT] = make_upper(2);
    add_pointer(m->tree[ROOT], 0, names[MIDDLE]);
    m->tree[MIDDLE] = make_upper(1);
    add_pointer(m->tree[MIDDLE], 0, names[LOW]);
    add_pointer(m->tree[MIDDLE], 4, names[HIGH]);
    m->tree[LOW] = make_lower(0);
    m->tree[HIGH] = make_lower(4);
}

static kvtree *body_of(const set *m, int file)
{
    return file >= LOW ? kvtree_get(m->tree[file], "TOP") : m->tree[file];
}

/* The only pointer of the root, the first of the middle. */
static kvtree *pointer_of(const set *m, int file)
{
    return kvtree_get_kv_int(m->tree[file], "RANK", 0);
}

/* ---- one change each ---- */

static void cycle_to_root(set *m)
{
    kvtree_util_set_str(pointer_of(m, MIDDLE), "FILE", names[ROOT]);
}

static void cycle_to_itself(set *m)
{
    kvtree_util_set_str(pointer_of(m, ROOT), "FILE", names[ROOT]);
}

static void level_skipped(set *m)
{
    kvtree_util_set_str(pointer_of(m, ROOT), "FILE", names[LOW]);
}

static void level_huge(set *m)
{
    kvtree_util_set_int(m->tree[ROOT], "LEVEL", 2000000000);
}

static void level_of_root_zero(set *m)
{
    kvtree_util_set_int(m->tree[ROOT], "LEVEL", 0);
}

static void level_negative(set *m)
{
    kvtree_util_set_int(m->tree[ROOT], "LEVEL", -1);
}

static void level_missing(set *m)
{
    kvtree_unset(m->tree[MIDDLE], "LEVEL");
}

static void level_no_number(set *m)
{
    kvtree_util_set_str(body_of(m, HIGH), "LEVEL", "zero");
}

static void pointer_leads_out(set *m)
{
    kvtree_util_set_str(pointer_of(m, MIDDLE), "FILE", "../set.scr");
}

static void pointer_absolute(set *m)
{
    kvtree_util_set_str(pointer_of(m, ROOT), "FILE", "/tmp/set.1.0.scr");
}

static void pointer_empty(set *m)
{
    kvtree_util_set_str(pointer_of(m, ROOT), "FILE", "");
}

static void pointer_to_folder(set *m)
{
    kvtree_util_set_str(pointer_of(m, ROOT), "FILE", "folder");
}

static void pointer_without_file(set *m)
{
    kvtree_unset(pointer_of(m, MIDDLE), "FILE");
}

static void offset_beyond(set *m)
{
    kvtree_util_set_bytecount(pointer_of(m, MIDDLE), "OFFSET", 1ul << 40);
}

static void offset_negative(set *m)
{
    kvtree_util_set_int(pointer_of(m, ROOT), "OFFSET", -1);
}

static void offset_missing(set *m)
{
    kvtree_unset(pointer_of(m, ROOT), "OFFSET");
}

/* Rank 2 in both lower files, in place of rank 7, so that all counts are right. */
static void rank_twice(set *m)
{
    kvtree *body = body_of(m, HIGH);
    kvtree_unset_kv_int(body, "RANK", 7);
    kvtree_set_kv_int(body, "RANK", 2);
}

static void rank_twice_spelled_apart(set *m)
{
    kvtree *body = body_of(m, HIGH);
    kvtree_unset_kv_int(body, "RANK", 7);
    kvtree_set_kv(body, "RANK", "06");
}

static void file_named_twice(set *m)
{
    kvtree_util_set_str(pointer_of(m, MIDDLE), "FILE", names[HIGH]);
}

static void rank_beyond(set *m)
{
    kvtree *body = body_of(m, HIGH);
    kvtree_unset_kv_int(body, "RANK", 7);
    kvtree_set_kv_int(body, "RANK", 8);
}

static void rank_negative(set *m)
{
    kvtree *body = body_of(m, LOW);
    kvtree_unset_kv_int(body, "RANK", 3);
    kvtree_set_kv_int(body, "RANK", -3);
}

static void rank_no_number(set *m)
{
    kvtree *body = body_of(m, LOW);
    kvtree_unset_kv_int(body, "RANK", 3);
    kvtree_set_kv(body, "RANK", "three");
}

static void reader_beyond(set *m)
{
    add_pointer(m->tree[MIDDLE], 99999999, names[LOW]);
}

static void lower_missing(set *m)
{
    kvtree_delete(&m->tree[HIGH]);
}

static void middle_missing(set *m)
{
    kvtree_delete(&m->tree[MIDDLE]);
}

static void ranks_too_many(set *m)
{
    kvtree_util_set_int(body_of(m, HIGH), "RANKS", 5);
}

static void ranks_of_root_wrong(set *m)
{
    kvtree_util_set_int(m->tree[ROOT], "RANKS", 9);
}

static void ranks_of_all_huge(set *m)
{
    kvtree_util_set_int(m->tree[ROOT], "RANKS", 2147483647);
    kvtree_util_set_int(m->tree[MIDDLE], "RANKS", 2147483647);
}

static void ranks_beyond_int(set *m)
{
    kvtree_util_set_str(m->tree[ROOT], "RANKS", "99999999999999999999");
}

static void ranks_missing(set *m)
{
    kvtree_unset(body_of(m, LOW), "RANKS");
}

static void no_items(set *m)
{
    kvtree_unset(m->tree[ROOT], "RANK");
}

static void no_top_key(set *m)
{
    kvtree *body = kvtree_extract(m->tree[LOW], "TOP");
    kvtree_delete(&m->tree[LOW]);
    m->tree[LOW] = body;
}

/* ---- running them ---- */

static void write_tree(const kvtree_gather *from, const char *name, kvtree **tree)
{
    if (*tree) CHECK_INT(kvtree_file_write(from->dir, name, *tree, NULL), 0);
    kvtree_delete(tree);
}

/* A good set with one change in the folder that from becomes. */
static void begin(kvtree_gather *from, const char *folder, void (*change)(set *))
{
    set m;
    char path[128];
    gather_begin(from, path, folder);
    from->top = "TOP";
    if (check_rank == 0) {
        CHECK(mkdirat(from->dir, "folder", 0700) == 0);
        make_good(&m);
        if (change) change(&m);
        for (int i = 0; i < FILES; i++)
            write_tree(from, names[i], &m.tree[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Reads into a tree that held something on every other rank. */
static void expect_refused(const kvtree_gather *from, int code, const char *text)
{
    int ranks = 77;
    char err[KVTREE_ERROR_SIZE] = "";
    kvtree *got = kvtree_new();
    if (check_rank % 2) kvtree_set_kv(got, "KEPT", "1");
    gather_expect(kvtree_scatter_read(from, &ranks, got, err), code, err, text);
    CHECK_INT(ranks, 77);
    CHECK_INT(kvtree_size(got), check_rank % 2);
    kvtree_delete(&got);
}

static const struct hostile {
    void (*change)(set *);
    const char *text;
} cases[] = {
    {cycle_to_root, "set.scr: no valid LEVEL"},
    {cycle_to_itself, "set.scr: LEVEL is 2, not 1"},
    {level_skipped, "set.0.0.scr: no valid LEVEL"},
    {level_huge, "set.scr: LEVEL 2000000000 cannot be that of a root"},
    {level_of_root_zero, "set.scr: LEVEL 0 cannot be that of a root"},
    {level_negative, "set.scr: LEVEL -1 cannot be"},
    {level_missing, "set.1.0.scr: no valid LEVEL"},
    {level_no_number, "set.0.4.scr: no valid LEVEL"},
    {pointer_leads_out, "set.1.0.scr: reader 0: file name \"../set.scr\""},
    {pointer_absolute, "set.scr: reader 0: file name \"/tmp/set.1.0.scr\" is not"},
    {pointer_empty, "set.scr: reader 0: empty file name"},
    {pointer_to_folder, "read folder: folder is not a regular file"},
    {pointer_without_file, "set.1.0.scr: reader 0 has no FILE"},
    {offset_beyond, "set.1.0.scr: the OFFSET of reader 0 is not 0"},
    {offset_negative, "set.scr: the OFFSET of reader 0 is not 0"},
    {offset_missing, "set.scr: the OFFSET of reader 0 is not 0"},
    {rank_twice, "scr: rank 2 is listed twice"},
    {rank_twice_spelled_apart, "set.0.4.scr: \"06\" is no rank"},
    {file_named_twice, "set."},
    {file_named_twice, "is listed twice"},
    {rank_beyond, "set.0.4.scr: rank 8 of only 8 is listed"},
    {rank_negative, "set.0.0.scr: \"-3\" is no rank"},
    {rank_no_number, "set.0.0.scr: \"three\" is no rank"},
    {reader_beyond, "set.1.0.scr: rank 99999999 of only 8 is listed"},
    {lower_missing, "set.0.4.scr: No such file"},
    {middle_missing, "set.1.0.scr: No such file"},
    {ranks_too_many, "set.0.4.scr: RANKS is 5, but 4 are listed"},
    {ranks_of_root_wrong, "set.scr is of 9 ranks, but its files of level 1 of 8"},
    {ranks_of_all_huge, "is of 2147483647 ranks, but its files of level 0 of 8"},
    {ranks_beyond_int, "set.scr: no valid RANKS"},
    {ranks_missing, "set.0.0.scr: no valid RANKS"},
    {no_items, "set.scr: nothing under RANK"},
    {no_top_key, "set.0.0.scr: no valid LEVEL"},
};

static void changed_sets(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char folder[32];
        kvtree_gather from;
        snprintf(folder, sizeof folder, "case%zu", i);
        begin(&from, folder, cases[i].change);
        expect_refused(&from, -EBADMSG, cases[i].text);
        gather_finish(&from);
    }
}

/* The set that the cases start from is good, for any number of readers. */
static void unchanged_set(void)
{
    int ranks = 0;
    kvtree_gather from;
    char err[KVTREE_ERROR_SIZE] = "";
    kvtree *got = kvtree_new();
    begin(&from, "good", NULL);
    CHECK_INT(kvtree_scatter_read(&from, &ranks, got, err), 0);
    CHECK_STR(err, "");
    CHECK_INT(ranks, 8);
    CHECK_INT(kvtree_size(got), 8 / check_ranks);
    for (kvtree_elem *e = kvtree_elem_first(got); e; e = kvtree_elem_next(e)) {
        CHECK_INT(kvtree_elem_key_int(e) % check_ranks, check_rank);
        CHECK(kvtree_get_kv(kvtree_elem_hash(e), "MINE", kvtree_elem_key(e)) != NULL);
    }
    kvtree_delete(&got);
    gather_finish(&from);
}

static void missing_root(void)
{
    kvtree_gather from;
    char path[128];
    kvtree *got = kvtree_new();
    begin(&from, "missing", NULL);
    if (check_rank == 0) CHECK(unlinkat(from.dir, names[ROOT], 0) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_refused(&from, -ENOENT, "set.scr: No such file");
    snprintf(path, sizeof path, "%s/missing/set.scr", gather_base);
    CHECK_INT(kvtree_read_scatter(path, got, MPI_COMM_WORLD), -ENOENT);
    snprintf(path, sizeof path, "%s/no such folder/set.scr", gather_base);
    CHECK_INT(kvtree_read_scatter(path, got, MPI_COMM_WORLD), -ENOENT);
    CHECK_INT(kvtree_size(got), 0);
    kvtree_delete(&got);
    gather_finish(&from);
}

/* From the root down to level 0 one file each, as deep as it is believed. */
static void chain(int levels, int code, const char *text)
{
    kvtree_gather from;
    char folder[32], name[32], lower[32];
    kvtree *got = kvtree_new();
    char err[KVTREE_ERROR_SIZE] = "";
    snprintf(folder, sizeof folder, "chain%d", levels);
    begin(&from, folder, NULL);
    for (int level = 0; level <= levels && check_rank == 0; level++) {
        kvtree *tree = level ? make_upper(level) : make_lower(0);
        if (level == 0) kvtree_util_set_int(kvtree_get(tree, "TOP"), "RANKS", 4);
        if (level) kvtree_util_set_int(tree, "RANKS", 4);
        snprintf(name, sizeof name, "chain.%d", level);
        snprintf(lower, sizeof lower, "chain.%d", level - 1);
        /* each reader is another rank than that of the level above */
        if (level) add_pointer(tree, level % 4, lower);
        write_tree(&from, level == levels ? names[ROOT] : name, &tree);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (code) {
        expect_refused(&from, code, text);
    } else {
        CHECK_INT(kvtree_scatter_read(&from, NULL, got, err), 0);
        CHECK_INT(kvtree_size(got), check_ranks > 4 ? check_rank < 4 : 4 / check_ranks);
    }
    kvtree_delete(&got);
    gather_finish(&from);
}

/* Bytes of the files themselves: cut off, altered, something else, a link, far too long.
 */
static void harm_file(const kvtree_gather *from, const char *name, int how)
{
    int fd = openat(from->dir, name, O_RDWR);
    CHECK(fd >= 0);
    if (how == 0) CHECK(ftruncate(fd, 30) == 0);
    if (how == 1) CHECK(pwrite(fd, "\xff", 1, 50) == 1);
    if (how == 2) CHECK(pwrite(fd, "not a tree", 10, 0) == 10);
    if (how == 3)
        CHECK(renameat(from->dir, name, from->dir, "away") == 0 &&
              symlinkat("away", from->dir, name) == 0);
    if (how == 4) CHECK(ftruncate(fd, (off_t)1 << 40) == 0);
    if (how == 5) CHECK(ftruncate(fd, 0) == 0);
    close(fd);
}

/* A size field of 1 TB, and as many bytes that take no place: refused by its size. */
static void inflate_file(const kvtree_gather *from, const char *name)
{
    static const char size[8] = {0, 0, 1, 0, 0, 0, 0, 0};
    int fd = openat(from->dir, name, O_RDWR);
    CHECK(fd >= 0 && pwrite(fd, size, sizeof size, 8) == sizeof size);
    CHECK(ftruncate(fd, (off_t)1 << 40) == 0);
    close(fd);
}

static void harmed_files(void)
{
    for (int file = 0; file < FILES; file++)
        for (int how = 0; how < 7; how++) {
            char folder[32];
            kvtree_gather from;
            snprintf(folder, sizeof folder, "harm%d.%d", file, how);
            begin(&from, folder, NULL);
            if (check_rank == 0 && how < 6) harm_file(&from, names[file], how);
            if (check_rank == 0 && how == 6) inflate_file(&from, names[file]);
            MPI_Barrier(MPI_COMM_WORLD);
            expect_refused(&from, -EBADMSG, names[file]);
            gather_finish(&from);
        }
}

static void refused_arguments(void)
{
    static const char *const bad[] = {NULL, "", "../set.scr", "/tmp/set.scr", "a//b"};
    kvtree_gather from;
    begin(&from, "arguments", NULL);
    for (int i = 0; i < 5; i++) {
        from.name = check_rank == check_ranks - 1 ? bad[i] : names[ROOT];
        expect_refused(&from, -EINVAL, "file name");
    }
    from.name = names[ROOT];
    from.top = NULL;
    expect_refused(&from, -EBADMSG, "set.0.");
    close(from.dir);
    from.dir = -1;
    expect_refused(&from, -EBADF, "set.scr");
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(gather_base);
    unchanged_set();
    missing_root();
    changed_sets();
    chain(5, 0, "");
    chain(32, 0, "");
    chain(33, -EBADMSG, "set.scr: LEVEL 33 cannot be that of a root");
    harmed_files();
    refused_arguments();
    check_remove(gather_base);
    return check_end();
}
