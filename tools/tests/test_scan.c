/* SPDX-License-Identifier: BSD-3-Clause */
/* Scans of saved files: complete ranks, missing files, contradictions, and the scan hash;
 * and parallel loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/beneath.h"
#include "common/io.h"
#include "scavenge/parallel_for.h"
#include "scavenge/scan.h"
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANKS = 4, BYTES = 10 };

static const scr_dataset dataset = {.id = 6,
                                    .ckpt = 6,
                                    .ranks = RANKS,
                                    .files = RANKS,
                                    .complete = 1,
                                    .size = (unsigned long)RANKS * BYTES,
                                    .created = 1312850690668536,
                                    .name = "c6"};

/* ---- a directory ---- */

static char path[64];
static scavenge_folder folder;

static int setup(void **state)
{
    strcpy(path, "/tmp/scr-scan-XXXXXX");
    if (!mkdtemp(path)) return -1;
    folder = (scavenge_folder){path, open(path, O_RDONLY | O_DIRECTORY), -1};
    return folder.dir < 0 || mkdirat(folder.dir, ".scr", 0700) != 0 ? -1 : 0;
}

static int teardown(void **state)
{
    const char *slash = strrchr(path, '/');
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY);
    io_close(&folder.dir);
    int rc = beneath_remove_tree(tmp, slash + 1, NULL);
    io_close(&tmp);
    return rc;
}

static void put(const char *name, int bytes)
{
    static const char zeros[100];
    int parent;
    const char *last;
    assert_int_equal(beneath_open_parent(folder.dir, name, 0700, &parent, &last, NULL),
                     0);
    int fd = openat(parent, last, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, zeros, (size_t)bytes), bytes);
    close(fd);
    close(parent);
}

/* Saves rank r of d with a file; there: the file exists. */
static void save(const scr_dataset *d, int r, const char *name, int there)
{
    char member[64];
    scavenge_rank *rank = scavenge_rank_new(r);
    snprintf(member, sizeof member, "%d_of_2_in_%d.xor", r / 2 + 1, r % 2);
    const scavenge_file files[] = {{.name = name, .size = BYTES, .crc = 5, .has_crc = 1},
                                   {.name = member, .redundancy = 1, .size = 7}};
    assert_int_equal(scavenge_rank_add(rank, &files[0]), 0);
    assert_int_equal(scavenge_rank_add(rank, &files[1]), 0);
    assert_int_equal(scavenge_rank_write(folder.dir, rank, d, NULL), 0);
    scavenge_rank_free(rank);
    if (there) put(name, BYTES);
}

static void save_all(int but)
{
    for (int r = 0; r < RANKS; r++) {
        char name[16];
        snprintf(name, sizeof name, "c6/f_%d", r);
        if (r != but) save(&dataset, r, name, 1);
    }
}

/* Expects a scan that is whole, or not for that reason. */
static void expect(int whole, const char *reason)
{
    scavenge_scan scan;
    kvtree_error why = {""};
    assert_int_equal(scavenge_scan_read(&folder, &scan, &why), 0);
    assert_int_equal(scan.whole, whole);
    assert_int_equal(scavenge_scan_is_whole(&scan, &why), reason == NULL);
    if (reason && !strstr(why.text, reason))
        fail_msg("\"%s\" not in \"%s\"", reason, why.text);
    assert_int_equal(scan.dataset.scattered, 0);
    scavenge_scan_done(&scan);
}

/* ---- scans ---- */

static void test_whole(void **state)
{
    save_all(-1);
    expect(RANKS, NULL);
}

static void test_nothing(void **state)
{
    scavenge_scan scan;
    kvtree_error err = {""};
    assert_int_equal(scavenge_scan_read(&folder, &scan, &err), -ENOENT);
    put(".scr/1.scrfilemap", 50);
    assert_int_equal(scavenge_scan_read(&folder, &scan, &err), -ENOENT);
    assert_non_null(strstr(err.text, "1.scrfilemap"));
}

