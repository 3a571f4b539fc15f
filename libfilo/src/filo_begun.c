/* SPDX-License-Identifier: BSD-3-Clause */
/* Unfinished flushes: each has a directory in a stage, with a record that identifies the
 * flush (docs/formats/rank2file.md). The record is written first. */
#include "src/filo_private.h"

#include "common/batch.h"
#include "common/io.h"
#include "common/record_size.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD "stage.scr"
#define KEY_IDENTITY "IDENTITY"
#define KEY_CONTAINER "CONTAINER"
#define KEY_ALIGN "ALIGN"
#define KEY_NODES "NODES"

/* Not synced: a flush whose record is incomplete starts over instead of being resumed. */
static int begun_write_record(int folder, const kvtree *record, filo_error *err)
{
    batch b = {.dir = folder, .durability = BATCH_UNSYNCED};
    int fd, rc = batch_open(&b, RECORD, 0, &fd, err);
    if (!rc) {
        ssize_t size = kvtree_fd_write(fd, RECORD_SIZE_SMALL, record, err);
        rc = size < 0 ? (int)size : batch_commit(&b, err);
    }
    batch_drop(&b);
    return rc;
}

int filo_begun_write(int folder, const filo_begun *flush, filo_error *err)
{
    kvtree *record = kvtree_new();
    int rc = kvtree_util_set_str(record, KEY_IDENTITY, flush->identity);
    const filo_form *form = &flush->form;
    if (!rc) rc = kvtree_util_set_bytecount(record, KEY_CONTAINER, form->container);
    if (!rc && form->align)
        rc = kvtree_util_set_bytecount(record, KEY_ALIGN, form->align);
    if (!rc && form->align)
        rc = kvtree_util_set_bytecount(record, KEY_NODES, form->nodes);
    rc = rc ? err_sys(err, -ENOMEM, "write " RECORD)
            : begun_write_record(folder, record, err);
    kvtree_delete(&record);
    return rc;
}

/* ---- removing ----
 *
 * Others may have moved a directory of the user here. Therefore only files with names
 * that a flush uses are removed, never a whole tree. */

static bool begun_is_number(const char *name)
{
    return *name && !name[strspn(name, "0123456789")];
}

/* "<rank>.<i>", the name that flush_add_file uses. */
static bool begun_is_staged(const char *name)
{
    const size_t rank = strspn(name, "0123456789");
    return rank > 0 && name[rank] == '.' && begun_is_number(name + rank + 1);
}

/* "ctr.<i>.scr" of filo_container_name; "shared.<home>.<i>" of filo_shared_plan; the
 * record, and its temporary file. */
static bool begun_is_record(const char *name)
{
    const char *number = name + strlen("ctr.");
    if (strcmp(name, RECORD) == 0 || beneath_is_temporary(name)) return true;
    if (strncmp(name, "shared.", strlen("shared.")) == 0)
        return begun_is_staged(name + strlen("shared."));
    return strncmp(name, "ctr.", strlen("ctr.")) == 0 &&
           strspn(number, "0123456789") > 0 &&
           strcmp(number + strspn(number, "0123456789"), ".scr") == 0;
}

/* Removes the files of a flush from the directory fd, and closes fd. With `deeper`, also
 * empties and removes subdirectories of staged files. Returns the first error. */
static int begun_empty(int fd, bool (*is_ours)(const char *name), bool deeper,
                       filo_error *err)
{
    DIR *stream = beneath_list(fd);
    int first = stream ? 0 : err_sys(err, -errno, "read a directory");
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL) {
        int rc = 0, inner;
        if (is_ours(item->d_name)) {
            rc = beneath_unlink(fd, item->d_name, first ? NULL : err);
        } else if (deeper && begun_is_number(item->d_name) &&
                   beneath_open_below(fd, item->d_name, &inner, NULL) == 0) {
            rc = begun_empty(inner, begun_is_staged, false, first ? NULL : err);
            if (!rc) beneath_rmdir(fd, item->d_name, NULL);
        }
        if (!first) first = rc;
    }
    if (stream) closedir(stream);
    io_close(&fd);
    return first;
}

