/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_ADOPT_H
#define SCR_PLAN_ADOPT_H

/* Which process acts for which of the ranks that wrote a cached dataset, if this run has
 * another number of ranks. A pure function of facts about all processes; each process
 * computes the same result.
 *
 * The rule: the lowest process that holds an intact copy of a rank's files acts for that
 * rank. Files that no process holds are rebuilt by the processes that act for the fewest
 * ranks. */

#include "plan/distribute.h"

/* Sets actor[i] to the process that acts for rank i, of `ranks`. The copies are unsorted.
 * load is working memory for `procs` numbers. */
void scr_plan_adopt(int procs, int ranks, int count, const scr_distribute_copy copies[],
                    int actor[], int load[]);

#endif
