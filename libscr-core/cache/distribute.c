/* SPDX-License-Identifier: BSD-3-Clause */
/* Distributing a cached dataset: after a restart a rank may run on another node than the
 * one that holds its files. Holders of complete sets of files offer them, each rank
 * chooses one holder, and the files travel in rounds in which a process sends to one rank
 * at most (SCR Developer Guide 1.2, 2.26.8). */
#include "cache/cache.h"

#include "base/transient.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

struct plan {
    int source;          /* rank that will send us our files, ourselves, or -1 */
    int round;           /* in which round */
    unsigned long bytes; /* that come */
    int wanted_count;
    struct want {
        int rank, turn; /* that we send to, one per round; its number on its node */
    } * wanted;
};

/* ---- files on this side ---- */

static const char *name_of(const scr_cache *cache, int id, const kvtree_elem *file)
{
    return scr_filemap_name_of(kvtree_elem_key(file), cache->job->owner, id);
}

/* 1 when a file is here with its size, in our cache folder, 0 with a text if not; -errno
 * where that cannot be told just now. */
static int is_there(scr_cache *cache, int id, const kvtree_elem *file, char *err)
{
    char path[SCR_CACHED_NAME_SIZE];
    const char *name = name_of(cache, id, file);
    struct stat st;
    unsigned long size;
    scr_cached_name(id, name, path);
    int rc = beneath_stat(scr_cache_of(cache, id)->fd, path, &st, NULL);
    if (rc && scr_is_transient(rc)) return rc;
    if (rc) return err_set(err, 0, "%s is not there", name);
    if (!S_ISREG(st.st_mode)) return err_set(err, 0, "%s is no regular file", name);
    if (kvtree_util_get_bytecount(kvtree_elem_hash(file), SCR_META_SIZE, &size) != 0)
        return err_set(err, 0, "%s has no size on record", name);
    if ((unsigned long)st.st_size == size) return 1;
    return err_set(err, 0, "%s has %lld bytes, not %lu", name, (long long)st.st_size,
                   size);
}

/* The same for all files of rank. */
static int is_whole(scr_cache *cache, int id, int rank, char *err)
{
    const kvtree *files = scr_filemap_files(cache->map, id, rank);
    const kvtree_elem *f = kvtree_elem_first(files);
    int whole = 1;
    if (scr_filemap_expected(cache->map, id, rank) != kvtree_size(files))
        return err_set(err, 0, "not all of them are on record");
    for (; f && whole > 0; f = kvtree_elem_next(f))
        whole = is_there(cache, id, f, err);
    return whole;
}

void scr_drop_files(scr_cache *cache, int id, int rank, int delete)
{
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(cache->map, id, rank));
    for (; delete &&f; f = kvtree_elem_next(f)) {
        char path[SCR_CACHED_NAME_SIZE];
        scr_cached_name(id, name_of(cache, id, f), path);
        beneath_unlink(scr_cache_of(cache, id)->fd, path, NULL);
    }
    scr_filemap_remove_rank(cache->map, id, rank);
}

/* 1 for whole files of this very dataset, 0 with a text, or -errno where that cannot be
 * told just now. */
static int is_good(scr_cache *cache, const scr_dataset *dataset, int rank, char *err)
{
    const kvtree *tree = scr_filemap_get_dataset(cache->map, dataset->id, rank);
    if (!scr_dataset_is_same(tree, dataset) || rank >= cache->job->ranks)
        return err_set(err, 0, "they are of another dataset of that id");
    return is_whole(cache, dataset->id, rank, err);
}

/* Local. 1 when all files of this rank are here, and those of no other rank. */
static int is_in_place(scr_cache *cache, const scr_dataset *dataset)
{
    char err[SCR_ERR_TEXT] = "";
    int count = 0, *ranks = NULL;
    int good = scr_filemap_list_ranks_of(cache->map, dataset->id, &count, &ranks) == 0 &&
               count == 1 && ranks[0] == cache->job->rank &&
               is_good(cache, dataset, cache->job->rank, err) == 1;
    free(ranks);
    return good;
}

bool scr_distribute_is_done(scr_cache *cache, const scr_dataset *dataset)
{
    int done = is_in_place(cache, dataset);
    MPI_Allreduce(MPI_IN_PLACE, &done, 1, MPI_INT, MPI_MIN, cache->job->world);
    return done;
}

