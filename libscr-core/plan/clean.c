/* SPDX-License-Identifier: BSD-3-Clause */
/* What SCR_Init cleans up on the prefix directory; see plan/clean.h. */
#include "plan/clean.h"

scr_clean_plan scr_plan_clean(const scr_clean_facts *f)
{
    scr_clean_plan plan;
    plan.deletes = f->is_indexed && (f->purge || f->is_deleting);
    plan.inspects = !f->is_complete || f->is_cached || f->is_staged;
    plan.vacates = plan.inspects && !f->is_indexed;
    return plan;
}
