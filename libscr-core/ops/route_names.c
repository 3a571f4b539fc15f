/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of this process in a cached dataset, found by name. The first look-up makes a
 * tree:
 *
 *     FILES/, SHARED/: as in plan/file_names.h; the files, and the files that ranks wrote
 *         together and of which this process has parts
 *     PARTS/<shared file>/<offset>/<length>/<path>: these parts */
#include "ops/route.h"

#include "plan/file_names.h"
#include "plan/part_name.h"
#include <errno.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_FILES "FILES"
#define NAMES_SHARED "SHARED"
#define NAMES_PARTS "PARTS"

/* A file of the dataset: its path, its name below the directory of the dataset, and its
 * name at output, or NULL. */
typedef struct named_file {
    const kvtree_elem *path;
    const char *name, *orig;
} named_file;

static void names_part_keys(const scr_part *part, char offset[24], char length[24])
{
    snprintf(offset, 24, "%" PRIu64, part->offset);
    snprintf(length, 24, "%" PRIu64, part->length);
}

static int names_add_bytes(kvtree *names, const named_file *f, const char *file,
                           uint64_t offset)
{
    char at[24], size[24];
    unsigned long length;
    if (kvtree_util_get_bytecount(kvtree_elem_hash(f->path), SCR_META_SIZE, &length) != 0)
        return 0;
    names_part_keys(&(scr_part){offset, length}, at, size);
    kvtree *part = kvtree_set_kv(kvtree_get(names, NAMES_PARTS), file, at);
    return part && kvtree_set_kv(part, size, kvtree_elem_key(f->path)) ? 0 : -ENOMEM;
}

/* Adds a part under the names of the whole file. */
static int names_add_part(kvtree *names, const named_file *f)
{
    char file[SCR_NAME_SIZE], orig[SCR_MAX_FILENAME];
    uint64_t offset, unused;
    const size_t n = scr_part_parse(f->name, &offset),
                 given = f->orig ? scr_part_parse(f->orig, &unused) : 0;
    if (n == 0 || n >= sizeof file || given >= sizeof orig) return 0;
    snprintf(file, sizeof file, "%.*s", (int)n, f->name);
    snprintf(orig, sizeof orig, "%.*s", (int)given, given ? f->orig : "");
    kvtree *shared = kvtree_get(names, NAMES_SHARED);
    if (!scr_file_names_has(shared, file) &&
        !scr_file_names_add(shared, file, given ? orig : NULL))
        return -ENOMEM;
    return names_add_bytes(names, f, file, offset);
}

static int names_add(kvtree *names, const named_file *f)
{
    if (!f->name) return 0;
    if (!scr_file_names_add(kvtree_get(names, NAMES_FILES), f->name, f->orig))
        return -ENOMEM;
    return names_add_part(names, f);
}

static int names_make(struct scr *scr, int id)
{
    scr_filemap_walk walk = {NULL, NULL};
    kvtree *names = kvtree_new();
    int rc = names && kvtree_set(names, NAMES_FILES, NULL) &&
                     kvtree_set(names, NAMES_SHARED, NULL) &&
                     kvtree_set(names, NAMES_PARTS, NULL)
                 ? 0
                 : -ENOMEM;
    while (!rc && scr_filemap_next(scr->cache.map, id, &walk)) {
        const named_file f = {
            walk.file,
            scr_filemap_name_of(kvtree_elem_key(walk.file), scr->cache.job->owner, id),
            kvtree_get_val(kvtree_elem_hash(walk.file), SCR_META_ORIG)};
        rc = names_add(names, &f);
    }
    if (rc) {
        kvtree_delete(&names);
        return rc;
    }
    scr->restart.names = names;
    scr->restart.named = id;
    return 0;
}

/* Ensures that the names of this dataset are loaded. */
static int names_begin(struct scr *scr, int id)
{
    if (scr->restart.named != id) scr_route_forget(scr);
    return scr->restart.names ? 0 : names_make(scr, id);
}

/* Searches in one of the lists. */
static int names_find(struct scr *scr, int id, const char *list, scr_file_match *match,
                      const char **found)
{
    const kvtree_elem *e;
    *found = NULL;
    int rc = names_begin(scr, id);
    rc = rc ? rc : scr_file_names_find(kvtree_get(scr->restart.names, list), match, &e);
    if (!rc && e) *found = kvtree_elem_key(e);
    return rc;
}

int scr_route_look_up(struct scr *scr, int id, scr_file_match *match, const char **found)
{
    return names_find(scr, id, NAMES_FILES, match, found);
}

int scr_route_has(struct scr *scr, int id, const char *file)
{
    int rc = names_begin(scr, id);
    return rc ? rc
              : scr_file_names_has(kvtree_get(scr->restart.names, NAMES_FILES), file);
}

/* Finds the part that begins with the wanted bytes, which is the common case. */
static bool names_find_begin(const kvtree *parts, const scr_part *wanted,
                             const char **path, uint64_t *at)
{
    char offset[24], unused[24];
    names_part_keys(wanted, offset, unused);
    const kvtree_elem *length = kvtree_elem_first(kvtree_get(parts, offset));
    if (!length || strtoull(kvtree_elem_key(length), NULL, 10) < wanted->length)
        return false;
    *path = kvtree_elem_key(kvtree_elem_first(kvtree_elem_hash(length)));
    *at = 0;
    return true;
}

static int names_find_within(scr_part_memo *memo, const kvtree *parts,
                             const scr_part *wanted, const char **path, uint64_t *at)
{
    char offset[24], length[24];
    size_t count;
    const scr_part *list = scr_part_memo_list(memo, parts, &count);
    const size_t i = list ? scr_part_list_find(list, count, wanted->offset) : 0;
    if (!list) return -ENOMEM;
    if (i == count || !scr_part_has(&list[i], wanted)) return -ENOENT;
    names_part_keys(&list[i], offset, length);
    *path = kvtree_elem_get_first_val(kvtree_get(parts, offset), length);
    *at = wanted->offset - list[i].offset;
    return 0;
}

int scr_route_look_up_part(struct scr *scr, int id, scr_file_match *match,
                           const scr_part *wanted, const char **path, uint64_t *at)
{
    const char *file;
    int rc = names_find(scr, id, NAMES_SHARED, match, &file);
    if (rc) return rc;
    if (match->files > 1) return -ENOTUNIQ;
    if (!file) return -ENOENT;
    const kvtree *parts = kvtree_get_kv(scr->restart.names, NAMES_PARTS, file);
    if (names_find_begin(parts, wanted, path, at)) return 0;
    return names_find_within(&scr->restart.own_parts, parts, wanted, path, at);
}

void scr_route_forget(struct scr *scr)
{
    scr_part_memo_forget(&scr->restart.own_parts);
    kvtree_delete(&scr->restart.names);
    scr->restart.named = 0;
}
