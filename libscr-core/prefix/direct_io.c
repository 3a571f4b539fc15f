/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets that the application writes on the prefix directory itself because the cache
 * has no room for them (SCR_CACHE_BYPASS, or BYPASS of a descriptor). SCR provides the
 * file names, syncs the files, and writes map, summary and index entry, so that such a
 * dataset is found and removed like a flushed one. Several ranks may write one file. */
#include "prefix/prefix.h"

#include "base/path.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
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

/* ---- names ---- */

/* Waits until a write gives the file another time than the map of an earlier dataset has:
 * the time shows that the file was written again. Clocks of file systems tick, some of
 * them once per second. */
static void direct_let_tick(const struct stat *st)
{
    const int64_t second = 1000000000, tick = st->st_mtim.tv_nsec ? second / 50 : second;
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age =
        (now.tv_sec - st->st_mtim.tv_sec) * second + now.tv_nsec - st->st_mtim.tv_nsec;
    int64_t rest = age < 0 ? tick : tick - age;
    const struct timespec nap = {rest / second, rest % second};
    if (rest > 0) nanosleep(&nap, NULL);
}

static int direct_refuse(const char *name, int rc, const char *why, kvtree_error *err)
{
    return err_set(err, rc, "\"%.200s\" in the prefix directory %s", name, why);
}

/* Checks that the application may write the file. The application would follow a link,
 * which may lead anywhere. The owner of an existing file can read what the application
 * writes to it, and so can users of other hard links to the file. */
static int direct_check_place(int parent, const char *last, const char *name,
                              char mark[SCR_FILE_MARK_SIZE], kvtree_error *err)
{
    struct stat folder, st;
    if (fstat(parent, &folder) != 0)
        return err_sys(err, -errno, "stat the directory of %s", name);
    int rc = beneath_stat(parent, last, &st, err);
    scr_file_mark(&folder, rc ? NULL : &st, mark);
    if (rc) return rc == -ENOENT ? 0 : rc;
    if (!S_ISREG(st.st_mode))
        return direct_refuse(name, -EINVAL, "is not a regular file", err);
    if (st.st_uid != geteuid())
        return direct_refuse(name, -EPERM, "belongs to another user", err);
    if (st.st_nlink > 1)
        return direct_refuse(name, -EPERM, "has another name, too (a hard link)", err);
    direct_let_tick(&st);
    return 0;
}

int scr_direct_route(scr_prefix *prefix, const char *below, char path[SCR_MAX_FILENAME],
                     char mark[SCR_FILE_MARK_SIZE], kvtree_error *err)
{
    int parent;
    const char *last;
    if (snprintf(path, SCR_MAX_FILENAME, "%s/%s", prefix->path, below) >=
        SCR_MAX_FILENAME)
        return err_set(err, -ENAMETOOLONG, "the path of \"%.200s\" is too long", below);
    int rc = scr_prefix_enter(prefix, err);
    rc = rc ? rc : beneath_open_parent(prefix->fd, below, 0777, &parent, &last, err);
    if (rc) return rc;
    rc = direct_check_place(parent, last, below, mark, err);
    io_close(&parent);
    return rc;
}

/* ---- output ---- */

/* Rank 0. Drops an earlier dataset of that name from the index and removes its summary:
 * the first write makes the earlier dataset incomplete. */
static int direct_drop_earlier(scr_prefix *prefix, const scr_dataset *d,
                               kvtree_error *err)
{
    char summary[SCR_NAME_SIZE + 32];
    scr_dataset earlier;
    const kvtree *index;
    int rc = scr_index_view(prefix, &index, err);
    if (rc || scr_index_get(index, d->name, &earlier) != 0) return rc;
    scr_say(prefix->job->report, SCR_MSG_OUTPUT_OVERWRITES,
            "dataset %d (%s) in the prefix directory is replaced", earlier.id,
            earlier.name);
    rc = scr_index_change(prefix, &earlier, scr_index_remove, err);
    snprintf(summary, sizeof summary, "%s/" SCR_SUMMARY_NAME, d->name);
    return rc ? rc : beneath_unlink(prefix->fd, summary, err);
}

