/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_KVTREE_H
#define KVTREE_KVTREE_H

/* A tree of strings.
 *
 * A kvtree holds elements in order of insertion. Each element has a key, unique within
 * its tree, and a value, which is again a kvtree (often empty). By convention a scalar is
 * a key with the value as its only child, so trees are printed, sent and stored without a
 * schema:
 *
 *     kvtree *tree = kvtree_new();
 *     kvtree *rank = kvtree_set_kv_int(tree, "RANK", 0);
 *     kvtree *file = kvtree_set_kv(rank, "FILE", "rank_0.ckpt");
 *     kvtree_util_set_bytecount(file, "SIZE", 524294);
 *     kvtree_write_file("map.scr", tree);
 *     kvtree_delete(&tree);
 *
 * Not thread-safe: only one thread at a time may use a tree. NULL stands for an empty
 * tree wherever a tree is read; nothing can be written to it. Functions that return int
 * return KVTREE_SUCCESS or -errno (-EINVAL for wrong arguments, -ENOMEM without memory,
 * -EBADMSG for damaged data, -EPROTONOSUPPORT for a file of an unknown format). Finding,
 * adding and removing an element takes constant expected time, however many elements a
 * tree has. No function needs stack in proportion to the depth. Byte format:
 * docs/formats/kvtree.md.
 *
 * A function that also exists in KVTree 1.5 has the same parameters and meaning here
 * (docs/decisions/0032-functions-of-kvtree.md). Programs that include <kvtree.h>,
 * <kvtree_util.h> and <kvtree_mpi.h> find these headers with the flags of `pkg-config
 * scr-kvtree-compat`. */

#include <kvtree/kvtree_error.h>
#include <kvtree/kvtree_names.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVTREE_SUCCESS 0

/* Macros that the header of KVTree defines for its users. */
#define KVTREE_VERSION "1.5.0"
#define KVTREE_MAX_FILENAME 1024

#define KVTREE_SORT_ASCENDING 0
#define KVTREE_SORT_DESCENDING 1

typedef struct kvtree_struct kvtree;
typedef struct kvtree_elem_struct kvtree_elem;

/* ---- trees ---- */

/* Creates an empty tree, which the caller passes to kvtree_delete or to another tree.
 * NULL without memory. */
kvtree *kvtree_new(void);

/* Frees *tree and all trees below it, and sets *tree to NULL. -EINVAL, with nothing
 * freed, for a tree that is still the value of an element. */
int kvtree_delete(kvtree **tree);

/* Returns the number of elements directly in tree. */
int kvtree_size(const kvtree *tree);

/* Makes value the value of key. tree owns value from now on (NULL: a new empty tree). An
 * earlier value is freed. Returns value, or NULL, with nothing changed, if tree or key is
 * NULL, if value already has another owner or contains tree, or without memory. */
kvtree *kvtree_set(kvtree *tree, const char *key, kvtree *value);

/* Returns the value of key, owned by tree; NULL if there is none. */
kvtree *kvtree_get(const kvtree *tree, const char *key);

/* Removes key and frees its value; a missing key is no error. */
int kvtree_unset(kvtree *tree, const char *key);

/* Removes all keys. */
int kvtree_unset_all(kvtree *tree);

/* Removes key from tree and returns its value, which the caller now owns; NULL if there
 * is none. */
kvtree *kvtree_extract(kvtree *tree, const char *key);

/* Copies all of source into tree, at all levels; existing elements of tree remain.
 * -EINVAL if one of the trees lies within the other. After -ENOMEM tree contains a part
 * of source. */
int kvtree_merge(kvtree *tree, const kvtree *source);

/* Like kvtree_set and kvtree_get along a path of keys, given by a format: words,
 * separated by single spaces, that may contain %s %d %u %ld %lu %lld %llu %zu %f %lf %x
 * %lx %#x %#lx %p: kvtree_setf(tree, value, "RANK %d FILE rank_%d.ckpt", 3, 3). NULL,
 * with nothing changed, for any other format. */
kvtree *kvtree_setf(kvtree *tree, kvtree *value, const char *format, ...);
kvtree *kvtree_getf(const kvtree *tree, const char *format, ...);

/* ---- two keys as key and value: RANK / 3 ---- */

