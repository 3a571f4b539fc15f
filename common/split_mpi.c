/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups by string; see split_mpi.h.
 *
 * Ranks split by a hash of their string. Where unequal strings met in one part, its first
 * rank's string defines a group; the others split again with another seed,
 * until all parts are pure. */
#include "common/split_mpi.h"

#include <stdint.h>
#include <string.h>

/* FNV-1a, 32 bits, started from a seed (http://www.isthe.com/chongo/tech/comp/fnv/). */
static int split_hash(const char *string, uint32_t seed)
{
    uint32_t h = 2166136261u ^ (seed * 2654435761u);
    for (; *string; string++)
        h = (h ^ (unsigned char)*string) * 16777619u;
    return (int)(h >> 1);
}

/* *equal: string is that of the first rank of comm; *all: so it is on all ranks. */
static int split_compare_to_first(MPI_Comm comm, const char *string, int *equal, int *all)
{
    char first[SPLIT_STRING_SIZE] = "";
    strncpy(first, string, sizeof first - 1);
    int rc = MPI_Bcast(first, (int)sizeof first, MPI_CHAR, 0, comm);
    if (rc != MPI_SUCCESS) return rc;
    *equal = strcmp(first, string) == 0;
    return MPI_Allreduce(equal, all, 1, MPI_INT, MPI_LAND, comm);
}

int split_by_string(MPI_Comm comm, const char *string, MPI_Comm *group)
{
    int rank, equal, all;
    MPI_Comm part, next;
    MPI_Comm_rank(comm, &rank);
    int rc = MPI_Comm_split(comm, split_hash(string, 0), rank, &part);
    if (rc != MPI_SUCCESS) return rc;
    for (uint32_t seed = 1;; seed++) {
        rc = split_compare_to_first(part, string, &equal, &all);
        if (rc == MPI_SUCCESS && all) {
            *group = part;
            return MPI_SUCCESS;
        }
        /* those equal to the first rank stay together under one color that no hash takes
         */
        if (rc == MPI_SUCCESS)
            rc = MPI_Comm_split(part, equal ? 0 : split_hash(string, seed) | 1, rank,
                                &next);
        MPI_Comm_free(&part);
        if (rc != MPI_SUCCESS) return rc;
        part = next;
    }
}
