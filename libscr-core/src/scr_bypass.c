/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets that lie in the prefix folder itself: where the cache has no room for them
 * (SCR_CACHE_BYPASS, or BYPASS of a descriptor), the application writes and reads its
 * files there. SCR names the files, syncs them, and keeps their map, summary and index
 * entry, so that such a dataset is found and removed as a flushed one. Several ranks may
 * write one file. */
#include "scr_fetch.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "records/scr_index.h"
#include "records/scr_path.h"
#include "records/scr_trace.h"
#include <axl/axl.h>
#include <errno.h>
#include <fcntl.h>
#include <filo/filo_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names ---- */

/* Below the prefix folder: where the file that the application calls so lies, which is in
 * the folder of a dataset without a name of its own. */
static int place_below(const scr_dataset *d, const char *below, char name[SCR_NAME_SIZE],
                       char *err)
{
    int n = snprintf(name, SCR_NAME_SIZE, "%s%s%s", d->named ? "" : d->name,
                     d->named ? "" : "/", below);
    if (n >= SCR_NAME_SIZE)
        return err_set(err, -ENAMETOOLONG, "the path of \"%.200s\" is too long", below);
    return 0;
}

/* A link there may lead anywhere, and the application would follow it. */
static int refuse_link(const struct scr *scr, const char *name, char *err)
{
    struct stat st;
    int rc = beneath_stat(scr->prefix_fd, name, &st, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    if (S_ISREG(st.st_mode)) return 0;
    return err_set(err, -EINVAL, "\"%.200s\" in the prefix folder is not a regular file",
                   name);
}

int scr_bypass_route(struct scr *scr, const char *below, char path[SCR_MAX_FILENAME],
                     char *err)
{
    char name[SCR_NAME_SIZE];
    int parent;
    const char *last;
    int rc = place_below(&scr->open, below, name, err);
    rc = rc ? rc : refuse_link(scr, name, err);
    rc = rc ? rc : beneath_open_parent(scr->prefix_fd, name, 0777, &parent, &last, err);
    if (rc) return rc;
    io_close(&parent);
    if (snprintf(path, SCR_MAX_FILENAME, "%s/%s", scr->prefix, name) >= SCR_MAX_FILENAME)
        return err_set(err, -ENAMETOOLONG, "the path of \"%.200s\" is too long", below);
    return 0;
}

/* ---- output ---- */

/* Rank 0. An earlier dataset of that name ends with the first byte that is written:
 * neither the index nor a summary may go on calling it complete. */
static int give_up_earlier(struct scr *scr, char *err)
{
    char summary[SCR_NAME_SIZE + 32];
    scr_dataset earlier;
    kvtree *index = kvtree_new();
    int rc = scr_index_load(scr, index, err), known = 0;
    if (!rc) known = scr_index_get(index, scr->open.name, &earlier) == 0;
    kvtree_delete(&index);
    if (rc || !known) return rc;
    scr_say(scr, 1, "dataset %d (%s) in the prefix folder is written over", earlier.id,
            earlier.name);
    rc = scr_index_change(scr, &earlier, scr_index_remove, err);
    snprintf(summary, sizeof summary, "%s/" SCR_SUMMARY_NAME, scr->open.name);
    return rc ? rc : beneath_unlink(scr->prefix_fd, summary, err);
}

int scr_bypass_start(struct scr *scr, char *err)
{
    scr_flush_wait_for(scr, scr->open.name);
    int rc = scr->rank == 0 ? give_up_earlier(scr, err) : 0;
    rc = rc ? rc : scr_index_flush_begins(scr, &scr->open, NULL, err);
    return agree(scr->world, rc, err);
}

/* What this rank routed. */
struct written {
    int count;
    filo_file *files; /* named as the map has them */
    int *owner;       /* rank that has the file in the map */
};

/* Collective. Whether a file of any rank lies outside of the dataset's folder. */
static int is_scattered(const struct scr *scr)
{
    const scr_dataset *d = &scr->open;
    int outside = 0;
    const kvtree_elem *e = kvtree_elem_first(scr->routed);
    for (; d->named && e; e = kvtree_elem_next(e))
        outside = outside || d->name[scr_trace_below(d->name, kvtree_elem_key(e))];
    MPI_Allreduce(MPI_IN_PLACE, &outside, 1, MPI_INT, MPI_MAX, scr->world);
    return outside;
}

static int list_written(struct scr *scr, const scr_place *place, struct written *w,
                        char *err)
{
    size_t size = (size_t)kvtree_size(scr->routed) + 1;
    const kvtree_elem *e = kvtree_elem_first(scr->routed);
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

/* What this rank wrote to a file that another one has in the map. */
static int sync_shared(const scr_place *place, const filo_file *file, char *err)
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

/* Local. Leaves only this rank's own in the list; the others are on disk then. */
static int keep_own(const struct scr *scr, const scr_place *place, struct written *w,
                    char *err)
{
    int own = 0, rc = 0;
    for (int i = 0; i < w->count; i++) {
        filo_file f = w->files[i];
        if (w->owner[i] != scr->rank) {
            rc = rc ? rc : sync_shared(place, &f, err);
            free(f.name);
        } else {
            w->files[own++] = f;
        }
    }
    w->count = own;
    return rc;
}

/* Collective, agreed. Files and folders are on disk, and the map tells of them. */
static int write_map(struct scr *scr, const scr_place *place, struct written *w,
                     char *err)
{
    int rc = agree(scr->world, list_written(scr, place, w, err), err);
    rc = rc ? rc : filo_find_owners(scr->world, w->count, w->files, w->owner, err);
    if (!rc) rc = agree(scr->world, keep_own(scr, place, w, err), err);
    if (rc) return rc;
    return filo_register(scr->world, place->folder, place->map, w->count, w->files, NULL,
                         err);
}

static void add_up(struct scr *scr, const struct written *w)
{
    unsigned long sums[2] = {0, (unsigned long)w->count};
    for (int i = 0; i < w->count; i++)
        sums[0] += w->files[i].size;
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UNSIGNED_LONG, MPI_SUM, scr->world);
    scr->open.size = sums[0];
    scr->open.files = (int)sums[1];
    scr->open.complete = 1;
}

int scr_bypass_complete(struct scr *scr, int valid, char *err)
{
    scr_place place = {.folder = NULL};
    struct written w = {0, NULL, NULL};
    int code = SCR_ERR_INVALID;
    int rc = agree(scr->world, scr_routed_check(scr, valid, err), err);
    if (!rc) {
        scr->open.scattered = is_scattered(scr);
        rc = scr_place_of(scr, &scr->open, &place);
        if (rc) err_set(err, rc, "no memory");
        rc = agree(scr->world, rc, err);
    }
    rc = rc ? rc : write_map(scr, &place, &w, err);
    if (!rc) {
        code = SCR_ERR_PREFIX;
        add_up(scr, &w);
        rc = agree(scr->world, scr_index_flush_ends(scr, &scr->open, err), err);
    }
    filo_files_free(w.count, w.files);
    free(w.owner);
    free(place.folder);
    return rc ? code : SCR_SUCCESS;
}

void scr_bypass_remove(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "", name[SCR_NAME_SIZE], hidden[SCR_NAME_SIZE + 8];
    const scr_dataset *d = &scr->open;
    const kvtree_elem *e = kvtree_elem_first(scr->routed);
    int rc = 0;
    for (; e; e = kvtree_elem_next(e))
        if (place_below(d, kvtree_elem_key(e), name, err) == 0)
            rc = beneath_unlink(scr->prefix_fd, name, rc ? NULL : err) && !rc ? -1 : rc;
    if (rc) scr_event_local(scr, 0, err);
    MPI_Barrier(scr->world);
    if (scr->rank != 0) return;
    snprintf(hidden, sizeof hidden, "%s/.scr", d->name);
    rc = beneath_remove_tree(scr->prefix_fd, hidden, err);
    if (!rc) beneath_rmdir(scr->prefix_fd, d->name, NULL);
    if (!rc) rc = scr_index_change(scr, d, scr_index_remove, err);
    if (rc) scr_say(scr, 0, "warning: dataset %d (%s): %s", d->id, d->name, err);
}

/* ---- restart ---- */

int scr_bypass_wanted(const struct scr *scr, const scr_dataset *d)
{
    return scr->set.fetch_bypass || d->bypass ||
           scr_reddesc_for_dataset(&scr->descs.reddescs, d->ckpt, d->output)->bypass;
}

/* Clocks of nodes may differ by so much. */
enum { SKEW = 2 }; /* seconds */

/* On rank 0: the time (since 1970) up to which files of the dataset may have been
 * written. Files that lie scattered may have been written over by a newer dataset that
 * uses their names, and nobody compares checksums of what is read in place. */
static int64_t written_until(struct scr *scr, const scr_dataset *d)
{
    char err[SCR_ERR_TEXT] = "", summary[SCR_NAME_SIZE + 32];
    struct stat st;
    scr_dataset *list = NULL;
    scr_index_state state = {.complete = 0};
    kvtree *index = kvtree_new();
    int count = 0, newer = 0;
    if (index && scr_index_load(scr, index, err) == 0)
        scr_index_list(index, &list, &count);
    for (int i = 0; i < count && !newer; i++)
        newer = list[i].id > d->id &&
                (list[i].scattered ||
                 (scr_index_look(index, &list[i], &state) == 0 && !state.complete));
    kvtree_delete(&index);
    free(list);
    snprintf(summary, sizeof summary, "%s/" SCR_SUMMARY_NAME, d->name);
    if (!newer || beneath_stat(scr->prefix_fd, summary, &st, NULL) != 0) return INT64_MAX;
    return (int64_t)st.st_mtime + SKEW;
}

/* Files of this rank, as a map has them. */
struct mapped {
    int count;
    filo_file *files;
    const char *folder; /* that they are below */
    int64_t until;      /* written up to then */
    int compare;        /* with their checksums */
};

static int compare_file(const struct mapped *m, const filo_file *f, char *err)
{
    char *path = scr_path_join(m->folder, f->name);
    uint64_t size;
    uint32_t crc = f->crc;
    int rc =
        path ? axl_checksum(path, &size, &crc, err) : err_set(err, -ENOMEM, "no memory");
    free(path);
    if (rc || crc == f->crc) return rc;
    return err_set(err, FILO_DAMAGED,
                   "file \"%.200s\" was altered: CRC32 0x%08x, but its map says 0x%08x",
                   f->name, crc, f->crc);
}

static int check_file(int folder, const struct mapped *m, const filo_file *f, char *err)
{
    struct stat st;
    if (f->segments > 0)
        return err_set(err, -EOPNOTSUPP,
                       "its files are packed into containers, and cannot be read there");
    int rc = beneath_stat(folder, f->name, &st, err);
    if (rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP) rc = FILO_DAMAGED;
    if (rc) return err_wrap(err, rc, "file \"%.200s\"", f->name);
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != f->size)
        return err_set(err, FILO_DAMAGED, "file \"%.200s\" has %lld bytes, not %llu",
                       f->name, (long long)st.st_size, (unsigned long long)f->size);
    if ((int64_t)st.st_mtime > m->until)
        return err_set(err, FILO_DAMAGED,
                       "file \"%.200s\" was written again, by a newer dataset", f->name);
    return m->compare && f->has_crc ? compare_file(m, f, err) : 0;
}

