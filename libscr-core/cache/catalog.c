/* SPDX-License-Identifier: BSD-3-Clause */
/* The catalog of the cache: which files of which dataset and rank are in a store. It is
 * read from the headers of redundancy files: a header lies beside the data, and names
 * dataset, rank, files, sizes and checksums. If a header is lost, the filemap of an
 * earlier run names the files of that rank.
 *
 * The first process of a store reads all headers in it. Each entry is sent to the rank
 * that wrote the files, if that rank shares the store, otherwise to another rank that
 * does. */
#include "cache/cache.h"

#include "base/path.h"
#include "base/transient.h"
#include "cache/base.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/number.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_mpi.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- reading headers ---- */

/* The directory of a dataset in a store, while its headers are read. */
struct catalog_folder {
    scr_cache *cache;
    const scr_store_dir *dir;
    int id, fd;
    char *path;
    scr_filemap *found;
    int unusable; /* number of unusable redundancy files in the store, and the first of
                     them */
    char first[2 * sizeof(kvtree_error)];
};

/* Opens the directory of a dataset. It belongs to this user, so a mode that denies access
 * is corrected. */
static int catalog_open_folder(const scr_store_dir *dir, const char *name)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat st;
    int fd = io_open(dir->fd, name, flags, 0);
    if (fd != -EACCES || beneath_stat(dir->fd, name, &st, NULL) != 0 ||
        !S_ISDIR(st.st_mode) || beneath_chmod(dir->fd, name, 0700, NULL) != 0)
        return fd;
    return io_open(dir->fd, name, flags, 0);
}

/* Reports unusable redundancy files, in one message per store. */
static void catalog_report_unusable(const struct catalog_folder *f)
{
    if (f->unusable)
        scr_fail_local(
            f->cache->job->report, SCR_MSG_CACHE_REDUNDANCY_LOST, 0,
            "node %s: %d redundancy files count as lost, the first is that of %s",
            f->cache->job->node_name, f->unusable, f->first);
}

