/* SPDX-License-Identifier: BSD-3-Clause */
/* Pure decisions; see scr_decide.h. */
#include "records/scr_decide.h"

int scr_decide_newest(const scr_cached *cached, int count)
{
    int newest = -1;
    for (int i = 0; i < count; i++)
        if (cached[i].ckpt > 0 && (newest < 0 || cached[i].id > cached[newest].id))
            newest = i;
    return newest;
}

int scr_decide_evict(const scr_cached *cached, int count, int capacity)
{
    int newest = scr_decide_newest(cached, count);
    int oldest = -1;
    for (int i = 0; i < count; i++)
        if (!cached[i].flushing && i != newest &&
            (oldest < 0 || cached[i].id < cached[oldest].id))
            oldest = i;
    if (count < capacity) return -1;
    if (oldest < 0 && newest >= 0 && !cached[newest].flushing) return newest;
    return oldest;
}

int scr_decide_checkpoint(const scr_advice *a)
{
    if (a->halt) return 1;
    if (a->interval > 0 && a->calls >= a->interval) return 1;
    if (a->seconds > 0 && a->since_last >= a->seconds) return 1;
    if (a->overhead > 0)
        return a->cost <= 0 || a->cost * 100 <= a->overhead * (a->since_last + a->cost);
    return 0;
}

int scr_decide_flush(int n, int every)
{
    return every > 0 && n % every == 0;
}
