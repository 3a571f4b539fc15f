/* SPDX-License-Identifier: BSD-3-Clause */
/* Any text as the records of SCR: a line for each key (fuzz_lines.h). The first keys are
 * names of records, so that one input may contain several records, also inconsistent
 * ones.
 *
 * A record is accepted exactly if an independent reader, written from
 * docs/formats/scr.md, accepts it, and both return the same content. An accepted record
 * can be written and read again with the same content. No name in it leads out of its
 * directory, or into SCR's. Changes of it have the documented effect. Memory is bounded,
 * and allocations may fail. */
#include "fuzz_index.h"
#include "fuzz_map.h"

#include "cache/filemap.h"
#include "halt/halt.h"
#include "prefix/nodes.h"
#include "prefix/scan.h"

#define FILEMAP "filemap_0.scriinfo"

/* ---- description ---- */

static int read_dataset(const kvtree *tree)
{
    scr_dataset d;
    kvtree_error err = {""};
    return told(scr_dataset_from_tree(tree, &d, &err), err.text);
}

static void check_dataset(const kvtree *tree, uint32_t hash)
{
    scr_dataset d, same, again;
    int good = told_dataset(tree, &same);
    REQUIRE(take(read_dataset, tree, hash) == (good ? 0 : -EBADMSG));
    if (!good) return;
    kvtree *written = kvtree_new();
    REQUIRE(scr_dataset_from_tree(tree, &d, NULL) == 0 && same_dataset(&d, &same));
    REQUIRE(scr_dataset_to_tree(&d, written) == 0 && told_dataset(written, &again));
    REQUIRE(same_dataset(&d, &again));
    REQUIRE(scr_dataset_from_tree(written, &again, NULL) == 0);
    REQUIRE(same_dataset(&d, &again));
    kvtree_delete(&written);
}

static int read_summary(const kvtree *tree)
{
    scr_dataset d;
    kvtree_error err = {""};
    (void)tree;
    return told(scr_summary_read(places()->dataset, &d, &err), err.text);
}

static void check_summary(const kvtree *tree, uint32_t hash)
{
    int version, dir = places()->dataset;
    scr_dataset d, same;
    bool known = fuzz_integer(tree, "VERSION", INT_MIN, INT_MAX, &version);
    bool other = known && version != 6;
    int good = known && !other && told_dataset(kvtree_get(tree, "DSET"), &same);
    put(dir, SCR_SUMMARY_NAME, tree);
    REQUIRE(take(read_summary, tree, hash) == (good    ? 0
                                               : other ? SCR_OTHER_VERSION
                                                       : -EBADMSG));
    if (!good) return;
    REQUIRE(scr_summary_read(dir, &d, NULL) == 0 && same_dataset(&d, &same));
    if (hash % FILES_PART) return;
    REQUIRE(scr_summary_write(dir, &same, NULL) == 0);
    REQUIRE(scr_summary_read(dir, &d, NULL) == 0 && same_dataset(&d, &same));
}

/* ---- filemaps ---- */

static int read_filemap(const kvtree *tree)
{
    kvtree_error err = {""};
    scr_filemap *map = kvtree_new();
    int rc = map ? scr_filemap_read(places()->control, FILEMAP, OWNER, map, &err)
                 : err_set(&err, -ENOMEM, "no memory");
    (void)tree;
    REQUIRE(rc == 0 || rc == -ENOMEM || kvtree_size(map) == 0);
    kvtree_delete(&map);
    return told(rc, err.text);
}

/* Every pair of rank and dataset, with its files, is also found through the index. */
static void check_pairs(const scr_filemap *map, int pairs, int files)
{
    int count, ranks, *ids, *list;
    REQUIRE(scr_filemap_list_datasets(map, &count, &ids) == 0);
    for (int i = 0; i < count; i++) {
        REQUIRE(scr_filemap_list_ranks_of(map, ids[i], &ranks, &list) == 0);
        for (int k = 0; k < ranks; k++, pairs--) {
            const kvtree *all = scr_filemap_files(map, ids[i], list[k]);
            const kvtree_elem *f = kvtree_elem_first(all);
            for (; f; f = kvtree_elem_next(f), files--) {
                const char *path = kvtree_elem_key(f),
                           *name = scr_filemap_name_of(path, OWNER, ids[i]);
                REQUIRE(name && told_name(name));
                REQUIRE(told_path(path, ids[i]) && !scr_filemap_name_of(path, "v", 1));
            }
            scr_filemap_expected(map, ids[i], list[k]);
            REQUIRE(kvtree_size(all) == 0 || *list >= 0);
        }
        free(list);
    }
    free(ids);
    REQUIRE(pairs == 0 && files == 0);
}

