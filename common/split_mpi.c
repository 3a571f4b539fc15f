/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups by string; see split_mpi.h.
 *
 * Ranks split by a hash of their string. If a part contains unequal strings, the string
 * of its first rank defines a group; the other ranks split again with another seed, until
 * all ranks of each part have the same string. */
#include "common/split_mpi.h"

#include "common/agree_mpi.h"
#include <stdbool.h>
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

/* *equal: string is that of the first rank of comm. */
static int split_compare_to_first(MPI_Comm comm, const char *string, bool *equal,
                                  kvtree_error *err)
{
    char first[SPLIT_STRING_SIZE] = "";
    strncpy(first, string, sizeof first - 1);
    int rc = MPI_Bcast(first, (int)sizeof first, MPI_CHAR, 0, comm);
    *equal = strcmp(first, string) == 0;
    return agree_mpi_check(rc, err);
}

/* Collective over comm, agreed: replaces *part, unless it is comm, by a part of it. No
 * rank uses the new communicator before all ranks have it. */
static int split_part(MPI_Comm comm, int color, MPI_Comm *part, kvtree_error *err)
{
    MPI_Comm next;
    int rank;
    MPI_Comm_rank(comm, &rank);
    int failed = agree_mpi_check(MPI_Comm_split(*part, color, rank, &next), err);
    int rc = agree(comm, failed, err);
    if (*part != comm) MPI_Comm_free(part);
    if (rc && !failed) MPI_Comm_free(&next);
    if (!rc) *part = next;
    return rc;
}

/* Ranks with the string of the first rank stay together under one color that no hash has.
 */
int split_by_string(MPI_Comm comm, const char *string, MPI_Comm *group, kvtree_error *err)
{
    MPI_Comm part = comm;
    int64_t unequal = 1;
    bool equal = false;
    for (uint32_t seed = 0; unequal; seed++) {
        int rc = split_part(comm, equal ? 0 : split_hash(string, seed) | 1, &part, err);
        if (rc) return rc;
        rc = split_compare_to_first(part, string, &equal, err);
        unequal = !equal;
        rc = agree_sum(comm, rc, err, 1, &unequal);
        if (rc) {
            MPI_Comm_free(&part);
            return rc;
        }
    }
    *group = part;
    return 0;
}
