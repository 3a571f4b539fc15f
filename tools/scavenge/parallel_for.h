/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_PARALLEL_FOR_H
#define SCAVENGE_PARALLEL_FOR_H

/* A loop with independent iterations, run by several threads. */

/* Calls work(arg, i) once for each i from 0 to count - 1, at most `width` calls in
 * parallel. If no threads can be created, the calls run one after the other. */
void scavenge_parallel_for(int count, int width, void (*work)(void *arg, int i),
                           void *arg);

#endif
