/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a record under its lock; see base/record_change.h. */
#include "base/record_change.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>

/* Seconds to wait for the lock. A change takes milliseconds: a process that holds the
 * lock longer hangs or was stopped, and must not stop a run. */
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

/* 1 if the record changed. */
static int record_read_and_apply(const scr_change *c, kvtree *tree, kvtree_error *err)
{
    kvtree_error why;
    kvtree_unset_all(tree);
    int rc = kvtree_file_read(c->prefix, c->name, c->limit, tree, &why);
    if (rc && !(rc == -ENOENT && c->make)) return err_set(err, rc, "%s", why.text);
    return record_apply(c, tree, err);
}

/* *fd is -1 on a file system without locks. */
static int record_lock(int prefix, int seconds, int *fd, kvtree_error *err)
{
    *fd = -1;
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
