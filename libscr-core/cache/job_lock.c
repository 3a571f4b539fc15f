/* SPDX-License-Identifier: BSD-3-Clause */
/* Ownership of the control and cache directories on each node, whose names contain user
 * and job id. Within one job several calculations may run, in turn or at the same time,
 * each with its own prefix directory. The first one gets these directories and records
 * its prefix directory there; others use directories beside them. Two runs of one
 * calculation would remove each other's files: the second one waits for the first, which
 * may be about to exit, and fails after some seconds. */
#include "cache/cache.h"

#include "cache/base.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "config/identity.h"
#include "report/wait.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_NAME "run.lock"

/* Seconds that an earlier run may take to end: a killed one needs a moment. */
enum { PATIENCE = 10 }; /* seconds */

/* ---- the lock ---- */

/* Takes a lock that belongs to the process, not to an open file: it ends with the run,
 * even if child processes live on. *holder: the process that holds it, if the result is
 * -EAGAIN. */
static int lock_try(int fd, pid_t *holder)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &lock) == 0) return 0;
    if (errno != EAGAIN && errno != EACCES) return -errno;
    *holder = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
    return -EAGAIN;
}

/* Reopens the control directory if it was removed: the previous run removes it when it
 * ends, which may be at any moment. */
static int lock_reopen_directory(scr_cache *cache, kvtree_error *err)
{
    if (!scr_is_removed(cache->control_fd)) return 0;
    scr_control_close(cache);
    return scr_control_open(cache, err);
}

/* Makes one attempt; -EAGAIN: the next one may succeed. */
static int lock_attempt(scr_cache *cache, scr_record_owner *owner, pid_t *holder,
                        kvtree_error *err)
{
    int rc = lock_reopen_directory(cache, err);
    if (rc) return rc;
    rc = beneath_open(cache->control_fd, LOCK_NAME, O_RDWR | O_CREAT, 0600,
                      &cache->lock_fd, err);
    if (rc) return rc == -ENOENT ? -EAGAIN : rc;
    rc = scr_record_read(cache, owner, err);
    if (rc || *owner == SCR_RECORD_THEIRS) return rc;
    rc = lock_try(cache->lock_fd, holder);
    if (!rc && scr_is_removed(cache->lock_fd)) rc = -EAGAIN;
    if (rc == -EAGAIN) io_close(&cache->lock_fd);
    if (rc && rc != -EAGAIN) err_sys(err, rc, "lock %s/" LOCK_NAME, cache->control);
    return rc;
}

/* Repeats the attempt for up to patience seconds. */
static int lock_retry(scr_cache *cache, double patience, scr_record_owner *owner,
                      kvtree_error *err)
{
    const struct timespec nap = {0, 50000000};
    const double start = scr_clock();
    bool reported = false;
    pid_t holder = 0;
    int rc;
    while ((rc = lock_attempt(cache, owner, &holder, err)) == -EAGAIN &&
           scr_clock() < start + patience) {
        if (!reported && scr_clock() > start + SCR_WAIT_SECONDS) {
            scr_say(cache->job->report, SCR_MSG_CACHE_LOCK_WAIT,
                    "waits for another run, process %ld, that uses %s", (long)holder,
                    cache->control);
            reported = true;
        }
        nanosleep(&nap, NULL);
    }
    if (rc != -EAGAIN) return rc;
    return err_set(err, -EBUSY,
                   "another run, process %ld, uses %s; wait for its end, or give this "
                   "one a job id of its own (SCR_JOB_ID)",
                   (long)holder, cache->control);
}

/* Takes the lock of the control directory, unless another calculation owns it. */
static int lock_take(scr_cache *cache, double patience, scr_record_owner *owner,
                     kvtree_error *err)
{
    int rc = lock_retry(cache, patience, owner, err);
    if (rc || *owner == SCR_RECORD_THEIRS) return rc;
    rc = scr_record_read(cache, owner, err); /* may have changed before the lock */
    if (rc || *owner != SCR_RECORD_DAMAGED) return rc;
    scr_control_warn(cache, err->text);
    *owner = SCR_RECORD_NONE;
    return 0;
}

/* ---- obstacles ---- */

static bool lock_is_file_of_run(const char *name)
{
    size_t n = strlen(name);
    return strncmp(name, "filemap", 7) == 0 || strncmp(name, "transfer_", 9) == 0 ||
           strcmp(name, SCR_RECORD_NAME) == 0 || strcmp(name, LOCK_NAME) == 0 ||
           (name[0] == '.' && n > 4 && strcmp(name + n - 4, ".tmp") == 0);
}

