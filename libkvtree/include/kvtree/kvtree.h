/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_KVTREE_H
#define KVTREE_KVTREE_H

/* A tree of strings.
 *
 * A kvtree holds elements in order of insertion. Each element has a key, unique within
 * its tree, and a value, which is again a kvtree (often empty). By convention a scalar is
 * a key with the value as its only child, so that trees print, travel and are stored
 * without a schema:
 *
 *     kvtree *tree = kvtree_new();
 *     kvtree *rank = kvtree_set_kv_int(tree, "RANK", 0);
 *     kvtree *file = kvtree_set_kv(rank, "FILE", "rank_0.ckpt");
 *     kvtree_util_set_bytecount(file, "SIZE", 524294);
 *     kvtree_write_file("map.scr", tree);
 *     kvtree_delete(&tree);
 *
 * Not thread-safe: one thread at a time may use a tree. NULL stands for an empty tree
 * wherever a tree is read; nothing can be written to it. Functions returning int give
 * KVTREE_SUCCESS or -errno (-EINVAL for wrong arguments, -ENOMEM without memory, -EBADMSG
 * for damaged data, -EPROTONOSUPPORT for a file of an unknown format). Finding,
 * adding and removing an element takes constant expected time at any width; no function
 * needs stack in proportion to the depth. Bytes: docs/formats/kvtree.md.
 *
 * A function that KVTree 1.5 has, too, has the same parameters and meaning here
 * (docs/decisions/0032-functions-of-kvtree.md). Programs that include <kvtree.h>,
 * <kvtree_util.h> and <kvtree_mpi.h> find these headers with the flags of
 * `pkg-config scr-kvtree-compat`. */

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

/* What KVTree's header defines for its users. */
#define KVTREE_VERSION "1.5.0"
#define KVTREE_MAX_FILENAME 1024

#define KVTREE_SORT_ASCENDING 0
#define KVTREE_SORT_DESCENDING 1

typedef struct kvtree_struct kvtree;
typedef struct kvtree_elem_struct kvtree_elem;

/* ---- trees ---- */

/* An empty tree, to be given to kvtree_delete or to another tree; NULL without memory. */
kvtree *kvtree_new(void);

/* Frees *tree with all below it and sets *tree to NULL. -EINVAL, with nothing freed, for
 * a tree that is still the value of an element. */
int kvtree_delete(kvtree **tree);

/* Number of elements directly in tree. */
int kvtree_size(const kvtree *tree);

/* Makes value (owned by tree from now on; NULL: a new empty tree) the value of key, in
 * place of an earlier one, which is freed. Returns value; NULL, with nothing changed, if
 * tree or key is NULL, if value has another owner already or holds tree, or without
 * memory. */
kvtree *kvtree_set(kvtree *tree, const char *key, kvtree *value);

/* The value of key, owned by tree; NULL if there is none. */
kvtree *kvtree_get(const kvtree *tree, const char *key);

/* Removes key and frees its value; a missing key is no error. */
int kvtree_unset(kvtree *tree, const char *key);

/* Removes all keys. */
int kvtree_unset_all(kvtree *tree);

/* Takes key out of tree and returns its value, now the caller's; NULL if there is none.
 */
kvtree *kvtree_extract(kvtree *tree, const char *key);

/* Copies all of source into tree, at all levels; what tree already has stays. -EINVAL if
 * one lies within the other. After -ENOMEM tree holds a part of source. */
int kvtree_merge(kvtree *tree, const kvtree *source);

/* As kvtree_set and kvtree_get along a path of keys, given by a format: words, separated
 * by single spaces, that may contain %s %d %u %ld %lu %lld %llu %zu %f %lf %x
 * %lx %#x %#lx %p: kvtree_setf(tree, value, "RANK %d FILE rank_%d.ckpt", 3, 3). NULL,
 * with nothing changed, for any other format. */
kvtree *kvtree_setf(kvtree *tree, kvtree *value, const char *format, ...);
kvtree *kvtree_getf(const kvtree *tree, const char *format, ...);

