/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees between MPI processes: the functions of kvtree_mpi.h. */
#include "src/kvtree_mpi_private.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- between two processes, on the communicator of the application ---- */

static int start_send(struct outbox *box, const struct channel *ch, const kvtree *tree,
                      int rank)
{
    size_t size = rank == MPI_PROC_NULL ? 0 : message_size(tree);
    int rc = outbox_open(box, size, message_pieces(size, ch->limit));
    if (rank == MPI_PROC_NULL) return 0;
    return rc ? outbox_post_error(box, ch, rc, rank)
              : outbox_post(box, ch, tree, rank, 0);
}

static int receive(const struct channel *ch, kvtree *tree, int rank)
{
    MPI_Message first;
    MPI_Status status;
    if (rank == MPI_PROC_NULL) return 0;
    if (MPI_Mprobe(rank, ch->tag, ch->comm, &first, &status) != MPI_SUCCESS) return -EIO;
    return message_receive(ch, &first, &status, tree);
}

int kvtree_mpi_sendrecv(const kvtree *send, int to, kvtree *recv, int from, MPI_Comm comm,
                        int limit)
{
    char scratch[LIMIT_PAIR];
    struct channel ch = {comm, KVTREE_TAG, limit, scratch};
    struct outbox box;
    int sent = start_send(&box, &ch, send, to);
    int received = receive(&ch, recv, from);
    int closed = outbox_close(&box);
    return sent ? sent : received ? received : closed;
}

int kvtree_sendrecv(const kvtree *send, int to, kvtree *recv, int from, MPI_Comm comm)
{
    return kvtree_mpi_sendrecv(send, to, recv, from, comm, LIMIT_PAIR);
}

int kvtree_send(const kvtree *tree, int rank, MPI_Comm comm)
{
    return kvtree_sendrecv(tree, rank, NULL, MPI_PROC_NULL, comm);
}

int kvtree_recv(kvtree *tree, int rank, MPI_Comm comm)
{
    return kvtree_sendrecv(NULL, MPI_PROC_NULL, tree, rank, comm);
}

/* ---- collective functions ---- */

/* What arrives is kept apart until all ranks know that all went well. An empty tree can
 * be filled at once, as it can be emptied again; only others need a tree of their own. */
static kvtree *apart(kvtree *tree)
{
    return tree && kvtree_size(tree) == 0 ? tree : kvtree_new();
}

/* Collective. Gives each rank what arrived for it, if all went well everywhere, and
 * returns the worst code of all. Merging can fail, too, so it needs a second agreement,
 * but only where some rank has to merge at all. */
static int conclude(const struct channel *ch, int rc, kvtree *tree, kvtree *arrived)
{
    int separate = arrived != tree;
    int mine[2] = {rc, separate && tree ? -1 : 0}, worst[2];
    if (MPI_Allreduce(mine, worst, 2, MPI_INT, MPI_MIN, ch->comm) != MPI_SUCCESS)
        worst[0] = -EIO;
    if (!worst[0] && worst[1])
        worst[0] = channel_agree(ch, separate && tree ? kvtree_merge(tree, arrived) : 0);
    if (separate)
        kvtree_delete(&arrived);
    else if (worst[0])
        kvtree_unset_all(tree);
    return worst[0];
}

/* Everyone but root makes room; without memory the pieces pass through scratch. */
static int bcast_pieces(const struct channel *ch, char *bytes, size_t size, int root)
{
    int rc = 0;
    for (size_t done = 0; done < size;) {
        size_t left = size - done;
        int n = left < (size_t)ch->limit ? (int)left : ch->limit;
        char *piece = bytes ? bytes + done : ch->scratch;
        if (MPI_Bcast(piece, n, MPI_BYTE, root, ch->comm) != MPI_SUCCESS) rc = -EIO;
        done += (size_t)n;
    }
    return rc;
}

static int bcast_as_root(const struct channel *ch, const kvtree *tree, int root)
{
    char header[MESSAGE_HEADER];
    size_t size = kvtree_pack_size(tree);
    char *bytes = malloc(size);
    message_put_header(header, bytes ? (int64_t)size : -ENOMEM);
    int rc = MPI_Bcast(header, MESSAGE_HEADER, MPI_BYTE, root, ch->comm) == MPI_SUCCESS
                 ? 0
                 : -EIO;
    if (!bytes) return -ENOMEM;
    kvtree_pack(bytes, tree);
    if (!rc) rc = bcast_pieces(ch, bytes, size, root);
    free(bytes);
    return rc;
}

static int bcast_as_other(const struct channel *ch, kvtree *tree, int root)
{
    char header[MESSAGE_HEADER];
    if (MPI_Bcast(header, MESSAGE_HEADER, MPI_BYTE, root, ch->comm) != MPI_SUCCESS)
        return -EIO;
    int64_t number = message_get_header(header);
    if (number < 0) return (int)number;
    size_t size = (size_t)number;
    char *bytes = malloc(size);
    int rc = bcast_pieces(ch, bytes, size, root);
    if (!rc) rc = bytes ? message_deliver(bytes, size, tree) : -ENOMEM;
    free(bytes);
    return rc;
}