/* Returns the value of tree/key/val, which is created if missing. NULL if tree, key or
 * val is NULL, or without memory. */
kvtree *kvtree_set_kv(kvtree *tree, const char *key, const char *val);
kvtree *kvtree_set_kv_int(kvtree *tree, const char *key, int val);

/* Returns the value of tree/key/val, or NULL. */
kvtree *kvtree_get_kv(const kvtree *tree, const char *key, const char *val);
kvtree *kvtree_get_kv_int(const kvtree *tree, const char *key, int val);

/* Removes val under key, and also key when no other element is under it. */
int kvtree_unset_kv(kvtree *tree, const char *key, const char *val);
int kvtree_unset_kv_int(kvtree *tree, const char *key, int val);

/* Returns the only key under tree/key, owned by tree; NULL unless there is exactly one.
 */
char *kvtree_get_val(const kvtree *tree, const char *key);

/* ---- order ---- */

/* Sorts the elements of this tree (not below it) by key: as strings, or as 64-bit
 * integers (-EINVAL, with the order unchanged, if a key is not an integer). */
int kvtree_sort(kvtree *tree, int direction);
int kvtree_sort_int(kvtree *tree, int direction);

/* Returns all keys as integers, ascending: *list is NULL, or *count ints that the caller
 * frees. -EINVAL if a key is not an int. */
int kvtree_list_int(const kvtree *tree, int *count, int **list);

/* ---- elements ---- */

/* Return the first or the next element; NULL if there is none. Removing other elements
 * during a walk is safe. */
kvtree_elem *kvtree_elem_first(const kvtree *tree);
kvtree_elem *kvtree_elem_next(const kvtree_elem *elem);

/* Returns the element of key, or NULL. */
kvtree_elem *kvtree_elem_get(const kvtree *tree, const char *key);

/* Return the key or the value of an element, owned by its tree. kvtree_elem_key_int
 * returns 0 when the key is not an int. */
char *kvtree_elem_key(const kvtree_elem *elem);
int kvtree_elem_key_int(const kvtree_elem *elem);
kvtree *kvtree_elem_hash(const kvtree_elem *elem);

/* Returns the first key under tree/key, owned by tree, or NULL. */
char *kvtree_elem_get_first_val(const kvtree *tree, const char *key);

/* Removes the element from tree; the caller passes it to kvtree_elem_delete. NULL if
 * there is none, or if elem does not belong to this tree. */
kvtree_elem *kvtree_elem_extract(kvtree *tree, const char *key);
kvtree_elem *kvtree_elem_extract_int(kvtree *tree, int key);
kvtree_elem *kvtree_elem_extract_by_addr(kvtree *tree, kvtree_elem *elem);
int kvtree_elem_delete(kvtree_elem **elem);

/* Maximum number of levels in packed bytes and files. Trees in memory may be deeper. */
#define KVTREE_DEPTH_MAX 4194304

/* ---- packed bytes (big-endian: count, then key NUL tree ...) ---- */

/* Returns the number of bytes that kvtree_pack writes for tree. */
size_t kvtree_pack_size(const kvtree *tree);

/* Packs tree into buf, which has kvtree_pack_size(tree) bytes. Returns this number, or 0
 * if buf is NULL. */
size_t kvtree_pack(char *buf, const kvtree *tree);

/* Unpacks the output of kvtree_pack, from memory that the caller trusts, into tree, which
 * must be empty. Returns the number of bytes read, or 0 without memory. For any other
 * input use kvtree_unpack_n. */
size_t kvtree_unpack(const char *buf, kvtree *tree);

/* Unpacks at most len bytes of unknown origin into tree, which must be empty. Returns the
 * number of bytes read; -EBADMSG for bytes that are not a packed tree (truncated, a
 * repeated key, counts that exceed the remaining bytes, too many levels), or -ENOMEM;
 * tree is empty after an error. Never reads beyond len and never allocates more than a
 * small multiple of it. */
ssize_t kvtree_unpack_n(const char *buf, size_t len, kvtree *tree);

/* Like kvtree_unpack_n; err describes the problem and the byte where it is. */
ssize_t kvtree_unpack_err(const char *buf, size_t len, kvtree *tree, kvtree_error *err);

