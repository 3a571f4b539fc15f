/* SPDX-License-Identifier: BSD-3-Clause */
/* filo_map_write and filo_map_read: the map of all ranks, in one process. libkvtree
 * writes and reads the files; this file checks, builds and parses the entry of each rank.
 */
#include "src/filo_private.h"

#include "common/folder.h"
#include "common/io.h"
#include <errno.h>
#include <kvtree/kvtree_gather.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* State of one call. */
typedef struct work {
    const char *folder, *base, *map, *dataset;
    filo_map_give *give;
    filo_map_take *take;
    void *arg;
    int said; /* non-zero result of the caller's function */
    int dir;  /* directory, once open; else -1 */
    size_t skip;
} work;

static int map_file_begin(work *w, const filo_place *place, filo_error *err)
{
    if (!place || !place->folder || !*place->folder)
        return err_set(err, -EINVAL, "no directory");
    w->folder = place->folder;
    w->base = place->base;
    w->map = place->map ? place->map : FILO_MAP;
    w->dataset = place->dataset;
    w->skip = place->dir ? place->skip : 0;
    int rc = beneath_check_name(w->map, err);
    return rc ? err_wrap(err, rc, "name of the map") : 0;
}

static kvtree_gather_place map_file_place(const work *w, size_t limit)
{
    return (kvtree_gather_place){.dir = w->dir,
                                 .name = w->map,
                                 .top = FILO_MAP_TOP,
                                 .limit = limit,
                                 .skip = w->skip};
}

/* ---- writing ---- */

int filo_map_make_folder(const char *base, const char *folder, const char *map,
                         filo_error *err)
{
    char *path;
    int made;
    if (asprintf(&path, "%s/%.*s", folder, (int)beneath_folder_length(map), map) < 0)
        return err_sys(err, -ENOMEM, "make directory %s", folder);
    int rc = folder_make_below(base, path, 0777, &made, err);
    free(path);
    if (!rc) io_close(&made);
    return rc;
}

/* Opens the directory, and creates the directory of the map below it. */
static int map_file_make_folder(work *w, const filo_place *to, filo_error *err)
{
    char folder[BENEATH_NAME_MAX];
    size_t length = beneath_folder_length(w->map);
    if (!to->dir) {
        int rc = filo_map_make_folder(w->base, w->folder, w->map, err);
        return rc ? rc : folder_make_below(w->base, w->folder, 0, &w->dir, err);
    }
    w->dir = *to->dir;
    if (!length) return 0;
    snprintf(folder, sizeof folder, "%.*s", (int)length - 1, w->map);
    return beneath_mkdirs(w->dir, folder, 0777, err);
}

/* No file or container may have a name that the map needs. */
static int map_file_check_name(const work *w, const char *name, filo_error *err)
{
    int rc = beneath_check_name(name, err);
    if (rc == 0 && kvtree_gather_owns(w->map, name))
        rc =
            err_set(err, -EINVAL, "file name \"%s\" belongs to the map %s", name, w->map);
    return rc;
}

static int map_file_check_names(const work *w, const filo_file *file, filo_error *err)
{
    int rc = map_file_check_name(w, file->name, err);
    for (int i = 0; file->packed && i < file->segments && rc == 0; i++)
        rc = map_file_check_name(w, file->segment[i].container, err);
    return rc;
}

/* Checks the files of a rank and fills entry with them. Nothing is written that a reader
 * would refuse. */
static int map_file_fill(const work *w, kvtree *entry, int count, const filo_file files[],
                         filo_error *err)
{
    if (count < 0 || (count > 0 && !files))
        return err_set(err, -EINVAL, "no list of %d files", count);
    int rc = 0;
    for (int i = 0; i < count && rc == 0; i++)
        rc = map_file_check_names(w, &files[i], err);
    if (rc) return rc;
    rc = filo_map_fill(entry, count, files);
    rc = rc ? rc : filo_map_set_dataset(entry, w->dataset);
    if (rc) return err_sys(err, rc, "make the map");
    if (kvtree_size(kvtree_get(entry, "FILE")) != count)
        return err_set(err, -EEXIST, "a file name is listed twice");
    return filo_map_check(entry, NULL, err) ? -EINVAL : 0;
}

