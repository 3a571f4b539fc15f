/* SPDX-License-Identifier: BSD-3-Clause */
/* One node's part of a dataset; see copy.h. */
#include "scavenge/copy.h"

#include "common/beneath.h"
#include "common/io.h"
#include "scavenge/enter.h"
#include "scavenge/settle.h"
#include "scavenge/side.h"
#include <axl/axl.h>
#include <errno.h>
#include <filo/filo.h>
#include <limits.h>
#include <pthread.h>
#include <redset/redset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct task {
    const scavenge_node *node;
    const scavenge_wish *wish;
    const int *ranks;
    int target; /* the folder to which the dataset is saved, open */
    pthread_mutex_t mutex;
    scavenge_copied *copied;
} task;

/* ---- which ---- */

int scavenge_newest(const scavenge_node *node, int dset, scr_dataset *dataset)
{
    int count = 0, *ranks = NULL, found = 0;
    if (scr_filemap_list_ranks_of(node->map, dset, &count, &ranks) != 0) return -ENOMEM;
    for (int i = 0; i < count; i++) {
        scr_dataset d;
        const kvtree *tree = scr_filemap_get_dataset(node->map, dset, ranks[i]);
        if (scr_dataset_from_tree(tree, &d, NULL) != 0 || d.id != dset || !d.complete)
            continue;
        if (found && d.created <= dataset->created) continue;
        *dataset = d;
        found = 1;
    }
    free(ranks);
    return found ? 0 : -ENOENT;
}

static int is_wanted_set(const scavenge_wish *wish, const char *name)
{
    redset_place place;
    if (redset_file_name_parse(name, &place) != 0) return 0;
    for (int i = 0; wish->sets && i < wish->set_count; i++)
        if (wish->sets[i] == place.id) return 1;
    return !wish->sets;
}

static int is_wanted(const scavenge_wish *wish, const scavenge_file *f)
{
    if (!f->redundancy) return wish->files;
    return wish->redundancy && is_wanted_set(wish, f->name);
}

/* ---- one rank ---- */

static int copy_file(const task *t, int source, const scavenge_file *f, char *err)
{
    char target[BENEATH_NAME_MAX + sizeof SCAVENGE_HIDDEN];
    const filo_file file = {.name = (char *)(uintptr_t)f->name,
                            .size = f->size,
                            .crc = f->crc,
                            .has_crc = f->has_crc};
    snprintf(target, sizeof target, "%s%s", f->redundancy ? SCAVENGE_HIDDEN "/" : "",
             f->name);
    const filo_target to = {.dir = t->target, .name = target, .replace = 1};
    int rc = filo_extract(source, &file, &to, err);
    if (rc == FILO_THERE) return 0;
    return rc > 0 ? -EBADMSG : rc;
}

typedef struct sums {
    int files;
    uint64_t bytes;
} sums;

static int copy_files(const task *t, const scavenge_part *part, sums *s, char *err)
{
    int source, rc = scavenge_part_open(part, &source, err);
    if (rc) return rc;
    for (int i = 0; i < part->rank->count && !rc; i++) {
        const scavenge_file *f = &part->rank->files[i];
        if (!is_wanted(t->wish, f)) continue;
        rc = copy_file(t, source, f, err);
        if (rc) err_wrap(err, rc, "%s", f->name);
        s->files++;
        s->bytes += f->size;
    }
    io_close(&source);
    return rc;
}

/* Nobody will finish the flush: the process that copies for the rank ends. Where that
 * fails it goes on. */
static void stop_transfer(const task *t, int rank)
{
    char state[PATH_MAX];
    axl_transfer *transfer;
    int n = snprintf(state, sizeof state, "%s/transfer_%d.scrinfo", t->node->path, rank);
    if (n < 0 || (size_t)n >= sizeof state ||
        axl_resume(state, "daemon", &transfer, NULL) != 0)
        return;
    axl_cancel(transfer, NULL);
    axl_free(transfer);
}

