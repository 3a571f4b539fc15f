/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_AGREE_MPI_H
#define COMMON_AGREE_MPI_H

/* Agreement of all ranks on one result before any rank acts on it. */

#include "common/prefix.h"
#include <kvtree/kvtree_error.h>
#include <mpi.h>
#include <stdint.h>

#define agree COMMON(agree)
#define agree_sum COMMON(agree_sum)
#define agree_possible COMMON(agree_possible)
#define agree_mpi_check COMMON(agree_mpi_check)

/* Converts a result of MPI: 0 for MPI_SUCCESS; otherwise -ECOMM, and the text of the code
 * in err, which may be NULL. */
int agree_mpi_check(int result, kvtree_error *err);

/* Returns 0, or -EINVAL with a text for MPI_COMM_NULL or an intercommunicator. err may be
 * NULL. */
int agree_possible(MPI_Comm comm, kvtree_error *err);

/* Collective over comm. Each rank passes its own code (0, negative error, positive
 * verdict) and its text in err (not NULL). Returns the same code on every rank: 0 if all
 * passed 0; otherwise the code of the lowest rank with an error or, without any error, of
 * the lowest rank with a verdict. err then holds the text of that rank on all ranks,
 * after "rank 12: " or "on 37 ranks, first rank 12: "; the text of the lowest rank with a
 * different error, if there is one, follows. If MPI returns an error, this rank returns
 * -EIO, and other ranks may not. Costs one small allreduce if all ranks pass 0. */
int agree(MPI_Comm comm, int code, kvtree_error *err);

/* Like agree. If all ranks pass 0, the same single allreduce replaces each of count
 * numbers by the sum over all ranks. Otherwise the numbers are unchanged. */
enum { AGREE_NUMBERS_MAX = 4 };
int agree_sum(MPI_Comm comm, int code, kvtree_error *err, int count, int64_t numbers[]);

#endif
