/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_AGREE_MPI_H
#define COMMON_AGREE_MPI_H

/* One result for all ranks, before anyone acts on it. */

#include "common/prefix.h"
#include <kvtree/kvtree_error.h>
#include <mpi.h>
#include <stdint.h>

#define agree COMMON(agree)
#define agree_sum COMMON(agree_sum)
#define agree_possible COMMON(agree_possible)
#define agree_mpi_check COMMON(agree_mpi_check)

/* 0 for MPI_SUCCESS; otherwise -ECOMM, and the text of the code that MPI returned. err
 * may be NULL. */
int agree_mpi_check(int result, kvtree_error *err);

/* 0, or -EINVAL and a text for MPI_COMM_NULL and for an intercommunicator. err may be
 * NULL. */
int agree_possible(MPI_Comm comm, kvtree_error *err);

/* Collective over comm. Each rank gives its own code (0, negative error, positive
 * verdict) and, in err (not NULL), its text. Returns the same code on every rank: 0 if
 * all gave 0; otherwise that of the lowest rank with an error, or, without any error, of
 * the lowest rank with a verdict. err then holds that rank's text everywhere, behind
 * "rank 12: " or "on 37 ranks, first rank 12: ", and before that of the lowest rank with
 * another error, if there is one. -EIO, which then is of this rank alone, where MPI
 * returns an error. One small allreduce when all is well.
 */
int agree(MPI_Comm comm, int code, kvtree_error *err);

/* The same, and in the one allreduce that is needed when all is well, each of count
 * numbers becomes the sum of what the ranks gave. Otherwise numbers stay as they were. */
enum { AGREE_NUMBERS_MAX = 4 };
int agree_sum(MPI_Comm comm, int code, kvtree_error *err, int count, int64_t numbers[]);

#endif