/* Local. Forgets what is not good, and counts the rest. Files stay where they are until
 * the dataset leaves the cache: nobody knows what they are good for. 0, -errno, or 1 if
 * something was forgotten, with a text. */
static int drop_bad(scr_cache *cache, const scr_dataset *dataset, int *count, int **ranks,
                    char *err)
{
    int all, kept = 0, lost = 0;
    int rc = scr_filemap_list_ranks_of(cache->map, dataset->id, &all, ranks);
    for (int i = 0; !rc && i < all; i++) {
        char why[SCR_ERR_TEXT] = "";
        int rank = (*ranks)[i], good = is_good(cache, dataset, rank, why);
        if (good < 0) rc = good;
        if (good > 0) (*ranks)[kept++] = rank;
        if (good) continue;
        if (!lost) err_set(err, 0, "node %s: %s", cache->job->node_name, why);
        lost = 1;
        scr_drop_files(cache, dataset->id, rank, 0);
    }
    *count = kept;
    return rc ? err_sys(err, rc, "look at the files of dataset %d", dataset->id) : lost;
}

/* ---- who sends to whom ---- */

static int put(kvtree *send, int rank, const char *key, int value)
{
    char to[16];
    snprintf(to, sizeof to, "%d", rank);
    kvtree *tree = kvtree_set(send, to, NULL);
    return tree ? kvtree_util_set_int(tree, key, value) : -ENOMEM;
}

static unsigned long bytes_of(const scr_cache *cache, int id, int rank)
{
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(cache->map, id, rank));
    unsigned long size, sum = 0;
    for (; f; f = kvtree_elem_next(f))
        if (kvtree_util_get_bytecount(kvtree_elem_hash(f), SCR_META_SIZE, &size) == 0)
            sum += size;
    return sum;
}

static int put_offer(const scr_cache *cache, int id, int rank, kvtree *send)
{
    char to[16];
    snprintf(to, sizeof to, "%d", rank);
    kvtree *tree = kvtree_set(send, to, NULL);
    return tree ? kvtree_util_set_bytecount(tree, "BYTES", bytes_of(cache, id, rank))
                : -ENOMEM;
}

/* Our own files, if we have them, else those of the first holder. */
static void choose_source(const scr_cache *cache, kvtree *offers, struct plan *plan)
{
    char self[16];
    snprintf(self, sizeof self, "%d", cache->job->rank);
    kvtree_sort_int(offers, KVTREE_SORT_ASCENDING);
    const kvtree_elem *e = kvtree_elem_get(offers, self);
    if (!e) e = kvtree_elem_first(offers);
    if (!e) return;
    plan->source = kvtree_elem_key_int(e);
    if (plan->source != cache->job->rank)
        kvtree_util_get_bytecount(kvtree_elem_hash(e), "BYTES", &plan->bytes);
}

/* Those that want files from us, each with its round. */
static int take_answers(kvtree *answers, kvtree *round, struct plan *plan)
{
    kvtree_sort_int(answers, KVTREE_SORT_ASCENDING);
    const kvtree_elem *e = kvtree_elem_first(answers);
    int rc = 0;
    plan->wanted = calloc((size_t)kvtree_size(answers) + 1, sizeof *plan->wanted);
    if (!plan->wanted) return -ENOMEM;
    for (; !rc && e; e = kvtree_elem_next(e)) {
        struct want *want = &plan->wanted[plan->wanted_count];
        want->rank = kvtree_elem_key_int(e);
        rc = kvtree_util_get_int(kvtree_elem_hash(e), "TURN", &want->turn);
        rc = rc ? rc : put(round, want->rank, "ROUND", plan->wanted_count++);
    }
    return rc;
}

