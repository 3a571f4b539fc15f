/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of other ranks that are read on the prefix directory: how often their map is
 * read, and that the results are those of a search in the map. */
#include "nth_each_mpi.h"
#include "prefix/prefix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static int reads; /* number of reads of a map's root */

int openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    reads += strcmp(path, strrchr("/" FILO_MAP, '/') + 1) == 0;
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

enum { RANKS = 3, MANY = 40000 };

static scr_prefix prefix;
static int files_of_rank; /* in the map to be written */

/* Rank r has the files r.0, r.1, ...; the last rank also has a second 0.0, in a
 * directory. */
static int give(void *arg, int rank, int *count, const filo_file **files, filo_error *err)
{
    static char names[MANY][32];
    static filo_file list[MANY];
    (void)arg;
    (void)err;
    *count = files_of_rank + (rank == RANKS - 1);
    for (int i = 0; i < *count; i++) {
        if (i < files_of_rank)
            snprintf(names[i], sizeof names[i], "%d.%d", rank, i);
        else
            snprintf(names[i], sizeof names[i], "deep/0.0");
        list[i] = (filo_file){.name = names[i], .size = 0};
    }
    *files = list;
    return 0;
}

static scr_dataset dataset_of(int id)
{
    scr_dataset d = {.id = id, .ckpt = id, .created = id, .ranks = RANKS};
    snprintf(d.name, sizeof d.name, "ckpt.%d", id);
    return d;
}

/* Only the first two files of each rank exist, and are empty. */
static void write_dataset(int id, int files)
{
    const scr_dataset d = dataset_of(id);
    kvtree_error err = {""};
    scr_place place;
    CHECK_INT(scr_place_of(&prefix, &d, &place), 0);
    const filo_place to = {
        .folder = place.folder, .map = place.map, .dataset = place.dataset};
    files_of_rank = files;
    CHECK_INT(filo_map_write(&to, RANKS, give, NULL, &err), 0);
    CHECK_STR(err.text, "");
    for (int i = 0; i < 2 * RANKS; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%d.%d", place.folder, i / 2, i % 2);
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        CHECK(fd >= 0 && close(fd) == 0);
    }
    free(place.folder);
}

/* below: the name is relative to the prefix directory. */
static int find(int id, const char *file, bool below, char path[SCR_MAX_FILENAME],
                kvtree_error *err)
{
    const scr_dataset d = dataset_of(id);
    char name[2 * SCR_NAME_SIZE];
    scr_file_match match;
    snprintf(name, sizeof name, "%s%s%s", below ? d.name : "", below ? "/" : "", file);
    int held = nth_hold(); /* without memory the match would have no end of the name */
    scr_file_match_begin(&match, name, below ? name : NULL, prefix.path);
    countdown = held;
    return scr_direct_find_other(&prefix, &d, &match, path, err);
}

static void expect(int id, const char *file, bool below, int code)
{
    char path[SCR_MAX_FILENAME], whole[SCR_MAX_FILENAME];
    kvtree_error err = {""};
    CHECK_INT(find(id, file, below, path, &err), code);
    snprintf(whole, sizeof whole, "%s/ckpt.%d/%s", prefix.path, id, file);
    if (code == 0) CHECK_STR(path, whole);
    if (code != 0) CHECK(err.text[0]);
}

static void expect_all(int id)
{
    for (int below = 0; below < 2; below++) {
        expect(id, "1.0", below, 0);
        expect(id, "2.1", below, 0);
        expect(id, "0.0", below, below ? 0 : -ENOTUNIQ);
        expect(id, "2.2", below, -EKEYREJECTED);
        expect(id, "9.9", below, -ENOENT);
    }
}

static void test_once(void)
{
    write_dataset(1, 3);
    write_dataset(2, 3);
    reads = 0;
    expect_all(1);
    expect_all(1);
    CHECK_INT(reads, 1);
    expect_all(2); /* another dataset */
    CHECK_INT(reads, 2);
    scr_direct_forget_others(&prefix);
    expect_all(2);
    CHECK_INT(reads, 3);
}

/* A large map is not kept. */
static void test_large(void)
{
    write_dataset(3, MANY / RANKS);
    reads = 0;
    expect_all(3);
    CHECK_INT(reads, 11);
    CHECK(!prefix.others.names && prefix.others.count == 0);
}

/* A missing map is looked for again in a later call. */
static void test_missing(void)
{
    expect(4, "0.0", true, -ENOENT);
    write_dataset(4, 3);
    expect(4, "0.0", true, 0);
}

static int find_two(void *arg)
{
    char path[SCR_MAX_FILENAME];
    (void)arg;
    int rc = find(1, "1.0", true, path, &nth_text);
    if (!rc) rc = find(1, "2.1", false, path, &nth_text);
    scr_direct_forget_others(&prefix);
    return rc;
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    char folder[64];
    scr_report report = {.rank = 1}; /* warnings are not printed */
    scr_job job = {.report = &report, .world = MPI_COMM_WORLD, .ranks = 1};
    check_folder(folder);
    prefix = (scr_prefix){
        .job = &job, .path = strdup(folder), .real = strdup(folder), .fd = -1};
    test_once();
    test_large();
    test_missing();
    scr_direct_forget_others(&prefix);
    nth_each("find files of other ranks", find_two, NULL, 1000);
    scr_prefix_close(&prefix);
    check_remove(folder);
    return check_end();
}
