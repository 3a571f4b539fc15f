/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps that somebody made up or broke: every rank gets FILO_DAMAGED with the name of the
 * file, nobody waits, nothing is given out. That all kinds of damage are noticed is
 * tested in libkvtree (test_kvtree_scatter_mpi.c), which reads the files; here is what
 * only libfilo knows, and some of the rest. Each case starts from a good map of eight
 * ranks in two files,
 *
 *     .scr/rank2file.scr          LEVEL 2   reader 0
 *     .scr/rank2file.1.0.scr      LEVEL 1   readers 0, 4
 *     .scr/rank2file.0.0.scr      LEVEL 0   ranks 0 to 3
 *     .scr/rank2file.0.4.scr      LEVEL 0   ranks 4 to 7
 *
 * and changes one thing in the trees before they are written. */
#include "lists.h"

#include <kvtree/kvtree_util.h>

enum { ROOT, MIDDLE, LOW, HIGH, FILES };

static const char *const names[FILES] = {
    ".scr/rank2file.scr",
    ".scr/rank2file.1.0.scr",
    ".scr/rank2file.0.0.scr",
    ".scr/rank2file.0.4.scr",
};

static char folder[64];

typedef struct maps {
    kvtree *tree[FILES];
} maps;

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
    kvtree *tree = kvtree_new(), *body = kvtree_set(tree, "RANK2FILE", NULL);
    kvtree_util_set_int(body, "LEVEL", 0);
    kvtree_util_set_int(body, "RANKS", 4);
    for (int rank = first; rank < first + 4; rank++) {
        char name[32];
        snprintf(name, sizeof name, "rank_%d.ckpt", rank);
        kvtree *file = kvtree_set_kv(kvtree_set_kv_int(body, "RANK", rank), "FILE", name);
        kvtree_util_set_bytecount(file, "SIZE", (unsigned long)rank);
        kvtree_util_set_crc32(file, "CRC", 0x1234);
    }
    return tree;
}

static void make_good(maps *m)
{
    m->tree[ROOT] = make_upper(2);
    add_pointer(m->tree[ROOT], 0, names[MIDDLE]);
    m->tree[MIDDLE] = make_upper(1);
    add_pointer(m->tree[MIDDLE], 0, names[LOW]);
    add_pointer(m->tree[MIDDLE], 4, names[HIGH]);
    m->tree[LOW] = make_lower(0);
    m->tree[HIGH] = make_lower(4);
}

static kvtree *body_of(const maps *m, int file)
{
    return file >= LOW ? kvtree_get(m->tree[file], "RANK2FILE") : m->tree[file];
}

/* The only pointer of the root, the first of the middle, the file of rank 5. */
static kvtree *pointer_of(const maps *m, int file)
{
    return kvtree_get_kv_int(m->tree[file], "RANK", 0);
}

static kvtree *file_of_5(const maps *m)
{
    return kvtree_getf(m->tree[HIGH], "RANK2FILE RANK %d FILE %s", 5, "rank_5.ckpt");
}

/* ---- one change each ---- */

static void cycle_to_root(maps *m)
{
    kvtree_util_set_str(pointer_of(m, MIDDLE), "FILE", names[ROOT]);
}

static void level_huge(maps *m)
{
    kvtree_util_set_int(m->tree[ROOT], "LEVEL", 2000000000);
}

static void name_leads_out(maps *m)
{
    kvtree_util_set_str(file_of_5(m), "SIZE", "0");
    kvtree *entry = kvtree_getf(m->tree[HIGH], "RANK2FILE RANK %d FILE", 5);
    kvtree_util_set_bytecount(kvtree_set(entry, "../../etc/passwd", NULL), "SIZE", 1);
}

static void name_absolute(maps *m)
{
    kvtree *entry = kvtree_getf(m->tree[HIGH], "RANK2FILE RANK %d FILE", 5);
    kvtree_util_set_bytecount(kvtree_set(entry, "/etc/passwd", NULL), "SIZE", 1);
}

static void pointer_leads_out(maps *m)
{
    kvtree_util_set_str(pointer_of(m, MIDDLE), "FILE", "../rank2file.scr");
}

static void offset_beyond(maps *m)
{
    kvtree_util_set_bytecount(pointer_of(m, MIDDLE), "OFFSET", 1ul << 40);
}

/* Rank 2 in both lower files, in place of rank 7, so that all counts are right. */
static void rank_twice(maps *m)
{
    kvtree *body = body_of(m, HIGH);
    kvtree_unset_kv_int(body, "RANK", 7);
    kvtree_set_kv_int(body, "RANK", 2);
}

static void rank_beyond(maps *m)
{
    kvtree *body = body_of(m, HIGH);
    kvtree_unset_kv_int(body, "RANK", 7);
    kvtree_set_kv_int(body, "RANK", 8);
}

static void lower_missing(maps *m)
{
    kvtree_delete(&m->tree[HIGH]);
}

static void ranks_of_root_wrong(maps *m)
{
    kvtree_util_set_int(m->tree[ROOT], "RANKS", 9);
}

static void no_top_key(maps *m)
{
    kvtree *body = kvtree_extract(m->tree[LOW], "RANK2FILE");
    kvtree_delete(&m->tree[LOW]);
    m->tree[LOW] = body;
}

static void size_missing(maps *m)
{
    kvtree_unset(file_of_5(m), "SIZE");
}

static void size_negative(maps *m)
{
    kvtree_util_set_str(file_of_5(m), "SIZE", "-5");
}

