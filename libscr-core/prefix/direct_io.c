/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets that the application writes and reads on the prefix directory itself, where
 * the cache has no room for them (SCR_CACHE_BYPASS, or BYPASS of a descriptor). SCR names
 * the files, syncs them, and keeps their map, summary and index entry, so that such a
 * dataset is found and removed as a flushed one. Several ranks may write one file. */
#include "prefix/prefix.h"

#include "base/path.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "plan/part_name.h"
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

/* A file that is written to now gets another time than the map of an earlier dataset has:
 * that is how one sees that it was. Clocks of file systems tick, some once per second. */
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

/* A link there may lead anywhere, and the application would follow it. What it writes to
 * a file that is there can be read by the owner of the file, and under its other names.
 */
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

int scr_direct_route(const scr_prefix *prefix, const char *below,
                     char path[SCR_MAX_FILENAME], char mark[SCR_FILE_MARK_SIZE],
                     kvtree_error *err)
{
    int parent;
    const char *last;
    if (snprintf(path, SCR_MAX_FILENAME, "%s/%s", prefix->path, below) >=
        SCR_MAX_FILENAME)
        return err_set(err, -ENAMETOOLONG, "the path of \"%.200s\" is too long", below);
    int rc = beneath_open_parent(prefix->fd, below, 0777, &parent, &last, err);
    if (rc) return rc;
    rc = direct_check_place(parent, last, below, mark, err);
    io_close(&parent);
    return rc;
}

/* ---- output ---- */

/* Rank 0. An earlier dataset of that name ends with the first byte that is written:
 * neither the index nor a summary may go on calling it complete. */
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

/* What this rank routed. */
struct written {
    int count;
    filo_file *files; /* named as the map has them */
    int *owner;       /* rank that has the file in the map */
};

/* Collective. Whether a file of any rank is outside of the dataset's directory. */
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

/* What this rank wrote to a file that another one has in the map. */
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

/* Local. Leaves only this rank's own in the list; the others are on disk then. */
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

/* Collective, agreed. Files and directories are on disk, and the map names them. */
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

/* Collective. */
static void direct_add_up(const scr_prefix *prefix, const struct written *w,
                          scr_dataset *d)
{
    unsigned long sums[2] = {0, (unsigned long)w->count};
    for (int i = 0; i < w->count; i++)
        sums[0] += w->files[i].size;
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UNSIGNED_LONG, MPI_SUM, prefix->job->world);
    d->size = sums[0];
    d->files = (int)sums[1];
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

/* A file that was there before, and was not written, may be an earlier dataset's. */
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

/* Local. */
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
    int rc = 0;
    for (; e; e = kvtree_elem_next(e)) {
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

/* ---- restart ---- */

/* Files of this rank, as a map has them. */
struct mapped {
    int count;
    filo_file *files;
    const char *folder; /* that they are below */
    int newer;          /* a newer dataset may have written to them, ... */
    int written;        /* ... and somebody has, to one that ranks wrote together */
    bool may_be_packed; /* files in containers may be extracted one by one */
    int compare;        /* with their checksums */
};

/* On rank 0: whether a newer dataset that is known may have used the names of files that
 * lie outside of the directory of this one. */
static bool direct_has_newer(scr_prefix *prefix, const scr_dataset *d)
{
    kvtree_error err = {""};
    scr_dataset *list = NULL;
    scr_index_state state = {.complete = 0};
    const kvtree *index;
    int count = 0;
    bool newer = false;
    if (scr_index_view(prefix, &index, &err) == 0) scr_index_list(index, &list, &count);
    for (int i = 0; i < count && !newer; i++)
        newer = list[i].id > d->id &&
                (list[i].scattered ||
                 (scr_index_look(index, &list[i], &state) == 0 && !state.complete));
    free(list);
    return newer;
}

/* Collective. */
static void direct_find_newer(scr_prefix *prefix, const scr_dataset *d, struct mapped *m)
{
    m->newer = prefix->job->rank == 0 && d->scattered ? direct_has_newer(prefix, d) : 0;
    MPI_Bcast(&m->newer, 1, MPI_INT, 0, prefix->job->world);
}

/* Collective. Its time is in the map of one of the ranks that have parts of it. */
static void direct_find_written(const scr_prefix *prefix, struct mapped *m)
{
    int folder = -1;
    m->written = 0;
    beneath_open_folder(m->folder, &folder, NULL);
    for (int i = 0; i < m->count && folder >= 0; i++) {
        struct stat st;
        if (m->files[i].shared && beneath_stat(folder, m->files[i].name, &st, NULL) == 0)
            m->written |= filo_file_was_written(&m->files[i], &st) ||
                          (m->newer && !m->files[i].has_mtime);
    }
    io_close(&folder);
    MPI_Allreduce(MPI_IN_PLACE, &m->written, 1, MPI_INT, MPI_MAX, prefix->job->world);
}

static int direct_was_written(const struct mapped *m, const filo_file *f,
                              kvtree_error *err)
{
    if (m->newer)
        return err_set(err, FILO_DAMAGED,
                       "file \"%.200s\" was written again, by a newer dataset", f->name);
    return err_set(err, -ESTALE,
                   "file \"%.100s\" was written since its map, which has no checksum of "
                   "it; a copy must keep times (cp -a)",
                   f->name);
}

/* Nothing is read as long as nothing was written. */
static int direct_check_bytes(int folder, const struct mapped *m, const filo_file *f,
                              const struct stat *st, kvtree_error *err)
{
    int written = filo_file_was_written(f, st);
    if (f->has_crc && (m->compare || written || (m->newer && !f->has_mtime))) {
        int rc = filo_extract(folder, f, NULL, err);
        return rc ? err_wrap(err, rc, "file \"%.200s\"", f->name) : 0;
    }
    return written ? direct_was_written(m, f, err) : 0;
}

/* The containers of a packed file are there, and long enough. */
static int direct_check_packed(int folder, const filo_file *f, kvtree_error *err)
{
    int rc = 0;
    for (int i = 0; i < f->segments && !rc; i++) {
        const filo_segment *s = &f->segment[i];
        struct stat st;
        rc = beneath_stat(folder, s->container, &st, err);
        if (rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP) rc = FILO_DAMAGED;
        if (!rc && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < s->offset + s->length))
            rc = err_set(err, FILO_DAMAGED, "container \"%.200s\" is too short",
                         s->container);
    }
    return rc ? err_wrap(err, rc, "file \"%.200s\"", f->name) : 0;
}

