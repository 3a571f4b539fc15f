/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies one node's part of a dataset; see copy.h. */
#include "scavenge/copy.h"

#include "common/beneath.h"
#include "common/io.h"
#include "lib/tool_progress.h"
#include "scavenge/index_entry.h"
#include "scavenge/parallel_for.h"
#include <axl/axl.h>
#include <errno.h>
#include <filo/filo.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct copy_task {
    const scavenge_node *node;
    const scavenge_wish *wish;
    const int *ranks;
    int target;     /* the open staging directory */
    bool has_group; /* the group for which group permissions in the cache are meant is
                     * known */
    gid_t group;
    pthread_mutex_t mutex;
    scavenge_copied *copied;
    _Atomic uint64_t *done; /* bytes, of ... */
    uint64_t total;         /* ... this total */
} copy_task;

/* One file, with its bytes as last reported. */
typedef struct copy_share {
    const copy_task *task;
    uint64_t done;
} copy_share;

/* ---- one rank ---- */

static bool copy_is_wanted(const scavenge_wish *wish, const scavenge_file *f)
{
    redset_place place;
    if (!f->redundancy) return wish->files;
    if (!wish->redundancy || redset_file_name_parse(f->name, &place) != 0) return false;
    for (int i = 0; wish->sets && i < wish->set_count; i++)
        if (wish->sets[i] == place.id) return true;
    return !wish->sets;
}

static void copy_report(void *arg, uint64_t done, uint64_t total)
{
    copy_share *s = arg;
    (void)total;
    *s->task->done += done - s->done;
    s->done = done;
    tool_progress_set(*s->task->done, s->task->total);
}

static int copy_part_file(const copy_task *t, int source, const scavenge_file *f,
                          kvtree_error *err)
{
    char target[BENEATH_NAME_MAX + sizeof SCAVENGE_HIDDEN];
    const filo_file file = {.name = (char *)(uintptr_t)f->name,
                            .size = f->size,
                            .crc = f->crc,
                            .has_crc = f->has_crc};
    snprintf(target, sizeof target, "%s%s", f->redundancy ? SCAVENGE_HIDDEN "/" : "",
             f->name);
    const filo_target to = {.dir = t->target,
                            .name = target,
                            .replace = 1,
                            .has_group = t->has_group,
                            .group = t->group};
    copy_share share = {.task = t};
    int rc = filo_extract_with(source, &file, &to, copy_report, &share, err);
    copy_report(&share, f->size, f->size);
    if (rc == 0 || rc == FILO_THERE) return 0;
    return err_wrap(err, rc > 0 ? -EBADMSG : rc, "%s", f->name);
}

static int copy_part_files(const copy_task *t, const scavenge_part *part,
                           scavenge_copied *sums, kvtree_error *err)
{
    int source, rc = scavenge_part_open(part, &source, err);
    if (rc) return rc;
    for (int i = 0; i < part->rank->count && !rc; i++) {
        const scavenge_file *f = &part->rank->files[i];
        if (!copy_is_wanted(t->wish, f)) continue;
        rc = copy_part_file(t, source, f, err);
        sums->files++;
        sums->bytes += f->size;
    }
    io_close(&source);
    return rc;
}

/* Ends the process that copies for an interrupted flush of the rank. If that fails, the
 * process continues. */
static void copy_stop_transfer(const copy_task *t, int rank)
{
    char state[PATH_MAX];
    axl_transfer *transfer;
    int n = snprintf(state, sizeof state, "%s/transfer_%d.scrinfo", t->node->path, rank);
    if (n >= (int)sizeof state || axl_resume(state, "daemon", &transfer, NULL) != 0)
        return;
    axl_cancel(transfer, NULL);
    axl_free(transfer);
}

static int copy_rank(const copy_task *t, int rank, scavenge_copied *sums,
                     kvtree_error *err)
{
    scavenge_part part;
    int rc = scavenge_part_find(t->node, t->wish->dset, rank, &part, err);
    if (rc) return rc;
    if (part.dataset.created == t->copied->dataset.created) {
        rc = copy_part_files(t, &part, sums, err);
        if (!rc && t->wish->stop) copy_stop_transfer(t, rank);
        /* last, because the filemap guarantees that the files exist */
        if (!rc && t->wish->files)
            rc = scavenge_rank_write(t->target, part.rank, &part.dataset, err);
        if (rc) err_wrap(err, rc, "rank %d", rank);
    }
    scavenge_part_done(&part);
    return rc;
}

