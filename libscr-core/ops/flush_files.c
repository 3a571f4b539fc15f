/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a flush that a rank has, and what makes way for them. */
#include "ops/context.h"

#include "common/errtext.h"
#include "common/folder.h"
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
    const kvtree_elem *f =
        kvtree_elem_first(scr_filemap_files(scr->cache.map, d->id, scr->job.rank));
    for (; f; f = kvtree_elem_next(f)) {
        const char *type = kvtree_get_val(kvtree_elem_hash(f), SCR_META_TYPE);
        const char *name = scr_filemap_name_of(kvtree_elem_key(f), scr->job.owner, d->id);
        if (!type || strcmp(type, SCR_META_FULL) != 0 || !name) continue;
        outside = outside || !folder_rest(d->name, name);
    }
    MPI_Allreduce(MPI_IN_PLACE, &outside, 1, MPI_INT, MPI_MAX, scr->job.world);
    d->scattered = outside;
}

int scr_flush_list(struct scr *scr, const scr_dataset *d, const scr_place *place,
                   int *count, filo_file **files, kvtree_error *err)
{
    const kvtree *all = scr_filemap_files(scr->cache.map, d->id, scr->job.rank);
    const kvtree_elem *e;
    int n = 0, bad = 0;
    filo_file *list = calloc((size_t)kvtree_size(all) + 1, sizeof *list);
    if (!list) return err_set(err, -ENOMEM, "no memory");
    for (e = kvtree_elem_first(all); e && !bad; e = kvtree_elem_next(e)) {
        const kvtree *meta = kvtree_elem_hash(e);
        const char *type = kvtree_get_val(meta, SCR_META_TYPE);
        const char *name = scr_filemap_name_of(kvtree_elem_key(e), scr->job.owner, d->id);
        unsigned long size, crc = 0;
        if (!type || strcmp(type, SCR_META_FULL) != 0) continue;
        bad = !name || kvtree_util_get_bytecount(meta, SCR_META_SIZE, &size) != 0;
        if (bad) break;
        filo_file *f = &list[n++];
        f->local = strdup(kvtree_elem_key(e));
        f->name = strdup(name + strlen(place->cache_prefix));
        f->size = size;
        f->has_crc =
            scr->set.crc_on_flush && kvtree_util_get_crc32(meta, SCR_META_CRC, &crc) == 0;
        f->crc = (uint32_t)crc;
        bad = !f->local || !f->name;
    }
    if (bad) {
        filo_files_free(n, list);
        return err_set(err, -ENOMEM, "no memory, or a record without a size");
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
