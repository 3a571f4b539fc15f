/* SPDX-License-Identifier: BSD-3-Clause */
/* All members of a set in one process: what rebuild_mpi.c does with messages. Looks at
 * the members, makes the plan, lets what is lost flow from the survivors, and compares
 * all checksums; who is damaged counts as lost, too, and it begins again. */
#include "src/redset_private.h"

#include "common/errtext.h"
#include <errno.h>
#include <stdlib.h>

/* Files of survivors that are open at a time, each member having one at least; with their
 * redundancy files 192 of up to 64 members. */
enum { OPEN_FILES = 128 };

static int look_at_member(redset_group *g, int m, int dir, const char *redundancy,
                          char *err)
{
    redset_salvage *s = &g->member[m];
    redset_place place = g->layout.place;
    char name[REDSET_NAME_SIZE] = "";
    place.member = m;
    *s = (redset_salvage){
        .layout = &g->layout, .member = m, .dir = dir, .streams = {.fd = -1}};
    s->state = (redset_state *)redset_state_of(&g->shape, g->states, m);
    redset_file_name(&place, name);
    int rc = redset_join(s->name, sizeof s->name, redundancy, name);
    return rc ? err_sys(err, rc, "%s", redundancy) : redset_salvage_look(s, err);
}

int redset_group_new(int dir, const char *redundancy, redset_layout *layout,
                     redset_group **group, char *err)
{
    redset_group *g = calloc(1, sizeof *g);
    if (!g) {
        redset_layout_done(layout);
        return err_sys(err, -ENOMEM, "set");
    }
    g->layout = *layout;
    g->shape = redset_shape_of(&g->layout.place);
    size_t count = (size_t)g->shape.members;
    g->states = calloc(count, redset_state_size(&g->shape));
    g->lost = calloc(count, 1);
    g->member = calloc(count, sizeof *g->member);
    int rc = g->states && g->lost && g->member ? 0 : -ENOMEM;
    if (rc) err_sys(err, rc, "%zu members", count);
    for (; !rc && g->looked < g->shape.members; g->looked++)
        rc = look_at_member(g, g->looked, dir, redundancy, err);
    if (rc) {
        redset_group_free(g);
        return rc;
    }
    *group = g;
    return 0;
}

int redset_group_measure(redset_group *group, char *err)
{
    int rc = 0;
    for (int m = 0; m < group->shape.members && !rc; m++)
        rc = redset_salvage_measure(&group->member[m], err);
    return rc;
}

/* ---- verdict ---- */

static void explain_loss(redset_group *g)
{
    redset_verdict_lost(&g->layout, g->lost, g->text);
    for (int m = 0, told = 0; m < g->shape.members && told < REDSET_EXPLAINED; m++)
        if (g->lost[m]) {
            redset_verdict_reason(g->layout.members[m], g->member[m].lost, g->text);
            told++;
        }
}

int redset_group_judge(redset_group *group)
{
    group->plan = redset_plan_make(&group->shape, group->states, group->lost);
    group->verdict = 0;
    if (group->plan.kind == REDSET_PLAN_MIXED)
        return group->verdict =
                   redset_verdict_mixed(&group->layout, &group->plan, group->text);
    if (group->plan.kind == REDSET_PLAN_NOTHING) return 0;
    explain_loss(group);
    return group->verdict = redset_plan_verdict(&group->plan);
}

/* ---- the lost headers ---- */

/* The lists that belong into the header of lost member m, from those who keep them. */
static const redset_header *collect_lists(const redset_group *g, int m, kvtree *lists[])
{
    const redset_header *source = NULL;
    int members = g->shape.members;
    for (int d = g->shape.failures; d >= 0; d--) {
        int owner = (m + members - d) % members;
        int holder = redset_list_holder(&g->shape, g->lost, owner);
        source = g->member[holder].header;
        lists[d] = redset_header_list(source->tree, (holder + members - owner) % members);
    }
    return source;
}

