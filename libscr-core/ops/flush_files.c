/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that a flush is of: where they lie, which ones a rank has, and what is left
 * beside them when it died. */
#include "ops/context.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "prefix/trace.h"
#include <errno.h>
#include <filo/filo.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int scr_place_of(const struct scr *scr, const scr_dataset *dataset, scr_place *place)
{
    int in_folder = !dataset->scattered;
    snprintf(place->map, sizeof place->map, "%s%s" FILO_MAP,
             in_folder ? "" : dataset->name, in_folder ? "" : "/");
    snprintf(place->cache_prefix, sizeof place->cache_prefix, "%s%s",
             in_folder && dataset->named ? dataset->name : "",
             in_folder && dataset->named ? "/" : "");
    place->folder = in_folder ? scr_path_join(scr->prefix.real, dataset->name)
                              : strdup(scr->prefix.real);
    return place->folder ? 0 : -ENOMEM;
}

int scr_place_open(const struct scr *scr, const char *name, int *folder, char *err)
{
    return folder_make_beneath(scr->prefix.fd, name, 0, folder, err);
}

/* Collective. Bytes of the dataset's name that are the folder all files lie below. */
static int measure_below(struct scr *scr, const scr_dataset *d)
{
    int below = (int)strlen(d->name);
    const kvtree_elem *f =
        kvtree_elem_first(scr_filemap_files(scr->cache.map, d->id, scr->job.rank));
    for (; d->named && f; f = kvtree_elem_next(f)) {
        const char *type = kvtree_get_val(kvtree_elem_hash(f), SCR_META_TYPE);
        const char *name = scr_filemap_name_of(kvtree_elem_key(f), scr->job.owner, d->id);
        if (!type || strcmp(type, SCR_META_FULL) != 0 || !name) continue;
        int common = (int)scr_trace_below(d->name, name);
        if (common < below) below = common;
    }
    MPI_Allreduce(MPI_IN_PLACE, &below, 1, MPI_INT, MPI_MIN, scr->job.world);
    return below;
}

void scr_flush_spread(struct scr *scr, scr_dataset *d, char below[SCR_NAME_SIZE])
{
    int n = measure_below(scr, d);
    d->scattered = d->name[n] != 0;
    if (below) snprintf(below, SCR_NAME_SIZE, "%.*s", n, d->name);
}

int scr_flush_list(struct scr *scr, const scr_dataset *d, const scr_place *place,
                   int *count, filo_file **files, char *err)
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

/* ---- what is left of it ---- */

/* Removes temporary files beside a file. */
static void clean_beside(const struct scr *scr, int folder, const char *name, uint64_t id)
{
    char err[SCR_ERR_TEXT] = "";
    const char *last;
    int parent;
    if (beneath_open_parent(folder, name, 0, &parent, &last, NULL) != 0) return;
    if (filo_remove_temporaries(parent, id, 0, err) != 0)
        scr_event_local(&scr->report, 0, err);
    io_close(&parent);
}

void scr_flush_clean(struct scr *scr, const scr_dataset *dataset, uint64_t id)
{
    scr_dataset d = *dataset;
    scr_place place = {.folder = NULL};
    filo_file *files = NULL;
    int count = 0, folder = -1;
    scr_flush_spread(scr, &d, NULL);
    if (scr_place_of(scr, &d, &place) == 0 &&
        scr_flush_list(scr, &d, &place, &count, &files, NULL) == 0 &&
        scr_place_open(scr, d.scattered ? "" : d.name, &folder, NULL) == 0) {
        clean_beside(scr, folder, place.map, id);
        for (int i = 0; i < count; i++)
            if (i == 0 || !scr_path_same_folder(files[i].name, files[i - 1].name))
                clean_beside(scr, folder, files[i].name, id);
    }
    io_close(&folder);
    filo_files_free(count, files);
    free(place.folder);
    MPI_Barrier(scr->job.world); /* a flush that comes next makes others */
}
