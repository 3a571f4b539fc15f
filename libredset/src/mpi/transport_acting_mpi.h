/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_MPI_TRANSPORT_ACTING_MPI_H
#define REDSET_MPI_TRANSPORT_ACTING_MPI_H

/* A transport among the members of a set, where each rank of a communicator acts for one
 * or more members. */

#include "src/set/transport.h"
#include <mpi.h>

/* actor has the rank of each of size members; each rank of comm acts for at least one.
 * Takes ownership of comm, which must return errors, unless the result is NULL (without
 * memory). */
redset_transport *redset_transport_acting(MPI_Comm comm, int size, const int actor[]);
redset_transport *redset_transport_acting_free(redset_transport *t);

#endif
