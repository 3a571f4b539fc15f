/* SPDX-License-Identifier: BSD-3-Clause */
/* Map and summary for files that already exist; see adoption.h. */
#include "prefix/adoption.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/others.h"
#include "plan/part_name.h"
#include "prefix/index.h"
#include <errno.h>
#include <fcntl.h>
#include <filo/filo.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct adoption {
    const scr_adoption *from;
    scr_dataset *d;
    filo_file *list; /* files of the rank that is being written to the map */
    int count;
} adoption;

static const kvtree *adoption_files_of(const adoption *a, int rank)
{
    char key[16];
    snprintf(key, sizeof key, "%d", rank);
    return kvtree_get(kvtree_get(a->from->files, key), "FILE");
}

/* Returns the number of bytes at the beginning of a name that the map leaves out. */
static size_t adoption_skip(const scr_dataset *d)
{
    return d->scattered ? 0 : strlen(d->name) + 1;
}

/* Opens the directory of a file whose name other users may have chosen. An invalid name
 * is a reason to refuse the dataset. */
static int adoption_open_parent(const adoption *a, const char *name, int *parent,
                                const char **last, kvtree_error *err)
{
    const int prefix = a->from->prefix;
    if (scr_dataset_check_name(name, err) != 0) return -EINVAL;
    if (scr_part_name_is_reserved(name))
        return err_set(err, -EINVAL, "\"%s\" is a name of SCR itself", name);
    int rc = beneath_open_parent(prefix, name, 0, parent, last, err);
    if (rc) return err_is_damage(rc) ? -EBADMSG : rc;
    if (a->from->shared) rc = others_reach(a->from->shared, prefix, *parent, name, err);
    if (rc) io_close(parent);
    return rc == -EPERM ? -EBADMSG : rc;
}

/* Checks the size of a file and syncs it, so that it also survives a power loss. */
static int adoption_inspect(const adoption *a, const char *name, const kvtree *known,
                            struct stat *st, kvtree_error *err)
{
    unsigned long size;
    const char *last;
    int parent, fd, rc = adoption_open_parent(a, name, &parent, &last, err);
    if (rc) return rc;
    rc = beneath_open(parent, last, O_RDONLY, 0, &fd, err);
    io_close(&parent);
    if (rc == -ENOENT) return err_set(err, -EBADMSG, "%s is missing", name);
    if (rc) return err_wrap(err, err_is_damage(rc) ? -EBADMSG : rc, "%s", name);
    if (fstat(fd, st) != 0)
        rc = err_sys(err, -errno, "stat %s", name);
    else if (kvtree_util_get_bytecount(known, "SIZE", &size) == 0 &&
             size != (unsigned long)st->st_size)
        rc = err_set(err, -EBADMSG, "%s has %lld bytes, not %lu", name,
                     (long long)st->st_size, size);
    else if ((rc = io_fsync(fd)) != 0)
        err_sys(err, rc, "sync %s", name);
    io_close(&fd);
    return rc;
}

static bool adoption_is_below(const scr_dataset *d, const char *name)
{
    const size_t n = strlen(d->name);
    return strncmp(name, d->name, n) == 0 && name[n] == '/';
}

/* Inspects all files before anything is written. */
static int adoption_add_up(const adoption *a, kvtree_error *err)
{
    scr_dataset *d = a->d;
    const scr_dataset told = *d;
    d->files = d->scattered = 0;
    d->size = 0;
    d->ranks = kvtree_size(a->from->files);
    for (int rank = 0; rank < d->ranks; rank++) {
        const kvtree *list = adoption_files_of(a, rank);
        const kvtree_elem *e = kvtree_elem_first(list);
        char key[16];
        snprintf(key, sizeof key, "%d", rank);
        if (!kvtree_get(a->from->files, key))
            return err_set(err, -EINVAL, "of %d ranks, rank %d has no files", d->ranks,
                           rank);
        for (; e; e = kvtree_elem_next(e)) {
            struct stat st;
            const char *name = kvtree_elem_key(e);
            int rc = adoption_inspect(a, name, kvtree_elem_hash(e), &st, err);
            if (rc) return rc;
            d->files++;
            d->size += (unsigned long)st.st_size;
            d->scattered |= !adoption_is_below(d, name);
        }
    }
    if (d->ranks == 0 || d->files == 0)
        return err_set(err, -EINVAL, "%s has no files", d->name);
    if (told.files == 0 || (told.files == d->files && told.size == d->size)) return 0;
    return err_set(err, -EBADMSG, "it has %ld files of %lu bytes, not %ld of %lu",
                   d->files, d->size, told.files, told.size);
}

