/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of this process in a cached dataset, found by name. The first look-up makes
 * a tree:
 *
 *     FILES/, SHARED/: as plan/file_names.h has them; files, and those that ranks wrote
 *         together and of which this process has parts
 *     PARTS/<shared file>/<offset>/{PATH, LENGTH}: these parts
 */
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
#define NAMES_PATH "PATH"
#define NAMES_LENGTH "LENGTH"

/* A file of the dataset: its path, its name below the directory of the dataset, and the
 * one at output, or NULL. */
typedef struct named_file {
    const kvtree_elem *path;
    const char *name, *orig;
} named_file;

static int names_add_bytes(kvtree *names, const named_file *f, const char *file,
                           uint64_t offset)
{
    char at[24];
    unsigned long length;
    if (kvtree_util_get_bytecount(kvtree_elem_hash(f->path), SCR_META_SIZE, &length) != 0)
        return 0;
    snprintf(at, sizeof at, "%" PRIu64, offset);
    kvtree *part = kvtree_set_kv(kvtree_get(names, NAMES_PARTS), file, at);
    int rc = part ? 0 : -ENOMEM;
    rc = rc ? rc : kvtree_util_set_str(part, NAMES_PATH, kvtree_elem_key(f->path));
    return rc ? rc : kvtree_util_set_bytecount(part, NAMES_LENGTH, length);
}

/* A part, under the names of the whole file. */
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

/* Looks in one of the lists. */
static int names_find(struct scr *scr, int id, const char *list, scr_file_match *match,
                      const char **found)
{
    const kvtree_elem *e;
    *found = NULL;
    if (scr->restart.named != id) scr_route_forget(scr);
    int rc = scr->restart.names ? 0 : names_make(scr, id);
    rc = rc ? rc : scr_file_names_find(kvtree_get(scr->restart.names, list), match, &e);
    if (!rc && e) *found = kvtree_elem_key(e);
    return rc;
}

int scr_route_look_up(struct scr *scr, int id, scr_file_match *match, const char **found)
{
    return names_find(scr, id, NAMES_FILES, match, found);
}

/* Whether a part has all wanted bytes: *path then, and *at, where in it they begin. */
static bool names_part_has(const kvtree_elem *part, const scr_part *wanted,
                           const char **path, uint64_t *at)
{
    unsigned long length;
    const kvtree *tree = kvtree_elem_hash(part);
    if (!part || kvtree_util_get_bytecount(tree, NAMES_LENGTH, &length) != 0)
        return false;
    const scr_part have = {strtoull(kvtree_elem_key(part), NULL, 10), length};
    if (!scr_part_has(&have, wanted)) return false;
    *path = kvtree_get_val(tree, NAMES_PATH);
    *at = wanted->offset - have.offset;
    return true;
}

int scr_route_look_up_part(struct scr *scr, int id, scr_file_match *match,
                           const scr_part *wanted, const char **path, uint64_t *at)
{
    char offset[24];
    const char *file;
    int rc = names_find(scr, id, NAMES_SHARED, match, &file);
    if (rc) return rc;
    if (match->files > 1) return -ENOTUNIQ;
    if (!file) return -ENOENT;
    const kvtree *parts = kvtree_get_kv(scr->restart.names, NAMES_PARTS, file);
    snprintf(offset, sizeof offset, "%" PRIu64, wanted->offset);
    const kvtree_elem *e = kvtree_elem_get(parts, offset);
    if (names_part_has(e, wanted, path, at)) return 0;
    for (e = kvtree_elem_first(parts); e; e = kvtree_elem_next(e))
        if (names_part_has(e, wanted, path, at)) return 0;
    return -ENOENT;
}

void scr_route_forget(struct scr *scr)
{
    kvtree_delete(&scr->restart.names);
    scr->restart.named = 0;
}
