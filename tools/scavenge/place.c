/* SPDX-License-Identifier: BSD-3-Clause */
/* Files get their names; see place.h. */
#include "scavenge/place.h"

#include "common/beneath.h"
#include "common/io.h"
#include "records/scr_index.h"
#include "records/scr_path.h"
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
    return rc ? rc : beneath_open_parent(m->to, name, 0, &m->parent, last, err);
}

/* 0 also for one that was moved before. */
static int move_file(mover *m, const char *name, char *err)
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
    rc = open_parent(m, name, &last, err);
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
            if (!scan->ranks[i]->files[k].redundancy)
                rc = move_file(m, scan->ranks[i]->files[k].name, err);
    if (rc) {
        sync_parent(m, NULL);
        return rc;
    }
    return sync_parent(m, err);
}

/* ---- the map ---- */

typedef struct giver {
    const scavenge_scan *scan;
    size_t skip; /* bytes of a name that its place stands for */
    filo_file *files;
} giver;

static int give(void *arg, int rank, int *count, const filo_file **files, char *err)
{
    giver *g = arg;
    const scavenge_rank *r = g->scan->ranks[rank]; /* all are there, in order */
    int n = 0;
    free(g->files);
    g->files = calloc((size_t)r->count + 1, sizeof *g->files);
    if (!g->files) return err_set(err, -ENOMEM, "no memory");
    for (int i = 0; i < r->count; i++) {
        const scavenge_file *f = &r->files[i];
        if (f->redundancy) continue;
        g->files[n++] = (filo_file){.name = (char *)(uintptr_t)f->name + g->skip,
                                    .size = f->size,
                                    .crc = f->crc,
                                    .has_crc = f->has_crc};
    }
    *count = n;
    *files = g->files;
    return 0;
}

static int write_map(const scavenge_prefix *prefix, const scavenge_scan *scan, char *err)
{
    const scr_dataset *d = &scan->dataset;
    char map[SCR_NAME_SIZE + 32];
    giver g = {.scan = scan, .skip = d->named && !d->scattered ? strlen(d->name) + 1 : 0};
    snprintf(map, sizeof map, "%s%s" FILO_MAP, d->scattered ? d->name : "",
             d->scattered ? "/" : "");
    char *folder =
        d->scattered ? strdup(prefix->path) : scr_path_join(prefix->path, d->name);
    const filo_place to = {.folder = folder, .map = map};
    int rc = folder ? filo_map_write(&to, d->ranks, give, &g, err)
                    : err_set(err, -ENOMEM, "no memory");
    free(g.files);
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

/* The folder that names are below. */
static int open_target(int prefix, const scr_dataset *d, int *folder, char *err)
{
    char inside[SCR_NAME_SIZE + 2];
    const char *last;
    snprintf(inside, sizeof inside, "%s%sx", d->named ? "" : d->name,
             d->named ? "" : "/");
    return beneath_open_parent(prefix, inside, 0, folder, &last, err);
}

int scavenge_place(const scavenge_prefix *prefix, const scavenge_saved *saved, char *err)
{
    const scr_dataset *d = &saved->scan.dataset;
    mover m = {.from = saved->folder.dir, .to = -1, .parent = -1};
    int rc = remove_map(prefix->dir, d->name, err);
    rc = rc ? rc : open_target(prefix->dir, d, &m.to, err);
    rc = rc ? rc : move_files(&m, &saved->scan, err);
    io_close(&m.to);
    rc = rc ? rc : write_map(prefix, &saved->scan, err);
    return rc ? rc : write_summary(prefix->dir, d, err);
}