static int adoption_fill(const adoption *a, const kvtree_elem *e, filo_file *file,
                         kvtree_error *err)
{
    struct stat st;
    unsigned long crc;
    const char *last, *name = kvtree_elem_key(e);
    int parent, rc = adoption_open_parent(a, name, &parent, &last, err);
    if (rc) return rc;
    rc = beneath_stat(parent, last, &st, err);
    io_close(&parent);
    if (rc) return -EBADMSG;
    *file = (filo_file){.name = strdup(name + adoption_skip(a->d)),
                        .size = (uint64_t)st.st_size,
                        .others = a->from->shared};
    if (!file->name) return err_set(err, -ENOMEM, "no memory");
    filo_file_note_time(file, &st);
    if (kvtree_util_get_crc32(kvtree_elem_hash(e), "CRC", &crc) == 0) {
        file->crc = (uint32_t)crc;
        file->has_crc = 1;
    }
    return 0;
}

static int adoption_give(void *arg, int rank, int *count, const filo_file **files,
                         filo_error *err)
{
    adoption *a = arg;
    const kvtree *list = adoption_files_of(a, rank);
    const size_t size = (size_t)kvtree_size(list) + 1;
    a->list = filo_files_free(a->count, a->list);
    a->count = 0;
    a->list = calloc(size, sizeof *a->list);
    int rc = a->list ? 0 : err_set(err, -ENOMEM, "no memory");
    for (const kvtree_elem *e = kvtree_elem_first(list); e && !rc;
         e = kvtree_elem_next(e))
        if ((rc = adoption_fill(a, e, &a->list[a->count], err)) == 0) a->count++;
    *count = a->count;
    *files = a->list;
    return rc;
}

/* Opens the directory of the dataset; if it is missing, the nearest existing directory
 * above it. */
static int adoption_open_place(const adoption *a, int *folder, kvtree_error *err)
{
    char name[SCR_NAME_SIZE];
    snprintf(name, sizeof name, "%s", a->d->name);
    int rc = beneath_open_below(a->from->prefix, name, folder, err);
    while (rc == -ENOENT && *name) {
        name[beneath_folder_length(name)] = 0;
        if (*name) name[strlen(name) - 1] = 0;
        rc = beneath_open_below(a->from->prefix, name, folder, err);
    }
    return rc;
}

/* Checks the directory before anything is written, and before any text about files.
 * Returns 1 if an earlier call made the records. */
static int adoption_check_place(const adoption *a, kvtree_error *err)
{
    const scr_dataset *d = a->d;
    const int prefix = a->from->prefix;
    kvtree_error why = {""};
    scr_dataset known;
    if (scr_name_is_reserved(d->name))
        return err_set(err, -EINVAL, "\"%s\" is a name of SCR itself", d->name);
    int folder, rc = adoption_open_place(a, &folder, err);
    if (rc) return err_is_damage(rc) ? -EBADMSG : rc;
    if (a->from->shared) rc = others_reach(a->from->shared, prefix, folder, d->name, err);
    rc = rc ? rc : scr_index_check_place(prefix, folder, d->name, err);
    int there = rc ? rc : scr_summary_read(folder, &known, &why);
    io_close(&folder);
    if (rc) return rc == -EPERM ? -EBADMSG : rc;
    if (there == -ENOENT) return 0;
    if (there && !err_is_damage(there)) return err_set(err, there, "%s", why.text);
    if (!there && known.id == d->id && known.created == d->created) return 1;
    return err_set(err, -EBADMSG, "%s has records of a dataset already", d->name);
}

static int adoption_write(adoption *a, kvtree_error *err)
{
    const scr_dataset *d = a->d;
    const int prefix = a->from->prefix;
    char map[SCR_NAME_SIZE + 32], key[SCR_DATASET_KEY_SIZE];
    int folder, rc = beneath_make_durable(prefix, d->name, 0777, err);
    rc = rc ? rc : beneath_open_below(prefix, d->name, &folder, err);
    if (rc) return rc;
    snprintf(map, sizeof map, "%s%s" FILO_MAP, d->scattered ? d->name : "",
             d->scattered ? "/" : "");
    scr_dataset_key(d, key);
    const filo_place to = {.folder = a->from->real,
                           .dir = d->scattered ? &prefix : &folder,
                           .map = map,
                           .dataset = key};
    rc = filo_map_write(&to, d->ranks, adoption_give, a, err);
    filo_files_free(a->count, a->list);
    rc = rc ? rc : scr_summary_write(folder, d, err);
    io_close(&folder);
    return rc;
}

int scr_adopt_files(const scr_adoption *from, scr_dataset *dataset, kvtree_error *err)
{
    adoption a = {.from = from, .d = dataset};
    int rc = adoption_check_place(&a, err);
    if (rc) return rc < 0 ? rc : 0;
    rc = adoption_add_up(&a, err);
    dataset->complete = 1;
    return rc ? rc : adoption_write(&a, err);
}
