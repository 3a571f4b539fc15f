/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_BATCH_H
#define COMMON_BATCH_H

/* Files that are written under temporary names and renamed into place together.
 *
 * Old or new, never torn: each file has its old contents or its new ones, whenever the
 * process or the system dies. A batch lists the files. Their bytes go to temporary files;
 * batch_commit syncs each of these, renames each, and syncs each directory. Until then
 * nothing is replaced. batch_drop ends every batch, committed or not: it removes files
 * that still have temporary names, and frees the memory. One file is a batch of one:
 *
 *     batch b = {.dir = dir};
 *     int fd, rc = batch_open(&b, "index.scr", 0600, &fd, err);
 *     if (!rc && (rc = io_write(fd, data, size)) != 0)
 *         err_sys(err, rc, "write index.scr");
 *     if (!rc) rc = batch_commit(&b, err);
 *     batch_drop(&b);
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
    BATCH_SYNCED,      /* directories; the writers of the files have synced them */
    BATCH_UNSYNCED     /* nothing: after a power loss files may be missing or cut */
} batch_durability;

/* Value of `from`: the temporary file is in the directory of its final name. */
enum { BATCH_BESIDE = -1 };

/* A file of a batch, for batch_add. Strings are copied. */
typedef struct batch_file {
    const char *name;      /* final name, below batch.dir */
    int from;              /* open directory of the temporary file, or BATCH_BESIDE */
    const char *temporary; /* name of the temporary file below from; BATCH_BESIDE: one
                            * component */
    uint64_t size;         /* bytes; holes until written */
    mode_t mode;           /* permissions after the commit; 0: 0666 less the umask. Until
                              then the owner can read and write the file as well. */
    bool has_group;        /* the mode is meant for this group: a file that is created in
                            * another group gets fewer rights (beneath_mode_in_group) */
    gid_t group;
} batch_file;

typedef struct batch_item {
    char *name, *temporary;
    int from;
    uint64_t size;
    mode_t mode;
    bool has_group;
    gid_t group;
    dev_t device; /* of the temporary file created by batch_make */
    ino_t inode;
    uid_t owner;
    int fd;           /* descriptor of the file, from batch_open or from batch_make with
                       * hold; or -1 */
    int lock, parent; /* from batch_open, or -1: a duplicate of fd that keeps the lock;
                       * the directory */
    bool made;        /* this batch must remove the temporary file */
    bool synced, named;
} batch_item;

/* Callers set the first group by name; the rest starts as zeros. */
typedef struct batch {
    int dir;        /* open directory above all names, owned by the caller; AT_FDCWD:
                     * names are paths, on which links are followed (common/folder.h) */
    mode_t folders; /* mode for creating missing directories of names; 0: a missing
                     * directory is an error */
    batch_durability durability;
    bool exclusive; /* -EEXIST if a file has the name already; that file stays */
    bool resumed;   /* an earlier process may have begun the same batch: its temporary
                     * files are taken over, and files of batch_add that it renamed need
                     * no temporary file at the commit */
    int64_t shared; /* others who may have written the names, as returned by
                     * others_put_below (common/others.h), or 0. They must be able to
                     * change each directory in which a file is created or renamed, and
                     * the directory below another `from` that loses a file; else -EPERM
                     */

    int hold; /* batch_make leaves the files that it creates open for batch_take, if their
               * descriptors are below this number; such a file is empty, and its writer
               * sets its size. 0: none */

    const char *from; /* name of the directory of the temporary files in messages; NULL:
                       * their own names */

    void (*renamed)(uint64_t files, uint64_t of); /* called at the commit; may be NULL */

    size_t count;
    batch_item *items;
} batch;

/* Draws a random number for names of temporary files. */
int batch_draw(uint64_t *random);

/* ---- files that the caller writes through a descriptor ---- */

/* Creates a temporary file for name, in the directory of name. *fd is open for reading
 * and writing and belongs to the batch. mode is reduced by the umask; 0: that of
 * beneath_record_mode. The temporary name is ".<16 hex digits>.tmp", and the file is
 * locked until the commit, so that batch_sweep can distinguish it from an abandoned file.
 * Each such file takes three descriptors until the batch is dropped. */
int batch_open(batch *b, const char *name, mode_t mode, int *fd, kvtree_error *err);

/* A file that may be overwritten. */
typedef struct batch_spare {
    int dir;          /* open directory */
    const char *name; /* name in dir */
    bool reused;      /* set by batch_open_over */
} batch_spare;

/* Like batch_open, but reuses the storage of another file, so that writing need not wait
 * for new pages or blocks. The new file starts with the bytes and size of spare, which no
 * longer exists. A spare is not used if it is not a regular file of the effective user
 * with that mode and one name, or cannot be renamed from its directory. Then the new file
 * is empty, and reused is false. */
int batch_open_over(batch *b, const char *name, mode_t mode, batch_spare *spare, int *fd,
                    kvtree_error *err);

/* ---- files that are written by name, by any process ---- */

/* Adds a file to the list, without a system call. The caller must be able to recognize
 * its temporary name as abandoned. Files of one directory should be consecutive: a change
 * of directory costs an open and an fsync. */
int batch_add(batch *b, const batch_file *file, kvtree_error *err);

/* Creates the temporary files of all listed files. Detects what would make the rename
 * fail: -EISDIR, a directory has the final name; -EXDEV, `from` is in another file
 * system. With `from` and `folders`, only the commit detects both, because it creates the
 * directory of the final name. Callers that rename existing files do not call this
 * function: batch_drop does not remove such files. */
int batch_make(batch *b, kvtree_error *err);

/* Returns the descriptor for writing that batch_make has left open, and passes it to the
 * caller; -1: none, or already taken. The descriptor refers to the file that was created,
 * even if others have put another file in its place. */
static inline int batch_take(batch *b, size_t i)
{
    int fd = b->items[i].fd;
    b->items[i].fd = -1;
    return fd;
}

/* Opens a temporary file that batch_make created. -ESTALE if others have put another file
 * in its place. flags as for open. */
int batch_open_made(const batch *b, size_t i, int flags, int *fd, kvtree_error *err);

/* ---- commit and cleanup ---- */

/* Syncs and closes all files that are not synced yet. This is for callers that must act
 * before the commit, for example agree on it with other processes. */
int batch_sync(batch *b, kvtree_error *err);

/* Syncs the files, renames each in the order of the list, and syncs each directory. Stops
 * at the first error: files before it have their new contents, all others the old ones.
 * If only the fsync of a directory failed, the error says that the file is in place. With
 * `exclusive`, a file system that cannot rename without replacing may leave the temporary
 * name as a second name of the file, if that name cannot be removed. */
int batch_commit(batch *b, kvtree_error *err);

/* Removes the files of batch_add under both names, whether they are new or old. */
void batch_remove(batch *b);

/* Removes temporary files that the batch created and did not rename, and frees the
 * memory. */
void batch_drop(batch *b);

/* Writes one file with size bytes at data, as a batch of one. */
int batch_write(int dir, const char *name, mode_t mode, const void *data, size_t size,
                kvtree_error *err);

/* ---- temporary files of a process that died before the commit ---- */

/* Removes the file name from the open directory dir if it is an abandoned temporary file
 * of batch_open. Returns 1 if removed, 0 for any other file, or -errno. If the file
 * system has no locks, nothing is removed. */
int batch_remove_abandoned(int dir, const char *name);

/* Removes all such files in dir. Continues after a failure, and returns the first one. */
int batch_sweep(int dir, kvtree_error *err);

#endif
