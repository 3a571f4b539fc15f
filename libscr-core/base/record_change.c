/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a record under its lock; see base/record_change.h. */
#include "base/record_change.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/others.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Seconds to wait for the lock. A change takes milliseconds. A process that holds the
 * lock longer hangs or was stopped, and must not block a run. */
#define PATIENCE 30

static bool record_has_no_locks(int rc)
{
    return rc == -ENOLCK || rc == -ENOTSUP || rc == -EOPNOTSUPP || rc == -ENOSYS;
}

static int record_apply(const scr_change *c, kvtree *tree, kvtree_error *err)
{
    int rc = c->change(tree, c->arg);
    return rc < 0 ? err_sys(err, rc, "change %s", c->name) : rc;
}

/* Returns 1 if the record changed. */
static int record_read_and_apply(const scr_change *c, kvtree *tree, kvtree_error *err)
{
    kvtree_error why;
    kvtree_unset_all(tree);
    int rc = kvtree_file_read(c->prefix, c->name, c->limit, tree, &why);
    if (rc && !(rc == -ENOENT && c->make)) return err_set(err, rc, "%s", why.text);
    return record_apply(c, tree, err);
}

/* Whether the entry name of dir belongs to a user other than this user and root, or must
 * not be opened. */
static bool record_lock_is_foreign(int dir, const char *name)
{
    struct stat st;
    int file = io_open(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (file < 0) return file == -EACCES;
    bool foreign = fstat(file, &st) == 0 && st.st_uid != 0 && st.st_uid != geteuid();
    io_close(&file);
    return foreign;
}

/* Removes a lock file of another user from a directory in which only this user can create
 * files. Such a lock file dates from a time when a group shared the directory, and its
 * owner may hold the lock for ever. Another process of this user may do the same. If that
 * process looked at the old lock file before this process removed it, it may then remove
 * a new lock file that is already locked. Both processes then change records at once, as
 * without locks. */
static void record_remove_foreign_lock(int prefix)
{
    int dir;
    const char *name;
    if (beneath_open_parent(prefix, SCR_LOCK_NAME, 0, &dir, &name, NULL) != 0) return;
    if (record_lock_is_foreign(dir, name) && others_put(dir) == 0) unlinkat(dir, name, 0);
    io_close(&dir);
}

/* *fd is -1 on a file system without locks. */
static int record_lock(int prefix, int seconds, int *fd, kvtree_error *err)
{
    *fd = -1;
    record_remove_foreign_lock(prefix);
    int rc = kvtree_file_lock_only(prefix, SCR_LOCK_NAME, seconds, fd, err);
    return record_has_no_locks(rc) ? 0 : rc;
}

int scr_change_record(const scr_change *c, kvtree *tree, kvtree_error *err)
{
    int lock;
    /* usually nothing changes, and no lock is needed */
    int rc = c->at_once ? 1 : record_read_and_apply(c, tree, err);
    if (rc <= 0) return rc;
    rc = record_lock(c->prefix, c->seconds ? c->seconds : PATIENCE, &lock, err);
    if (rc) return rc;
    rc = record_read_and_apply(c, tree, err);
    if (rc > 0) rc = kvtree_file_write(c->prefix, c->name, c->limit, tree, err);
    io_unlock(&lock);
    return rc;
}

int scr_change_lock(int prefix, int *fd, kvtree_error *err)
{
    return record_lock(prefix, PATIENCE, fd, err);
}