/* A part of a file that ranks wrote together. */
static int direct_check_part(int folder, const struct mapped *m, const filo_file *f,
                             kvtree_error *err)
{
    int rc = direct_check_packed(folder, f, err);
    if (rc) return rc;
    if (!f->has_crc) return m->written ? direct_was_written(m, f, err) : 0;
    if (!m->compare && !m->written) return 0;
    rc = filo_extract(folder, f, NULL, err);
    return rc ? err_wrap(err, rc, "file \"%.200s\"", f->name) : 0;
}

static int direct_check_file(int folder, const struct mapped *m, const filo_file *f,
                             kvtree_error *err)
{
    struct stat st;
    if (scr_part_is(f)) return direct_check_part(folder, m, f, err);
    if (f->packed)
        return err_set(err, -EOPNOTSUPP,
                       "its files are packed into containers, and cannot be read there");
    int rc = beneath_stat(folder, f->name, &st, err);
    if (rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP) rc = FILO_DAMAGED;
    if (rc) return err_wrap(err, rc, "file \"%.200s\"", f->name);
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != f->size)
        return err_set(err, FILO_DAMAGED, "file \"%.200s\" has %lld bytes, not %llu",
                       f->name, (long long)st.st_size, (unsigned long long)f->size);
    return f->shared ? 0 : direct_check_bytes(folder, m, f, &st, err);
}

/* Notes a file by its name below the prefix directory. 0 or -ENOMEM. */
static int direct_note(kvtree *noted, const scr_dataset *d, const char *file, int rank)
{
    char name[2 * SCR_NAME_SIZE];
    snprintf(name, sizeof name, "%s%s%s", d->scattered ? "" : d->name,
             d->scattered ? "" : "/", file);
    kvtree *entry = kvtree_set(noted, name, NULL);
    return entry && (rank < 0 || kvtree_util_set_int(entry, "RANK", rank) == 0) ? 0
                                                                                : -ENOMEM;
}

/* A part is read in the file that it is of. */
static int direct_note_file(scr_prefix *prefix, const scr_dataset *d,
                            const struct mapped *m, const filo_file *f)
{
    const bool packed = f->packed && m->may_be_packed, part = scr_part_is(f);
    int rc = 0;
    if (part) rc = direct_note(prefix->direct.files, d, f->segment[0].container, -1);
    if (packed && !rc) rc = direct_note(prefix->direct.packed, d, f->name, f->rank);
    return packed || part ? rc : direct_note(prefix->direct.files, d, f->name, -1);
}

