/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose the control and the cache folder of a node are. Both go by user and job id, but
 * within one job several calculations may run, one after the other or at the same time,
 * each with a prefix folder of its own. The first one gets the folders, and leaves its
 * prefix folder on record there; others find that, and take folders beside them. Two runs
 * of one calculation would remove each other's files: the second one waits for the end of
 * the first, which may be dying, and then gives up. */
#include "cache/cache.h"

#include "cache/catalog.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "config/identity.h"
#include "report/wait.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_NAME "run.lock"
#define RECORD_NAME "prefix.scriinfo"

/* How long a run before this one may take to end: a killed one needs a moment. */
enum { PATIENCE = 10 }; /* seconds */

/* ---- the record ---- */

enum owner { NOBODY, OURS, THEIRS, DAMAGED };

/* Keeps the stores that the record names: what earlier runs left in them is found. */
static int keep_stores(scr_cache *cache, const kvtree *record)
{
    kvtree_delete(&cache->recorded);
    cache->recorded = kvtree_new();
    return cache->recorded ? kvtree_merge(cache->recorded, record) : -ENOMEM;
}

/* A damaged record names nobody; err gives the reason. */
static int read_record(scr_cache *cache, enum owner *owner, char *err)
{
    char *prefix;
    kvtree *record = kvtree_new();
    int rc = record ? kvtree_file_read(cache->control_fd, RECORD_NAME, record, err)
                    : err_set(err, -ENOMEM, "no memory");
    *owner = rc == -EBADMSG ? DAMAGED : NOBODY;
    if (rc == -ENOENT || rc == -EBADMSG)
        rc = 0;
    else if (!rc && kvtree_util_get_str(record, "PREFIX", &prefix) == 0)
        *owner = strcmp(prefix, cache->prefix) == 0 ? OURS : THEIRS;
    if (!rc && keep_stores(cache, *owner == OURS ? record : NULL) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    kvtree_delete(&record);
    return rc;
}

static int write_record(const scr_cache *cache, char *err)
{
    kvtree *record = kvtree_new();
    int rc = kvtree_util_set_str(record, "PREFIX", cache->prefix);
    for (int i = 0; !rc && i < cache->store_count; i++)
        if (!kvtree_set_kv(record, "STORE", cache->stores[i].path)) rc = -ENOMEM;
    rc = rc ? err_set(err, rc, "no memory")
            : kvtree_file_write(cache->control_fd, RECORD_NAME, record, err);
    kvtree_delete(&record);
    return rc;
}

int scr_job_lock_record_stores(scr_cache *cache, char *err)
{
    bool known = kvtree_size(kvtree_get(cache->recorded, "STORE")) == cache->store_count;
    for (int i = 0; known && i < cache->store_count; i++)
        known = kvtree_get_kv(cache->recorded, "STORE", cache->stores[i].path) != NULL;
    return known ? 0 : write_record(cache, err);
}

/* ---- the lock ---- */

/* Locks of processes, not of open files: they end with the run, whatever children it has.
 * *holder: who has it, where the result is -EAGAIN. */
static int try_lock(int fd, pid_t *holder)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &lock) == 0) return 0;
    if (errno != EAGAIN && errno != EACCES) return -errno;
    *holder = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
    return -EAGAIN;
}

/* The run before this one removes the folder when it ends well, which may be just now. */
static int open_again(scr_cache *cache, char *err)
{
    if (!scr_is_removed(cache->control_fd)) return 0;
    scr_control_close(cache);
    return scr_control_open(cache, err);
}

/* One attempt; -EAGAIN when there should be another one. */
static int lock_once(scr_cache *cache, enum owner *owner, pid_t *holder, char *err)
{
    int rc = open_again(cache, err);
    if (!rc)
        rc = beneath_open(cache->control_fd, LOCK_NAME, O_RDWR | O_CREAT, 0600,
                          &cache->lock_fd, err);
    if (rc == -ENOENT) return -EAGAIN;
    rc = rc ? rc : read_record(cache, owner, err);
    if (rc || *owner == THEIRS) return rc;
    rc = try_lock(cache->lock_fd, holder);
    if (!rc && scr_is_removed(cache->lock_fd)) rc = -EAGAIN;
    if (rc == -EAGAIN) io_close(&cache->lock_fd);
    if (rc && rc != -EAGAIN) err_sys(err, rc, "lock %s/" LOCK_NAME, cache->control);
    return rc;
}

