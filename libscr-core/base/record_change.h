/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CHANGE_H
#define SCR_CHANGE_H

/* Changes of a record that runs and commands may change concurrently. */

#include <kvtree/kvtree.h>
#include <stdbool.h>

/* Changes the record: 1 if it must be written, 0 if not, or -errno. May be called several
 * times, each time with the current record. */
typedef int scr_changer(kvtree *tree, void *arg);

/* Reads, changes and writes the record name below the open prefix directory under its
 * lock (kvtree.h), which excludes other changes by this function. On a file system
 * without locks it works without. The empty tree receives the resulting record. Nothing
 * is written if nothing changes. With make 1 a missing file is an empty record, otherwise
 * -ENOENT. 0 or -errno with a text; -EBADMSG for a damaged file, -ETIMEDOUT if another
 * process holds the lock for that number of seconds. */
typedef struct scr_change {
    int prefix;
    const char *name;
    int make;
    scr_changer *change;
    void *arg;
    int seconds;  /* to wait for the lock; 0: 30 */
    bool at_once; /* a change is expected: the record is read under the lock only */
} scr_change;
int scr_change_record(const scr_change *c, kvtree *tree, kvtree_error *err);

/* Locks that record without reading it, as it may be damaged; close(*fd) unlocks it. *fd
 * is -1 on a file system without locks, and for a file of another user that is not
 * writable. -ENOENT, -ETIMEDOUT as above. */
int scr_change_lock(int prefix, const char *name, int *fd, kvtree_error *err);

#endif
