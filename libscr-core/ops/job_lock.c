/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose the control and the cache folder of a node are. Both go by user and job id, but
 * within one job several calculations may run, one after the other or at the same time,
 * each with a prefix folder of its own. The first one gets the folders, and leaves its
 * prefix folder on record there; others find that, and take folders beside them. Two runs
 * of one calculation would remove each other's files: the second one waits for the end of
 * the first, which may be dying, and then gives up. */
#include "ops/folders.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "config/identity.h"
#include "ops/catalog.h"
#include "prefix/flush_file.h"
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

/* A damaged record tells nothing; err says why. */
static int read_record(const struct scr *scr, int folder, enum owner *owner, char *err)
{
    char *prefix;
    kvtree *record = kvtree_new();
    int rc = record ? kvtree_file_read(folder, RECORD_NAME, record, err)
                    : err_set(err, -ENOMEM, "no memory");
    *owner = rc == -EBADMSG ? DAMAGED : NOBODY;
    if (rc == -ENOENT || rc == -EBADMSG)
        rc = 0;
    else if (!rc && kvtree_util_get_str(record, "PREFIX", &prefix) == 0)
        *owner = strcmp(prefix, scr->prefix.real) == 0 ? OURS : THEIRS;
    kvtree_delete(&record);
    return rc;
}

