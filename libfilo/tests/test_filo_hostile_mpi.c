/* SPDX-License-Identifier: BSD-3-Clause */
/* Forged and damaged maps (tests/support/forge_gather.h, forge_map.h): every rank gets
 * FILO_DAMAGED with the name of the file, no rank blocks, and no files are returned.
 * Reading by one process: test_filo_map_file.c. */
#include "forge_map.h"
#include "lists.h"

static char folder[64];

/* ---- running them ---- */

static void begin(char prefix[128], const char *name, void (*change)(forged *))
{
    snprintf(prefix, 128, "%s/%s", folder, name);
    if (check_rank == 0) forge_map(prefix, change);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void expect_damaged(const char *prefix, const char *text)
{
    int ranks = 77, count = 77;
    filo_file *files = NULL;
    filo_error err = {""};
    int rc =
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err);
    CHECK_INT(rc, FILO_DAMAGED);
    CHECK(ranks == 77 && count == 77 && files == NULL);
    list_expect_text(err.text, prefix);
    list_expect_text(err.text, text);
}

static void test_changed_maps(void)
{
    for (int i = 0; i < FORGE_MAP_CASES; i++) {
        char prefix[128], name[32], text[256];
        snprintf(name, sizeof name, "case%d", i);
        begin(prefix, name, forge_map_case(i, text));
        expect_damaged(prefix, text);
    }
}

/* The map that the cases start from is valid, for any number of readers. */
static void test_unchanged_map(void)
{
    char prefix[128], name[32];
    filo_error err = {""};
    int ranks = 0, count = 0;
    filo_file *files = NULL;
    begin(prefix, "good", NULL);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err),
        0);
    CHECK_STR(err.text, "");
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
    char prefix[128], path[256];
    filo_error err = {""};
    int ranks, count;
    filo_file *files;
    begin(prefix, "missing", NULL);
    snprintf(path, sizeof path, "%s/%s", prefix, forge_map_names[FORGE_ROOT]);
    if (check_rank == 0) CHECK(unlink(path) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err),
        -ENOENT);
    list_expect_text(err.text, "rank2file.scr is missing");
    snprintf(path, sizeof path, "%s/no such folder", folder);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, path, NULL, &ranks, &count, &files, NULL, &err),
        -ENOENT);
    list_expect_text(err.text, "no such folder");
}

static void test_harmed_files(void)
{
    for (int i = 0; i < FORGE_FILES * FORGE_HARMS; i++) {
        char prefix[128], name[32];
        snprintf(name, sizeof name, "harm%d", i);
        begin(prefix, name, NULL);
        const char *file = forge_map_names[i / FORGE_HARMS];
        if (check_rank == 0) forge_map_harm(prefix, file, i % FORGE_HARMS);
        MPI_Barrier(MPI_COMM_WORLD);
        expect_damaged(prefix, file);
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