/* 1 when the rank has something of that dataset; 0 if it has not. */
static int copy_rank(const task *t, int rank, sums *s, char *err)
{
    scavenge_part part;
    int rc = scavenge_part_find(t->node, t->wish->dset, rank, &part, err);
    if (rc) return rc;
    if (part.dataset.created == t->copied->dataset.created) {
        rc = copy_files(t, &part, s, err);
        if (!rc && t->wish->stop) stop_transfer(t, rank);
        /* last: whoever sees it may rely on the files */
        if (!rc && t->wish->files)
            rc = scavenge_rank_write(t->target, part.rank, &part.dataset, err);
        rc = rc ? err_wrap(err, rc, "rank %d", rank) : s->files > 0;
    }
    scavenge_part_done(&part);
    return rc;
}

static void copy_one(void *arg, int i)
{
    task *t = arg;
    char err[ERRTEXT_SIZE] = "";
    sums s = {0, 0};
    scavenge_copied *c = t->copied;
    int rc = copy_rank(t, t->ranks[i], &s, err);
    pthread_mutex_lock(&t->mutex);
    if (rc < 0 && c->failed++ == 0) {
        c->code = rc;
        snprintf(c->why, sizeof c->why, "%s", err);
    }
    c->ranks += rc > 0;
    c->files += rc > 0 ? s.files : 0;
    c->bytes += rc > 0 ? s.bytes : 0;
    pthread_mutex_unlock(&t->mutex);
}

/* ---- all ---- */

static int find_dataset(const scavenge_node *node, const scavenge_wish *wish,
                        scr_dataset *d, char *err)
{
    int rc = scavenge_newest(node, wish->dset, d);
    if (!rc && wish->created && d->created != wish->created) rc = -ENOENT;
    if (rc == -ENOENT) return err_set(err, rc, "the cache has no dataset %d", wish->dset);
    if (rc) return err_set(err, rc, "no memory");
    return d->bypass ? err_set(err, -ENOENT, "dataset %d bypassed the cache", wish->dset)
                     : 0;
}

/* That the index was lost is no reason to lose more. */
static int check_index(int prefix, const scr_dataset *d, char *err)
{
    int rc = scavenge_check_index(prefix, d, err);
    return rc == -ENOENT || rc == -EBADMSG ? 0 : rc;
}

/* The folder to which it is saved, for good. */
static int open_target(int prefix, const scr_dataset *d, int *target, char *err)
{
    char folder[SCAVENGE_FOLDER_SIZE], hidden[SCAVENGE_FOLDER_SIZE + 8];
    const char *last;
    const scavenge_key key = scavenge_key_of(d);
    scavenge_folder_of(&key, folder);
    snprintf(hidden, sizeof hidden, "%s/" SCAVENGE_HIDDEN, folder);
    int rc = beneath_make_durable(prefix, hidden, 0777, err);
    return rc ? rc : beneath_open_parent(prefix, hidden, 0, target, &last, err);
}

int scavenge_copy(const scavenge_node *node, int prefix, const scavenge_wish *wish,
                  scavenge_copied *copied, char *err)
{
    int count = 0, *ranks = NULL;
    task t = {.node = node, .wish = wish, .target = -1, .copied = copied};
    memset(copied, 0, sizeof *copied);
    int rc = find_dataset(node, wish, &copied->dataset, err);
    rc = rc ? rc : check_index(prefix, &copied->dataset, err);
    rc = rc ? rc : open_target(prefix, &copied->dataset, &t.target, err);
    if (!rc && scr_filemap_list_ranks_of(node->map, wish->dset, &count, &ranks) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    if (!rc) {
        pthread_mutex_init(&t.mutex, NULL);
        t.ranks = ranks;
        scavenge_side_by_side(count, wish->width, copy_one, &t);
        pthread_mutex_destroy(&t.mutex);
    }
    free(ranks);
    io_close(&t.target);
    return rc;
}