/* Local. Notes them by their names below the prefix folder. */
static int note_files(struct scr *scr, const scr_dataset *d, const struct mapped *m,
                      char *err)
{
    char name[2 * SCR_NAME_SIZE];
    int folder, rc = beneath_open_folder(m->folder, &folder, err);
    if (rc) return rc;
    for (int i = 0; i < m->count && !rc; i++) {
        rc = check_file(folder, m, &m->files[i], err);
        snprintf(name, sizeof name, "%s%s%s", d->scattered ? "" : d->name,
                 d->scattered ? "" : "/", m->files[i].name);
        if (!rc && !kvtree_set(scr->in_place, name, NULL))
            rc = err_set(err, -ENOMEM, "no memory");
    }
    io_close(&folder);
    return rc;
}

int scr_bypass_open(struct scr *scr, const scr_dataset *d, int compare, char *err)
{
    scr_place place = {.folder = NULL};
    struct mapped m = {.until = INT64_MAX, .compare = compare};
    int rc = scr_place_of(scr, d, &place);
    kvtree_unset_all(scr->in_place);
    if (rc) err_set(err, rc, "no memory");
    rc = agree(scr->world, rc, err);
    if (rc) {
        free(place.folder);
        return rc;
    }
    m.folder = place.folder;
    if (scr->rank == 0 && d->scattered) m.until = written_until(scr, d);
    MPI_Bcast(&m.until, 1, MPI_INT64_T, 0, scr->world);
    rc = scr_fetch_map(scr, d, &place, NULL, &m.count, &m.files, err);
    if (!rc) rc = agree(scr->world, note_files(scr, d, &m, err), err);
    filo_files_free(m.count, m.files);
    free(place.folder);
    return rc;
}

