/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SET_SET_ADOPT_H
#define REDSET_SET_SET_ADOPT_H

/* Ranks of an encode for which other processes act (redset_adopt in redset_mpi.h).
 *
 * At first, no process knows which process acts for which rank, and none has to know all.
 * Process p is the home of the ranks, and of the sets, whose numbers are p modulo the
 * number of processes:
 *
 *  1. For each of its ranks, a process reports to the home of the rank that it acts for
 *     the rank. If the rank is not lost, the process also sends its layout to the home of
 *     its set, and reports to the homes of the other members to which set they belong.
 *  2. The home of a lost rank reports to the home of its set which process acts for the
 *     rank.
 *  3. The home of a set with lost members reports the set to all processes that act for
 *     its members.
 *
 * These processes rebuild the set, over a transport of their own. Each process rebuilds
 * its sets in the order of their ids, so no two processes wait for each other. */

#include "src/set/set.h"

/* How a set gets its transport. */
typedef struct redset_adopt_host {
    redset_transport *world; /* all processes; each is a peer */

    /* Not collective: does everything that may fail on one process while the other
     * processes of the set wait for it. actor has the number of the process that acts for
     * each member; all these processes have the same array. *meeting is freed by leave.
     */
    int (*prepare)(void *arg, int size, const int actor[], void **meeting,
                   redset_error *err);

    /* Collective over the processes of the set, when all are known to have prepared; the
     * result is this process's own. No process uses *members before all are known to have
     * a transport. *members is NULL without one. */
    int (*connect)(void *arg, int id, int size, const int actor[], const void *meeting,
                   redset_transport **members, redset_error *err);
    void (*release)(redset_transport *members);
    void (*leave)(void *meeting);
    void *arg;
    redset_meter *meter; /* counts bytes of this process, or NULL */
} redset_adopt_host;

int redset_set_adopt(const redset_adopt_host *host, const char *folder, int ranks,
                     int count, redset_acted list[], redset_error *err);

#endif
