/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets that lie in the prefix folder itself: where the cache has no room for them
 * (SCR_CACHE_BYPASS, or BYPASS of a descriptor), the application writes and reads its
 * files there. SCR names the files, syncs them, and keeps their map, summary and index
 * entry, so that such a dataset is found and removed as a flushed one. Several ranks may
 * write one file. */
#include "ops/fetch.h"

#include "base/path.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "ops/route.h"
#include "prefix/index.h"
#include <axl/axl.h>
#include <errno.h>
#include <fcntl.h>
#include <filo/filo_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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

/* A file that is written to now gets another time than the map of an earlier dataset has:
 * that is how one sees that it was. Clocks of file systems tick, some once per second. */
static void let_tick(const struct stat *st)
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

/* A link there may lead anywhere, and the application would follow it. */
static int look_at_place(const struct scr *scr, const char *name, char *err)
{
    struct stat st;
    int rc = beneath_stat(scr->prefix.fd, name, &st, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    if (S_ISREG(st.st_mode)) {
        let_tick(&st);
        return 0;
    }
    return err_set(err, -EINVAL, "\"%.200s\" in the prefix folder is not a regular file",
                   name);
}

int scr_bypass_route(struct scr *scr, const char *below, char path[SCR_MAX_FILENAME],
                     char *err)
{
    char name[SCR_NAME_SIZE];
    int parent;
    const char *last;
    int rc = place_below(&scr->lifecycle.open, below, name, err);
    rc = rc ? rc : look_at_place(scr, name, err);
    rc = rc ? rc : beneath_open_parent(scr->prefix.fd, name, 0777, &parent, &last, err);
    if (rc) return rc;
    io_close(&parent);
    if (snprintf(path, SCR_MAX_FILENAME, "%s/%s", scr->prefix.path, name) >=
        SCR_MAX_FILENAME)
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
    if (!rc) known = scr_index_get(index, scr->lifecycle.open.name, &earlier) == 0;
    kvtree_delete(&index);
    if (rc || !known) return rc;
    scr_say(&scr->report, 1, "dataset %d (%s) in the prefix folder is written over",
            earlier.id, earlier.name);
    rc = scr_index_change(scr, &earlier, scr_index_remove, err);
    snprintf(summary, sizeof summary, "%s/" SCR_SUMMARY_NAME, scr->lifecycle.open.name);
    return rc ? rc : beneath_unlink(scr->prefix.fd, summary, err);
}

int scr_bypass_start(struct scr *scr, char *err)
{
    scr_flush_wait_for(scr, scr->lifecycle.open.name);
    int rc = scr->job.rank == 0 ? give_up_earlier(scr, err) : 0;
    rc = rc ? rc : scr_index_flush_begins(scr, &scr->lifecycle.open, err);
    return agree(scr->job.world, rc, err);
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
    const scr_dataset *d = &scr->lifecycle.open;
    int outside = 0;
    const kvtree_elem *e = kvtree_elem_first(scr->output.routed);
    for (; d->named && e; e = kvtree_elem_next(e))
        outside = outside || !folder_rest(d->name, kvtree_elem_key(e));
    MPI_Allreduce(MPI_IN_PLACE, &outside, 1, MPI_INT, MPI_MAX, scr->job.world);
    return outside;
}

static int list_written(struct scr *scr, const scr_place *place, struct written *w,
                        char *err)
{
    size_t size = (size_t)kvtree_size(scr->output.routed) + 1;
    const kvtree_elem *e = kvtree_elem_first(scr->output.routed);
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
        if (w->owner[i] != scr->job.rank) {
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
    int rc = agree(scr->job.world, list_written(scr, place, w, err), err);
    rc = rc ? rc : filo_find_owners(scr->job.world, w->count, w->files, w->owner, err);
    if (!rc) rc = agree(scr->job.world, keep_own(scr, place, w, err), err);
    if (rc) return rc;
    const filo_options options = {.base = scr->prefix.real};
    return filo_register(scr->job.world, place->folder, place->map, w->count, w->files,
                         &options, err);
}

static void add_up(struct scr *scr, const struct written *w)
{
    unsigned long sums[2] = {0, (unsigned long)w->count};
    for (int i = 0; i < w->count; i++)
        sums[0] += w->files[i].size;
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UNSIGNED_LONG, MPI_SUM, scr->job.world);
    scr->lifecycle.open.size = sums[0];
    scr->lifecycle.open.files = (int)sums[1];
    scr->lifecycle.open.complete = 1;
}

int scr_bypass_complete(struct scr *scr, int valid, char *err)
{
    scr_place place = {.folder = NULL};
    struct written w = {0, NULL, NULL};
    int code = SCR_ERR_INVALID;
    int64_t files = kvtree_size(scr->output.routed);
    int rc = scr_routed_check(scr, valid, err);
    rc = agree_sum(scr->job.world, rc, err, 1, &files);
    rc = rc ? rc : scr_routed_any(files > 0, err);
    if (!rc) {
        scr->lifecycle.open.scattered = is_scattered(scr);
        rc = scr_place_of(scr, &scr->lifecycle.open, &place);
        if (rc) err_set(err, rc, "no memory");
        rc = agree(scr->job.world, rc, err);
    }
    rc = rc ? rc : write_map(scr, &place, &w, err);
    if (!rc) {
        code = SCR_ERR_PREFIX;
        add_up(scr, &w);
        rc = agree(scr->job.world, scr_index_flush_ends(scr, &scr->lifecycle.open, err),
                   err);
    }
    filo_files_free(w.count, w.files);
    free(w.owner);
    free(place.folder);
    return rc ? code : SCR_SUCCESS;
}

void scr_bypass_remove(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "", name[SCR_NAME_SIZE], hidden[SCR_NAME_SIZE + 8];
    const scr_dataset *d = &scr->lifecycle.open;
    const kvtree_elem *e = kvtree_elem_first(scr->output.routed);
    int rc = 0;
    for (; e; e = kvtree_elem_next(e))
        if (place_below(d, kvtree_elem_key(e), name, err) == 0)
            rc = beneath_unlink(scr->prefix.fd, name, rc ? NULL : err) && !rc ? -1 : rc;
    if (rc) scr_event_local(&scr->report, 0, err);
    MPI_Barrier(scr->job.world);
    if (scr->job.rank != 0) return;
    snprintf(hidden, sizeof hidden, "%s/.scr", d->name);
    rc = beneath_remove_tree(scr->prefix.fd, hidden, err);
    if (!rc) beneath_rmdir(scr->prefix.fd, d->name, NULL);
    if (!rc) rc = scr_index_change(scr, d, scr_index_remove, err);
    if (rc) scr_say(&scr->report, 0, "warning: dataset %d (%s): %s", d->id, d->name, err);
}

/* ---- restart ---- */

int scr_bypass_wanted(const struct scr *scr, const scr_dataset *d)
{
    return scr->set.fetch_bypass || d->bypass ||
           scr_reddesc_for_dataset(&scr->descs.reddescs, d->ckpt, d->output)->bypass;
}

/* Files of this rank, as a map has them. */
struct mapped {
    int count;
    filo_file *files;
    const char *folder; /* that they are below */
    int newer;          /* a newer dataset may have written to them */
    int compare;        /* with their checksums */
};

/* On rank 0: 1 when a newer dataset that is known may have used the names of files that
 * lie outside of the folder of this one. */
static int has_newer(struct scr *scr, const scr_dataset *d)
{
    char err[SCR_ERR_TEXT] = "";
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
    return newer;
}

/* Collective. */
static void find_newer(struct scr *scr, const scr_dataset *d, struct mapped *m)
{
    m->newer = scr->job.rank == 0 && d->scattered ? has_newer(scr, d) : 0;
    MPI_Bcast(&m->newer, 1, MPI_INT, 0, scr->job.world);
}

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

/* Nothing is read as long as nothing was written. */
static int check_bytes(const struct mapped *m, const filo_file *f, const struct stat *st,
                       char *err)
{
    int written = filo_file_was_written(f, st);
    if (f->has_crc && (m->compare || written || (m->newer && !f->has_mtime)))
        return compare_file(m, f, err);
    if (!written) return 0;
    if (m->newer)
        return err_set(err, FILO_DAMAGED,
                       "file \"%.200s\" was written again, by a newer dataset", f->name);
    return err_set(err, -ESTALE,
                   "file \"%.100s\" was written since its map, which has no checksum of "
                   "it; a copy must keep times (cp -a)",
                   f->name);
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
    return check_bytes(m, f, &st, err);
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
        if (!rc && !kvtree_set(scr->direct.files, name, NULL))
            rc = err_set(err, -ENOMEM, "no memory");
    }
    io_close(&folder);
    return rc;
}

