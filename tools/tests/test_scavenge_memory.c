/* SPDX-License-Identifier: BSD-3-Clause */
/* Saving a dataset without memory: each allocation fails once, from the cache of a node
 * through rank filemaps, the scan and its hash to a dataset on the prefix directory, as
 * files and in containers. No file has its name and wrong bytes, saved and complete data
 * stays so, and the next try succeeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/io.h"
#include "nth_each.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include "scavenge/commit_scavenged.h"
#include "scavenge/copy.h"
#include "scavenge/scan.h"
#include <fcntl.h>
#include <filo/filo.h>
#include <kvtree/kvtree_util.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANKS = 2, BYTES = 1000 };

/* Number of tries if many files are synced, which is slow. */
enum { DURABLE = 40 };

static const scr_dataset dataset = {.id = 6,
                                    .ckpt = 6,
                                    .ranks = RANKS,
                                    .files = RANKS,
                                    .complete = 1,
                                    .size = (unsigned long)RANKS * BYTES,
                                    .created = 1312850690668536,
                                    .name = "c6"};
static const scavenge_key key = {"c6", 6, 1312850690668536};

/* The directory has "prefix", "cntl/u/scr.7" and "cache/u/scr.7". */
static struct {
    char path[64], prefix[80], control[96];
    int dir, prefix_dir;
} here;

static void run(const char *format, ...)
{
    char command[600];
    int held = nth_hold();
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    assert_int_equal(system(command), 0);
    countdown = held;
}

static void path_of(int rank, char path[128])
{
    snprintf(path, 128, "%s/cache/u/scr.7/scr.dataset.6/c6/f_%d", here.path, rank);
}

static void put_file(int rank)
{
    char path[128], bytes[BYTES];
    path_of(rank, path);
    memset(bytes, 'a' + rank, sizeof bytes);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, sizeof bytes), BYTES);
    close(fd);
}

static void put_filemap(void)
{
    scr_filemap *map = kvtree_new();
    kvtree *about = kvtree_new();
    int dir = open(here.control, O_RDONLY | O_DIRECTORY);
    assert_int_equal(scr_dataset_to_tree(&dataset, about), 0);
    for (int rank = 0; rank < RANKS; rank++) {
        char path[128];
        path_of(rank, path);
        kvtree *meta = scr_filemap_add_file(map, 6, rank, path);
        assert_int_equal(kvtree_util_set_str(meta, SCR_META_TYPE, SCR_META_FULL), 0);
        assert_int_equal(kvtree_util_set_bytecount(meta, SCR_META_SIZE, BYTES), 0);
        assert_int_equal(scr_filemap_set_expected(map, 6, rank, 1), 0);
        assert_int_equal(scr_filemap_set_dataset(map, 6, rank, about), 0);
    }
    assert_int_equal(scr_filemap_write(dir, "filemap_0.scriinfo", map, NULL), 0);
    close(dir);
    kvtree_delete(&map);
    kvtree_delete(&about);
}

