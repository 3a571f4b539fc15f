/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_REPLACE_H
#define COMMON_REPLACE_H

/* Old or new, never torn: the one way in which a file that carries state is written.
 *
 * A replacement is a new file with a temporary name in the same folder. The caller writes
 * to its descriptor; commit makes it durable and renames it, abort removes it:
 *
 *     replacement r;
 *     rc = replace_begin(dir, "index.scr", 0600, &r, err);
 *     if (rc) return rc;
 *     rc = io_write(r.fd, data, size);
 *     if (rc) { replace_abort(&r); return err_sys(err, rc, "write %s", name); }
 *     return replace_commit(&r, err);
 */

#include "common/beneath.h"
#include "common/prefix.h"
#include <stdint.h>

#define replace_draw COMMON(replace_draw)
#define replace_begin COMMON(replace_begin)
#define replace_begin_over COMMON(replace_begin_over)
#define replace_commit COMMON(replace_commit)
#define replace_commit_new COMMON(replace_commit_new)
#define replace_commit_synced COMMON(replace_commit_synced)
#define replace_commit_unsynced COMMON(replace_commit_unsynced)
#define replace_abort COMMON(replace_abort)
#define replace_bytes COMMON(replace_bytes)
#define replace_sweep COMMON(replace_sweep)
#define replace_remove_abandoned COMMON(replace_remove_abandoned)

typedef struct replacement {
    int fd;     /* open for reading and writing */
    int parent; /* folder of the file */
    int hold;   /* keeps the lock on the temporary file, until it has its name */
    char final[BENEATH_NAME_MAX]; /* last component, now and ... */
    char temporary[256];          /* ... until the commit: ".<16 hex digits>.tmp" */
} replacement;

/* A random number for names of temporary files. */
int replace_draw(uint64_t *random);

/* Starts a replacement of name (no link is followed, see beneath.h) below dir. The new
 * file has the given mode, less the umask; 0: that of beneath_record_mode. */
int replace_begin(int dir, const char *name, mode_t mode, replacement *r, char *err);

/* The same with the storage of the file old in the open folder from, so that writing need
 * not wait for new pages or blocks: the new file begins with its bytes and its size, and
 * old is gone. What is not a plain file of ours with that mode and one name, or cannot be
 * renamed from there, is no help: the new file is empty then, and *reused 0. */
int replace_begin_over(int dir, const char *name, int from, const char *old, mode_t mode,
                       replacement *r, int *reused, char *err);

/* fsync, close, rename, fsync of the folder. On failure the old file stays and the new
 * one is removed, unless only the folder's fsync failed: then the new file has its name
 * but may not survive a power loss, and the error says so. */
int replace_commit(replacement *r, char *err);

/* The same for a file that the caller has synced since it wrote to it. */
int replace_commit_synced(replacement *r, char *err);

/* The same without any fsync, for what need not survive a power loss: old or new, but
 * after one of those perhaps none, or cut. */
int replace_commit_unsynced(replacement *r, char *err);

/* As replace_commit where there must be no file yet: -EEXIST if there is one, which
 * stays. On a file system that can only link, not rename, without replacing, the
 * temporary name may be left as a second name of the file if it cannot be removed. */
int replace_commit_new(replacement *r, char *err);

/* Removes the new file; the old one stays. */
void replace_abort(replacement *r);

/* What a process leaves that dies before the commit. Temporary files are locked while
 * they are in work, so others can tell. Where the file system has no locks, nothing is
 * removed. */

/* Removes the file name from the open folder dir if it was left so: 1; 0 for any other
 * file; or -errno. */
int replace_remove_abandoned(int dir, const char *name);

/* All such files in dir. Goes on after a failure, and returns the first one. */
int replace_sweep(int dir, char *err);

/* All of it for size bytes at data. */
int replace_bytes(int dir, const char *name, mode_t mode, const void *data, size_t size,
                  char *err);

#endif
