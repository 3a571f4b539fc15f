/* SPDX-License-Identifier: BSD-3-Clause */
/* Renames files into the prefix directory; see rename_into_prefix.h. */
#include "scavenge/rename_into_prefix.h"

#include "base/path.h"
#include "common/batch.h"
#include "common/beneath.h"
#include "common/io.h"
#include "common/others.h"
#include "lib/tool_progress.h"
#include "plan/part_name.h"
#include "prefix/index.h"
#include "scavenge/pack.h"
#include <errno.h>
#include <filo/filo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- renames ---- */

static int rename_add(batch *moves, int from, const char *name, const char *target,
                      kvtree_error *err)
{
    return batch_add(moves,
                     &(batch_file){.name = target, .from = from, .temporary = name}, err);
}

static int rename_add_files(batch *moves, const scavenge_saved *saved, kvtree_error *err)
{
    const scavenge_scan *scan = &saved->scan;
    int rc = 0;
    for (int i = 0; i < scan->count && !rc; i++)
        for (int k = 0; k < scan->ranks[i]->count && !rc; k++) {
            const scavenge_file *f = &scan->ranks[i]->files[k];
            if (scavenge_is_whole_file(f))
                rc = rename_add(moves, saved->folder.dir, f->name, f->name, err);
        }
    return rc;
}

/* Adds a container or shared file, which is in the staging directory or was renamed by an
 * earlier call. Its size is checked because the recorded container size may be damaged
 * and could otherwise name any number of files. */
static int rename_add_made(batch *moves, int from, const char *name, const char *target,
                           uint64_t size, kvtree_error *err)
{
    struct stat st;
    int rc = beneath_stat(from, name, &st, err);
    if (rc == -ENOENT) rc = beneath_stat(moves->dir, target, &st, err);
    if (rc) return rc;
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == size)
        return rename_add(moves, from, name, target, err);
    return err_set(err, -EBADMSG, "%s is not a file of %llu bytes", name,
                   (unsigned long long)size);
}

static int rename_add_shared(batch *moves, const scavenge_saved *saved, kvtree_error *err)
{
    int rc = 0;
    for (int i = 0; i < saved->scan.shared_count && !rc; i++) {
        const scavenge_shared *s = &saved->scan.shared[i];
        rc = rename_add_made(moves, saved->folder.dir, s->name, s->name, s->size, err);
    }
    return rc;
}

static int rename_add_containers(batch *moves, const scavenge_saved *saved,
                                 uint64_t container, kvtree_error *err)
{
    const scavenge_scan *scan = &saved->scan;
    const int from = saved->folder.dir;
    int rc = 0;
    uint64_t left = scan->bytes - scan->part_bytes, size;
    for (uint64_t i = 0; left > 0 && !rc; i++, left -= size) {
        char name[SCAVENGE_CONTAINER_SIZE], source[SCAVENGE_CONTAINER_SIZE + 8];
        char target[SCR_NAME_SIZE + sizeof source];
        size = left < container ? left : container;
        scavenge_container_name(i, name);
        snprintf(source, sizeof source, SCAVENGE_HIDDEN "/%s", name);
        snprintf(target, sizeof target, "%s/%s", scan->dataset.name, source);
        rc = rename_add_made(moves, from, source, target, size, err);
    }
    return rc;
}

/* Renames all files to their names relative to the prefix directory. Copied files are
 * already synced; files that were renamed before are skipped. */
static int rename_all(const scavenge_prefix *prefix, const scavenge_saved *saved,
                      uint64_t container, int64_t shared, kvtree_error *err)
{
    batch moves = {.dir = prefix->dir,
                   .folders = 0777,
                   .durability = BATCH_SYNCED,
                   .resumed = true,
                   .shared = shared,
                   .renamed = tool_progress_set};
    tool_progress_turn("add", "files");
    int rc = container ? rename_add_containers(&moves, saved, container, err)
                       : rename_add_files(&moves, saved, err);
    if (!rc) rc = rename_add_shared(&moves, saved, err);
    if (!rc) rc = batch_commit(&moves, err);
    batch_drop(&moves);
    return rc;
}

/* ---- the map ---- */

typedef struct rename_map {
    const scavenge_scan *scan;
    size_t skip;                /* bytes at the start of names that the map omits */
    uint64_t container;         /* bytes per container; 0: files are not packed */
    char in[SCR_NAME_SIZE + 8]; /* the directory of containers, in the map */
    uint64_t offset;            /* of the next file in the containers */
    int64_t shared;             /* other users who can change the records of saved
                                 * files */
    int dir;                    /* the open directory that has the files */
    int staged;                 /* the directory that has parts of shared files, ... */
    int prefix;                 /* ... and the directory that has the shared files */
    int next;                   /* next shared file in the order of ranks */
    int count;
    filo_file *files;
} rename_map;

/* Records where the bytes of a file of the map are. 0 or -ENOMEM. */
static int rename_map_place(rename_map *m, filo_file *file, bool whole,
                            const struct stat *st)
{
    if (whole && !m->container) {
        filo_file_note_time(file, st);
        return 0;
    }
    file->mode = st->st_mode & 0777;
    if (!whole) return scr_part_place(file);
    m->offset += file->size;
    return scavenge_segments(m->in, m->offset - file->size, m->container, file);
}