int filo_begun_remove(int stage, const char *folder, filo_error *err)
{
    int fd, rc = beneath_open_below(stage, folder, &fd, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    rc = begun_empty(fd, begun_is_record, true, err);
    if (rc) return rc;
    rc = beneath_rmdir(stage, folder, err);
    return rc == -ENOTEMPTY || rc == -EEXIST
               ? err_set(err, -ENOTEMPTY,
                         "%s has files that are of no flush: move them away", folder)
               : rc;
}

/* Removes a non-directory only if it has the name of a flush. */
static int begun_remove_file(int stage, const char *name, filo_error *err)
{
    const bool in_the_way = strlen(name) == 16 && strspn(name, "0123456789abcdef") == 16;
    return in_the_way ? beneath_unlink(stage, name, err) : 0;
}

/* Whether the record has a valid form. */
static bool begun_read_form(const kvtree *record, filo_form *form)
{
    unsigned long container = 0, align = 0, nodes = 0;
    if (kvtree_util_get_bytecount(record, KEY_CONTAINER, &container) != 0) return false;
    if (kvtree_get(record, KEY_ALIGN) &&
        (kvtree_util_get_bytecount(record, KEY_ALIGN, &align) != 0 ||
         kvtree_util_get_bytecount(record, KEY_NODES, &nodes) != 0 || align == 0 ||
         align > INT64_MAX || nodes == 0 || nodes > INT_MAX || container > 0))
        return false;
    *form = (filo_form){container, align, (unsigned)nodes};
    return true;
}

/* A flush whose record is missing or damaged cannot be resumed: identity is "". */
static int begun_read(int stage, const char *folder, kvtree *record, filo_begun *flush,
                      filo_error *err)
{
    char name[NAME_MAX + sizeof RECORD + 1];
    snprintf(name, sizeof name, "%s/" RECORD, folder);
    *flush = (filo_begun){.identity = ""};
    int rc = kvtree_file_read(stage, name, RECORD_SIZE_SMALL, record, err);
    if (rc) return err_is_damage(rc) ? 0 : rc;
    const char *identity = kvtree_elem_get_first_val(record, KEY_IDENTITY);
    if (identity && begun_read_form(record, &flush->form)) flush->identity = identity;
    return 0;
}

/* Whether this is the flush of another user in a directory that only that user can read.
 * Such a flush stays; its owner removes it. */
static bool begun_is_foreign(int stage, const char *folder)
{
    struct stat st;
    return fstatat(stage, folder, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_uid != geteuid() && !(st.st_mode & (S_IRWXG | S_IRWXO));
}

static int begun_visit(int stage, const char *folder, filo_begun_keep *keep, void *arg,
                       filo_error *err)
{
    filo_begun flush;
    kvtree *record = keep ? kvtree_new() : NULL;
    int rc = 0, kept = 0;
    if (keep) rc = record ? begun_read(stage, folder, record, &flush, err) : -ENOMEM;
    if (!rc && keep) kept = keep(arg, &flush);
    kvtree_delete(&record);
    if (rc == -EACCES && begun_is_foreign(stage, folder)) return 0;
    if (rc == -ENOMEM) err_sys(err, rc, "read what a flush left");
    if (rc || kept) return rc;
    rc = filo_begun_remove(stage, folder, err);
    return rc == -ENOTDIR || rc == -ELOOP ? begun_remove_file(stage, folder, err) : rc;
}

int filo_begun_sweep(int dir, const char *stage, filo_begun_keep *keep, void *arg,
                     filo_error *err)
{
    const struct dirent *item;
    int fd, first = 0;
    int rc = beneath_open_below(dir, stage, &fd, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    DIR *stream = beneath_list(fd);
    if (!stream) first = err_sys(err, -errno, "read directory %s", stage);
    while (stream && (item = readdir(stream)) != NULL) {
        filo_error cause = {""};
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
        rc = begun_visit(fd, item->d_name, keep, arg, &cause);
        if (rc && !first) first = err_set(err, rc, "%s: %s", stage, cause.text);
    }
    if (stream) closedir(stream);
    io_close(&fd);
    if (!first)
        beneath_rmdir(dir, stage, NULL); /* fails, and the stage stays, if a flush
                                            was kept */
    return first;
}
