/* SPDX-License-Identifier: BSD-3-Clause */
/* Distributing a cached dataset: after a restart a rank may run on another node than the
 * one that holds its files. Every process reports the copies that it holds; each makes
 * the same plan from them (plan/distribute.h); the files move in rounds
 * (cache/rank_transfer.c). */
#include "cache/cache.h"

#include "base/transient.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "plan/distribute.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* ---- facts ---- */

/* 1 when a file is here with its size, in our cache directory, 0 with a text if not;
 * -errno where that cannot be determined now. */
static int distribute_check_file(const scr_cache *cache, int id, const kvtree_elem *file,
                                 kvtree_error *err)
{
    char path[SCR_CACHED_NAME_SIZE];
    const char *name = scr_filemap_name_of(kvtree_elem_key(file), cache->job->owner, id);
    struct stat st;
    unsigned long size;
    scr_cached_name(id, name, path);
    int rc = beneath_stat(scr_cache_of(cache, id)->fd, path, &st, NULL);
    if (rc == -EACCES || scr_is_transient(rc)) return rc;
    if (rc) return err_set(err, 0, "%s is not there", name);
    if (!S_ISREG(st.st_mode)) return err_set(err, 0, "%s is no regular file", name);
    if (kvtree_util_get_bytecount(kvtree_elem_hash(file), SCR_META_SIZE, &size) != 0)
        return err_set(err, 0, "%s has no size on record", name);
    if ((unsigned long)st.st_size == size) return 1;
    return err_set(err, 0, "%s has %lld bytes, not %lu", name, (long long)st.st_size,
                   size);
}

/* The same for all files of a rank, which must be of this very dataset. */
static int distribute_check_rank(const scr_cache *cache, const scr_dataset *dataset,
                                 int rank, kvtree_error *err)
{
    const int id = dataset->id;
    const kvtree *files = scr_filemap_files(cache->map, id, rank);
    const kvtree_elem *f = kvtree_elem_first(files);
    int good = 1;
    if (!scr_dataset_is_same(scr_filemap_get_dataset(cache->map, id, rank), dataset) ||
        rank >= cache->job->ranks)
        return err_set(err, 0, "they are of another dataset of that id");
    if (scr_filemap_expected(cache->map, id, rank) != kvtree_size(files))
        return err_set(err, 0, "not all of them are on record");
    for (; f && good > 0; f = kvtree_elem_next(f))
        good = distribute_check_file(cache, id, f, err);
    return good;
}

/* Local. Whether all files of this rank are here, and those of no other rank. */
static bool distribute_is_in_place(const scr_cache *cache, const scr_dataset *dataset)
{
    kvtree_error err = {""};
    const kvtree_elem *r = scr_filemap_ranks_of(cache->map, dataset->id);
    return r && !kvtree_elem_next(r) && kvtree_elem_key_int(r) == cache->job->rank &&
           distribute_check_rank(cache, dataset, cache->job->rank, &err) == 1;
}

bool scr_distribute_is_done(scr_cache *cache, const scr_dataset *dataset)
{
    return scr_job_min(cache->job, distribute_is_in_place(cache, dataset));
}

static int64_t distribute_bytes(const scr_cache *cache, int id, int rank)
{
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(cache->map, id, rank));
    unsigned long size;
    int64_t sum = 0;
    for (; f; f = kvtree_elem_next(f))
        if (kvtree_util_get_bytecount(kvtree_elem_hash(f), SCR_META_SIZE, &size) == 0)
            sum += (int64_t)size;
    return sum;
}

/* The copies that this process holds. */
typedef struct distribute_held {
    int count;
    scr_distribute_copy *copies;
} distribute_held;

/* Local. 0, -errno, or 1 when a copy is not intact, with a text. */
static int distribute_inspect(const scr_cache *cache, const scr_dataset *dataset,
                              distribute_held *held, kvtree_error *err)
{
    int count, *ranks = NULL, lost = 0;
    int rc = scr_filemap_list_ranks_of(cache->map, dataset->id, &count, &ranks);
    if (!rc && !(held->copies = calloc((size_t)count + 1, sizeof *held->copies)))
        rc = -ENOMEM;
    for (int i = 0; !rc && i < count; i++) {
        kvtree_error why = {""};
        int good = distribute_check_rank(cache, dataset, ranks[i], &why);
        if (good < 0) rc = good;
        if (good == 0 && !lost++)
            err_set(err, 0, "node %s: %s", cache->job->node_name, why.text);
        held->copies[held->count++] =
            (scr_distribute_copy){.holder = cache->job->rank,
                                  .rank = ranks[i],
                                  .bytes = distribute_bytes(cache, dataset->id, ranks[i]),
                                  .intact = good > 0};
    }
    free(ranks);
    return rc ? err_sys(err, rc, "look at the files of dataset %d", dataset->id)
              : lost > 0;
}

