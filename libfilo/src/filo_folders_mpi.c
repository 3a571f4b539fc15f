/* SPDX-License-Identifier: BSD-3-Clause */
/* The directories that files need: the union of the directories on all ranks, each
 * created and synced by one rank.
 *
 * The hash of a directory selects the rank that owns it. Names travel to their owners in
 * log2(P) steps of a hypercube: in step i, two partners, whose ranks differ in bit i,
 * swap the names whose owners have the other partner's bit. Equal names merge wherever
 * they meet. So a directory that all ranks name costs each rank one name per step, and no
 * rank ever holds all names. */
#include "src/filo_private_mpi.h"

#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- owners ---- */

/* Adds all directories of a name, from the top. */
static int folders_add(kvtree *folders, const char *name)
{
    char folder[BENEATH_NAME_MAX];
    for (const char *s = strchr(name, '/'); s; s = strchr(s + 1, '/')) {
        memcpy(folder, name, (size_t)(s - name));
        folder[s - name] = 0;
        if (!kvtree_get(folders, folder) && !kvtree_set(folders, folder, NULL))
            return -ENOMEM;
    }
    return 0;
}

/* Moves the names of owners whose bit differs from this rank's bit to away. */
static int folders_pick(kvtree *folders, unsigned bit, unsigned mine, kvtree *away)
{
    kvtree_elem *e = kvtree_elem_first(folders), *next;
    for (; e; e = next) {
        const char *name = kvtree_elem_key(e);
        next = kvtree_elem_next(e);
        if ((filo_name_hash(name) & bit) == (mine & bit)) continue;
        if (!kvtree_set(away, name, NULL)) return -ENOMEM;
        kvtree_unset(folders, name);
    }
    return 0;
}

/* Sends one message and receives one; each partner may be MPI_PROC_NULL. Frees the tree
 * that was sent. */
static int folders_swap(const filo_job *job, kvtree *folders, kvtree **away, int to,
                        int from)
{
    kvtree *arrived = kvtree_new();
    int rc = kvtree_sendrecv(*away, to, arrived, from, job->own);
    if (!rc) rc = arrived ? kvtree_merge(folders, arrived) : -ENOMEM;
    kvtree_delete(&arrived);
    kvtree_delete(away);
    return rc;
}

/* Collective, the result is this rank's own. Of P ranks, the largest power of two are
 * owners; the other ranks first send all their names to one of the owners. A rank that
 * has failed still takes part, so that no other rank blocks. */
static int folders_to_owners(const filo_job *job, kvtree *folders)
{
    unsigned owners = 1, me = (unsigned)job->rank, size = (unsigned)job->size;
    int rc = 0, failed = 0;
    while (2 * owners <= size)
        owners *= 2;
    kvtree *away = kvtree_new();
    if (me >= owners) {
        if (!away || kvtree_merge(away, folders) != 0) rc = -ENOMEM;
        kvtree_unset_all(folders);
        failed = folders_swap(job, NULL, &away, (int)(me - owners), MPI_PROC_NULL);
        return rc ? rc : failed;
    }
    if (me + owners < size)
        rc = folders_swap(job, folders, &away, MPI_PROC_NULL, (int)(me + owners));
    kvtree_delete(&away);
    for (unsigned bit = 1; bit < owners; bit *= 2) {
        int partner = (int)(me ^ bit);
        away = kvtree_new();
        failed = away ? folders_pick(folders, bit, me, away) : -ENOMEM;
        if (!rc) rc = failed;
        failed = folders_swap(job, folders, &away, partner, partner);
        if (!rc) rc = failed;
    }
    return rc;
}

/* ---- creating ---- */

static int folder_depth(const char *name)
{
    int depth = 1;
    for (; *name; name++)
        depth += *name == '/';
    return depth;
}

/* An existing directory costs no mkdir. All directories are synced after the files are
 * renamed, before the map is written. */
static int folders_make_one(const filo_job *job, const char *name, filo_error *err)
{
    const char *last;
    struct stat st;
    int parent, rc = beneath_open_parent(job->dir, name, 0, &parent, &last, err);
    if (rc) return rc;
    int there = fstatat(parent, last, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && mkdirat(parent, last, 0777) != 0 && errno != EEXIST) rc = -errno;
    if (rc) err_sys(err, rc, "make directory %s/%s", job->folder, name);
    if (there && !S_ISDIR(st.st_mode))
        rc = err_set(err, -ENOTDIR, "%s/%s is not a directory", job->folder, name);
    io_close(&parent);
    return rc;
}

/* Creates this rank's directories of one depth; *deeper is the number of deeper ones. */
static int folders_make_level(filo_job *job, const kvtree *folders, int depth,
                              int64_t *deeper)
{
    int rc = 0;
    *deeper = 0;
    for (kvtree_elem *e = kvtree_elem_first(folders); e && !rc; e = kvtree_elem_next(e)) {
        const char *name = kvtree_elem_key(e);
        int own = folder_depth(name);
        *deeper += own > depth;
        if (own == depth) rc = folders_make_one(job, name, &job->err);
    }
    return rc;
}

/* Collective, agreed; rc is of this rank so far. */
static int folders_make_levels(filo_job *job, int rc, const kvtree *folders)
{
    int64_t deeper = 1;
    for (int depth = 1; deeper; depth++) {
        if (!rc) rc = folders_make_level(job, folders, depth, &deeper);
        rc = agree_sum(job->own, rc, &job->err, 1, &deeper);
        if (rc) return rc;
    }
    return 0;
}

int filo_folders_make(filo_job *job, int rc, int count, const filo_file files[],
                      kvtree **own)
{
    kvtree *folders = kvtree_new();
    int listed = folders ? 0 : -ENOMEM;
    for (int i = 0; i < count && !listed; i++)
        listed = folders_add(folders, files[i].name);
    if (!rc && listed) rc = err_sys(&job->err, listed, "list directories");
    int64_t all = kvtree_size(folders);
    rc = agree_sum(job->own, rc, &job->err, 1, &all);
    if (!rc && all) {
        rc = folders_to_owners(job, folders);
        if (rc) err_sys(&job->err, rc, "list directories");
        if (!rc && kvtree_size(folders) > 0) rc = filo_job_open(job);
        rc = folders_make_levels(job, rc, folders);
    }
    if (rc)
        kvtree_delete(&folders);
    else
        *own = folders;
    return rc;
}

int filo_folders_sync(filo_job *job, const kvtree *own)
{
    int rc = 0;
    for (kvtree_elem *e = kvtree_elem_first(own); e && !rc; e = kvtree_elem_next(e)) {
        const char *name = kvtree_elem_key(e);
        int fd;
        rc = beneath_open_below(job->dir, name, &fd, &job->err);
        if (rc) return rc;
        rc = io_fsync(fd);
        if (rc) err_sys(&job->err, rc, "fsync of directory %s/%s", job->folder, name);
        io_close(&fd);
    }
    return rc;
}
