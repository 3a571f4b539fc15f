/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of ranks' files that the processes hold; see cache/copies.h. */
#include "cache/copies.h"

#include "base/transient.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Whether a file is in our cache directory with its size: 1, 0 with a text, or -errno if
 * that cannot be determined now. */
static int copies_check_file(const scr_cache *cache, int id, const kvtree_elem *file,
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
    if (!S_ISREG(st.st_mode)) return err_set(err, 0, "%s is not a regular file", name);
    if (kvtree_util_get_bytecount(kvtree_elem_hash(file), SCR_META_SIZE, &size) != 0)
        return err_set(err, 0, "%s has no size on record", name);
    if ((unsigned long)st.st_size == size) return 1;
    return err_set(err, 0, "%s has %lld bytes, not %lu", name, (long long)st.st_size,
                   size);
}

int scr_copies_check_rank(const scr_cache *cache, const scr_dataset *dataset, int rank,
                          kvtree_error *err)
{
    const int id = dataset->id;
    const kvtree *files = scr_filemap_files(cache->map, id, rank);
    const kvtree_elem *f = kvtree_elem_first(files);
    int good = 1;
    if (!scr_dataset_is_same(scr_filemap_get_dataset(cache->map, id, rank), dataset) ||
        rank >= dataset->ranks)
        return err_set(err, 0, "they are of another dataset of that id");
    if (scr_filemap_expected(cache->map, id, rank) != kvtree_size(files))
        return err_set(err, 0, "not all of them are on record");
    for (; f && good > 0; f = kvtree_elem_next(f))
        good = copies_check_file(cache, id, f, err);
    return good;
}

static int64_t copies_bytes(const scr_cache *cache, int id, int rank)
{
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(cache->map, id, rank));
    unsigned long size;
    int64_t sum = 0;
    for (; f; f = kvtree_elem_next(f))
        if (kvtree_util_get_bytecount(kvtree_elem_hash(f), SCR_META_SIZE, &size) == 0)
            sum += (int64_t)size;
    return sum;
}

/* Local. Inspects all copies. 0, -errno, or 1 with a text if a copy is not intact. */
static int copies_inspect(const scr_cache *cache, const scr_dataset *dataset,
                          scr_held *held, kvtree_error *err)
{
    int count, *ranks = NULL, lost = 0;
    int rc = scr_filemap_list_ranks_of(cache->map, dataset->id, &count, &ranks);
    if (!rc && !(held->copies = calloc((size_t)count + 1, sizeof *held->copies)))
        rc = -ENOMEM;
    for (int i = 0; !rc && i < count; i++) {
        kvtree_error why = {""};
        int good = scr_copies_check_rank(cache, dataset, ranks[i], &why);
        if (good < 0) rc = good;
        if (good == 0 && !lost++)
            err_set(err, 0, "node %s: %s", cache->job->node_name, why.text);
        held->copies[held->count++] =
            (scr_distribute_copy){.holder = cache->job->rank,
                                  .rank = ranks[i],
                                  .bytes = copies_bytes(cache, dataset->id, ranks[i]),
                                  .intact = good > 0};
    }
    free(ranks);
    return rc ? err_sys(err, rc, "look at the files of dataset %d", dataset->id)
              : lost > 0;
}

/* Local. Drops copies that are not intact from the list and the map. Their files stay
 * until the dataset leaves the cache: another run may be able to use them. */
static void copies_drop_damaged(scr_cache *cache, int id, scr_held *held)
{
    int intact = 0;
    for (int i = 0; i < held->count; i++)
        if (held->copies[i].intact)
            held->copies[intact++] = held->copies[i];
        else
            scr_drop_files(cache, id, held->copies[i].rank, 0);
    held->count = intact;
}

int scr_copies_find(scr_cache *cache, const scr_dataset *dataset, scr_held *held,
                    kvtree_error *err)
{
    int rc = copies_inspect(cache, dataset, held, err);
    rc = agree(cache->job->world, rc, err);
    if (rc < 0) return rc;
    copies_drop_damaged(cache, dataset->id, held);
    if (rc > 0)
        scr_say(cache->job->report, SCR_MSG_CACHE_FILES_LOST,
                "dataset %d (%.200s): files count as lost: %s", dataset->id,
                dataset->name, err->text);
    err->text[0] = 0;
    return 0;
}

int scr_copies_share(const scr_cache *cache, const scr_held *held, scr_held *all,
                     kvtree_error *err)
{
    void *copies;
    int rc = scr_job_collect(cache->job, sizeof *all->copies, held->count, held->copies,
                             &all->count, &copies);
    all->copies = copies;
    return rc ? err_set(err, rc, "no memory") : 0;
}