static bool lock_is_obstacle(const scr_cache *cache, const char *name)
{
    struct stat st;
    return lock_is_file_of_run(name) &&
           fstatat(cache->control_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           !(S_ISREG(st.st_mode) && st.st_nlink == 1);
}

/* Removes directories and links that are in the place of files: the control directory is
 * private and has only regular files with one name. Such a file counts as lost. */
static void lock_remove_obstacles(const scr_cache *cache)
{
    DIR *stream = beneath_list(cache->control_fd);
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL) {
        kvtree_error err = {""};
        if (strncmp(item->d_name, SCR_ONCE_PREFIX, strlen(SCR_ONCE_PREFIX)) == 0)
            unlinkat(cache->control_fd, item->d_name, 0);
        if (!lock_is_obstacle(cache, item->d_name)) continue;
        err_set(&err, 0, "%s is not a regular file, or has another name, and is removed",
                item->d_name);
        scr_control_warn(cache, err.text);
        if (beneath_unlink(cache->control_fd, item->d_name, NULL) != 0 &&
            beneath_remove_tree(cache->control_fd, item->d_name, &err) != 0)
            scr_control_warn(cache, err.text);
    }
    if (stream) closedir(stream);
}

/* ---- which directories ---- */

/* Local. Opens the control directory of job->owner. The leader of the node reads its
 * owner, takes the lock, and makes it the directory of this calculation. The record of
 * this is written at once: if two runs begin together, each may have the lock on a node
 * that the other waits for, and the record shows that waiting is useless. */
static int lock_open(scr_cache *cache, double patience, scr_record_owner *owner,
                     kvtree_error *err)
{
    *owner = SCR_RECORD_NONE;
    int rc = scr_control_open(cache, err);
    if (!rc && cache->job->node_rank == 0) {
        lock_remove_obstacles(cache);
        rc = lock_take(cache, patience, owner, err);
        if (!rc && *owner == SCR_RECORD_NONE) {
            rc = scr_record_write(cache, err);
            if (!rc) *owner = SCR_RECORD_MADE;
        }
    }
    return rc ? err_wrap(err, rc, "node %s", cache->job->node_name) : 0;
}

/* Collective. Whether here is true on the leader of any node. */
static bool lock_is_any(const scr_cache *cache, bool here)
{
    return scr_job_max(cache->job, cache->job->node_rank == 0 && here);
}

/* Local, on the leader. Whether the directories of job->owner, which this run does not
 * use, belong to this calculation. *newest: the newest checkpoint in them. */
static bool lock_is_left_behind(scr_cache *cache, int *newest)
{
    scr_record_owner owner = SCR_RECORD_NONE;
    if (cache->control_fd < 0 && (!scr_control_exists(cache, cache->job->owner) ||
                                  scr_control_open(cache, NULL) != 0))
        return false;
    if (scr_record_read(cache, &owner, NULL) != 0 || owner != SCR_RECORD_OURS)
        return false;
    *newest = scr_filemaps_newest(cache);
    return true;
}

/* Collective. Reports checkpoints of this calculation that cannot be used with these
 * nodes: SCR_Have_restart fails unless it finds something newer. */
static void lock_report_left_behind(scr_cache *cache, const char *beside, int *elsewhere)
{
    int newest = 0;
    int ours = cache->job->node_rank == 0 && lock_is_left_behind(cache, &newest);
    ours = scr_job_sum(cache->job, ours);
    *elsewhere = scr_job_max(cache->job, newest);
    if (ours)
        scr_say(cache->job->report, SCR_MSG_CACHE_ELSEWHERE_UNUSED,
                "datasets of this calculation on %d nodes, in %s, are not used: on other "
                "nodes that directory belongs to another prefix directory; to restart "
                "from them, end this run, remove %s on all nodes, and start without the "
                "other nodes",
                ours, cache->job->owner, beside);
}

/* Local. Removes a record that lock_open has written. */
static void lock_take_back(const scr_cache *cache, scr_record_owner owner)
{
    if (owner == SCR_RECORD_MADE) unlinkat(cache->control_fd, SCR_RECORD_NAME, 0);
}

/* Collective, agreed. Uses the directories beside those of another calculation. */
static int lock_go_beside(scr_cache *cache, const char *beside, scr_record_owner *owner,
                          int *elsewhere, kvtree_error *err)
{
    lock_take_back(cache, *owner);
    lock_report_left_behind(cache, beside, elsewhere);
    io_close(&cache->lock_fd);
    scr_control_close(cache);
    strcpy(cache->job->owner, beside);
    scr_say(
        cache->job->report, SCR_MSG_CACHE_SHARED_JOB,
        "the cache of job %s is that of another prefix directory; this run uses %s in it",
        cache->job->id, cache->job->owner);
    int rc = lock_open(cache, PATIENCE, owner, err);
    if (!rc && *owner == SCR_RECORD_THEIRS)
        rc = err_set(err, -EBUSY, "%s belongs to another prefix directory",
                     cache->control);
    return agree(cache->job->world, rc, err);
}

