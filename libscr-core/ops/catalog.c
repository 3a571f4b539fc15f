/* SPDX-License-Identifier: BSD-3-Clause */
/* The catalog of the cache: which files of which dataset and rank lie in a store. The
 * header of each redundancy file tells it, and nothing else does: it lies beside the
 * data, and names dataset, rank, files, sizes and checksums. Filemaps are hints
 * (ops/filemap_assign.c); one that contradicts a header loses.
 *
 * The first process of a store reads all headers in it. Each entry goes to the process
 * whose rank wrote the files, if that one shares the store, else to another that does. */
#include "ops/catalog.h"

#include "base/path.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_mpi.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading headers ---- */

/* The folder of a dataset in a store, while its headers are read. */
struct folder {
    struct scr *scr;
    const scr_store_dir *cache;
    int id, fd;
    char *path;
    scr_filemap *found;
    int unusable; /* redundancy files of the store that count as lost, and the first */
    char first[2 * SCR_ERR_TEXT];
};

/* The folder of a dataset is our own: where its mode does not let us in, that is set
 * again. */
static int open_folder(const scr_store_dir *cache, const char *name)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat st;
    int fd = io_open(cache->fd, name, flags, 0);
    if (fd != -EACCES || beneath_stat(cache->fd, name, &st, NULL) != 0 ||
        !S_ISDIR(st.st_mode) || beneath_chmod(cache->fd, name, 0700, NULL) != 0)
        return fd;
    return io_open(cache->fd, name, flags, 0);
}

/* One line for the store. */
static void tell_unusable(const struct folder *f)
{
    char line[sizeof f->first + SCR_NODE_SIZE + 100];
    if (!f->unusable) return;
    snprintf(line, sizeof line,
             "warning: node %s: %d redundancy files count as lost, the first is that of "
             "%s",
             f->scr->job.node_name, f->unusable, f->first);
    scr_event_local(&f->scr->report, 0, line);
}

/* 1 when the filemap of this node names that redundancy file of a rank. */
static int is_hinted(const struct folder *f, int rank, const char *name)
{
    char cached[SCR_CACHED_NAME_SIZE];
    const kvtree_elem *e =
        kvtree_elem_first(scr_filemap_files(f->scr->cache.hints, f->id, rank));
    scr_cached_name(f->id, name, cached);
    for (; e; e = kvtree_elem_next(e)) {
        const char *path =
            scr_filemap_name_of(kvtree_elem_key(e), f->scr->job.owner, f->id);
        if (path && strcmp(path, name) == 0) return 1;
    }
    return 0;
}

/* Whether the description takes the place of what is in the map for that rank: a newer
 * dataset of the id does. Of two files of one dataset, which an encode that was
 * interrupted left, the one that the filemap names counts. */
static int takes_place(const struct folder *f, const scr_dataset *d,
                       const redset_manifest *m)
{
    scr_dataset other;
    const kvtree *tree = scr_filemap_get_dataset(f->found, d->id, m->rank);
    if (!tree || scr_dataset_from_tree(tree, &other, NULL) != 0) return 1;
    if (d->created != other.created) return d->created > other.created;
    return is_hinted(f, m->rank, m->file);
}

/* Adds what a header says to the entries that were found. */
static int take_header(struct folder *f, const char *name, char *err)
{
    char why[SCR_ERR_TEXT] = "";
    scr_dataset d;
    struct stat st;
    redset_manifest *m = NULL;
    int rc = redset_read_header(f->path, name, &m, why);
    if (!rc && (scr_dataset_from_tree(m->about, &d, NULL) != 0 || d.id != f->id ||
                !d.complete || d.ranks != m->ranks || m->rank >= d.ranks))
        rc = err_set(why, -EBADMSG, "it does not describe a complete dataset %d", f->id);
    if (!rc && fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        rc = err_sys(why, -errno, "%s", name);
    if (!rc && takes_place(f, &d, m)) {
        m->file_size = (uint64_t)st.st_size;
        scr_filemap_remove_rank(f->found, d.id, m->rank);
        rc = scr_map_record_found(f->found, &d, f->path, m);
        if (rc) err_set(why, rc, "no memory for the filemap");
    }
    redset_manifest_free(m);
    if (rc && scr_decide_may_pass(rc)) return err_set(err, rc, "%s: %s", f->path, why);
    if (rc && !f->unusable++)
        snprintf(f->first, sizeof f->first, "dataset %d, %s: %s", f->id, name, why);
    return 0;
}

static int read_headers(struct folder *f, char *err)
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
            rc = take_header(f, file->d_name, err);
    }
    if (stream) closedir(stream);
    return rc;
}

/* A folder that is none, or was removed, has nothing; what cannot be read just now is an
 * error. */
static int read_folder(struct folder *f, char *err)
{
    char name[SCR_FOLDER_SIZE];
    scr_dataset_folder_name(f->id, name);
    f->fd = open_folder(f->cache, name);
    f->path = scr_path_join(f->cache->folder, name);
    int rc = !f->path ? -ENOMEM : f->fd < 0 ? f->fd : read_headers(f, err);
    if (rc && !err[0]) err_sys(err, rc, "read %s/%s", f->cache->folder, name);
    io_close(&f->fd);
    free(f->path);
    return scr_decide_may_pass(rc) ? rc : 0;
}