/* Local. Files that are not intact stay where they are until the dataset leaves the
 * cache: another run may be able to use them. */
static void distribute_drop_damaged(scr_cache *cache, int id, distribute_held *held)
{
    int intact = 0;
    for (int i = 0; i < held->count; i++)
        if (held->copies[i].intact)
            held->copies[intact++] = held->copies[i];
        else
            scr_drop_files(cache, id, held->copies[i].rank, 0);
    held->count = intact;
}

/* Free bytes of the store, as this process sees it. */
static int64_t distribute_room(const scr_cache *cache, int id)
{
    struct statvfs fs;
    if (fstatvfs(scr_cache_of(cache, id)->fd, &fs) != 0) return 0;
    return (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
}

/* Collective. What each process reports: its node, room, and number of copies. */
static void distribute_share_ranks(const scr_cache *cache, int id, int held,
                                   scr_distribute_plan *p, int *sizes)
{
    scr_distribute_rank *own = &p->list[cache->job->rank];
    int node = cache->job->rank, size = held * (int)sizeof *p->copies;
    MPI_Bcast(&node, 1, MPI_INT, 0, cache->job->node);
    *own = (scr_distribute_rank){.node = node, .room = distribute_room(cache, id)};
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, p->list, sizeof *own, MPI_BYTE,
                  cache->job->world);
    MPI_Allgather(&size, 1, MPI_INT, sizes, 1, MPI_INT, cache->job->world);
}

/* Collective, agreed. All facts, on every rank. */
static int distribute_gather(const scr_cache *cache, int id, const distribute_held *held,
                             scr_distribute_plan *p, kvtree_error *err)
{
    const int ranks = p->ranks = cache->job->ranks;
    int total = 0, *sizes = calloc(2 * (size_t)ranks, sizeof *sizes);
    p->list = calloc((size_t)ranks, sizeof *p->list);
    int rc = sizes && p->list ? 0 : err_set(err, -ENOMEM, "no memory");
    rc = agree(cache->job->world, rc, err);
    if (!rc) {
        distribute_share_ranks(cache, id, held->count, p, sizes);
        for (int i = 0; i < ranks; total += sizes[i++])
            sizes[ranks + i] = total;
        p->count = total / (int)sizeof *p->copies;
        p->copies = calloc((size_t)p->count + 1, sizeof *p->copies);
        if (!p->copies) rc = err_set(err, -ENOMEM, "no memory");
        rc = agree(cache->job->world, rc, err);
    }
    if (!rc)
        MPI_Allgatherv(held->copies, sizes[cache->job->rank], MPI_BYTE, p->copies, sizes,
                       sizes + ranks, MPI_BYTE, cache->job->world);
    free(sizes);
    return rc;
}

/* ---- moves ---- */

/* Collective. Whether files for this rank could not be moved. */
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
        if (p->is_short_of_room) MPI_Barrier(cache->job->world);
    }
    return failed;
}

/* Copies that no rank needed leave the map; their files stay. */
static void distribute_drop_unused(scr_cache *cache, int id, const distribute_held *held,
                                   const scr_distribute_plan *p)
{
    const int own = cache->job->rank;
    for (int i = 0; i < held->count; i++) {
        int rank = held->copies[i].rank;
        if (rank != own && p->list[rank].source != own)
            scr_drop_files(cache, id, rank, 0);
    }
}

/* Collective, agreed. The copies that this process holds and that are intact. */
static int distribute_find_copies(scr_cache *cache, const scr_dataset *dataset,
                                  distribute_held *held, kvtree_error *err)
{
    int rc = distribute_inspect(cache, dataset, held, err);
    rc = agree(cache->job->world, rc, err);
    if (rc < 0) return rc;
    distribute_drop_damaged(cache, dataset->id, held);
    if (rc > 0)
        scr_say(cache->job->report, SCR_MSG_CACHE_FILES_LOST,
                "dataset %d (%.200s): files count as lost %s", dataset->id, dataset->name,
                err->text);
    err->text[0] = 0;
    return 0;
}

int scr_distribute(scr_cache *cache, const scr_dataset *dataset, scr_moved *moved,
                   kvtree_error *err)
{
    const int id = dataset->id;
    distribute_held held = {0, NULL};
    scr_distribute_plan plan = {.ranks = 0};
    int rc = distribute_find_copies(cache, dataset, &held, err);
    rc = rc ? rc : distribute_gather(cache, id, &held, &plan, err);
    if (!rc) {
        scr_plan_distribute(&plan);
        moved->failed = distribute_execute(cache, dataset, &plan);
        distribute_drop_unused(cache, id, &held, &plan);
        if (plan.list[cache->job->rank].round >= 0)
            scr_cached_sums(cache, id, moved->sums);
    }
    free(held.copies);
    free(plan.list);
    free(plan.copies);
    return rc;
}