/* ---- two keys as key and value: RANK / 3 ---- */

/* The value of tree/key/val, created where missing. NULL if tree, key or val is NULL, or
 * no memory. */
kvtree *kvtree_set_kv(kvtree *tree, const char *key, const char *val);
kvtree *kvtree_set_kv_int(kvtree *tree, const char *key, int val);

/* The value of tree/key/val, or NULL. */
kvtree *kvtree_get_kv(const kvtree *tree, const char *key, const char *val);
kvtree *kvtree_get_kv_int(const kvtree *tree, const char *key, int val);

/* Removes val under key, and key too when nothing else is under it. */
int kvtree_unset_kv(kvtree *tree, const char *key, const char *val);
int kvtree_unset_kv_int(kvtree *tree, const char *key, int val);

/* The one key under tree/key, owned by tree; NULL unless there is exactly one. */
char *kvtree_get_val(const kvtree *tree, const char *key);

/* ---- order ---- */

/* Sorts the elements of this tree (not below) by key: as strings, or as 64-bit integers
 * (-EINVAL, with the order as it was, if a key is not one). */
int kvtree_sort(kvtree *tree, int direction);
int kvtree_sort_int(kvtree *tree, int direction);

/* All keys as integers, ascending: *list is NULL, or *count ints that the caller frees.
 * -EINVAL if a key is not an int. */
int kvtree_list_int(const kvtree *tree, int *count, int **list);

/* ---- elements ---- */

/* The first element; NULL if there is none. Removing other elements during a walk is
 * safe. */
kvtree_elem *kvtree_elem_first(const kvtree *tree);
kvtree_elem *kvtree_elem_next(const kvtree_elem *elem);

/* The element of key, or NULL. */
kvtree_elem *kvtree_elem_get(const kvtree *tree, const char *key);

/* Key and value of an element, owned by its tree. key_int gives 0 when the key is not an
 * int. */
char *kvtree_elem_key(const kvtree_elem *elem);
int kvtree_elem_key_int(const kvtree_elem *elem);
kvtree *kvtree_elem_hash(const kvtree_elem *elem);

/* The first key under tree/key, owned by tree, or NULL. */
char *kvtree_elem_get_first_val(const kvtree *tree, const char *key);

/* Takes the element out of tree; the caller gives it to kvtree_elem_delete. NULL if there
 * is none, or if elem is not one of this tree. */
kvtree_elem *kvtree_elem_extract(kvtree *tree, const char *key);
kvtree_elem *kvtree_elem_extract_int(kvtree *tree, int key);
kvtree_elem *kvtree_elem_extract_by_addr(kvtree *tree, kvtree_elem *elem);
int kvtree_elem_delete(kvtree_elem **elem);

/* Most levels of elements in packed bytes and files. Trees in memory may be deeper. */
#define KVTREE_DEPTH_MAX 4194304

/* ---- packed bytes (big-endian: count, then key NUL tree ...) ---- */

/* Bytes that kvtree_pack writes for tree. */
size_t kvtree_pack_size(const kvtree *tree);

/* Packs tree to buf, which has kvtree_pack_size(tree) bytes; returns that number, or 0 if
 * buf is NULL. */
size_t kvtree_pack(char *buf, const kvtree *tree);

/* Unpacks what kvtree_pack made, from memory that the caller trusts, into tree, which
 * must be empty. Returns the bytes read, 0 without memory. Anything else belongs to
 * kvtree_unpack_n. */
size_t kvtree_unpack(const char *buf, kvtree *tree);

/* Unpacks at most len bytes of unknown origin into tree, which must be empty. Returns the
 * bytes read; -EBADMSG for bytes that are not a packed tree (cut off, a key twice, counts
 * that the rest cannot hold, too many levels), -ENOMEM; tree is empty then. Never reads
 * past len and never allocates more than a small multiple of it. */
ssize_t kvtree_unpack_n(const char *buf, size_t len, kvtree *tree);

