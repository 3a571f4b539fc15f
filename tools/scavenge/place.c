/* SPDX-License-Identifier: BSD-3-Clause */
/* Files get their names; see place.h. */
#include "scavenge/place.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/io.h"
#include "common/others.h"
#include "prefix/index.h"
#include "scavenge/pack.h"
#include <errno.h>
#include <fcntl.h>
#include <filo/filo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files below one folder, which is synced when all of them have their names. */
typedef struct mover {
    int from, to;                  /* open folders; names are below both */
    int shared;                    /* others may change what tells the names */
    int parent;                    /* of the file that was moved last, or -1 */
    char folder[BENEATH_NAME_MAX]; /* its name */
} mover;

static int sync_parent(mover *m, char *err)
{
    int rc = m->parent >= 0 ? io_fsync(m->parent) : 0;
    io_close(&m->parent);
    return rc ? err_sys(err, rc, "fsync of folder %s", m->folder) : 0;
}

/* Opens the folder of name, if that is not the one that is open. */
static int open_parent(mover *m, const char *name, const char **last, char *err)
{
    const char *slash = strrchr(name, '/');
    char folder[BENEATH_NAME_MAX];
    size_t n = slash ? (size_t)(slash - name) : 0;
    *last = slash ? slash + 1 : name;
    memcpy(folder, name, n);
    folder[n] = 0;
    if (m->parent >= 0 && strcmp(folder, m->folder) == 0) return 0;
    int rc = sync_parent(m, err);
    if (!rc && n) rc = beneath_make_durable(m->to, folder, 0777, err);
    strcpy(m->folder, folder);
    rc = rc ? rc : beneath_open_parent(m->to, name, 0, &m->parent, last, err);
    if (!rc && m->shared) rc = others_reach(m->to, m->parent, name, err);
    if (rc) io_close(&m->parent);
    return rc;
}

