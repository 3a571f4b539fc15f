/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_KVTREE_GATHER_H
#define KVTREE_KVTREE_GATHER_H

/* The trees of many ranks in files, written and read by one process without MPI.
 *
 * A root file names, beside it, files of at most 1 MB each, in as many levels as needed
 * (docs/formats/gather.md): root "x.scr", lower files "x.<level>.<rank>.scr", or root
 * "x", lower files "x.<level>.<rank>". The files are identical to those of kvtree_mpi.h,
 * so each side can read what the other wrote.
 *
 * Trees are processed one by one, so memory is needed for the content of one file per
 * level and for some bytes per file, not for all ranks.
 *
 * Functions return KVTREE_SUCCESS, -errno, or the code returned by a function of the
 * caller. */

#include <kvtree/kvtree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The place of a set of files. */
typedef struct kvtree_gather_place {
    int dir;          /* an open directory; names below it as in kvtree_file_write */
    const char *name; /* name of the root, in a directory that exists */
    const char *top;  /* top key above all others in the files of level 0; NULL: none */
    size_t limit;     /* writing: maximum size of a file; 0: 1 MB. A tree that needs more
                       * gets a larger file of its own (-EFBIG beyond 256 MiB), and a file
                       * above level 0 holds at least two names, whatever the limit */
    size_t skip; /* reading: dir is the directory that the first skip bytes of name lead
                  * to, "x/" of "x/root.scr"; names in files must begin with these bytes
                  */
} kvtree_gather_place;

/* Fills the empty tree with the data of rank. Returns 0, or a code that ends the call and
 * is returned with err. */
typedef int kvtree_gather_give(void *arg, int rank, kvtree *tree, kvtree_error *err);

/* Receives the tree of a rank, may change it, and loses it after the return. Returns 0,
 * or a code that ends the call and is returned with err. */
typedef int kvtree_gather_take(void *arg, int rank, kvtree *tree, kvtree_error *err);

/* Writes the trees of `ranks` ranks (1 or more). give is called for rank 0, 1, ... in
 * turn.
 *
 * An earlier root is durably removed once the trees of the first file are available and
 * before that file is written, and the new root is written last. After a crash or a
 * failure, also of give, there is the earlier set, no root, or the new set, and never a
 * mixture. */
int kvtree_gather_write_all(const kvtree_gather_place *to, int ranks,
                            kvtree_gather_give *give, void *arg, kvtree_error *err);

/* Reads all trees, in the order of the files, in which a rank with a large tree comes
 * later than its neighbors. take may be NULL, to check that everything is intact. On
 * success take was called once for each rank below *ranks (unless ranks is NULL, the
 * number of ranks).
 *
 * -ENOENT without a root; -EPROTONOSUPPORT for a file of an unknown format (kvtree.h);
 * -EBADMSG, with the name of the file, when anything is damaged, missing or
 * contradictory. This may be detected only at the end: take may have been called for any
 * tree before a failure. */
int kvtree_gather_read_all(const kvtree_gather_place *from, int *ranks,
                           kvtree_gather_take *take, void *arg, kvtree_error *err);

/* Reads the tree of one rank: one file per level, and one more for each large tree of a
 * neighbor on the way. *ranks (unless NULL) is the number of ranks. -ENOENT also if there
 * is no such rank; otherwise like kvtree_gather_read_all, but files that are not read are
 * not checked. */
int kvtree_gather_read_one(const kvtree_gather_place *from, int rank, int *ranks,
                           kvtree *tree, kvtree_error *err);

/* Returns 1 if name is that of the root or may be that of one of its lower files. Other
 * files must not have such names. */
int kvtree_gather_owns(const char *root, const char *name);

#ifdef __cplusplus
}
#endif
#endif
