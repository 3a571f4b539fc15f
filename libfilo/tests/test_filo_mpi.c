/* SPDX-License-Identifier: BSD-3-Clause */
/* Flush, read the map, fetch; and the errors of each. */
#include "lists.h"

#include <zlib.h>

static const filo_options with_crc = {.checksum = 1};

static char folder[64], prefix[128];
static filo_error err;

/* A list of 0 to 3 files on each rank, and a prefix directory that does not exist yet. */
static void begin(list *l, const char *name)
{
    err.text[0] = 0;
    snprintf(prefix, sizeof prefix, "%s/%s/dataset.1", folder, name);
    list_create(l, folder, check_rank, (check_rank + 3) % 4);
}

static void round_trip(const filo_options *options, const char *map)
{
    list l;
    int ranks = 0, count = 0;
    filo_file *files = NULL;
    struct stat st;
    begin(&l, options && options->checksum ? "crc" : "plain");
    for (int f = 0; f < l.count; f++)
        CHECK(chmod(l.local[f], f == 0 ? 0440 : 0640) == 0);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, map, l.count, l.files, options, &err),
              0);
    CHECK_STR(err.text, "");
    list_unlink(&l);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, map, &ranks, &count, &files, options, &err),
        0);
    CHECK_INT(ranks, check_ranks);
    list_adopt(&l, count, files);
    for (int f = 0; f < count; f++)
        CHECK_INT(files[f].has_crc, options && options->checksum);
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, count, files, options, &err), 0);
    CHECK_STR(err.text, "");
    list_expect(&l, check_rank);
    for (int f = 0; f < l.count; f++)
        CHECK(stat(l.local[f], &st) == 0 && (st.st_mode & 0777) == (f ? 0640 : 0440));
    CHECK(list_exists(prefix, map ? map : ".scr/rank2file.scr"));
    filo_files_free(count, files);
    list_unlink(&l);
}

static uint32_t crc_of(int rank, int f)
{
    size_t size = list_size(rank, f);
    unsigned char *bytes = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = list_byte(rank, f, i);
    uint32_t crc = (uint32_t)crc32_z(0, bytes, size);
    free(bytes);
    return crc;
}

static void test_checksum_is_zlibs(void)
{
    list l;
    begin(&l, "zlib");
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &with_crc, &err),
              0);
    for (int f = 0; f < l.count; f++)
        CHECK_INT(l.files[f].crc, crc_of(check_rank, f));
    list_unlink(&l);
}

/* The directory was moved: all names in the map are relative. */
static void test_moved_folder(void)
{
    list l;
    char moved[160];
    int ranks = 0, count = 0;
    filo_file *files = NULL;
    begin(&l, "moved");
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, NULL, &err), 0);
    snprintf(moved, sizeof moved, "%s/elsewhere", folder);
    if (check_rank == 0) CHECK(rename(prefix, moved) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, moved, NULL, &ranks, &count, &files, NULL, &err),
        0);
    list_adopt(&l, count, files);
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, moved, count, files, NULL, &err), 0);
    list_expect(&l, check_rank);
    filo_files_free(count, files);
    list_unlink(&l);
}

/* A flush that must fail with code, and leaves no map. */
static void refuse_flush(list *l, int code, const char *text)
{
    filo_file before[LIST_MAX];
    memcpy(before, l->files, sizeof before);
    CHECK_INT(
        filo_flush(MPI_COMM_WORLD, prefix, NULL, l->count, l->files, &with_crc, &err),
        code);
    list_expect_text(err.text, text);
    CHECK(memcmp(before, l->files, sizeof before) == 0);
    CHECK(!list_exists(prefix, FILO_MAP));
    list_unlink(l);
}

/* Fails on one rank only, the last, so that the other ranks learn of it by messages. */
static int is_culprit(void)
{
    return check_rank == check_ranks - 1;
}