/* The map moves to another one rank by rank, and is removed dataset by dataset. */
static void empty_filemap(scr_filemap *map, int pairs, int files)
{
    int count, *list;
    scr_filemap *target = kvtree_new();
    REQUIRE(scr_filemap_list_ranks(map, &count, &list) == 0);
    for (int i = 0; i < count; i++)
        REQUIRE(scr_filemap_move_rank(map, list[i], target) == 0);
    free(list);
    check_pairs(map, 0, 0);
    check_pairs(target, pairs, files);
    REQUIRE(scr_filemap_list_datasets(target, &count, &list) == 0);
    for (int i = 0; i < count; i++)
        REQUIRE(scr_filemap_remove_dataset(target, list[i]) == 0);
    free(list);
    check_pairs(target, 0, 0);
    kvtree_delete(&target);
}

static void check_filemap(const kvtree *tree, uint32_t hash)
{
    int files, pairs = told_filemap(tree, &files), dir = places()->control;
    put(dir, FILEMAP, tree);
    REQUIRE(take(read_filemap, tree, hash) == (pairs < 0 ? -EBADMSG : 0));
    if (pairs < 0) return;
    scr_filemap *map = kvtree_new(), *again = kvtree_new();
    REQUIRE(scr_filemap_read(dir, FILEMAP, OWNER, map, NULL) == 0);
    check_pairs(map, pairs, files);
    if (hash % FILES_PART)
        put(dir, FILEMAP, map);
    else
        REQUIRE(scr_filemap_write(dir, FILEMAP, map, NULL) == 0);
    REQUIRE(scr_filemap_read(dir, FILEMAP, OWNER, again, NULL) == 0);
    REQUIRE(fuzz_tree_same(map, again));
    empty_filemap(again, pairs, files);
    kvtree_delete(&map);
    kvtree_delete(&again);
}

static int read_master(const kvtree *tree)
{
    kvtree_error err = {""};
    kvtree *names = kvtree_new();
    int rc = names ? scr_filemap_names(places()->control, 0, names, &err)
                   : err_set(&err, -ENOMEM, "no memory");
    REQUIRE(rc == 0 || kvtree_size(names) == 0);
    kvtree_delete(&names);
    (void)tree;
    return told(rc, err.text);
}

static void check_master(const kvtree *tree, uint32_t hash)
{
    const struct places *p = places();
    kvtree *names = kvtree_new();
    scr_filemap *map = kvtree_new();
    put(p->control, SCR_FILEMAP_MASTER, tree);
    REQUIRE(take(read_master, tree, hash) == 0);
    REQUIRE(scr_filemap_names(p->control, 0, names, NULL) == 0);
    kvtree_elem *e = kvtree_elem_first(kvtree_get(tree, "Filemap"));
    for (; e; e = kvtree_elem_next(e)) {
        const char *slash = strrchr(kvtree_elem_key(e), '/');
        REQUIRE(kvtree_get(names, slash ? slash + 1 : kvtree_elem_key(e)));
    }
    for (e = kvtree_elem_first(names); e; e = kvtree_elem_next(e)) {
        const char *name = kvtree_elem_key(e);
        int rc = scr_filemap_read(p->control, name, OWNER, map, NULL);
        REQUIRE(!strchr(name, '/') && (rc || told_name(name)));
    }
    kvtree_delete(&names);
    kvtree_delete(&map);
    unlinkat(p->control, SCR_FILEMAP_MASTER, 0);
}

/* ---- flush file ---- */

static int read_flush(const kvtree *tree)
{
    kvtree_error err = {""};
    kvtree *flush = kvtree_new();
    int rc = flush ? scr_flush_file_read(places()->prefix, flush, &err)
                   : err_set(&err, -ENOMEM, "no memory");
    REQUIRE(rc == 0 || kvtree_size(flush) == 0);
    kvtree_delete(&flush);
    (void)tree;
    return told(rc, err.text);
}

