/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_MPI_CHECK_H
#define SCR_MPI_CHECK_H

/* Whether the MPI and the launcher of a program fit. Local; uses no MPI handle. */

#include <kvtree/kvtree_error.h>

/* 0, or -ELIBACC with a text: the program runs with another MPI than the one that SCR is
 * built with. Handles, even MPI_COMM_WORLD, differ between the two, so no MPI call with a
 * handle may be made. */
int scr_mpi_check(kvtree_error *err);

/* 0, or -ENOTCONN with a text: MPI_COMM_WORLD has one rank, but the launcher has started
 * several processes, each of which runs as a program of its own. */
int scr_mpi_check_size(int ranks, kvtree_error *err);

/* The rank of this process according to its launcher, without MPI; 0 if unknown. */
int scr_mpi_launched_rank(void);

#endif
