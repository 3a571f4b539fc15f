/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_MPI_PRIVATE_H
#define KVTREE_MPI_PRIVATE_H

/* How a tree travels, for the sources and tests of kvtree-mpi.
 *
 * A message is an int64 (big-endian) and as many bytes: a packed tree. A negative number
 * is an error of the sender, which must not leave the receiver waiting, and no bytes
 * follow. Messages are cut into pieces of at most `limit` bytes: so a count always fits
 * an int, and a receiver without memory for a large tree can still take it off the
 * network, piece by piece. A broadcast has larger ones, where all agree that they have
 * memory. */

#include <kvtree/kvtree_mpi.h>
#include <stdint.h>

#define MESSAGE_HEADER 8

/* The limit: scratch memory is on the stack, so that receiving never needs memory that
 * might be missing. Tests pass lower ones, of at least MESSAGE_HEADER bytes. */
#define MESSAGE_LIMIT (1 << 16)

/* Where messages travel. scratch has limit bytes, and is NULL in what channel_of returns:
 * to receive, a copy gets its own. */
struct channel {
    MPI_Comm comm;
    int tag;
    int limit;
    char *scratch;
};

/* Messages under way. */
struct outbox {
    char *bytes; /* all messages, one behind the other */
    size_t used;
    MPI_Request *requests;      /* one for each piece */
    int posted, sent;           /* pieces that are under way, and that are done */
    char error[MESSAGE_HEADER]; /* what there is without memory for the above: room for */
    MPI_Request error_request;  /* one message that tells so */
};

char *message_put_header(char *bytes, int64_t number);
int64_t message_get_header(const char *bytes);

/* Bytes of the message that carries tree, and pieces of a message of size bytes. */
size_t message_size(const kvtree *tree);
size_t message_pieces(size_t size, int limit);

/* Takes the bytes that a rank sent, which are gone after the return. 0 or -errno. */
typedef int message_take(void *arg, int source, const char *packed, size_t size);

/* Merges a packed tree into the tree arg (NULL: nowhere). */
int message_deliver(void *arg, int source, const char *packed, size_t size);

/* Receives the message after its first piece was matched, and has its bytes taken, or
 * returns the sender's error. Whatever the result is, all its pieces were received. */
int message_receive(const struct channel *ch, MPI_Message *first,
                    const MPI_Status *status, message_take *take, void *arg);

/* Makes room for messages of that number of bytes and pieces in all. */
int outbox_open(struct outbox *box, size_t size, size_t pieces);

/* Starts to send; synchronous: not done before the receiver matched every piece. */
int outbox_post(struct outbox *box, const struct channel *ch, const kvtree *tree,
                int rank, int synchronous);

/* The same, synchronous, with bytes that are packed already. */
int outbox_post_packed(struct outbox *box, const struct channel *ch, const char *packed,
                       size_t size, int rank);

/* Starts to send code in place of a tree, when outbox_open failed. */
int outbox_post_error(struct outbox *box, const struct channel *ch, int code, int rank);

/* *sent tells whether all is sent. */
int outbox_test(struct outbox *box, int *sent);

/* Collective, the result is this rank's own. Has the messages of all ranks to this one
 * taken; those in box are synchronous. Before the next exchange all ranks must agree on
 * something. */
int exchange_until_done(const struct channel *ch, struct outbox *box, message_take *take,
                        void *arg);

/* Waits until all is sent, and frees the memory. */
int outbox_close(struct outbox *box);

/* Collective. The channel of comm's private duplicate, made on first use and kept as an
 * attribute of comm; same result on every rank. -EINVAL for MPI_COMM_NULL and for an
 * intercommunicator, where collective functions would wait for ever. */
int channel_of(MPI_Comm comm, const struct channel **channel);

/* Collective. The worst (lowest) code of all ranks. */
int channel_agree(const struct channel *ch, int code);

/* The public functions with lower limits, for tests. */
int kvtree_mpi_sendrecv(const kvtree *send, int to, kvtree *recv, int from, MPI_Comm comm,
                        int limit);
int kvtree_mpi_bcast(kvtree *tree, int root, MPI_Comm comm, int limit);
int kvtree_mpi_exchange(const kvtree *send, kvtree *recv, MPI_Comm comm, int limit);

#endif
