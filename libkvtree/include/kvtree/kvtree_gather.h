/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_KVTREE_GATHER_H
#define KVTREE_KVTREE_GATHER_H

/* The trees of many ranks in files, written and read by one process without MPI.
 *
 * A root file names, beside it, files of at most 1 MB each, in as many levels as are
 * needed (docs/formats/gather.md): root "x.scr", lower files "x.<level>.<rank>.scr", or
 * root "x", lower files "x.<level>.<rank>". They are those of kvtree_mpi.h, byte for
 * byte: what one side writes the other reads.
 *
 * Trees come and go one by one, so memory is needed for what one file of each level
 * holds, and some bytes for each file; not for all ranks.
 *
 * Functions return KVTREE_SUCCESS, -errno, or what a function of the caller returned. */

#include <kvtree/kvtree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a set is. */
typedef struct kvtree_gather_place {
    int dir;          /* an open directory; names below it as in kvtree_file_write */
    const char *name; /* of the root, in a directory that exists */
    const char *top;  /* key over all others in the files of level 0; NULL: none */
    size_t limit;     /* writing: most bytes of a file; 0: 1 MB. A tree that needs more
                         gets a larger file of its own (-EFBIG beyond 256 MiB), and a file
                         above level 0 holds at least two names, whatever the limit */
    size_t skip; /* reading: dir is the directory that the first skip bytes of name lead
                    to, "x/" of "x/root.scr"; names in files must begin with them */
} kvtree_gather_place;

/* Fills tree, which is empty, with the data of rank. Returns 0, or a code that ends the
 * call and is passed on with err. */
typedef int kvtree_gather_give(void *arg, int rank, kvtree *tree, kvtree_error *err);

/* Takes the tree of a rank: it may be changed, and is gone after the return. Returns
 * 0, or a code that ends the call and is passed on with err. */
typedef int kvtree_gather_take(void *arg, int rank, kvtree *tree, kvtree_error *err);

/* Writes the trees of `ranks` ranks (1 or more), asking for that of rank 0, 1, ... in
 * turn.
 *
 * An earlier root is removed, for good, when the trees of the first file are there and
 * before it is written, and the new root comes last: after a crash, or a failure, of give
 * too, there is the earlier set, or no root, or the new set, and never a mixture. */
int kvtree_gather_write_all(const kvtree_gather_place *to, int ranks,
                            kvtree_gather_give *give, void *arg, kvtree_error *err);

/* Reads all trees, in the order of the files, in which a rank with a large tree comes
 * later than its neighbours; take may be NULL, to see that all is whole. On success take
 * had each rank below *ranks (unless ranks is NULL, their number) once.
 *
 * -ENOENT without a root; -EPROTONOSUPPORT for a file of a format that is not known
 * here (kvtree.h); -EBADMSG when anything is damaged, missing or contradicts
 * itself, with the name of the file. That may be found at the end only: take may have had
 * any of the trees before a failure. */
int kvtree_gather_read_all(const kvtree_gather_place *from, int *ranks,
                           kvtree_gather_take *take, void *arg, kvtree_error *err);

/* Reads the tree of one rank: as many files as there are levels, and one more for each
 * large tree of a neighbour that is passed on the way. *ranks (unless NULL) is the number
 * of ranks. -ENOENT also where there is no such rank; otherwise as
 * kvtree_gather_read_all, but what is not read is not checked. */
int kvtree_gather_read_one(const kvtree_gather_place *from, int rank, int *ranks,
                           kvtree *tree, kvtree_error *err);

/* 1 if name is that of the root or may be that of one of its lower files, which other
 * files must not have. */
int kvtree_gather_owns(const char *root, const char *name);

#ifdef __cplusplus
}
#endif
#endif
