/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing the state file of a running transfer: workers write it between two pieces, at
 * most once a second, and less often if it is long. */
#include "src/axl_work.h"

#include <errno.h>
#include <zlib.h>

/* At most 1/SHARE of the time is spent on the state file. */
#define SHARE 20

/* Only bytes without a gap from the start count. */
uint64_t axl_copied(const axl_transfer *transfer, const axl_item *item, uint32_t *crc)
{
    uLong sum = item->begin_crc;
    uint64_t bytes = item->begin;
    for (size_t p = 0; p < item->pieces && item->moved[p]; p++) {
        uint64_t length = axl_piece_length(transfer, item, p);
        sum = crc32_combine(sum, item->crcs[p], (z_off_t)length);
        bytes += length;
    }
    *crc = (uint32_t)sum;
    return bytes;
}

/* ---- files that are not complete ---- */

enum { OPEN_MAX = 2 * AXL_WORKERS_MAX };

/* Bytes of a file that are copied, before they are synced. */
typedef struct copied {
    size_t item;
    uint64_t bytes;
    uint32_t crc;
} copied;

/* Finds items with copied bytes that are not synced. Pieces are taken in order, so that
 * no more files than workers are incomplete. A complete part may wait for others of its
 * holder. */
static int save_find_copied(axl_work *w, copied found[OPEN_MAX])
{
    int count = 0;
    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->transfer->count && i <= w->item && count < OPEN_MAX; i++) {
        const axl_item *item = &w->transfer->items[i];
        const bool waits = w->transfer->items[item->holder].last > item->holder;
        if (item->file.done || !item->made || (item->pieces < 2 && !waits)) continue;
        copied c = {.item = i};
        c.bytes = axl_copied(w->transfer, item, &c.crc);
        if (c.bytes > item->synced) found[count++] = c;
    }
    pthread_mutex_unlock(&w->lock);
    return count;
}

static int save_sync_copied(axl_worker *worker, axl_error *err)
{
    axl_work *w = worker->work;
    copied found[OPEN_MAX];
    int rc = 0, count = save_find_copied(w, found);
    const axl_item *items = w->transfer->items;
    for (int i = 0; i < count && !rc; i++) {
        if (i == 0 || items[found[i].item].holder != items[found[i - 1].item].holder)
            rc = axl_place_sync(w->transfer, found[i].item, &worker->folder, err);
        if (rc) break;
        pthread_mutex_lock(&w->lock);
        w->transfer->items[found[i].item].synced = found[i].bytes;
        w->transfer->items[found[i].item].synced_crc = found[i].crc;
        pthread_mutex_unlock(&w->lock);
    }
    return rc;
}

/* ---- the file ---- */

int axl_save(axl_work *work, const axl_news *news, axl_error *err)
{
    axl_transfer *t = work->transfer;
    kvtree *state;
    pthread_mutex_lock(&work->lock);
    int rc = axl_state_build(t, &state);
    axl_command command = work->command;
    pthread_mutex_unlock(&work->lock);
    if (rc) return err_sys(err, rc, "state file %s", t->state_path);
    rc = axl_state_write(t->state_path, state, news, &command, err);
    kvtree_delete(&state);
    if (rc) return rc;
    pthread_mutex_lock(&work->lock);
    work->command = command;
    if (command != AXL_COMMAND_RUN) work->stop = true;
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
    return 0;
}

/* Whether this worker must write the state file now. */
static bool save_is_due(axl_work *w, double now)
{
    pthread_mutex_lock(&w->lock);
    bool due = w->transfer->state_path && !w->saving && now >= w->next_save;
    if (due) w->saving = true;
    pthread_mutex_unlock(&w->lock);
    return due;
}

static int save_now(axl_worker *worker, axl_error *err)
{
    axl_work *w = worker->work;
    const axl_news news = {.follows = w->transfer->obeys, .running = true};
    int rc = save_sync_copied(worker, err);
    return rc ? rc : axl_save(w, &news, err);
}

void axl_save_sometimes(axl_worker *worker)
{
    axl_work *w = worker->work;
    axl_error err = {""};
    double start = axl_seconds(CLOCK_MONOTONIC);
    if (!save_is_due(w, start)) return;
    int rc = save_now(worker, &err);
    if (axl_worker_make_room(worker, rc)) rc = save_now(worker, &err);
    if (rc) axl_work_fail(w, rc, err.text);
    double now = axl_seconds(CLOCK_MONOTONIC), rest = SHARE * (now - start);
    double interval = w->transfer->interval;
    pthread_mutex_lock(&w->lock);
    w->saving = false;
    w->next_save = now + (interval > 0 && rest > interval ? rest : interval);
    pthread_mutex_unlock(&w->lock);
}
