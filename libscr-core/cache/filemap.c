/* SPDX-License-Identifier: BSD-3-Clause */
/* The filemap; see cache/filemap.h. */
#include "cache/filemap.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/record_size.h"
#include <dirent.h>
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_DSET "DSET"
#define KEY_RANK "RANK"
#define KEY_FILE "FILE"
#define KEY_FILES "FILES"
#define KEY_REDDESC "REDDESC"
#define KEY_DATADESC "DATADESC"
#define KEY_MASTER "Filemap"

static kvtree *filemap_entry(const scr_filemap *map, int dset, int rank)
{
    return kvtree_get_kv_int(kvtree_get_kv_int(map, KEY_RANK, rank), KEY_DSET, dset);
}

static kvtree *filemap_make_entry(scr_filemap *map, int dset, int rank)
{
    kvtree *index = kvtree_set_kv_int(map, KEY_DSET, dset);
    if (!kvtree_set_kv_int(index, KEY_RANK, rank)) return NULL;
    return kvtree_set_kv_int(kvtree_set_kv_int(map, KEY_RANK, rank), KEY_DSET, dset);
}

int scr_meta_set_place(kvtree *meta, const char *path)
{
    const char *name = scr_path_basename(path);
    size_t length = (size_t)(name - path) - 1;
    char *folder = length > 0 ? strndup(path, length) : strdup("/");
    int rc = folder ? kvtree_util_set_str(meta, SCR_META_PATH, folder) : -ENOMEM;
    rc = rc ? rc : kvtree_util_set_str(meta, SCR_META_NAME, name);
    free(folder);
    return rc;
}

kvtree *scr_filemap_add_file(scr_filemap *map, int dset, int rank, const char *path)
{
    return kvtree_set_kv(filemap_make_entry(map, dset, rank), KEY_FILE, path);
}

int scr_filemap_remove_file(scr_filemap *map, int dset, int rank, const char *path)
{
    return kvtree_unset_kv(filemap_entry(map, dset, rank), KEY_FILE, path);
}

const kvtree *scr_filemap_files(const scr_filemap *map, int dset, int rank)
{
    return kvtree_get(filemap_entry(map, dset, rank), KEY_FILE);
}

int scr_filemap_expected(const scr_filemap *map, int dset, int rank)
{
    int files;
    return kvtree_util_get_int(filemap_entry(map, dset, rank), KEY_FILES, &files) == 0
               ? files
               : -1;
}

int scr_filemap_set_expected(scr_filemap *map, int dset, int rank, int files)
{
    kvtree *e = filemap_make_entry(map, dset, rank);
    return e ? kvtree_util_set_int(e, KEY_FILES, files) : -ENOMEM;
}

static int filemap_set_copy(kvtree *tree, const char *key, const kvtree *source)
{
    kvtree *copy = kvtree_new();
    if (!tree || !copy || kvtree_merge(copy, source) != 0 ||
        !kvtree_set(tree, key, copy)) {
        kvtree_delete(&copy);
        return -ENOMEM;
    }
    return 0;
}

int scr_filemap_set_dataset(scr_filemap *map, int dset, int rank, const kvtree *dataset)
{
    return filemap_set_copy(filemap_make_entry(map, dset, rank), KEY_DATADESC, dataset);
}

const kvtree *scr_filemap_get_dataset(const scr_filemap *map, int dset, int rank)
{
    return kvtree_get(filemap_entry(map, dset, rank), KEY_DATADESC);
}

int scr_filemap_set_reddesc(scr_filemap *map, int dset, int rank, const kvtree *reddesc)
{
    return filemap_set_copy(filemap_make_entry(map, dset, rank), KEY_REDDESC, reddesc);
}

const kvtree *scr_filemap_get_reddesc(const scr_filemap *map, int dset, int rank)
{
    return kvtree_get(filemap_entry(map, dset, rank), KEY_REDDESC);
}

int scr_filemap_remove_rank(scr_filemap *map, int dset, int rank)
{
    kvtree *of_rank = kvtree_get_kv_int(map, KEY_RANK, rank);
    kvtree_unset_kv_int(of_rank, KEY_DSET, dset);
    if (of_rank && kvtree_size(of_rank) == 0) kvtree_unset_kv_int(map, KEY_RANK, rank);
    kvtree *index = kvtree_get_kv_int(map, KEY_DSET, dset);
    kvtree_unset_kv_int(index, KEY_RANK, rank);
    if (index && kvtree_size(index) == 0) kvtree_unset_kv_int(map, KEY_DSET, dset);
    return 0;
}

int scr_filemap_remove_dataset(scr_filemap *map, int dset)
{
    int count, *ranks;
    int rc = scr_filemap_list_ranks_of(map, dset, &count, &ranks);
    if (rc) return rc;
    for (int i = 0; i < count; i++)
        scr_filemap_remove_rank(map, dset, ranks[i]);
    free(ranks);
    return 0;
}

