/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory .scr of a dataset; see dataset_records.h. */
#include "prefix/dataset_records.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/others.h"
#include "common/record_size.h"
#include "plan/part_name.h"
#include <errno.h>
#include <filo/filo.h>
#include <kvtree/kvtree.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HIDDEN ".scr"
#define FILEMAP ".scrfilemap"

static bool records_is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool records_name_ends(const char *name, const char *with)
{
    const size_t n = strlen(name), k = strlen(with);
    return n > k && strcmp(name + n - k, with) == 0;
}

/* Returns the part of name after text, if name begins with text; otherwise NULL. */
static const char *records_after(const char *name, const char *text)
{
    const size_t n = strlen(text);
    return strncmp(name, text, n) == 0 ? name + n : NULL;
}

/* Whether name is `before`, then one or more numbers, each followed by a dot, then
 * "scr". */
static bool records_is_numbered(const char *name, const char *before)
{
    const char *rest = records_after(name, before);
    size_t n;
    if (!rest || strcmp(rest, "scr") == 0) return false;
    while ((n = strspn(rest, "0123456789")) > 0 && rest[n] == '.')
        rest += n + 1;
    return strcmp(rest, "scr") == 0;
}

/* Removes all files that is_ours accepts from an open directory. Returns the first
 * failure. */
static int records_remove_named(int dir, bool (*is_ours)(const char *), kvtree_error *err)
{
    DIR *stream = beneath_list(dir);
    int first = stream ? 0 : err_sys(err, -errno, "read the directory");
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL)
        if (is_ours(item->d_name)) {
            int rc = beneath_unlink(dir, item->d_name, first ? NULL : err);
            if (!first) first = rc;
        }
    if (stream) closedir(stream);
    return first;
}

/* ---- staging directories ---- */

/* Whether name is that of a redundancy file, "<member>_of_<members>_in_<id>.<scheme>". */
static bool staging_is_redundancy(const char *name)
{
    int member, members, id, end = 0;
    return sscanf(name, "%d_of_%d_in_%d.%n", &member, &members, &id, &end) == 3 &&
           end > 0;
}

static bool staging_is_record(const char *name)
{
    return records_name_ends(name, FILEMAP) || strcmp(name, "lock") == 0 ||
           strcmp(name, "whole") == 0 || records_is_numbered(name, "ctr.") ||
           staging_is_redundancy(name) || beneath_is_temporary(name);
}

typedef struct staging {
    int dir;     /* the open directory */
    int64_t who; /* other users who can change its filemaps */
} staging;
typedef int staging_take(const staging *s, const char *name, kvtree_error *err);

/* Removes a file, unless other users may have named it in a filemap but cannot change its
 * directory. */
static int staging_remove_name(const staging *s, const char *name, kvtree_error *err)
{
    const char *last;
    int parent;
    int rc = beneath_open_parent(s->dir, name, 0, &parent, &last, err);
    if (rc) return err_is_damage(rc) || rc == -EINVAL ? 0 : rc;
    if (s->who) rc = others_reach(s->who, s->dir, parent, name, err);
    rc = rc ? rc : beneath_unlink(parent, last, err);
    io_close(&parent);
    return rc == -EPERM ? 0 : rc;
}

/* Removes a file, and the file that was joined from it and other parts. Redundancy files
 * are skipped: they are removed with the records. */
static int staging_remove_file(const staging *s, const char *name, kvtree_error *err)
{
    char joined[BENEATH_NAME_MAX];
    uint64_t offset;
    const size_t n = scr_part_parse(name, &offset);
    if (staging_is_redundancy(name)) return 0;
    int rc = staging_remove_name(s, name, err);
    if (rc || n == 0 || n >= sizeof joined) return rc;
    snprintf(joined, sizeof joined, "%.*s", (int)n, name);
    return staging_remove_name(s, joined, err);
}

/* Removes the directories of a file that was removed, and temporary files in them, as far
 * as the directories are then empty. */
static int staging_vacate(const staging *s, const char *name, kvtree_error *err)
{
    char folder[BENEATH_NAME_MAX];
    int fd, rc = 0;
    snprintf(folder, sizeof folder, "%s", name);
    for (char *slash; !rc && (slash = strrchr(folder, '/')) != NULL;) {
        *slash = 0;
        if (beneath_open_below(s->dir, folder, &fd, NULL) != 0) continue;
        rc = records_remove_named(fd, beneath_is_temporary, err);
        io_close(&fd);
        if (!rc && beneath_rmdir(s->dir, folder, NULL) != 0) break;
    }
    return rc;
}

/* Calls take for the files of RANK/<r>/DSET/<id> in a filemap (docs/formats/scavenge.md).
 * A damaged filemap names no files. */
