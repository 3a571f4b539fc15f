/* SPDX-License-Identifier: BSD-3-Clause */
/* The prefix and the control folder. Control folder and caches lie in world-writable
 * places: they are created private, opened without following links, and refused when
 * somebody else owns them. */
#include "ops/folders.h"

#include "base/path.h"
#include "cache/base.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "ops/async_eviction.h"
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

/* A node that only plays its part (SCR_NODE_NAME) may share the control base with others
 * on the same machine; its own name keeps their records apart. */
static int control_name(const struct scr *scr, const char *owner, char name[700],
                        char *err)
{
    const char *simulated = scr->job.simulated_node;
    if (simulated && strlen(simulated) >= sizeof scr->job.node_name)
        return err_set(err, -EINVAL, "SCR_NODE_NAME=%.60s... is too long", simulated);
    if (simulated && strchr(simulated, '/'))
        return err_set(err, -EINVAL, "SCR_NODE_NAME=%s has a slash", simulated);
    snprintf(name, 700, "%s%s%s", owner, simulated ? "/" : "",
             simulated ? simulated : "");
    return 0;
}

int scr_control_open(struct scr *scr, char *err)
{
    char name[700];
    const scr_private where = {
        .what = "SCR_CNTL_BASE", .base = scr->set.cntl_base, .make = 1, .name = name};
    int rc = control_name(scr, scr->job.owner, name, err);
    return rc ? rc
              : scr_open_private(&where, &scr->cache.control, &scr->cache.control_fd,
                                 err);
}

void scr_control_remove(const struct scr *scr)
{
    char name[700];
    if (control_name(scr, scr->job.owner, name, NULL) == 0)
        scr_remove_private(scr->set.cntl_base, name);
}

void scr_control_close(struct scr *scr)
{
    io_close(&scr->cache.control_fd);
    free(scr->cache.control);
    scr->cache.control = NULL;
}

void scr_control_warn(const struct scr *scr, const char *reason)
{
    char line[SCR_ERR_TEXT + 400];
    snprintf(line, sizeof line,
             "warning: node %s: a control file in %s counts as lost: %s",
             scr->job.node_name, scr->cache.control, reason);
    scr_event_local(&scr->report, 0, line);
}

int scr_control_exists(const struct scr *scr, const char *owner)
{
    char name[700], below[SCR_BASE_NAME];
    struct stat st;
    if (control_name(scr, owner, name, NULL) != 0 ||
        scr_base_name(scr->set.cntl_base, name, below) < 0)
        return 0;
    char *path = scr_path_join(scr->set.cntl_base, below);
    int exists = path && lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
    free(path);
    return exists;
}

/* What others can do, or have done, where this job keeps its files. */
static void warn_of_base(const struct scr *scr, const char *base)
{
    char line[SCR_ERR_TEXT + 2 * SCR_DESC_PATH_SIZE], below[SCR_BASE_NAME];
    if (scr->job.rank == 0 && scr_base_is_unsafe(base))
        scr_say(&scr->report, 0,
                "warning: everybody may rename and remove what is in %s; set its sticky "
                "bit (chmod +t), or choose another place",
                base);
    if (scr->job.node_rank != 0 || scr_base_name(base, scr->job.owner, below) != 1)
        return;
    snprintf(line, sizeof line,
             "warning: node %s: %s/%s belongs to somebody else; files of this job are in "
             "%s/%s",
             scr->job.node_name, base, scr->job.user, base, below);
    scr_event_local(&scr->report, 0, line);
}

static void warn_of_bases(const struct scr *scr)
{
    warn_of_base(scr, scr->set.cntl_base);
    for (int i = 0; i < scr->cache.store_count; i++) {
        int known = strcmp(scr->cache.stores[i].path, scr->set.cntl_base) == 0;
        for (int k = 0; k < i; k++)
            known |= strcmp(scr->cache.stores[i].path, scr->cache.stores[k].path) == 0;
        if (!known) warn_of_base(scr, scr->cache.stores[i].path);
    }
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
    if (scr_claim(scr, err)) return scr_fail(&scr->report, SCR_ERR_CACHE, "%s", err);
    if (scr_stores_open(scr, err))
        return scr_fail(&scr->report, SCR_ERR_CACHE, "%s", err);
    warn_of_bases(scr);
    return SCR_SUCCESS;
}

int scr_is_removed(int fd)
{
    struct stat st;
    return fstat(fd, &st) != 0 ? errno == ESTALE : st.st_nlink == 0;
}

int scr_folders_gone(const struct scr *scr)
{
    int gone = scr->cache.lost || scr_claim_is_lost(scr);
    for (int i = 0; i < scr->cache.store_count; i++)
        gone = gone || scr_is_removed(scr->cache.stores[i].fd);
    return gone;
}

int scr_folders_renew(struct scr *scr, char *err)
{
    scr_removal_settle(scr);
    int rc = scr_claim_renew(scr, err);
    if (rc) return rc;
    rc = scr_stores_renew(scr, err);
    for (int i = 0; i < scr->cache.kept_count; i++)
        scr->cache.kept[i].unread = 1;
    rc = rc ? rc : scr_map_write(scr, err);
    return agree(scr->job.world, rc, err);
}

void scr_folders_ensure(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    int gone = scr_folders_gone(scr);
    MPI_Allreduce(MPI_IN_PLACE, &gone, 1, MPI_INT, MPI_MAX, scr->job.world);
    if (gone && scr_folders_renew(scr, err) != 0)
        scr_say(&scr->report, 0, "warning: folders that somebody has removed: %s", err);
}

void scr_folders_close(struct scr *scr)
{
    if (scr->cache.clean)
        MPI_Barrier(scr->job.node); /* nobody has a file there any more */
    if (scr->cache.clean && scr->job.node_rank == 0) scr_claim_remove(scr);
    io_close(&scr->prefix.fd);
    scr_stores_close(scr);
    scr_unclaim(scr);
    scr_control_close(scr);
    free(scr->prefix.path);
    free(scr->prefix.real);
}