int scr_filemap_copy(const scr_filemap *from, int dset, int rank, scr_filemap *target)
{
    kvtree *copy = filemap_make_entry(target, dset, rank);
    return copy && kvtree_merge(copy, filemap_entry(from, dset, rank)) == 0 ? 0 : -ENOMEM;
}

int scr_filemap_move_rank(scr_filemap *map, int rank, scr_filemap *target)
{
    kvtree *of_rank = kvtree_get_kv_int(map, KEY_RANK, rank);
    int count, *ids;
    int rc = kvtree_list_int(kvtree_get(of_rank, KEY_DSET), &count, &ids);
    if (rc || count == 0) return rc;
    for (int i = 0; !rc && i < count; i++)
        if (!filemap_make_entry(target, ids[i], rank)) rc = -ENOMEM;
    rc = rc ? rc : kvtree_merge(kvtree_get_kv_int(target, KEY_RANK, rank), of_rank);
    for (int i = 0; !rc && i < count; i++)
        scr_filemap_remove_rank(map, ids[i], rank);
    free(ids);
    return rc;
}

bool scr_meta_is_full(const kvtree_elem *file)
{
    const char *type = kvtree_get_val(kvtree_elem_hash(file), SCR_META_TYPE);
    return type && strcmp(type, SCR_META_FULL) == 0;
}

/* The first file of any kind of a rank; NULL: none, or no rank. */
static const kvtree_elem *filemap_first(const scr_filemap *map, int dset,
                                        const kvtree_elem *rank)
{
    if (!rank) return NULL;
    return kvtree_elem_first(scr_filemap_files(map, dset, kvtree_elem_key_int(rank)));
}

const kvtree_elem *scr_filemap_next(const scr_filemap *map, int dset,
                                    scr_filemap_walk *walk)
{
    const kvtree_elem *f = kvtree_elem_next(walk->file);
    if (!walk->rank) {
        walk->rank = scr_filemap_ranks_of(map, dset);
        f = filemap_first(map, dset, walk->rank);
    }
    for (;; f = kvtree_elem_next(f)) {
        while (!f && walk->rank) {
            walk->rank = kvtree_elem_next(walk->rank);
            f = filemap_first(map, dset, walk->rank);
        }
        if (!f || scr_meta_is_full(f)) break;
    }
    walk->file = f;
    return f;
}

const kvtree_elem *scr_filemap_redundancy(const scr_filemap *map, int dset, int rank)
{
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(map, dset, rank));
    while (f && (scr_meta_is_full(f) || !kvtree_get(kvtree_elem_hash(f), SCR_META_TYPE)))
        f = kvtree_elem_next(f);
    return f;
}

const kvtree_elem *scr_filemap_datasets(const scr_filemap *map)
{
    return kvtree_elem_first(kvtree_get(map, KEY_DSET));
}

const kvtree_elem *scr_filemap_ranks_of(const scr_filemap *map, int dset)
{
    return kvtree_elem_first(
        kvtree_get(kvtree_get_kv_int(map, KEY_DSET, dset), KEY_RANK));
}

int scr_filemap_list_datasets(const scr_filemap *map, int *count, int **ids)
{
    return kvtree_list_int(kvtree_get(map, KEY_DSET), count, ids);
}

int scr_filemap_list_ranks_of(const scr_filemap *map, int dset, int *count, int **ranks)
{
    return kvtree_list_int(kvtree_get(kvtree_get_kv_int(map, KEY_DSET, dset), KEY_RANK),
                           count, ranks);
}

int scr_filemap_list_ranks(const scr_filemap *map, int *count, int **ranks)
{
    return kvtree_list_int(kvtree_get(map, KEY_RANK), count, ranks);
}

const char *scr_filemap_name_of(const char *path, const char *owner, int dset)
{
    char folder[BENEATH_NAME_MAX];
    int n = snprintf(folder, sizeof folder, "/%s/scr.dataset.%d/", owner, dset);
    if (path[0] != '/' || n >= (int)sizeof folder) return NULL;
    /* checking the whole path also checks the name at its end */
    if (beneath_check_name(path + 1, NULL) != 0) return NULL;
    const char *at = strstr(path, folder);
    return at ? at + n : NULL;
}

static int filemap_check_files(const kvtree *files, const char *owner, int dset,
                               kvtree_error *err)
{
    const kvtree_elem *f;
    for (f = kvtree_elem_first(files); f; f = kvtree_elem_next(f))
        if (!scr_filemap_name_of(kvtree_elem_key(f), owner, dset))
            return err_set(
                err, -EBADMSG,
                "dataset %d lists \"%.200s\", which is not in %s/scr.dataset.%d", dset,
                kvtree_elem_key(f), owner, dset);
    return 0;
}

