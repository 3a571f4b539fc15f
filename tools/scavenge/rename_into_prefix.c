/* SPDX-License-Identifier: BSD-3-Clause */
/* Renames files into the prefix folder; see rename_into_prefix.h. */
#include "scavenge/rename_into_prefix.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/io.h"
#include "common/others.h"
#include "prefix/index.h"
#include "scavenge/pack.h"
#include <errno.h>
#include <filo/filo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- renames: a folder is synced after the last of its files ---- */

typedef struct renamer {
    int from, to;                  /* open folders; names are relative to both */
    int shared;                    /* others can change the records of the names */
    int parent;                    /* open: the folder of the last file, or -1 */
    char folder[BENEATH_NAME_MAX]; /* its name */
} renamer;

static int rename_sync_parent(renamer *r, char *err)
{
    int rc = r->parent >= 0 ? io_fsync(r->parent) : 0;
    io_close(&r->parent);
    return rc ? err_sys(err, rc, "fsync of folder %s", r->folder) : 0;
}

/* Opens the folder of name, unless it is open. */
static int rename_open_parent(renamer *r, const char *name, char *err)
{
    const char *slash = strrchr(name, '/');
    char folder[BENEATH_NAME_MAX];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - name) : 0, name);
    if (r->parent >= 0 && strcmp(folder, r->folder) == 0) return 0;
    int rc = rename_sync_parent(r, err);
    if (!rc && *folder) rc = beneath_make_durable(r->to, folder, 0777, err);
    strcpy(r->folder, folder);
    rc = rc ? rc : scavenge_open_below(r->to, folder, &r->parent, err);
    if (!rc && r->shared) rc = others_reach(r->to, r->parent, name, err);
    if (rc) io_close(&r->parent);
    return rc;
}

