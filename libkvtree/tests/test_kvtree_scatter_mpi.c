/* SPDX-License-Identifier: BSD-3-Clause */
/* Forged or damaged files of gathered trees (tests/support/forge_gather.h): every rank
 * gets -EBADMSG with the name of the file, no rank waits, and no rank receives a tree.
 * test_kvtree_scatter.c tests one process that reads alone. */
#include "forge_gather.h"
#include "gather.h"

static void fill(kvtree *tree, int rank)
{
    kvtree_util_set_int(tree, "MINE", rank);
}

/* ---- running them ---- */

/* Creates a valid set with one change, in the directory that from then describes. */
static void begin(kvtree_gather *from, forged *f, const char *folder,
                  void (*change)(forged *))
{
    char path[128];
    gather_begin(from, path, folder);
    from->top = "TOP";
    forge(f, "set", from->top, fill);
    if (check_rank == 0) {
        if (change) change(f);
        forge_write(f, from->dir);
    }
    for (int i = 0; i < FORGE_FILES; i++)
        kvtree_delete(&f->tree[i]);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Reads into a tree that is not empty on every other rank. */
static void expect_refused(const kvtree_gather *from, int code, const char *text)
{
    int ranks = 77;
    kvtree_error err = {""};
    kvtree *got = kvtree_new();
    if (check_rank % 2) kvtree_set_kv(got, "KEPT", "1");
    gather_expect(kvtree_scatter_read(from, &ranks, got, &err), code, err.text, text);
    CHECK_INT(ranks, 77);
    CHECK_INT(kvtree_size(got), check_rank % 2);
    kvtree_delete(&got);
}

static void changed_sets(void)
{
    for (int i = 0; i < FORGE_CASES; i++) {
        forged f;
        kvtree_gather from;
        char folder[32], text[256];
        snprintf(folder, sizeof folder, "case%d", i);
        begin(&from, &f, folder, forge_cases[i].change);
        forge_text(&f, forge_cases[i].text, text);
        expect_refused(&from, -EBADMSG, text);
        gather_finish(&from);
    }
}

/* The unchanged set is valid, for any number of readers. */
static void unchanged_set(void)
{
    forged f;
    int ranks = 0;
    kvtree_gather from;
    kvtree_error err = {""};
    kvtree *got = kvtree_new();
    begin(&from, &f, "good", NULL);
    CHECK_INT(kvtree_scatter_read(&from, &ranks, got, &err), 0);
    CHECK_STR(err.text, "");
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
    forged f;
    kvtree_gather from;
    char path[128];
    kvtree *got = kvtree_new();
    begin(&from, &f, "missing", NULL);
    if (check_rank == 0) CHECK(unlinkat(from.dir, ROOT_NAME, 0) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_refused(&from, -ENOENT, "set.scr is missing");
    snprintf(path, sizeof path, "%s/missing/set.scr", gather_base);
    CHECK_INT(kvtree_read_scatter(path, got, MPI_COMM_WORLD), -ENOENT);
    snprintf(path, sizeof path, "%s/no such folder/set.scr", gather_base);
    CHECK_INT(kvtree_read_scatter(path, got, MPI_COMM_WORLD), -ENOENT);
    CHECK_INT(kvtree_size(got), 0);
    kvtree_delete(&got);
    gather_finish(&from);
}

/* One file per level from the root down to level 0, as deep as a reader accepts. */
static void chain(int levels, int code, const char *text)
{
    forged f;
    kvtree_gather from;
    char folder[32];
    kvtree *got = kvtree_new();
    kvtree_error err = {""};
    snprintf(folder, sizeof folder, "chain%d", levels);
    begin(&from, &f, folder, NULL);
    if (check_rank == 0) forge_chain(from.dir, levels, ROOT_NAME, from.top, fill);
    MPI_Barrier(MPI_COMM_WORLD);
    if (code) {
        expect_refused(&from, code, text);
    } else {
        CHECK_INT(kvtree_scatter_read(&from, NULL, got, &err), 0);
        CHECK_INT(kvtree_size(got), check_ranks > 4 ? check_rank < 4 : 4 / check_ranks);
    }
    kvtree_delete(&got);
    gather_finish(&from);
}

static void harmed_files(void)
{
    for (int file = 0; file < FORGE_FILES; file++)
        for (int how = 0; how < FORGE_HARMS; how++) {
            forged f;
            kvtree_gather from;
            char folder[32];
            snprintf(folder, sizeof folder, "harm%d.%d", file, how);
            begin(&from, &f, folder, NULL);
            if (check_rank == 0) forge_harm(from.dir, f.name[file], how);
            MPI_Barrier(MPI_COMM_WORLD);
            expect_refused(&from, -EBADMSG, f.name[file]);
            gather_finish(&from);
        }
}

static void refused_arguments(void)
{
    static const char *const bad[] = {NULL, "", "../set.scr", "/tmp/set.scr", "a//b"};
    forged f;
    kvtree_gather from;
    begin(&from, &f, "arguments", NULL);
    for (int i = 0; i < 5; i++) {
        from.name = check_rank == check_ranks - 1 ? bad[i] : ROOT_NAME;
        expect_refused(&from, -EINVAL, "file name");
    }
    from.name = ROOT_NAME;
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
