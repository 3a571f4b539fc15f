/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushes that have begun and not ended: each has a directory in a stage, with a record
 * of what it is of (docs/formats/rank2file.md). The record is written first. */
#include "src/filo_private.h"

#include "common/io.h"
#include "common/record_size.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD "stage.scr"
#define KEY_IDENTITY "IDENTITY"
#define KEY_CONTAINER "CONTAINER"

/* Other users may have moved other directories here. */
static const char *const begun_proofs[] = {RECORD, NULL};

int filo_begun_write(int folder, const filo_begun *flush, filo_error *err)
{
    int rc = beneath_check_origin(folder, begun_proofs, err);
    if (rc) return rc;
    kvtree *record = kvtree_new();
    rc = kvtree_util_set_str(record, KEY_IDENTITY, flush->identity);
    if (!rc) rc = kvtree_util_set_bytecount(record, KEY_CONTAINER, flush->container);
    rc = rc ? err_sys(err, -ENOMEM, "write " RECORD)
            : kvtree_file_write(folder, RECORD, RECORD_SIZE_SMALL, record, err);
    kvtree_delete(&record);
    return rc;
}

int filo_begun_remove(int stage, const char *folder, filo_error *err)
{
    return beneath_remove_found(stage, folder, begun_proofs, err);
}

/* What is no directory, but a file or a link, unless others may have moved the stage
 * here.
 */
static int begun_remove_file(int stage, const char *name, filo_error *err)
{
    static const char *const none[] = {NULL};
    int rc = beneath_check_origin(stage, none, err);
    return rc ? rc : beneath_unlink(stage, name, err);
}

/* A record that is missing or damaged is that of a flush that cannot be resumed. */
static int begun_read(int stage, const char *folder, kvtree *record, filo_begun *flush,
                      filo_error *err)
{
    char name[NAME_MAX + sizeof RECORD + 1];
    unsigned long container = 0;
    snprintf(name, sizeof name, "%s/" RECORD, folder);
    *flush = (filo_begun){.identity = ""};
    int rc = kvtree_file_read(stage, name, RECORD_SIZE_SMALL, record, err);
    if (rc) return err_is_damage(rc) ? 0 : rc;
    const char *identity = kvtree_elem_get_first_val(record, KEY_IDENTITY);
    if (!identity || kvtree_util_get_bytecount(record, KEY_CONTAINER, &container) != 0)
        return 0;
    flush->identity = identity;
    flush->container = container;
    return 0;
}

/* The flush of another user, in a directory that only that user can read: it stays, and
 * that user removes it. */
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
    if (!first) beneath_rmdir(dir, stage, NULL); /* where one is kept, it stays */
    return first;
}
