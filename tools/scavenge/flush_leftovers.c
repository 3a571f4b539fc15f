/* SPDX-License-Identifier: BSD-3-Clause */
/* Leftovers of an interrupted flush; see flush_leftovers.h. */
#include "scavenge/flush_leftovers.h"

#include "base/path.h"
#include "base/record_change.h"
#include "common/beneath.h"
#include "common/io.h"
#include "prefix/flush_file.h"
#include <filo/filo.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the flush ---- */

/* The id of the only flush of d; 0: none, or several. */
static uint64_t leftovers_only_flush(const kvtree *flush, const scr_dataset *d,
                                     const char *owner)
{
    scr_flush_record r;
    uint64_t id = 0;
    for (int i = 0; scr_flush_file_get(flush, NULL, i, &r) == 0; i++) {
        if (r.dset != d->id || strcmp(r.name, d->name) != 0) continue;
        if (id || (owner && strcmp(r.owner, owner) != 0)) return 0;
        id = r.trace.id;
    }
    return id;
}

static bool leftovers_is_unchanged(int prefix, const struct stat *before)
{
    struct stat st;
    return beneath_stat(prefix, SCR_FLUSH_FILE_NAME, &st, NULL) == 0 &&
           st.st_ino == before->st_ino && st.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           st.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

uint64_t scavenge_flush_find(int prefix, const scr_dataset *d, const char *owner,
                             char text[SCAVENGE_FLUSH_SIZE])
{
    struct stat st;
    uint64_t id = 0;
    kvtree *flush = kvtree_new();
    if (flush && beneath_stat(prefix, SCR_FLUSH_FILE_NAME, &st, NULL) == 0 &&
        scr_flush_file_read(prefix, flush, NULL) == 0 &&
        leftovers_is_unchanged(prefix, &st))
        id = leftovers_only_flush(flush, d, owner);
    kvtree_delete(&flush);
    *text = 0;
    if (id)
        snprintf(text, SCAVENGE_FLUSH_SIZE, "%016" PRIx64 " %lld.%09ld", id,
                 (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    return id;
}

uint64_t scavenge_leftovers_find(int prefix, const scavenge_scan *scan)
{
    char text[SCAVENGE_FLUSH_SIZE];
    uint64_t id = scavenge_flush_find(prefix, &scan->dataset, NULL, text);
    if (scan->count != scan->dataset.ranks) return 0;
    for (int i = 0; i < scan->count && id; i++)
        if (strcmp(scan->ranks[i]->flush, text) != 0) return 0;
    return id;
}

/* ---- removal ---- */

/* From the folder of a file; with deep also from all folders below it. */
static int leftovers_remove_beside(int prefix, const char *name, uint64_t flush, int deep)
{
    const char *last;
    int folder;
    if (beneath_open_parent(prefix, name, 0, &folder, &last, NULL) != 0) return 0;
    int rc = filo_remove_temporaries(folder, flush, deep, NULL);
    io_close(&folder);
    return rc;
}

static int leftovers_remove_scattered(int prefix, const scavenge_scan *scan,
                                      uint64_t flush)
{
    const char *before = NULL;
    int first = 0;
    for (int i = 0; i < scan->count; i++)
        for (int k = 0; k < scan->ranks[i]->count; k++) {
            const scavenge_file *f = &scan->ranks[i]->files[k];
            if (f->redundancy || (before && scr_path_same_folder(before, f->name)))
                continue;
            int rc = leftovers_remove_beside(prefix, f->name, flush, 0);
            if (!first) first = rc;
            before = f->name;
        }
    return first;
}

static int leftovers_end_flush(kvtree *tree, void *arg)
{
    scr_flush_file_end(tree, *(const uint64_t *)arg);
    return 1;
}

void scavenge_leftovers_remove(int prefix, const scavenge_scan *scan, uint64_t flush)
{
    char inside[SCR_NAME_SIZE + 2];
    const scr_change c = {.prefix = prefix,
                          .name = SCR_FLUSH_FILE_NAME,
                          .change = leftovers_end_flush,
                          .arg = &flush};
    snprintf(inside, sizeof inside, "%s/x", scan->dataset.name);
    int rc = leftovers_remove_beside(prefix, inside, flush, 1);
    if (!rc && scan->dataset.scattered)
        rc = leftovers_remove_scattered(prefix, scan, flush);
    kvtree *tree = rc ? NULL : kvtree_new();
    if (tree) scr_change_record(&c, tree, NULL);
    kvtree_delete(&tree);
}
