/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_MPI_CHECK_H
#define SCR_MPI_CHECK_H

/* Whether a program's MPI and its launcher fit. Local; uses no handle of MPI. */

#include <kvtree/kvtree_error.h>

/* 0, or -ELIBACC with a text: the program runs with another MPI than the one that SCR is
 * built with. Then a handle, also MPI_COMM_WORLD, means something else to that MPI, and
 * no call with one may be made. */
int scr_mpi_check(kvtree_error *err);

/* 0, or -ENOTCONN with a text: MPI_COMM_WORLD has one rank, but the launcher has started
 * several processes, each of which takes itself for the whole program. */
int scr_mpi_check_size(int ranks, kvtree_error *err);

/* The rank of this process by its launcher, without MPI; 0 where none tells. */
int scr_mpi_launched_rank(void);

#endif
