/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry of one rank in the map (docs/formats/rank2file.md): building and parsing it.
 * A parsed entry may come from anyone, so all of it is checked before any of it is used.
 */
#include "src/filo_private.h"

#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- times ---- */

#define SECOND INT64_C(1000000000)

void filo_file_note_time(filo_file *file, const struct stat *st)
{
    const int64_t seconds = st->st_mtim.tv_sec, most = INT64_MAX / SECOND - 1;
    file->has_mtime = seconds >= -most && seconds <= most;
    file->mtime = file->has_mtime ? seconds * SECOND + st->st_mtim.tv_nsec : 0;
}

int filo_file_was_written(const filo_file *file, const struct stat *st)
{
    filo_file now;
    filo_file_note_time(&now, st);
    return file->has_mtime && !file->packed &&
           (!now.has_mtime || now.mtime != file->mtime);
}

/* ---- building ---- */

static int map_add_segment(kvtree *segments, int i, const filo_segment *segment)
{
    char key[16];
    snprintf(key, sizeof key, "%d", i);
    kvtree *known = kvtree_set(segments, key, NULL);
    int rc = known ? 0 : -ENOMEM;
    if (!rc) rc = kvtree_util_set_str(known, "FILE", segment->container);
    if (!rc) rc = kvtree_util_set_bytecount(known, "OFFSET", segment->offset);
    return rc ? rc : kvtree_util_set_bytecount(known, "LENGTH", segment->length);
}

static int map_add_packed(kvtree *known, const filo_file *file)
{
    char mode[8];
    snprintf(mode, sizeof mode, "%04o", file->mode & 0777);
    int rc = kvtree_util_set_str(known, "MODE", mode);
    kvtree *segments = kvtree_set(known, "SEG", NULL);
    if (!segments) return -ENOMEM;
    for (int i = 0; i < file->segments && !rc; i++)
        rc = map_add_segment(segments, i, &file->segment[i]);
    return rc;
}

static int map_add_file(kvtree *names, const filo_file *file)
{
    kvtree *known = kvtree_set(names, file->name, NULL);
    if (!known) return -ENOMEM;
    int rc = kvtree_util_set_bytecount(known, "SIZE", file->size);
    if (!rc && file->has_crc) rc = kvtree_util_set_crc32(known, "CRC", file->crc);
    if (!rc && file->has_mtime) rc = kvtree_util_set_int64(known, "MTIME", file->mtime);
    if (!rc && file->others) rc = kvtree_util_set_int64(known, "OTHERS", file->others);
    if (!rc && file->shared) rc = kvtree_util_set_int(known, "SHARED", 1);
    return rc || !file->packed ? rc : map_add_packed(known, file);
}

int filo_map_fill(kvtree *entry, int count, const filo_file files[])
{
    kvtree *names = kvtree_get(entry, "FILE");
    if (!names) names = kvtree_set(entry, "FILE", NULL);
    int rc = names ? 0 : -ENOMEM;
    for (int i = 0; i < count && rc == 0; i++)
        rc = map_add_file(names, &files[i]);
    return rc;
}

int filo_map_set_dataset(kvtree *entry, const char *dataset)
{
    return dataset && *dataset ? kvtree_util_set_str(entry, "DATASET", dataset) : 0;
}

/* ---- checking ---- */

static const char *map_value(const kvtree *tree, const char *key)
{
    return kvtree_elem_get_first_val(tree, key);
}

/* MODE is three or four octal digits, or missing. */
static int map_get_mode(const kvtree *known, unsigned *mode)
{
    const char *text = map_value(known, "MODE");
    size_t length = text ? strlen(text) : 0;
    *mode = 0;
    if (!kvtree_get(known, "MODE")) return 0;
    if (length < 3 || length > 4 || strspn(text, "01234567") != length) return -EINVAL;
    *mode = (unsigned)strtoul(text, NULL, 8);
    return *mode <= 0777 ? 0 : -EINVAL;
}

static int map_get_segment(const kvtree *segments, int i, const char **container,
                           uint64_t *offset, uint64_t *length)
{
    char key[16];
    unsigned long from, bytes;
    snprintf(key, sizeof key, "%d", i);
    const kvtree *known = kvtree_get(segments, key);
    *container = map_value(known, "FILE");
    if (!*container || beneath_check_name(*container, NULL) != 0 ||
        kvtree_util_get_bytecount(known, "OFFSET", &from) != 0 ||
        kvtree_util_get_bytecount(known, "LENGTH", &bytes) != 0 || from > INT64_MAX ||
        bytes > INT64_MAX - from)
        return -EINVAL;
    *offset = from;
    *length = bytes;
    return 0;
}

