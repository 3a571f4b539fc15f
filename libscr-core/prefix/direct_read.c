/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets that the application reads on the prefix directory itself: the files of this
 * rank, and those of other ranks; see prefix/prefix.h. */
#include "prefix/prefix.h"

#include "common/agree_mpi.h"
#include "common/array.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "plan/file_names.h"
#include "plan/part_name.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Key below a name: number of the file in the list. */
#define DIRECT_NUMBER "NUMBER"

/* Files of this rank, from a map. */
struct mapped {
    int count;
    filo_file *files;
    const char *folder; /* directory of the files */
    int newer;          /* a newer dataset may have written to the files */
    int written; /* a file that ranks wrote together was written since the map, or may
                    have been */
    bool may_be_packed; /* files in containers may be extracted one by one */
    int compare;        /* reads the files and compares their checksums */
};

/* On rank 0: whether the index has a newer dataset that may have used the names of files
 * that lie outside the directory of this dataset. */
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

/* Collective. Determines whether files of the dataset have changed, or may have changed,
 * since the map was written. The time of a file that ranks wrote together is in the map
 * of one of the ranks. */
static void direct_find_changes(scr_prefix *prefix, const scr_dataset *d,
                                struct mapped *m)
{
    enum { NEWER, WRITTEN, UNTIMED, FACTS };
    int folder = -1, facts[FACTS] = {0};
    facts[NEWER] =
        prefix->job->rank == 0 && d->scattered ? direct_has_newer(prefix, d) : 0;
    for (int i = 0; i < m->count; i++) {
        struct stat st;
        const filo_file *f = &m->files[i];
        if (!f->shared) continue;
        if (folder < 0 && beneath_open_folder(m->folder, &folder, NULL) != 0) break;
        if (beneath_stat(folder, f->name, &st, NULL) != 0) continue;
        facts[WRITTEN] |= filo_file_was_written(f, &st);
        facts[UNTIMED] |= !f->has_mtime;
    }
    io_close(&folder);
    MPI_Allreduce(MPI_IN_PLACE, facts, FACTS, MPI_INT, MPI_MAX, prefix->job->world);
    m->newer = facts[NEWER];
    m->written = facts[WRITTEN] || (facts[NEWER] && facts[UNTIMED]);
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

/* Checks the content of a file. Reads nothing as long as nothing was written. */
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

/* Checks that the containers of a packed file exist and are long enough. */
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

/* Checks a part of a file that ranks wrote together. */
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

bool scr_direct_is_packed(const filo_file *file)
{
    return file->packed && !scr_part_is(file);
}

void scr_direct_name(const scr_dataset *d, const char *file,
                     char name[SCR_DIRECT_NAME_SIZE])
{
    snprintf(name, SCR_DIRECT_NAME_SIZE, "%s%s%s", d->scattered ? "" : d->name,
             d->scattered ? "" : "/", file);
}

/* Notes the name under which a file is read: a part is read in the whole file. number:
 * index of the file in the list. Returns 0 or -ENOMEM. */
static int direct_note_file(scr_prefix *prefix, const scr_dataset *d, const filo_file *f,
                            int number)
{
    char name[SCR_DIRECT_NAME_SIZE];
    if (scr_direct_is_packed(f)) {
        scr_direct_name(d, f->name, name);
        kvtree *packed = scr_file_names_add(prefix->direct.packed, name, NULL);
        return kvtree_util_set_int(packed, DIRECT_NUMBER, number) == 0 ? 0 : -ENOMEM;
    }
    scr_direct_name(d, f->packed ? f->segment[0].container : f->name, name);
    return scr_file_names_add(prefix->direct.files, name, NULL) ? 0 : -ENOMEM;
}

/* Local. Checks and notes the files of this rank. */
static int direct_note_files(scr_prefix *prefix, const scr_dataset *d,
                             const struct mapped *m, kvtree_error *err)
{
    int folder, rc = beneath_open_folder(m->folder, &folder, err);
    if (rc) return rc;
    for (int i = 0; i < m->count && !rc; i++) {
        const filo_file *f = &m->files[i];
        rc = m->may_be_packed && scr_direct_is_packed(f)
                 ? direct_check_packed(folder, f, err)
                 : direct_check_file(folder, m, f, err);
        if (!rc && direct_note_file(prefix, d, f, i) != 0)
            rc = err_set(err, -ENOMEM, "no memory");
    }
    io_close(&folder);
    return rc;
}

/* Local. Checks the files without a checksum. A fetch compares the checksums of
 * others. */
static int direct_check_unread(const struct mapped *m, kvtree_error *err)
{
    int folder, rc = beneath_open_folder(m->folder, &folder, err);
    if (rc) return rc;
    for (int i = 0; i < m->count && !rc; i++)
        if (!m->files[i].has_crc && !scr_direct_is_packed(&m->files[i]))
            rc = direct_check_file(folder, m, &m->files[i], err);
    io_close(&folder);
    return rc;
}

int scr_direct_check(scr_prefix *prefix, const scr_dataset *d, const char *folder,
                     int count, struct filo_file *files, kvtree_error *err)
{
    struct mapped m = {.count = count, .files = files, .folder = folder};
    direct_find_changes(prefix, d, &m);
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

/* Collective, agreed. Keeps the list of files for extraction from containers. */
static int direct_find_files(scr_prefix *prefix, const scr_dataset *d,
                             const scr_place *place, struct mapped *m, kvtree_error *err)
{
    int rc = scr_place_read_map(prefix, d, place, NULL, &m->count, &m->files, err);
    if (rc) return rc;
    prefix->direct.count = m->count;
    prefix->direct.list = m->files;
    direct_find_changes(prefix, d, m);
    rc = direct_note_files(prefix, d, m, err);
    int64_t packed = 0;
    for (int i = 0; i < m->count; i++)
        packed += scr_direct_is_packed(&m->files[i]);
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
                                        char name[SCR_DIRECT_NAME_SIZE])
{
    const kvtree_elem *found;
    int number;
    if (scr_file_names_find(prefix->direct.packed, match, &found) != 0 || !found ||
        kvtree_util_get_int(kvtree_elem_hash(found), DIRECT_NUMBER, &number) != 0)
        return NULL;
    strcpy(name, kvtree_elem_key(found));
    return &prefix->direct.list[number];
}

/* Whether a file exists. A file that another rank has in its map may be shared. It counts
 * if it lies in the directory of the dataset, which has no other files. */
static bool direct_is_there(scr_prefix *prefix, const char *name)
{
    struct stat st;
    size_t n = strlen(prefix->direct.dataset.name);
    if (scr_file_names_has(prefix->direct.files, name)) return true;
    return strncmp(name, prefix->direct.dataset.name, n) == 0 && name[n] == '/' &&
           !scr_name_is_reserved(name) &&
           !scr_file_names_has(prefix->direct.packed, name) &&
           scr_prefix_enter(prefix, NULL) == 0 &&
           beneath_stat(prefix->fd, name, &st, NULL) == 0 && S_ISREG(st.st_mode);
}

int scr_direct_find(scr_prefix *prefix, scr_file_match *match,
                    char path[SCR_MAX_FILENAME])
{
    const char *found = NULL;
    const kvtree_elem *e = NULL;
    if (match->below && direct_is_there(prefix, match->below)) found = match->below;
    if (!found && scr_file_names_find(prefix->direct.files, match, &e) != 0)
        return -ENOMEM;
    if (e) found = kvtree_elem_key(e);
    if (!found) return -ENOENT;
    int n = snprintf(path, SCR_MAX_FILENAME, "%s/%s", prefix->path, found);
    return n < SCR_MAX_FILENAME ? 0 : -ENAMETOOLONG;
}

/* ---- files of other ranks ---- */

/* Maximum number of files that are kept, of some hundred bytes each. A run of few ranks
 * requests many files, but its map is small. A run that requests few files can read the
 * map each time. */
enum { DIRECT_OTHERS_MAX = 1 << 15 };

/* A search in the map of the dataset. */
struct search {
    scr_file_match match;
    filo_place from;
    const char *cache_prefix;
    filo_file found; /* without its segments; name NULL: not found */
    scr_others *others;
};

static int direct_copy_file(const filo_file *file, filo_file *copy)
{
    *copy = *file;
    copy->segment = NULL;
    copy->segments = 0;
    copy->name = strdup(file->name);
    return copy->name ? 0 : -ENOMEM;
}

void scr_direct_forget_others(scr_prefix *prefix)
{
    kvtree_delete(&prefix->others.names);
    filo_files_free(prefix->others.count, prefix->others.list);
    prefix->others = (scr_others){.id = 0};
}

/* Keeps a file. Returns -E2BIG if there are too many files, or two of one name, which
 * only a search of the map can tell apart. */
static int direct_keep_file(scr_others *o, const char *name, const filo_file *file)
{
    if (o->count == DIRECT_OTHERS_MAX || scr_file_names_has(o->names, name))
        return -E2BIG;
    filo_file *list = array_grow(o->list, (size_t)o->count, sizeof *list);
    if (list) o->list = list;
    if (!list || direct_copy_file(file, &list[o->count]) != 0) return -ENOMEM;
    return kvtree_util_set_int(scr_file_names_add(o->names, name, NULL), DIRECT_NUMBER,
                               o->count++);
}

/* Local, for filo_map_read: keeps the files of a rank. */
static int direct_keep(void *arg, int rank, int count, const filo_file files[],
                       kvtree_error *err)
{
    const struct search *s = arg;
    char name[SCR_DIRECT_NAME_SIZE];
    int rc = 0;
    (void)rank;
    for (int i = 0; i < count && !rc; i++) {
        snprintf(name, sizeof name, "%s%s", s->cache_prefix, files[i].name);
        rc = direct_keep_file(s->others, name, &files[i]);
    }
    return !rc || rc == -E2BIG ? rc : err_set(err, -ENOMEM, "no memory");
}

/* Local, for filo_map_read: tries to match the files of a rank. */
static int direct_match(void *arg, int rank, int count, const filo_file files[],
                        kvtree_error *err)
{
    struct search *s = arg;
    char name[SCR_DIRECT_NAME_SIZE];
    (void)rank;
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s%s", s->cache_prefix, files[i].name);
        if (!scr_file_match_try(&s->match, name, NULL)) continue;
        free(s->found.name);
        if (direct_copy_file(&files[i], &s->found) != 0)
            return err_set(err, -ENOMEM, "no memory");
    }
    return 0;
}

/* Local. Reads the map of the dataset once. If not all of the map can be kept, names is
 * NULL afterwards. */
static int direct_read_others(scr_prefix *prefix, int id, struct search *s,
                              kvtree_error *err)
{
    scr_others *o = s->others = &prefix->others;
    if (o->id == id) return 0;
    scr_direct_forget_others(prefix);
    o->names = kvtree_new();
    int rc = o->names ? filo_map_read(&s->from, NULL, direct_keep, s, err)
                      : err_set(err, -ENOMEM, "no memory");
    if (rc) scr_direct_forget_others(prefix);
    if (rc && rc != -E2BIG) return rc;
    o->id = id;
    return 0;
}

static int direct_look_up(const scr_others *o, struct search *s, kvtree_error *err)
{
    const kvtree_elem *e;
    int number, rc = scr_file_names_find(o->names, &s->match, &e);
    if (!rc && e) rc = kvtree_util_get_int(kvtree_elem_hash(e), DIRECT_NUMBER, &number);
    if (!rc && e) rc = direct_copy_file(&o->list[number], &s->found);
    return rc ? err_set(err, -ENOMEM, "no memory") : 0;
}

/* Local. Returns 0 if the file is the one that its rank wrote. If the dataset is read in
 * the prefix directory, that rank has compared the checksum already. */
static int direct_check_found(const scr_prefix *prefix, const scr_dataset *d,
                              const scr_place *place, const filo_file *f,
                              kvtree_error *err)
{
    struct mapped m = {.folder = place->folder,
                       .compare = prefix->direct.dataset.id != d->id};
    filo_file found = *f;
    int folder, rc = f->packed ? -EOPNOTSUPP : 0;
    found.shared = f->shared && !m.compare; /* the parts were not compared */
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

static int direct_find_in_map(scr_prefix *prefix, int id, struct search *s,
                              kvtree_error *err)
{
    int rc = direct_read_others(prefix, id, s, err);
    if (!rc)
        rc = s->others->names ? direct_look_up(s->others, s, err)
                              : filo_map_read(&s->from, NULL, direct_match, s, err);
    if (rc > 0) rc = -EKEYREJECTED;
    if (rc) return rc;
    if (s->match.files > 1)
        return err_set(err, -ENOTUNIQ, "\"%.200s\" may be any of %d files", s->match.name,
                       s->match.files);
    if (s->found.name) return 0;
    return err_set(err, -ENOENT, "the dataset has no file \"%.200s\"", s->match.name);
}

int scr_direct_find_other(scr_prefix *prefix, const scr_dataset *d,
                          const scr_file_match *match, char path[SCR_MAX_FILENAME],
                          kvtree_error *err)
{
    scr_place place = {.folder = NULL};
    if (scr_place_of(prefix, d, &place) != 0) return err_set(err, -ENOMEM, "no memory");
    struct search s = {
        .match = *match,
        .from = {.folder = place.folder, .map = place.map, .dataset = place.dataset},
        .cache_prefix = place.cache_prefix};
    int rc = direct_find_in_map(prefix, d->id, &s, err);
    rc = rc ? rc : direct_check_found(prefix, d, &place, &s.found, err);
    if (!rc && snprintf(path, SCR_MAX_FILENAME, "%s/%s", place.folder, s.found.name) >=
                   SCR_MAX_FILENAME)
        rc = err_set(err, -ENAMETOOLONG, "the path of \"%.200s\" is too long",
                     match->name);
    free(s.found.name);
    free(place.folder);
    return rc;
}