static int map_file_give(void *arg, int rank, kvtree *entry, filo_error *err)
{
    work *w = arg;
    int count = 0;
    const filo_file *files = NULL;
    w->said = w->give(w->arg, rank, &count, &files, err);
    if (w->said) return w->said;
    int rc = map_file_fill(w, entry, count, files, err);
    return rc ? err_wrap(err, rc, "rank %d", rank) : 0;
}

int filo_map_write(const filo_place *to, int ranks, filo_map_give *give, void *arg,
                   filo_error *err)
{
    work w = {.give = give, .arg = arg, .dir = -1};
    int rc = map_file_begin(&w, to, err);
    if (rc == 0 && (!give || ranks < 1))
        rc = err_set(err, -EINVAL, "a map of %d ranks", give ? ranks : 0);
    if (rc == 0) rc = map_file_make_folder(&w, to, err);
    if (rc) return rc;
    const kvtree_gather_place place = map_file_place(&w, to->limit);
    rc = kvtree_gather_write_all(&place, ranks, map_file_give, &w, err);
    if (!to->dir) io_close(&w.dir);
    return rc && !w.said ? err_wrap(err, rc, "map in %s", w.folder) : rc;
}

/* ---- reading ---- */

static int map_file_take(void *arg, int rank, kvtree *entry, filo_error *err)
{
    work *w = arg;
    int count;
    filo_file *files;
    int rc = filo_map_check(entry, w->dataset, err);
    if (rc) return err_wrap(err, rc, "%s: rank %d", w->map, rank);
    if (!w->take) return 0;
    rc = filo_map_files(entry, &count, &files);
    if (rc) return err_sys(err, rc, "list the files of rank %d", rank);
    w->said = w->take(w->arg, rank, count, files, err);
    filo_files_free(count, files);
    return w->said;
}

/* Opens the directory of the map for reading. */
static int map_file_open(work *w, const filo_place *from, filo_error *err)
{
    int rc = map_file_begin(w, from, err);
    if (rc == 0 && from->dir)
        w->dir = *from->dir;
    else if (rc == 0)
        rc = folder_make_below(w->base, w->folder, 0, &w->dir, err);
    return rc;
}

/* Converts the result of libkvtree. */
static int map_file_close(work *w, const filo_place *from, int rc, filo_error *err)
{
    if (!from->dir) io_close(&w->dir);
    if (w->said) return w->said;
    if (rc == -EBADMSG) rc = FILO_DAMAGED;
    return rc ? err_wrap(err, rc, "map in %s", w->folder) : 0;
}

int filo_map_read(const filo_place *from, int *ranks, filo_map_take *take, void *arg,
                  filo_error *err)
{
    work w = {.take = take, .arg = arg, .dir = -1};
    int rc = map_file_open(&w, from, err);
    if (rc) return rc;
    const kvtree_gather_place place = map_file_place(&w, 0);
    rc = kvtree_gather_read_all(&place, ranks, map_file_take, &w, err);
    return map_file_close(&w, from, rc, err);
}

int filo_map_read_rank(const filo_place *from, int rank, int *ranks, filo_map_take *take,
                       void *arg, filo_error *err)
{
    work w = {.take = take, .arg = arg, .dir = -1};
    kvtree *entry = kvtree_new();
    int rc = entry ? map_file_open(&w, from, err) : err_sys(err, -ENOMEM, "read the map");
    if (!rc) {
        const kvtree_gather_place place = map_file_place(&w, 0);
        rc = kvtree_gather_read_one(&place, rank, ranks, entry, err);
        rc = rc ? rc : map_file_take(&w, rank, entry, err);
        rc = map_file_close(&w, from, rc, err);
    }
    kvtree_delete(&entry);
    return rc;
}
