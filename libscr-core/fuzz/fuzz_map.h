/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_MAP_H
#define FUZZ_MAP_H

/* Properties of every map of files that is accepted: names stay below their directory,
 * segments cover the whole file, and a map that is written can be read with the same
 * content. */

#include "fuzz_places.h"

#include <filo/filo.h>

struct rank {
    int count;
    filo_file *files;
};

struct map {
    int ranks;
    struct rank rank[256];
};

static inline void copy_file(const filo_file *from, filo_file *to)
{
    *to = *from;
    to->name = strdup(from->name);
    to->segment = calloc((size_t)from->segments + 1, sizeof *to->segment);
    uint64_t sum = 0;
    for (int i = 0; i < from->segments; i++) {
        to->segment[i] = from->segment[i];
        to->segment[i].container = strdup(from->segment[i].container);
        REQUIRE(told_name(to->segment[i].container));
        REQUIRE(to->segment[i].length <= INT64_MAX - to->segment[i].offset);
        sum += to->segment[i].length;
    }
    REQUIRE(told_name(from->name) && !from->local && from->mode <= 0777);
    REQUIRE(from->others >= 0);
    REQUIRE(!from->packed || sum == from->size);
}

static inline int take_rank(void *arg, int rank, int count, const filo_file files[],
                            kvtree_error *err)
{
    struct map *map = arg;
    (void)err;
    if (rank >= 256) return 0;
    REQUIRE(rank >= 0 && !map->rank[rank].files);
    filo_file *copy = calloc((size_t)count + 1, sizeof *copy);
    for (int i = 0; i < count; i++)
        copy_file(&files[i], &copy[i]);
    map->rank[rank] = (struct rank){count, copy};
    return 0;
}

static inline int give_rank(void *arg, int rank, int *count, const filo_file **files,
                            kvtree_error *err)
{
    struct map *map = arg;
    (void)err;
    *count = map->rank[rank].count;
    *files = map->rank[rank].files;
    return 0;
}

static inline bool same_file(const filo_file *a, const filo_file *b)
{
    bool same = strcmp(a->name, b->name) == 0 && a->size == b->size && a->crc == b->crc &&
                a->has_crc == b->has_crc && a->mtime == b->mtime &&
                a->has_mtime == b->has_mtime && a->others == b->others &&
                a->packed == b->packed && (!a->packed || a->mode == b->mode) &&
                a->segments == b->segments;
    for (int i = 0; same && i < a->segments; i++)
        same = strcmp(a->segment[i].container, b->segment[i].container) == 0 &&
               a->segment[i].offset == b->segment[i].offset &&
               a->segment[i].length == b->segment[i].length;
    return same;
}

static inline void drop_map(struct map *map)
{
    for (int i = 0; i < 256; i++)
        filo_files_free(map->rank[i].count, map->rank[i].files);
    memset(map, 0, sizeof *map);
}

static inline int read_map(const kvtree *tree)
{
    kvtree_error err = {""};
    const filo_place from = {.folder = places()->folder};
    (void)tree;
    return told(filo_map_read(&from, NULL, NULL, NULL, &err), err.text);
}

static inline void write_map(struct map *map)
{
    static struct map back;
    const filo_place to = {.folder = places()->again, .map = "m.scr"};
    if (filo_map_write(&to, map->ranks, give_rank, map, NULL) != 0) {
        /* a file in this map has the name of the map itself, or of one of its parts */
        const filo_place other = {.folder = places()->again, .map = "_/_/_.scr"};
        REQUIRE(filo_map_write(&other, map->ranks, give_rank, map, NULL) == 0);
        return;
    }
    REQUIRE(filo_map_read(&to, &back.ranks, take_rank, &back, NULL) == 0);
    REQUIRE(back.ranks == map->ranks);
    for (int r = 0; r < map->ranks; r++) {
        REQUIRE(back.rank[r].count == map->rank[r].count);
        for (int i = 0; i < back.rank[r].count; i++)
            REQUIRE(same_file(&back.rank[r].files[i], &map->rank[r].files[i]));
    }
    drop_map(&back);
}

/* Checks a tree of files, with the names that they have beside the root. */
static inline void check_map(const kvtree *tree, uint32_t hash)
{
    static struct map map;
    char name[300];
    const filo_place from = {.folder = places()->folder};
    kvtree_elem *e = kvtree_elem_first(tree);
    for (; e; e = kvtree_elem_next(e)) {
        snprintf(name, sizeof name, ".scr/%s", kvtree_elem_key(e));
        bool good = strncmp(kvtree_elem_key(e), "rank2file.", 10) == 0 &&
                    strlen(name) < 64 && !strchr(kvtree_elem_key(e), '/');
        if (good) put(places()->dataset, name, kvtree_elem_hash(e));
    }
    int rc = take(read_map, tree, hash);
    REQUIRE(rc == 0 || rc == FILO_DAMAGED || rc == -ENOENT);
    if (rc == 0) {
        REQUIRE(filo_map_read(&from, &map.ranks, take_rank, &map, NULL) == 0);
        if (hash % FILES_PART == 0 && map.ranks <= 256) write_map(&map);
    }
    drop_map(&map);
}

#endif