/* Any key other than 0, 1, 2, ... implies that one of these numbers is missing. */
static int map_check_segments(const char *name, const kvtree *segments, uint64_t size,
                              filo_error *err)
{
    uint64_t offset, length, sum = 0;
    const char *container;
    for (int i = 0; i < kvtree_size(segments); i++) {
        if (map_get_segment(segments, i, &container, &offset, &length) != 0)
            return err_set(err, FILO_DAMAGED, "file \"%s\" has no valid SEG %d", name, i);
        if (length > size - sum) break;
        sum += length;
        if (i + 1 == kvtree_size(segments) && sum == size) return 0;
    }
    if (size == 0 && kvtree_size(segments) == 0) return 0;
    return err_set(err, FILO_DAMAGED,
                   "the segments of file \"%s\" do not add up to its SIZE", name);
}

/* *others is 0 without OTHERS. */
static int map_get_others(const kvtree *known, int64_t *others)
{
    *others = 0;
    if (!kvtree_get(known, "OTHERS")) return 0;
    int rc = kvtree_util_get_int64(known, "OTHERS", others);
    return rc || *others <= 0 ? -EINVAL : 0;
}

static int map_check_file(const char *name, const kvtree *known, filo_error *err)
{
    unsigned long size, crc;
    int64_t mtime, others;
    unsigned mode;
    if (beneath_check_name(name, err) != 0) return FILO_DAMAGED;
    if (kvtree_util_get_bytecount(known, "SIZE", &size) != 0)
        return err_set(err, FILO_DAMAGED, "file \"%s\" has no valid SIZE", name);
    if (kvtree_get(known, "CRC") && kvtree_util_get_crc32(known, "CRC", &crc) != 0)
        return err_set(err, FILO_DAMAGED, "file \"%s\" has no valid CRC", name);
    if (kvtree_get(known, "MTIME") && kvtree_util_get_int64(known, "MTIME", &mtime) != 0)
        return err_set(err, FILO_DAMAGED, "file \"%s\" has no valid MTIME", name);
    if (map_get_others(known, &others) != 0)
        return err_set(err, FILO_DAMAGED, "file \"%s\" has no valid OTHERS", name);
    if (map_get_mode(known, &mode) != 0)
        return err_set(err, FILO_DAMAGED, "file \"%s\" has no valid MODE", name);
    const kvtree *segments = kvtree_get(known, "SEG");
    return segments ? map_check_segments(name, segments, size, err) : 0;
}

static int map_check_dataset(const kvtree *entry, const char *dataset, filo_error *err)
{
    const char *owner = map_value(entry, "DATASET");
    if (!owner || !dataset || !*dataset || strcmp(owner, dataset) == 0) return 0;
    return err_set(err, FILO_DAMAGED, "it is of dataset %.200s, not of %.200s", owner,
                   dataset);
}

int filo_map_check(const kvtree *entry, const char *dataset, filo_error *err)
{
    const kvtree *names = kvtree_get(entry, "FILE");
    int rc = map_check_dataset(entry, dataset, err);
    for (kvtree_elem *e = kvtree_elem_first(names); e && rc == 0; e = kvtree_elem_next(e))
        rc = map_check_file(kvtree_elem_key(e), kvtree_elem_hash(e), err);
    return rc;
}

/* ---- parsing ---- */

static int map_take_segments(const kvtree *segments, filo_file *file)
{
    int total = kvtree_size(segments);
    file->packed = 1;
    file->segment = calloc((size_t)total + 1, sizeof *file->segment);
    if (!file->segment) return -ENOMEM;
    for (int i = 0; i < total; i++) {
        filo_segment *s = &file->segment[i];
        const char *container;
        int rc = map_get_segment(segments, i, &container, &s->offset, &s->length);
        if (rc) return rc;
        s->container = strdup(container);
        if (!s->container) return -ENOMEM;
        file->segments = i + 1;
    }
    return 0;
}

static int map_take_file(const kvtree_elem *item, filo_file *file)
{
    unsigned long size = 0, crc = 0;
    const kvtree *known = kvtree_elem_hash(item), *segments = kvtree_get(known, "SEG");
    kvtree_util_get_bytecount(known, "SIZE", &size);
    file->has_crc = kvtree_util_get_crc32(known, "CRC", &crc) == 0;
    file->has_mtime = kvtree_util_get_int64(known, "MTIME", &file->mtime) == 0;
    file->shared = kvtree_get(known, "SHARED") && !kvtree_get(known, "SEG");
    file->size = size;
    file->crc = (uint32_t)crc;
    file->name = strdup(kvtree_elem_key(item));
    int rc = file->name ? map_get_mode(known, &file->mode) : -ENOMEM;
    rc = rc ? rc : map_get_others(known, &file->others);
    return rc || !segments ? rc : map_take_segments(segments, file);
}

int filo_map_files(const kvtree *entry, int *count, filo_file **files)
{
    const kvtree *names = kvtree_get(entry, "FILE");
    int total = kvtree_size(names), i = 0, rc = 0;
    filo_file *list = calloc((size_t)total + 1, sizeof *list);
    if (!list) return -ENOMEM;
    for (kvtree_elem *e = kvtree_elem_first(names); e && !rc; e = kvtree_elem_next(e))
        rc = map_take_file(e, &list[i++]);
    if (rc) {
        filo_files_free(i, list);
        return rc;
    }
    *count = total;
    *files = list;
    return 0;
}