/* Also 0 for a file that was renamed before. */
static int rename_file(renamer *r, const char *name, const char *target, char *err)
{
    const char *source;
    int folder;
    int rc = beneath_open_parent(r->from, name, 0, &folder, &source, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    rc = rename_open_parent(r, target, err);
    if (!rc && renameat(folder, source, r->parent, scr_path_basename(target)) != 0 &&
        errno != ENOENT)
        rc = err_sys(err, -errno, "rename %s", name);
    io_close(&folder);
    return rc;
}

static int rename_files(renamer *r, const scavenge_scan *scan, char *err)
{
    int rc = 0;
    for (int i = 0; i < scan->count && !rc; i++)
        for (int k = 0; k < scan->ranks[i]->count && !rc; k++) {
            const scavenge_file *f = &scan->ranks[i]->files[k];
            if (!f->redundancy) rc = rename_file(r, f->name, f->name, err);
        }
    return rc;
}

static int rename_containers(renamer *r, const scavenge_scan *scan, uint64_t container,
                             char *err)
{
    int rc = 0;
    for (uint64_t i = 0; i * container < scan->bytes && !rc; i++) {
        char name[SCAVENGE_CONTAINER_SIZE], source[SCAVENGE_CONTAINER_SIZE + 8];
        char target[SCR_NAME_SIZE + sizeof source];
        scavenge_container_name(i, name);
        snprintf(source, sizeof source, SCAVENGE_HIDDEN "/%s", name);
        snprintf(target, sizeof target, "%s/%s", scan->dataset.name, source);
        rc = rename_file(r, source, target, err);
    }
    return rc;
}

/* Whether others can change the filemaps that were copied. */
static int rename_check_sharing(renamer *r, char *err)
{
    r->shared = others_put_below(r->from, SCAVENGE_HIDDEN "/x", err);
    return r->shared < 0 ? r->shared : 0;
}

/* final: the open folder to which names of files are relative. */
static int rename_all(const scavenge_prefix *prefix, int final,
                      const scavenge_saved *saved, uint64_t container, char *err)
{
    renamer r = {.from = saved->folder.dir, .to = final, .parent = -1};
    if (container) r.to = prefix->dir;
    int rc = rename_check_sharing(&r, err);
    if (rc) return rc;
    rc = container ? rename_containers(&r, &saved->scan, container, err)
                   : rename_files(&r, &saved->scan, err);
    int synced = rename_sync_parent(&r, rc ? NULL : err);
    return rc ? rc : synced;
}

/* ---- the map ---- */

typedef struct rename_map {
    const scavenge_scan *scan;
    size_t skip;                /* bytes at the begin of a name that the map leaves out */
    uint64_t container;         /* bytes of one; 0: files are not packed */
    char in[SCR_NAME_SIZE + 8]; /* the folder of containers, in the map */
    uint64_t offset;            /* of the next file in the containers */
    int dir;                    /* the open folder that has the files */
    int count;
    filo_file *files;
} rename_map;

static int rename_map_add(rename_map *m, const scavenge_file *f, char *err)
{
    struct stat st;
    int rc = beneath_stat(m->dir, f->name, &st, err);
    if (rc) return rc;
    filo_file *file = &m->files[m->count++];
    *file = (filo_file){.name = strdup(f->name + m->skip),
                        .size = f->size,
                        .crc = f->crc,
                        .has_crc = f->has_crc};
    if (!file->name) return err_set(err, -ENOMEM, "no memory");
    if (!m->container) {
        filo_file_note_time(file, &st);
        return 0;
    }
    file->mode = st.st_mode & 0777;
    m->offset += f->size;
    return scavenge_segments(m->in, m->offset - f->size, m->container, file)
               ? err_set(err, -ENOMEM, "no memory")
               : 0;
}

/* Called by filo_map_write for each rank. */
static int rename_map_rank(void *arg, int rank, int *count, const filo_file **files,
                           char *err)
{
    rename_map *m = arg;
    const scavenge_rank *r = m->scan->ranks[rank]; /* the scan is whole */
    int rc = 0;
    filo_files_free(m->count, m->files);
    m->count = 0;
    m->files = calloc((size_t)r->count + 1, sizeof *m->files);
    if (!m->files) return err_set(err, -ENOMEM, "no memory");
    for (int i = 0; i < r->count && !rc; i++)
        if (!r->files[i].redundancy) rc = rename_map_add(m, &r->files[i], err);
    *count = m->count;
    *files = m->files;
    return rc;
}

static int rename_write_map(const scavenge_prefix *prefix, int final,
                            const scavenge_saved *saved, uint64_t container, char *err)
{
    const scr_dataset *d = &saved->scan.dataset;
    char map[SCR_NAME_SIZE + 32];
    const char *before = d->scattered ? d->name : "", *slash = d->scattered ? "/" : "";
    rename_map m = {.scan = &saved->scan,
                    .container = container,
                    .dir = container ? saved->folder.dir : final};
    if (d->named && !d->scattered) m.skip = strlen(d->name) + 1;
    snprintf(map, sizeof map, "%s%s" FILO_MAP, before, slash);
    snprintf(m.in, sizeof m.in, "%s%s" SCAVENGE_HIDDEN, before, slash);
    char *folder =
        d->scattered ? strdup(prefix->path) : scr_path_join(prefix->path, d->name);
    const filo_place to = {.folder = folder, .map = map, .base = prefix->path};
    int rc = folder ? filo_map_write(&to, d->ranks, rename_map_rank, &m, err)
                    : err_set(err, -ENOMEM, "no memory");
    filo_files_free(m.count, m.files);
    free(folder);
    return rc;
}

/* ---- the dataset ---- */

/* Without a map, incomplete content cannot be mistaken for a dataset. */
static int rename_remove_map(int folder, char *err)
{
    int hidden;
    int rc = beneath_unlink(folder, FILO_MAP, err);
    if (!rc) rc = scavenge_open_below(folder, SCAVENGE_HIDDEN, &hidden, err);
    if (rc) return rc;
    rc = io_fsync(hidden);
    io_close(&hidden);
    return rc ? err_sys(err, rc, "fsync of the folder of the map") : 0;
}

int scavenge_rename_into_prefix(const scavenge_prefix *prefix,
                                const scavenge_saved *saved, uint64_t container,
                                char *err)
{
    const scr_dataset *d = &saved->scan.dataset;
    int folder = -1, final = -1;
    int rc = scavenge_open_below(prefix->dir, d->name, &folder, err);
    if (!rc) rc = scavenge_open_final(prefix->dir, d, &final, err);
    if (!rc) rc = rename_remove_map(folder, err);
    if (!rc) rc = rename_all(prefix, final, saved, container, err);
    if (!rc) rc = rename_write_map(prefix, final, saved, container, err);
    if (!rc) rc = scr_summary_write(folder, d, err);
    io_close(&folder);
    io_close(&final);
    return rc;
}
