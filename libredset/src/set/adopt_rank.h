/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SET_ADOPT_RANK_H
#define REDSET_SET_ADOPT_RANK_H

/* A rank of an encode for which this process acts. That it is lost is not an error:
 * functions return 0 then, and lost is set. */

#include "src/set/member_recovery.h"

typedef struct adopt_rank {
    int rank;
    const char *file;     /* name of its redundancy file; NULL: lost */
    bool lost;            /* something of it is */
    bool done;            /* verified or rebuilt: nothing is left to do */
    redset_layout layout; /* of its set; without members where no file of its own tells */
    redset_member member; /* with a header unless it is lost, or done */
    redset_manifest *manifest; /* once it is done */
    bool rebuilt;
} adopt_rank;

/* Reads its redundancy file, and compares the sizes of its files. ranks is the number of
 * the encode: another one is REDSET_UNRECOVERABLE. */
int adopt_rank_inspect(adopt_rank *r, int dir, int ranks, redset_error *err);

/* What there is to read of it. */
uint64_t adopt_rank_bytes(const adopt_rank *r);

/* Reads all of it: it is done, or lost. */
int adopt_rank_verify(adopt_rank *r, redset_error *err);

/* It is done, with a set of that layout and that header. */
int adopt_rank_finish(adopt_rank *r, const kvtree *layout, const redset_header *header,
                      bool rebuilt, redset_error *err);

void adopt_rank_free(adopt_rank *r);

#endif
