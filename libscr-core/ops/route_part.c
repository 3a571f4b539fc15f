/* SPDX-License-Identifier: BSD-3-Clause */
/* SCR_Route_file_part: parts of files that ranks write together; see ops/route.h. */
#include "ops/bring_parts.h"

#include "common/errtext.h"
#include "plan/part_name.h"
#include <errno.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- output ---- */

/* A part in the cache is a file of its own; one that is written in place has the offsets
 * of the whole file. */
int scr_route_output_part(struct scr *scr, const char *name, const scr_part *part,
                          char *file, uint64_t *at)
{
    char full[SCR_MAX_FILENAME];
    if (scr->lifecycle.open.bypass)
        return scr_route_output(scr, name, SCR_CALL_ROUTE_FILE_PART, part, file);
    if (scr_part_name(name, part->offset, sizeof full, full) != 0) {
        scr_route_refused(scr, name, "the name is too long");
        return scr_route_refuse(scr, SCR_CALL_ROUTE_FILE_PART, SCR_ERR_ARGUMENT,
                                "the name is too long");
    }
    int rc = scr_route_output(scr, full, SCR_CALL_ROUTE_FILE_PART, part, file);
    if (!rc) *at = 0;
    return rc;
}

/* ---- restart ---- */

/* The parts that this rank has in a cached dataset. */
typedef struct part_search {
    const struct scr *scr;
    int id;
    const scr_part *wanted;
    char shared[SCR_NAME_SIZE]; /* the file that the name means */
} part_search;

/* Whether the file of the walk is a part; *file and *orig are the names of the whole one,
 * to be freed. 0 or -ENOMEM. */
static int part_take(const part_search *s, const scr_filemap_walk *walk, char **file,
                     char **orig)
{
    uint64_t offset;
    const char *own = kvtree_get_val(kvtree_elem_hash(walk->file), SCR_META_ORIG);
    const char *name =
        scr_filemap_name_of(kvtree_elem_key(walk->file), s->scr->cache.job->owner, s->id);
    const size_t n = name ? scr_part_parse(name, &offset) : 0,
                 given = own ? scr_part_parse(own, &offset) : 0;
    *file = *orig = NULL;
    if (n == 0) return 0;
    *file = strndup(name, n);
    *orig = given ? strndup(own, given) : NULL;
    return *file && (*orig || !given) ? 0 : -ENOMEM;
}

/* Finds the shared file of which this rank has parts: 0, -ENOENT, -ENOTUNIQ. */
static int part_find_file(part_search *s, scr_file_match *match)
{
    scr_filemap_walk walk = {NULL, NULL};
    kvtree *seen = kvtree_new();
    int rc = seen ? 0 : -ENOMEM;
    s->shared[0] = 0;
    while (!rc && scr_filemap_next(s->scr->cache.map, s->id, &walk)) {
        char *file, *orig;
        rc = part_take(s, &walk, &file, &orig);
        if (!rc && file && !kvtree_get(seen, file)) {
            if (!kvtree_set(seen, file, NULL)) rc = -ENOMEM;
            if (scr_file_match_try(match, file, orig))
                snprintf(s->shared, sizeof s->shared, "%s", file);
        }
        free(file);
        free(orig);
    }
    kvtree_delete(&seen);
    if (rc) return rc;
    return match->files > 1 ? -ENOTUNIQ : s->shared[0] ? 0 : -ENOENT;
}

/* The part that has all wanted bytes: 0 or -ENOENT. */
static int part_find_bytes(const part_search *s, char path[SCR_MAX_FILENAME],
                           uint64_t *at)
{
    scr_filemap_walk walk = {NULL, NULL};
    while (scr_filemap_next(s->scr->cache.map, s->id, &walk)) {
        const char *full = kvtree_elem_key(walk.file);
        const char *name = scr_filemap_name_of(full, s->scr->cache.job->owner, s->id);
        uint64_t offset;
        unsigned long size;
        const size_t n = name ? scr_part_parse(name, &offset) : 0;
        if (n == 0 || strncmp(name, s->shared, n) != 0 || s->shared[n] ||
            kvtree_util_get_bytecount(kvtree_elem_hash(walk.file), SCR_META_SIZE,
                                      &size) != 0)
            continue;
        const scr_part have = {offset, size};
        if (!scr_part_has(&have, s->wanted)) continue;
        *at = s->wanted->offset - offset;
        return snprintf(path, SCR_MAX_FILENAME, "%s", full) < SCR_MAX_FILENAME
                   ? 0
                   : -ENAMETOOLONG;
    }
    return -ENOENT;
}

/* A part that this rank wrote, or bytes that were brought for it. */
static int part_find_own(const struct scr *scr, const char *name, const scr_part *part,
                         char path[SCR_MAX_FILENAME], uint64_t *at)
{
    part_search s = {.scr = scr, .id = scr->lifecycle.open.id, .wanted = part};
    char *full;
    const char *below = NULL;
    scr_file_match match;
    if (scr->prefix.direct.dataset.id == s.id) return -ENOENT;
    int rc = scr_route_below(scr, name, &full, &below);
    if (rc == -ENOMEM) return rc;
    scr_file_match_begin(&match, name, below, scr->prefix.path);
    rc = part_find_file(&s, &match);
    rc = rc ? rc : part_find_bytes(&s, path, at);
    if (rc == -ENOENT && below) rc = scr_bring_find_part(scr, below, part, path, at);
    free(full);
    return rc;
}

/* The whole file, where it is at hand. */
static int part_find_in_file(struct scr *scr, const char *name, const scr_part *part,
                             char path[SCR_MAX_FILENAME], uint64_t *at, kvtree_error *err)
{
    struct stat st;
    int rc = scr_route_find(scr, name, path, err);
    if (rc) return rc;
    if (stat(path, &st) != 0) return err_sys(err, -errno, "%.200s", path);
    *at = part->offset;
    if (part->offset + part->length <= (uint64_t)st.st_size) return 0;
    return err_set(err, -ENOENT, "\"%.200s\" has %lld bytes, not %" PRIu64, name,
                   (long long)st.st_size, part->offset + part->length);
}

int scr_route_restart_part(struct scr *scr, const char *name, const scr_part *part,
                           char *file, uint64_t *at)
{
    char path[SCR_MAX_FILENAME];
    kvtree_error err = {""};
    uint64_t found = 0;
    int rc = part_find_own(scr, name, part, path, &found);
    if (rc == -ENOENT) rc = part_find_in_file(scr, name, part, path, &found, &err);
    if (rc && !err.text[0]) err_sys(&err, rc, "\"%.200s\"", name);
    rc = scr_route_answer(scr, SCR_CALL_ROUTE_FILE_PART, name, rc, &err);
    if (rc) return rc;
    strcpy(file, path);
    *at = found;
    return SCR_SUCCESS;
}
