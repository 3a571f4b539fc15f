/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_MPI_TRANSPORT_MPI_H
#define REDSET_MPI_TRANSPORT_MPI_H

/* A transport among the ranks of a communicator; this process is one of them. MPI errors
 * are returned as -ECOMM or -EIO. After an error of a collective call no agreement is
 * attempted, because it would most likely fail, too. */

#include "src/set/transport.h"
#include <mpi.h>

typedef struct redset_transport_mpi {
    redset_transport base;
    MPI_Comm comm;
    int rank; /* the local peer */
    MPI_Request *request;
} redset_transport_mpi;

/* Takes ownership of comm, which must return errors. */
void redset_transport_mpi_init(redset_transport_mpi *t, MPI_Comm comm);

/* Frees the communicator and the requests. A zeroed transport with comm MPI_COMM_NULL is
 * allowed. */
void redset_transport_mpi_done(redset_transport_mpi *t);

#endif
