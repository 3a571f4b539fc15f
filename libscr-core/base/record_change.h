/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CHANGE_H
#define SCR_CHANGE_H

/* Changes of a record that a run and commands change at the same time. */

#include <kvtree/kvtree.h>

/* Changes what was read: 1 when there is something to write, 0, or -errno. May be called
 * more than once, each time with the record as it is then. */
typedef int scr_changer(kvtree *tree, void *arg);

/* Reads, changes and writes the record name below the open prefix folder, under its lock
 * (kvtree.h): no other change that is made by this function comes between. Where the file
 * system has no locks it does without. The empty tree gets what the record has then. It
 * is neither written nor made where nothing changes. With make 1 a missing file is an
 * empty record, otherwise -ENOENT. 0 or -errno with a text; -EBADMSG for a damaged file,
 * -ETIMEDOUT when somebody else kept the lock for so long. */
typedef struct scr_change {
    int prefix;
    const char *name;
    int make;
    scr_changer *change;
    void *arg;
    int seconds; /* that others may have the lock; 0: 30 */
} scr_change;
int scr_change_record(const scr_change *c, kvtree *tree, char *err);

/* The lock of that record without a change, of one that may be damaged: close(*fd) gives
 * it up. *fd is -1 where the file system has no locks, and for a file of somebody else
 * that may not be written. -ENOENT, -ETIMEDOUT as above. */
int scr_change_lock(int prefix, const char *name, int *fd, char *err);

#endif
