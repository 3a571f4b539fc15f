/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_KVTREE_MPI_H
#define KVTREE_KVTREE_MPI_H

/* Trees between MPI processes. Received trees are merged into the given one; received
 * into NULL they are dropped. All return KVTREE_SUCCESS or -errno (-EINVAL, -ENOMEM,
 * -EBADMSG, -EIO for an MPI error). Trees may be of any size. A tree that its sender
 * could not pack arrives as the sender's error.
 *
 * Collective functions talk over a private duplicate of comm that is
 * kept as its attribute, so messages of the application are never touched; it is made on
 * first use (1 MB per process and comm) and freed with comm. They give the same result on
 * every rank, and no rank gets anything unless all succeed (but for -ENOMEM while merging
 * into a tree that held something before). send, recv and sendrecv use the tag KVTREE_TAG
 * on comm itself. */

#include <kvtree/kvtree.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVTREE_TAG 0x6b76

/* Sends tree to rank; blocks as MPI_Send does. rank may be MPI_PROC_NULL. */
int kvtree_send(const kvtree *tree, int rank, MPI_Comm comm);

/* Receives a tree from rank. */
int kvtree_recv(kvtree *tree, int rank, MPI_Comm comm);

/* Both at once, without a deadlock; either rank may be MPI_PROC_NULL. */
int kvtree_sendrecv(const kvtree *send, int to, kvtree *recv, int from, MPI_Comm comm);

/* Collective. The tree of root is merged into that of all other ranks. */
int kvtree_bcast(kvtree *tree, int root, MPI_Comm comm);

/* Collective, sparse. send holds <rank> -> tree for each rank to be sent to; recv gets
 * <rank> -> tree from each rank that sent, ordered by rank. Any other key in send is
 * -EINVAL. No one needs to know in advance who sends. Messages per rank: its own partners
 * plus O(log P) (nonblocking consensus: Hoefler, Siebert, Lumsdaine, "Scalable
 * communication protocols for dynamic sparse data exchange", PPoPP 2010). */
int kvtree_exchange(const kvtree *send, kvtree *recv, MPI_Comm comm);

/* The same with less memory: packs a tree of send when the one before it has arrived, not
 * all at once. For few large trees. */
int kvtree_exchange_sendq(const kvtree *send, kvtree *recv, MPI_Comm comm);

/* kvtree_exchange for callers who tell whether most trees go to higher (RIGHT) or lower
 * (LEFT) ranks. They go straight in either case; any other direction is -EINVAL. */
#define KVTREE_EXCHANGE_RIGHT 0
#define KVTREE_EXCHANGE_LEFT 1
int kvtree_exchange_direction(const kvtree *send, kvtree *recv, MPI_Comm comm,
                              int direction);

#ifdef __cplusplus
}
#endif
#endif