static int64_t catalog_time_of(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* The time at which the redundancy file of a rank in the map was written; 0: there is
 * none. */
static int64_t catalog_recorded_time(const struct catalog_folder *f, int rank)
{
    const kvtree_elem *e = scr_filemap_redundancy(f->found, f->id, rank);
    const char *name =
        e ? scr_filemap_name_of(kvtree_elem_key(e), f->cache->job->owner, f->id) : NULL;
    struct stat st;
    return name && fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0
               ? catalog_time_of(&st)
               : 0;
}

/* Whether a header replaces the entry of its rank in the map: that of a newer dataset
 * with the same id does. Of two files of one dataset, which an interrupted encode left,
 * the later one counts. */
static bool catalog_is_newer_file(const struct catalog_folder *f, const scr_dataset *d,
                                  int rank, const struct stat *st)
{
    scr_dataset other;
    const kvtree *tree = scr_filemap_get_dataset(f->found, d->id, rank);
    if (!tree || scr_dataset_from_tree(tree, &other, NULL) != 0) return true;
    if (d->created != other.created) return d->created > other.created;
    return catalog_time_of(st) > catalog_recorded_time(f, rank);
}

/* Enters the description in a header into the map. */
static int catalog_enter_header(struct catalog_folder *f, const char *name,
                                kvtree_error *err)
{
    kvtree_error why = {""};
    scr_dataset d;
    struct stat st;
    redset_manifest *m = NULL;
    int rc = redset_read_header(f->fd, f->path, name, &m, &why);
    if (!rc && (scr_dataset_from_tree(m->about, &d, NULL) != 0 || d.id != f->id ||
                !d.complete || d.ranks != m->ranks || m->rank >= d.ranks))
        rc = err_set(&why, -EBADMSG, "it does not describe a complete dataset %d", f->id);
    if (!rc && fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        rc = err_sys(&why, -errno, "%s", name);
    if (!rc && catalog_is_newer_file(f, &d, m->rank, &st)) {
        m->file_size = (uint64_t)st.st_size;
        scr_filemap_remove_rank(f->found, d.id, m->rank);
        rc = scr_map_record_found(f->found, &d, f->path, m);
        if (rc) err_set(&why, rc, "no memory for the filemap");
    }
    redset_manifest_free(m);
    if (rc && scr_is_transient(rc)) return err_set(err, rc, "%s: %s", f->path, why.text);
    if (rc && !f->unusable++)
        snprintf(f->first, sizeof f->first, "dataset %d, %s: %s", f->id, name, why.text);
    return 0;
}

static int catalog_read_headers(struct catalog_folder *f, kvtree_error *err)
{
    DIR *stream = beneath_list(f->fd);
    int rc = stream ? 0 : -errno;
    while (!rc) {
        redset_place place;
        errno = 0;
        const struct dirent *file = readdir(stream);
        if (!file) {
            rc = -errno;
            break;
        }
        if (redset_file_name_parse(file->d_name, &place) == 0)
            rc = catalog_enter_header(f, file->d_name, err);
    }
    if (stream) closedir(stream);
    return rc;
}

/* Reads the headers of a dataset. A missing directory has none; a directory that cannot
 * be read now is an error. */
static int catalog_read_folder(struct catalog_folder *f, kvtree_error *err)
{
    char name[SCR_FOLDER_SIZE];
    scr_dataset_folder_name(f->id, name);
    f->fd = catalog_open_folder(f->dir, name);
    f->path = scr_path_join(f->dir->folder, name);
    int rc = !f->path ? -ENOMEM : f->fd < 0 ? f->fd : catalog_read_headers(f, err);
    if (!scr_is_transient(rc)) rc = 0;
    if (rc && !err->text[0]) err_sys(err, rc, "read %s/%s", f->dir->folder, name);
    io_close(&f->fd);
    free(f->path);
    return rc;
}

/* ---- distributing entries ---- */

/* The process of a store that receives the entries of a rank. */
static int catalog_owner(const scr_cache *cache, MPI_Comm comm, int rank)
{
    MPI_Group world, sharers;
    int size, owner = MPI_UNDEFINED;
    MPI_Comm_size(comm, &size);
    if (rank < cache->job->ranks) {
        MPI_Comm_group(cache->job->world, &world);
        MPI_Comm_group(comm, &sharers);
        MPI_Group_translate_ranks(world, 1, &rank, sharers, &owner);
        MPI_Group_free(&world);
        MPI_Group_free(&sharers);
    }
    return owner == MPI_UNDEFINED ? rank % size : owner;
}

static int catalog_assign(const scr_cache *cache, MPI_Comm comm, scr_filemap *found,
                          kvtree *send)
{
    int count, *ranks = NULL;
    int rc = scr_filemap_list_ranks(found, &count, &ranks);
    for (int i = 0; !rc && i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", catalog_owner(cache, comm, ranks[i]));
        kvtree *to = kvtree_get(send, key);
        if (!to) to = kvtree_set(send, key, NULL);
        rc = to ? scr_filemap_move_rank(found, ranks[i], to) : -ENOMEM;
    }
    free(ranks);
    return rc;
}

/* Whether an entry of from replaces that of map: a header replaces an entry that only a
 * filemap has, and a newer dataset an older one with the same id. */
static bool catalog_replaces_entry(const scr_filemap *map, const scr_filemap *from,
                                   int id, int rank)
{
    scr_dataset old, new;
    bool header = scr_catalog_has_header(map, id, rank);
    if (scr_dataset_from_tree(scr_filemap_get_dataset(map, id, rank), &old, NULL) != 0 ||
        scr_dataset_from_tree(scr_filemap_get_dataset(from, id, rank), &new, NULL) != 0)
        return true;
    if (header != scr_catalog_has_header(from, id, rank)) return !header;
    return new.created > old.created;
}

static int catalog_enter(scr_filemap *map, const scr_filemap *from, int id, int rank)
{
    if (!catalog_replaces_entry(map, from, id, rank)) return 0;
    scr_filemap_remove_rank(map, id, rank);
    return scr_filemap_copy(from, id, rank, map);
}

static int catalog_enter_all(scr_filemap *map, const scr_filemap *from)
{
    int rc = 0;
    for (const kvtree_elem *d = scr_filemap_datasets(from); d; d = kvtree_elem_next(d)) {
        const int id = kvtree_elem_key_int(d);
        const kvtree_elem *r = scr_filemap_ranks_of(from, id);
        for (; r && !rc; r = kvtree_elem_next(r))
            rc = catalog_enter(map, from, id, kvtree_elem_key_int(r));
    }
    return rc;
}

/* *next: the smallest id above last that has a directory in the store; INT_MAX: none. 0
 * or -errno. */
static int catalog_next_folder(const scr_store_dir *store, int last, int *next)
{
    const struct dirent *item;
    DIR *stream = beneath_list(store->fd);
    *next = INT_MAX;
    if (!stream) return errno == ENOENT ? 0 : -errno; /* a cleanup may have removed it */
    while ((errno = 0, item = readdir(stream)) != NULL) {
        int64_t id;
        if (strncmp(item->d_name, "scr.dataset.", 12) == 0 &&
            number_int64(item->d_name + 12, &id) == 0 && id > last && id < *next)
            *next = (int)id;
    }
    int rc = errno == ENOENT ? 0 : -errno;
    closedir(stream);
    return rc;
}

/* Local. Adds the descriptions in a store's headers to found. */
static int catalog_read_store(scr_cache *cache, const scr_store_dir *dir,
                              scr_filemap *found, kvtree_error *err)
{
    struct catalog_folder f = {
        .cache = cache, .dir = dir, .fd = -1, .found = found, .first = ""};
    int rc = catalog_next_folder(dir, 0, &f.id);
    if (rc) err_sys(err, rc, "list %s", dir->folder);
    while (!rc && f.id != INT_MAX) {
        rc = catalog_read_folder(&f, err);
        if (!rc && (rc = catalog_next_folder(dir, f.id, &f.id)) != 0)
            err_sys(err, rc, "list %s", dir->folder);
    }
    catalog_report_unusable(&f);
    return rc ? err_wrap(err, rc, "node %s", cache->job->node_name) : 0;
}

/* ---- stores and filemaps of earlier runs ---- */

static bool catalog_is_in_use(const scr_cache *cache, const char *path)
{
    for (int i = 0; i < cache->store_count; i++)
        if (strcmp(cache->stores[i].path, path) == 0) return true;
    return false;
}

/* Local, on the leader of a node. Reads the headers in stores that this run does not
 * use. */
static int catalog_read_recorded(scr_cache *cache, scr_filemap *found, kvtree_error *err)
{
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(cache->recorded, "STORE"));
    int rc = 0;
    for (; e && !rc; e = kvtree_elem_next(e)) {
        scr_store_dir dir = {.fd = -1};
        const scr_private where = {.what = "STORE of an earlier run",
                                   .base = kvtree_elem_key(e),
                                   .name = cache->job->owner};
        if (catalog_is_in_use(cache, where.base)) continue;
        rc = scr_open_private(&where, &dir.folder, &dir.fd, err);
        if (rc != -EACCES && !scr_is_transient(rc)) { /* the store is gone */
            rc = 0;
            err->text[0] = 0;
        }
        if (!rc && dir.fd >= 0) rc = catalog_read_store(cache, &dir, found, err);
        io_close(&dir.fd);
        free(dir.folder);
    }
    return rc;
}

/* Whether a path exists; a path that cannot be inspected now counts as existing. */
static bool catalog_is_there(const char *path)
{
    struct stat st;
    return fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
           (errno != ENOENT && errno != ENOTDIR);
}

static bool catalog_has_folder(const char *file)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%.*s", (int)(strrchr(file, '/') - file), file);
    return n < (int)sizeof path && catalog_is_there(path);
}

