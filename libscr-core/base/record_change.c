/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a record under its lock; see base/record_change.h. */
#include "base/record_change.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>

/* A writer that has no lock may replace the file again and again, but not for ever. */
#define ATTEMPTS 100

/* Seconds that somebody else may have the lock. A change takes some milliseconds, so who
 * keeps it for longer hangs, or was stopped, and must not stop a run. */
#define PATIENCE 30

static int has_no_locks(int rc)
{
    return rc == -ENOLCK || rc == -ENOTSUP || rc == -EOPNOTSUPP || rc == -ENOSYS;
}

static int apply(const scr_change *c, kvtree *tree, char *err)
{
    int rc = c->change(tree, c->arg);
    return rc < 0 ? err_sys(err, rc, "change %s", c->name) : rc;
}

/* 1 when there is something to write. */
static int read_and_apply(const scr_change *c, kvtree *tree, char *err)
{
    char why[ERRTEXT_SIZE];
    kvtree_unset_all(tree);
    int rc = kvtree_file_read(c->prefix, c->name, tree, why);
    if (rc && !(rc == -ENOENT && c->make)) return err_set(err, rc, "%s", why);
    return apply(c, tree, err);
}

/* 0, or -errno: -ESTALE when somebody without the lock was faster. */
static int change_locked(const scr_change *c, kvtree *tree, char *err)
{
    int fd, rc;
    kvtree_unset_all(tree);
    rc = kvtree_file_lock_within(c->prefix, c->name, c->seconds ? c->seconds : PATIENCE,
                                 &fd, tree, err);
    if (rc) return rc;
    rc = apply(c, tree, err);
    if (rc > 0) return kvtree_file_write_close_unlock(c->prefix, c->name, &fd, tree, err);
    io_close(&fd);
    return rc;
}

int scr_change_record(const scr_change *c, kvtree *tree, char *err)
{
    /* most often there is nothing to change, and no lock is needed */
    int rc = read_and_apply(c, tree, err);
    if (rc <= 0) return rc;
    for (int i = 0; i < ATTEMPTS; i++) {
        rc = change_locked(c, tree, err);
        if (rc != -ESTALE) break;
    }
    if (!has_no_locks(rc)) return rc;
    rc = read_and_apply(c, tree, err);
    return rc > 0 ? kvtree_file_write(c->prefix, c->name, tree, err) : rc;
}

int scr_change_lock(int prefix, const char *name, int *fd, char *err)
{
    *fd = -1;
    int rc = kvtree_file_lock_only(prefix, name, PATIENCE, fd, err);
    return has_no_locks(rc) || rc == -EACCES ? 0 : rc;
}