/* ---- files ---- */

/* Replaces the file by tree, with a checksum, atomically and durably: after a crash at
 * any moment the file is the old or the new one. Its mode, less the umask, is 0600;
 * readable for those who can read the directory; writable for a group that shares the
 * directory (which is setgid and group-writable). -EOVERFLOW for more than
 * KVTREE_DEPTH_MAX levels. */
int kvtree_write_file(const char *path, const kvtree *tree);

/* Merges the file into tree. A missing file is -ENOENT, a damaged file -EBADMSG, and an
 * intact file of another type or version -EPROTONOSUPPORT; tree is then unchanged. For
 * the functions with a path, a file of 0 bytes is an empty tree, since KVTree creates
 * such files; for those with a directory, it is damaged. */
int kvtree_read_file(const char *path, kvtree *tree);

/* Like kvtree_write_file and kvtree_read_file for name below the open directory dir
 * (AT_FDCWD: any path), with a text on failure. Below dir, name must be relative without
 * "..", and no link is followed. In a path, directories may be links, but not the file
 * itself.
 *
 * limit is the maximum size of the file, which a reader holds in memory as a whole. A
 * larger file is damaged when read, -EBADMSG, before any byte is read, and -EFBIG when
 * written. A tree of short keys takes up to 13 times the bytes of its file in memory. */
#define KVTREE_ANY_SIZE UINT64_MAX
int kvtree_file_write(int dir, const char *name, uint64_t limit, const kvtree *tree,
                      kvtree_error *err);
int kvtree_file_read(int dir, const char *name, uint64_t limit, kvtree *tree,
                     kvtree_error *err);

/* Writes (reads) a tree in file format at the current offset of fd, inside a larger file
 * or through a pipe. Returns the number of bytes written (read), or -errno. Reading stops
 * after the tree, to which the limit applies. */
ssize_t kvtree_fd_write(int fd, uint64_t limit, const kvtree *tree, kvtree_error *err);
ssize_t kvtree_fd_read(int fd, uint64_t limit, kvtree *tree, kvtree_error *err);

/* Like kvtree_fd_write and kvtree_fd_read without limit and text. path is that of the
 * file, and is not opened. Reading at the end of a file returns 0 and leaves tree
 * unchanged. */
ssize_t kvtree_write_fd(const char *path, int fd, const kvtree *tree);
ssize_t kvtree_read_fd(const char *path, int fd, kvtree *tree);

/* Creates the bytes of a file with tree: *buffer, which the caller frees, with *size
 * bytes. */
int kvtree_write_persist(void **buffer, size_t *size, const kvtree *tree);

/* ---- files that several processes change ----
 *
 * A process that reads, changes and writes such a file holds its lock meanwhile, so that
 * no change is lost:
 *
 *     int fd;
 *     if (kvtree_lock_open_read("state.kvt", &fd, tree) == KVTREE_SUCCESS) {
 *         kvtree_util_set_int(tree, "RUNS", runs + 1);
 *         kvtree_write_close_unlock("state.kvt", &fd, tree);
 *     }
 *
 * The lock is on the file itself; no other file remains beside it. The lock excludes
 * other processes and other threads that use these functions, on all nodes if the file
 * system supports this, and ends with its descriptor: a killed process blocks no other.
 * All functions wait as long as others hold the lock. A file system without locks is
 * -ENOLCK, -ENOTSUP, -ENOSYS or -EINVAL, as the system reports it. Readers without the
 * lock see the old file or the new one; writers without it (kvtree_write_file) may undo a
 * change of the lock holder. */

/* Like kvtree_read_file, once no process holds the lock to change the file. Needs no
 * write permission. A missing file is an empty tree. */
int kvtree_read_with_lock(const char *path, kvtree *tree);

/* Like kvtree_write_file, once no other process holds the lock. A link is refused. The
 * mode of the file, less the umask, is 0600, or 0660 in a directory that a group shares:
 * anyone who can open a file for reading can keep others from locking it. Files that the
 * following functions create and replace have the same mode. */
int kvtree_write_with_lock(const char *path, const kvtree *tree);

