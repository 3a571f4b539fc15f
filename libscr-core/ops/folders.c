/* SPDX-License-Identifier: BSD-3-Clause */
/* The directories of a run: opening, renewal and closing, and the prefix folder. */
#include "ops/folders.h"

#include "base/path.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "prefix/flush_file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the folder at path where it is missing, but not those above it: a typing error
 * shall not begin from nothing. */
static int make_prefix(const char *path, char *err)
{
    char above[PATH_MAX];
    struct stat st;
    int fd;
    snprintf(above, sizeof above, "%s", path);
    *strrchr(above, '/') = 0;
    if (above[0] && stat(above, &st) != 0 && errno == ENOENT)
        return err_set(err, -ENOENT,
                       "prefix folder %.180s: the folder %.180s is missing; make it, or "
                       "correct SCR_PREFIX",
                       path, above);
    int rc = folder_make(path, 0777, &fd, err);
    if (!rc) io_close(&fd);
    return rc;
}

/* Rank 0 makes the prefix folder with .scr in it; every rank opens it. */
static int open_prefix(struct scr *scr, char *err)
{
    int rc = 0;
    char path[PATH_MAX] = "", cwd[PATH_MAX];
    if (scr->job.rank == 0) {
        char *given = scr_config_prefix(&scr->config);
        char *full = NULL;
        if (given && getcwd(cwd, sizeof cwd)) full = scr_path_absolute(cwd, given);
        if (!full || strlen(full) >= sizeof path)
            rc = err_sys(err, full ? -ENAMETOOLONG : -errno, "prefix folder");
        else
            strcpy(path, full);
        free(full);
        free(given);
        if (!rc) rc = make_prefix(path, err);
    }
    if (rc) path[0] = 0;
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, scr->job.world);
    if (!path[0]) return rc; /* rank 0 has the error */
    scr->prefix.path = strdup(path);
    scr->prefix.real = realpath(path, NULL);
    if (!scr->prefix.path || !scr->prefix.real)
        return err_sys(err, -errno, "prefix folder %s", path);
    scr->prefix.fd = open(scr->prefix.real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (scr->prefix.fd < 0) return err_sys(err, -errno, "prefix folder %s", path);
    if (scr->job.rank != 0) return 0;
    int rc_made = beneath_make_durable(scr->prefix.fd, ".scr", 0777, err);
    return rc_made ? err_wrap(err, rc_made, "prefix folder %s", path) : 0;
}

int scr_folders_open(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    int rc = open_prefix(scr, err);
    if (agree(scr->job.world, rc, err))
        return scr_fail(&scr->report, SCR_ERR_PREFIX, "%s", err);
    rc = scr_job_find_names(&scr->job, &scr->config, scr->prefix.real, err);
    if (agree(scr->job.world, rc, err))
        return scr_fail(&scr->report, SCR_ERR_CONFIG, "%s", err);
    scr->cache.prefix = scr->prefix.real;
    if (scr_job_lock_take(&scr->cache, &scr->restart.elsewhere, err))
        return scr_fail(&scr->report, SCR_ERR_CACHE, "%s", err);
    if (scr_stores_open(&scr->cache, err))
        return scr_fail(&scr->report, SCR_ERR_CACHE, "%s", err);
    scr_control_warn_of_bases(&scr->cache);
    return SCR_SUCCESS;
}

/* Collective. Whether the newest checkpoint, or an output, is only in the cache. */
static bool folders_have_unsaved(struct scr *scr)
{
    const int newest = scr_cached_newest(&scr->cache);
    const scr_cached *c = scr_cached_next(&scr->cache, 0);
    bool unsaved = false;
    for (; c && !unsaved; c = scr_cached_next(&scr->cache, c->d.id))
        unsaved = (c->d.id == newest || c->d.output) && !scr_cache_is_saved(scr, c->d.id);
    return unsaved;
}

/* Collective. Another run has the directories now: what is in them belongs to it, and
 * this run's records of them are void. */
static void folders_abandon(struct scr *scr)
{
    scr_flush_stop(scr, 0);
    scr->cache.unsaved = folders_have_unsaved(scr);
    scr_cache_abandon(&scr->cache);
}

int scr_folders_renew(struct scr *scr, char *err)
{
    int rc = scr_cache_renew(&scr->cache, err);
    if (rc == -EBUSY && !scr->cache.lost) folders_abandon(scr);
    return rc;
}

void scr_folders_ensure(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    int gone = scr_cache_is_gone(&scr->cache);
    MPI_Allreduce(MPI_IN_PLACE, &gone, 1, MPI_INT, MPI_MAX, scr->job.world);
    if (gone && scr_folders_renew(scr, err) != 0)
        scr_say(&scr->report, 0, "warning: folders that somebody has removed: %s", err);
}

void scr_folders_close(struct scr *scr)
{
    if (scr->cache.clean)
        MPI_Barrier(scr->job.node); /* nobody has a file there any more */
    if (scr->cache.clean && scr->job.node_rank == 0) scr_job_lock_remove(&scr->cache);
    io_close(&scr->prefix.fd);
    scr_stores_close(&scr->cache);
    scr_job_lock_release(&scr->cache);
    scr_control_close(&scr->cache);
    free(scr->prefix.path);
    free(scr->prefix.real);
}