static void test_flush_refuses_bad_lists(void)
{
    list l;
    char other[256];
    begin(&l, "bad");
    list_create(&l, folder, check_rank, 3);
    if (is_culprit()) CHECK(unlink(l.local[1]) == 0);
    refuse_flush(&l, -ENOENT, "-f1: No such file");

    list_create(&l, folder, check_rank, 3);
    if (is_culprit()) l.files[0].size++;
    refuse_flush(&l, -EIO, " bytes, not ");

    list_create(&l, folder, check_rank, 3);
    if (is_culprit()) strcpy(l.name[2], "a/../../b");
    refuse_flush(&l, -EINVAL, "\"a/../../b\" has a component \"..\"");

    list_create(&l, folder, check_rank, 3);
    if (is_culprit()) strcpy(l.name[2], ".scr/rank2file.0.0.scr");
    refuse_flush(&l, -EINVAL, "belongs to the map .scr/rank2file.scr");

    list_create(&l, folder, check_rank, 3);
    if (is_culprit()) l.files[1].local = NULL;
    refuse_flush(&l, -EINVAL, "no local path");

    list_create(&l, folder, check_rank, 3);
    snprintf(other, sizeof other, "%s/link%d", folder, check_rank);
    CHECK(symlink(l.local[0], other) == 0);
    if (is_culprit()) l.files[0].local = other;
    refuse_flush(&l, -EINVAL, "not a regular file");
    CHECK(unlink(other) == 0);
    CHECK(!list_exists(prefix, "")); /* nothing was created so far */
}

static void test_flush_refuses_names_twice(void)
{
    list l;
    begin(&l, "twice");
    list_create(&l, folder, check_rank, 3);
    strcpy(l.name[1], check_rank % 2 ? "of one" : "the same");
    if (check_ranks == 1) strcpy(l.name[0], "the same");
    if (check_ranks == 2) strcpy(l.name[1], "the same");
    refuse_flush(&l, -EEXIST, "\" is listed ");
}

static void test_flush_demands_checksum(void)
{
    list l;
    begin(&l, "demand");
    list_create(&l, folder, check_rank, 3);
    filo_options plain = {0};
    if (is_culprit()) {
        l.files[2].has_crc = 1;
        l.files[2].crc = 0xdeadbeef;
    }
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &plain, &err),
              -EIO);
    list_expect_text(err.text, "was altered: CRC32 0x");
    CHECK(!list_exists(prefix, FILO_MAP));
    l.files[2].crc = crc_of(check_rank, 2);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &plain, &err),
              0);
    CHECK_INT(l.files[1].has_crc, 0); /* not requested */
    CHECK_INT(l.files[2].has_crc, is_culprit());
    list_unlink(&l);
}

static void test_flush_refuses_arguments(void)
{
    list l;
    begin(&l, "arguments");
    filo_options unknown = {.method = "swallow"};
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &unknown, &err),
              -EINVAL);
    list_expect_text(err.text, "\"swallow\"; available: sync");
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, "../x", l.count, l.files, NULL, &err),
              -EINVAL);
    list_expect_text(err.text, "name of the map");
    CHECK_INT(filo_flush(MPI_COMM_WORLD, is_culprit() ? NULL : prefix, NULL, l.count,
                         l.files, NULL, &err),
              -EINVAL);
    list_expect_text(err.text, "no directory");
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, is_culprit() ? -1 : l.count,
                         l.files, NULL, &err),
              -EINVAL);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, is_culprit() ? -1 : l.count,
                         l.files, NULL, NULL),
              -EINVAL);
    list_unlink(&l);
}

/* On one rank, a directory has the name of a file, which is detected while copying:
 * existing files stay unchanged, and no new ones are left. */
static void test_flush_fails_midway(void)
{
    list l;
    char path[512];
    begin(&l, "midway");
    list_create(&l, folder, check_rank, 3);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, NULL, &err), 0);
    snprintf(path, sizeof path, "%s/%s", prefix, l.name[2]);
    if (is_culprit()) CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
    uint64_t before = list_folder_sum(prefix);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &with_crc, &err),
              -EISDIR);
    list_expect_text(err.text, "is a directory");
    CHECK(list_folder_sum(prefix) == before);
    list_unlink(&l);
}

