/* SPDX-License-Identifier: BSD-3-Clause */
/* Which interrupted flush is resumed; see plan/resume.h. */
#include "plan/resume.h"

static int resume_newest(const scr_resume_facts *f)
{
    int newest = -1;
    for (int i = 0; i < f->flush_count; i++) {
        const scr_resume_flush *flush = &f->flushes[i];
        if (flush->is_foreign || !flush->is_cached || flush->is_stored) continue;
        if (newest < 0 || scr_age_is_older(f->flushes[newest].age, flush->age))
            newest = i;
    }
    return newest;
}

int scr_plan_resume(const scr_resume_facts *f)
{
    const int resumed = f->has_transfer ? resume_newest(f) : -1;
    for (int i = 0; i < f->flush_count; i++)
        f->flushes[i].is_removed = i != resumed && !f->flushes[i].is_foreign;
    for (int i = 0; i < f->transfer_count; i++)
        f->transfers[i].is_stopped = resumed < 0 || !f->transfers[i].is_here;
    return resumed;
}
