/* SPDX-License-Identifier: BSD-3-Clause */
/* Distributing a cached dataset: after a restart a rank may run on another node than the
 * one that holds its files. Every process reports the copies that it holds, and computes
 * the same plan (plan/distribute.h); the files are moved in rounds
 * (cache/rank_transfer.c). */
#include "cache/copies.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdlib.h>
#include <sys/statvfs.h>

/* ---- facts ---- */

/* Local. Whether this process has all files of its rank, and no files of other ranks. */
static bool distribute_is_in_place(const scr_cache *cache, const scr_dataset *dataset)
{
    kvtree_error err = {""};
    const kvtree_elem *r = scr_filemap_ranks_of(cache->map, dataset->id);
    return r && !kvtree_elem_next(r) && kvtree_elem_key_int(r) == cache->job->rank &&
           scr_copies_check_rank(cache, dataset, cache->job->rank, &err) == 1;
}

bool scr_distribute_is_done(scr_cache *cache, const scr_dataset *dataset)
{
    return scr_job_min(cache->job, distribute_is_in_place(cache, dataset));
}

/* Free bytes of the store, as this process sees it. */
static int64_t distribute_room(const scr_cache *cache, int id)
{
    struct statvfs fs;
    if (fstatvfs(scr_cache_of(cache, id)->fd, &fs) != 0) return 0;
    return (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
}

/* Collective, agreed. Gathers all facts, on every rank. */
static int distribute_gather(const scr_cache *cache, int id, const scr_held *held,
                             scr_distribute_plan *p, kvtree_error *err)
{
    scr_held all;
    int node = cache->job->rank;
    p->ranks = cache->job->ranks;
    p->list = calloc((size_t)p->ranks, sizeof *p->list);
    int rc = p->list ? 0 : err_set(err, -ENOMEM, "no memory");
    rc = agree(cache->job->world, rc, err);
    rc = rc ? rc : scr_copies_share(cache, held, &all, err);
    if (rc) return rc;
    p->count = all.count;
    p->copies = all.copies;
    MPI_Bcast(&node, 1, MPI_INT, 0, cache->job->node);
    scr_distribute_rank *own = &p->list[cache->job->rank];
    *own = (scr_distribute_rank){.node = node, .room = distribute_room(cache, id)};
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, p->list, sizeof *own, MPI_BYTE,
                  cache->job->world);
    return 0;
}

/* ---- moves ---- */

/* Collective. Executes the plan. Returns whether files for this rank could not be
 * moved. */
static bool distribute_execute(scr_cache *cache, const scr_dataset *dataset,
                               const scr_distribute_plan *p)
{
    const scr_distribute_rank *own = &p->list[cache->job->rank];
    bool failed = false;
    for (int round = 0; round < p->rounds; round++) {
        int to = scr_distribute_receiver(p, cache->job->rank, round),
            from = own->round == round ? own->source : -1;
        if (to >= 0 || from >= 0)
            failed |= scr_move_files(cache, dataset, to < 0 ? MPI_PROC_NULL : to,
                                     from < 0 ? MPI_PROC_NULL : from) != 0;
        /* only senders on this node free its space */
        if (p->is_short_of_room) MPI_Barrier(cache->job->node);
    }
    return failed;
}

/* Drops from the map the copies that no rank needs; their files stay on disk. */
static void distribute_drop_unused(scr_cache *cache, int id, const scr_held *held,
                                   const scr_distribute_plan *p)
{
    const int own = cache->job->rank;
    for (int i = 0; i < held->count; i++) {
        int rank = held->copies[i].rank;
        if (rank != own && p->list[rank].source != own)
            scr_drop_files(cache, id, rank, 0);
    }
}

/* What came to this rank; what it could not send is still in its map. */
static void distribute_add_up(const scr_cache *cache, int id, unsigned long sums[2])
{
    scr_filemap_walk walk = {NULL, NULL};
    while (scr_filemap_next(cache->map, id, &walk)) {
        unsigned long size = 0;
        if (kvtree_elem_key_int(walk.rank) != cache->job->rank) continue;
        kvtree_util_get_bytecount(kvtree_elem_hash(walk.file), SCR_META_SIZE, &size);
        sums[0]++;
        sums[1] += size;
    }
}

int scr_distribute(scr_cache *cache, const scr_dataset *dataset, scr_moved *moved,
                   kvtree_error *err)
{
    const int id = dataset->id;
    scr_held held = {0, NULL};
    scr_distribute_plan plan = {.ranks = 0};
    int rc = scr_copies_find(cache, dataset, &held, err);
    rc = rc ? rc : distribute_gather(cache, id, &held, &plan, err);
    if (!rc) {
        scr_plan_distribute(&plan);
        moved->failed = distribute_execute(cache, dataset, &plan);
        distribute_drop_unused(cache, id, &held, &plan);
        if (plan.list[cache->job->rank].round >= 0)
            distribute_add_up(cache, id, moved->sums);
    }
    free(held.copies);
    free(plan.list);
    free(plan.copies);
    return rc;
}
