/* SPDX-License-Identifier: BSD-3-Clause */
/* One file of the map: its tree made and taken apart (docs/formats/rank2file.md). What is
 * taken apart may come from anyone, so all of it is checked before any of it is used. */
#include "src/filo_private.h"

#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".scr"

/* ---- names ---- */

/* Length of map without its suffix. */
static size_t stem_length(const char *map)
{
    size_t length = strlen(map), suffix = strlen(SUFFIX);
    return length > suffix && strcmp(map + length - suffix, SUFFIX) == 0 ? length - suffix
                                                                         : length;
}

int filo_map_name(const char *map, int level, int rank, char name[BENEATH_NAME_MAX])
{
    int n = snprintf(name, BENEATH_NAME_MAX, "%.*s.%d.%d" SUFFIX, (int)stem_length(map),
                     map, level, rank);
    return n < BENEATH_NAME_MAX ? 0 : -ENAMETOOLONG;
}

int filo_map_owns(const char *map, const char *name)
{
    size_t stem = stem_length(map);
    return strcmp(name, map) == 0 || (strncmp(name, map, stem) == 0 && name[stem] == '.');
}

uint64_t filo_map_pointer_max(const char *map)
{
    return strlen(map) + 128;
}

/* ---- making ---- */

static int add_file(kvtree *names, const filo_file *file)
{
    kvtree *known = kvtree_set(names, file->name, NULL);
    if (!known) return -ENOMEM;
    int rc = kvtree_util_set_bytecount(known, "SIZE", file->size);
    return rc || !file->has_crc ? rc : kvtree_util_set_crc32(known, "CRC", file->crc);
}

kvtree *filo_map_entry(int count, const filo_file files[])
{
    kvtree *entry = kvtree_new();
    kvtree *names = kvtree_set(entry, "FILE", NULL);
    int rc = names ? 0 : -ENOMEM;
    for (int i = 0; i < count && rc == 0; i++)
        rc = add_file(names, &files[i]);
    if (rc) kvtree_delete(&entry);
    return entry;
}

kvtree *filo_map_pointer(const char *name)
{
    kvtree *pointer = kvtree_new();
    if (kvtree_util_set_int(pointer, "OFFSET", 0) != 0 ||
        kvtree_util_set_str(pointer, "FILE", name) != 0)
        kvtree_delete(&pointer);
    return pointer;
}

kvtree *filo_map_make(int level, int ranks, kvtree *items)
{
    kvtree *tree = kvtree_new();
    kvtree *body = level == 0 ? kvtree_set(tree, "RANK2FILE", NULL) : tree;
    if (kvtree_util_set_int(body, "LEVEL", level) == 0 &&
        kvtree_util_set_int(body, "RANKS", ranks) == 0 && kvtree_set(body, "RANK", items))
        return tree;
    kvtree_delete(&items);
    kvtree_delete(&tree);
    return NULL;
}

/* ---- taking apart ---- */

static int check_file(const char *name, const kvtree *known, char *err)
{
    unsigned long number;
    if (beneath_check_name(name, err) != 0) return FILO_DAMAGED;
    if (kvtree_util_get_bytecount(known, "SIZE", &number) != 0)
        return err_set(err, FILO_DAMAGED, "file \"%s\" has no valid SIZE", name);
    if (kvtree_get(known, "CRC") && kvtree_util_get_crc32(known, "CRC", &number) != 0)
        return err_set(err, FILO_DAMAGED, "file \"%s\" has no valid CRC", name);
    return 0;
}

static int check_entry(const char *rank, const kvtree *entry, char *err)
{
    const kvtree *names = kvtree_get(entry, "FILE");
    for (kvtree_elem *e = kvtree_elem_first(names); e; e = kvtree_elem_next(e)) {
        int rc = check_file(kvtree_elem_key(e), kvtree_elem_hash(e), err);
        if (rc) return err_wrap(err, rc, "rank %s", rank);
    }
    return 0;
}

