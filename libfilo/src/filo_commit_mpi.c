/* SPDX-License-Identifier: BSD-3-Clause */
/* The step that changes a directory: an earlier map is removed, files are renamed, the
 * new map is written. */
#include "src/filo_private_mpi.h"

#include "common/io.h"
#include "src/filo_layout.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the name of the map ---- */

bool filo_map_owns(const filo_job *job, const char *name)
{
    char part[BENEATH_NAME_MAX];
    const char *map = job->map;
    for (size_t n = strcspn(name, "/");; n += 1 + strcspn(name + n + 1, "/")) {
        memcpy(part, name, n);
        part[n] = 0;
        if (kvtree_gather_owns(map, part) || filo_container_owns(map, part) ||
            strcmp(part, job->stage) == 0)
            return true;
        if (!name[n]) return false;
    }
}

/* The lower files of the map, X.<level>.<rank>.scr, have longer names than the root. */
int filo_map_check_name(filo_job *job)
{
    const size_t more = strlen(".32.2147483647.scr"), all = strlen(job->map);
    const size_t staged = strlen(job->stage) + strlen("/<16 hex digits>/8388607") +
                          strlen("/2147483647.2147483647");
    if (all + more < BENEATH_NAME_MAX && staged < BENEATH_NAME_MAX &&
        all - beneath_folder_length(job->map) + more <= NAME_MAX)
        return 0;
    return err_sys(&job->err, -ENAMETOOLONG, "name of the map \"%.60s...\"", job->map);
}

/* ---- names and map ---- */

/* Every failure from here on has this prefix in its text. */
static int commit_lacks_map(filo_job *job, int rc)
{
    return err_wrap(&job->err, rc, "%s may have no map now", job->folder);
}

/* Removes the root of an earlier map before the first file that it names is replaced. */
static int commit_remove_map(filo_job *job)
{
    struct stat st;
    if (job->rank != 0) return 0;
    int rc = beneath_stat(job->dir, job->map, &st, &job->err);
    job->unmapped = rc == -ENOENT;
    if (rc) return job->unmapped ? 0 : rc;
    rc = beneath_unlink_durable(job->dir, job->map, &job->err);
    job->unmapped = rc == 0;
    bool lost = rc && beneath_stat(job->dir, job->map, &st, NULL) == -ENOENT;
    return lost ? commit_lacks_map(job, rc) : rc;
}

static bool commit_has_container(const filo_job *job, uint64_t i,
                                 char name[BENEATH_NAME_MAX])
{
    struct stat st;
    return filo_container_name(job->map, i, name) == 0 &&
           beneath_stat(job->dir, name, &st, NULL) == 0 && S_ISREG(st.st_mode);
}

/* Rank 0: removes containers of an earlier flush that had more of them; no map names them
 * now. The last one is removed first, so that after an interruption the next flush finds
 * all remaining ones. */
static int commit_remove_surplus(filo_job *job, uint64_t containers)
{
    char name[BENEATH_NAME_MAX];
    uint64_t end = containers;
    int rc = 0;
    while (commit_has_container(job, end, name))
        end++;
    while (!rc && end > containers && commit_has_container(job, --end, name))
        rc = beneath_unlink(job->dir, name, &job->err);
    return rc;
}

/* Syncs the directories of this rank, and, on rank 0, the directory itself. libkvtree
 * syncs the directory of the map with each file of the map. */
static int commit_sync_folders(filo_job *job, const kvtree *folders, int64_t containers)
{
    int rc = filo_folders_sync(job, folders);
    if (rc || job->rank != 0) return rc;
    rc = commit_remove_surplus(job, (uint64_t)containers);
    if (rc) return rc;
    rc = io_fsync(job->dir);
    return rc ? err_sys(&job->err, rc, "fsync of directory %s", job->folder) : 0;
}

int filo_commit(filo_job *job, batch *stage, const kvtree *folders, const kvtree *entry,
                int64_t containers)
{
    int rc = filo_job_agree(job, commit_remove_map(job));
    if (rc) return rc;
    if (stage) rc = filo_job_agree(job, batch_commit(stage, &job->err));
    if (!rc) rc = filo_job_agree(job, commit_sync_folders(job, folders, containers));
    if (!rc) rc = filo_map_write_all(job, entry);
    if (!rc) filo_job_remove_stage(job);
    return rc ? commit_lacks_map(job, rc) : 0;
}
