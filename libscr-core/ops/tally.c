/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes that the ranks of a node have moved; see tally.h. */
#include "ops/tally.h"

#include <stdatomic.h>

/* Of a rank. One of an earlier operation counts nothing. */
struct scr_tally_place {
    _Atomic uint64_t operation, done, total;
};

void scr_tally_open(scr_tally *t, const scr_job *job, bool wanted)
{
    scr_tally_place *own = NULL, *first = NULL;
    MPI_Aint size = SCR_TALLY_KINDS * (MPI_Aint)sizeof *own;
    int unit;
    *t = (scr_tally){.window = MPI_WIN_NULL};
    if (!wanted ||
        MPI_Win_allocate_shared(size, (int)sizeof *own, MPI_INFO_NULL, job->node,
                                (void *)&own, &t->window) != MPI_SUCCESS)
        return;
    t->wanted = true;
    if (MPI_Win_shared_query(t->window, 0, &size, &unit, (void *)&first) != MPI_SUCCESS)
        return;
    for (int kind = 0; kind < SCR_TALLY_KINDS; kind++) {
        atomic_store(&own[kind].operation, 0);
        t->channels[kind] = (scr_tally_channel){
            .places = first + kind, .own = job->node_rank, .count = job->node_ranks};
    }
}

void scr_tally_close(scr_tally *t)
{
    if (t->wanted) MPI_Win_free(&t->window);
    *t = (scr_tally){.window = MPI_WIN_NULL};
}

static scr_tally_place *tally_place(const scr_tally_channel *c, int rank)
{
    return &c->places[rank * SCR_TALLY_KINDS];
}

void scr_tally_begin(scr_tally *t, scr_tally_kind kind)
{
    scr_tally_channel *c = &t->channels[kind];
    if (!c->places) return;
    scr_tally_place *own = tally_place(c, c->own);
    atomic_store(&own->done, 0);
    atomic_store(&own->total, 0);
    atomic_store(&own->operation, ++c->operation);
}

static void tally_fill(void *arg, uint64_t done, uint64_t total)
{
    const scr_tally_channel *c = arg;
    scr_tally_place *own = tally_place(c, c->own);
    atomic_store(&own->total, total);
    atomic_store(&own->done, done);
}

scr_tally_report *scr_tally_reporter(const scr_tally *t)
{
    return t->channels[0].places ? tally_fill : NULL;
}

void *scr_tally_arg(scr_tally *t, scr_tally_kind kind)
{
    return &t->channels[kind];
}

static void tally_sum(void *arg, uint64_t *done, uint64_t *total)
{
    const scr_tally_channel *c = arg;
    for (int rank = 0; rank < c->count; rank++) {
        scr_tally_place *place = tally_place(c, rank);
        if (atomic_load(&place->operation) != c->operation) continue;
        *done += atomic_load(&place->done);
        *total += atomic_load(&place->total);
    }
}

scr_progress_source scr_tally_source(scr_tally *t, scr_tally_kind kind)
{
    scr_tally_channel *c = &t->channels[kind];
    return (scr_progress_source){c->places ? tally_sum : NULL, c};
}
