/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control limits the number of ranks that copy at a time; see filo_private_mpi.h.
 * SCR Developer Guide 1.2, section 2.32.7, has one keeper, rank 0, which exchanges
 * messages with all ranks. */
#include "src/filo_private_mpi.h"

#include <errno.h>
#include <stdlib.h>

enum { TAG = 0x6669 };

/* GO: the receiver is admitted. FINISHED: the sender has finished. */
enum flow_kind { GO, FINISHED, KINDS };

/* A message: its kind, and whether a rank failed. Messages are constants, because MPI
 * reads them until they have arrived. */
static const int flow_messages[KINDS][2][2] = {{{GO, 0}, {GO, 1}},
                                               {{FINISHED, 0}, {FINISHED, 1}}};

static int flow_wave(const filo_flow *f, int rank)
{
    return rank / f->width;
}

/* The last rank of a wave; -1 if there is no such wave. */
static int flow_keeper(const filo_flow *f, int wave)
{
    if (wave > flow_wave(f, f->size - 1)) return -1;
    int last = f->size - 1 - wave * f->width;
    return wave * f->width + (last < f->width ? last : f->width - 1);
}

static bool flow_is_keeper(const filo_flow *f)
{
    int wave = flow_wave(f, f->rank);
    return wave > 0 && f->rank == flow_keeper(f, wave);
}

int filo_flow_begin(filo_flow *flow, MPI_Comm comm, int width, filo_error *err)
{
    *flow = (filo_flow){.comm = comm, .width = width};
    MPI_Comm_rank(comm, &flow->rank);
    MPI_Comm_size(comm, &flow->size);
    if (flow->width > flow->size) flow->width = flow->size;
    flow->admitted = flow->rank < flow->width;
    /* a keeper admits all other ranks of its wave, and every rank may send FINISHED */
    flow->requests = calloc((size_t)flow->width, sizeof(MPI_Request));
    return flow->requests ? 0 : err_sys(err, -ENOMEM, "start a transfer");
}

static int flow_mpi_failed(filo_error *err)
{
    return err_set(err, -EIO, "a message of MPI failed");
}

int filo_flow_order(filo_flow *flow, int turn, filo_error *err)
{
    MPI_Comm ordered;
    if (flow->width >= flow->size) return 0;
    int split = MPI_Comm_split(flow->comm, 0, turn, &ordered);
    int rc = agree(flow->comm, split == MPI_SUCCESS ? 0 : flow_mpi_failed(err), err);
    if (rc) {
        if (split == MPI_SUCCESS) MPI_Comm_free(&ordered);
        return rc;
    }
    MPI_Comm_set_errhandler(ordered, MPI_ERRORS_RETURN);
    flow->comm = ordered;
    flow->is_ordered = true;
    MPI_Comm_rank(flow->comm, &flow->rank);
    flow->admitted = flow->rank < flow->width;
    return 0;
}

static int flow_send(filo_flow *f, enum flow_kind kind, int to, filo_error *err)
{
    int rc = MPI_Isend(flow_messages[kind][f->failed], 2, MPI_INT, to, TAG, f->comm,
                       &f->requests[f->sent]);
    if (rc != MPI_SUCCESS) return flow_mpi_failed(err);
    f->sent++;
    return 0;
}

/* Keeper: one rank of the previous wave has finished. */
static int flow_admit_next(filo_flow *f, filo_error *err)
{
    int next = flow_wave(f, f->rank) * f->width + f->finished++;
    if (next == f->rank) f->admitted = true;
    return next < f->rank ? flow_send(f, GO, next, err) : 0;
}

/* Receives one message; *some: there was one. */
static int flow_receive(filo_flow *f, bool wait, bool *some, filo_error *err)
{
    int message[2], there = 1;
    if (!wait && MPI_Iprobe(MPI_ANY_SOURCE, TAG, f->comm, &there, MPI_STATUS_IGNORE) !=
                     MPI_SUCCESS)
        return flow_mpi_failed(err);
    *some = there != 0;
    if (!there) return 0;
    if (MPI_Recv(message, 2, MPI_INT, MPI_ANY_SOURCE, TAG, f->comm, MPI_STATUS_IGNORE) !=
        MPI_SUCCESS)
        return flow_mpi_failed(err);
    f->failed |= message[1] != 0;
    if (message[0] == GO) f->admitted = true;
    return message[0] == FINISHED ? flow_admit_next(f, err) : 0;
}

int filo_flow_admit(filo_flow *flow, bool wait, filo_error *err)
{
    bool some = true;
    int rc = 0;
    while (!flow->admitted && some && !rc)
        rc = flow_receive(flow, wait, &some, err);
    return rc;
}

int filo_flow_finish(filo_flow *flow, bool failed, filo_error *err)
{
    int next = flow_keeper(flow, flow_wave(flow, flow->rank) + 1);
    flow->failed |= failed;
    return next >= 0 ? flow_send(flow, FINISHED, next, err) : 0;
}

/* Sets *arrived if all messages of this rank have arrived. */
static int flow_complete(filo_flow *f, bool wait, bool *arrived, filo_error *err)
{
    int rc = MPI_SUCCESS, done = 1;
    for (int i = 0; i < f->sent && done && rc == MPI_SUCCESS; i++)
        rc = wait ? MPI_Wait(&f->requests[i], MPI_STATUS_IGNORE)
                  : MPI_Test(&f->requests[i], &done, MPI_STATUS_IGNORE);
    *arrived = done != 0;
    return rc == MPI_SUCCESS ? 0 : flow_mpi_failed(err);
}

/* The keeper of a short wave may finish before all ranks of the previous wave have: it
 * still receives their messages. */
int filo_flow_settle(filo_flow *flow, bool wait, bool *settled, filo_error *err)
{
    bool some = true;
    int rc = 0;
    *settled = false;
    while (flow_is_keeper(flow) && flow->finished < flow->width && some && !rc)
        rc = flow_receive(flow, wait, &some, err);
    if (rc || (flow_is_keeper(flow) && flow->finished < flow->width)) return rc;
    return flow_complete(flow, wait, settled, err);
}

/* Messages in transit stay valid: they are constants. */
void filo_flow_forget(filo_flow *flow)
{
    for (int i = 0; i < flow->sent; i++)
        if (flow->requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&flow->requests[i]);
    flow->sent = 0;
}

void filo_flow_end(filo_flow *flow)
{
    if (flow->is_ordered) MPI_Comm_free(&flow->comm);
    flow->is_ordered = false;
    free(flow->requests);
    flow->requests = NULL;
}