static int inherit(redset_group *g, int m, char *err)
{
    kvtree **lists = calloc((size_t)g->shape.failures + 1, sizeof *lists);
    if (!lists) return err_sys(err, -ENOMEM, "lists of files");
    const redset_header *source = collect_lists(g, m, lists);
    kvtree *tree = redset_header_build(&g->layout, source->chunk, source->encode,
                                       kvtree_get(source->tree, "DSET"), lists);
    free(lists);
    if (!tree) return err_sys(err, -ENOMEM, "header");
    return redset_header_inherit(tree, g->layout.members[m], &g->member[m].header, err);
}

static int inherit_all(redset_group *g, char *err)
{
    int rc = 0;
    for (int m = 0; m < g->shape.members && !rc; m++)
        if (g->lost[m]) rc = inherit(g, m, err);
    return rc;
}

/* ---- the data ---- */

static int open_survivor(const redset_group *g, redset_salvage *s, char *err)
{
    int rc = redset_salvage_read(s, err), share = OPEN_FILES / g->shape.members;
    if (rc || s->state->lost) return rc;
    if (share < REDSET_OPEN_FILES) s->streams.logical->open_files = share ? share : 1;
    return 0;
}

static int open_all(redset_group *g, char *err)
{
    int rc = 0;
    for (int m = 0; m < g->shape.members && !rc; m++)
        rc = g->lost[m] ? redset_salvage_write(&g->member[m], err)
                        : open_survivor(g, &g->member[m], err);
    return rc;
}

/* Reads what the flows did not need, and closes. */
static int verify_survivors(redset_group *g, char *err)
{
    int rc = 0;
    for (int m = 0; m < g->shape.members && !rc; m++) {
        redset_salvage *s = &g->member[m];
        if (s->state->lost) continue;
        if (!s->streams.logical) rc = open_survivor(g, s, err);
        if (!rc && !s->state->lost) rc = redset_salvage_verify(s, REDSET_PIECE, err);
        redset_streams_done(&s->streams);
    }
    return rc;
}

/* How many survivors turned out to be none. */
static int count_damaged(const redset_group *g)
{
    int damaged = 0;
    for (int m = 0; m < g->shape.members; m++)
        damaged += g->member[m].state->lost && !g->lost[m];
    return damaged;
}

static int move_data(redset_group *g, char *err)
{
    int rc = inherit_all(g, err);
    if (!rc) rc = open_all(g, err);
    if (!rc && count_damaged(g) == 0) rc = redset_group_flow(g, err);
    return rc;
}

static int attempt(redset_group *g, char *err)
{
    int rc = redset_group_judge(g);
    if (rc && rc != REDSET_RECOVERABLE) return rc;
    rc = g->plan.kind == REDSET_PLAN_REBUILD ? move_data(g, err) : 0;
    return rc || count_damaged(g) ? rc : verify_survivors(g, err);
}

static void drop(redset_group *g)
{
    for (int m = 0; m < g->looked; m++)
        redset_salvage_drop(&g->member[m]);
}

int redset_group_rebuild(redset_group *group, char *err)
{
    int rc = 0, damaged = 0;
    do {
        if (damaged) drop(group);
        rc = attempt(group, err);
        damaged = count_damaged(group);
    } while (!rc && damaged);
    for (int m = 0; m < group->shape.members && !rc; m++)
        if (group->lost[m]) rc = redset_salvage_complete(&group->member[m], err);
    return rc;
}

int redset_group_verify(redset_group *group, char *err)
{
    int rc = verify_survivors(group, err);
    if (rc) return rc;
    int verdict = redset_group_judge(group);
    if (verdict == REDSET_RECOVERABLE) rc = inherit_all(group, err);
    return rc ? rc : verdict;
}

int redset_group_commit(redset_group *group, char *err)
{
    int rc = 0;
    for (int m = 0; m < group->shape.members && !rc; m++)
        if (group->lost[m]) rc = redset_salvage_clear_way(&group->member[m], err);
    for (int m = 0; m < group->shape.members && !rc; m++)
        if (group->lost[m]) rc = redset_salvage_commit(&group->member[m], err);
    if (!rc) group->verdict = 0;
    return rc;
}

redset_group *redset_group_free(redset_group *group)
{
    if (!group) return NULL;
    for (int m = 0; m < group->looked; m++)
        redset_salvage_done(&group->member[m]);
    free(group->member);
    free(group->states);
    free(group->lost);
    redset_layout_done(&group->layout);
    free(group);
    return NULL;
}
