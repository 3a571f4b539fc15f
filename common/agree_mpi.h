/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_AGREE_MPI_H
#define COMMON_AGREE_MPI_H

/* One result for all ranks, before anyone acts on it. */

#include "common/prefix.h"
#include <mpi.h>

#define agree COMMON(agree)

/* Collective over comm. Each rank gives its own code (0, negative error, positive
 * verdict) and, in err (ERRTEXT_SIZE bytes, not NULL), its text. Returns the same code on
 * every rank: 0 if all gave 0; otherwise that of the lowest rank with an error, or,
 * without any error, of the lowest rank with a verdict. err then holds that rank's text
 * everywhere, behind "rank 12: " or "on 37 ranks, first rank 12: ". One small allreduce
 * when all is well. */
int agree(MPI_Comm comm, int code, char *err);

#endif