static int rename_map_add(rename_map *m, const scavenge_file *f, kvtree_error *err)
{
    struct stat st;
    const bool whole = scavenge_is_whole_file(f);
    int rc = beneath_stat_source(whole ? m->dir : m->staged, f->name, &st, err);
    if (rc) return rc;
    filo_file *file = &m->files[m->count++];
    *file = (filo_file){.name = strdup(f->name + m->skip),
                        .size = f->size,
                        .crc = f->crc,
                        .has_crc = f->has_crc,
                        .others = m->shared};
    if (!file->name || rename_map_place(m, file, whole, &st) != 0)
        return err_set(err, -ENOMEM, "no memory");
    return 0;
}

static int rename_map_add_shared(rename_map *m, const scavenge_shared *s,
                                 kvtree_error *err)
{
    struct stat st;
    int rc = beneath_stat(m->prefix, s->name, &st, err);
    if (rc) return rc;
    filo_file *file = &m->files[m->count++];
    *file = (filo_file){.name = strdup(s->name + m->skip),
                        .size = s->size,
                        .shared = 1,
                        .others = m->shared};
    filo_file_note_time(file, &st);
    return file->name ? 0 : err_set(err, -ENOMEM, "no memory");
}

/* Called by filo_map_write for each rank. */
static int rename_map_rank(void *arg, int rank, int *count, const filo_file **files,
                           kvtree_error *err)
{
    rename_map *m = arg;
    const scavenge_rank *r = m->scan->ranks[rank]; /* ranks are complete, as the scan is
                                                    * whole */
    int rc = 0;
    filo_files_free(m->count, m->files);
    m->count = 0;
    /* each part may be the first part of a shared file */
    m->files = calloc(2 * (size_t)r->count + 1, sizeof *m->files);
    if (!m->files) return err_set(err, -ENOMEM, "no memory");
    for (int i = 0; i < r->count && !rc; i++)
        if (!r->files[i].redundancy) rc = rename_map_add(m, &r->files[i], err);
    const scavenge_scan *scan = m->scan;
    for (; m->next < scan->shared_count && scan->shared[m->next].rank == rank && !rc;
         m->next++)
        rc = rename_map_add_shared(m, &scan->shared[m->next], err);
    *count = m->count;
    *files = m->files;
    tool_progress_set((uint64_t)rank + 1, (uint64_t)scan->count);
    return rc;
}

/* Writes the map. dataset: the open directory of the dataset. */
static int rename_write_map(rename_map *m, const scavenge_prefix *prefix, int dataset,
                            kvtree_error *err)
{
    const scr_dataset *d = &m->scan->dataset;
    char map[SCR_NAME_SIZE + 32], key[SCR_DATASET_KEY_SIZE];
    const char *before = d->scattered ? d->name : "", *slash = d->scattered ? "/" : "";
    const int dir = d->scattered ? prefix->dir : dataset;
    if (!d->scattered) m->skip = strlen(d->name) + 1;
    snprintf(map, sizeof map, "%s%s" FILO_MAP, before, slash);
    snprintf(m->in, sizeof m->in, "%s%s" SCAVENGE_HIDDEN, before, slash);
    char *folder =
        d->scattered ? strdup(prefix->path) : scr_path_join(prefix->path, d->name);
    scr_dataset_key(d, key);
    tool_progress_turn("write the map", "ranks");
    const filo_place to = {.folder = folder, .map = map, .dir = &dir, .dataset = key};
    int rc = folder ? filo_map_write(&to, d->ranks, rename_map_rank, m, err)
                    : err_set(err, -ENOMEM, "no memory");
    filo_files_free(m->count, m->files);
    free(folder);
    return rc;
}

/* ---- the dataset ---- */

int scavenge_rename_into_prefix(const scavenge_prefix *prefix,
                                const scavenge_saved *saved, uint64_t container,
                                kvtree_error *err)
{
    const scr_dataset *d = &saved->scan.dataset;
    /* other users who can change the records may have chosen names: the map notes this,
     * even if no other user can change the map */
    rename_map map = {.scan = &saved->scan,
                      .container = container,
                      .dir = container ? saved->folder.dir : prefix->dir,
                      .staged = saved->folder.dir,
                      .prefix = prefix->dir,
                      .shared =
                          others_put_below(saved->folder.dir, SCAVENGE_HIDDEN "/", err)};
    if (map.shared < 0) return (int)map.shared;
    int folder = -1;
    int rc = beneath_open_below(prefix->dir, d->name, &folder, err);
    /* without a map, incomplete content is not mistaken for a dataset */
    if (!rc) rc = beneath_unlink_durable(folder, FILO_MAP, err);
    if (!rc) rc = rename_all(prefix, saved, container, map.shared, err);
    if (!rc) rc = rename_write_map(&map, prefix, folder, err);
    if (!rc) rc = scr_summary_write(folder, d, err);
    io_close(&folder);
    return rc;
}
