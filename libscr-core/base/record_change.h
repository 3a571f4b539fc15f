/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CHANGE_H
#define SCR_CHANGE_H

/* Changes of a record that runs and commands may change concurrently. */

#include <kvtree/kvtree.h>
#include <stdbool.h>

/* Changes the record: 1 if it must be written, 0 if not, or -errno. May be called several
 * times, each time with the current record. */
typedef int scr_changer(kvtree *tree, void *arg);

/* A file without content: who changes a record of the prefix directory holds its lock.
 * Those who may only read the records cannot open it. One of another user is replaced in
 * a directory where only this user can put files. */
#define SCR_LOCK_NAME ".scr/lock"

/* Reads, changes and writes the record name below the open prefix directory under the
 * lock of that, which excludes all other changes. On a file system without locks it works
 * without. The empty tree receives the resulting record. Nothing is written if nothing
 * changes. With make 1 a missing file is an empty record, otherwise -ENOENT. 0 or -errno
 * with a text; -EBADMSG for a damaged file, -EFBIG for a record that became too large,
 * -ETIMEDOUT if another process holds the lock for that number of seconds. */
typedef struct scr_change {
    int prefix;
    const char *name;
    uint64_t limit; /* most bytes of the record (common/record_size.h) */
    int make;
    scr_changer *change;
    void *arg;
    int seconds;  /* to wait for the lock; 0: 30 */
    bool at_once; /* a change is expected: the record is read under the lock only */
} scr_change;
int scr_change_record(const scr_change *c, kvtree *tree, kvtree_error *err);

/* The first step of it, without the lock: 1 if the record must be changed, 0 if it stays
 * as it is, or the error. */
int scr_change_look(const scr_change *c, kvtree *tree, kvtree_error *err);

/* The lock alone; io_unlock(fd) ends it. *fd is -1 on a file system without locks.
 * -ENOENT without .scr, -ETIMEDOUT after 30 seconds. */
int scr_change_lock(int prefix, int *fd, kvtree_error *err);

#endif