static int write_record(const struct scr *scr, char *err)
{
    kvtree *record = kvtree_new();
    int rc = kvtree_util_set_str(record, "PREFIX", scr->prefix.real);
    rc = rc ? err_set(err, rc, "no memory")
            : kvtree_file_write(scr->cache.control_fd, RECORD_NAME, record, err);
    kvtree_delete(&record);
    return rc;
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
static int open_again(struct scr *scr, char *err)
{
    if (!scr_is_removed(scr->cache.control_fd)) return 0;
    scr_control_close(scr);
    return scr_control_open(scr, err);
}

/* One attempt; -EAGAIN when there should be another one. */
static int lock_once(struct scr *scr, enum owner *owner, pid_t *holder, char *err)
{
    int rc = open_again(scr, err);
    if (!rc)
        rc = beneath_open(scr->cache.control_fd, LOCK_NAME, O_RDWR | O_CREAT, 0600,
                          &scr->cache.lock_fd, err);
    if (rc == -ENOENT) return -EAGAIN;
    rc = rc ? rc : read_record(scr, scr->cache.control_fd, owner, err);
    if (rc || *owner == THEIRS) return rc;
    rc = try_lock(scr->cache.lock_fd, holder);
    if (!rc && scr_is_removed(scr->cache.lock_fd)) rc = -EAGAIN;
    if (rc == -EAGAIN) io_close(&scr->cache.lock_fd);
    if (rc && rc != -EAGAIN) err_sys(err, rc, "lock %s/" LOCK_NAME, scr->cache.control);
    return rc;
}

/* Takes the lock of the control folder, unless that is another calculation's. patience:
 * in seconds. */
static int lock(struct scr *scr, double patience, enum owner *owner, char *err)
{
    const struct timespec nap = {0, 50000000};
    double until = MPI_Wtime() + patience;
    pid_t holder = 0;
    int rc, told = 0;
    while ((rc = lock_once(scr, owner, &holder, err)) == -EAGAIN && MPI_Wtime() < until) {
        if (!told && MPI_Wtime() > until - patience + SCR_WAIT_SECONDS) {
            scr_say(&scr->report, 0, "waits for another run, process %ld, that uses %s",
                    (long)holder, scr->cache.control);
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
            (long)holder, scr->cache.control);
    if (rc) return rc;
    rc = read_record(scr, scr->cache.control_fd, owner,
                     err); /* the one before may be new */
    if (*owner != DAMAGED) return rc;
    scr_control_warn(scr, err);
    *owner = NOBODY;
    return rc;
}

static void unlock(struct scr *scr)
{
    io_close(&scr->cache.lock_fd);
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
static void clear_way(const struct scr *scr)
{
    DIR *stream = beneath_list(scr->cache.control_fd);
    const struct dirent *item;
    struct stat st;
    while (stream && (item = readdir(stream)) != NULL) {
        char err[SCR_ERR_TEXT] = "";
        if (!is_ours(item->d_name) ||
            fstatat(scr->cache.control_fd, item->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            (S_ISREG(st.st_mode) && st.st_nlink == 1))
            continue;
        err_set(err, 0, "%s is no regular file, or has another name, and is removed",
                item->d_name);
        scr_control_warn(scr, err);
        if (beneath_unlink(scr->cache.control_fd, item->d_name, NULL) != 0 &&
            beneath_remove_tree(scr->cache.control_fd, item->d_name, err) != 0)
            scr_control_warn(scr, err);
    }
    if (stream) closedir(stream);
}

/* ---- which folders ---- */

/* Folders beside those of another calculation. */
static void other_owner(const struct scr *scr, char owner[SCR_OWNER_SIZE])
{
    char name[SCR_JOB_ID_SIZE];
    scr_identity_prefix(scr->prefix.real, name);
    snprintf(owner, SCR_OWNER_SIZE, "%s/scr.%s.%s", scr->job.user, scr->job.id, name);
}

/* Local: opens the control folder of the owner's name and, on the leader of the node,
 * looks whose it is. */
static int look(struct scr *scr, double patience, enum owner *owner, char *err)
{
    *owner = NOBODY;
    int rc = scr_control_open(scr, err);
    if (!rc && scr->job.node_rank == 0) clear_way(scr);
    if (!rc && scr->job.node_rank == 0) rc = lock(scr, patience, owner, err);
    return rc ? err_wrap(err, rc, "node %s", scr->job.node_name) : 0;
}

/* Collective, agreed. 1: some node has folders of this calculation beside others'. */
static int has_other(struct scr *scr, const char *owner)
{
    int has = scr->job.node_rank == 0 && scr_control_exists(scr, owner);
    MPI_Allreduce(MPI_IN_PLACE, &has, 1, MPI_INT, MPI_MAX, scr->job.world);
    return has;
}

/* Local, on the leader. Opens the folders that this run does not use, if they are there.
 * 1: they are those of this calculation; *newest: the checkpoint that is there. */
static int look_unused(struct scr *scr, int *newest)
{
    enum owner owner = NOBODY;
    *newest = 0;
    if (scr->cache.control_fd < 0 &&
        (!scr_control_exists(scr, scr->job.owner) || scr_control_open(scr, NULL) != 0))
        return 0;
    if (read_record(scr, scr->cache.control_fd, &owner, NULL) != 0 || owner != OURS)
        return 0;
    *newest = scr_hints_newest(scr);
    return 1;
}

/* Collective. What is in the caches of this calculation cannot be used with these nodes:
 * SCR_Have_restart fails unless it has something newer. */
static void pass_over(struct scr *scr, const char *beside)
{
    int newest = 0, ours = scr->job.node_rank == 0 && look_unused(scr, &newest);
    MPI_Allreduce(MPI_IN_PLACE, &ours, 1, MPI_INT, MPI_SUM, scr->job.world);
    MPI_Allreduce(&newest, &scr->restart.elsewhere, 1, MPI_INT, MPI_MAX, scr->job.world);
    if (ours)
        scr_say(&scr->report, 0,
                "warning: what %d nodes have in %s for this calculation is not used: on "
                "other "
                "nodes that folder belongs to another prefix folder. It stays there; to "
                "begin "
                "with it, end this run, remove %s on all nodes, and start without those "
                "other "
                "nodes",
                ours, scr->job.owner, beside);
}

/* Collective, agreed. Goes over to the folders beside. */
static int go_beside(struct scr *scr, const char *beside, enum owner *owner, char *err)
{
    pass_over(scr, beside);
    unlock(scr);
    scr_control_close(scr);
    strcpy(scr->job.owner, beside);
    scr_say(
        &scr->report, 1,
        "the cache of job %s is that of another prefix folder; this run uses %s in it",
        scr->job.id, scr->job.owner);
    int rc = look(scr, PATIENCE, owner, err);
    if (!rc && *owner == THEIRS)
        rc = err_set(err, -EBUSY, "%s belongs to another prefix folder",
                     scr->cache.control);
    return agree(scr->job.world, rc, err);
}

/* Collective. 1: on some node the folders are another calculation's. */
static int has_theirs(const struct scr *scr, enum owner owner)
{
    int has = scr->job.node_rank == 0 && owner == THEIRS;
    MPI_Allreduce(MPI_IN_PLACE, &has, 1, MPI_INT, MPI_MAX, scr->job.world);
    return has;
}

int scr_claim(struct scr *scr, char *err)
{
    char beside[SCR_OWNER_SIZE];
    enum owner owner;
    other_owner(scr, beside);
    int other = has_other(scr, beside);
    int rc = other ? 0 : agree(scr->job.world, look(scr, PATIENCE, &owner, err), err);
    if (rc) return rc;
    if (!other) other = has_theirs(scr, owner);
    rc = other ? go_beside(scr, beside, &owner, err) : 0;
    if (rc) return rc;
    if (scr->job.node_rank == 0 && owner == NOBODY) rc = write_record(scr, err);
    rc = agree(scr->job.world, rc, err);
    /* the leader has the lock now: its folder stays */
    return rc ? rc : agree(scr->job.world, open_again(scr, err), err);
}

/* ---- while it runs ---- */

void scr_claim_stay(const struct scr *scr)
{
    if (scr->job.node_rank != 0 || scr->cache.lost) return;
    futimens(scr->cache.lock_fd, NULL);
    utimensat(scr->cache.control_fd, RECORD_NAME, NULL, AT_SYMLINK_NOFOLLOW);
}

bool scr_claim_is_lost(const struct scr *scr)
{
    struct stat st;
    return scr_is_removed(scr->cache.control_fd) ||
           (scr->job.node_rank == 0 &&
            (scr_is_removed(scr->cache.lock_fd) ||
             fstatat(scr->cache.control_fd, RECORD_NAME, &st, AT_SYMLINK_NOFOLLOW) != 0));
}

/* What a process has of the control folder. */
struct hold {
    char *control;
    int control_fd, lock_fd;
};

static struct hold let_go(struct scr *scr)
{
    struct hold old = {scr->cache.control, scr->cache.control_fd, scr->cache.lock_fd};
    scr->cache.control = NULL;
    scr->cache.control_fd = scr->cache.lock_fd = -1;
    return old;
}

/* Keeps the new one, or after an error the old one. */
static int settle(struct scr *scr, struct hold old, int rc)
{
    if (rc) {
        const struct hold new = let_go(scr);
        scr->cache.control = old.control;
        scr->cache.control_fd = old.control_fd;
        scr->cache.lock_fd = old.lock_fd;
        old = new;
    }
    io_close(&old.control_fd);
    io_close(&old.lock_fd);
    free(old.control);
    return rc;
}

static void tell_renewed(const struct scr *scr)
{
    char line[SCR_ERR_TEXT + 400];
    snprintf(line, sizeof line,
             "warning: node %s: somebody has removed %s of this run, or files in it, "
             "which are made again",
             scr->job.node_name, scr->cache.control);
    scr_event_local(&scr->report, 0, line);
}

/* The leader of a node. While the lock is held and can be found nobody else is there. */
static int renew_leader(struct scr *scr, char *err)
{
    enum owner owner = NOBODY;
    int rc = 0, open = !scr_is_removed(scr->cache.control_fd) &&
                       !scr_is_removed(scr->cache.lock_fd);
    if (!open) {
        const struct hold old = let_go(scr);
        rc = look(scr, 0, &owner, err);
        if (!rc && owner == THEIRS)
            rc = err_set(err, -EBUSY, "node %s: %s belongs to another prefix folder now",
                         scr->job.node_name, scr->cache.control);
        rc = settle(scr, old, rc);
    }
    if (!rc && owner == NOBODY) rc = write_record(scr, err);
    if (!rc) tell_renewed(scr);
    return rc;
}

static int renew_other(struct scr *scr, char *err)
{
    const struct hold old = let_go(scr);
    return settle(scr, old, scr_control_open(scr, err));
}

/* Collective. The newest checkpoint, or an output, is only in the cache. */
static int has_unsaved(struct scr *scr)
{
    int count, newest = scr_cached_newest(scr), unsaved = 0;
    scr_cached *list = scr_cached_list(scr, &count);
    for (int i = 0; i < count && !unsaved; i++)
        unsaved = (list[i].id == newest || list[i].output) &&
                  !scr_location_has(scr, list[i].id, SCR_LOCATION_PFS);
    free(list);
    return unsaved;
}

/* Collective. Whoever has the folders now: what is there is theirs, and what this run
 * knows of it does not count any more. */
static void estrange(struct scr *scr)
{
    int count = 0, *ids = NULL;
    scr_flush_stop(scr, 0);
    scr->cache.unsaved = has_unsaved(scr);
    scr->cache.lost = 1;
    if (scr_filemap_list_datasets(scr->cache.map, &count, &ids) != 0) count = 0;
    for (int i = 0; i < count; i++)
        scr_filemap_remove_dataset(scr->cache.map, ids[i]);
    free(ids);
    scr->cache.kept_count = 0;
    kvtree_unset(scr->cache.aside, "ID");
    kvtree_unset(scr->cache.aside, "OTHER");
}

int scr_claim_renew(struct scr *scr, char *err)
{
    if (scr->cache.lost)
        return err_set(err, -EBUSY,
                       "the folders of this run on some nodes are another run's now; end "
                       "this one, and start it with a job id of its own (SCR_JOB_ID)");
    int lost = scr_claim_is_lost(scr), leader = scr->job.node_rank == 0;
    int rc = lost && leader ? renew_leader(scr, err) : 0, busy = rc == -EBUSY;
    rc = agree(scr->job.world, rc, err);
    if (rc) {
        MPI_Allreduce(MPI_IN_PLACE, &busy, 1, MPI_INT, MPI_MAX, scr->job.world);
        if (busy) estrange(scr);
        return rc;
    }
    /* the leaders have the locks now: the folders are ours */
    return agree(scr->job.world, lost && !leader ? renew_other(scr, err) : 0, err);
}

/* ---- the end ---- */

void scr_claim_remove(struct scr *scr)
{
    DIR *stream = beneath_list(scr->cache.control_fd);
    const struct dirent *item;
    if (!stream) return;
    while ((item = readdir(stream)) != NULL)
        if (is_ours(item->d_name) && strcmp(item->d_name, LOCK_NAME) != 0)
            unlinkat(scr->cache.control_fd, item->d_name, 0);
    closedir(stream);
    unlinkat(scr->cache.control_fd, LOCK_NAME,
             0); /* we have it still: nobody is in between */
    scr_control_remove(scr);
}

void scr_unclaim(struct scr *scr)
{
    unlock(scr);
}
