/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups by string; see split_mpi.h.
 *
 * Ranks split by a hash of their string. Where unequal strings met in one part, its first
 * rank's string tells who belongs together; the others split again with another seed,
 * until all parts are pure. */
#include "common/split_mpi.h"

#include <stdint.h>
#include <string.h>

/* FNV-1a, 32 bits, started from a seed (http://www.isthe.com/chongo/tech/comp/fnv/). */
static int hash(const char *string, uint32_t seed)
{
    uint32_t h = 2166136261u ^ (seed * 2654435761u);
    for (; *string; string++)
        h = (h ^ (unsigned char)*string) * 16777619u;
    return (int)(h >> 1);
}

/* 1 when string equals that of the first rank of comm. */
static int equals_first(MPI_Comm comm, const char *string)
{
    char first[SPLIT_STRING_SIZE] = "";
    strncpy(first, string, sizeof first - 1);
    MPI_Bcast(first, (int)sizeof first, MPI_CHAR, 0, comm);
    return strcmp(first, string) == 0;
}

void split_by_string(MPI_Comm comm, const char *string, MPI_Comm *group)
{
    int rank, equal, all_equal;
    MPI_Comm part, next;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_split(comm, hash(string, 0), rank, &part);
    for (uint32_t seed = 1;; seed++) {
        equal = equals_first(part, string);
        MPI_Allreduce(&equal, &all_equal, 1, MPI_INT, MPI_LAND, part);
        if (all_equal) break;
        /* those equal to the first rank stay together under one color that no hash takes
         */
        MPI_Comm_split(part, equal ? 0 : hash(string, seed) | 1, rank, &next);
        MPI_Comm_free(&part);
        part = next;
    }
    *group = part;
}