/* Makes a prefix directory with an index and a flush file, and nothing else. */
static void new_prefix(void)
{
    int held = nth_hold();
    scr_index *index = kvtree_new();
    kvtree *flush = kvtree_new();
    io_close(&here.prefix_dir);
    run("rm -rf %s && mkdir -p %s/.scr", here.prefix, here.prefix);
    here.prefix_dir = open(here.prefix, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(scr_index_start(index), 0);
    assert_int_equal(
        kvtree_file_write(here.prefix_dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, index, NULL),
        0);
    assert_int_equal(scr_flush_file_set(flush, 6, "c6", SCR_LOCATION_CACHE, 1), 0);
    assert_int_equal(scr_flush_file_write(here.prefix_dir, flush, NULL), 0);
    kvtree_delete(&index);
    kvtree_delete(&flush);
    countdown = held;
}

static int setup(void **state)
{
    /* everything is synced, which costs nothing in memory */
    int memory = access("/dev/shm", W_OK) == 0;
    strcpy(here.path, memory ? "/dev/shm/scr-test-XXXXXX" : "/tmp/scr-test-XXXXXX");
    if (!mkdtemp(here.path)) return -1;
    snprintf(here.prefix, sizeof here.prefix, "%s/prefix", here.path);
    snprintf(here.control, sizeof here.control, "%s/cntl/u/scr.7", here.path);
    here.prefix_dir = -1;
    run("mkdir -p -m 700 %s %s/cache/u/scr.7/scr.dataset.6/c6", here.control, here.path);
    for (int rank = 0; rank < RANKS; rank++)
        put_file(rank);
    put_filemap();
    new_prefix();
    return 0;
}

static int teardown(void **state)
{
    io_close(&here.prefix_dir);
    run("rm -rf %s", here.path);
    return 0;
}

/* ---- the cache ---- */

static int do_node(void *arg)
{
    scavenge_node node;
    scavenge_part part;
    scr_dataset d;
    int rc = scavenge_node_open(here.control, here.prefix, &node, &nth_text);
    if (rc) return rc;
    assert_int_equal(node.refused, 0);
    rc = scavenge_node_newest(&node, 6, &d);
    if (!rc) rc = scavenge_part_find(&node, 6, 1, &part, &nth_text);
    if (!rc) {
        assert_int_equal(part.rank->count, 1);
        assert_string_equal(part.rank->files[0].name, "c6/f_1");
        scavenge_part_done(&part);
    }
    scavenge_node_close(&node);
    return rc;
}

/* Checks that saved files with their final names have their bytes; 1 if all exist. */
static int are_right(const char *folder)
{
    int there = 0, held = nth_hold();
    for (int rank = 0; rank < RANKS; rank++) {
        char path[400], bytes[BYTES + 1];
        snprintf(path, sizeof path, "%s/%s/c6/f_%d", here.prefix, folder, rank);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        assert_int_equal(read(fd, bytes, sizeof bytes), BYTES);
        for (int i = 0; i < BYTES; i++)
            assert_int_equal(bytes[i], 'a' + rank);
        close(fd);
        there++;
    }
    countdown = held;
    return there == RANKS;
}

static int copy(int *whole)
{
    const scavenge_wish wish = {.dset = 6, .files = 1, .redundancy = 1, .width = 1};
    char folder[SCAVENGE_FOLDER_SIZE];
    scavenge_node node;
    scavenge_copied copied;
    scavenge_folder_of(&key, folder);
    int rc = scavenge_node_open(here.control, here.prefix, &node, &nth_text);
    if (rc) return rc;
    rc = scavenge_copy(&node, here.prefix_dir, &wish, &copied, &nth_text);
    if (!rc && copied.failed) rc = copied.code;
    *whole = are_right(folder);
    if (!rc) assert_int_equal(copied.ranks, RANKS);
    if (!rc) assert_true(*whole);
    scavenge_node_close(&node);
    return rc;
}

static int do_copy(void *arg)
{
    int whole;
    new_prefix();
    int rc = copy(&whole);
    return rc ? rc : copy(&whole); /* existing files stay */
}

/* ---- saved files ---- */

static int do_scan(void *arg)
{
    scavenge_prefix prefix = {here.prefix, here.prefix_dir, 1, 0};
    scavenge_key found;
    scavenge_saved saved;
    kvtree_error why;
    int *ids = NULL, count = 0;
    kvtree *tree = kvtree_new();
    int rc = tree ? scavenge_find(here.prefix_dir, "c6", &found, &nth_text) : -ENOMEM;
    if (!rc) rc = scavenge_open(&prefix, &found, &saved, &nth_text);
    if (!rc) {
        assert_true(scavenge_scan_is_whole(&saved.scan, &why));
        assert_int_equal(saved.scan.refused, 0);
        rc = scavenge_scan_repairable(&saved.scan, &ids, &count);
        if (!rc) free(ids);
        if (!rc) rc = scavenge_scan_to_tree(&saved.scan, tree);
        scavenge_close(&saved);
    }
    kvtree_delete(&tree);
    return rc;
}

static int do_lacking(void *arg)
{
    scavenge_prefix prefix = {here.prefix, here.prefix_dir, 1, 0};
    scavenge_saved saved;
    kvtree *tree = kvtree_new();
    int rc = tree ? scavenge_open(&prefix, &key, &saved, &nth_text) : -ENOMEM;
    if (!rc) {
        assert_int_equal(scavenge_scan_missing(&saved.scan), 1);
        rc = scavenge_scan_to_tree(&saved.scan, tree);
        scavenge_close(&saved);
    }
    kvtree_delete(&tree);
    return rc;
}

/* ---- the prefix directory ---- */

static int add_up(void *arg, int rank, int count, const filo_file files[],
                  kvtree_error *err)
{
    uint64_t *sum = arg;
    for (int i = 0; i < count; i++)
        *sum += files[i].size;
    return 0;
}

/* Checks that the index is right: for a complete dataset, summary and map can be read,
 * and files outside of containers have their bytes. */
static int is_complete(uint64_t container)
{
    int held = nth_hold(), complete = 0;
    scr_dataset d;
    scr_index_state state = {.complete = 0};
    char folder[100];
    uint64_t sum = 0;
    scr_index *index = kvtree_new();
    snprintf(folder, sizeof folder, "%s/c6", here.prefix);
    const filo_place place = {.folder = folder};
    assert_int_equal(scr_index_read(here.prefix_dir, index, NULL), 0);
    scr_index_look(index, &dataset, &state);
    if (state.complete) {
        int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(scr_summary_read(dir, &d, NULL), 0);
        assert_int_equal(filo_map_read(&place, NULL, add_up, &sum, NULL), 0);
        assert_int_equal(sum, dataset.size);
        close(dir);
        complete = container || are_right(".");
        assert_true(complete);
    }
    kvtree_delete(&index);
    countdown = held;
    return complete;
}

static int do_commit(void *arg)
{
    const uint64_t *container = arg;
    char saved[SCAVENGE_FOLDER_SIZE];
    struct stat st;
    scavenge_commit_result result;
    int whole = 0, held = nth_hold();
    new_prefix();
    assert_int_equal(copy(&whole), 0);
    countdown = held;
    scavenge_prefix prefix = {here.prefix, here.prefix_dir, 1, *container};
    int rc = scavenge_commit(&prefix, &key, &result, &nth_text);
    int complete = is_complete(*container);
    if (!rc) assert_true(result.complete && result.current && complete);
    if (!rc) free(result.rebuilt);
    held = nth_hold();
    scavenge_folder_of(&key, saved);
    int gone = fstatat(here.prefix_dir, saved, &st, AT_SYMLINK_NOFOLLOW) != 0;
    if (!complete) assert_false(gone); /* it has the only copy */
    if (!rc) assert_true(gone);
    if (rc) /* resumes */
        assert_int_equal(scavenge_commit(&prefix, &key, &result, NULL), 0);
    if (rc) free(result.rebuilt);
    assert_true(is_complete(*container));
    countdown = held;
    return rc;
}

/* ---- */

static void cache(void **state)
{
    nth_each("node", do_node, NULL, 20);
    nth_some("copy", do_copy, NULL, 40, DURABLE);
}

static void saved(void **state)
{
    int whole;
    char folder[SCAVENGE_FOLDER_SIZE];
    new_prefix();
    assert_int_equal(copy(&whole), 0);
    nth_each("scan", do_scan, NULL, 40);
    scavenge_folder_of(&key, folder);
    run("rm %s/%s/c6/f_1", here.prefix, folder);
    nth_each("scan of what lacks files", do_lacking, NULL, 30);
}

static void prefix_folder(void **state)
{
    uint64_t container = 0;
    nth_some("commit", do_commit, &container, 100, DURABLE);
    container = 700;
    nth_some("commit in containers", do_commit, &container, 100, DURABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache),
        cmocka_unit_test(saved),
        cmocka_unit_test(prefix_folder),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