/* Checks all ids, and copies valid entries to target one by one, which rebuilds the
 * index. */
static int filemap_check_rank(const scr_filemap *map, int rank, const char *owner,
                              scr_filemap *target, kvtree_error *err)
{
    int count, *ids;
    int rc = kvtree_list_int(kvtree_get(kvtree_get_kv_int(map, KEY_RANK, rank), KEY_DSET),
                             &count, &ids);
    if (rc == -ENOMEM) return err_set(err, rc, "no memory");
    if (rc)
        return err_set(err, -EBADMSG, "rank %d has a dataset id that is not a number",
                       rank);
    for (int i = 0; !rc && i < count; i++) {
        if (ids[i] < 1 || ids[i] > SCR_ID_MAX || !filemap_entry(map, ids[i], rank) ||
            (i > 0 && ids[i] == ids[i - 1]))
            rc = err_set(err, -EBADMSG, "rank %d has an impossible dataset id %d", rank,
                         ids[i]);
        else
            rc = filemap_check_files(scr_filemap_files(map, ids[i], rank), owner, ids[i],
                                     err);
        if (!rc && scr_filemap_copy(map, ids[i], rank, target) != 0)
            rc = err_set(err, -ENOMEM, "no memory");
    }
    free(ids);
    return rc;
}

int scr_filemap_read(int dir, const char *name, const char *owner, scr_filemap *map,
                     kvtree_error *err)
{
    kvtree *raw = kvtree_new(), *good = kvtree_new();
    int count = 0, *ranks = NULL;
    int rc = raw && good ? kvtree_file_read(dir, name, RECORD_SIZE_FILES, raw, err)
                         : err_set(err, -ENOMEM, "%s: no memory", name);
    int listed = rc ? 0 : scr_filemap_list_ranks(raw, &count, &ranks);
    if (listed == -ENOMEM) rc = err_set(err, listed, "%s: no memory", name);
    if (listed && !rc)
        rc = err_set(err, -EBADMSG, "%s: a rank that is not a number", name);
    for (int i = 0; !rc && i < count; i++) {
        /* "+1" and "01" are numbers, too, but SCR never writes them as ranks, not even
         * beside "1" */
        if (ranks[i] < 0 || !kvtree_get_kv_int(raw, KEY_RANK, ranks[i]) ||
            (i > 0 && ranks[i] == ranks[i - 1]))
            rc = err_set(err, -EBADMSG, "impossible rank %d", ranks[i]);
        else
            rc = filemap_check_rank(raw, ranks[i], owner, good, err);
        if (rc) err_wrap(err, rc, "%s", name);
    }
    if (!rc && kvtree_merge(map, good) != 0)
        rc = err_set(err, -ENOMEM, "%s: no memory", name);
    free(ranks);
    kvtree_delete(&raw);
    kvtree_delete(&good);
    return rc;
}

int scr_filemap_write(int dir, const char *name, const scr_filemap *map,
                      kvtree_error *err)
{
    return kvtree_file_write(dir, name, RECORD_SIZE_FILES, map, err);
}

/* ---- names of filemaps ---- */

static int filemap_names_of_master(int dir, kvtree *names, kvtree_error *err)
{
    kvtree *master = kvtree_new();
    int rc =
        master ? kvtree_file_read(dir, SCR_FILEMAP_MASTER, RECORD_SIZE_SMALL, master, err)
               : err_set(err, -ENOMEM, "no memory");
    const kvtree_elem *e = rc ? NULL : kvtree_elem_first(kvtree_get(master, KEY_MASTER));
    for (; e && !rc; e = kvtree_elem_next(e)) {
        const char *name = scr_path_basename(kvtree_elem_key(e));
        if (!kvtree_get(names, name) && !kvtree_set(names, name, NULL))
            rc = err_set(err, -ENOMEM, "no memory");
    }
    kvtree_delete(&master);
    return rc;
}

static int filemap_names_in_folder(int dir, kvtree *names, kvtree_error *err)
{
    DIR *stream = beneath_list(dir);
    const struct dirent *item;
    int rc = stream ? 0 : -errno;
    while (!rc && (errno = 0, item = readdir(stream)) != NULL)
        if (strncmp(item->d_name, "filemap_", 8) == 0 &&
            !kvtree_set(names, item->d_name, NULL))
            rc = -ENOMEM;
    if (!rc) rc = -errno;
    if (stream) closedir(stream);
    return rc ? err_sys(err, rc, "list the control directory") : 0;
}

int scr_filemap_names(int dir, int all, kvtree *names, kvtree_error *err)
{
    int rc = all ? filemap_names_in_folder(dir, names, err)
                 : filemap_names_of_master(dir, names, err);
    if (rc) kvtree_unset_all(names);
    return rc;
}
