/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory .scr of a dataset; see dataset_records.h.
 *
 * Others who can change the prefix directory may have moved a directory of the user's
 * there. So files are removed by the names that SCR gives them, never a whole tree. */
#include "prefix/dataset_records.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <filo/filo.h>
#include <string.h>
#include <unistd.h>

const char *const scr_staging_proofs[] = {".scr/lock", ".scr/whole", ".scr/0.scrfilemap",
                                          NULL};

static bool records_name_ends(const char *name, const char *with)
{
    const size_t n = strlen(name), k = strlen(with);
    return n > k && strcmp(name + n - k, with) == 0;
}

/* Records, containers, and temporary files of both. */
static bool records_are_ours(const char *name)
{
    return records_name_ends(name, ".scr") ||
           (name[0] == '.' && records_name_ends(name, ".tmp"));
}

static int records_remove_entry(int hidden, const char *name, kvtree_error *err)
{
    if (records_are_ours(name)) {
        int rc = unlinkat(hidden, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
        return rc ? err_sys(err, rc, "remove %s", name) : 0;
    }
    if (strcmp(name, strrchr(FILO_STAGE, '/') + 1) == 0)
        return filo_begun_sweep(hidden, name, NULL, NULL, err);
    if (strncmp(name, SCR_STAGING, strlen(SCR_STAGING)) == 0)
        return beneath_remove_found(hidden, name, scr_staging_proofs, err);
    return 0; /* what is not ours keeps the directory */
}

/* Continues after a failure and returns the first one. */
static int records_remove_entries(int hidden, kvtree_error *err)
{
    DIR *stream = beneath_list(hidden);
    int first = stream ? 0 : err_sys(err, -errno, "read the directory");
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL) {
        kvtree_error cause = {""};
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
        int rc = records_remove_entry(hidden, item->d_name, &cause);
        if (rc && !first) first = err_set(err, rc, "%s", cause.text);
    }
    if (stream) closedir(stream);
    return first;
}

/* Names an entry of the directory that keeps it. */
static int records_name_rest(int hidden, kvtree_error *err)
{
    DIR *stream = beneath_list(hidden);
    const struct dirent *item = NULL;
    do
        item = stream ? readdir(stream) : NULL;
    while (item && (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0));
    err_set(err, -ENOTEMPTY,
            "%.255s in it is another user's, or not SCR's, and stays: remove it by hand",
            item ? item->d_name : "what is");
    if (stream) closedir(stream);
    return -ENOTEMPTY;
}

int scr_records_remove_below(int dir, const char *hidden, kvtree_error *err)
{
    int fd, rc = beneath_open_below(dir, hidden, &fd, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    rc = records_remove_entries(fd, err);
    if (!rc) {
        rc = beneath_rmdir(dir, hidden, err);
        if (rc == -ENOTEMPTY || rc == -EEXIST) rc = records_name_rest(fd, err);
    }
    io_close(&fd);
    return rc ? err_wrap(err, rc, "%s", hidden) : 0;
}
