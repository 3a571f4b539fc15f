/* SPDX-License-Identifier: BSD-3-Clause */
/* Which cached checkpoint is the newest; see plan/newest.h. */
#include "plan/newest.h"

int scr_plan_newest(const scr_cached *cached, int count)
{
    int newest = -1;
    for (int i = 0; i < count; i++)
        if (cached[i].ckpt > 0 && (newest < 0 || cached[i].id > cached[newest].id))
            newest = i;
    return newest;
}
