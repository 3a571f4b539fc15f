/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache of this node; see node.h. */
#include "scavenge/node.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/io.h"
#include "common/record_size.h"
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NODE_RECORD "prefix.scriinfo"
#define NODE_LOCK "run.lock"

/* ---- ownership ---- */

/* Opens a directory that only this user can change. */
static int node_open_folder(const char *path, int *dir, kvtree_error *err)
{
    struct stat st;
    int rc = beneath_open_folder(path, dir, err);
    if (rc) return rc;
    if (fstat(*dir, &st) != 0)
        rc = err_sys(err, -errno, "stat %s", path);
    else if (st.st_uid != geteuid() || (st.st_mode & 022))
        rc = err_set(err, -EPERM, "%s belongs to user %lu, or others may write there",
                     path, (unsigned long)st.st_uid);
    if (rc) io_close(dir);
    return rc;
}

/* Parses ".../<user>/scr.<job>", possibly followed by the name of a simulated node. */
static int node_parse_owner(const char *path, char owner[SCAVENGE_OWNER_SIZE],
                            kvtree_error *err)
{
    char *reduced = scr_path_reduce(path), *job, *user;
    if (!reduced) return err_set(err, -ENOMEM, "no memory");
    job = strrchr(reduced, '/');
    if (job && strncmp(job, "/scr.", 5) != 0) {
        *job = 0;
        job = strrchr(reduced, '/');
    }
    int rc = -EINVAL;
    if (job && strncmp(job, "/scr.", 5) == 0) {
        *job = 0;
        user = strrchr(reduced, '/');
        user = user ? user + 1 : reduced;
        int n = snprintf(owner, SCAVENGE_OWNER_SIZE, "%s/%s", user, job + 1);
        if (n < SCAVENGE_OWNER_SIZE && beneath_check_name(owner, NULL) == 0) rc = 0;
    }
    free(reduced);
    return rc ? err_set(err, rc, "%s is not of the form .../USER/scr.JOB", path) : 0;
}

/* Checks the prefix directory, since a job in another one may have the same id. */
static int node_check_prefix(const scavenge_node *node, const char *prefix,
                             kvtree_error *err)
{
    char *other;
    kvtree *record = kvtree_new();
    int rc =
        record ? kvtree_file_read(node->dir, NODE_RECORD, RECORD_SIZE_SMALL, record, err)
               : err_set(err, -ENOMEM, "no memory");
    if (!rc && kvtree_util_get_str(record, "PREFIX", &other) == 0 &&
        strcmp(other, prefix) != 0)
        rc = err_set(err, -EPERM, "%s is of the prefix directory %.300s", node->path,
                     other);
    kvtree_delete(&record);
    return rc == -ENOENT || rc == -EBADMSG ? 0 : rc; /* the record is optional */
}

/* ---- lock of the cache ---- */

/* Tries to lock the cache with a lock of processes, like that of runs, whose owner can be
 * queried. */
static int node_try_lock(scavenge_node *node, kvtree_error *err)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (node->lock < 0) {
        int rc = beneath_open(node->dir, NODE_LOCK, O_RDONLY, 0, &node->lock, err);
        if (rc) return rc == -ENOENT ? 0 : rc;
    }
    node->run = 0;
    if (fcntl(node->lock, F_SETLK, &lock) == 0) return 0;
    if (errno == ENOLCK || errno == ENOTSUP || errno == ENOSYS) return 0;
    if (errno != EAGAIN && errno != EACCES)
        return err_sys(err, -errno, "lock " NODE_LOCK);
    node->run = 1; /* the run is on another machine, or just ended */
    if (fcntl(node->lock, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK &&
        lock.l_pid > 0)
        node->run = lock.l_pid;
    return 0;
}

int scavenge_node_wait(scavenge_node *node, int seconds, kvtree_error *err)
{
    const struct timespec nap = {0, 50000000};
    int rc = 0;
    for (int left = seconds * 20; !rc && node->run && left > 0; left--) {
        nanosleep(&nap, NULL);
        rc = node_try_lock(node, err);
    }
    if (rc || !node->run) return rc;
    return err_set(err, -EBUSY, "a run, process %ld, uses the cache", (long)node->run);
}

/* ---- filemaps ---- */

/* Reads the filemaps. A damaged filemap counts as lost, since redundancy may recover its
 * files. Without a usable master filemap, reads all filemaps in the directory. */
static int node_read_maps(scavenge_node *node, kvtree_error *err)
{
    kvtree *names = kvtree_new();
    node->map = kvtree_new();
    int rc = names && node->map ? 0 : err_set(err, -ENOMEM, "no memory");
    if (!rc && scr_filemap_names(node->dir, 0, names, NULL) != 0)
        rc = scr_filemap_names(node->dir, 1, names, err);
    const kvtree_elem *e = kvtree_elem_first(names);
    for (; e && !rc; e = kvtree_elem_next(e)) {
        kvtree_error why = {""};
        int failed =
            scr_filemap_read(node->dir, kvtree_elem_key(e), node->owner, node->map, &why);
        if (failed == -ENOMEM) rc = err_set(err, failed, "%s", why.text);
        if (failed && failed != -ENOENT && node->refused++ == 0) node->why = why;
    }
    kvtree_delete(&names);
    return rc;
}

