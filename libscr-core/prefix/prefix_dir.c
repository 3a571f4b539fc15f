/* SPDX-License-Identifier: BSD-3-Clause */
/* The prefix directory, and the places of datasets in it. */
#include "prefix/prefix.h"

#include "base/path.h"
#include "common/agree_mpi.h"
#include "common/batch.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "common/others.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the directory ---- */

/* Facts that rank 0 determines for all ranks. */
typedef struct prefix_found {
    char path[PATH_MAX], real[PATH_MAX]; /* real is "" after a failure */
    bool has_group;
    gid_t group;
} prefix_found;

/* Makes the directory at path if it is missing, but no directory above it: after a typing
 * error, a run must not begin from nothing. */
static int prefix_make(prefix_found *found, kvtree_error *err)
{
    const char *path = found->path;
    char above[PATH_MAX];
    struct stat st;
    int fd;
    snprintf(above, sizeof above, "%s", path);
    *strrchr(above, '/') = 0;
    if (above[0] && stat(above, &st) != 0 && errno == ENOENT)
        return err_set(
            err, -ENOENT,
            "prefix directory %.180s: the directory %.180s is missing; create it, or "
            "correct SCR_PREFIX",
            path, above);
    int rc = folder_make(path, 0777, &fd, err);
    if (rc) return rc;
    found->has_group = beneath_has_group(fd, &found->group);
    io_close(&fd);
    return 0;
}

/* Rank 0. Determines the paths, and makes the directory. */
static int prefix_find(const scr_config *config, prefix_found *found, kvtree_error *err)
{
    char cwd[PATH_MAX], *given = scr_config_prefix(config), *full = NULL;
    int rc = 0;
    if (given && getcwd(cwd, sizeof cwd)) full = scr_path_absolute(cwd, given);
    if (!full || strlen(full) >= PATH_MAX)
        rc = err_sys(err, full ? -ENAMETOOLONG : -errno, "prefix directory");
    else
        strcpy(found->path, full);
    free(full);
    free(given);
    rc = rc ? rc : prefix_make(found, err);
    if (rc) return rc;
    if (!realpath(found->path, found->real)) {
        rc = err_sys(err, -errno, "prefix directory %s", found->path);
        found->real[0] = 0;
    }
    return rc;
}

int scr_prefix_enter(scr_prefix *prefix, kvtree_error *err)
{
    if (prefix->fd >= 0) return 0;
    int fd = io_open(AT_FDCWD, prefix->real, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return err_sys(err, fd, "prefix directory %s", prefix->path);
    prefix->fd = fd;
    return 0;
}

int scr_prefix_open(scr_prefix *prefix, const scr_config *config, kvtree_error *err)
{
    prefix_found found = {.path = ""};
    const scr_job *job = prefix->job;
    int rc = job->rank == 0 ? prefix_find(config, &found, err) : 0;
    scr_job_share(job, &found, sizeof found);
    if (!found.real[0]) return rc; /* rank 0 has the error text */
    prefix->path = strdup(found.path);
    prefix->real = strdup(found.real);
    if (!prefix->path || !prefix->real)
        return err_sys(err, -ENOMEM, "prefix directory %s", found.path);
    prefix->has_group = found.has_group;
    prefix->group = found.group;
    rc = job->node_rank == 0 ? scr_prefix_enter(prefix, err) : 0;
    if (rc || job->rank != 0) return rc;
    rc = beneath_make_durable(prefix->fd, ".scr", 0777, err);
    return rc ? err_wrap(err, rc, "prefix directory %s", found.path) : 0;
}

void scr_prefix_close(scr_prefix *prefix)
{
    io_close(&prefix->fd);
    kvtree_delete(&prefix->flush_file);
    scr_scan_free(&prefix->search);
    kvtree_delete(&prefix->index);
    scr_direct_close(prefix);
    scr_direct_forget_others(prefix);
    kvtree_delete(&prefix->direct.files);
    kvtree_delete(&prefix->direct.packed);
    free(prefix->path);
    free(prefix->real);
}

/* ---- places of datasets ---- */

int scr_place_of(const scr_prefix *prefix, const scr_dataset *d, scr_place *place)
{
    const bool in_folder = !d->scattered;
    scr_dataset_key(d, place->dataset);
    snprintf(place->map, sizeof place->map, "%s%s" FILO_MAP, in_folder ? "" : d->name,
             in_folder ? "" : "/");
    snprintf(place->cache_prefix, sizeof place->cache_prefix, "%s%s",
             in_folder ? d->name : "", in_folder ? "/" : "");
    place->folder =
        in_folder ? scr_path_join(prefix->real, d->name) : strdup(prefix->real);
    return place->folder ? 0 : -ENOMEM;
}

int scr_place_open(const scr_prefix *prefix, const char *name, int *folder,
                   kvtree_error *err)
{
    return folder_make_beneath(prefix->fd, name, 0, folder, err);
}

int scr_place_find_others(const scr_prefix *prefix, const char *name, int *found,
                          kvtree_error *err)
{
    char records[SCR_NAME_SIZE + 8];
    int64_t who = 0;
    snprintf(records, sizeof records, "%.*s/.scr/", SCR_NAME_SIZE - 1, name);
    if (prefix->job->rank == 0) who = others_put_below(prefix->fd, records, err);
    int rc = agree(prefix->job->world, who < 0 ? (int)who : 0, err);
    *found = who != 0;
    scr_job_share(prefix->job, found, sizeof *found);
    return rc;
}

int scr_place_read_map(const scr_prefix *prefix, const scr_dataset *d,
                       const scr_place *place, const filo_options *options, int *count,
                       filo_file **files, kvtree_error *err)
{
    filo_options own = {.dataset = NULL};
    if (options) own = *options;
    own.dataset = place->dataset;
    own.every = d->ranks != prefix->job->ranks;
    int ranks, rc = filo_read_map(prefix->job->world, place->folder, place->map, &ranks,
                                  count, files, &own, err);
    if (!rc && ranks != d->ranks)
        return err_set(err, FILO_DAMAGED, "its map is of %d ranks, its summary of %d",
                       ranks, d->ranks);
    return rc == -ENOENT ? FILO_DAMAGED : rc;
}

void scr_records_sweep(const scr_prefix *prefix, int folder, const char *name)
{
    kvtree_error err = {""};
    int fd = openat(folder, ".scr", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && batch_sweep(fd, &err) != 0)
        scr_say(prefix->job->report, SCR_MSG_PREFIX_TEMPORARY_FILES_KEPT, "%s/.scr: %s",
                name, err.text);
    io_close(&fd);
}

int scr_records_remove(const scr_prefix *prefix, const scr_dataset *d, kvtree_error *err)
{
    char hidden[SCR_NAME_SIZE + 8];
    snprintf(hidden, sizeof hidden, "%s/.scr", d->name);
    int rc = scr_records_remove_below(prefix->fd, hidden, err);
    if (!rc) beneath_rmdir(prefix->fd, d->name, NULL);
    return rc;
}
