/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process sends the files of a cached dataset to which rank; see plan/distribute.h.
 */
#include "plan/distribute.h"

static bool distribute_is_better(const scr_distribute_copy *copy, int source)
{
    if (!copy->intact || source == copy->rank) return false;
    return copy->holder == copy->rank || source < 0 || copy->holder < source;
}

static void distribute_choose_sources(scr_distribute_plan *p)
{
    for (int i = 0; i < p->ranks; i++) {
        scr_distribute_rank *r = &p->list[i];
        r->source = r->round = -1;
        r->sends = r->arrivals = 0;
        r->arriving = 0;
    }
    for (int i = 0; i < p->count; i++) {
        const scr_distribute_copy *copy = &p->copies[i];
        scr_distribute_rank *r = &p->list[copy->rank];
        if (distribute_is_better(copy, r->source)) r->source = copy->holder;
    }
}

/* Whether the files of the rank come from another process. */
static bool distribute_is_moved(const scr_distribute_plan *p, int rank)
{
    return p->list[rank].source >= 0 && p->list[rank].source != rank;
}

static void distribute_compare_room(scr_distribute_plan *p)
{
    for (int i = 0; i < p->count; i++) {
        const scr_distribute_copy *copy = &p->copies[i];
        const scr_distribute_rank *r = &p->list[copy->rank];
        if (r->source == copy->holder && distribute_is_moved(p, copy->rank))
            p->list[r->node].arriving += copy->bytes;
    }
    p->is_short_of_room = false;
    for (int i = 0; i < p->ranks; i++)
        if (p->list[p->list[i].node].arriving > p->list[i].room)
            p->is_short_of_room = true;
}

/* Numbers the rounds: the k-th rank that a sender serves receives in round k. If room is
 * short, each of these rounds is split into parts, and the n-th receiver of a node
 * receives in part n. */
static void distribute_number_rounds(scr_distribute_plan *p)
{
    int parts = 1;
    for (int i = 0; i < p->ranks; i++)
        if (distribute_is_moved(p, i)) p->list[p->list[i].node].arrivals++;
    for (int i = 0; p->is_short_of_room && i < p->ranks; i++)
        if (p->list[i].arrivals > parts) parts = p->list[i].arrivals;
    p->rounds = 0;
    for (int i = 0; i < p->ranks; i++) {
        scr_distribute_rank *r = &p->list[i];
        if (!distribute_is_moved(p, i)) continue;
        int part = --p->list[r->node].arrivals;
        r->round = p->list[r->source].sends++ * parts + (parts > 1 ? part : 0);
        if (r->round >= p->rounds) p->rounds = r->round + 1;
    }
}

void scr_plan_distribute(scr_distribute_plan *p)
{
    distribute_choose_sources(p);
    distribute_compare_room(p);
    distribute_number_rounds(p);
}

int scr_distribute_receiver(const scr_distribute_plan *p, int holder, int round)
{
    for (int i = 0; i < p->ranks; i++)
        if (p->list[i].source == holder && p->list[i].round == round) return i;
    return -1;
}