int kvtree_mpi_bcast(kvtree *tree, int root, MPI_Comm comm, int limit)
{
    int rank, ranks;
    const struct channel *kept;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (root < 0 || root >= ranks) return -EINVAL;
    int rc = channel_of(comm, &kept);
    if (rc) return rc;
    struct channel ch = *kept;
    ch.limit = limit;
    if (rank == root) return conclude(&ch, bcast_as_root(&ch, tree, root), NULL, NULL);
    kvtree *arrived = apart(tree);
    rc = bcast_as_other(&ch, arrived, root);
    return conclude(&ch, arrived ? rc : -ENOMEM, tree, arrived);
}

int kvtree_bcast(kvtree *tree, int root, MPI_Comm comm)
{
    return kvtree_mpi_bcast(tree, root, comm, LIMIT_COLLECTIVE);
}

/* The rank that an element of send is for; a key that is no rank, or one in another
 * spelling ("01"), which could name a rank twice, is refused. */
static int target_of(const kvtree_elem *elem, int ranks, int *rank)
{
    char text[16];
    int number = kvtree_elem_key_int(elem);
    snprintf(text, sizeof text, "%d", number);
    if (number < 0 || number >= ranks || strcmp(text, kvtree_elem_key(elem)) != 0)
        return -EINVAL;
    *rank = number;
    return 0;
}

/* Starts to send every tree of send, or, on a failure, none. */
static int post_all(struct outbox *box, const struct channel *ch, const kvtree *send)
{
    int rc = 0, ranks, rank = 0;
    size_t size = 0, pieces = 0;
    kvtree_elem *e;
    MPI_Comm_size(ch->comm, &ranks);
    for (e = kvtree_elem_first(send); e && !rc; e = kvtree_elem_next(e)) {
        size_t one = message_size(kvtree_elem_hash(e));
        size += one;
        pieces += message_pieces(one, ch->limit);
        rc = target_of(e, ranks, &rank);
    }
    int opened = outbox_open(box, rc ? 0 : size, pieces);
    if (rc || opened) return rc ? rc : opened;
    for (e = kvtree_elem_first(send); e; e = kvtree_elem_next(e)) {
        target_of(e, ranks, &rank);
        int posted = outbox_post(box, ch, kvtree_elem_hash(e), rank, 1);
        rc = rc ? rc : posted;
    }
    return rc;
}

static int receive_from_any(const struct channel *ch, kvtree *recv, int *received)
{
    char key[16];
    MPI_Message first;
    MPI_Status status;
    *received = 0;
    if (MPI_Improbe(MPI_ANY_SOURCE, ch->tag, ch->comm, received, &first, &status) !=
        MPI_SUCCESS)
        return -EIO;
    if (!*received) return 0;
    snprintf(key, sizeof key, "%d", status.MPI_SOURCE);
    kvtree *from = kvtree_get(recv, key);
    if (!from) from = kvtree_set(recv, key, NULL);
    int rc = message_receive(ch, &first, &status, from);
    return from ? rc : -ENOMEM;
}

/* Nonblocking consensus. A synchronous send is done once its receiver matched it; a rank
 * enters the barrier when all its sends are done, so when the barrier is through, every
 * message has been matched, and no one needs to be told how many to expect. Failures do
 * not leave the loop: the others rely on this rank until the barrier is through. */
static int serve_until_all_done(const struct channel *ch, struct outbox *box,
                                kvtree *recv)
{
    MPI_Request barrier = MPI_REQUEST_NULL;
    int rc = 0, in_barrier = 0, done = 0;
    while (!done) {
        int received, sent;
        int got = receive_from_any(ch, recv, &received);
        rc = rc ? rc : got;
        if (received) continue;
        if (in_barrier) {
            if (MPI_Test(&barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return -EIO;
            continue;
        }
        got = outbox_test(box, &sent);
        rc = rc ? rc : got;
        if (!sent) continue;
        in_barrier = 1;
        MPI_Ibarrier(ch->comm, &barrier);
    }
    return rc;
}

/* One tag is enough for exchanges that follow each other: the agreement at the end of one
 * completes nowhere before all ranks have entered it, that is, left the loop above; so no
 * one still probes for the messages of this exchange when a faster neighbour sends those
 * of the next. */
int kvtree_mpi_exchange(const kvtree *send, kvtree *recv, MPI_Comm comm, int limit)
{
    const struct channel *kept;
    int rc = channel_of(comm, &kept);
    if (rc) return rc;
    struct channel ch = *kept;
    ch.limit = limit;
    struct outbox box;
    kvtree *arrived = apart(recv);
    int posted = arrived ? post_all(&box, &ch, send) : outbox_open(&box, 0, 0);
    int served = serve_until_all_done(&ch, &box, arrived);
    int closed = outbox_close(&box);
    rc = !arrived ? -ENOMEM : posted ? posted : served ? served : closed;
    if (!rc) rc = kvtree_sort_int(arrived, KVTREE_SORT_ASCENDING);
    return conclude(&ch, rc, recv, arrived);
}

int kvtree_exchange(const kvtree *send, kvtree *recv, MPI_Comm comm)
{
    return kvtree_mpi_exchange(send, recv, comm, LIMIT_COLLECTIVE);
}
