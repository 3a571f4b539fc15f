/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_MPI_PRIVATE_H
#define KVTREE_MPI_PRIVATE_H

/* Sending trees, for the sources and tests of kvtree-mpi.
 *
 * A message is an int64 (big-endian) followed by this number of bytes, a packed tree. A
 * negative number is an error of the sender, which must not leave the receiver waiting;
 * no bytes follow. Messages are cut into pieces of at most `limit` bytes, so that a count
 * always fits an int, and a receiver without memory for a large tree can still receive
 * it, piece by piece. A broadcast has larger pieces once all ranks agree that they have
 * memory. */

#include <kvtree/kvtree_mpi.h>
#include <stdint.h>

#define MESSAGE_HEADER 8

/* The default limit. Scratch memory is on the stack, so receiving never fails for lack of
 * it. Tests pass lower limits, of at least MESSAGE_HEADER bytes. */
#define MESSAGE_LIMIT (1 << 16)

/* The place where messages are exchanged. scratch has limit bytes; it is NULL in the
 * result of channel_of: a receiver sets its own in a copy. */
struct channel {
    MPI_Comm comm;
    int tag;
    int limit;
    char *scratch;
};

/* Messages that are being sent. */
struct outbox {
    char *bytes; /* all messages, one after the other */
    size_t used;
    MPI_Request *requests;      /* one for each piece */
    int posted, sent;           /* pieces posted; pieces completely sent */
    char error[MESSAGE_HEADER]; /* without memory for the above: room for ... */
    MPI_Request error_request;  /* ... one message with this error */
};

char *message_put_header(char *bytes, int64_t number);
int64_t message_get_header(const char *bytes);

/* Return the bytes of the message that carries tree, and the pieces of a message of size
 * bytes. */
size_t message_size(const kvtree *tree);
size_t message_pieces(size_t size, int limit);

/* Takes the bytes that a rank sent, which are invalid after the return. Returns 0 or
 * -errno. */
typedef int message_take(void *arg, int source, const char *packed, size_t size);

/* Merges a packed tree into the tree arg (NULL: nowhere). */
int message_deliver(void *arg, int source, const char *packed, size_t size);

/* Receives the message whose first piece was matched, and passes its bytes to take, or
 * returns the sender's error. All its pieces are received, whatever the result. */
int message_receive(const struct channel *ch, MPI_Message *first,
                    const MPI_Status *status, message_take *take, void *arg);

/* Allocates room for messages of that number of bytes and pieces in total. */
int outbox_open(struct outbox *box, size_t size, size_t pieces);

/* Starts to send a tree. synchronous: the send completes only when the receiver has
 * matched every piece. */
int outbox_post(struct outbox *box, const struct channel *ch, const kvtree *tree,
                int rank, int synchronous);

/* Like outbox_post, synchronous, with packed bytes. */
int outbox_post_packed(struct outbox *box, const struct channel *ch, const char *packed,
                       size_t size, int rank);

/* Starts to send code in place of a tree, when outbox_open failed. */
int outbox_post_error(struct outbox *box, const struct channel *ch, int code, int rank);

/* *sent becomes whether everything is sent. */
int outbox_test(struct outbox *box, int *sent);

/* Collective; returns this rank's own result. Passes all messages sent to this rank to
 * take; the messages in box must be synchronous. Before the next exchange all ranks must
 * perform an agreement. */
int exchange_until_done(const struct channel *ch, struct outbox *box, message_take *take,
                        void *arg);

/* Waits until everything is sent, and frees the memory. */
int outbox_close(struct outbox *box);

/* Collective. Returns the channel of comm's private duplicate, which is created on first
 * use and kept as an attribute of comm; the result is the same on every rank. -EINVAL for
 * MPI_COMM_NULL and for an intercommunicator, on which collective functions would wait
 * forever. */
int channel_of(MPI_Comm comm, const struct channel **channel);

/* Collective. Returns the worst (lowest) code of all ranks. */
int channel_agree(const struct channel *ch, int code);

/* The public functions with lower limits, for tests. */
int kvtree_mpi_sendrecv(const kvtree *send, int to, kvtree *recv, int from, MPI_Comm comm,
                        int limit);
int kvtree_mpi_bcast(kvtree *tree, int root, MPI_Comm comm, int limit);
int kvtree_mpi_exchange(const kvtree *send, kvtree *recv, MPI_Comm comm, int limit);

#endif