int scr_direct_begin(scr_prefix *prefix, const scr_dataset *d, kvtree_error *err)
{
    int rc = prefix->job->rank == 0 ? direct_drop_earlier(prefix, d, err) : 0;
    rc = rc ? rc : scr_index_flush_begins(prefix, d, err);
    return agree(prefix->job->world, rc, err);
}

/* The files that this rank routed. */
struct written {
    int count;
    filo_file *files; /* with names as in the map */
    int *owner;       /* rank whose part of the map has the file */
};

/* Collective. Whether a file of any rank is outside the directory of the dataset. */
static bool direct_is_scattered(const scr_prefix *prefix, const scr_dataset *d,
                                const kvtree *routed)
{
    int outside = 0;
    const kvtree_elem *e = kvtree_elem_first(routed);
    for (; e; e = kvtree_elem_next(e))
        outside = outside || !folder_rest(d->name, kvtree_elem_key(e));
    MPI_Allreduce(MPI_IN_PLACE, &outside, 1, MPI_INT, MPI_MAX, prefix->job->world);
    return outside != 0;
}

static int direct_list(const kvtree *routed, const scr_place *place, struct written *w,
                       kvtree_error *err)
{
    size_t size = (size_t)kvtree_size(routed) + 1;
    const kvtree_elem *e = kvtree_elem_first(routed);
    w->files = calloc(size, sizeof *w->files);
    w->owner = calloc(size, sizeof *w->owner);
    if (!w->files || !w->owner) return err_set(err, -ENOMEM, "no memory");
    for (; e; e = kvtree_elem_next(e)) {
        const char *name = kvtree_elem_key(e) + strlen(place->cache_prefix);
        if (!(w->files[w->count].name = strdup(name)))
            return err_set(err, -ENOMEM, "no memory");
        w->count++;
    }
    return 0;
}

/* Syncs what this rank wrote to a file that is in the map of another rank. */
static int direct_sync_shared(const scr_place *place, const filo_file *file,
                              kvtree_error *err)
{
    int folder, fd, rc = beneath_open_folder(place->folder, &folder, err);
    if (rc) return rc;
    rc = beneath_open(folder, file->name, O_RDONLY, 0, &fd, err);
    io_close(&folder);
    if (rc) return err_wrap(err, rc, "file \"%.200s\"", file->name);
    rc = io_fsync(fd);
    io_close(&fd);
    return rc ? err_sys(err, rc, "fsync of \"%.200s\"", file->name) : 0;
}

/* Local. Keeps only the files that are in the map of this rank, and syncs the others. */
static int direct_keep_own(const scr_prefix *prefix, const scr_place *place,
                           struct written *w, kvtree_error *err)
{
    int own = 0, rc = 0;
    for (int i = 0; i < w->count; i++) {
        filo_file f = w->files[i];
        if (w->owner[i] != prefix->job->rank) {
            rc = rc ? rc : direct_sync_shared(place, &f, err);
            free(f.name);
        } else {
            w->files[own++] = f;
        }
    }
    w->count = own;
    return rc;
}

/* Collective, agreed. Puts files and directories on disk, and writes the map. */
static int direct_write_map(scr_prefix *prefix, const kvtree *routed,
                            const scr_place *place, struct written *w, kvtree_error *err)
{
    int rc = agree(prefix->job->world, direct_list(routed, place, w, err), err);
    rc =
        rc ? rc : filo_find_owners(prefix->job->world, w->count, w->files, w->owner, err);
    if (!rc) rc = agree(prefix->job->world, direct_keep_own(prefix, place, w, err), err);
    if (rc) return rc;
    const filo_options options = {.base = prefix->real, .dataset = place->dataset};
    return filo_register(prefix->job->world, place->folder, place->map, w->count,
                         w->files, &options, err);
}