/* Removes the redundancy files from an entry of a filemap: only their headers describe
 * them. Returns whether any of the other files exists or, for a rank without files, the
 * dataset's directory. */
static bool catalog_reduce_entry(scr_filemap *map, int id, int rank)
{
    const kvtree_elem *next, *f = kvtree_elem_first(scr_filemap_files(map, id, rank));
    bool has_file = false, has_folder = false;
    int files = 0;
    for (; f; f = next) {
        const bool full = scr_meta_is_full(f);
        next = kvtree_elem_next(f);
        files += full;
        if (full)
            has_file |= catalog_is_there(kvtree_elem_key(f));
        else
            has_folder |= catalog_has_folder(kvtree_elem_key(f));
        if (!full) scr_filemap_remove_file(map, id, rank, kvtree_elem_key(f));
    }
    scr_filemap_set_expected(map, id, rank, files);
    return files > 0 ? has_file : has_folder;
}

/* Local, on the leader of a node. Adds those entries of filemaps whose files still exist.
 * The datasets of other entries have left the cache. */
static int catalog_read_filemaps(scr_cache *cache, scr_filemap *found, kvtree_error *err)
{
    scr_filemap *all = kvtree_new();
    int rc = all ? scr_filemaps_read(cache, all, err) : -ENOMEM;
    for (const kvtree_elem *d = scr_filemap_datasets(all); d; d = kvtree_elem_next(d)) {
        const int id = kvtree_elem_key_int(d);
        const kvtree_elem *r = scr_filemap_ranks_of(all, id);
        for (; r && !rc; r = kvtree_elem_next(r))
            if (catalog_reduce_entry(all, id, kvtree_elem_key_int(r)))
                rc = catalog_enter(found, all, id, kvtree_elem_key_int(r));
    }
    kvtree_delete(&all);
    if (rc && !err->text[0]) err_set(err, rc, "no memory");
    return rc ? err_wrap(err, rc, "node %s: %s", cache->job->node_name, cache->control)
              : 0;
}

/* ---- reading the catalog ---- */

/* Collective over comm. Sends each process its entries. */
static int catalog_exchange(scr_cache *cache, MPI_Comm comm, const kvtree *send)
{
    kvtree *received = kvtree_new();
    int rc = kvtree_exchange(send, received, comm);
    const kvtree_elem *e = kvtree_elem_first(received);
    if (!received) rc = -ENOMEM;
    for (; e && !rc; e = kvtree_elem_next(e))
        rc = catalog_enter_all(cache->map, kvtree_elem_hash(e));
    kvtree_delete(&received);
    return rc;
}