/* A failing argument check leaves the earlier map alone. */
static void test_flush_keeps_earlier_map(void)
{
    list l;
    begin(&l, "keep");
    list_create(&l, folder, check_rank, 2);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, NULL, &err), 0);
    if (is_culprit()) l.files[0].size += 5;
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, NULL, &err),
              -EIO);
    CHECK(list_exists(prefix, FILO_MAP));
    list_unlink(&l);
}

/* The map cannot be written: a directory has the name of its file. */
static void test_map_cannot_be_written(void)
{
    list l;
    char path[512];
    begin(&l, "nomap");
    snprintf(path, sizeof path, "%s/map.0.0.scr", prefix);
    if (check_rank == 0) CHECK(mkdir(folder, 0700) == 0 || errno == EEXIST);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, "map.scr", l.count, l.files, NULL, &err),
              0);
    if (check_rank == 0) CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    int rc = filo_flush(MPI_COMM_WORLD, prefix, "map.scr", l.count, l.files, NULL, &err);
    CHECK(rc < 0);
    list_expect_text(err.text, "map.0.0.scr");
    CHECK(!list_exists(prefix, "map.scr"));
    list_unlink(&l);
}

/* ---- fetch ---- */

/* Flushes three files per rank, lets `harm` damage those of the last rank, and fetches.
 */
static void fetch_harmed(void (*harm)(const char *path), const filo_options *options,
                         int code, const char *text)
{
    list l;
    char path[512];
    begin(&l, "harm");
    list_create(&l, folder, check_rank, 3);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &with_crc, &err),
              0);
    list_unlink(&l);
    snprintf(path, sizeof path, "%s/%s", prefix, l.name[2]);
    if (is_culprit()) harm(path);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, l.count, l.files, options, &err), code);
    if (code) {
        list_expect_text(err.text, text);
        list_expect_text(err.text, "/deep/er"); /* the error names the file */
        list_expect_none(&l);
    }
    list_unlink(&l);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void cut(const char *path)
{
    CHECK(truncate(path, 1000) == 0);
}

static void lengthen(const char *path)
{
    CHECK(truncate(path, 400000) == 0);
}

static void alter(const char *path)
{
    int fd = open(path, O_WRONLY);
    CHECK(pwrite(fd, "\x80\x81", 2, 299000) == 2);
    CHECK(close(fd) == 0);
}

static void take_away(const char *path)
{
    CHECK(unlink(path) == 0);
}

static void put_folder(const char *path)
{
    CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
}

/* A link to the right bytes is not the file that was written. */
static void put_link(const char *path)
{
    char away[600];
    snprintf(away, sizeof away, "%s.away", path);
    CHECK(rename(path, away) == 0 && symlink(away, path) == 0);
}

static void put_linked_folder(const char *path)
{
    char inner[600], away[620];
    snprintf(inner, sizeof inner, "%s", path);
    *strrchr(inner, '/') = 0;
    snprintf(away, sizeof away, "%s.away", inner);
    CHECK(rename(inner, away) == 0 && symlink(away, inner) == 0);
}

