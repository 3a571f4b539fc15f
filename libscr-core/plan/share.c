/* SPDX-License-Identifier: BSD-3-Clause */
/* The resources of a node for a background flush; see plan/share.h. */
#include "plan/share.h"

#include <stdint.h>

static int share_turns(const scr_share_facts *f)
{
    const int64_t turns = (int64_t)f->width * f->node_ranks / f->ranks;
    if (f->width >= f->ranks) return 0;
    return turns > 1 ? (int)turns : 1;
}

scr_share scr_plan_share(const scr_share_facts *f)
{
    const int turns = share_turns(f), most = f->leads ? 1 : f->node_ranks;
    const int copying = turns && turns < most ? turns : most;
    return (scr_share){.turns = turns,
                       .bandwidth = f->bandwidth / copying,
                       .percent = f->percent / copying};
}
