/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees between MPI processes: the functions of kvtree_mpi.h. */
#include "src/kvtree_mpi_private.h"
#include "src/kvtree_private.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum size of the first piece of a broadcast. */
#define FIRST_PIECE 4096

/* Maximum size of a large piece, as a multiple of the limit: 256 MiB, so that a count is
 * an int. */
#define BCAST_LIMITS 4096

/* Returns the tree that receives data until success is certain. An empty tree can be
 * filled at once, since it can be emptied again; otherwise this is a new tree. */
static kvtree *kvtree_mpi_apart(kvtree *tree)
{
    return tree && kvtree_size(tree) == 0 ? tree : kvtree_new();
}

/* ---- between two processes, on the communicator of the application ---- */

static int kvtree_mpi_start_send(struct outbox *box, const struct channel *ch,
                                 const kvtree *tree, int rank)
{
    size_t size = rank == MPI_PROC_NULL ? 0 : message_size(tree);
    int rc = outbox_open(box, size, message_pieces(size, ch->limit));
    if (rank == MPI_PROC_NULL) return 0;
    return rc ? outbox_post_error(box, ch, rc, rank)
              : outbox_post(box, ch, tree, rank, 0);
}

static int kvtree_mpi_receive(const struct channel *ch, kvtree *tree, int rank)
{
    MPI_Message first;
    MPI_Status status;
    if (rank == MPI_PROC_NULL) return 0;
    if (MPI_Mprobe(rank, ch->tag, ch->comm, &first, &status) != MPI_SUCCESS) return -EIO;
    if (!tree) return message_receive(ch, &first, &status, message_deliver, NULL);
    kvtree *arrived = kvtree_mpi_apart(tree);
    int rc = message_receive(ch, &first, &status, message_deliver, arrived);
    if (!arrived) return rc ? rc : -ENOMEM;
    if (arrived == tree) return rc;
    if (!rc) kvtree_replace(tree, arrived);
    kvtree_delete(&arrived);
    return rc;
}

/* Whether comm has this rank; for an intercommunicator, whether its remote group has it.
 * MPI would end the program. */
static bool kvtree_mpi_has_rank(int rank, MPI_Comm comm)
{
    int between, ranks;
    MPI_Comm_test_inter(comm, &between);
    if (between)
        MPI_Comm_remote_size(comm, &ranks);
    else
        MPI_Comm_size(comm, &ranks);
    return rank >= 0 && rank < ranks;
}

int kvtree_mpi_sendrecv(const kvtree *send, int to, kvtree *recv, int from, MPI_Comm comm,
                        int limit)
{
    char scratch[MESSAGE_LIMIT];
    struct channel ch = {comm, KVTREE_TAG, limit, scratch};
    struct outbox box;
    if (comm == MPI_COMM_NULL ||
        (to != MPI_PROC_NULL && !kvtree_mpi_has_rank(to, comm)) ||
        (from != MPI_PROC_NULL && from != MPI_ANY_SOURCE &&
         !kvtree_mpi_has_rank(from, comm)))
        return -EINVAL;
    int sent = kvtree_mpi_start_send(&box, &ch, send, to);
    int received = kvtree_mpi_receive(&ch, recv, from);
    int closed = outbox_close(&box);
    return sent ? sent : received ? received : closed;
}

