/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport among the ranks of a communicator. */
#include "src/mpi/transport_mpi.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <stdlib.h>

enum { MPI_TRANSPORT_TAG = 0x7273 };

static MPI_Comm transport_mpi_comm(redset_transport *t)
{
    return ((redset_transport_mpi *)t)->comm;
}

static MPI_Request *transport_mpi_request(redset_transport *t, int transfer)
{
    return &((redset_transport_mpi *)t)->request[transfer];
}

static int transport_mpi_agree(redset_transport *t, int code, int count, int64_t sums[],
                               redset_error *err)
{
    MPI_Comm comm = transport_mpi_comm(t);
    return count ? agree_sum(comm, code, err, count, sums) : agree(comm, code, err);
}

static int transport_mpi_greatest(redset_transport *t, int count, int64_t values[],
                                  redset_error *err)
{
    return agree_mpi_check(MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_INT64_T,
                                         MPI_MAX, transport_mpi_comm(t)),
                           err);
}

static int transport_mpi_gather(redset_transport *t, void *blocks, size_t size,
                                redset_error *err)
{
    return agree_mpi_check(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, blocks,
                                         (int)size, MPI_BYTE, transport_mpi_comm(t)),
                           err);
}

static int transport_mpi_broadcast(redset_transport *t, int peer, void *block,
                                   size_t size, redset_error *err)
{
    return agree_mpi_check(
        MPI_Bcast(block, (int)size, MPI_BYTE, peer, transport_mpi_comm(t)), err);
}

static int transport_mpi_exchange(redset_transport *t, kvtree *const out[],
                                  kvtree *const in[])
{
    return kvtree_exchange(out[0], in[0], transport_mpi_comm(t));
}

static int transport_mpi_shift(redset_transport *t, int distance, kvtree *const out[],
                               kvtree *const in[])
{
    int right = (t->local[0] + distance) % t->size;
    int left = (t->local[0] + t->size - distance) % t->size;
    return kvtree_sendrecv(out[0], right, in[0], left, transport_mpi_comm(t));
}

static int transport_mpi_reserve(redset_transport *t, int transfers)
{
    redset_transport_mpi *mpi = (redset_transport_mpi *)t;
    free(mpi->request);
    mpi->request = calloc((size_t)transfers + 1, sizeof *mpi->request);
    if (!mpi->request) return -ENOMEM;
    for (int i = 0; i < transfers; i++)
        mpi->request[i] = MPI_REQUEST_NULL;
    return 0;
}

static int transport_mpi_receive(redset_transport *t, redset_link link, void *buf,
                                 size_t size, redset_error *err)
{
    return agree_mpi_check(MPI_Irecv(buf, (int)size, MPI_BYTE, link.other,
                                     MPI_TRANSPORT_TAG, transport_mpi_comm(t),
                                     transport_mpi_request(t, link.transfer)),
                           err);
}

static int transport_mpi_send(redset_transport *t, redset_link link, const void *buf,
                              size_t size, redset_error *err)
{
    return agree_mpi_check(MPI_Isend(buf, (int)size, MPI_BYTE, link.other,
                                     MPI_TRANSPORT_TAG, transport_mpi_comm(t),
                                     transport_mpi_request(t, link.transfer)),
                           err);
}

static int transport_mpi_wait(redset_transport *t, int transfer, redset_error *err)
{
    MPI_Request *request = transport_mpi_request(t, transfer);
    if (*request == MPI_REQUEST_NULL) return 0;
    return agree_mpi_check(MPI_Wait(request, MPI_STATUS_IGNORE), err);
}

void redset_transport_mpi_init(redset_transport_mpi *t, MPI_Comm comm)
{
    *t = (redset_transport_mpi){.base = {.count = 1,
                                         .local = &t->rank,
                                         .busiest = 1,
                                         .agree_result = transport_mpi_agree,
                                         .greatest = transport_mpi_greatest,
                                         .gather = transport_mpi_gather,
                                         .broadcast = transport_mpi_broadcast,
                                         .exchange = transport_mpi_exchange,
                                         .shift = transport_mpi_shift,
                                         .reserve = transport_mpi_reserve,
                                         .receive = transport_mpi_receive,
                                         .send = transport_mpi_send,
                                         .wait = transport_mpi_wait},
                                .comm = comm};
    MPI_Comm_size(comm, &t->base.size);
    MPI_Comm_rank(comm, &t->rank);
}

void redset_transport_mpi_done(redset_transport_mpi *t)
{
    if (t->comm != MPI_COMM_NULL) MPI_Comm_free(&t->comm);
    free(t->request);
}