static int check_pointer(const char *rank, const kvtree *pointer, char *err)
{
    char *name;
    unsigned long offset;
    if (kvtree_util_get_bytecount(pointer, "OFFSET", &offset) != 0 || offset != 0)
        return err_set(err, FILO_DAMAGED, "the OFFSET of reader %s is not 0", rank);
    if (kvtree_util_get_str(pointer, "FILE", &name) != 0)
        return err_set(err, FILO_DAMAGED, "reader %s has no FILE", rank);
    return beneath_check_name(name, err) == 0
               ? 0
               : err_wrap(err, FILO_DAMAGED, "reader %s", rank);
}

/* A rank is written in one way only, so that no two keys mean the same rank. */
static int check_rank(const kvtree_elem *item, char *err)
{
    char digits[16];
    int rank = kvtree_elem_key_int(item);
    snprintf(digits, sizeof digits, "%d", rank);
    if (rank >= 0 && strcmp(digits, kvtree_elem_key(item)) == 0) return 0;
    return err_set(err, FILO_DAMAGED, "\"%.20s\" is no rank", kvtree_elem_key(item));
}

static int check_items(const kvtree *items, int level, char *err)
{
    for (kvtree_elem *e = kvtree_elem_first(items); e; e = kvtree_elem_next(e)) {
        int rc = check_rank(e, err);
        if (rc) return rc;
        rc = level == 0 ? check_entry(kvtree_elem_key(e), kvtree_elem_hash(e), err)
                        : check_pointer(kvtree_elem_key(e), kvtree_elem_hash(e), err);
        if (rc) return rc;
    }
    return 0;
}

static int check_counts(const filo_map_part *part, char *err)
{
    int items = kvtree_size(part->items);
    if (items == 0) return err_set(err, FILO_DAMAGED, "nothing under RANK");
    if (part->level == 0 ? items != part->ranks : items > part->ranks)
        return err_set(err, FILO_DAMAGED, "RANKS is %d, but %d are listed", part->ranks,
                       items);
    return 0;
}

int filo_map_take(kvtree *tree, int level, filo_map_part *part, char *err)
{
    kvtree *body = level == 0 ? kvtree_get(tree, "RANK2FILE") : tree;
    filo_map_part found = {0};
    if (kvtree_util_get_int(body, "LEVEL", &found.level) != 0)
        return err_set(err, FILO_DAMAGED, "no valid LEVEL");
    if (level >= 0 && found.level != level)
        return err_set(err, FILO_DAMAGED, "LEVEL is %d, not %d", found.level, level);
    if (level < 0 && (found.level < 1 || found.level > FILO_LEVEL_MAX))
        return err_set(err, FILO_DAMAGED, "LEVEL %d cannot be that of a root",
                       found.level);
    if (kvtree_util_get_int(body, "RANKS", &found.ranks) != 0 || found.ranks < 1)
        return err_set(err, FILO_DAMAGED, "no valid RANKS");
    found.items = kvtree_get(body, "RANK");
    int rc = check_counts(&found, err);
    if (rc == 0) rc = check_items(found.items, found.level, err);
    if (rc) return rc;
    kvtree_extract(body, "RANK");
    *part = found;
    return 0;
}

int filo_map_files(const kvtree *entry, int *count, filo_file **files)
{
    const kvtree *names = kvtree_get(entry, "FILE");
    int total = kvtree_size(names), i = 0;
    filo_file *list = calloc((size_t)total + 1, sizeof *list);
    if (!list) return -ENOMEM;
    for (kvtree_elem *e = kvtree_elem_first(names); e; e = kvtree_elem_next(e), i++) {
        unsigned long size = 0, crc = 0;
        const kvtree *known = kvtree_elem_hash(e);
        kvtree_util_get_bytecount(known, "SIZE", &size);
        list[i].has_crc = kvtree_util_get_crc32(known, "CRC", &crc) == 0;
        list[i].size = size;
        list[i].crc = (uint32_t)crc;
        list[i].name = strdup(kvtree_elem_key(e));
        if (!list[i].name) {
            filo_files_free(i, list);
            return -ENOMEM;
        }
    }
    *count = total;
    *files = list;
    return 0;
}

const char *filo_map_lower(const kvtree *pointer)
{
    return kvtree_elem_get_first_val(pointer, "FILE");
}