/* Local. Those without a checksum, which a fetch compares. */
static int check_unread(const struct mapped *m, char *err)
{
    int folder, rc = beneath_open_folder(m->folder, &folder, err);
    if (rc) return rc;
    for (int i = 0; i < m->count && !rc; i++)
        if (!m->files[i].has_crc && !m->files[i].packed)
            rc = check_file(folder, m, &m->files[i], err);
    io_close(&folder);
    return rc;
}

int scr_bypass_check(struct scr *scr, const scr_dataset *d, const char *folder, int count,
                     struct filo_file *files, char *err)
{
    struct mapped m = {.count = count, .files = files, .folder = folder};
    find_newer(scr, d, &m);
    return agree(scr->job.world, check_unread(&m, err), err);
}

int scr_bypass_open(struct scr *scr, const scr_dataset *d, int compare, char *err)
{
    scr_place place = {.folder = NULL};
    struct mapped m = {.compare = compare};
    int rc = scr_place_of(scr, d, &place);
    kvtree_unset_all(scr->direct.files);
    if (rc) err_set(err, rc, "no memory");
    rc = agree(scr->job.world, rc, err);
    if (rc) {
        free(place.folder);
        return rc;
    }
    m.folder = place.folder;
    find_newer(scr, d, &m);
    rc = scr_fetch_map(scr, d, &place, NULL, &m.count, &m.files, err);
    if (!rc) rc = agree(scr->job.world, note_files(scr, d, &m, err), err);
    filo_files_free(m.count, m.files);
    free(place.folder);
    return rc;
}