/* As kvtree_unpack_n; err describes what is wrong and at which byte. */
ssize_t kvtree_unpack_err(const char *buf, size_t len, kvtree *tree, kvtree_error *err);

/* ---- files ---- */

/* Replaces the file by tree, with a checksum, atomically and durably: after a crash at
 * any moment it is the old one or the new one. Its mode, less the umask: 0600; readable
 * for those who can read the directory; writable for a group that shares the directory
 * (setgid, writable for it). -EOVERFLOW for more than KVTREE_DEPTH_MAX levels. */
int kvtree_write_file(const char *path, const kvtree *tree);

/* Merges the file into tree. A missing file is -ENOENT; a damaged one -EBADMSG, and one
 * of another file type or version, which is whole, -EPROTONOSUPPORT, with tree as it was.
 * A file of 0 bytes is an empty tree for the functions with a path, since KVTree makes
 * such files, and damaged for those with a directory. */
int kvtree_read_file(const char *path, kvtree *tree);

/* The same for name below the open directory dir (AT_FDCWD: any path), with a text on
 * failure. Below dir, name is relative without "..", and no link is followed; in a path
 * the directories may be links, the file itself not.
 *
 * limit: most bytes of the file, which a reader has in memory as a whole. A larger one is
 * damaged, -EBADMSG, before any of it is read, and is not written, -EFBIG. A tree of
 * short keys takes up to 13 times the bytes of its file in memory. */
#define KVTREE_ANY_SIZE UINT64_MAX
int kvtree_file_write(int dir, const char *name, uint64_t limit, const kvtree *tree,
                      kvtree_error *err);
int kvtree_file_read(int dir, const char *name, uint64_t limit, kvtree *tree,
                     kvtree_error *err);

/* Writes (reads) a tree in file format at the current offset of fd, inside a larger file
 * or through a pipe. Returns the bytes written (read), or -errno; reading stops after the
 * tree, which the limit is for. */
ssize_t kvtree_fd_write(int fd, uint64_t limit, const kvtree *tree, kvtree_error *err);
ssize_t kvtree_fd_read(int fd, uint64_t limit, kvtree *tree, kvtree_error *err);

/* The same without limit and text. path is that of the file, and is not opened. Reading
 * at the end of a file gives 0, and tree stays as it was. */
ssize_t kvtree_write_fd(const char *path, int fd, const kvtree *tree);
ssize_t kvtree_read_fd(const char *path, int fd, kvtree *tree);

/* The bytes of a file with tree: *buffer, which the caller frees, and *size of them. */
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
 * The lock is on the file itself, and no other file stays beside it. It excludes other
 * processes and other threads that use these functions, on all nodes if the file system
 * supports it, and ends with its descriptor: a killed process blocks no other. All
 * functions wait for as long as others hold the lock. A file system without locks is
 * -ENOLCK, -ENOTSUP, -ENOSYS or -EINVAL, as the system reports it. Readers without the
 * lock see the old file or the new one; writers without it (kvtree_write_file) may undo a
 * change of its holder. */

/* As kvtree_read_file, when no process holds the lock to change the file. Needs no
 * permission to write. A missing file is an empty tree. */
int kvtree_read_with_lock(const char *path, kvtree *tree);

/* As kvtree_write_file, when no other process holds the lock. A link is refused. The mode
 * of the file, less the umask, is 0600; 0660 in a directory that a group shares: who can
 * open a file for reading can keep others from locking it. That is also the mode of the
 * files that the following functions make and replace. */
int kvtree_write_with_lock(const char *path, const kvtree *tree);

/* Locks the file exclusively, and merges it into tree. A missing
 * file is made, with an empty tree. *fd belongs to the caller, which passes it to
 * kvtree_write_close_unlock, or to close() to leave the file as it is. It is closed by
 * exec; a process made by fork shares the lock until it closes its copy. On failure
 * there is no lock, and *fd stays as it was. */
int kvtree_lock_open_read(const char *path, int *fd, kvtree *tree);

