/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees as messages; see kvtree_mpi_private.h. */
#include "src/kvtree_mpi_private.h"
#include "src/kvtree_private.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

char *message_put_header(char *bytes, int64_t number)
{
    return kvtree_put32(kvtree_put32(bytes, (uint32_t)((uint64_t)number >> 32)),
                        (uint32_t)number);
}

int64_t message_get_header(const char *bytes)
{
    return (int64_t)((uint64_t)kvtree_get32(bytes) << 32 | kvtree_get32(bytes + 4));
}

size_t message_size(const kvtree *tree)
{
    return MESSAGE_HEADER + kvtree_pack_size(tree);
}

size_t message_pieces(size_t size, int limit)
{
    return (size + (size_t)limit - 1) / (size_t)limit;
}

static int message_piece_size(size_t left, int limit)
{
    return left < (size_t)limit ? (int)left : limit;
}

/* ---- receiving ---- */

int message_deliver(void *arg, int source, const char *packed, size_t size)
{
    (void)source;
    return arg ? kvtree_unpack_merge(packed, size, arg, NULL) : KVTREE_SUCCESS;
}

/* Receives the pieces after the first, which brought `have` bytes of the packed tree. */
static int message_receive_rest(const struct channel *ch, int source, size_t have,
                                size_t size, char **all)
{
    char *bytes = malloc(size);
    int rc = bytes ? 0 : -ENOMEM;
    if (bytes) memcpy(bytes, ch->scratch + MESSAGE_HEADER, have);
    while (have < size) {
        int n = message_piece_size(size - have, ch->limit);
        char *into = bytes ? bytes + have : ch->scratch;
        if (MPI_Recv(into, n, MPI_BYTE, source, ch->tag, ch->comm, MPI_STATUS_IGNORE) !=
            MPI_SUCCESS)
            rc = -EIO;
        have += (size_t)n;
    }
    *all = bytes;
    return rc;
}

int message_receive(const struct channel *ch, MPI_Message *first,
                    const MPI_Status *status, message_take *take, void *arg)
{
    const int source = status->MPI_SOURCE;
    char *all;
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    if (MPI_Mrecv(ch->scratch, ch->limit, MPI_BYTE, first, MPI_STATUS_IGNORE) !=
        MPI_SUCCESS)
        return -EIO;
    if (count < MESSAGE_HEADER) return -EBADMSG;
    int64_t number = message_get_header(ch->scratch);
    if (number < 0) return number >= -INT_MAX ? (int)number : -EBADMSG;
    size_t size = (size_t)number, have = (size_t)count - MESSAGE_HEADER;
    if (have > size || (have < size && count < ch->limit)) return -EBADMSG;
    if (have == size) return take(arg, source, ch->scratch + MESSAGE_HEADER, size);
    int rc = message_receive_rest(ch, source, have, size, &all);
    if (!rc) rc = take(arg, source, all, size);
    free(all);
    return rc;
}

/* ---- sending ---- */

int outbox_open(struct outbox *box, size_t size, size_t pieces)
{
    *box = (struct outbox){.error_request = MPI_REQUEST_NULL};
    if (size == 0) return 0;
    if (pieces > INT_MAX) return -EMSGSIZE;
    box->bytes = malloc(size);
    box->requests = malloc(pieces * sizeof *box->requests);
    if (box->bytes && box->requests) return 0;
    free(box->bytes);
    free(box->requests);
    box->bytes = NULL;
    box->requests = NULL;
    return -ENOMEM;
}

/* Sends the message at the current position, which begins with room for its header. */
static int outbox_send(struct outbox *box, const struct channel *ch, size_t packed,
                       int rank, int synchronous)
{
    int rc = 0;
    char *bytes = box->bytes + box->used;
    size_t size = MESSAGE_HEADER + packed;
    message_put_header(bytes, (int64_t)packed);
    for (size_t done = 0; done < size;) {
        int n = message_piece_size(size - done, ch->limit);
        MPI_Request *request = &box->requests[box->posted++];
        int sent =
            synchronous
                ? MPI_Issend(bytes + done, n, MPI_BYTE, rank, ch->tag, ch->comm, request)
                : MPI_Isend(bytes + done, n, MPI_BYTE, rank, ch->tag, ch->comm, request);
        if (sent != MPI_SUCCESS) {
            *request = MPI_REQUEST_NULL;
            rc = -EIO;
        }
        done += (size_t)n;
    }
    box->used += size;
    return rc;
}

int outbox_post(struct outbox *box, const struct channel *ch, const kvtree *tree,
                int rank, int synchronous)
{
    size_t packed = kvtree_pack(box->bytes + box->used + MESSAGE_HEADER, tree);
    return outbox_send(box, ch, packed, rank, synchronous);
}

int outbox_post_packed(struct outbox *box, const struct channel *ch, const char *packed,
                       size_t size, int rank)
{
    memcpy(box->bytes + box->used + MESSAGE_HEADER, packed, size);
    return outbox_send(box, ch, size, rank, 1);
}

int outbox_post_error(struct outbox *box, const struct channel *ch, int code, int rank)
{
    message_put_header(box->error, code);
    int sent = MPI_Isend(box->error, MESSAGE_HEADER, MPI_BYTE, rank, ch->tag, ch->comm,
                         &box->error_request);
    if (sent != MPI_SUCCESS) box->error_request = MPI_REQUEST_NULL;
    return code;
}

int outbox_test(struct outbox *box, int *sent)
{
    int rc = 0;
    while (box->sent < box->posted) {
        int done = 1;
        if (MPI_Test(&box->requests[box->sent], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            rc = -EIO;
        if (!done) break;
        box->sent++;
    }
    *sent = box->sent == box->posted;
    return rc;
}

int outbox_close(struct outbox *box)
{
    int rc = 0;
    for (; box->sent < box->posted; box->sent++)
        if (MPI_Wait(&box->requests[box->sent], MPI_STATUS_IGNORE) != MPI_SUCCESS)
            rc = -EIO;
    if (MPI_Wait(&box->error_request, MPI_STATUS_IGNORE) != MPI_SUCCESS) rc = -EIO;
    free(box->bytes);
    free(box->requests);
    return rc;
}
