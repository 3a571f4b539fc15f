/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_NAME_SET_H
#define SCR_NAME_SET_H

/* Whether two ranks may have given the same file name, decided by one reduction of fixed
 * size.
 *
 * Names that contain the number of their rank need no comparison. A place is the n-th
 * number in a name, counted from the start or from the end: in "ckpt.7/rank_3.dat" the
 * second number is also the last one. A place is good if no rank has a name with the
 * number of another rank there. At a good place, two names with the numbers of their
 * ranks differ, and so do a name with the number of its rank and a name with no rank's
 * number. The remaining names, without a rank's number there, are compared by a set of
 * hashes.
 *
 * Without a good place all names are compared by one larger set of hashes. If two sets
 * have a bit in common, their ranks may have a name in common. With N names this happens
 * by chance in one of 2 SCR_NAME_BITS / N^2 cases. */

#include <stdbool.h>
#include <stdint.h>

enum {
    SCR_NAME_PLACES = 8, /* half of them counted from the end */
    SCR_NAME_WORDS = 256,
    SCR_NAME_BITS = 64 * SCR_NAME_WORDS,
    SCR_NAME_REST_WORDS = 8
};

/* The set of one rank, or of several; all zeros: of none. */
typedef struct scr_name_set {
    uint64_t bad;  /* bit p: place p is not good, or two ranks share a bit of rest[p] */
    uint64_t meet; /* two ranks share a bit of names */
    uint64_t names[SCR_NAME_WORDS];
    uint64_t rest[SCR_NAME_PLACES][SCR_NAME_REST_WORDS];
} scr_name_set;

/* Adds a name of a rank to the set of that rank. */
void scr_name_set_add(scr_name_set *set, const char *name, int rank, int ranks);

/* Adds the set of other ranks to a set. */
void scr_name_set_unite(scr_name_set *set, const scr_name_set *other);

/* Whether it is certain that no two ranks have a name in common. */
bool scr_name_set_is_distinct(const scr_name_set *set);

#endif