/* Local. Checks and notes the files of this rank. */
static int direct_note_files(scr_prefix *prefix, const scr_dataset *d,
                             const struct mapped *m, kvtree_error *err)
{
    int folder, rc = beneath_open_folder(m->folder, &folder, err);
    if (rc) return rc;
    for (int i = 0; i < m->count && !rc; i++) {
        const filo_file *f = &m->files[i];
        rc = f->packed && m->may_be_packed ? direct_check_packed(folder, f, err)
                                           : direct_check_file(folder, m, f, err);
        if (!rc && direct_note_file(prefix, d, m, f) != 0)
            rc = err_set(err, -ENOMEM, "no memory");
    }
    io_close(&folder);
    return rc;
}

/* Local. Those without a checksum, which a fetch compares. */
static int direct_check_unread(const struct mapped *m, kvtree_error *err)
{
    int folder, rc = beneath_open_folder(m->folder, &folder, err);
    if (rc) return rc;
    for (int i = 0; i < m->count && !rc; i++)
        if (!m->files[i].has_crc && (!m->files[i].packed || scr_part_is(&m->files[i])))
            rc = direct_check_file(folder, m, &m->files[i], err);
    io_close(&folder);
    return rc;
}

int scr_direct_check(scr_prefix *prefix, const scr_dataset *d, const char *folder,
                     int count, struct filo_file *files, kvtree_error *err)
{
    struct mapped m = {.count = count, .files = files, .folder = folder};
    direct_find_newer(prefix, d, &m);
    direct_find_written(prefix, &m);
    return agree(prefix->job->world, direct_check_unread(&m, err), err);
}

void scr_direct_close(scr_prefix *prefix)
{
    scr_direct *direct = &prefix->direct;
    kvtree_unset_all(direct->files);
    kvtree_unset_all(direct->packed);
    direct->list = filo_files_free(direct->count, direct->list);
    direct->count = 0;
    direct->extracts = false;
}

/* Collective, agreed. The list is kept for what is extracted from containers. */
static int direct_find_files(scr_prefix *prefix, const scr_dataset *d,
                             const scr_place *place, struct mapped *m, kvtree_error *err)
{
    direct_find_newer(prefix, d, m);
    int rc = scr_place_read_map(prefix, d, place, NULL, &m->count, &m->files, err);
    if (rc) return rc;
    prefix->direct.count = m->count;
    prefix->direct.list = m->files;
    direct_find_written(prefix, m);
    rc = direct_note_files(prefix, d, m, err);
    int64_t packed = kvtree_size(prefix->direct.packed);
    rc = agree_sum(prefix->job->world, rc, err, 1, &packed);
    prefix->direct.extracts = !rc && packed > 0;
    return rc;
}

int scr_direct_open(scr_prefix *prefix, const scr_dataset *d, int compare, bool extracts,
                    kvtree_error *err)
{
    scr_place place = {.folder = NULL};
    struct mapped m = {.compare = compare, .may_be_packed = extracts};
    int rc = scr_place_of(prefix, d, &place);
    scr_direct_close(prefix);
    if (rc) err_set(err, rc, "no memory");
    rc = agree(prefix->job->world, rc, err);
    m.folder = place.folder;
    rc = rc ? rc : direct_find_files(prefix, d, &place, &m, err);
    if (rc) scr_direct_close(prefix);
    free(place.folder);
    return rc;
}

const filo_file *scr_direct_find_packed(const scr_prefix *prefix, scr_file_match *match,
                                        char **name)
{
    const filo_file *found = NULL;
    const scr_dataset *d = &prefix->direct.dataset;
    *name = NULL;
    for (int i = 0; i < prefix->direct.count; i++) {
        const filo_file *f = &prefix->direct.list[i];
        char below[2 * SCR_NAME_SIZE];
        snprintf(below, sizeof below, "%s%s%s", d->scattered ? "" : d->name,
                 d->scattered ? "" : "/", f->name);
        if (!f->packed || !scr_file_match_try(match, below, NULL)) continue;
        free(*name);
        *name = strdup(below);
        found = *name ? f : NULL;
    }
    return found;
}

/* One that another rank has in the map may be shared: it counts if it is in the dataset's
 * directory, where nothing else is. */
static bool direct_is_there(const scr_prefix *prefix, const char *name)
{
    struct stat st;
    size_t n = strlen(prefix->direct.dataset.name);
    if (kvtree_get(prefix->direct.files, name)) return true;
    return !kvtree_get(prefix->direct.packed, name) &&
           strncmp(name, prefix->direct.dataset.name, n) == 0 && name[n] == '/' &&
           !scr_name_is_reserved(name) &&
           beneath_stat(prefix->fd, name, &st, NULL) == 0 && S_ISREG(st.st_mode);
}