static void restore_folder(void)
{
    char command[256];
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(command, sizeof command, "rm -rf %s/harm", folder);
    if (check_rank == 0) CHECK(system(command) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_fetch_refuses_harmed_files(void)
{
    const struct {
        void (*harm)(const char *);
        const char *text;
    } cases[] = {
        {cut, "has 1000 bytes, but its map says 30000"},
        {lengthen, "has 400000 bytes, but its map says 30000"},
        {alter, "was altered: CRC32 0x"},
        {take_away, "is missing"},
        {put_folder, "not a regular file"},
        {put_link, "not a regular file"},
        {put_linked_folder, "a symbolic link, which is not followed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fetch_harmed(cases[i].harm, &with_crc, FILO_DAMAGED, cases[i].text);
        restore_folder();
    }
    fetch_harmed(alter, NULL, 0, ""); /* undetectable without the checksum */
    restore_folder();
}

/* One rank cannot store its files: the other ranks, which could, do not store theirs
 * either. Earlier local files stay. */
static void test_fetch_cannot_store(void)
{
    list l;
    begin(&l, "store");
    list_create(&l, folder, check_rank, 3);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, NULL, &err), 0);
    list_unlink(&l);
    list_write(l.local[0], "old", 3);
    if (is_culprit()) CHECK(mkdir(l.local[2], 0700) == 0);
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, l.count, l.files, NULL, &err), -EISDIR);
    list_expect_text(err.text, "is a directory");
    if (is_culprit()) CHECK(rmdir(l.local[2]) == 0);
    struct stat st;
    CHECK(stat(l.local[0], &st) == 0 && st.st_size == 3);
    CHECK(unlink(l.local[0]) == 0);
    list_expect_none(&l);
}

static void test_fetch_refuses_arguments(void)
{
    list l;
    char escape[] = "../escape";
    begin(&l, "fetch arguments");
    list_create(&l, folder, check_rank, 1);
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, l.count, l.files, NULL, &err), -ENOENT);
    list_expect_text(err.text, prefix);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, NULL, &err), 0);
    if (is_culprit()) l.files[0].name = escape;
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, l.count, l.files, NULL, &err), -EINVAL);
    list_expect_text(err.text, "\"../escape\"");
    l.files[0].name = l.name[0];
    if (is_culprit()) l.files[0].local = NULL;
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, l.count, l.files, NULL, &err), -EINVAL);
    list_expect(&l, check_rank); /* refused before anything was changed */
    list_unlink(&l);
}

static void test_check_names(void)
{
    char own[32], shared[] = "a/shared", bad[] = "a/../b";
    filo_file file = {.name = own};
    snprintf(own, sizeof own, "a/rank_%d", check_rank);
    CHECK_INT(filo_check_names(MPI_COMM_WORLD, 1, &file, &err), 0);
    CHECK_INT(filo_check_names(MPI_COMM_WORLD, 0, NULL, &err), 0);
    if (check_rank == check_ranks - 1) file.name = bad;
    CHECK_INT(filo_check_names(MPI_COMM_WORLD, 1, &file, &err), -EINVAL);
    file.name = shared;
    CHECK_INT(filo_check_names(MPI_COMM_WORLD, 1, &file, &err),
              check_ranks == 1 ? 0 : -EEXIST);
    if (check_ranks > 1) list_expect_text(err.text, "\"a/shared\"");
}

static void test_intercommunicator(void)
{
    MPI_Comm half, both;
    int upper = check_rank >= check_ranks / 2;
    filo_file file = {.name = folder};
    if (check_ranks < 2) return;
    MPI_Comm_split(MPI_COMM_WORLD, upper, check_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : check_ranks / 2, 1, &both);
    CHECK_INT(filo_flush(both, folder, NULL, 0, NULL, NULL, &err), -EINVAL);
    CHECK_STR(err.text, "an intercommunicator");
    CHECK_INT(filo_fetch(both, folder, 0, NULL, NULL, &err), -EINVAL);
    CHECK_INT(filo_check_names(both, 1, &file, &err), -EINVAL);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(folder);
    round_trip(NULL, NULL);
    round_trip(&with_crc, NULL);
    round_trip(&with_crc, "map");
    test_checksum_is_zlibs();
    test_moved_folder();
    test_flush_refuses_bad_lists();
    test_flush_refuses_names_twice();
    test_flush_demands_checksum();
    test_flush_refuses_arguments();
    test_flush_fails_midway();
    test_flush_keeps_earlier_map();
    test_map_cannot_be_written();
    test_fetch_refuses_harmed_files();
    test_fetch_cannot_store();
    test_fetch_refuses_arguments();
    test_check_names();
    test_intercommunicator();
    CHECK(filo_files_free(0, NULL) == NULL);
    check_remove(folder);
    return check_end();
}
