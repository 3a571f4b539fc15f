/* SPDX-License-Identifier: BSD-3-Clause */
/* Invalid requests of all ranks or of one rank: all ranks get an error before any
 * existing file is changed. And when a flush is stopped on one rank, no other rank still
 * works in the directory. */
#include "lists.h"

#include <limits.h>
#include <sys/syscall.h>
#include <time.h>

enum { FILES = 2 };

static char folder[64], prefix[128];
static filo_error err;
static int slow; /* this rank removes files slowly */

int unlinkat(int dir, const char *name, int flags)
{
    const struct timespec nap = {0, 100000000};
    if (slow) nanosleep(&nap, NULL);
    return (int)syscall(SYS_unlinkat, dir, name, flags);
}

static int is_last(void)
{
    return check_rank == check_ranks - 1;
}

static int flush(list *l, const char *map, const filo_options *options)
{
    return filo_flush(MPI_COMM_WORLD, prefix, map, l->count, l->files, options, &err);
}

/* Creates a dataset that must stay unchanged. */
static uint64_t begin(list *l, const char *name)
{
    snprintf(prefix, sizeof prefix, "%s/%s", folder, name);
    list_create(l, folder, check_rank, FILES);
    CHECK_INT(flush(l, NULL, NULL), 0);
    return list_folder_sum(prefix);
}

static void expect_refused(int rc, int expected, const char *text, uint64_t before)
{
    CHECK_INT(rc, expected);
    list_expect_text(err.text, text);
    uint64_t after = list_folder_sum(prefix);
    CHECK(after == before);
}

static void test_intercommunicator(void)
{
    list l;
    MPI_Comm half, inter;
    int side = check_rank % 2, ranks, count;
    filo_file *files;
    if (check_ranks < 2) return;
    begin(&l, "inter");
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 1, &inter);
    CHECK_INT(filo_flush(inter, prefix, NULL, l.count, l.files, NULL, &err), -EINVAL);
    list_expect_text(err.text, "an intercommunicator");
    CHECK_INT(filo_read_map(inter, prefix, NULL, &ranks, &count, &files, NULL, &err),
              -EINVAL);
    CHECK_INT(filo_fetch(inter, prefix, l.count, l.files, NULL, &err), -EINVAL);
    CHECK_INT(filo_check_names(inter, l.count, l.files, &err), -EINVAL);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    CHECK_INT(filo_flush(MPI_COMM_NULL, prefix, NULL, l.count, l.files, NULL, &err),
              -EINVAL);
    list_expect_text(err.text, "MPI_COMM_NULL");
}

/* Names that no file system supports: otherwise the error would come from a rename, after
 * other files have their names. */
static void test_long_names(void)
{
    list l;
    char map[256] = "";
    uint64_t before = begin(&l, "long");
    if (is_last()) memset(l.name[1], 'x', sizeof l.name[1]);
    l.name[1][255] = 0;
    char name[512];
    snprintf(name, sizeof name, "%s%s", l.name[1], is_last() ? "x" : "");
    l.files[1].name = name;
    expect_refused(flush(&l, NULL, NULL), -ENAMETOOLONG, "File name too long", before);
    l.files[1].name = l.name[1];
    memset(map, 'm', 250);
    expect_refused(flush(&l, map, NULL), -ENAMETOOLONG, "name of the map", before);
}

static void test_names_of_the_map(void)
{
    static const char *const maps[] = {NULL, NULL, "mm"};
    static const char *const names[] = {".scr/ctr.0.scr/file", ".scr/rank2file.0.0.scr/x",
                                        "mm/file"};
    list l;
    uint64_t before = begin(&l, "names");
    for (int i = 0; i < 3; i++) {
        if (is_last()) snprintf(l.name[1], sizeof l.name[1], "%s", names[i]);
        expect_refused(flush(&l, maps[i], NULL), -EINVAL, "belongs to the map", before);
    }
}

/* A directory with the name of a container is not taken for a container of an earlier
 * flush. */
