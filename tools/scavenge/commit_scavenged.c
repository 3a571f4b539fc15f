/* SPDX-License-Identifier: BSD-3-Clause */
/* Commits a scavenged dataset; see commit_scavenged.h. */
#include "scavenge/commit_scavenged.h"

#include "base/path.h"
#include "common/batch.h"
#include "common/beneath.h"
#include "common/io.h"
#include "common/record_size.h"
#include "lib/tool_progress.h"
#include "prefix/dataset_records.h"
#include "scavenge/flush_leftovers.h"
#include "scavenge/index_entry.h"
#include "scavenge/pack.h"
#include "scavenge/rename_into_prefix.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOCK_SECONDS = 10 }; /* a process that was killed may hold the lock for a moment */

/* Locks a file in the staging directory, which must exist; hidden is its parent
 * directory. *fd is -1 without such a directory, and on a file system without locks. */
static int commit_lock(int hidden, const scavenge_key *key, int *fd, kvtree_error *err)
{
    char folder[SCAVENGE_FOLDER_SIZE], name[SCAVENGE_FOLDER_SIZE + 16];
    scavenge_folder_of(key, folder);
    snprintf(name, sizeof name, "%s/" SCAVENGE_HIDDEN "/lock", scr_path_basename(folder));
    *fd = -1;
    int rc = kvtree_file_lock_only(hidden, name, LOCK_SECONDS, fd, err);
    if (rc == -ENOENT || rc == -ENOLCK || rc == -ENOTSUP || rc == -ENOSYS) return 0;
    if (rc != -ETIMEDOUT) return rc;
    return err_set(err, -EBUSY, "another process commits it");
}

/* ---- missing files ---- */

/* Removes the temporary files ".<16 hex digits>-<i>.tmp" of an interrupted rebuild. */
static void commit_remove_temporaries(int dir)
{
    DIR *stream = beneath_list(dir);
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL) {
        unsigned long long number;
        int i, end = 0;
        if (sscanf(item->d_name, ".%16llx-%d.tmp%n", &number, &i, &end) == 2 &&
            end > 21 && !item->d_name[end])
            unlinkat(dir, item->d_name, 0);
    }
    if (stream) closedir(stream);
}

static int commit_rebuild(const scavenge_prefix *prefix, scavenge_saved *saved,
                          scavenge_commit_result *result, kvtree_error *err)
{
    if (!scavenge_scan_missing(&saved->scan) || !saved->scan.members) return 0;
    tool_progress_turn("rebuild", NULL);
    commit_remove_temporaries(saved->folder.dir);
    int rc = scavenge_rebuild(&saved->folder, &saved->scan, prefix->width,
                              &result->rebuilt, &result->sets);
    return rc ? err_set(err, rc, "no memory") : scavenge_rescan(prefix, saved, err);
}

/* ---- complete datasets ---- */

/* Reads the recorded container size: a second call must pack files as the first call
 * did. */
static int commit_read_packing(const scavenge_folder *folder, kvtree *tree,
                               uint64_t *container, kvtree_error *err)
{
    unsigned long bytes;
    int rc = kvtree_file_read(folder->dir, SCAVENGE_WHOLE, RECORD_SIZE_SMALL, tree, err);
    if (!rc &&
        (kvtree_util_get_bytecount(tree, "CONTAINER", &bytes) || bytes > INT64_MAX))
        rc = err_set(err, -EBADMSG, SCAVENGE_WHOLE " has no valid CONTAINER");
    if (!rc) *container = bytes;
    if (rc == -ENOENT || !err_is_damage(rc)) return rc;
    return err_wrap(err, SCAVENGE_WHOLE_BAD, "%s", folder->path);
}

/* Joins parts, packs files if containers are configured, and records that all files
 * exist. */
static int commit_pack(const scavenge_prefix *prefix, const scavenge_saved *saved,
                       uint64_t *container, kvtree_error *err)
{
    int dir = saved->folder.dir;
    kvtree *tree = kvtree_new();
    if (!tree) return err_set(err, -ENOMEM, "no memory");
    int rc = commit_read_packing(&saved->folder, tree, container, err);
    if (rc == -ENOENT) {
        *container = prefix->container;
        rc = scavenge_pack(&saved->folder, &saved->scan, *container, err);
        if (!rc && kvtree_util_set_bytecount(tree, "CONTAINER", *container) != 0)
            rc = err_set(err, -ENOMEM, "no memory");
        if (!rc)
            rc = kvtree_file_write(dir, SCAVENGE_WHOLE, RECORD_SIZE_SMALL, tree, err);
    }
    kvtree_delete(&tree);
    return rc;
}

