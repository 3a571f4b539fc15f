/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process acts for which rank of a cached dataset; see plan/adopt.h. */
#include "plan/adopt.h"

void scr_plan_adopt(int procs, int ranks, int count, const scr_distribute_copy copies[],
                    int actor[], int load[])
{
    int next = 0, level = 0;
    for (int i = 0; i < ranks; i++)
        actor[i] = -1;
    for (int i = 0; i < procs; i++)
        load[i] = 0;
    for (int i = 0; i < count; i++) {
        const scr_distribute_copy *c = &copies[i];
        if (c->intact && (actor[c->rank] < 0 || c->holder < actor[c->rank]))
            actor[c->rank] = c->holder;
    }
    for (int i = 0; i < ranks; i++)
        if (actor[i] >= 0) load[actor[i]]++;
    for (int i = 0; i < ranks; i++) {
        if (actor[i] >= 0) continue;
        /* all processes before next act for more than level ranks */
        while (load[next] > level)
            if (++next == procs) next = 0, level++;
        actor[i] = next;
        load[next]++;
    }
}
