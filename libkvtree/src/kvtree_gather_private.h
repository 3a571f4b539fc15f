/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_GATHER_PRIVATE_H
#define KVTREE_GATHER_PRIVATE_H

/* The files in which the trees of many ranks lie together (docs/formats/gather.md), one
 * at a time: what those have in common who write and read all of them.
 *
 *     kvtree_gather_file.c   the contents and the name of one file
 *     kvtree_gather.c        kvtree_gather_write_all
 *     kvtree_scatter.c       kvtree_gather_read_all
 *     kvtree_gather_mpi.c    kvtree_write_gather, kvtree_gather_write
 *     kvtree_scatter_mpi.c   kvtree_read_scatter, kvtree_scatter_read
 *
 * An item is what a file has below RANK: at level 0 the tree of a rank, above it a
 * pointer to a file of the level below. `top` may be NULL everywhere: no top key. */

#include "common/beneath.h"
#include "src/kvtree_names_private.h"
#include <kvtree/kvtree_gather.h>
#include <stdint.h>

/* Most bytes of a file, where no limit is given. */
#define KVTREE_GATHER_LIMIT ((size_t)1 << 20)

/* Largest file that is read, and so the most that one rank may give to be written. */
#define KVTREE_GATHER_FILE_MAX ((uint64_t)1 << 30)

/* Most levels that are believed: with two files below each, 2^32 ranks. */
#define KVTREE_GATHER_LEVEL_MAX 32

typedef struct kvtree_gather_part {
    int level;
    int ranks;     /* at and below this file */
    kvtree *items; /* rank -> item */
} kvtree_gather_part;

/* Name of the file at level that rank wrote: "x.0.3.scr" beside the root "x.scr".
 * -ENAMETOOLONG. */
int kvtree_gather_file_name(const char *root, int level, int rank,
                            char name[BENEATH_NAME_MAX]);

/* What would otherwise fail when an earlier root is gone: -EINVAL for a name that is not
 * allowed, -ENAMETOOLONG for one that leaves no room for those of lower files. */
int kvtree_gather_check_root(const char *name, char *err);

/* Bytes of the item of rank in a file. */
uint64_t kvtree_gather_item_size(int rank, const kvtree *item);

/* Items that begin within so many bytes go into one file at level, which then is not
 * larger than limit (0: KVTREE_GATHER_LIMIT). */
uint64_t kvtree_gather_width(const char *root, const char *top, size_t limit, int level);

/* -EFBIG for an item of so many bytes that its file could not be read again. */
int kvtree_gather_check_size(const char *top, uint64_t item, char *err);

/* A pointer to a lower file; NULL without memory. And what a checked one points to. */
kvtree *kvtree_gather_pointer(const char *name);
const char *kvtree_gather_pointed(const kvtree *pointer);

/* The tree of a file with these items, which it takes over; NULL without memory, items
 * freed. */
kvtree *kvtree_gather_file_make(const char *top, int level, int ranks, kvtree *items);

/* Checks the tree of a file, all but the trees of ranks in it, and takes the items out.
 * level -1: that of a root. -EBADMSG, and err says what is wrong. */
int kvtree_gather_file_take(kvtree *tree, const char *top, int level,
                            kvtree_gather_part *part, char *err);

/* Reads the file name at level, or a root: -1, and takes it apart. -EBADMSG for what is
 * not as it should be; that includes a missing file that a root or another file names. */
int kvtree_gather_file_read(const kvtree_gather_place *from, const char *name, int level,
                            kvtree_gather_part *part, char *err);

/* What only all files together show; -EBADMSG. The file name lists rank, of so many that
 * the root tells; ... */
int kvtree_gather_check_rank(const char *name, int rank, int64_t ranks, char *err);

/* ... or lists it a second time on a level; ... */
int kvtree_gather_listed_twice(const char *name, int rank, char *err);

/* ... and the files of a level tell of so many ranks together. */
int kvtree_gather_check_told(const char *root, int64_t ranks, int level, int64_t told,
                             char *err);

/* Removes a root, for good: it does not come back when the system fails. A missing one is
 * no error. */
int kvtree_gather_remove_root(int dir, const char *name, char *err);

#endif