/* Takes the lock of the control folder, unless that is another calculation's. patience:
 * in seconds. */
static int lock(scr_cache *cache, double patience, enum owner *owner, char *err)
{
    const struct timespec nap = {0, 50000000};
    double until = MPI_Wtime() + patience;
    pid_t holder = 0;
    int rc, told = 0;
    while ((rc = lock_once(cache, owner, &holder, err)) == -EAGAIN &&
           MPI_Wtime() < until) {
        if (!told && MPI_Wtime() > until - patience + SCR_WAIT_SECONDS) {
            scr_say(cache->job->report, 0,
                    "waits for another run, process %ld, that uses %s", (long)holder,
                    cache->control);
            told = 1;
        }
        nanosleep(&nap, NULL);
    }
    if (rc == 0 && *owner == THEIRS) return 0;
    if (rc == -EAGAIN)
        return err_set(
            err, -EBUSY,
            "another run, process %ld, uses %s; wait for its end, or give this "
            "one a job id of its own (SCR_JOB_ID)",
            (long)holder, cache->control);
    if (rc) return rc;
    rc = read_record(cache, owner, err); /* the one before may be new */
    if (*owner != DAMAGED) return rc;
    scr_control_warn(cache, err);
    *owner = NOBODY;
    return rc;
}

static void unlock(scr_cache *cache)
{
    io_close(&cache->lock_fd);
}

/* ---- what is in the way ---- */

static bool is_ours(const char *name)
{
    size_t n = strlen(name);
    return strncmp(name, "filemap", 7) == 0 || strncmp(name, "transfer_", 9) == 0 ||
           strcmp(name, RECORD_NAME) == 0 || strcmp(name, LOCK_NAME) == 0 ||
           (name[0] == '.' && n > 4 && strcmp(name + n - 4, ".tmp") == 0);
}

/* The control folder is private and has regular files of one name only: a folder or a
 * link in the place of one is removed, and the file counts as lost. */