/* Locks the file exclusively, and merges it into tree. A missing file is created with an
 * empty tree. *fd belongs to the caller, who passes it to kvtree_write_close_unlock, or
 * to close() to leave the file unchanged. exec closes it; a process created by fork
 * shares the lock until it closes its copy. On failure there is no lock, and *fd is
 * unchanged. */
int kvtree_lock_open_read(const char *path, int *fd, kvtree *tree);

/* Replaces the locked file by tree, like kvtree_write_file, and releases the lock. *fd is
 * closed and becomes -1, also on failure. -ESTALE, with nothing written, if path no
 * longer leads to the locked file, because it was replaced or removed without the lock.
 */
int kvtree_write_close_unlock(const char *path, int *fd, const kvtree *tree);

/* Like the functions above for name below the open directory dir (AT_FDCWD: any path),
 * with a text on failure; see kvtree_file_write. */
int kvtree_file_read_with_lock(int dir, const char *name, uint64_t limit, kvtree *tree,
                               kvtree_error *err);
int kvtree_file_write_with_lock(int dir, const char *name, uint64_t limit,
                                const kvtree *tree, kvtree_error *err);
int kvtree_file_lock_open_read(int dir, const char *name, uint64_t limit, int *fd,
                               kvtree *tree, kvtree_error *err);
int kvtree_file_write_close_unlock(int dir, const char *name, uint64_t limit, int *fd,
                                   const kvtree *tree, kvtree_error *err);

/* Like kvtree_file_lock_open_read with a limit on the wait, for example for a process
 * that was stopped while it held the lock: -ETIMEDOUT after that number of seconds
 * (negative: no limit). */
int kvtree_file_lock_within(int dir, const char *name, uint64_t limit, int seconds,
                            int *fd, kvtree *tree, kvtree_error *err);

/* Locks a file without content, which is created if missing: for several tree files with
 * one lock, or for files that others may read and could therefore lock, too. Its mode is
 * 0600, or 0660 in a directory that a group shares, whatever the umask. -ETIMEDOUT as
 * above; -ENOENT without the directory. The caller closes *fd with close(). */
int kvtree_file_lock_only(int dir, const char *name, int seconds, int *fd,
                          kvtree_error *err);

/* ---- the trees of many ranks in files (docs/formats/gather.md) ----
 *
 * In memory they are one tree, <rank> -> tree for each rank. The files are those of
 * kvtree_gather.h and kvtree_mpi.h. */

/* Writes the trees of all ranks. -EINVAL unless data contains each rank from 0 to ranks -
 * 1 and nothing else. Sorts data by rank. */
int kvtree_write_to_gather(const char *path, kvtree *data, int ranks);

/* Merges the trees of all ranks into data, in ascending order. Errors are those of
 * kvtree_gather_read_all and kvtree_merge. */
int kvtree_read_scatter_single(const char *path, kvtree *data);

/* ---- text for people, and JSON (docs/formats/kvtree.md) ---- */

/* KVTREE_FORM_TREE: a key per line, indented by its level; two different trees never have
 * the same text. PAIRS: the same, but a key with one child that has no children is one
 * line, KEY = VALUE. LINES: like PAIRS, with guide lines. JSON: an object. */
#define KVTREE_FORM_TREE 0
#define KVTREE_FORM_PAIRS 1
#define KVTREE_FORM_LINES 2
#define KVTREE_FORM_JSON 3

/* Prints tree to out, indented by `indent` columns per level (0 or less: 2). No key sends
 * control characters to a terminal. When this returns 0, everything is written; -EINVAL
 * for an unknown form, -errno or -EIO if out fails. */
int kvtree_fprint(FILE *out, const kvtree *tree, int form, int indent);

/* Prints tree to stdout, in the form KVTREE_FORM_TREE or KVTREE_FORM_PAIRS, with two
 * columns per level; the first level starts two columns to the right of `indent`. NULL is
 * printed as NULL LIST. -EINVAL for another mode. */
#define KVTREE_PRINT_TREE 1
#define KVTREE_PRINT_KEYVAL 2
int kvtree_print(const kvtree *tree, int indent);
int kvtree_print_mode(const kvtree *tree, int indent, int mode);

/* Like kvtree_print. The level is ignored, as in KVTree. */
int kvtree_log(const kvtree *tree, int level, int indent);

#ifdef __cplusplus
}
#endif
#endif
