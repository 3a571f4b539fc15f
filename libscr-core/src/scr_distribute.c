/* SPDX-License-Identifier: BSD-3-Clause */
/* Distributing a cached dataset: after a restart a rank may run on another node than the
 * one that holds its files. Holders of complete sets of files offer them, each rank
 * chooses one holder, and the files travel in rounds in which a process sends to one rank
 * at most (SCR Developer Guide 1.2, 2.26.8). */
#include "scr_context.h"

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

struct plan {
    int source;  /* rank that will send us our files, ourselves, or -1 */
    int round;   /* in which round */
    int *wanted; /* ranks that we send to, one per round */
    int wanted_count;
};

/* ---- files on this side ---- */

static const char *name_of(const struct scr *scr, int id, const kvtree_elem *file)
{
    return scr_filemap_name_of(kvtree_elem_key(file), scr->owner, id);
}

/* 1 when all files of rank are here with their sizes, in our cache folder. */
static int is_whole(struct scr *scr, int id, int rank)
{
    const kvtree *files = scr_filemap_files(scr->map, id, rank);
    const kvtree_elem *f;
    if (scr_filemap_expected(scr->map, id, rank) != kvtree_size(files)) return 0;
    for (f = kvtree_elem_first(files); f; f = kvtree_elem_next(f)) {
        char path[SCR_CACHED_NAME_SIZE];
        struct stat st;
        unsigned long size;
        scr_cached_name(id, name_of(scr, id, f), path);
        if (kvtree_util_get_bytecount(kvtree_elem_hash(f), SCR_META_SIZE, &size) != 0 ||
            beneath_stat(scr->cache_fd, path, &st, NULL) != 0 || !S_ISREG(st.st_mode) ||
            (unsigned long)st.st_size != size)
            return 0;
    }
    return 1;
}

void scr_drop_files(struct scr *scr, int id, int rank, int delete)
{
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(scr->map, id, rank));
    for (; delete &&f; f = kvtree_elem_next(f)) {
        char path[SCR_CACHED_NAME_SIZE];
        scr_cached_name(id, name_of(scr, id, f), path);
        beneath_unlink(scr->cache_fd, path, NULL);
    }
    scr_filemap_remove_rank(scr->map, id, rank);
}

/* Drops what is not of this very dataset (another one had its id before) or not whole;
 * counts the rest. */
static int drop_bad(struct scr *scr, const scr_dataset *dataset, int *count, int **ranks)
{
    int all, kept = 0;
    int rc = scr_filemap_list_ranks_of(scr->map, dataset->id, &all, ranks);
    for (int i = 0; !rc && i < all; i++) {
        scr_dataset d;
        int rank = (*ranks)[i];
        const kvtree *tree = scr_filemap_get_dataset(scr->map, dataset->id, rank);
        int same = scr_dataset_from_tree(tree, &d, NULL) == 0 &&
                   d.created == dataset->created && d.ranks == dataset->ranks &&
                   strcmp(d.name, dataset->name) == 0;
        if (same && rank < scr->ranks && is_whole(scr, dataset->id, rank))
            (*ranks)[kept++] = rank;
        else
            scr_drop_files(scr, dataset->id, rank, 1);
    }
    *count = kept;
    return rc;
}

/* ---- who sends to whom ---- */

static int put(kvtree *send, int rank, const char *key, int value)
{
    char to[16];
    snprintf(to, sizeof to, "%d", rank);
    kvtree *tree = kvtree_set(send, to, NULL);
    return tree ? kvtree_util_set_int(tree, key, value) : -ENOMEM;
}

/* Offers, answers and rounds: three sparse exchanges. */
static int make_plan(struct scr *scr, const int *ranks, int count, struct plan *plan)
{
    kvtree *offer = kvtree_new(), *offers = kvtree_new(), *answer = kvtree_new(),
           *answers = kvtree_new(), *round = kvtree_new(), *rounds = kvtree_new();
    const kvtree_elem *e;
    /* what is received into no tree is dropped: an answer would be missed */
    int rc = offer && offers && answer && answers && round && rounds ? 0 : -ENOMEM;
    for (int i = 0; !rc && i < count; i++)
        rc = put(offer, ranks[i], "OFFER", 1);
    int failed = kvtree_exchange(offer, offers, scr->world);
    kvtree_sort_int(offers, KVTREE_SORT_ASCENDING);
    char self[16];
    snprintf(self, sizeof self, "%d", scr->rank);
    e = kvtree_elem_get(offers, self);
    if (!e) e = kvtree_elem_first(offers);
    if (e) plan->source = kvtree_elem_key_int(e);
    if (!rc && plan->source >= 0 && plan->source != scr->rank)
        rc = put(answer, plan->source, "WANT", 1);
    failed = failed ? failed : kvtree_exchange(answer, answers, scr->world);
    kvtree_sort_int(answers, KVTREE_SORT_ASCENDING);
    plan->wanted = calloc((size_t)kvtree_size(answers) + 1, sizeof *plan->wanted);
    if (!plan->wanted) rc = -ENOMEM;
    for (e = kvtree_elem_first(answers); !rc && e; e = kvtree_elem_next(e)) {
        rc = put(round, kvtree_elem_key_int(e), "ROUND", plan->wanted_count);
        plan->wanted[plan->wanted_count++] = kvtree_elem_key_int(e);
    }
    failed = failed ? failed : kvtree_exchange(round, rounds, scr->world);
    e = kvtree_elem_first(rounds);
    if (e) kvtree_util_get_int(kvtree_elem_hash(e), "ROUND", &plan->round);
    kvtree *all[] = {offer, offers, answer, answers, round, rounds};
    for (int i = 0; i < 6; i++)
        kvtree_delete(&all[i]);
    return rc ? rc : failed;
}

int scr_distribute(struct scr *scr, const scr_dataset *dataset, unsigned long moved[2],
                   char *err)
{
    struct plan plan = {.source = -1, .round = -1};
    int count = 0, *ranks = NULL, rounds;
    int rc = drop_bad(scr, dataset, &count, &ranks);
    int planned = make_plan(scr, ranks, rc ? 0 : count, &plan);
    rc = rc ? rc : planned;
    if (rc) err_sys(err, rc, "distribute dataset %d", dataset->id);
    rc = agree(scr->world, rc, err);
    if (!rc) {
        MPI_Allreduce(&plan.wanted_count, &rounds, 1, MPI_INT, MPI_MAX, scr->world);
        for (int k = 0; k < rounds; k++) {
            int to = k < plan.wanted_count ? plan.wanted[k] : MPI_PROC_NULL;
            int from = k == plan.round ? plan.source : MPI_PROC_NULL;
            if (to != MPI_PROC_NULL || from != MPI_PROC_NULL)
                scr_move_files(scr, dataset, to, from);
        }
        /* copies that nobody wanted */
        for (int i = 0; i < count; i++) {
            int sent = 0;
            for (int k = 0; k < plan.wanted_count; k++)
                sent = sent || plan.wanted[k] == ranks[i];
            if (ranks[i] != scr->rank && !sent)
                scr_drop_files(scr, dataset->id, ranks[i], 1);
        }
        if (plan.source >= 0 && plan.source != scr->rank)
            scr_cached_sums(scr, dataset->id, moved);
        rc = scr_map_write(scr, err);
        rc = agree(scr->world, rc, err);
    }
    free(ranks);
    free(plan.wanted);
    return rc;
}