static void clear_way(const scr_cache *cache)
{
    DIR *stream = beneath_list(cache->control_fd);
    const struct dirent *item;
    struct stat st;
    while (stream && (item = readdir(stream)) != NULL) {
        char err[SCR_ERR_TEXT] = "";
        if (!is_ours(item->d_name) ||
            fstatat(cache->control_fd, item->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            (S_ISREG(st.st_mode) && st.st_nlink == 1))
            continue;
        err_set(err, 0, "%s is no regular file, or has another name, and is removed",
                item->d_name);
        scr_control_warn(cache, err);
        if (beneath_unlink(cache->control_fd, item->d_name, NULL) != 0 &&
            beneath_remove_tree(cache->control_fd, item->d_name, err) != 0)
            scr_control_warn(cache, err);
    }
    if (stream) closedir(stream);
}

/* ---- which folders ---- */

/* Folders beside those of another calculation. */
static void other_owner(const scr_cache *cache, char owner[SCR_OWNER_SIZE])
{
    char name[SCR_JOB_ID_SIZE];
    scr_identity_prefix(cache->prefix, name);
    snprintf(owner, SCR_OWNER_SIZE, "%s/scr.%s.%s", cache->job->user, cache->job->id,
             name);
}

/* Local: opens the control folder of the owner's name and, on the leader of the node,
 * looks whose it is. */
static int look(scr_cache *cache, double patience, enum owner *owner, char *err)
{
    *owner = NOBODY;
    int rc = scr_control_open(cache, err);
    if (!rc && cache->job->node_rank == 0) clear_way(cache);
    if (!rc && cache->job->node_rank == 0) rc = lock(cache, patience, owner, err);
    return rc ? err_wrap(err, rc, "node %s", cache->job->node_name) : 0;
}

/* Collective, agreed. 1: some node has folders of this calculation beside others'. */
static int has_other(scr_cache *cache, const char *owner)
{
    int has = cache->job->node_rank == 0 && scr_control_exists(cache, owner);
    MPI_Allreduce(MPI_IN_PLACE, &has, 1, MPI_INT, MPI_MAX, cache->job->world);
    return has;
}

/* Local, on the leader. Opens the folders that this run does not use, if they are there.
 * 1: they are those of this calculation; *newest: the checkpoint that is there. */
static int look_unused(scr_cache *cache, int *newest)
{
    enum owner owner = NOBODY;
    *newest = 0;
    if (cache->control_fd < 0 && (!scr_control_exists(cache, cache->job->owner) ||
                                  scr_control_open(cache, NULL) != 0))
        return 0;
    if (read_record(cache, &owner, NULL) != 0 || owner != OURS) return 0;
    *newest = scr_filemaps_newest(cache);
    return 1;
}

/* Collective. What is in the caches of this calculation cannot be used with these nodes:
 * SCR_Have_restart fails unless it has something newer. */
static void pass_over(scr_cache *cache, const char *beside, int *elsewhere)
{
    int newest = 0, ours = cache->job->node_rank == 0 && look_unused(cache, &newest);
    MPI_Allreduce(MPI_IN_PLACE, &ours, 1, MPI_INT, MPI_SUM, cache->job->world);
    MPI_Allreduce(&newest, elsewhere, 1, MPI_INT, MPI_MAX, cache->job->world);
    if (ours)
        scr_say(cache->job->report, 0,
                "warning: what %d nodes have in %s for this calculation is not used: on "
                "other "
                "nodes that folder belongs to another prefix folder. It stays there; to "
                "begin "
                "with it, end this run, remove %s on all nodes, and start without those "
                "other "
                "nodes",
                ours, cache->job->owner, beside);
}

/* Collective, agreed. Goes over to the folders beside. */
static int go_beside(scr_cache *cache, const char *beside, enum owner *owner,
                     int *elsewhere, char *err)
{
    pass_over(cache, beside, elsewhere);
    unlock(cache);
    scr_control_close(cache);
    strcpy(cache->job->owner, beside);
    scr_say(
        cache->job->report, 1,
        "the cache of job %s is that of another prefix folder; this run uses %s in it",
        cache->job->id, cache->job->owner);
    int rc = look(cache, PATIENCE, owner, err);
    if (!rc && *owner == THEIRS)
        rc = err_set(err, -EBUSY, "%s belongs to another prefix folder", cache->control);
    return agree(cache->job->world, rc, err);
}

/* Collective. 1: on some node the folders are another calculation's. */
static int has_theirs(const scr_cache *cache, enum owner owner)
{
    int has = cache->job->node_rank == 0 && owner == THEIRS;
    MPI_Allreduce(MPI_IN_PLACE, &has, 1, MPI_INT, MPI_MAX, cache->job->world);
    return has;
}

int scr_job_lock_take(scr_cache *cache, int *elsewhere, char *err)
{
    char beside[SCR_OWNER_SIZE];
    enum owner owner;
    *elsewhere = 0;
    other_owner(cache, beside);
    int other = has_other(cache, beside);
    int rc =
        other ? 0 : agree(cache->job->world, look(cache, PATIENCE, &owner, err), err);
    if (rc) return rc;
    if (!other) other = has_theirs(cache, owner);
    rc = other ? go_beside(cache, beside, &owner, elsewhere, err) : 0;
    if (rc) return rc;
    if (cache->job->node_rank == 0 && owner == NOBODY) rc = write_record(cache, err);
    rc = agree(cache->job->world, rc, err);
    /* the leader has the lock now: its folder stays */
    return rc ? rc : agree(cache->job->world, open_again(cache, err), err);
}

/* ---- while it runs ---- */

void scr_job_lock_touch(const scr_cache *cache)
{
    if (cache->job->node_rank != 0 || cache->lost) return;
    futimens(cache->lock_fd, NULL);
    utimensat(cache->control_fd, RECORD_NAME, NULL, AT_SYMLINK_NOFOLLOW);
}

bool scr_job_lock_is_lost(const scr_cache *cache)
{
    struct stat st;
    return scr_is_removed(cache->control_fd) ||
           (cache->job->node_rank == 0 &&
            (scr_is_removed(cache->lock_fd) ||
             fstatat(cache->control_fd, RECORD_NAME, &st, AT_SYMLINK_NOFOLLOW) != 0));
}

/* What a process has of the control folder. */
struct hold {
    char *control;
    int control_fd, lock_fd;
};

static struct hold let_go(scr_cache *cache)
{
    struct hold old = {cache->control, cache->control_fd, cache->lock_fd};
    cache->control = NULL;
    cache->control_fd = cache->lock_fd = -1;
    return old;
}

/* Keeps the new one, or after an error the old one. */
static int settle(scr_cache *cache, struct hold old, int rc)
{
    if (rc) {
        const struct hold new = let_go(cache);
        cache->control = old.control;
        cache->control_fd = old.control_fd;
        cache->lock_fd = old.lock_fd;
        old = new;
    }
    io_close(&old.control_fd);
    io_close(&old.lock_fd);
    free(old.control);
    return rc;
}

static void tell_renewed(const scr_cache *cache)
{
    char line[SCR_ERR_TEXT + 400];
    snprintf(line, sizeof line,
             "warning: node %s: somebody has removed %s of this run, or files in it, "
             "which are made again",
             cache->job->node_name, cache->control);
    scr_event_local(cache->job->report, 0, line);
}

/* The leader of a node. While the lock is held and can be found nobody else is there. */
static int renew_leader(scr_cache *cache, char *err)
{
    enum owner owner = NOBODY;
    int rc = 0,
        open = !scr_is_removed(cache->control_fd) && !scr_is_removed(cache->lock_fd);
    if (!open) {
        const struct hold old = let_go(cache);
        rc = look(cache, 0, &owner, err);
        if (!rc && owner == THEIRS)
            rc = err_set(err, -EBUSY, "node %s: %s belongs to another prefix folder now",
                         cache->job->node_name, cache->control);
        rc = settle(cache, old, rc);
    }
    if (!rc && owner == NOBODY) rc = write_record(cache, err);
    if (!rc) tell_renewed(cache);
    return rc;
}

static int renew_other(scr_cache *cache, char *err)
{
    const struct hold old = let_go(cache);
    return settle(cache, old, scr_control_open(cache, err));
}

int scr_job_lock_renew(scr_cache *cache, char *err)
{
    int lost = scr_job_lock_is_lost(cache), leader = cache->job->node_rank == 0;
    int rc = lost && leader ? renew_leader(cache, err) : 0, busy = rc == -EBUSY;
    rc = agree(cache->job->world, rc, err);
    if (rc) {
        MPI_Allreduce(MPI_IN_PLACE, &busy, 1, MPI_INT, MPI_MAX, cache->job->world);
        return busy ? -EBUSY : rc;
    }
    /* the leaders have the locks now: the folders are ours */
    return agree(cache->job->world, lost && !leader ? renew_other(cache, err) : 0, err);
}

/* ---- the end ---- */

void scr_job_lock_remove(scr_cache *cache)
{
    DIR *stream = beneath_list(cache->control_fd);
    const struct dirent *item;
    if (!stream) return;
    while ((item = readdir(stream)) != NULL)
        if (is_ours(item->d_name) && strcmp(item->d_name, LOCK_NAME) != 0)
            unlinkat(cache->control_fd, item->d_name, 0);
    closedir(stream);
    unlinkat(cache->control_fd, LOCK_NAME,
             0); /* we have it still: nobody is in between */
    scr_control_remove(cache);
}

void scr_job_lock_release(scr_cache *cache)
{
    unlock(cache);
}