/* ---- handing out ---- */

/* The process of a store that gets the entries of a rank. */
static int owner_of(const struct scr *scr, const scr_store_dir *cache, int rank)
{
    MPI_Group world, sharers;
    int size, owner = MPI_UNDEFINED;
    MPI_Comm_size(cache->comm, &size);
    if (rank < scr->job.ranks) {
        MPI_Comm_group(scr->job.world, &world);
        MPI_Comm_group(cache->comm, &sharers);
        MPI_Group_translate_ranks(world, 1, &rank, sharers, &owner);
        MPI_Group_free(&world);
        MPI_Group_free(&sharers);
    }
    return owner == MPI_UNDEFINED ? rank % size : owner;
}

static int deal(const struct scr *scr, const scr_store_dir *cache, scr_filemap *found,
                kvtree *send)
{
    int count, *ranks;
    int rc = scr_filemap_list_ranks(found, &count, &ranks);
    for (int i = 0; !rc && i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", owner_of(scr, cache, ranks[i]));
        kvtree *to = kvtree_get(send, key);
        if (!to) to = kvtree_set(send, key, NULL);
        rc = to ? scr_filemap_move_rank(found, ranks[i], to) : -ENOMEM;
    }
    if (!rc) free(ranks);
    return rc;
}

/* Of two stores that have files of one rank and id the newer dataset counts. */
static int take_entry(struct scr *scr, scr_filemap *from, int id, int rank)
{
    scr_dataset old, new;
    if (scr_dataset_from_tree(scr_filemap_get_dataset(scr->cache.map, id, rank), &old,
                              NULL) == 0 &&
        scr_dataset_from_tree(scr_filemap_get_dataset(from, id, rank), &new, NULL) == 0 &&
        new.created <= old.created)
        return 0;
    scr_filemap_remove_rank(scr->cache.map, id, rank);
    return scr_filemap_copy(from, id, rank, scr->cache.map);
}

static int take_entries(struct scr *scr, scr_filemap *from)
{
    int count, *ids;
    int rc = scr_filemap_list_datasets(from, &count, &ids);
    if (rc) return rc;
    for (int i = 0; i < count && !rc; i++) {
        int ranks_count, *ranks;
        rc = scr_filemap_list_ranks_of(from, ids[i], &ranks_count, &ranks);
        if (rc) break;
        for (int k = 0; k < ranks_count && !rc; k++)
            rc = take_entry(scr, from, ids[i], ranks[k]);
        free(ranks);
    }
    free(ids);
    return rc;
}

/* Local: the entries of a store, at the first process of it, for each of its processes.
 */
static int read_store(struct scr *scr, const scr_store_dir *cache, kvtree *send,
                      char *err)
{
    struct folder f = {
        .scr = scr, .cache = cache, .fd = -1, .found = kvtree_new(), .first = ""};
    int rc = f.found && send ? 0 : err_set(err, -ENOMEM, "no memory");
    if (cache->rank == 0)
        while (!rc && (f.id = scr_next_folder(cache, f.id)) != INT_MAX)
            rc = read_folder(&f, err);
    tell_unusable(&f);
    if (!rc && deal(scr, cache, f.found, send) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    kvtree_delete(&f.found);
    return rc ? err_wrap(err, rc, "node %s", scr->job.node_name) : 0;
}

int scr_catalog_store(struct scr *scr, int cache, char *err)
{
    const scr_store_dir *c = &scr->cache.stores[cache];
    kvtree *send = kvtree_new(), *received = kvtree_new();
    int rc = agree(scr->job.world, read_store(scr, c, send, err), err);
    if (!rc) {
        rc = kvtree_exchange(send, received, c->comm);
        const kvtree_elem *e = kvtree_elem_first(received);
        for (; e && !rc; e = kvtree_elem_next(e))
            rc = take_entries(scr, kvtree_elem_hash(e));
        if (rc) err_set(err, rc, "what is in the cache could not be handed out");
        rc = agree(scr->job.world, rc, err);
    }
    kvtree_delete(&send);
    kvtree_delete(&received);
    return rc;
}

int scr_catalog_read(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    for (int i = 0; i < scr->cache.store_count; i++)
        if (scr_catalog_store(scr, i, err) != 0)
            return scr_fail(&scr->report, SCR_ERR_CACHE, "%s", err);
    return SCR_SUCCESS;
}

int scr_catalog_has_redundancy(const struct scr *scr, int id)
{
    char name[SCR_FOLDER_SIZE];
    redset_place place;
    int has = 0;
    scr_dataset_folder_name(id, name);
    for (int i = 0; i < scr->cache.store_count; i++) {
        int fd = scr->cache.stores[i].rank == 0 ? open_folder(&scr->cache.stores[i], name)
                                                : -1;
        DIR *stream = fd >= 0 ? beneath_list(fd) : NULL;
        const struct dirent *file;
        while (stream && !has && (file = readdir(stream)) != NULL)
            has = redset_file_name_parse(file->d_name, &place) == 0;
        if (stream) closedir(stream);
        io_close(&fd);
    }
    return has;
}
