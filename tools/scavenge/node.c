/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache of this node; see node.h. */
#include "scavenge/node.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RECORD "prefix.scriinfo"
#define LOCK "run.lock"

/* ---- whose it is ---- */

/* Others could put anything there. */
static int check_owner(int dir, const char *path, char *err)
{
    struct stat st;
    if (fstat(dir, &st) != 0) return err_sys(err, -errno, "look at %s", path);
    if (st.st_uid == geteuid() && !(st.st_mode & 022)) return 0;
    return err_set(err, -EPERM, "%s belongs to user %lu, or others may write there", path,
                   (unsigned long)st.st_uid);
}

/* ".../<user>/scr.<job>", maybe with the name of a simulated node behind it. */
static int find_owner(const char *path, char owner[400], char *err)
{
    scr_path *p = scr_path_from_str(path);
    char *last = NULL, *text = NULL;
    int rc = p ? -EINVAL : -ENOMEM;
    if (p) scr_path_reduce(p);
    for (int end = p ? scr_path_components(p) : 0, i = end; i > end - 2 && i >= 2; i--) {
        scr_path *two = scr_path_sub(p, i - 2, 2), *one = scr_path_sub(p, i - 1, 1);
        last = scr_path_strdup(one);
        text = scr_path_strdup(two);
        if (!one || !two || !last || !text) {
            rc = -ENOMEM;
        } else if (strncmp(last, "scr.", 4) == 0 && strlen(text) < 400 &&
                   beneath_check_name(text, NULL) == 0) {
            strcpy(owner, text);
            rc = 0;
        }
        free(last);
        free(text);
        scr_path_delete(&one);
        scr_path_delete(&two);
        if (rc != -EINVAL) break;
    }
    scr_path_delete(&p);
    if (rc == -ENOMEM) return err_set(err, rc, "no memory");
    return rc ? err_set(err, rc, "%s is not of the form .../USER/scr.JOB", path) : 0;
}

/* The calculation of another prefix folder may have the same job id. */
static int check_prefix(const scavenge_node *node, const char *path, const char *prefix,
                        char *err)
{
    char *theirs;
    kvtree *record = kvtree_new();
    int rc = record ? kvtree_file_read(node->dir, RECORD, record, err)
                    : err_set(err, -ENOMEM, "no memory");
    if (!rc && kvtree_util_get_str(record, "PREFIX", &theirs) == 0 &&
        strcmp(theirs, prefix) != 0)
        rc = err_set(err, -EPERM, "%s is of the prefix folder %.300s", path, theirs);
    kvtree_delete(&record);
    return rc == -ENOENT || rc == -EBADMSG ? 0 : rc; /* it tells nothing */
}

/* ---- the lock ---- */