/* This rank's file of that bare name; NULL: it has none. */
static const char *find_bare(const struct scr *scr, const char *name)
{
    const kvtree_elem *e = kvtree_elem_first(scr->in_place);
    for (; e && !strchr(name, '/'); e = kvtree_elem_next(e))
        if (strcmp(scr_path_basename_str(kvtree_elem_key(e)), name) == 0)
            return kvtree_elem_key(e);
    return NULL;
}

/* One that another rank has in the map may be shared: it counts if it is in the dataset's
 * folder, where nothing else is. */
static int is_there(const struct scr *scr, const char *name)
{
    struct stat st;
    size_t n = strlen(scr->open.name);
    if (kvtree_get(scr->in_place, name)) return 1;
    return strncmp(name, scr->open.name, n) == 0 && name[n] == '/' &&
           !scr_name_is_reserved(name) &&
           beneath_stat(scr->prefix_fd, name, &st, NULL) == 0 && S_ISREG(st.st_mode);
}

int scr_bypass_find(const struct scr *scr, const char *given, const char *below,
                    char path[SCR_MAX_FILENAME])
{
    char name[SCR_NAME_SIZE] = "";
    const char *found = NULL;
    if (below && place_below(&scr->open, below, name, NULL) == 0 && is_there(scr, name))
        found = name;
    if (!found) found = find_bare(scr, given);
    if (!found) return -ENOENT;
    int n = snprintf(path, SCR_MAX_FILENAME, "%s/%s", scr->prefix, found);
    return n < SCR_MAX_FILENAME ? 0 : -ENAMETOOLONG;
}