static void test_folder_like_a_container(void)
{
    list l;
    char path[256];
    begin(&l, "surplus");
    snprintf(path, sizeof path, "%s/.scr/ctr.0.scr", prefix);
    if (check_rank == 0) CHECK(mkdir(path, 0700) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(flush(&l, NULL, NULL), 0);
    CHECK(list_exists(prefix, ".scr/ctr.0.scr"));
}

static void test_different_options(void)
{
    const filo_options base = {
        .width = 3, .container = 400, .node = "n", .map_limit = 300};
    list l;
    char other[160];
    if (check_ranks < 2) return;
    uint64_t before = begin(&l, "options");
    for (int i = 0; i < 6; i++) {
        filo_options o = base;
        if (is_last() && i == 0) o.width = 1;
        if (is_last() && i == 1) o.container = 0;
        if (is_last() && i == 2) o.container = 500;
        if (is_last() && i == 3) o.node = NULL;
        if (is_last() && i == 4) o.map_limit = 0;
        expect_refused(flush(&l, is_last() && i == 5 ? "other" : NULL, &o), -EINVAL,
                       "not the same on all ranks", before);
    }
    snprintf(other, sizeof other, "%s%s", prefix, is_last() ? "/" : "");
    expect_refused(filo_flush(MPI_COMM_WORLD, other, NULL, l.count, l.files, NULL, &err),
                   -EINVAL, "not the same on all ranks", before);
}

/* More bytes than a number can count, in files that are one hole. */
static void test_too_many_bytes(void)
{
    const filo_options packed = {.container = INT64_MAX};
    list l;
    uint64_t before = begin(&l, "bytes");
    int huge = 1, all;
    for (int f = 0; f < FILES; f++) {
        huge = huge && truncate(l.local[f], INT64_MAX) == 0;
        l.files[f].size = INT64_MAX;
    }
    MPI_Allreduce(&huge, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all) expect_refused(flush(&l, NULL, &packed), -EFBIG, "together", before);
    l.count = 1;
    if (all && check_ranks > 1)
        expect_refused(flush(&l, NULL, &packed), -EFBIG, "together", before);
    l.count = FILES;
    list_unlink(&l);
}

/* ---- local files ---- */

static void expect_local(list *l, int rc, int expected, const char *text)
{
    CHECK_INT(rc, expected);
    list_expect_text(err.text, text);
    for (int f = 0; f < l->count; f++)
        CHECK(list_file_is_good(l->local[f], check_rank, f));
}

static void test_local_paths(void)
{
    list l;
    char path[512];
    begin(&l, "local");
    filo_file files[FILES] = {l.files[0], l.files[1]};
    files[1].local = is_last() ? l.local[0] : l.local[1];
    int rc = filo_fetch(MPI_COMM_WORLD, prefix, FILES, files, NULL, &err);
    expect_local(&l, rc, -EEXIST, "is listed twice");
    snprintf(path, sizeof path, "%s%s", l.local[1], is_last() ? ".d/" : "");
    files[1].local = path;
    rc = filo_fetch(MPI_COMM_WORLD, prefix, FILES, files, NULL, &err);
    expect_local(&l, rc, -EISDIR, "is not a file name");
    if (is_last()) snprintf(path, sizeof path, "%s/%0300d", folder, 1);
    rc = filo_fetch(MPI_COMM_WORLD, prefix, FILES, files, NULL, &err);
    expect_local(&l, rc, -ENAMETOOLONG, "File name too long");
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, FILES, l.files, NULL, &err), 0);
}

/* A map may have segments of no bytes. */
static void test_empty_segments(void)
{
    const filo_options packed = {.container = 200000, .checksum = 1};
    char container[] = ".scr/ctr.0.scr";
    filo_segment with[8] = {{.container = container}, {.container = container}};
    int ranks, count;
    filo_file *files, large;
    list l;
    snprintf(prefix, sizeof prefix, "%s/segments", folder);
    list_create(&l, folder, check_rank, 3);
    CHECK_INT(flush(&l, NULL, &packed), 0);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err),
        0);
    large = files[2];
    CHECK(large.segments > 1 && large.segments < 6);
    memcpy(with + 2, large.segment, (size_t)large.segments * sizeof *with);
    large.segment = with;
    large.segments += 2;
    large.local = l.local[2];
    CHECK(unlink(l.local[2]) == 0);
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, 1, &large, &packed, &err), 0);
    list_expect(&l, check_rank);
    filo_files_free(count, files);
    list_unlink(&l);
}

/* ---- no rank still works ---- */

static void expect_nothing_left(void)
{
    list_temporaries = 0;
    nftw(prefix, list_add_to_sum, 16, FTW_PHYS);
    CHECK_INT(list_temporaries, 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_all_have_stopped(uint64_t container)
{
    const filo_options options = {.container = container};
    list l;
    filo_transfer *t = NULL;
    begin(&l, "clean");
    slow = is_last();
    CHECK_INT(filo_flush_start(MPI_COMM_WORLD, prefix, NULL, FILES, l.files, &options, &t,
                               &err),
              0);
    CHECK_INT(filo_flush_stop(t, &err), 0);
    expect_nothing_left();
    filo_flush_free(t);
    slow = 0;
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(folder);
    test_intercommunicator();
    test_long_names();
    test_names_of_the_map();
    test_folder_like_a_container();
    test_different_options();
    test_too_many_bytes();
    test_local_paths();
    test_empty_segments();
    test_all_have_stopped(0);
    test_all_have_stopped(1000);
    check_remove(folder);
    return check_end();
}