/* Offers, answers and rounds: three sparse exchanges. */
static int make_plan(scr_cache *cache, int id, const int *ranks, int count,
                     struct plan *plan)
{
    kvtree *offer = kvtree_new(), *offers = kvtree_new(), *answer = kvtree_new(),
           *answers = kvtree_new(), *round = kvtree_new(), *rounds = kvtree_new();
    /* what is received into no tree is dropped: an answer would be missed */
    int rc = offer && offers && answer && answers && round && rounds ? 0 : -ENOMEM;
    for (int i = 0; !rc && i < count; i++)
        rc = put_offer(cache, id, ranks[i], offer);
    int failed = kvtree_exchange(offer, offers, cache->job->world);
    choose_source(cache, offers, plan);
    if (!rc && plan->source >= 0 && plan->source != cache->job->rank)
        rc = put(answer, plan->source, "TURN", cache->job->node_rank);
    failed = failed ? failed : kvtree_exchange(answer, answers, cache->job->world);
    int taken = take_answers(answers, round, plan);
    rc = rc ? rc : taken;
    failed = failed ? failed : kvtree_exchange(round, rounds, cache->job->world);
    const kvtree_elem *e = kvtree_elem_first(rounds);
    if (e) kvtree_util_get_int(kvtree_elem_hash(e), "ROUND", &plan->round);
    kvtree *all[] = {offer, offers, answer, answers, round, rounds};
    for (int i = 0; i < 6; i++)
        kvtree_delete(&all[i]);
    return rc ? rc : failed;
}

/* ---- moving ---- */

/* Whether the node has no room for all that comes, before what goes is gone. */
static int is_short(const scr_cache *cache, int id, unsigned long bytes)
{
    struct statvfs fs;
    MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_UNSIGNED_LONG, MPI_SUM, cache->job->node);
    return fstatvfs(scr_cache_of(cache, id)->fd, &fs) == 0 &&
           bytes > (unsigned long)fs.f_bavail * fs.f_frsize;
}

/* Where a node is short of room, its processes take turns: then there is one rank's set
 * of files more than in the end, and the senders let go of theirs one after the other. */
static int move_all(scr_cache *cache, const scr_dataset *dataset, const struct plan *plan)
{
    int failed = 0;
    int most[] = {plan->wanted_count, is_short(cache, dataset->id, plan->bytes),
                  cache->job->node_ranks};
    MPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_INT, MPI_MAX, cache->job->world);
    for (int k = 0; k < most[0]; k++) {
        for (int turn = 0; turn < (most[1] ? most[2] : 1); turn++) {
            int to = MPI_PROC_NULL, from = MPI_PROC_NULL;
            if (k < plan->wanted_count && (!most[1] || plan->wanted[k].turn == turn))
                to = plan->wanted[k].rank;
            if (k == plan->round && (!most[1] || cache->job->node_rank == turn))
                from = plan->source;
            if (to != MPI_PROC_NULL || from != MPI_PROC_NULL)
                failed |= scr_move_files(cache, dataset, to, from) != 0;
            if (most[1]) MPI_Barrier(cache->job->world); /* the senders have let go */
        }
    }
    return failed;
}

/* Copies that nobody wanted: the files stay. */
static void drop_rest(scr_cache *cache, int id, const struct plan *plan, int count,
                      const int *ranks)
{
    for (int i = 0; i < count; i++) {
        int sent = 0;
        for (int k = 0; k < plan->wanted_count; k++)
            sent = sent || plan->wanted[k].rank == ranks[i];
        if (ranks[i] != cache->job->rank && !sent) scr_drop_files(cache, id, ranks[i], 0);
    }
}

int scr_distribute(scr_cache *cache, const scr_dataset *dataset, scr_moved *moved,
                   char *err)
{
    struct plan plan = {.source = -1, .round = -1};
    int count = 0, *ranks = NULL;
    int rc = drop_bad(cache, dataset, &count, &ranks, err);
    int planned = make_plan(cache, dataset->id, ranks, rc < 0 ? 0 : count, &plan);
    if (rc >= 0 && planned)
        rc = err_sys(err, planned, "distribute dataset %d", dataset->id);
    rc = agree(cache->job->world, rc, err);
    if (rc > 0) {
        scr_say(cache->job->report, 0,
                "warning: dataset %d (%.200s): files count as lost %s", dataset->id,
                dataset->name, err);
        rc = 0;
        err[0] = 0;
    }
    if (!rc) {
        moved->failed = move_all(cache, dataset, &plan);
        drop_rest(cache, dataset->id, &plan, count, ranks);
        if (plan.source >= 0 && plan.source != cache->job->rank)
            scr_cached_sums(cache, dataset->id, moved->sums);
    }
    free(ranks);
    free(plan.wanted);
    return rc;
}
