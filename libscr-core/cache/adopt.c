/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses a cached dataset of another number of ranks: each process acts for some of the
 * ranks that wrote it (plan/adopt.h). Files stay where they are, and lost files are
 * rebuilt (redset_adopt_with). The map of a process has the ranks that it acts for. */
#include "cache/copies.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "plan/adopt.h"
#include <errno.h>
#include <stdlib.h>

/* The ranks that this process acts for. */
struct acting {
    int count;
    redset_acted *list;
};

/* Local. Drops from the map the files of ranks that another process acts for; the files
 * stay on disk. */
static void adopt_drop_unused(scr_cache *cache, int id, const scr_held *held,
                              const int actor[])
{
    for (int i = 0; i < held->count; i++)
        if (actor[held->copies[i].rank] != cache->job->rank)
            scr_drop_files(cache, id, held->copies[i].rank, 0);
}

/* Local. Lists the ranks that this process acts for. 0 or -ENOMEM. */
static int adopt_list(scr_cache *cache, const scr_dataset *d, const int actor[],
                      struct acting *own)
{
    size_t room = 1;
    for (int i = 0; i < d->ranks; i++)
        room += actor[i] == cache->job->rank;
    own->list = calloc(room, sizeof *own->list);
    if (!own->list) return -ENOMEM;
    for (int i = 0; i < d->ranks; i++)
        if (actor[i] == cache->job->rank)
            own->list[own->count++] =
                (redset_acted){.rank = i, .file = scr_cached_redundancy(cache, d->id, i)};
    return 0;
}

/* Collective, agreed. Chooses the ranks that each process acts for. */
static int adopt_choose(scr_cache *cache, const scr_dataset *d, struct acting *own,
                        kvtree_error *err)
{
    scr_held held = {0, NULL}, all = {0, NULL};
    const int procs = cache->job->ranks;
    int *actor = NULL, rc = scr_copies_find(cache, d, &held, err);
    rc = rc ? rc : scr_copies_share(cache, &held, &all, err);
    if (!rc) {
        actor = calloc((size_t)d->ranks + (size_t)procs, sizeof *actor);
        if (actor) {
            scr_plan_adopt(procs, d->ranks, all.count, all.copies, actor,
                           actor + d->ranks);
            adopt_drop_unused(cache, d->id, &held, actor);
        }
        if (!actor || adopt_list(cache, d, actor, own) != 0)
            rc = err_set(err, -ENOMEM, "no memory for the ranks of dataset %d", d->id);
        rc = agree(cache->job->world, rc, err);
    }
    free(actor);
    free(held.copies);
    free(all.copies);
    return rc;
}

/* Local. Enters the files into the map, including rebuilt ones. */
static int adopt_record(scr_cache *cache, const scr_dataset *d, const struct acting *own,
                        int *rebuilt, kvtree_error *err)
{
    int rc = 0;
    for (int i = 0; i < own->count && !rc; i++) {
        rc = scr_map_record(cache, d, own->list[i].manifest, err);
        *rebuilt += own->list[i].rebuilt;
    }
    /* also if this process acts for no rank */
    scr_cached_set_state(cache, d->id, SCR_CACHED_GOOD);
    return rc;
}

int scr_adopt(scr_cache *cache, const scr_dataset *dataset, int *rebuilt,
              kvtree_error *err)
{
    struct acting own = {0, NULL};
    char *folder = scr_dataset_folder(cache, dataset->id);
    int rc = folder ? 0 : err_set(err, -ENOMEM, "no memory");
    rc = agree(cache->job->world, rc, err);
    rc = rc ? rc : adopt_choose(cache, dataset, &own, err);
    if (!rc)
        rc = redset_adopt_with(cache->job->world, folder, dataset->ranks, own.count,
                               own.list, cache->meter.report, cache->meter.arg, err);
    if (!rc)
        rc = agree(cache->job->world, adopt_record(cache, dataset, &own, rebuilt, err),
                   err);
    for (int i = 0; i < own.count; i++)
        redset_manifest_free(own.list[i].manifest);
    free(own.list);
    free(folder);
    return rc;
}
