/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may copy when; see filo_private_mpi.h. SCR Developer Guide 1.2, section 2.32.7, has
 * one keeper, rank 0, who has to do with all ranks. */
#include "src/filo_private_mpi.h"

#include <errno.h>
#include <stdlib.h>

enum { TAG = 0x6669 };

/* GO: you may enter. GONE: I left. */
enum kind { GO, GONE, KINDS };

/* What is sent, with whether somebody failed, must stay until it arrived. */
static const int messages[KINDS][2][2] = {{{GO, 0}, {GO, 1}}, {{GONE, 0}, {GONE, 1}}};

static int wave_of(const filo_gate *g, int rank)
{
    return rank / g->width;
}

/* The last rank of a wave; -1 if there is no such wave. */
static int keeper_of(const filo_gate *g, int wave)
{
    if (wave > wave_of(g, g->size - 1)) return -1;
    int last = g->size - 1 - wave * g->width;
    return wave * g->width + (last < g->width ? last : g->width - 1);
}

static bool is_keeper(const filo_gate *g)
{
    int wave = wave_of(g, g->rank);
    return wave > 0 && g->rank == keeper_of(g, wave);
}

int filo_gate_begin(filo_gate *gate, MPI_Comm comm, int width, char *err)
{
    *gate = (filo_gate){.comm = comm, .width = width};
    MPI_Comm_rank(comm, &gate->rank);
    MPI_Comm_size(comm, &gate->size);
    if (gate->width > gate->size) gate->width = gate->size;
    gate->open = gate->rank < gate->width;
    /* a keeper lets all others of its wave in; and all may send GONE */
    size_t most = is_keeper(gate) ? (size_t)gate->width : 1;
    gate->requests = calloc(most, sizeof(MPI_Request));
    return gate->requests ? 0 : err_sys(err, -ENOMEM, "start a transfer");
}

static int mpi_failed(char *err)
{
    return err_set(err, -EIO, "a message of MPI failed");
}

static int send(filo_gate *g, enum kind kind, int to, char *err)
{
    int rc = MPI_Isend(messages[kind][g->failed], 2, MPI_INT, to, TAG, g->comm,
                       &g->requests[g->sent]);
    if (rc != MPI_SUCCESS) return mpi_failed(err);
    g->sent++;
    return 0;
}

/* A keeper hears that one rank of the wave before left. */
static int let_next_in(filo_gate *g, char *err)
{
    int next = wave_of(g, g->rank) * g->width + g->gone++;
    if (next == g->rank) g->open = true;
    return next < g->rank ? send(g, GO, next, err) : 0;
}

/* Receives one message; *some: there was one. */
static int receive(filo_gate *g, bool wait, bool *some, char *err)
{
    int message[2], there = 1;
    if (!wait && MPI_Iprobe(MPI_ANY_SOURCE, TAG, g->comm, &there, MPI_STATUS_IGNORE) !=
                     MPI_SUCCESS)
        return mpi_failed(err);
    *some = there != 0;
    if (!there) return 0;
    if (MPI_Recv(message, 2, MPI_INT, MPI_ANY_SOURCE, TAG, g->comm, MPI_STATUS_IGNORE) !=
        MPI_SUCCESS)
        return mpi_failed(err);
    g->failed |= message[1] != 0;
    if (message[0] == GO) g->open = true;
    return message[0] == GONE ? let_next_in(g, err) : 0;
}

int filo_gate_enter(filo_gate *gate, bool wait, char *err)
{
    bool some = true;
    int rc = 0;
    while (!gate->open && some && !rc)
        rc = receive(gate, wait, &some, err);
    return rc;
}

int filo_gate_leave(filo_gate *gate, bool failed, char *err)
{
    int next = keeper_of(gate, wave_of(gate, gate->rank) + 1);
    gate->failed |= failed;
    return next >= 0 ? send(gate, GONE, next, err) : 0;
}

/* Whether all messages of this rank arrived. */
static int look_after(filo_gate *g, bool wait, bool *arrived, char *err)
{
    int rc = MPI_SUCCESS, done = 1;
    for (int i = 0; i < g->sent && done && rc == MPI_SUCCESS; i++)
        rc = wait ? MPI_Wait(&g->requests[i], MPI_STATUS_IGNORE)
                  : MPI_Test(&g->requests[i], &done, MPI_STATUS_IGNORE);
    *arrived = done != 0;
    return rc == MPI_SUCCESS ? 0 : mpi_failed(err);
}

/* A keeper of a short wave may have left before all of the wave before did. */
int filo_gate_settle(filo_gate *gate, bool wait, bool *settled, char *err)
{
    bool some = true;
    int rc = 0;
    *settled = false;
    while (is_keeper(gate) && gate->gone < gate->width && some && !rc)
        rc = receive(gate, wait, &some, err);
    if (rc || (is_keeper(gate) && gate->gone < gate->width)) return rc;
    return look_after(gate, wait, settled, err);
}

void filo_gate_end(filo_gate *gate)
{
    free(gate->requests);
    gate->requests = NULL;
}