static int commit_whole(const scavenge_prefix *prefix, const scavenge_saved *saved,
                        scavenge_commit_result *result, kvtree_error *err)
{
    const scr_dataset *d = &result->dataset;
    uint64_t container = 0;
    int rc = scavenge_update_index(prefix->dir, d, SCAVENGE_BEGIN, NULL, &result->current,
                                   err);
    if (!rc) rc = commit_pack(prefix, saved, &container, err);
    if (!rc) rc = scavenge_rename_into_prefix(prefix, saved, container, err);
    if (!rc)
        rc = scavenge_update_index(prefix->dir, d, SCAVENGE_END, NULL, &result->current,
                                   err);
    if (rc) return rc;
    result->complete = true;
    scavenge_leftovers_remove(prefix->dir, d);
    return 0;
}

/* ---- the dataset ---- */

static int commit_saved(const scavenge_prefix *prefix, scavenge_saved *saved,
                        scavenge_commit_result *result, kvtree_error *err)
{
    int rc = commit_rebuild(prefix, saved, result, err);
    if (rc) return rc;
    result->dataset = saved->scan.dataset;
    rc = scavenge_check_index(prefix->dir, &result->dataset, err);
    if (!rc && saved->scan.dataset.scattered)
        rc = scavenge_check_names(prefix, &saved->scan, err);
    if (rc) return rc;
    if (scavenge_scan_is_whole(&saved->scan, &result->why))
        return commit_whole(prefix, saved, result, err);
    /* a failed rebuild is the better reason */
    for (int i = result->sets - 1; i >= 0; i--)
        if (result->rebuilt[i].failed) result->why = result->rebuilt[i].why;
    return scavenge_update_index(prefix->dir, &result->dataset, SCAVENGE_INCOMPLETE,
                                 result->why.text, &result->current, err);
}

static int commit_locked(const scavenge_prefix *prefix, const scavenge_key *key,
                         scavenge_commit_result *result, kvtree_error *err)
{
    scavenge_saved saved;
    int rc = scavenge_is_complete(prefix->dir, key, &result->dataset, err);
    if (rc < 0) return rc;
    result->complete = rc > 0;
    if (rc > 0) return 0;
    rc = scavenge_open(prefix, key, &saved, err);
    if (rc) return rc;
    rc = commit_saved(prefix, &saved, result, err);
    scavenge_close(&saved);
    return rc;
}

/* Removes all staging directories of the id, including those of older datasets. A process
 * that waits for the lock may recreate its file meanwhile. */
static int commit_remove_staging(int hidden, int id, kvtree_error *err)
{
    scavenge_key one;
    DIR *stream = beneath_list(hidden);
    int rc = stream ? 0 : err_sys(err, -errno, "list the staging directories");
    const struct dirent *item;
    while (!rc && (item = readdir(stream)) != NULL) {
        if (!scavenge_key_parse(item->d_name, &one) || one.id != id) continue;
        rc = -ENOTEMPTY;
        for (int i = 0; rc == -ENOTEMPTY && i < 100; i++)
            rc = scr_staging_remove(hidden, item->d_name, err);
    }
    if (stream) closedir(stream);
    return rc;
}

int scavenge_commit(const scavenge_prefix *prefix, const scavenge_key *key,
                    scavenge_commit_result *result, kvtree_error *err)
{
    char name[SCR_NAME_SIZE + sizeof SCAVENGE_HIDDEN];
    int hidden, fd;
    memset(result, 0, sizeof *result);
    snprintf(name, sizeof name, "%s/" SCAVENGE_HIDDEN, key->name);
    int rc = beneath_open_below(prefix->dir, name, &hidden, err);
    if (rc) return rc;
    rc = commit_lock(hidden, key, &fd, err);
    if (!rc) {
        batch_sweep(hidden, NULL); /* temporary files of an interrupted commit */
        rc = commit_locked(prefix, key, result, err);
        if (!rc && result->complete) rc = commit_remove_staging(hidden, key->id, err);
    }
    io_close(&fd);
    io_close(&hidden);
    if (!rc) return 0;
    free(result->rebuilt);
    result->rebuilt = NULL;
    result->sets = 0;
    return rc;
}