static void check_locations(kvtree *flush)
{
    int count, left, *ids, *kept;
    REQUIRE(scr_flush_file_list(flush, &count, &ids) == 0);
    for (int i = 0; i < count; i++) {
        const char *name = scr_flush_file_name(flush, ids[i]);
        REQUIRE(!name || told_dataset_name(name));
        REQUIRE(scr_flush_file_set(flush, ids[i], "x", SCR_LOCATION_PFS, 1) == 0);
        REQUIRE(scr_flush_file_has(flush, ids[i], SCR_LOCATION_PFS));
        REQUIRE(strcmp(scr_flush_file_name(flush, ids[i]), "x") == 0);
        REQUIRE(scr_flush_file_set(flush, ids[i], "x", SCR_LOCATION_PFS, 0) == 0);
        REQUIRE(!scr_flush_file_has(flush, ids[i], SCR_LOCATION_PFS));
    }
    REQUIRE(scr_flush_file_keep(flush, ids, count / 2) == 0);
    REQUIRE(scr_flush_file_list(flush, &left, &kept) == 0 && left == count / 2);
    for (int i = 0; i < left; i++)
        REQUIRE(kept[i] == ids[i]);
    free(ids);
    free(kept);
}

static void check_flush(const kvtree *tree, uint32_t hash)
{
    int good = told_flush(tree), dir = places()->prefix;
    kvtree *flush = kvtree_new();
    put(dir, SCR_FLUSH_FILE_NAME, tree);
    REQUIRE(take(read_flush, tree, hash) == (good ? 0 : -EBADMSG));
    if (good) {
        REQUIRE(scr_flush_file_read(dir, flush, NULL) == 0);
        REQUIRE(fuzz_tree_same(flush, tree));
        check_locations(flush);
        if (hash % FILES_PART == 0) {
            REQUIRE(scr_flush_file_write(dir, flush, NULL) == 0);
            REQUIRE(take(read_flush, flush, hash) == 0);
        }
    }
    kvtree_delete(&flush);
}

/* ---- halt and nodes file ---- */

static int read_halt(const kvtree *tree)
{
    kvtree_error err = {""};
    kvtree *halt = kvtree_new();
    int rc = halt ? scr_halt_read(places()->prefix, halt, &err)
                  : err_set(&err, -ENOMEM, "no memory");
    kvtree_delete(&halt);
    (void)tree;
    return told(rc, err.text);
}

static void require_halt(const kvtree *halt, int64_t end, int64_t now)
{
    const scr_halt_end ends = {.time = end, .source = "TEST"};
    char reason[SCR_HALT_REASON_SIZE];
    memset(reason, 1, sizeof reason);
    REQUIRE(scr_halt_check(halt, &ends, now, reason) == told_halt(halt, end, now));
    if (!told_halt(halt, end, now)) return;
    REQUIRE(strnlen(reason, sizeof reason) < sizeof reason);
    for (const char *c = reason; *c; c++)
        REQUIRE((unsigned char)*c >= 0x20 && *c != 0x7f);
    REQUIRE(!scr_halt_lacks_end(halt, &ends) || !end);
}

static void check_halt(const kvtree *tree, uint32_t hash)
{
    const int64_t now = 1700000000;
    kvtree *halt = kvtree_new();
    int64_t before = 0, after = 0;
    put(places()->prefix, SCR_HALT_NAME, tree);
    REQUIRE(take(read_halt, tree, hash) == 0);
    REQUIRE(scr_halt_read(places()->prefix, halt, NULL) == 0);
    REQUIRE(fuzz_tree_same(halt, tree));
    require_halt(halt, 0, now);
    require_halt(halt, now + 600, now);
    require_halt(halt, 1, 0);
    bool counts =
        told_time(halt, "CheckpointsLeft", &before) && before > 0 && before <= INT_MAX;
    REQUIRE(scr_halt_count_checkpoint(halt) == counts);
    REQUIRE(!counts ||
            (told_time(halt, "CheckpointsLeft", &after) && after == before - 1));
    REQUIRE(scr_halt_drop_own_reason(halt) >= 0);
    REQUIRE(scr_halt_drop_own_reason(halt) == 0);
    REQUIRE(scr_halt_add_reason(halt, SCR_HALT_FINALIZED) >= 0);
    require_halt(halt, 0, now);
    if (hash % FILES_PART == 0) {
        REQUIRE(scr_halt_write(places()->prefix, halt, NULL) == 0);
        REQUIRE(take(read_halt, halt, hash) == 0);
    }
    kvtree_delete(&halt);
}