int scr_direct_find(const scr_prefix *prefix, scr_file_match *match,
                    char path[SCR_MAX_FILENAME])
{
    const char *found = NULL;
    const kvtree_elem *e = kvtree_elem_first(prefix->direct.files);
    if (match->below && direct_is_there(prefix, match->below)) found = match->below;
    for (; !found && e; e = kvtree_elem_next(e))
        if (scr_file_match_try(match, kvtree_elem_key(e), NULL))
            found = kvtree_elem_key(e);
    if (!found) return -ENOENT;
    int n = snprintf(path, SCR_MAX_FILENAME, "%s/%s", prefix->path, found);
    return n < SCR_MAX_FILENAME ? 0 : -ENAMETOOLONG;
}

/* ---- files of other ranks ---- */

/* A search in the map of the open dataset. */
struct search {
    scr_file_match match;
    const char *cache_prefix;
    filo_file *found; /* without its segments */
};

/* Local, for filo_map_read: the files of a rank. */
static int direct_match(void *arg, int rank, int count, const filo_file files[],
                        kvtree_error *err)
{
    struct search *s = arg;
    char name[2 * SCR_NAME_SIZE];
    (void)rank;
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s%s", s->cache_prefix, files[i].name);
        if (!scr_file_match_try(&s->match, name, NULL)) continue;
        s->found = filo_files_free(1, s->found);
        s->found = calloc(1, sizeof *s->found);
        if (!s->found || !(s->found->name = strdup(files[i].name)))
            return err_set(err, -ENOMEM, "no memory");
        s->found->size = files[i].size;
        s->found->crc = files[i].crc;
        s->found->has_crc = files[i].has_crc;
        s->found->packed = files[i].packed;
        s->found->shared = files[i].shared;
        s->found->mtime = files[i].mtime;
        s->found->has_mtime = files[i].has_mtime;
    }
    return 0;
}

/* Local. 0 when it is the file that its rank wrote. Of a dataset that is read in the
 * prefix directory that rank has seen to it. */
static int direct_check_found(const scr_prefix *prefix, const scr_dataset *d,
                              const scr_place *place, const filo_file *f,
                              kvtree_error *err)
{
    struct mapped m = {.folder = place->folder,
                       .compare = prefix->direct.dataset.id != d->id};
    filo_file found = *f;
    int folder, rc = f->packed ? -EOPNOTSUPP : 0;
    found.shared = f->shared && !m.compare; /* its parts were not compared */
    if (rc)
        return err_set(err, -ENOENT,
                       "file \"%.200s\" is in a container, from which SCR_Fetch_files "
                       "brings it",
                       f->name);
    rc = beneath_open_folder(place->folder, &folder, err);
    if (rc) return rc;
    rc = direct_check_file(folder, &m, &found, err);
    io_close(&folder);
    return rc > 0 ? -EKEYREJECTED : rc;
}

static int direct_find_in_map(struct search *s, const scr_place *place, kvtree_error *err)
{
    const filo_place from = {
        .folder = place->folder, .map = place->map, .dataset = place->dataset};
    int rc = filo_map_read(&from, NULL, direct_match, s, err);
    if (rc > 0) rc = -EKEYREJECTED;
    if (rc) return rc;
    if (s->match.files > 1)
        return err_set(err, -ENOTUNIQ, "\"%.200s\" may be any of %d files", s->match.name,
                       s->match.files);
    if (s->found) return 0;
    return err_set(err, -ENOENT, "the dataset has no file \"%.200s\"", s->match.name);
}

int scr_direct_find_other(const scr_prefix *prefix, const scr_dataset *d,
                          const scr_file_match *match, char path[SCR_MAX_FILENAME],
                          kvtree_error *err)
{
    scr_place place = {.folder = NULL};
    struct search s = {.match = *match};
    if (scr_place_of(prefix, d, &place) != 0) return err_set(err, -ENOMEM, "no memory");
    s.cache_prefix = place.cache_prefix;
    int rc = direct_find_in_map(&s, &place, err);
    rc = rc ? rc : direct_check_found(prefix, d, &place, s.found, err);
    if (!rc && snprintf(path, SCR_MAX_FILENAME, "%s/%s", place.folder, s.found->name) >=
                   SCR_MAX_FILENAME)
        rc = err_set(err, -ENAMETOOLONG, "the path of \"%.200s\" is too long",
                     match->name);
    filo_files_free(1, s.found);
    free(place.folder);
    return rc;
}
