/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_KVTREE_MPI_H
#define KVTREE_KVTREE_MPI_H

/* Trees between MPI processes. A tree received with recv, sendrecv or bcast replaces the
 * content of the given tree, which is unchanged on failure; other functions merge into
 * it. Data received into NULL is dropped. All functions return KVTREE_SUCCESS or -errno
 * (-EINVAL, -ENOMEM, -EBADMSG, -EIO for an MPI error). Trees may be of any size. A tree
 * that its sender could not pack arrives as the sender's error. comm may be an
 * intercommunicator in send, recv and sendrecv; all other functions refuse one, and all
 * functions refuse MPI_COMM_NULL (-EINVAL).
 *
 * Collective functions communicate over a private duplicate of comm that is kept as its
 * attribute, so they never touch messages and collective calls of the application. The
 * duplicate is created on first use and freed with comm. Collective functions return the
 * same result on every rank, and no rank receives anything unless all succeed (except for
 * -ENOMEM while merging into a tree that was not empty). send, recv and sendrecv use the
 * tag KVTREE_TAG on comm itself. */

#include <kvtree/kvtree_gather.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVTREE_TAG 0x6b76

/* Sends tree to rank; blocks like MPI_Send. rank may be MPI_PROC_NULL; a rank that comm
 * does not have is -EINVAL, and nothing is sent. */
int kvtree_send(const kvtree *tree, int rank, MPI_Comm comm);

/* Receives a tree from rank, which may be MPI_ANY_SOURCE or MPI_PROC_NULL. */
int kvtree_recv(kvtree *tree, int rank, MPI_Comm comm);

/* Sends and receives at once, without a deadlock. */
int kvtree_sendrecv(const kvtree *send, int to, kvtree *recv, int from, MPI_Comm comm);

/* Collective. The trees of all other ranks become that of root. */
int kvtree_bcast(kvtree *tree, int root, MPI_Comm comm);

/* Collective, sparse. send contains <rank> -> tree for each destination rank; recv
 * receives <rank> -> tree from each rank that sent, ordered by rank. Any other key in
 * send is -EINVAL. Receivers need not know in advance which ranks send. Messages per
 * rank: those with its own partners plus O(log P) (nonblocking consensus: Hoefler,
 * Siebert, Lumsdaine, "Scalable communication protocols for dynamic sparse data
 * exchange", PPoPP 2010). */
int kvtree_exchange(const kvtree *send, kvtree *recv, MPI_Comm comm);

/* Merges a copy of message into the tree for rank in send. -EINVAL for a rank below 0. */
int kvtree_exchange_sendq(kvtree *send, int rank, const kvtree *message);

/* Like kvtree_exchange, for callers that know whether most trees go to higher (RIGHT) or
 * lower (LEFT) ranks. The trees are sent directly in either case; any other direction is
 * -EINVAL. */
typedef enum kvtree_exchange_enum {
    KVTREE_EXCHANGE_RIGHT = 0,
    KVTREE_EXCHANGE_LEFT = 1
} kvtree_exchange_enum;
int kvtree_exchange_direction(const kvtree *send, kvtree *recv, MPI_Comm comm,
                              kvtree_exchange_enum direction);

/* ---- the trees of all ranks in files ----
 *
 * A root file names, beside it, files of at most 1 MB each, in as many levels as needed
 * (docs/formats/gather.md), so that no rank has to hold everything: root "x.scr", lower
 * files "x.<level>.<rank>.scr", or "x" and "x.<level>.<rank>". Names in the files are
 * relative, so the directory may be moved. Any number of ranks may read the files, and so
 * may one process without MPI (kvtree_gather.h).
 *
 * An earlier root is removed before the first file that it names is replaced, and the new
 * root is written last: after a crash or a failure there is the earlier set, no root, or
 * the new set, and never a mixture. Lower files that remain from a larger earlier set are
 * not removed; no file names them. Reading while others write is not allowed.
 *
 * All arguments except trees must be the same on every rank. */

/* Collective. Writes the tree of every rank. The directory of path must exist; it may be
 * reached by links, but the files themselves may not be links. */
int kvtree_write_gather(const char *path, const kvtree *tree, MPI_Comm comm);

/* Collective. Merges the stored trees into tree. Of W trees on R ranks, rank r gets those
 * of the ranks r, r + R, r + 2 R, ... below W, one after the other. With as many ranks as
 * wrote, each rank gets its own tree; with more, the additional ranks get nothing; with
 * fewer, the keys should name the rank (kvtree_scatter_read keeps trees apart). -ENOENT
 * without a root; -EBADMSG when anything is damaged, missing or contradictory. */
int kvtree_read_scatter(const char *path, kvtree *tree, MPI_Comm comm);

/* The place of a set of files, for the two functions below. */
typedef struct kvtree_gather {
    MPI_Comm comm;
    int dir;          /* an open directory; names below it as in kvtree_file_write */
    const char *name; /* name of the root, in a directory that exists */
    const char *top;  /* top key above all others in the files of level 0; NULL: none */
    size_t limit;     /* writing: maximum size of a file; 0: 1 MB. A tree that needs more
                       * gets a larger file of its own (-EFBIG beyond 256 MiB), and a file
                       * above level 0 holds at least two names, whatever the limit */
    /* NULL, or a function that opens *dir, which remains the caller's. It is called on
     * ranks that passed a negative dir and read or write a file, but not on rank 0, which
     * must pass an open directory. */
    int (*open)(void *arg, int *dir, kvtree_error *err);
    void *arg;
    int fresh; /* writing: 1, the caller guarantees that there is no earlier root */
} kvtree_gather;

/* Like kvtree_write_gather; err is also the same on every rank. */
int kvtree_gather_write(const kvtree_gather *to, const kvtree *tree, kvtree_error *err);

/* Like kvtree_read_scatter, but trees gets <rank that wrote> -> tree, in ascending order,
 * and *ranks (if not NULL) the number of ranks that wrote. err names a damaged file. */
int kvtree_scatter_read(const kvtree_gather *from, int *ranks, kvtree *trees,
                        kvtree_error *err);

#ifdef __cplusplus
}
#endif
#endif
