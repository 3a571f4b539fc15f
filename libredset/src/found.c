/* SPDX-License-Identifier: BSD-3-Clause */
/* What was found of sets in a folder, as callers get it: a copy that stands alone. */
#include "src/redset_private.h"

#include <stdlib.h>
#include <string.h>

static int copy_member(const redset_group *g, int m, redset_found_member *member)
{
    const redset_salvage *s = &g->member[m];
    member->rank = g->layout.members[m];
    member->lost = g->lost[m];
    if (g->lost[m] && !(member->reason = strdup(s->lost))) return -1;
    if (s->header && !(member->manifest = redset_manifest_new(s->header))) return -1;
    return 0;
}

static int copy_set(const redset_group *g, redset_found_set *set)
{
    set->place = g->layout.place;
    set->place.member = -1;
    set->lost = g->plan.lost;
    set->verdict = g->verdict;
    set->members = calloc((size_t)g->shape.members, sizeof *set->members);
    if (!set->members) return -1;
    if (g->verdict && !(set->text = strdup(g->text))) return -1;
    int rc = 0;
    for (int m = 0; m < g->shape.members && !rc; m++)
        rc = copy_member(g, m, &set->members[m]);
    return rc;
}

redset_found *redset_found_new(int count, redset_group *const groups[])
{
    redset_found *found = calloc(1, sizeof *found);
    if (!found) return NULL;
    found->sets = calloc((size_t)count + 1, sizeof *found->sets);
    if (!found->sets) return redset_found_free(found);
    if (count > 0) found->ranks = groups[0]->layout.ranks;
    for (; found->count < count; found->count++) {
        int i = found->count;
        if (copy_set(groups[i], &found->sets[i]) == 0) continue;
        found->count++; /* what is there of this one is freed too */
        return redset_found_free(found);
    }
    return found;
}

static void free_set(redset_found_set *set)
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
        free_set(&found->sets[i]);
    free(found->sets);
    free(found);
    return NULL;
}