/* A lock of processes, as runs have it: it tells who. */
static int try_lock(scavenge_node *node, char *err)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (node->lock < 0) {
        int rc = beneath_open(node->dir, LOCK, O_RDONLY, 0, &node->lock, err);
        if (rc) return rc == -ENOENT ? 0 : rc;
    }
    node->run = 0;
    if (fcntl(node->lock, F_SETLK, &lock) == 0) return 0;
    if (errno == ENOLCK || errno == ENOTSUP || errno == ENOSYS) return 0;
    if (errno != EAGAIN && errno != EACCES) return err_sys(err, -errno, "lock " LOCK);
    lock.l_type = F_RDLCK;
    if (fcntl(node->lock, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
        node->run = lock.l_pid;
    if (node->run <= 0) node->run = 1; /* on another machine, or gone just now */
    return 0;
}

int scavenge_node_wait(scavenge_node *node, int seconds, char *err)
{
    const struct timespec nap = {0, 50000000};
    struct timespec start, now;
    int rc = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    now = start;
    while (!rc && node->run && now.tv_sec - start.tv_sec < seconds) {
        nanosleep(&nap, NULL);
        rc = try_lock(node, err);
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    if (rc || !node->run) return rc;
    return err_set(err, -EBUSY, "a run, process %ld, uses the cache", (long)node->run);
}

/* ---- filemaps ---- */

/* A damaged filemap counts as lost: redundancy may have what it named. */
static int read_map(scavenge_node *node, const char *name, char *err)
{
    char why[ERRTEXT_SIZE] = "";
    int rc = scr_filemap_read(node->dir, name, node->owner, node->map, why);
    if (rc == -ENOMEM) return err_set(err, rc, "%s", why);
    if (rc && rc != -ENOENT && node->refused++ == 0)
        snprintf(node->why, sizeof node->why, "%s", why);
    return 0;
}

/* Without a usable master file all filemaps in the folder are read. */
static int read_maps(scavenge_node *node, char *err)
{
    kvtree *names = kvtree_new();
    node->map = kvtree_new();
    int rc = names && node->map ? 0 : err_set(err, -ENOMEM, "no memory");
    if (!rc && scr_filemap_names(node->dir, 0, names, NULL) != 0)
        rc = scr_filemap_names(node->dir, 1, names, err);
    const kvtree_elem *e = kvtree_elem_first(names);
    for (; e && !rc; e = kvtree_elem_next(e))
        rc = read_map(node, kvtree_elem_key(e), err);
    kvtree_delete(&names);
    return rc;
}

int scavenge_node_open(const char *path, const char *prefix, scavenge_node *node,
                       char *err)
{
    memset(node, 0, sizeof *node);
    node->dir = node->lock = -1;
    node->path = path;
    int rc = find_owner(path, node->owner, err);
    rc = rc ? rc : beneath_open_folder(path, &node->dir, err);
    rc = rc ? rc : check_owner(node->dir, path, err);
    rc = rc ? rc : check_prefix(node, path, prefix, err);
    rc = rc ? rc : try_lock(node, err);
    rc = rc ? rc : read_maps(node, err);
    if (rc) scavenge_node_close(node);
    return rc;
}

void scavenge_node_close(scavenge_node *node)
{
    kvtree_delete(&node->map);
    io_close(&node->lock);
    io_close(&node->dir);
}

/* ---- one rank ---- */

/* name: inside path; the folder is what is before it. */
static int set_folder(scavenge_part *part, const char *path, const char *name)
{
    size_t n = (size_t)(name - path) - 1;
    if (part->folder)
        return strlen(part->folder) == n && strncmp(part->folder, path, n) == 0
                   ? 0
                   : -EBADMSG;
    part->folder = strndup(path, n);
    return part->folder ? 0 : -ENOMEM;
}

static int take_file(const scavenge_node *node, const kvtree_elem *e, scavenge_part *part,
                     char *err)
{
    const kvtree *meta = kvtree_elem_hash(e);
    const char *path = kvtree_elem_key(e), *type = kvtree_get_val(meta, SCR_META_TYPE);
    const char *name = scr_filemap_name_of(path, node->owner, part->dataset.id);
    unsigned long size, crc = 0;
    if (!name || !type || kvtree_util_get_bytecount(meta, SCR_META_SIZE, &size) != 0)
        return err_set(err, -EBADMSG, "the record of %.200s makes no sense", path);
    scavenge_file f = {.name = name, .size = size, .meta = meta};
    f.redundancy = strcmp(type, SCR_META_FULL) != 0;
    if (!f.redundancy) {
        f.has_crc = kvtree_util_get_crc32(meta, SCR_META_CRC, &crc) == 0;
        f.crc = (uint32_t)crc;
        int rc = scavenge_check_name(name, err);
        if (rc) return rc;
    }
    int rc = set_folder(part, path, name);
    rc = rc ? rc : scavenge_rank_add(part->rank, &f);
    if (rc == -ENOMEM) return err_set(err, rc, "no memory");
    return rc ? err_set(err, rc, "%.200s cannot be taken", path) : 0;
}

int scavenge_part_find(const scavenge_node *node, int dset, int rank, scavenge_part *part,
                       char *err)
{
    memset(part, 0, sizeof *part);
    const kvtree *files = scr_filemap_files(node->map, dset, rank);
    const kvtree *description = scr_filemap_get_dataset(node->map, dset, rank);
    if (!files || !description)
        return err_set(err, -ENOENT, "there is nothing of rank %d", rank);
    int rc = scr_dataset_from_tree(description, &part->dataset, err);
    if (!rc && (part->dataset.id != dset || rank >= part->dataset.ranks ||
                !part->dataset.complete))
        rc = err_set(err, -EBADMSG, "its description is of another dataset");
    if (!rc && scr_filemap_expected(node->map, dset, rank) != kvtree_size(files))
        rc = err_set(err, -EBADMSG, "its filemap lacks files");
    if (!rc && !(part->rank = scavenge_rank_new(rank)))
        rc = err_set(err, -ENOMEM, "no memory");
    const kvtree_elem *e = kvtree_elem_first(files);
    for (; e && !rc; e = kvtree_elem_next(e))
        rc = take_file(node, e, part, err);
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

int scavenge_part_open(const scavenge_part *part, int *folder, char *err)
{
    int rc = beneath_open_folder(part->folder, folder, err);
    if (rc) return rc;
    rc = check_owner(*folder, part->folder, err);
    if (rc) io_close(folder);
    return rc;
}