int kvtree_sendrecv(const kvtree *send, int to, kvtree *recv, int from, MPI_Comm comm)
{
    return kvtree_mpi_sendrecv(send, to, recv, from, comm, MESSAGE_LIMIT);
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

/* Collective. If all ranks succeeded, replaces the tree by the received one. */
static int kvtree_bcast_conclude(const struct channel *ch, int rc, kvtree *tree,
                                 kvtree *arrived)
{
    rc = channel_agree(ch, rc);
    if (arrived == tree) {
        if (rc) kvtree_unset_all(tree);
        return rc;
    }
    if (!rc && tree) kvtree_replace(tree, arrived);
    kvtree_delete(&arrived);
    return rc;
}

/* The first broadcast has the same size on all ranks, which do not know the size of the
 * tree yet: a header and the beginning of the tree, which is all of a small tree. */
static int kvtree_bcast_first_size(const struct channel *ch)
{
    int least = ch->limit > MESSAGE_HEADER ? ch->limit : MESSAGE_HEADER;
    return least < FIRST_PIECE ? least : FIRST_PIECE;
}

static int kvtree_bcast_piece(const struct channel *ch, char *piece, size_t size,
                              int root)
{
    return MPI_Bcast(piece, (int)size, MPI_BYTE, root, ch->comm) == MPI_SUCCESS ? 0
                                                                                : -EIO;
}

/* Collective, agreed. Broadcasts more bytes than a rank without memory could receive into
 * scratch. All ranks receive them, or none if one rank has no memory. */
static int kvtree_bcast_large(const struct channel *ch, char *bytes, size_t size,
                              int root)
{
    const size_t most = (size_t)ch->limit * BCAST_LIMITS;
    int rc = channel_agree(ch, bytes ? 0 : -ENOMEM);
    if (rc) return rc;
    for (size_t n, done = 0; done < size; done += n) {
        n = size - done < most ? size - done : most;
        int moved = kvtree_bcast_piece(ch, bytes + done, n, root);
        rc = rc ? rc : moved;
    }
    return rc;
}

static int kvtree_bcast_send(const struct channel *ch, const kvtree *tree, int root)
{
    struct kvtree_packer packer = {.tree = tree};
    const size_t size = kvtree_pack_size(tree);
    size_t first = (size_t)kvtree_bcast_first_size(ch), room = first - MESSAGE_HEADER;
    char *body = message_put_header(ch->scratch, (int64_t)size);
    size_t n = kvtree_packer_next(&packer, body, room);
    memset(body + n, 0, room - n);
    int rc = kvtree_bcast_piece(ch, ch->scratch, first, root), sent = 0;
    const size_t left = size - n;
    if (left > (size_t)ch->limit) {
        char *bytes = malloc(size);
        kvtree_pack(bytes, tree);
        sent = kvtree_bcast_large(ch, bytes ? bytes + n : NULL, left, root);
        free(bytes);
    } else if (left > 0) {
        kvtree_packer_next(&packer, ch->scratch, left);
        sent = kvtree_bcast_piece(ch, ch->scratch, left, root);
    }
    return rc ? rc : sent;
}

/* A rank without memory receives small data into scratch. */
static int kvtree_bcast_receive(const struct channel *ch, kvtree *tree, int root)
{
    size_t first = (size_t)kvtree_bcast_first_size(ch), done = first - MESSAGE_HEADER;
    int rc = kvtree_bcast_piece(ch, ch->scratch, first, root);
    if (rc) return rc;
    size_t size = (size_t)message_get_header(ch->scratch);
    const char *body = ch->scratch + MESSAGE_HEADER;
    if (done >= size) return message_deliver(tree, root, body, size);
    char *bytes = malloc(size), *rest = bytes ? bytes + done : NULL;
    if (bytes) memcpy(bytes, body, done);
    if (size - done <= (size_t)ch->limit)
        rc = kvtree_bcast_piece(ch, rest ? rest : ch->scratch, size - done, root);
    else
        rc = kvtree_bcast_large(ch, rest, size - done, root);
    if (!rc) rc = bytes ? message_deliver(tree, root, bytes, size) : -ENOMEM;
    free(bytes);
    return rc;
}

int kvtree_mpi_bcast(kvtree *tree, int root, MPI_Comm comm, int limit)
{
    int rank, ranks;
    const struct channel *kept;
    char scratch[MESSAGE_LIMIT];
    if (comm == MPI_COMM_NULL) return -EINVAL;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (root < 0 || root >= ranks) return -EINVAL;
    int rc = channel_of(comm, &kept);
    if (rc) return rc;
    struct channel ch = {kept->comm, kept->tag, limit, scratch};
    if (rank == root)
        return kvtree_bcast_conclude(&ch, kvtree_bcast_send(&ch, tree, root), NULL, NULL);
    kvtree *arrived = kvtree_mpi_apart(tree);
    rc = kvtree_bcast_receive(&ch, arrived, root);
    return kvtree_bcast_conclude(&ch, arrived ? rc : -ENOMEM, tree, arrived);
}

int kvtree_bcast(kvtree *tree, int root, MPI_Comm comm)
{
    return kvtree_mpi_bcast(tree, root, comm, MESSAGE_LIMIT);
}

/* Finds the rank that an element of send is for. A key that is not a rank is refused, and
 * so is another spelling ("01"), which could name a rank twice. */
static int exchange_rank_of(const kvtree_elem *elem, int ranks, int *rank)
{
    char text[16];
    int number = kvtree_elem_key_int(elem);
    snprintf(text, sizeof text, "%d", number);
    if (number < 0 || number >= ranks || strcmp(text, kvtree_elem_key(elem)) != 0)
        return -EINVAL;
    *rank = number;
    return 0;
}

static int exchange_check_ranks(const struct channel *ch, const kvtree *send)
{
    int rc = 0, ranks, rank;
    MPI_Comm_size(ch->comm, &ranks);
    for (kvtree_elem *e = kvtree_elem_first(send); e && !rc; e = kvtree_elem_next(e))
        rc = exchange_rank_of(e, ranks, &rank);
    return rc;
}

/* Starts to send all trees, or none without memory. */
static int exchange_post(struct outbox *box, const struct channel *ch, const kvtree *send)
{
    size_t size = 0, pieces = 0;
    const kvtree_elem *first = kvtree_elem_first(send), *e;
    for (e = first; e; e = kvtree_elem_next(e)) {
        size_t one = message_size(kvtree_elem_hash(e));
        size += one;
        pieces += message_pieces(one, ch->limit);
    }
    int rc = outbox_open(box, size, pieces);
    if (rc) return rc;
    for (e = first; e; e = kvtree_elem_next(e)) {
        int posted = outbox_post(box, ch, kvtree_elem_hash(e), kvtree_elem_key_int(e), 1);
        rc = rc ? rc : posted;
    }
    return rc;
}

/* Merges a tree below the rank that sent it, for exchange_until_done. */
static int exchange_take_tree(void *recv, int source, const char *packed, size_t size)
{
    char key[16];
    snprintf(key, sizeof key, "%d", source);
    kvtree *from = kvtree_get(recv, key);
    if (!from) from = kvtree_set(recv, key, NULL);
    return from ? message_deliver(from, source, packed, size) : -ENOMEM;
}

static int exchange_receive(const struct channel *ch, message_take *take, void *arg,
                            int *received)
{
    MPI_Message first;
    MPI_Status status;
    *received = 0;
    if (MPI_Improbe(MPI_ANY_SOURCE, ch->tag, ch->comm, received, &first, &status) !=
        MPI_SUCCESS)
        return -EIO;
    return *received ? message_receive(ch, &first, &status, take, arg) : 0;
}

/* Nonblocking consensus. A synchronous send completes when its receiver has matched it,
 * and a rank enters the barrier when all its sends are complete. When the barrier
 * completes, every message has therefore been matched, and no rank needs to know how many
 * to expect. Failures do not leave the loop: other ranks rely on this rank until the
 * barrier completes. */
int exchange_until_done(const struct channel *ch, struct outbox *box, message_take *take,
                        void *arg)
{
    MPI_Request barrier = MPI_REQUEST_NULL;
    int rc = 0, in_barrier = 0, done = 0;
    while (!done) {
        int received, sent;
        int got = exchange_receive(ch, take, arg, &received);
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
        if (MPI_Ibarrier(ch->comm, &barrier) != MPI_SUCCESS) rc = rc ? rc : -EIO;
    }
    return rc;
}

/* Collective. If all ranks succeeded, gives each rank its received data; returns the
 * worst code of all ranks. Merging can fail, too, so it needs a second agreement, but
 * only if some rank has to merge. */
static int exchange_conclude(const struct channel *ch, int rc, kvtree *tree,
                             kvtree *arrived)
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

/* One tag suffices for consecutive exchanges. The agreement at the end of an exchange
 * completes on no rank before all ranks have entered it and so have left the loop above.
 * Therefore no rank still probes for messages of this exchange when a faster neighbor
 * sends those of the next. */
static int exchange_trees(const struct channel *ch, const kvtree *send, kvtree *recv)
{
    struct outbox box;
    kvtree *arrived = kvtree_mpi_apart(recv);
    int rc = arrived ? exchange_check_ranks(ch, send) : -ENOMEM;
    int posted = exchange_post(&box, ch, rc ? NULL : send);
    int served = exchange_until_done(ch, &box, exchange_take_tree, arrived);
    int closed = outbox_close(&box);
    rc = rc ? rc : posted ? posted : served ? served : closed;
    if (!rc) rc = kvtree_sort_int(arrived, KVTREE_SORT_ASCENDING);
    return exchange_conclude(ch, rc, recv, arrived);
}

int kvtree_mpi_exchange(const kvtree *send, kvtree *recv, MPI_Comm comm, int limit)
{
    const struct channel *kept;
    char scratch[MESSAGE_LIMIT];
    int rc = channel_of(comm, &kept);
    if (rc) return rc;
    struct channel ch = {kept->comm, kept->tag, limit, scratch};
    return exchange_trees(&ch, send, recv);
}

int kvtree_exchange(const kvtree *send, kvtree *recv, MPI_Comm comm)
{
    return kvtree_mpi_exchange(send, recv, comm, MESSAGE_LIMIT);
}

int kvtree_exchange_direction(const kvtree *send, kvtree *recv, MPI_Comm comm,
                              kvtree_exchange_enum direction)
{
    if (direction != KVTREE_EXCHANGE_RIGHT && direction != KVTREE_EXCHANGE_LEFT)
        return -EINVAL;
    return kvtree_exchange(send, recv, comm);
}

int kvtree_exchange_sendq(kvtree *send, int rank, const kvtree *message)
{
    char key[16];
    if (!send || rank < 0) return -EINVAL;
    snprintf(key, sizeof key, "%d", rank);
    kvtree *queued = kvtree_get(send, key);
    bool is_first = !queued;
    if (is_first) queued = kvtree_set(send, key, NULL);
    int rc = queued ? kvtree_merge(queued, message) : -ENOMEM;
    if (rc && is_first) kvtree_unset(send, key);
    return rc;
}
