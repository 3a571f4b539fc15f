/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CHANGE_H
#define SCR_CHANGE_H

/* Changes of a record that runs and commands may change concurrently. */

#include <kvtree/kvtree.h>
#include <stdbool.h>

/* Changes the record. Returns 1 if it must be written, 0 if not, or -errno. May be called
 * several times, each time with the current record. */
typedef int scr_changer(kvtree *tree, void *arg);

/* The lock file, which is empty. A process that changes a record of the prefix directory
 * holds the lock of this file. Users with read permission only cannot open it. A lock
 * file of another user is replaced if only this user can create files in its
 * directory. */
#define SCR_LOCK_NAME ".scr/lock"

/* Reads, changes and writes the record name below the open prefix directory. Holds the
 * lock of the prefix directory, which excludes all other changes; on a file system
 * without locks, works without a lock. The empty tree receives the resulting record.
 * Nothing is written if nothing changes. A missing file is an empty record with make 1,
 * and otherwise -ENOENT. Returns 0, or -errno with a text; -EBADMSG for a damaged file,
 * -EFBIG for a record that became too large, -ETIMEDOUT if another process holds the lock
 * for the given number of seconds. */
typedef struct scr_change {
    int prefix;
    const char *name;
    uint64_t limit; /* maximum size of the record in bytes (common/record_size.h) */
    int make;
    scr_changer *change;
    void *arg;
    int seconds;  /* to wait for the lock; 0: 30 */
    bool at_once; /* a change is expected: read the record under the lock only */
} scr_change;
int scr_change_record(const scr_change *c, kvtree *tree, kvtree_error *err);

/* Takes only the lock; io_unlock(fd) releases it. *fd is -1 on a file system without
 * locks. Returns -ENOENT without .scr, -ETIMEDOUT after 30 seconds. */
int scr_change_lock(int prefix, int *fd, kvtree_error *err);

#endif