static int staging_visit(const staging *s, const char *name, staging_take *take,
                         kvtree_error *err)
{
    char path[sizeof HIDDEN + NAME_MAX + 1];
    kvtree *map = kvtree_new();
    snprintf(path, sizeof path, HIDDEN "/%s", name);
    int rc = map ? kvtree_file_read(s->dir, path, RECORD_SIZE_FILES, map, err)
                 : err_set(err, -ENOMEM, "no memory");
    if (err_is_damage(rc)) rc = 0;
    const kvtree *ranks = kvtree_get(map, "RANK");
    for (const kvtree_elem *r = kvtree_elem_first(ranks); r; r = kvtree_elem_next(r)) {
        const kvtree *sets = kvtree_get(kvtree_elem_hash(r), "DSET");
        const kvtree_elem *d = kvtree_elem_first(sets);
        for (; d; d = kvtree_elem_next(d)) {
            const kvtree_elem *f =
                kvtree_elem_first(kvtree_get(kvtree_elem_hash(d), "FILE"));
            for (; f && !rc; f = kvtree_elem_next(f))
                rc = take(s, kvtree_elem_key(f), err);
        }
    }
    kvtree_delete(&map);
    return rc;
}

static int staging_visit_all(const staging *s, int records, staging_take *take,
                             kvtree_error *err)
{
    DIR *stream = beneath_list(records);
    int rc = stream ? 0 : err_sys(err, -errno, "read the directory");
    const struct dirent *item;
    while (!rc && stream && (item = readdir(stream)) != NULL)
        if (records_name_ends(item->d_name, FILEMAP))
            rc = staging_visit(s, item->d_name, take, err);
    if (stream) closedir(stream);
    return rc;
}

static int staging_empty(staging *s, kvtree_error *err)
{
    int records, rc = beneath_open_below(s->dir, HIDDEN, &records, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    s->who = others_put_below(s->dir, HIDDEN "/", err);
    rc = s->who < 0 ? (int)s->who
                    : staging_visit_all(s, records, staging_remove_file, err);
    rc = rc ? rc : staging_visit_all(s, records, staging_vacate, err);
    rc = rc ? rc : records_remove_named(s->dir, beneath_is_temporary, err);
    rc = rc ? rc : records_remove_named(records, staging_is_record, err);
    io_close(&records);
    if (!rc) beneath_rmdir(s->dir, HIDDEN, NULL);
    return rc;
}

/* Sets a text with the name of an entry because of which the open directory stays. */
static int records_name_rest(int dir, kvtree_error *err)
{
    DIR *stream = beneath_list(dir);
    const struct dirent *item = NULL;
    do
        item = stream ? readdir(stream) : NULL;
    while (item && records_is_dot(item->d_name));
    err_set(err, -ENOTEMPTY,
            "%.255s in it is another user's, or not SCR's, and stays: remove it by hand",
            item ? item->d_name : "what is");
    if (stream) closedir(stream);
    return -ENOTEMPTY;
}

static int records_remove_folder(int dir, const char *name, int fd, kvtree_error *err)
{
    int rc = beneath_rmdir(dir, name, err);
    return rc == -ENOTEMPTY || rc == -EEXIST ? records_name_rest(fd, err) : rc;
}

int scr_staging_remove(int hidden, const char *name, kvtree_error *err)
{
    staging s = {.dir = -1};
    int rc = beneath_open_below(hidden, name, &s.dir, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    rc = staging_empty(&s, err);
    rc = rc ? rc : records_remove_folder(hidden, name, s.dir, err);
    io_close(&s.dir);
    return rc ? err_wrap(err, rc, "%s", name) : 0;
}

/* ---- the directory ---- */

/* Whether name is that of a summary, a map, a container, or a temporary file. */
static bool records_are_ours(const char *name)
{
    return strcmp(name, "summary.scr") == 0 || strcmp(name, "rank2file.scr") == 0 ||
           records_is_numbered(name, "rank2file.") || records_is_numbered(name, "ctr.") ||
           beneath_is_temporary(name);
}

/* Removes stages and staging directories. Continues after a failure and returns the first
 * one. */
static int records_remove_folders(int hidden, kvtree_error *err)
{
    DIR *stream = beneath_list(hidden);
    int first = stream ? 0 : err_sys(err, -errno, "read the directory");
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL) {
        kvtree_error cause = {""};
        const char *name = item->d_name;
        int rc = 0;
        if (strcmp(name, strrchr(FILO_STAGE, '/') + 1) == 0)
            rc = filo_begun_sweep(hidden, name, NULL, NULL, &cause);
        else if (records_after(name, SCR_STAGING))
            rc = scr_staging_remove(hidden, name, &cause);
        if (rc && !first) first = err_set(err, rc, "%s", cause.text);
    }
    if (stream) closedir(stream);
    return first;
}

static int records_remove(int dir, const char *name, bool has_folders,
                          bool (*is_ours)(const char *), kvtree_error *err)
{
    int fd, rc = beneath_open_below(dir, name, &fd, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    rc = has_folders ? records_remove_folders(fd, err) : 0;
    rc = rc ? rc : records_remove_named(fd, is_ours, err);
    rc = rc ? rc : records_remove_folder(dir, name, fd, err);
    io_close(&fd);
    return rc ? err_wrap(err, rc, "%s", name) : 0;
}

int scr_records_remove_below(int dir, const char *hidden, kvtree_error *err)
{
    return records_remove(dir, hidden, true, records_are_ours, err);
}

int scr_records_remove_files(int dir, const char *folder, bool (*is_ours)(const char *),
                             kvtree_error *err)
{
    return records_remove(dir, folder, false, is_ours, err);
}