static int read_nodes(const kvtree *tree)
{
    int nodes;
    kvtree_error err = {""};
    (void)tree;
    return told(scr_nodes_read(places()->prefix, &nodes, &err), err.text);
}

static void check_nodes(const kvtree *tree, uint32_t hash)
{
    int dir = places()->prefix, wanted = 0, nodes = 0;
    bool good = fuzz_integer(tree, "NODES", 1, INT_MAX, &wanted);
    put(dir, SCR_NODES_NAME, tree);
    REQUIRE(take(read_nodes, tree, hash) == (good ? 0 : -EBADMSG));
    if (!good) return;
    REQUIRE(scr_nodes_read(dir, &nodes, NULL) == 0 && nodes == wanted);
    if (hash % FILES_PART) return;
    REQUIRE(scr_nodes_write(dir, wanted, NULL) == 0);
    REQUIRE(scr_nodes_read(dir, &nodes, NULL) == 0 && nodes == wanted);
}

/* ---- all of them ---- */

static int read_scan(const kvtree *tree)
{
    kvtree_error err = {""};
    scr_scan scan;
    int rc = scr_scan_open(&scan, places()->path, &err);
    (void)tree;
    rc = rc ? rc : scr_scan_all(&scan, NULL, &err);
    if (rc && rc != -ENOMEM) REQUIRE(!"it is read");
    scr_scan_close(&scan);
    return rc;
}

/* The search finds the dataset that its summary and its map describe, and an index made
 * from the result offers it. */
static void check_scan(const kvtree *tree, uint32_t hash)
{
    scr_scan scan;
    scr_dataset d;
    scr_index *index = kvtree_new();
    REQUIRE(take(read_scan, tree, hash) == 0);
    REQUIRE(scr_scan_open(&scan, places()->path, NULL) == 0);
    REQUIRE(scr_scan_all(&scan, NULL, NULL) == 0 && scan.count <= 1 && !scan.stopped);
    told(scan.refused, scan.why.text);
    REQUIRE(scr_index_start(index) == 0);
    REQUIRE(scr_index_restore(index, scan.found, scan.count) == 0);
    if (scan.count > 0) {
        scr_dataset *found = scan.found;
        REQUIRE(strcmp(found->name, DATASET) == 0);
        REQUIRE(scr_summary_read(places()->dataset, &d, NULL) == 0 && d.id == found->id);
        REQUIRE(!found->complete || read_map(tree) == 0 || found->scattered);
        REQUIRE(scr_index_get(index, DATASET, &d) == 0 && same_dataset(&d, found));
        bool offered = found->complete && found->ckpt > 0;
        REQUIRE((scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &d) == 0) == offered);
        REQUIRE(scr_index_is_current(index, DATASET) == offered);
    }
    scr_scan_close(&scan);
    kvtree_delete(&index);
}

static void clear(int dir, const char *name)
{
    int folder = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fdopendir(folder);
    for (struct dirent *item; (item = readdir(stream));)
        unlinkat(folder, item->d_name, 0); /* unlinkat does not remove . and .. */
    closedir(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const char *name;
        void (*check)(const kvtree *tree, uint32_t hash);
    } records[] = {
        {"dataset", check_dataset}, {"filemap", check_filemap}, {"master", check_master},
        {"flush", check_flush},     {"halt", check_halt},       {"nodes", check_nodes},
        {"index", check_index},     {"summary", check_summary}, {"map", check_map}};
    char *text = fuzz_copy(data, size);
    uint32_t hash = fuzz_hash(data, size);
    kvtree *tree = fuzz_tree(text, size);
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        const kvtree *record = kvtree_get(tree, records[i].name);
        if (record) records[i].check(record, hash);
    }
    if (kvtree_get(tree, "summary")) check_scan(tree, hash);
    clear(places()->prefix, ".scr");
    clear(places()->dataset, ".scr");
    clear(places()->prefix, "control");
    clear(places()->prefix, "again");
    kvtree_delete(&tree);
    free(text);
    return 0;
}
