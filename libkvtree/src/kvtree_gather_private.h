/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_GATHER_PRIVATE_H
#define KVTREE_GATHER_PRIVATE_H

/* The files that hold the trees of many ranks (docs/formats/gather.md), one at a time:
 * code shared by the writers and the readers of a whole set.
 *
 *     kvtree_gather_file.c   the contents and the name of one file
 *     kvtree_gather.c        kvtree_gather_write_all
 *     kvtree_scatter.c       kvtree_gather_read_all
 *     kvtree_gather_mpi.c    kvtree_write_gather, kvtree_gather_write
 *     kvtree_scatter_mpi.c   kvtree_read_scatter, kvtree_scatter_read
 *
 * An item is an entry below RANK in a file: at level 0 the tree of a rank, above it a
 * pointer to a file of the level below. `top` may be NULL everywhere: no top key. Both
 * parts of the library compile their own copy of kvtree_gather_file.c. */

#include "common/beneath.h"
#include <kvtree/kvtree_gather.h>
#include <stdbool.h>
#include <stdint.h>

#define kvtree_gather_check_rank COMMON(kvtree_gather_check_rank)
#define kvtree_gather_check_root COMMON(kvtree_gather_check_root)
#define kvtree_gather_check_size COMMON(kvtree_gather_check_size)
#define kvtree_gather_check_sum COMMON(kvtree_gather_check_sum)
#define kvtree_gather_file_name COMMON(kvtree_gather_file_name)
#define kvtree_gather_file_read COMMON(kvtree_gather_file_read)
#define kvtree_gather_file_take COMMON(kvtree_gather_file_take)
#define kvtree_gather_group_add COMMON(kvtree_gather_group_add)
#define kvtree_gather_group_free COMMON(kvtree_gather_group_free)
#define kvtree_gather_group_write COMMON(kvtree_gather_group_write)
#define kvtree_gather_listed_twice COMMON(kvtree_gather_listed_twice)
#define kvtree_gather_pack COMMON(kvtree_gather_pack)
#define kvtree_gather_pack_pointer COMMON(kvtree_gather_pack_pointer)
#define kvtree_gather_stem COMMON(kvtree_gather_stem)
#define kvtree_gather_width COMMON(kvtree_gather_width)

/* Maximum size of a file if no limit is given. */
#define KVTREE_GATHER_LIMIT ((size_t)1 << 20)

/* Highest level of a root: with two files below each, 2^32 ranks. */
#define KVTREE_GATHER_LEVEL_MAX 32

/* ---- names ---- */

/* Returns the length of root without its suffix. */
size_t kvtree_gather_stem(const char *root);

/* Builds the name of the file at level that rank wrote: "x.0.3.scr" beside the root
 * "x.scr", "x.0.3" beside "x". -ENAMETOOLONG. */
int kvtree_gather_file_name(const char *root, int level, int rank,
                            char name[BENEATH_NAME_MAX]);

/* Checks a root name for errors that would otherwise appear after an earlier root was
 * removed: -EINVAL for a name that is not allowed, -ENAMETOOLONG for one that leaves no
 * room for the names of lower files. */
int kvtree_gather_check_root(const char *name, kvtree_error *err);

/* ---- writing ---- */

/* Returns the width of a group: items that begin within this number of bytes go into one
 * file at level, which is then not larger than to->limit. */
uint64_t kvtree_gather_width(const kvtree_gather_place *to, int level);

/* -EFBIG if no reader would accept the file of an item with that number of bytes. */
int kvtree_gather_check_size(const char *top, uint64_t size, kvtree_error *err);

/* An item on its way into a file: four bytes with the number of ranks at and below it,
 * and the packed tree, which is not unpacked on the way. */
typedef struct kvtree_gather_item {
    char *bytes; /* NULL: no item */
    size_t size;
} kvtree_gather_item;

/* Creates an item from the tree of rank, which stands for `ranks` ranks. *room becomes
 * the bytes that it takes in a file. -EFBIG and -EOVERFLOW if no reader would accept it.
 */
int kvtree_gather_pack(const kvtree_gather_place *to, int rank, int ranks,
                       const kvtree *tree, kvtree_gather_item *item, uint64_t *room,
                       kvtree_error *err);

/* Creates an item for the next level: the pointer to the file of rank at level. */
int kvtree_gather_pack_pointer(const kvtree_gather_place *to, int level, int rank,
                               int ranks, kvtree_gather_item *item, uint64_t *room,
                               kvtree_error *err);

/* The contents of a file that is being collected. Initialized with zeros. */
typedef struct kvtree_gather_group {
    int ranks; /* ranks at and below all items */
    size_t count;
    struct kvtree_gather_member *members;
} kvtree_gather_group;

/* Adds the item of rank. The group takes over its bytes, and frees them on failure:
 * -ENOMEM, or -EBADMSG if they are not an item. */
int kvtree_gather_group_add(kvtree_gather_group *group, int rank,
                            kvtree_gather_item item);

void kvtree_gather_group_free(kvtree_gather_group *group);

/* Writes the group to the file of rank at level, or to the root, and empties it. */
int kvtree_gather_group_write(kvtree_gather_group *group, const kvtree_gather_place *to,
                              int level, int rank, bool is_root, kvtree_error *err);

/* ---- reading ---- */

typedef struct kvtree_gather_part {
    int level;
    int ranks;     /* of a root: RANKS; at level 0: the number of listed ranks; else 0 */
    kvtree *items; /* rank -> item */
} kvtree_gather_part;

/* Checks the tree of a file, except the trees of ranks in it, and takes the items out.
 * level -1: a root. -EBADMSG with the problem in err. */
int kvtree_gather_file_take(kvtree *tree, const char *top, int level,
                            kvtree_gather_part *part, kvtree_error *err);

/* Reads the file name at level (-1: a root) and takes its tree apart. -EBADMSG for
 * damage, including a missing file that a root or another file names. */
int kvtree_gather_file_read(const kvtree_gather_place *from, const char *name, int level,
                            kvtree_gather_part *part, kvtree_error *err);

/* Checks that only all files together allow. -EBADMSG: the file name lists rank, but the
 * root has fewer ranks; ... */
int kvtree_gather_check_rank(const char *name, int rank, int64_t ranks,
                             kvtree_error *err);

/* ... the file lists rank a second time on a level; ... */
int kvtree_gather_listed_twice(const char *name, int rank, kvtree_error *err);

/* ... or the files of level 0 do not list the number of ranks of the root. */
int kvtree_gather_check_sum(const char *root, int64_t ranks, int64_t sum,
                            kvtree_error *err);

#endif
