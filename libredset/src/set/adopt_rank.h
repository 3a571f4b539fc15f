/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SET_ADOPT_RANK_H
#define REDSET_SET_ADOPT_RANK_H

/* A rank of an encode for which this process acts. A lost rank is not an error: functions
 * return 0 and set lost. */

#include "src/set/member_recovery.h"

typedef struct adopt_rank {
    int rank;
    const char *file;          /* name of its redundancy file; NULL: lost */
    bool lost;                 /* files of the rank are lost */
    bool done;                 /* verified or rebuilt: nothing is left to do */
    redset_layout layout;      /* of its set; without members if the rank has no valid
                                  redundancy file */
    redset_member member;      /* with a header unless the rank is lost, or done */
    redset_manifest *manifest; /* once the rank is done */
    bool rebuilt;
} adopt_rank;

/* Reads the redundancy file of the rank, and compares the sizes of its files. ranks is
 * the number of ranks of the encode: another number in the file is REDSET_UNRECOVERABLE.
 */
int adopt_rank_inspect(adopt_rank *r, int dir, int ranks, redset_error *err);

/* Returns the number of bytes that a verification of the rank reads. */
uint64_t adopt_rank_bytes(const adopt_rank *r);

/* Reads all files of the rank: it is then done, or lost. */
int adopt_rank_verify(adopt_rank *r, redset_error *err);

/* Marks the rank as done, with that layout and header. */
int adopt_rank_finish(adopt_rank *r, const kvtree *layout, const redset_header *header,
                      bool rebuilt, redset_error *err);

void adopt_rank_free(adopt_rank *r);

#endif
