/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports on sets in a directory: independent copies for callers. */
#include "src/folder/folder.h"

#include <stdlib.h>
#include <string.h>

static int report_copy_member(const redset_recovery *r, int m,
                              redset_found_member *member)
{
    const redset_member *s = &r->member[m];
    member->rank = r->set->layout.members[m];
    member->lost = r->lost[m];
    if (r->lost[m] && !(member->reason = strdup(s->reason.text))) return -1;
    if (s->header && !(member->manifest = redset_manifest_new(s->header))) return -1;
    return 0;
}

static int report_copy_set(const redset_recovery *r, redset_found_set *set)
{
    set->place = r->set->layout.place;
    set->place.member = -1;
    set->lost = r->plan.lost;
    set->verdict = r->verdict;
    set->members = calloc((size_t)r->shape.members, sizeof *set->members);
    if (!set->members) return -1;
    if (r->verdict && !(set->text = strdup(r->err.text))) return -1;
    int rc = 0;
    for (int m = 0; m < r->shape.members && !rc; m++)
        rc = report_copy_member(r, m, &set->members[m]);
    return rc;
}

redset_found *redset_report_new(int count, redset_recovery *const sets[])
{
    redset_found *found = calloc(1, sizeof *found);
    if (!found) return NULL;
    found->sets = calloc((size_t)count + 1, sizeof *found->sets);
    if (!found->sets) return redset_found_free(found);
    if (count > 0) found->ranks = sets[0]->set->layout.ranks;
    for (; found->count < count; found->count++) {
        int i = found->count;
        if (report_copy_set(sets[i], &found->sets[i]) == 0) continue;
        found->count++; /* so that the incomplete one is freed, too */
        return redset_found_free(found);
    }
    return found;
}

static void report_free_set(redset_found_set *set)
{
    for (int m = 0; set->members && m < set->place.members; m++) {
        free(set->members[m].reason);
        redset_manifest_free(set->members[m].manifest);
    }
    free(set->members);
    free(set->text);
}

redset_found *redset_found_free(redset_found *found)
{
    if (!found) return NULL;
    for (int i = 0; i < found->count; i++)
        report_free_set(&found->sets[i]);
    free(found->sets);
    free(found);
    return NULL;
}