/* Collective. Adds up size and files of the dataset. */
static void direct_add_up(const scr_prefix *prefix, const struct written *w,
                          scr_dataset *d)
{
    unsigned long sums[2] = {0, (unsigned long)w->count};
    for (int i = 0; i < w->count; i++)
        sums[0] += w->files[i].size;
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UNSIGNED_LONG, MPI_SUM, prefix->job->world);
    d->size = sums[0];
    d->files = (long)sums[1];
    d->complete = 1;
}

int scr_direct_complete(scr_prefix *prefix, scr_dataset *d, const kvtree *routed,
                        scr_age below, bool *mapped, kvtree_error *err)
{
    scr_place place = {.folder = NULL};
    struct written w = {0, NULL, NULL};
    d->scattered = direct_is_scattered(prefix, d, routed);
    int rc = scr_place_of(prefix, d, &place);
    if (rc) err_set(err, rc, "no memory");
    rc = agree(prefix->job->world, rc, err);
    rc = rc ? rc : direct_write_map(prefix, routed, &place, &w, err);
    *mapped = rc == 0;
    if (!rc) {
        direct_add_up(prefix, &w, d);
        rc = agree(prefix->job->world,
                   prefix->job->rank ? 0 : scr_index_flush_ends(prefix, d, below, err),
                   err);
    }
    filo_files_free(w.count, w.files);
    free(w.owner);
    free(place.folder);
    return rc;
}

/* Removes a file that was written since mark was made. A file that existed before and was
 * not written may belong to an earlier dataset. */
static int direct_remove_written(int parent, const char *last, const char *name,
                                 const char *mark, kvtree_error *err)
{
    struct stat folder, st;
    if (fstat(parent, &folder) != 0)
        return err_sys(err, -errno, "stat the directory of %s", name);
    int rc = beneath_stat(parent, last, &st, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    if (!scr_file_is_in(mark, &folder))
        return direct_refuse(name, -ESTALE,
                             "stays: its directory is not the one that it was written to",
                             err);
    return scr_file_is_written(mark, &folder, &st, geteuid())
               ? beneath_unlink(parent, last, err)
               : 0;
}

/* Local. Removes a routed file that was written. */
static int direct_remove_file(const scr_prefix *prefix, const kvtree_elem *routed,
                              kvtree_error *err)
{
    const char *last, *name = kvtree_elem_key(routed),
                      *mark = kvtree_get_val(kvtree_elem_hash(routed), SCR_DIRECT_MARK);
    int parent, rc = beneath_open_parent(prefix->fd, name, 0, &parent, &last, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    rc = direct_remove_written(parent, last, name, mark ? mark : "", err);
    io_close(&parent);
    return rc;
}

void scr_direct_remove(scr_prefix *prefix, const scr_dataset *d, const kvtree *routed)
{
    kvtree_error err = {""};
    const kvtree_elem *e = kvtree_elem_first(routed);
    int rc = e ? scr_prefix_enter(prefix, &err) : 0;
    for (; e && prefix->fd >= 0; e = kvtree_elem_next(e)) {
        int failed = direct_remove_file(prefix, e, rc ? NULL : &err);
        if (failed) rc = failed;
    }
    if (rc)
        scr_fail_local(prefix->job->report, SCR_MSG_OUTPUT_FILES_KEPT, 0, "%s", err.text);
    MPI_Barrier(prefix->job->world);
    if (prefix->job->rank != 0) return;
    rc = scr_records_remove(prefix, d, &err);
    if (!rc) rc = scr_index_change(prefix, d, scr_index_remove, &err);
    if (rc)
        scr_say(prefix->job->report, SCR_MSG_OUTPUT_FILES_KEPT, "dataset %d (%s): %s",
                d->id, d->name, err.text);
}