/* Replaces the locked file by tree, as kvtree_write_file does, and gives up the lock. On
 * failure too, *fd is closed and becomes -1. -ESTALE, with nothing written, if path no
 * longer leads to the locked file: it was replaced or removed without the lock. */
int kvtree_write_close_unlock(const char *path, int *fd, const kvtree *tree);

/* The same for name below the open directory dir (AT_FDCWD: any path), with a text on
 * failure; see kvtree_file_write. */
int kvtree_file_read_with_lock(int dir, const char *name, uint64_t limit, kvtree *tree,
                               kvtree_error *err);
int kvtree_file_write_with_lock(int dir, const char *name, uint64_t limit,
                                const kvtree *tree, kvtree_error *err);
int kvtree_file_lock_open_read(int dir, const char *name, uint64_t limit, int *fd,
                               kvtree *tree, kvtree_error *err);
int kvtree_file_write_close_unlock(int dir, const char *name, uint64_t limit, int *fd,
                                   const kvtree *tree, kvtree_error *err);

/* kvtree_file_lock_open_read with a limit on the wait, such as for a process that was
 * stopped while it had the lock: -ETIMEDOUT after that number of seconds (negative:
 * never). */
int kvtree_file_lock_within(int dir, const char *name, uint64_t limit, int seconds,
                            int *fd, kvtree *tree, kvtree_error *err);

/* Locks a file without content, which is made if it is missing: for several tree files
 * with one lock, or for files that others may read, as those could lock them, too. Its
 * mode is 0600, or 0660 in a directory that a group shares, whatever the umask is.
 * -ETIMEDOUT as above; -ENOENT without the directory. *fd is for close(). */
int kvtree_file_lock_only(int dir, const char *name, int seconds, int *fd,
                          kvtree_error *err);

/* ---- the trees of many ranks in files (docs/formats/gather.md) ----
 *
 * In one tree, <rank> -> tree for each rank. They are the files of kvtree_gather.h and
 * kvtree_mpi.h. */

/* Writes the trees of all ranks; -EINVAL unless data has each rank from 0 to ranks - 1
 * and nothing else. data becomes sorted by rank. */
int kvtree_write_to_gather(const char *path, kvtree *data, int ranks);

/* Merges the trees of all ranks into data, in ascending order. Errors are those of
 * kvtree_gather_read_all and kvtree_merge. */
int kvtree_read_scatter_single(const char *path, kvtree *data);

/* ---- text for people, and JSON (docs/formats/kvtree.md) ---- */

/* KVTREE_FORM_TREE: a key per line, indented by its level; two different trees never have
 * the same text. PAIRS: the same, but a key with one child, which has no children, is one
 * line, KEY = VALUE. LINES: as PAIRS, with guide lines. JSON: an object. */
#define KVTREE_FORM_TREE 0
#define KVTREE_FORM_PAIRS 1
#define KVTREE_FORM_LINES 2
#define KVTREE_FORM_JSON 3

/* Prints tree to out, indented by `indent` columns per level (0 or less: 2). Nothing in a
 * key reaches a terminal as a control character. All is written when this returns 0;
 * -EINVAL for an unknown form, -errno or -EIO if out fails. */
int kvtree_fprint(FILE *out, const kvtree *tree, int form, int indent);

/* Prints tree to stdout, in the form KVTREE_FORM_TREE or KVTREE_FORM_PAIRS, with two
 * columns per level; the first level begins two columns to the right of `indent`. NULL
 * prints as NULL LIST. -EINVAL for another mode. */
#define KVTREE_PRINT_TREE 1
#define KVTREE_PRINT_KEYVAL 2
int kvtree_print(const kvtree *tree, int indent);
int kvtree_print_mode(const kvtree *tree, int indent, int mode);

/* As kvtree_print. The level is not used, as in KVTree. */
int kvtree_log(const kvtree *tree, int level, int indent);

#ifdef __cplusplus
}
#endif
#endif
