/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_SIDE_H
#define SCAVENGE_SIDE_H

/* Independent pieces of work, several at a time. */

/* Calls work(arg, i) once for each i from 0 to count - 1, up to `most` of them side by
 * side, in threads; where there are no threads, one after the other. */
void scavenge_side_by_side(int count, int most, void (*work)(void *arg, int i),
                           void *arg);

#endif