static void copy_add_rank(void *arg, int i)
{
    copy_task *t = arg;
    kvtree_error err = {""};
    scavenge_copied sums = {.files = 0}, *c = t->copied;
    int rc = copy_rank(t, t->ranks[i], &sums, &err);
    pthread_mutex_lock(&t->mutex);
    if (!rc) {
        c->ranks += sums.files > 0;
        c->files += sums.files;
        c->bytes += sums.bytes;
    } else if (c->failed++ == 0) {
        c->code = rc;
        c->why = err;
    }
    pthread_mutex_unlock(&t->mutex);
}

/* ---- all ranks ---- */

static uint64_t copy_measure(const copy_task *t, int count)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) {
        scavenge_part part;
        if (scavenge_part_find(t->node, t->wish->dset, t->ranks[i], &part, NULL) != 0)
            continue;
        for (int k = 0; k < part.rank->count; k++)
            if (copy_is_wanted(t->wish, &part.rank->files[k]))
                bytes += part.rank->files[k].size;
        scavenge_part_done(&part);
    }
    return bytes;
}

static int copy_find_dataset(const copy_task *t, int prefix, scr_dataset *d,
                             kvtree_error *err)
{
    const scavenge_wish *wish = t->wish;
    int rc = scavenge_node_newest(t->node, wish->dset, d);
    if (rc == -ENOENT || (!rc && wish->created && d->created != wish->created))
        return err_set(err, -ENOENT, "the cache has no dataset %d", wish->dset);
    if (rc) return err_set(err, rc, "no memory");
    if (d->bypass)
        return err_set(err, -ENOENT, "dataset %d bypassed the cache", wish->dset);
    if (d->borrowed)
        return err_set(err, -ENOENT,
                       "dataset %d was fetched where others can change its names, and is "
                       "not saved again",
                       wish->dset);
    rc = scavenge_check_index(prefix, d, err);
    /* files are saved even without an index */
    return rc == -ENOENT || rc == -EBADMSG ? 0 : rc;
}

/* Creates the staging directory durably. */
static int copy_open_target(int prefix, const scr_dataset *d, int *target,
                            kvtree_error *err)
{
    char folder[SCAVENGE_FOLDER_SIZE], hidden[SCAVENGE_FOLDER_SIZE + 8];
    const scavenge_key key = scavenge_key_of(d);
    scavenge_folder_of(&key, folder);
    snprintf(hidden, sizeof hidden, "%s/" SCAVENGE_HIDDEN, folder);
    int rc = beneath_make_durable(prefix, hidden, 0777, err);
    return rc ? rc : beneath_open_below(prefix, folder, target, err);
}

int scavenge_copy(const scavenge_node *node, int prefix, const scavenge_wish *wish,
                  scavenge_copied *copied, kvtree_error *err)
{
    int count = 0, *ranks = NULL;
    _Atomic uint64_t done = 0;
    copy_task t = {
        .node = node, .wish = wish, .target = -1, .copied = copied, .done = &done};
    memset(copied, 0, sizeof *copied);
    t.has_group = beneath_has_group(prefix, &t.group);
    int rc = copy_find_dataset(&t, prefix, &copied->dataset, err);
    if (!rc) rc = copy_open_target(prefix, &copied->dataset, &t.target, err);
    if (!rc && scr_filemap_list_ranks_of(node->map, wish->dset, &count, &ranks) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    if (!rc) {
        pthread_mutex_init(&t.mutex, NULL);
        t.ranks = ranks;
        t.total = copy_measure(&t, count);
        scavenge_parallel_for(count, wish->width, copy_add_rank, &t);
        pthread_mutex_destroy(&t.mutex);
    }
    free(ranks);
    io_close(&t.target);
    return rc;
}
