/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_SPLIT_MPI_H
#define COMMON_SPLIT_MPI_H

/* Groups of processes that pass the same string. */

#include "common/prefix.h"
#include <kvtree/kvtree_error.h>
#include <mpi.h>

/* Longest string, in bytes with its NUL. */
#define SPLIT_STRING_SIZE 1024

#define split_by_string COMMON(split_by_string)

/* Collective over comm, agreed. *group becomes a new communicator of all ranks that
 * passed an equal string, ordered as in comm; the caller frees it. The caller has checked
 * the length of the string. Each rank receives only its own string and, if two strings
 * have the same hash, one more per attempt. -ECOMM if MPI fails on any rank. */
int split_by_string(MPI_Comm comm, const char *string, MPI_Comm *group,
                    kvtree_error *err);

#endif
