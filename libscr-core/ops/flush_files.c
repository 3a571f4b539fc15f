/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that a process contributes to a flush, and retention after a flush. */
#include "ops/context.h"

#include "common/errtext.h"
#include "common/folder.h"
#include "plan/part_name.h"
#include <errno.h>
#include <filo/filo.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void scr_flush_spread(struct scr *scr, scr_dataset *d)
{
    int outside = 0;
    scr_filemap_walk walk = {NULL, NULL};
    while (scr_filemap_next(scr->cache.map, d->id, &walk)) {
        const char *name =
            scr_filemap_name_of(kvtree_elem_key(walk.file), scr->job.owner, d->id);
        const char *rest = name ? folder_rest(d->name, name) : name;
        if (name)
            outside = outside || !rest || !*rest; /* outside, or the directory
                                                     itself */
    }
    MPI_Allreduce(MPI_IN_PLACE, &outside, 1, MPI_INT, MPI_MAX, scr->job.world);
    d->scattered = outside;
}

/* Describes one file for filo. 0 or -ENOMEM, also for a record without a size. */
static int flush_list_file(const struct scr *scr, const scr_dataset *d,
                           const scr_place *place, const kvtree_elem *e, filo_file *f)
{
    const kvtree *meta = kvtree_elem_hash(e);
    const char *name = scr_filemap_name_of(kvtree_elem_key(e), scr->job.owner, d->id);
    unsigned long size, crc = 0;
    if (!name || kvtree_util_get_bytecount(meta, SCR_META_SIZE, &size) != 0)
        return -ENOMEM;
    f->local = strdup(kvtree_elem_key(e));
    f->name = strdup(name + strlen(place->cache_prefix));
    f->size = size;
    f->has_crc =
        scr->set.crc_on_flush && kvtree_util_get_crc32(meta, SCR_META_CRC, &crc) == 0;
    f->crc = (uint32_t)crc;
    return f->local && f->name ? scr_part_place(f) : -ENOMEM;
}

int scr_flush_list(struct scr *scr, const scr_dataset *d, const scr_place *place,
                   int *count, filo_file **files, kvtree_error *err)
{
    unsigned long sums[2];
    scr_filemap_walk walk = {NULL, NULL};
    int n = 0, rc = 0;
    scr_cached_sums(&scr->cache, d->id, sums);
    filo_file *list = calloc(sums[0] + 1, sizeof *list);
    if (!list) return err_set(err, -ENOMEM, "no memory");
    while (!rc && scr_filemap_next(scr->cache.map, d->id, &walk)) {
        list[n].rank = kvtree_elem_key_int(walk.rank);
        rc = flush_list_file(scr, d, place, walk.file, &list[n++]);
    }
    if (rc) {
        filo_files_free(n, list);
        return err_set(err, rc, "no memory, or a record without a size");
    }
    *count = n;
    *files = list;
    return 0;
}

void scr_retain(struct scr *scr, int id)
{
    const int keep = scr->set.prefix_size;
    const scr_window window = {.keep = keep && scr->restart.spares_all ? INT_MAX : keep,
                               .flushed = id,
                               .reading = scr->lifecycle.state == SCR_STATE_RESTART
                                              ? scr->lifecycle.open.id
                                              : scr->restart.offered,
                               .stay = kvtree_get(scr->restart.spared, "ID")};
    scr_retention_flushed(&scr->prefix, &window);
}