/* One that another rank has in the map may be shared: it counts if it is in the dataset's
 * folder, where nothing else is. */
static int is_there(const struct scr *scr, const char *name)
{
    struct stat st;
    size_t n = strlen(scr->direct.dataset.name);
    if (kvtree_get(scr->direct.files, name)) return 1;
    return strncmp(name, scr->direct.dataset.name, n) == 0 && name[n] == '/' &&
           !scr_name_is_reserved(name) &&
           beneath_stat(scr->prefix.fd, name, &st, NULL) == 0 && S_ISREG(st.st_mode);
}

int scr_bypass_find(const struct scr *scr, scr_file_match *match,
                    char path[SCR_MAX_FILENAME])
{
    char name[SCR_NAME_SIZE] = "";
    const char *found = NULL;
    const kvtree_elem *e = kvtree_elem_first(scr->direct.files);
    if (match->below &&
        place_below(&scr->direct.dataset, match->below, name, NULL) == 0 &&
        is_there(scr, name))
        found = name;
    for (; !found && e; e = kvtree_elem_next(e))
        if (scr_file_match_try(match, kvtree_elem_key(e), NULL))
            found = kvtree_elem_key(e);
    if (!found) return -ENOENT;
    int n = snprintf(path, SCR_MAX_FILENAME, "%s/%s", scr->prefix.path, found);
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
static int look_at(void *arg, int rank, int count, const filo_file files[], char *err)
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
        s->found->mtime = files[i].mtime;
        s->found->has_mtime = files[i].has_mtime;
    }
    return 0;
}

/* Local. 0 when it is the file that its rank wrote. Of a dataset that is read in the
 * prefix folder that rank has seen to it. */
static int check_found(const struct scr *scr, const scr_place *place, const filo_file *f,
                       char *err)
{
    struct mapped m = {.folder = place->folder,
                       .compare = scr->direct.dataset.id != scr->lifecycle.open.id};
    int folder, rc = f->packed ? -EOPNOTSUPP : 0;
    if (rc)
        return err_set(err, -ENOENT, "file \"%.200s\" of another rank is in a container",
                       f->name);
    rc = beneath_open_folder(place->folder, &folder, err);
    if (rc) return rc;
    rc = check_file(folder, &m, f, err);
    io_close(&folder);
    return rc > 0 ? -EKEYREJECTED : rc;
}

static int find_in_map(struct search *s, const scr_place *place, char *err)
{
    const filo_place from = {.folder = place->folder, .map = place->map};
    int rc = filo_map_read(&from, NULL, look_at, s, err);
    if (rc > 0) rc = -EKEYREJECTED;
    if (rc) return rc;
    if (s->match.files > 1)
        return err_set(err, -ENOTUNIQ, "\"%.200s\" may be any of %d files", s->match.name,
                       s->match.files);
    if (s->found) return 0;
    return err_set(err, -ENOENT, "the dataset has no file \"%.200s\"", s->match.name);
}

int scr_bypass_find_other(const struct scr *scr, const scr_file_match *match,
                          char path[SCR_MAX_FILENAME], char *err)
{
    scr_place place = {.folder = NULL};
    struct search s = {.match = *match};
    if (!scr->restart.in_prefix)
        return err_set(
            err, -ENOENT,
            "dataset %.150s has no file \"%.150s\" of this rank, and is not on "
            "the prefix folder, where those of other ranks can be read",
            scr->lifecycle.open.name, match->name);
    if (scr_place_of(scr, &scr->lifecycle.open, &place) != 0)
        return err_set(err, -ENOMEM, "no memory");
    s.cache_prefix = place.cache_prefix;
    int rc = find_in_map(&s, &place, err);
    rc = rc ? rc : check_found(scr, &place, s.found, err);
    if (!rc && snprintf(path, SCR_MAX_FILENAME, "%s/%s", place.folder, s.found->name) >=
                   SCR_MAX_FILENAME)
        rc = err_set(err, -ENAMETOOLONG, "the path of \"%.200s\" is too long",
                     match->name);
    filo_files_free(1, s.found);
    free(place.folder);
    return rc;
}