int scavenge_node_open(const char *path, const char *prefix, scavenge_node *node,
                       kvtree_error *err)
{
    memset(node, 0, sizeof *node);
    node->dir = node->lock = -1;
    node->path = path;
    int rc = node_parse_owner(path, node->owner, err);
    if (!rc) rc = node_open_folder(path, &node->dir, err);
    if (!rc) rc = node_check_prefix(node, prefix, err);
    if (!rc) rc = node_try_lock(node, err);
    if (!rc) rc = node_read_maps(node, err);
    if (rc) scavenge_node_close(node);
    return rc;
}

void scavenge_node_close(scavenge_node *node)
{
    kvtree_delete(&node->map);
    io_close(&node->lock);
    io_close(&node->dir);
}

int scavenge_node_newest(const scavenge_node *node, int dset, scr_dataset *dataset)
{
    int count = 0, *ranks = NULL, rc = -ENOENT;
    if (scr_filemap_list_ranks_of(node->map, dset, &count, &ranks) != 0) return -ENOMEM;
    for (int i = 0; i < count; i++) {
        scr_dataset d;
        const kvtree *tree = scr_filemap_get_dataset(node->map, dset, ranks[i]);
        if (scr_dataset_from_tree(tree, &d, NULL) != 0 || d.id != dset || !d.complete)
            continue;
        if (!rc && d.created <= dataset->created) continue;
        *dataset = d;
        rc = 0;
    }
    free(ranks);
    return rc;
}

/* ---- one rank ---- */

/* Sets the common directory of all files of a part: `path` without `name` at its end. */
static int node_set_folder(scavenge_part *part, const char *path, const char *name)
{
    size_t n = (size_t)(name - path) - 1;
    if (part->folder)
        return strlen(part->folder) == n && !strncmp(part->folder, path, n) ? 0
                                                                            : -EBADMSG;
    part->folder = strndup(path, n);
    return part->folder ? 0 : -ENOMEM;
}

static int node_add_file(const scavenge_node *node, const kvtree_elem *e,
                         scavenge_part *part, kvtree_error *err)
{
    const kvtree *meta = kvtree_elem_hash(e);
    const char *path = kvtree_elem_key(e), *type = kvtree_get_val(meta, SCR_META_TYPE);
    const char *name = scr_filemap_name_of(path, node->owner, part->dataset.id);
    unsigned long size, crc = 0;
    if (!name || !type || kvtree_util_get_bytecount(meta, SCR_META_SIZE, &size) != 0)
        return err_set(err, -EBADMSG, "the record of %.200s is invalid", path);
    scavenge_file f = {.name = name, .size = size, .meta = meta};
    f.redundancy = strcmp(type, SCR_META_FULL) != 0;
    if (!f.redundancy) {
        f.has_crc = kvtree_util_get_crc32(meta, SCR_META_CRC, &crc) == 0;
        f.crc = (uint32_t)crc;
        if (scavenge_check_name(name, err) != 0) return -EBADMSG;
    }
    int rc = node_set_folder(part, path, name);
    if (!rc) rc = scavenge_rank_add(part->rank, &f);
    if (rc == -ENOMEM) return err_set(err, rc, "no memory");
    return rc ? err_set(err, rc, "the record of %.200s is invalid", path) : 0;
}

int scavenge_part_find(const scavenge_node *node, int dset, int rank, scavenge_part *part,
                       kvtree_error *err)
{
    memset(part, 0, sizeof *part);
    const kvtree *files = scr_filemap_files(node->map, dset, rank);
    const kvtree *description = scr_filemap_get_dataset(node->map, dset, rank);
    if (!files || !description)
        return err_set(err, -ENOENT, "rank %d has no files", rank);
    scr_dataset *d = &part->dataset;
    int rc = scr_dataset_from_tree(description, d, err);
    if (!rc && (d->id != dset || rank >= d->ranks || !d->complete))
        rc = err_set(err, -EBADMSG, "its description is of another dataset");
    if (!rc && scr_filemap_expected(node->map, dset, rank) != kvtree_size(files))
        rc = err_set(err, -EBADMSG, "its filemap lacks files");
    if (!rc && !(part->rank = scavenge_rank_new(rank)))
        rc = err_set(err, -ENOMEM, "no memory");
    const kvtree_elem *e = kvtree_elem_first(files);
    for (; e && !rc; e = kvtree_elem_next(e))
        rc = node_add_file(node, e, part, err);
    if (!rc && !part->folder) rc = err_set(err, -ENOENT, "it has no files");
    if (rc) scavenge_part_done(part);
    return rc ? err_wrap(err, rc, "rank %d", rank) : 0;
}

void scavenge_part_done(scavenge_part *part)
{
    scavenge_rank_free(part->rank);
    free(part->folder);
    part->rank = NULL;
    part->folder = NULL;
}

int scavenge_part_open(const scavenge_part *part, int *folder, kvtree_error *err)
{
    return node_open_folder(part->folder, folder, err);
}