/* 0 also for one that was moved before. */
static int move_file(mover *m, const char *name, const char *target, char *err)
{
    const char *last, *source;
    int folder;
    struct stat st;
    int rc = beneath_open_parent(m->from, name, 0, &folder, &source, err);
    if (rc == -ENOENT) return 0;
    if (rc) return rc;
    if (fstatat(folder, source, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        rc = errno == ENOENT ? 0 : err_sys(err, -errno, "look at %s", name);
        io_close(&folder);
        return rc;
    }
    rc = open_parent(m, target, &last, err);
    if (!rc && renameat(folder, source, m->parent, last) != 0)
        rc = err_sys(err, -errno, "give %s its name", name);
    io_close(&folder);
    return rc;
}

static int move_files(mover *m, const scavenge_scan *scan, char *err)
{
    int rc = 0;
    for (int i = 0; i < scan->count && !rc; i++)
        for (int k = 0; k < scan->ranks[i]->count && !rc; k++)
            if (!scan->ranks[i]->files[k].redundancy) {
                const char *name = scan->ranks[i]->files[k].name;
                rc = move_file(m, name, name, err);
            }
    return rc;
}

/* Below the prefix folder. */
static int move_containers(mover *m, const scavenge_scan *scan, uint64_t container,
                           char *err)
{
    uint64_t count = scavenge_containers(scan->bytes, container);
    int rc = 0;
    for (uint64_t i = 0; i < count && !rc; i++) {
        char name[SCAVENGE_CONTAINER_SIZE], source[SCAVENGE_CONTAINER_SIZE + 8];
        char target[SCR_NAME_SIZE + sizeof source];
        scavenge_container_name(i, name);
        snprintf(source, sizeof source, SCAVENGE_HIDDEN "/%s", name);
        snprintf(target, sizeof target, "%s/%s", scan->dataset.name, source);
        rc = move_file(m, source, target, err);
    }
    return rc;
}

/* ---- the map ---- */

/* The folder that names are below. */
static int open_target(int prefix, const scr_dataset *d, int *folder, char *err)
{
    char inside[SCR_NAME_SIZE + 2];
    const char *last;
    snprintf(inside, sizeof inside, "%s%sx", d->named ? "" : d->name,
             d->named ? "" : "/");
    return beneath_open_parent(prefix, inside, 0, folder, &last, err);
}

typedef struct giver {
    const scavenge_saved *saved;
    size_t skip;                /* bytes of a name that its place stands for */
    uint64_t container;         /* bytes of one; 0: files are not packed */
    char in[SCR_NAME_SIZE + 8]; /* the folder of containers, in the map */
    uint64_t offset;            /* of the next file in them */
    int dir;                    /* the folder that files lie below; -1: they are packed */
    int count;
    filo_file *files;
} giver;

static void drop_files(giver *g)
{
    for (int i = 0; i < g->count; i++) {
        for (int k = 0; k < g->files[i].segments; k++)
            free(g->files[i].segment[k].container);
        free(g->files[i].segment);
    }
    free(g->files);
    g->files = NULL;
    g->count = 0;
}

/* It has its place on the prefix folder. */
static int note_time(const giver *g, filo_file *file, const char *name, char *err)
{
    struct stat st;
    int rc = beneath_stat(g->dir, name, &st, err);
    if (!rc) filo_file_note_time(file, &st);
    return rc;
}

static int pack_file(giver *g, filo_file *file, const char *name, char *err)
{
    struct stat st;
    int rc = beneath_stat(g->saved->folder.dir, name, &st, err);
    if (rc) return rc;
    file->mode = st.st_mode & 0777;
    rc = scavenge_segments(g->in, g->offset, g->container, file);
    g->offset += file->size;
    return rc ? err_set(err, rc, "no memory") : 0;
}

static int give(void *arg, int rank, int *count, const filo_file **files, char *err)
{
    giver *g = arg;
    const scavenge_rank *r = g->saved->scan.ranks[rank]; /* all are there, in order */
    int rc = 0;
    drop_files(g);
    g->files = calloc((size_t)r->count + 1, sizeof *g->files);
    if (!g->files) return err_set(err, -ENOMEM, "no memory");
    for (int i = 0; i < r->count && !rc; i++) {
        const scavenge_file *f = &r->files[i];
        if (f->redundancy) continue;
        filo_file *file = &g->files[g->count++];
        *file = (filo_file){.name = (char *)(uintptr_t)f->name + g->skip,
                            .size = f->size,
                            .crc = f->crc,
                            .has_crc = f->has_crc};
        rc = g->container ? pack_file(g, file, f->name, err)
                          : note_time(g, file, f->name, err);
    }
    *count = g->count;
    *files = g->files;
    return rc;
}

static int write_map(const scavenge_prefix *prefix, const scavenge_saved *saved,
                     uint64_t container, char *err)
{
    const scr_dataset *d = &saved->scan.dataset;
    char map[SCR_NAME_SIZE + 32];
    const char *before = d->scattered ? d->name : "", *slash = d->scattered ? "/" : "";
    giver g = {.saved = saved, .container = container, .dir = -1};
    int rc = container ? 0 : open_target(prefix->dir, d, &g.dir, err);
    if (rc) return rc;
    if (d->named && !d->scattered) g.skip = strlen(d->name) + 1;
    snprintf(map, sizeof map, "%s%s" FILO_MAP, before, slash);
    snprintf(g.in, sizeof g.in, "%s%s" SCAVENGE_HIDDEN, before, slash);
    char *folder =
        d->scattered ? strdup(prefix->path) : scr_path_join(prefix->path, d->name);
    const filo_place to = {.folder = folder, .map = map, .base = prefix->path};
    rc = folder ? filo_map_write(&to, d->ranks, give, &g, err)
                : err_set(err, -ENOMEM, "no memory");
    io_close(&g.dir);
    drop_files(&g);
    free(folder);
    return rc;
}

/* ---- the whole ---- */

/* While there is no map, nobody takes what is there for a dataset. */
static int remove_map(int prefix, const char *name, char *err)
{
    char map[SCR_NAME_SIZE + 32];
    const char *last;
    int hidden;
    snprintf(map, sizeof map, "%s/" FILO_MAP, name);
    int rc = beneath_unlink(prefix, map, err);
    rc = rc ? rc : beneath_open_parent(prefix, map, 0, &hidden, &last, err);
    if (rc) return rc;
    rc = io_fsync(hidden);
    io_close(&hidden);
    return rc ? err_sys(err, rc, "fsync of the folder of %s", map) : 0;
}

static int write_summary(int prefix, const scr_dataset *d, char *err)
{
    char inside[SCR_NAME_SIZE + 2];
    const char *last;
    int folder;
    snprintf(inside, sizeof inside, "%s/x", d->name);
    int rc = beneath_open_parent(prefix, inside, 0, &folder, &last, err);
    if (rc) return rc;
    rc = scr_summary_write(folder, d, err);
    io_close(&folder);
    return rc;
}

/* Whether others may change the filemaps that were saved. */
static int look_at_sharing(mover *m, char *err)
{
    const char *last;
    int records;
    int rc = beneath_open_parent(m->from, SCAVENGE_HIDDEN "/x", 0, &records, &last, err);
    if (rc) return rc;
    m->shared = others_put(records);
    io_close(&records);
    return m->shared < 0 ? err_sys(err, m->shared, "look at what was saved") : 0;
}

/* All to their places, for good. */
static int move_all(const scavenge_prefix *prefix, const scavenge_saved *saved,
                    uint64_t container, char *err)
{
    const scavenge_scan *scan = &saved->scan;
    mover m = {.from = saved->folder.dir, .to = prefix->dir, .parent = -1};
    int target = -1, rc = look_at_sharing(&m, err);
    if (!rc && !container) rc = open_target(prefix->dir, &scan->dataset, &target, err);
    if (rc) return rc;
    if (!container) m.to = target;
    rc =
        container ? move_containers(&m, scan, container, err) : move_files(&m, scan, err);
    int synced = sync_parent(&m, rc ? NULL : err);
    io_close(&target);
    return rc ? rc : synced;
}

int scavenge_place(const scavenge_prefix *prefix, const scavenge_saved *saved,
                   uint64_t container, char *err)
{
    const scr_dataset *d = &saved->scan.dataset;
    int rc = remove_map(prefix->dir, d->name, err);
    rc = rc ? rc : move_all(prefix, saved, container, err);
    rc = rc ? rc : write_map(prefix, saved, container, err);
    return rc ? rc : write_summary(prefix->dir, d, err);
}
