/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_BATCH_H
#define COMMON_BATCH_H

/* Files that are written under temporary names and renamed into place together.
 *
 * Old or new, never torn: each file has its old contents or its new ones, whenever the
 * process or the system dies. A batch lists the files. Their bytes go to temporary files;
 * batch_commit syncs each of these, renames each, and syncs each directory. Until then
 * nothing is replaced. batch_drop ends every batch, committed or not: it removes what
 * still has a temporary name, and frees the memory. One file is a batch of one:
 *
 *     batch b = {.dir = dir};
 *     int fd, rc = batch_open(&b, "index.scr", 0600, &fd, err);
 *     if (!rc && (rc = io_write(fd, data, size)) != 0) err_sys(err, rc, "write
 * index.scr"); if (!rc) rc = batch_commit(&b, err); batch_drop(&b);
 *
 * No link is followed below dir (see beneath.h). All functions that return int return 0
 * or -errno and fill err. */

#include "common/beneath.h"
#include "common/prefix.h"
#include <kvtree/kvtree_error.h>
#include <stdbool.h>
#include <stdint.h>

#define batch_draw COMMON(batch_draw)
#define batch_open COMMON(batch_open)
#define batch_open_over COMMON(batch_open_over)
#define batch_add COMMON(batch_add)
#define batch_make COMMON(batch_make)
#define batch_open_made COMMON(batch_open_made)
#define batch_sync COMMON(batch_sync)
#define batch_commit COMMON(batch_commit)
#define batch_remove COMMON(batch_remove)
#define batch_drop COMMON(batch_drop)
#define batch_write COMMON(batch_write)
#define batch_sweep COMMON(batch_sweep)
#define batch_remove_abandoned COMMON(batch_remove_abandoned)

/* What batch_commit syncs. */
typedef enum batch_durability {
    BATCH_DURABLE = 0, /* files and directories */
    BATCH_WHOLE,       /* files; after a power loss one may have its old contents */
    BATCH_SYNCED,      /* directories; those who wrote the files have synced them */
    BATCH_UNSYNCED     /* nothing: after a power loss files may be missing or cut */
} batch_durability;

/* Where a temporary file lies that shares the directory of the file that it becomes. */
enum { BATCH_BESIDE = -1 };

/* A file of a batch, for batch_add. Strings are copied. */
typedef struct batch_file {
    const char *name;      /* final name, below batch.dir */
    int from;              /* open directory of the temporary file; BATCH_BESIDE */
    const char *temporary; /* its name below from; BATCH_BESIDE: one component */
    uint64_t size;         /* bytes; holes until they are written */
    mode_t mode;           /* permissions after the commit; 0: 0666 less the umask. Until
                              then the owner can read and write the file as well. */
    bool has_group;        /* the mode is meant for this group: a file that is created in
                              another one gets less of it (beneath_mode_in_group) */
    gid_t group;
} batch_file;

typedef struct batch_item {
    char *name, *temporary;
    int from;
    uint64_t size;
    mode_t mode;
    bool has_group;
    gid_t group;
    dev_t device; /* of the temporary file that batch_make created */
    ino_t inode;
    uid_t owner;
    int fd;           /* of batch_open, or of batch_make with hold, or -1: the file */
    int lock, parent; /* of batch_open, or -1: a duplicate of fd that keeps the lock, the
                         directory */
    bool made;        /* the temporary file is ours to remove */
    bool synced, named;
} batch_item;

/* Callers set the first group by name; the rest starts as zeros. */
typedef struct batch {
    int dir;        /* open directory that names are below, owned by the caller; AT_FDCWD:
                       names are paths, on which links are followed (common/folder.h) */
    mode_t folders; /* missing directories of names are made with this mode; 0: errors */
    batch_durability durability;
    bool exclusive; /* -EEXIST where a file has the name already; it stays */
    bool resumed;   /* an earlier process may have begun the same batch: temporary files
                       that it made are taken over, and files of batch_add that it renamed
                       need no temporary file at the commit */
    int64_t shared; /* others who may have written the names, as of others_put_below
                       (common/others.h), or 0: they must be able to change the directory
                       of a name in which a file is created or renamed, and the directory
                       below another `from` that loses the file; else -EPERM */

    int hold; /* batch_make leaves open, for batch_take, what it creates with a descriptor
                 below this number; such a file is empty, who writes it gives it its size.
                 0: none */

    const char *from; /* what messages call the directory of the temporary files; NULL:
                         the one of their names */

    void (*renamed)(uint64_t files, uint64_t of); /* at the commit; NULL: nobody asks */

    size_t count;
    batch_item *items;
} batch;

