/* SPDX-License-Identifier: BSD-3-Clause */
/* Map and summary for files that are there already; see adoption.h. */
#include "prefix/adoption.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
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
    int prefix;
    scr_dataset *d;
    const kvtree *files;
    filo_file *list; /* of the rank that the map gets now */
    int count;
} adoption;

static const kvtree *adoption_files_of(const adoption *a, int rank)
{
    char key[16];
    snprintf(key, sizeof key, "%d", rank);
    return kvtree_get(kvtree_get(a->files, key), "FILE");
}

/* Bytes of a name that the map leaves out. */
static size_t adoption_skip(const scr_dataset *d)
{
    return d->scattered ? 0 : strlen(d->name) + 1;
}

/* The file becomes what a power loss leaves as well. */
static int adoption_inspect(const adoption *a, const char *name, const kvtree *known,
                            struct stat *st, kvtree_error *err)
{
    unsigned long size;
    int fd, rc = scr_dataset_check_name(name, err);
    if (rc) return -EINVAL;
    rc = beneath_open(a->prefix, name, O_RDONLY, 0, &fd, err);
    if (rc) return err_is_damage(rc) || rc == -ENOENT ? -EBADMSG : rc;
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

/* Looks at all files before anything is written. */
static int adoption_add_up(const adoption *a, kvtree_error *err)
{
    scr_dataset *d = a->d;
    const scr_dataset told = *d;
    d->files = d->scattered = 0;
    d->size = 0;
    d->ranks = kvtree_size(a->files);
    for (int rank = 0; rank < d->ranks; rank++) {
        const kvtree *list = adoption_files_of(a, rank);
        const kvtree_elem *e = kvtree_elem_first(list);
        char key[16];
        snprintf(key, sizeof key, "%d", rank);
        if (!kvtree_get(a->files, key))
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
    return err_set(err, -EBADMSG, "it has %d files of %lu bytes, not %d of %lu", d->files,
                   d->size, told.files, told.size);
}

static int adoption_fill(const adoption *a, const kvtree_elem *e, filo_file *file,
                         kvtree_error *err)
{
    struct stat st;
    unsigned long crc;
    const char *name = kvtree_elem_key(e);
    if (beneath_stat(a->prefix, name, &st, err) != 0) return -EBADMSG;
    *file = (filo_file){.name = strdup(name + adoption_skip(a->d)),
                        .size = (uint64_t)st.st_size};
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

static int adoption_write(adoption *a, const char *real, kvtree_error *err)
{
    const scr_dataset *d = a->d;
    char map[SCR_NAME_SIZE + 32], key[SCR_DATASET_KEY_SIZE];
    int folder, rc = beneath_make_durable(a->prefix, d->name, 0777, err);
    if (rc) return rc;
    char *path = d->scattered ? strdup(real) : scr_path_join(real, d->name);
    if (!path) return err_set(err, -ENOMEM, "no memory");
    snprintf(map, sizeof map, "%s%s" FILO_MAP, d->scattered ? d->name : "",
             d->scattered ? "/" : "");
    scr_dataset_key(d, key);
    const filo_place to = {.folder = path, .base = real, .map = map, .dataset = key};
    rc = filo_map_write(&to, d->ranks, adoption_give, a, err);
    filo_files_free(a->count, a->list);
    free(path);
    rc = rc ? rc : beneath_open_below(a->prefix, d->name, &folder, err);
    if (rc) return rc;
    rc = scr_summary_write(folder, d, err);
    io_close(&folder);
    return rc;
}

int scr_adopt_files(int prefix, const char *real, scr_dataset *dataset,
                    const kvtree *files, kvtree_error *err)
{
    adoption a = {.prefix = prefix, .d = dataset, .files = files};
    int rc = adoption_add_up(&a, err);
    dataset->complete = 1;
    return rc ? rc : adoption_write(&a, real, err);
}