/* Local. Collects the entries that the first process of a store, or the leader of a node,
 * has for the others. */
static int catalog_collect(scr_cache *cache, const scr_store_dir *dir, kvtree *send,
                           kvtree_error *err)
{
    scr_filemap *found = kvtree_new();
    int rc = found && send ? 0 : err_set(err, -ENOMEM, "no memory");
    if (!rc && dir && dir->rank == 0) rc = catalog_read_store(cache, dir, found, err);
    if (!dir && cache->job->node_rank == 0) {
        rc = rc ? rc : catalog_read_recorded(cache, found, err);
        rc = rc ? rc : catalog_read_filemaps(cache, found, err);
    }
    if (!rc &&
        catalog_assign(cache, dir ? dir->comm : cache->job->node, found, send) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    kvtree_delete(&found);
    return rc;
}

/* Reads the entries of a store, or, if dir is NULL, those that only earlier runs
 * recorded. Agreed. */
static int catalog_read(scr_cache *cache, const scr_store_dir *dir, kvtree_error *err)
{
    kvtree *send = kvtree_new();
    int rc = agree(cache->job->world, catalog_collect(cache, dir, send, err), err);
    if (!rc) {
        rc = catalog_exchange(cache, dir ? dir->comm : cache->job->node, send);
        if (rc) err_sys(err, rc, "exchange of the list of cached files");
        rc = agree(cache->job->world, rc, err);
    }
    kvtree_delete(&send);
    return rc;
}

int scr_catalog_read(scr_cache *cache, kvtree_error *err)
{
    int rc = 0;
    for (int i = 0; i < cache->store_count && !rc; i++)
        rc = catalog_read(cache, &cache->stores[i], err);
    return rc ? rc : catalog_read(cache, NULL, err);
}

bool scr_catalog_has_header(const scr_filemap *map, int id, int rank)
{
    return scr_filemap_redundancy(map, id, rank) != NULL;
}

static bool catalog_folder_has_redundancy(const scr_store_dir *store, const char *name)
{
    redset_place place;
    const struct dirent *file = NULL;
    int fd = catalog_open_folder(store, name);
    if (fd < 0) return fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP;
    DIR *stream = beneath_list(fd);
    bool has = false;
    while (stream && !has && (errno = 0, file = readdir(stream)) != NULL)
        has = redset_file_name_parse(file->d_name, &place) == 0;
    has |= !stream || (!file && errno);
    if (stream) closedir(stream);
    io_close(&fd);
    return has;
}

static bool catalog_has_redundancy(const scr_cache *cache, int id)
{
    char name[SCR_FOLDER_SIZE];
    scr_dataset_folder_name(id, name);
    for (int i = 0; i < cache->store_count; i++)
        if (cache->stores[i].rank == 0 &&
            catalog_folder_has_redundancy(&cache->stores[i], name))
            return true;
    return false;
}

/* ---- directories without headers ---- */

static int catalog_next_folder_of_all(const scr_cache *cache, int last)
{
    int least = INT_MAX;
    for (int i = 0; i < cache->store_count; i++) {
        int id;
        if (cache->stores[i].rank == 0 &&
            catalog_next_folder(&cache->stores[i], last, &id) == 0 && id < least)
            least = id;
    }
    return least;
}

/* Collective, agreed. Handles a directory that no header describes: remains of an
 * incomplete checkpoint, or of one with unusable headers. */
static int catalog_sweep_folder(scr_cache *cache, int id, int *highest, kvtree_error *err)
{
    const scr_dataset unknown = {.id = id};
    if (scr_job_max(cache->job, scr_filemap_ranks_of(cache->map, id) != NULL ||
                                    scr_cached_find(cache, id) != NULL))
        return 0;
    if (!scr_job_max(cache->job, catalog_has_redundancy(cache, id))) {
        scr_say(cache->job->report, SCR_MSG_CACHE_INCOMPLETE_REMOVED,
                "removing the remains of dataset %d, which an interrupted run left", id);
        scr_dataset_folder_remove(cache, id);
        return 0;
    }
    if (id > *highest) *highest = id;
    scr_say(cache->job->report, SCR_MSG_REBUILD_IMPOSSIBLE,
            "dataset %d is lost from the cache: none of its redundancy files can be "
            "used; its remains stay until a newer checkpoint is complete",
            id);
    return scr_cached_note(cache, &unknown, SCR_CACHED_USELESS, err);
}

int scr_cache_sweep(scr_cache *cache, int *highest, kvtree_error *err)
{
    for (int last = 0;;) {
        last = scr_job_min(cache->job, catalog_next_folder_of_all(cache, last));
        if (last == INT_MAX) return 0;
        int rc = catalog_sweep_folder(cache, last, highest, err);
        if (rc) return rc;
    }
}