/* Collective, agreed. Chooses and opens the control directory. */
static int lock_choose(scr_cache *cache, scr_record_owner *owner, int *elsewhere,
                       kvtree_error *err)
{
    char beside[SCR_OWNER_SIZE], name[SCR_JOB_ID_SIZE];
    const scr_job *job = cache->job;
    scr_identity_prefix(cache->prefix, name);
    snprintf(beside, sizeof beside, "%s/scr.%s.%s", job->user, job->id, name);
    const bool leads = job->node_rank == 0;
    if (!lock_is_any(cache, leads && scr_control_exists(cache, beside))) {
        int rc = agree(job->world, lock_open(cache, PATIENCE, owner, err), err);
        if (rc || !lock_is_any(cache, *owner == SCR_RECORD_THEIRS)) return rc;
    }
    return lock_go_beside(cache, beside, owner, elsewhere, err);
}

int scr_job_lock_take(scr_cache *cache, int *elsewhere, kvtree_error *err)
{
    scr_record_owner owner = SCR_RECORD_NONE;
    *elsewhere = 0;
    int rc = lock_choose(cache, &owner, elsewhere, err);
    if (rc) lock_take_back(cache, owner);
    if (rc) return rc;
    /* the leader has the lock now, so its directory stays */
    return agree(cache->job->world, lock_reopen_directory(cache, err), err);
}

/* ---- while it runs ---- */

void scr_job_lock_touch(const scr_cache *cache)
{
    if (cache->job->node_rank != 0 || cache->lost) return;
    futimens(cache->lock_fd, NULL);
    utimensat(cache->control_fd, SCR_RECORD_NAME, NULL, AT_SYMLINK_NOFOLLOW);
}

static bool lock_is_held(const scr_cache *cache)
{
    return !scr_is_removed(cache->control_fd) && !scr_is_removed(cache->lock_fd);
}

bool scr_job_lock_is_lost(const scr_cache *cache)
{
    struct stat st;
    if (cache->job->node_rank != 0) return scr_is_removed(cache->control_fd);
    return !lock_is_held(cache) ||
           fstatat(cache->control_fd, SCR_RECORD_NAME, &st, AT_SYMLINK_NOFOLLOW) != 0;
}

/* Opens the directory again; after an error the old one stays open. */
static int lock_replace(scr_cache *cache, scr_record_owner *owner, kvtree_error *err)
{
    scr_cache fresh = *cache;
    fresh.control = NULL;
    fresh.control_fd = fresh.lock_fd = -1;
    int rc = lock_open(&fresh, 0, owner, err);
    cache->recorded = fresh.recorded;
    if (!rc && *owner == SCR_RECORD_THEIRS)
        rc = err_set(err, -EBUSY, "node %s: %s belongs to another prefix directory now",
                     cache->job->node_name, fresh.control);
    if (!rc) {
        const scr_cache old = *cache;
        *cache = fresh;
        fresh = old;
    }
    io_close(&fresh.lock_fd);
    scr_control_close(&fresh);
    return rc;
}

/* On the leader of a node. As long as the lock is held and its file exists, no other run
 * uses the directory. */
static int lock_renew_leader(scr_cache *cache, kvtree_error *err)
{
    scr_record_owner owner = SCR_RECORD_NONE;
    int rc = lock_is_held(cache) ? scr_record_write(cache, err)
                                 : lock_replace(cache, &owner, err);
    if (rc) return rc;
    scr_fail_local(
        cache->job->report, SCR_MSG_CONTROL_DIRECTORY_RECREATED, 0,
        "node %s: %s of this run, or files in it, were removed; they are recreated",
        cache->job->node_name, cache->control);
    return 0;
}

int scr_job_lock_renew(scr_cache *cache, kvtree_error *err)
{
    const bool is_lost = scr_job_lock_is_lost(cache), leads = cache->job->node_rank == 0;
    scr_record_owner unused;
    int rc = is_lost && leads ? lock_renew_leader(cache, err) : 0, busy = rc == -EBUSY;
    rc = agree(cache->job->world, rc, err);
    if (rc) return lock_is_any(cache, busy) ? -EBUSY : rc;
    /* the leaders have the locks now, so the directories are ours */
    rc = is_lost && !leads ? lock_replace(cache, &unused, err) : 0;
    return agree(cache->job->world, rc, err);
}

/* ---- the end ---- */

void scr_job_lock_remove(scr_cache *cache)
{
    DIR *stream = beneath_list(cache->control_fd);
    const struct dirent *item;
    if (!stream) return;
    while ((item = readdir(stream)) != NULL)
        if (lock_is_file_of_run(item->d_name) && strcmp(item->d_name, LOCK_NAME) != 0)
            unlinkat(cache->control_fd, item->d_name, 0);
    closedir(stream);
    /* this run still holds the lock, so no other run can intervene */
    unlinkat(cache->control_fd, LOCK_NAME, 0);
    scr_control_remove(cache);
}

void scr_job_lock_release(scr_cache *cache)
{
    io_close(&cache->lock_fd);
}
