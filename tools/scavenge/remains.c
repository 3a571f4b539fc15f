/* SPDX-License-Identifier: BSD-3-Clause */
/* What a flush left of a dataset; see remains.h. */
#include "scavenge/remains.h"

#include "base/path.h"
#include "base/record_change.h"
#include "common/beneath.h"
#include "common/io.h"
#include "prefix/flush_file.h"
#include <errno.h>
#include <filo/filo.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- which flush ---- */

/* The id of the only flush of d; 0: there is none, or there are several. */
static uint64_t find_only(const kvtree *flush, const scr_dataset *d, const char *owner)
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

static int look(int prefix, struct stat *st)
{
    return beneath_stat(prefix, SCR_FLUSH_FILE_NAME, st, NULL);
}

static int is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

uint64_t scavenge_flush_find(int prefix, const scr_dataset *d, const char *owner,
                             char text[SCAVENGE_FLUSH_SIZE])
{
    struct stat before, after;
    uint64_t id = 0;
    kvtree *flush = kvtree_new();
    if (flush && look(prefix, &before) == 0 &&
        scr_flush_file_read(prefix, flush, NULL) == 0 && look(prefix, &after) == 0 &&
        is_same(&before, &after))
        id = find_only(flush, d, owner);
    kvtree_delete(&flush);
    *text = 0;
    if (id)
        snprintf(text, SCAVENGE_FLUSH_SIZE, "%016" PRIx64 " %lld.%09ld", id,
                 (long long)before.st_mtim.tv_sec, before.st_mtim.tv_nsec);
    return id;
}

uint64_t scavenge_remains_find(int prefix, const scavenge_scan *scan)
{
    char text[SCAVENGE_FLUSH_SIZE];
    uint64_t id = scavenge_flush_find(prefix, &scan->dataset, NULL, text);
    if (scan->count != scan->dataset.ranks) return 0;
    for (int i = 0; i < scan->count && id; i++)
        if (strcmp(scan->ranks[i]->flush, text) != 0) return 0;
    return id;
}

/* ---- removal ---- */

/* Temporary files beside what has that name below the prefix folder. */
static int remove_beside(int prefix, const char *name, uint64_t flush, int deep)
{
    const char *last;
    int folder;
    if (beneath_open_parent(prefix, name, 0, &folder, &last, NULL) != 0) return 0;
    int rc = filo_remove_temporaries(folder, flush, deep, NULL);
    io_close(&folder);
    return rc;
}

/* Files that lie elsewhere than below the folder of their dataset. */
static int remove_scattered(int prefix, const scavenge_scan *scan, uint64_t flush)
{
    const char *before = NULL;
    int rc = 0;
    for (int i = 0; i < scan->count; i++) {
        const scavenge_rank *r = scan->ranks[i];
        for (int k = 0; k < r->count; k++) {
            const scavenge_file *f = &r->files[k];
            if (f->redundancy || (before && scr_path_same_folder(before, f->name)))
                continue;
            int failed = remove_beside(prefix, f->name, flush, 0);
            if (!rc) rc = failed;
            before = f->name;
        }
    }
    return rc;
}

static int end_flush(kvtree *tree, void *arg)
{
    scr_flush_file_end(tree, *(const uint64_t *)arg);
    return 1;
}

void scavenge_remains_remove(int prefix, const scavenge_scan *scan, uint64_t flush)
{
    char inside[SCR_NAME_SIZE + 2];
    const scr_change c = {.prefix = prefix,
                          .name = SCR_FLUSH_FILE_NAME,
                          .change = end_flush,
                          .arg = &flush};
    snprintf(inside, sizeof inside, "%s/x", scan->dataset.name);
    int rc = remove_beside(prefix, inside, flush, 1);
    if (!rc && scan->dataset.scattered) rc = remove_scattered(prefix, scan, flush);
    kvtree *tree = rc ? NULL : kvtree_new();
    if (tree) scr_change_record(&c, tree, NULL);
    kvtree_delete(&tree);
}