static void test_missing(void **state)
{
    int *ids, count;
    scavenge_scan scan;
    save_all(2);
    expect(3, "files of 1 of 4 ranks are missing; rank 2: nothing of it was saved");
    save(&dataset, 2, "c6/f_2", 0);
    expect(3, "rank 2: c6/f_2 is missing");
    put("c6/f_2", BYTES - 1);
    expect(3, "c6/f_2 has another size");
    unlinkat(folder.dir, "c6/f_2", 0);
    assert_int_equal(symlinkat("f_1", folder.dir, "c6/f_2"), 0);
    expect(3, "c6/f_2 is not a regular file");
    /* its set has another, complete member */
    assert_int_equal(scavenge_scan_read(&folder, &scan, NULL), 0);
    assert_true(scavenge_scan_has(&scan, 1) && !scavenge_scan_has(&scan, 2));
    assert_int_equal(scavenge_scan_repairable(&scan, &ids, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(ids[0], 0);
    free(ids);
    scavenge_scan_done(&scan);
}

static void test_conflict(void **state)
{
    save_all(3);
    save(&dataset, 3, "c6/f_1", 1);
    expect(4, "ranks 1 and 3 both have a file c6/f_1");
}

static void test_description(void **state)
{
    scr_dataset other = dataset;
    other.size++;
    for (int r = 0; r < RANKS; r++) {
        char name[16];
        snprintf(name, sizeof name, "c6/f_%d", r);
        save(&other, r, name, 1);
    }
    expect(4, "found 4 files of 40 bytes, but the description has 4 of 41");
    /* a dataset of an earlier time does not count */
    save_all(3);
    other = dataset;
    other.created--;
    save(&other, 3, "c6/f_3", 1);
    expect(3, "rank 3: nothing of it was saved");
    other.created += 2;
    save(&other, 3, "c6/f_3", 1);
    expect(1, "3 of 4 ranks are missing; rank 0");
}

static void test_scattered(void **state)
{
    scavenge_scan scan;
    save_all(3);
    save(&dataset, 3, "c60/f", 1);
    assert_int_equal(scavenge_scan_read(&folder, &scan, NULL), 0);
    assert_int_equal(scan.dataset.scattered, 1);
    scavenge_scan_done(&scan);
}

/* Files that were renamed already. */
static void test_final(void **state)
{
    scavenge_scan scan;
    save_all(-1);
    assert_int_equal(renameat(folder.dir, "c6", folder.dir, "there"), 0);
    expect(0, "files of 4 of 4 ranks are missing; rank 0: ");
    assert_int_equal(mkdirat(folder.dir, "final", 0700), 0);
    assert_int_equal(renameat(folder.dir, "there", folder.dir, "final/c6"), 0);
    folder.final = openat(folder.dir, "final", O_RDONLY | O_DIRECTORY);
    assert_int_equal(scavenge_scan_read(&folder, &scan, NULL), 0);
    assert_int_equal(scan.whole, 4);
    scavenge_scan_done(&scan);
    io_close(&folder.final);
}

/* ---- the scan hash ---- */

static const char *only(const kvtree *tree, const char *key)
{
    return kvtree_get_val(tree, key);
}

static void test_hash(void **state)
{
    scavenge_scan scan;
    kvtree *tree = kvtree_new();
    save_all(2);
    assert_int_equal(scavenge_scan_read(&folder, &scan, NULL), 0);
    assert_int_equal(scavenge_scan_to_tree(&scan, tree), 0);
    const kvtree *of = kvtree_get_kv_int(tree, "DLIST", 6);
    assert_string_equal(only(kvtree_get(of, "DSET"), "NAME"), "c6");
    const kvtree *map = kvtree_get(of, "RANK2FILE");
    assert_string_equal(only(map, "RANKS"), "4");
    const kvtree *rank = kvtree_get_kv_int(map, "RANK", 1);
    assert_string_equal(only(rank, "FILES"), "2");
    const kvtree *file = kvtree_get_kv(rank, "FILE", "c6/f_1");
    assert_string_equal(only(file, "SIZE"), "10");
    assert_string_equal(only(file, "CRC"), "0x00000005");
    assert_null(kvtree_get(file, "NOFETCH"));
    file = kvtree_get_kv(rank, "FILE", "1_of_2_in_1.xor");
    assert_non_null(kvtree_get(file, "NOFETCH"));
    assert_null(kvtree_get_kv_int(map, "RANK", 2));
    assert_non_null(kvtree_get(of, "INVALID"));
    assert_int_equal(kvtree_size(kvtree_get(of, "MISSING")), 1);
    assert_string_equal(only(of, "MISSING"), "2");
    kvtree_delete(&tree);
    scavenge_scan_done(&scan);
}

/* ---- parallel loops ---- */

enum { PIECES = 1000 };

static void count_piece(void *arg, int i)
{
    atomic_int *done = arg;
    atomic_fetch_add(&done[i], 1);
}

static void test_parallel_for(void **state)
{
    static const int most[] = {1, 2, 7, 100};
    for (size_t k = 0; k < sizeof most / sizeof *most; k++) {
        static atomic_int done[PIECES];
        for (int i = 0; i < PIECES; i++)
            atomic_store(&done[i], 0);
        scavenge_parallel_for(PIECES - 1, most[k], count_piece, done);
        for (int i = 0; i < PIECES; i++)
            assert_int_equal(atomic_load(&done[i]), i < PIECES - 1);
        scavenge_parallel_for(0, most[k], count_piece, done);
        assert_int_equal(atomic_load(&done[0]), 1);
    }
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_whole),
        IN_FOLDER(test_nothing),
        IN_FOLDER(test_missing),
        IN_FOLDER(test_conflict),
        IN_FOLDER(test_description),
        IN_FOLDER(test_scattered),
        IN_FOLDER(test_final),
        IN_FOLDER(test_hash),
        cmocka_unit_test(test_parallel_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