/* A random number for names of temporary files. */
int batch_draw(uint64_t *random);

/* ---- files that the caller writes through a descriptor ---- */

/* Creates a temporary file for name beside it. *fd is open for reading and writing and
 * belongs to the batch. mode is less the umask; 0: that of beneath_record_mode. The
 * temporary name is ".<16 hex digits>.tmp", and the file is locked until the commit, so
 * that batch_sweep tells it from an abandoned one. Each such file takes three descriptors
 * until the batch is dropped. */
int batch_open(batch *b, const char *name, mode_t mode, int *fd, kvtree_error *err);

/* A file that may be overwritten. */
typedef struct batch_spare {
    int dir;          /* open directory */
    const char *name; /* in it */
    bool reused;      /* out */
} batch_spare;

/* The same with the storage of another file, so that writing need not wait for new pages
 * or blocks: the new file begins with its bytes and its size, and spare is gone. A spare
 * that is not a regular file of the effective user with that mode and one name, or cannot
 * be renamed from there, is not used: the new file is empty then, and reused false. */
int batch_open_over(batch *b, const char *name, mode_t mode, batch_spare *spare, int *fd,
                    kvtree_error *err);

/* ---- files that are written by name, by any process ---- */

/* Lists a file; makes no system call. What recognizes its temporary name as abandoned is
 * up to the caller. Files of one directory should follow each other: a change of
 * directory costs an open and an fsync. */
int batch_add(batch *b, const batch_file *file, kvtree_error *err);

/* Creates the temporary files of all listed files. Detects what would make the rename
 * fail: -EISDIR, a directory has the final name; -EXDEV, `from` is in another file
 * system. With `from` and `folders`, both show at the commit, which makes the directory
 * of the final name. Callers that rename existing files do not call it: batch_drop does
 * not remove these. */
int batch_make(batch *b, kvtree_error *err);

/* The descriptor for writing that batch_make has left open, which is the caller's from
 * then on; -1: none, or taken. It refers to the file that was created, also where others
 * may put another one in its place. */
static inline int batch_take(batch *b, size_t i)
{
    int fd = b->items[i].fd;
    b->items[i].fd = -1;
    return fd;
}

/* Opens a temporary file that batch_make created, in a directory where others may have
 * put another file in its place: -ESTALE then. flags as for open. */
int batch_open_made(const batch *b, size_t i, int flags, int *fd, kvtree_error *err);

/* ---- the end ---- */

/* Syncs and closes all files that are not synced yet, for a caller that has something to
 * do before the commit, such as to agree on it with others. */
int batch_sync(batch *b, kvtree_error *err);

/* Syncs files, renames each in the order of the list, syncs each directory. It stops at
 * the first error: files before it have their new contents, all others the old ones.
 * Where only the fsync of a directory failed, the error says that the file is in place. A
 * file system that cannot rename without replacing may, with `exclusive`, leave the
 * temporary name as a second name of the file, if it cannot be removed. */
int batch_commit(batch *b, kvtree_error *err);

/* Removes the files of batch_add under both names, be they new or as they were before. */
void batch_remove(batch *b);

/* Removes temporary files that the batch made and did not rename; frees the memory. */
void batch_drop(batch *b);

/* A batch of one file with size bytes at data. */
int batch_write(int dir, const char *name, mode_t mode, const void *data, size_t size,
                kvtree_error *err);

/* ---- what a process leaves that dies before the commit ---- */

/* Removes the file name from the open directory dir if it is an abandoned temporary file
 * of batch_open: 1; 0 for any other file; or -errno. Where the file system has no locks,
 * nothing is removed. */
int batch_remove_abandoned(int dir, const char *name);

/* All such files in dir. Continues after a failure, and returns the first one. */
int batch_sweep(int dir, kvtree_error *err);

#endif