static void crc_no_number(maps *m)
{
    kvtree_util_set_str(file_of_5(m), "CRC", "0x1g");
}

/* ---- running them ---- */

static void write_maps(const char *prefix, void (*change)(maps *))
{
    maps m;
    char path[256];
    make_good(&m);
    if (change) change(&m);
    snprintf(path, sizeof path, "%s/.scr", prefix);
    CHECK(mkdir(prefix, 0700) == 0 && mkdir(path, 0700) == 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", prefix, names[i]);
        if (m.tree[i]) CHECK_INT(kvtree_write_file(path, m.tree[i]), 0);
        kvtree_delete(&m.tree[i]);
    }
}

static void begin(char prefix[128], const char *name, void (*change)(maps *))
{
    snprintf(prefix, 128, "%s/%s", folder, name);
    if (check_rank == 0) write_maps(prefix, change);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void expect_damaged(const char *prefix, const char *text)
{
    int ranks = 77, count = 77;
    filo_file *files = NULL;
    char err[FILO_ERROR_SIZE] = "";
    int rc =
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, err);
    CHECK_INT(rc, FILO_DAMAGED);
    CHECK(ranks == 77 && count == 77 && files == NULL);
    list_expect_text(err, prefix);
    list_expect_text(err, text);
}

static const struct hostile {
    void (*change)(maps *);
    const char *text;
} cases[] = {
    {cycle_to_root, "rank2file.scr: no valid LEVEL"},
    {level_huge, "rank2file.scr: LEVEL 2000000000 cannot be that of a root"},
    {name_leads_out, "rank2file.scr: rank 5: file name \"../../etc/passwd\""},
    {name_absolute, "rank2file.scr: rank 5: file name \"/etc/passwd\""},
    {pointer_leads_out, "rank2file.1.0.scr: reader 0: file name \"../rank2file.scr\""},
    {offset_beyond, "rank2file.1.0.scr: the OFFSET of reader 0 is not 0"},
    {rank_twice, "scr: rank 2 is listed twice"},
    {rank_beyond, "rank2file.0.4.scr: rank 8 of only 8 is listed"},
    {lower_missing, "rank2file.0.4.scr: No such file"},
    {ranks_of_root_wrong, "rank2file.scr is of 9 ranks, but its files of level 1 of 8"},
    {no_top_key, "rank2file.0.0.scr: no valid LEVEL"},
    {size_missing, "rank2file.scr: rank 5: file \"rank_5.ckpt\" has no valid SIZE"},
    {size_negative, "rank2file.scr: rank 5: file \"rank_5.ckpt\" has no valid SIZE"},
    {crc_no_number, "rank2file.scr: rank 5: file \"rank_5.ckpt\" has no valid CRC"},
};

static void test_changed_maps(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char prefix[128], name[32];
        snprintf(name, sizeof name, "case%zu", i);
        begin(prefix, name, cases[i].change);
        expect_damaged(prefix, cases[i].text);
    }
}

/* The map that the cases start from is good, for any number of readers. */
static void test_unchanged_map(void)
{
    char prefix[128], err[FILO_ERROR_SIZE] = "", name[32];
    int ranks = 0, count = 0;
    filo_file *files = NULL;
    begin(prefix, "good", NULL);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, err),
        0);
    CHECK_STR(err, "");
    CHECK_INT(ranks, 8);
    CHECK_INT(count, 1);
    snprintf(name, sizeof name, "rank_%d.ckpt", check_rank);
    CHECK_STR(files[0].name, name);
    CHECK_INT(files[0].size, check_rank);
    CHECK_INT(files[0].crc, 0x1234);
    filo_files_free(count, files);
}

static void test_missing_map(void)
{
    char prefix[128], path[256], err[FILO_ERROR_SIZE] = "";
    int ranks, count;
    filo_file *files;
    begin(prefix, "missing", NULL);
    snprintf(path, sizeof path, "%s/%s", prefix, names[ROOT]);
    if (check_rank == 0) CHECK(unlink(path) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, err),
        -ENOENT);
    list_expect_text(err, "rank2file.scr: No such file");
    snprintf(path, sizeof path, "%s/no such folder", folder);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, path, NULL, &ranks, &count, &files, NULL, err),
        -ENOENT);
    list_expect_text(err, "no such folder");
}

/* Bytes of the files themselves: cut off, altered, something else, a link, far too long.
 */
static void harm_file(const char *prefix, int file, int how)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", prefix, names[file]);
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    if (how == 0) CHECK(ftruncate(fd, 30) == 0);
    if (how == 1) CHECK(pwrite(fd, "\xff", 1, 60) == 1);
    if (how == 2) CHECK(pwrite(fd, "not a tree", 10, 0) == 10);
    if (how == 3) CHECK(unlink(path) == 0 && symlink("/etc/hostname", path) == 0);
    if (how == 4) CHECK(ftruncate(fd, (off_t)1 << 40) == 0);
    if (how == 5) CHECK(ftruncate(fd, 0) == 0);
    close(fd);
}

static void test_harmed_files(void)
{
    for (int file = 0; file < FILES; file++)
        for (int how = 0; how < 6; how++) {
            char prefix[128], name[32];
            snprintf(name, sizeof name, "harm%d.%d", file, how);
            begin(prefix, name, NULL);
            if (check_rank == 0) harm_file(prefix, file, how);
            MPI_Barrier(MPI_COMM_WORLD);
            expect_damaged(prefix, names[file]);
        }
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(folder);
    test_unchanged_map();
    test_missing_map();
    test_changed_maps();
    test_harmed_files();
    check_remove(folder);
    return check_end();
}
