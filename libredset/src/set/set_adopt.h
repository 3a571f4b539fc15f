/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SET_SET_ADOPT_H
#define REDSET_SET_SET_ADOPT_H

/* Ranks of an encode in the hands of other processes (redset_adopt of redset_mpi.h).
 *
 * No process knows which one acts for which rank, and none has to know all. A process is
 * the home of the ranks, and of the sets, whose numbers leave its own as a remainder:
 *
 *  1. For each of its ranks a process tells the home of the rank that it acts for it. A
 *     rank that is not lost tells the home of its set the layout, and the homes of the
 *     other members to which set they belong.
 *  2. The home of a lost rank tells the home of its set who acts for it.
 *  3. The home of a set with lost members tells all who act for a member.
 *
 * These rebuild the set, over a transport of their own. Each process does so for its sets
 * in the order of their ids, so no two wait for each other. */

#include "src/set/set.h"

/* How a set gets its transport. */
typedef struct redset_adopt_host {
    redset_transport *world; /* all processes; peers are their numbers */

    /* By this process alone: all that may fail on one of those that act for the members
     * of a set where the others would wait for it. actor has their numbers, which they
     * agree on. *meeting is to be left. */
    int (*prepare)(void *arg, int size, const int actor[], void **meeting,
                   redset_error *err);

    /* Collective over these, when all are known to have prepared; the result is this
     * process's own: none uses *members before all know that all have theirs. *members is
     * NULL without one. */
    int (*connect)(void *arg, int id, int size, const int actor[], const void *meeting,
                   redset_transport **members, redset_error *err);
    void (*release)(redset_transport *members);
    void (*leave)(void *meeting);
    void *arg;
    redset_meter *meter; /* of the bytes of this process, or NULL */
} redset_adopt_host;

int redset_set_adopt(const redset_adopt_host *host, const char *folder, int ranks,
                     int count, redset_acted list[], redset_error *err);

#endif
