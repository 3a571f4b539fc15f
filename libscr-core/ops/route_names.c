/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of this process in a cached dataset, found by name: a tree
 *
 *     <last component>/<name below the dataset's directory>/ORIG/<name at output>
 *
 * that the first look-up makes. All ways in which a name may refer to a file
 * (plan/file_match.h) need the same last component: of the file, or of its name at
 * output.
 */
#include "ops/route.h"

#include "base/path.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdlib.h>
#include <string.h>

/* Adds a file under the last component of a name. 0 or -ENOMEM. */
static int names_add(kvtree *names, const char *name, const char *file, const char *orig)
{
    kvtree *leaf = kvtree_set_kv(names, scr_path_basename(name), file);
    if (!leaf) return -ENOMEM;
    return orig ? kvtree_util_set_str(leaf, SCR_META_ORIG, orig) : 0;
}

/* Adds a file under its name, and under the one at output, which may end in links. */
static int names_add_both(kvtree *names, const char *file, const char *orig)
{
    int rc = names_add(names, file, file, orig);
    char *reduced = !rc && orig ? scr_path_reduce(orig) : NULL;
    if (!rc && orig && !reduced) rc = -ENOMEM;
    if (reduced) rc = names_add(names, reduced, file, orig);
    free(reduced);
    return rc;
}

static int names_make(struct scr *scr, int id)
{
    scr_filemap_walk walk = {NULL, NULL};
    kvtree *names = kvtree_new();
    int rc = names ? 0 : -ENOMEM;
    while (!rc && scr_filemap_next(scr->cache.map, id, &walk)) {
        const kvtree *meta = kvtree_elem_hash(walk.file);
        const char *file =
            scr_filemap_name_of(kvtree_elem_key(walk.file), scr->cache.job->owner, id);
        if (file) rc = names_add_both(names, file, kvtree_get_val(meta, SCR_META_ORIG));
    }
    if (rc) {
        kvtree_delete(&names);
        return rc;
    }
    scr->restart.names = names;
    scr->restart.named = id;
    return 0;
}

int scr_route_look_up(struct scr *scr, int id, scr_file_match *match, const char **found)
{
    *found = NULL;
    if (scr->restart.named != id) scr_route_forget(scr);
    int rc = scr->restart.names ? 0 : names_make(scr, id);
    char *reduced = rc || match->below ? NULL : scr_path_reduce(match->name);
    const char *name = match->below ? match->below : reduced;
    if (!rc && !name) rc = -ENOMEM;
    if (rc) return rc;
    const kvtree *same = kvtree_get(scr->restart.names, scr_path_basename(name));
    const kvtree_elem *e = match->below ? kvtree_elem_get(same, match->below) : NULL;
    if (e) {
        scr_file_match_try(match, kvtree_elem_key(e), NULL);
        *found = kvtree_elem_key(e);
    }
    for (e = e ? NULL : kvtree_elem_first(same); e; e = kvtree_elem_next(e)) {
        const char *orig = kvtree_get_val(kvtree_elem_hash(e), SCR_META_ORIG);
        if (scr_file_match_try(match, kvtree_elem_key(e), orig))
            *found = kvtree_elem_key(e);
    }
    free(reduced);
    return 0;
}

void scr_route_forget(struct scr *scr)
{
    kvtree_delete(&scr->restart.names);
    scr->restart.named = 0;
}
