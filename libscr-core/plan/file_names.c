/* SPDX-License-Identifier: BSD-3-Clause */
/* Files by name; see plan/file_names.h. */
#include "plan/file_names.h"

#include "base/path.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdlib.h>

#define NAMES_ORIG "ORIG"

/* Adds a file under the last component of a name. */
static kvtree *names_add(kvtree *names, const char *name, const char *file,
                         const char *orig)
{
    kvtree *leaf = kvtree_set_kv(names, scr_path_basename(name), file);
    return leaf && orig && kvtree_util_set_str(leaf, NAMES_ORIG, orig) != 0 ? NULL : leaf;
}

kvtree *scr_file_names_add(kvtree *names, const char *file, const char *orig)
{
    kvtree *leaf = names_add(names, file, file, orig);
    if (!leaf || !orig) return leaf;
    char *reduced = scr_path_reduce(orig);
    if (!reduced || !names_add(names, reduced, file, orig)) leaf = NULL;
    free(reduced);
    return leaf;
}

bool scr_file_names_has(const kvtree *names, const char *file)
{
    return kvtree_get_kv(names, scr_path_basename(file), file) != NULL;
}

int scr_file_names_find(const kvtree *names, scr_file_match *match,
                        const kvtree_elem **found)
{
    *found = NULL;
    char *reduced = match->below ? NULL : scr_path_reduce(match->name);
    const char *name = match->below ? match->below : reduced;
    if (!name) return -ENOMEM;
    const kvtree *same = kvtree_get(names, scr_path_basename(name));
    const kvtree_elem *e = match->below ? kvtree_elem_get(same, match->below) : NULL;
    if (e) {
        scr_file_match_try(match, kvtree_elem_key(e), NULL);
        *found = e;
    }
    for (e = e ? NULL : kvtree_elem_first(same); e; e = kvtree_elem_next(e)) {
        const char *orig = kvtree_get_val(kvtree_elem_hash(e), NAMES_ORIG);
        if (scr_file_match_try(match, kvtree_elem_key(e), orig)) *found = e;
    }
    free(reduced);
    return 0;
}
