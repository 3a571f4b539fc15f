/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers: each takes the next piece of the list, moves it, and takes another one. The
 * worker that moves the last piece of a file adds the file to its batch; the files of a
 * batch are renamed together. Consecutive parts with the same destination are written
 * through one descriptor, that of the first part (the holder), and synced together. The
 * first error ends the work; files that are complete by then are still renamed. */
#include "src/axl_work.h"

#include "common/beneath.h"
#include "common/crc32.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <zlib.h>

/* Maximum bytes of complete files in a batch. */
#define BATCH_BYTES ((uint64_t)64 << 20)

/* The files of a batch are open. The batches of all workers together may use one in
 * BATCHED_SHARE of the program's descriptors, of which there are usually 1024. */
enum { BATCHED_SHARE = 4 };

/* Most bytes that the kernel copies in one call without limits: the transfer can be
 * stopped only between two calls. */
#define KERNEL_STEP ((size_t)8 << 20)

typedef struct task {
    size_t item, piece;
} task;

/* ---- errors and cancellation ---- */

bool axl_work_is_over(const axl_work *work)
{
    return work->stop || work->rc;
}

void axl_work_fail(axl_work *w, int rc, const char *text)
{
    pthread_mutex_lock(&w->lock);
    if (!w->rc) {
        w->rc = rc;
        snprintf(w->err.text, sizeof w->err.text, "%s", text);
    }
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void axl_work_pause_until(axl_work *work, double when)
{
    struct timespec t = {.tv_sec = (time_t)when};
    t.tv_nsec = (long)(1e9 * (when - (double)t.tv_sec));
    while (!axl_work_is_over(work) &&
           pthread_cond_timedwait(&work->changed, &work->lock, &t) != ETIMEDOUT) {
    }
}

int axl_worker_pay(axl_worker *worker, uint64_t bytes)
{
    axl_work *w = worker->work;
    const bool counts = w->transfer->percent > 0; /* a system call */
    double cpu = counts ? axl_seconds(CLOCK_THREAD_CPUTIME_ID) : 0,
           now = axl_seconds(CLOCK_MONOTONIC);
    pthread_mutex_lock(&w->lock);
    w->bytes += bytes;
    axl_transfer_report(w->transfer, w->bytes);
    double wait = axl_throttle_pay(&w->throttle, now, bytes, cpu - worker->cpu);
    worker->cpu = cpu;
    if (wait > 0) axl_work_pause_until(w, now + wait);
    bool over = axl_work_is_over(w);
    pthread_mutex_unlock(&w->lock);
    return over ? -ECANCELED : 0;
}

void axl_worker_skip(axl_worker *worker, uint64_t bytes)
{
    axl_work *w = worker->work;
    pthread_mutex_lock(&w->lock);
    w->bytes += bytes;
    axl_transfer_report(w->transfer, w->bytes);
    pthread_mutex_unlock(&w->lock);
}

static bool work_is_cancelled(axl_work *w)
{
    pthread_mutex_lock(&w->lock);
    bool cancelled = w->cancelled;
    pthread_mutex_unlock(&w->lock);
    return cancelled;
}

/* ---- tasks ---- */

/* Takes the next task; false if none is left. The lock is held. */
static bool work_take(axl_work *w, task *next)
{
    axl_transfer *t = w->transfer;
    while (!axl_work_is_over(w) && w->item < t->count) {
        axl_item *item = &t->items[w->item];
        if (item->pieces == 0) { /* in place already */
            w->item++;
            continue;
        }
        const axl_item *holder = &t->items[item->holder];
        /* the workers of the first pieces open the destination */
        if ((w->piece > 0 && !item->open) || (item != holder && !holder->open)) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        *next = (task){w->item, w->piece};
        if (++w->piece == item->pieces) {
            w->item++;
            w->piece = 0;
        }
        return true;
    }
    return false;
}

static bool work_take_task(axl_work *w, task *next)
{
    pthread_mutex_lock(&w->lock);
    bool taken = work_take(w, next);
    pthread_mutex_unlock(&w->lock);
    return taken;
}

uint64_t axl_piece_length(const axl_transfer *transfer, const axl_item *item,
                          size_t piece)
{
    uint64_t left = item->size - item->begin - piece * transfer->piece;
    return left < transfer->piece ? left : transfer->piece;
}

/* Looks up facts that stay constant once: the status of a destination that has several
 * parts and, per directory and without checksums, whether the kernel copies. The kernel
 * may share blocks, or let the server copy. In memory it copies page by page and blocks
 * other writers of the file: two threads that shared a file took a third longer than one
 * alone; with buffers, one thread reads while the other writes. */
static int work_look_at_destination(axl_worker *worker, const axl_item *holder, int fd,
                                    axl_error *err)
{
    const axl_transfer *t = worker->work->transfer;
    if (worker->into == holder) return 0;
    if (holder != &t->items[holder->last] && fstat(fd, &worker->there) != 0)
        return err_sys(err, -errno, "stat %s", holder->file.destination);
    if (!worker->into ||
        !beneath_is_same_folder(worker->into->file.destination, holder->file.destination))
        worker->by_kernel = !(t->flags & AXL_CHECKSUM) && !axl_is_in_memory(fd);
    worker->into = holder;
    return 0;
}

/* All pieces are written through one descriptor, opened before the first byte is written,
 * so that fsync reports every write that failed on its way to the disk. */
static int work_open_destination(axl_worker *worker, const task *now, int *out,
                                 axl_error *err)
{
    axl_work *w = worker->work;
    axl_item *item = &w->transfer->items[now->item];
    axl_item *holder = &w->transfer->items[item->holder];
    const bool begins = now->piece == 0 && item == holder;
    const bool opens = begins && holder->fd < 0;
    int rc = 0;
    *out = holder->fd;
    if (opens) rc = axl_place_open(w->transfer, now->item, &worker->folder, out, err);
    if (rc) return rc;
    rc = work_look_at_destination(worker, holder, *out, err);
    if (!rc && now->piece == 0 && !begins)
        rc = axl_place_reach_end(item, &worker->there, *out, err);
    if (rc && opens) io_close(out);
    if (rc || now->piece > 0) return rc;
    pthread_mutex_lock(&w->lock);
    item->made = item->open = true;
    holder->fd = *out;
    if (item->pieces > 1 || item->last > now->item) pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

/* Opens the destination to compare earlier data, read from the disk or the server, not
 * from the page cache of this node. If it cannot be opened, the data is copied again. */
static void work_open_claimed(axl_worker *worker, const task *now, axl_piece *piece)
{
    const uint64_t margin = 65536; /* covers whole pages, whatever the page size */
    const axl_item *item = piece->item;
    if (piece->offset >= item->claimed ||
        axl_place_open_again(worker->work->transfer, now->item, &worker->folder,
                             &piece->there) != 0)
        return;
    uint64_t at = item->to + piece->offset;
    posix_fadvise(piece->there, (off_t)(at - at % margin),
                  (off_t)(piece->length + 2 * margin), POSIX_FADV_DONTNEED);
}

static void work_close_source(axl_worker *worker)
{
    if (worker->from) io_close(&worker->in);
    worker->from = NULL;
}

/* A source that is already open is checked again after its last byte. */
static int work_open_source(axl_worker *worker, const axl_item *item, axl_error *err)
{
    if (worker->from && axl_has_same_source(item, worker->from)) return 0;
    work_close_source(worker);
    int rc = axl_open_looked_at(item, &worker->in, err);
    if (!rc) worker->from = item;
    return rc;
}

static int work_move_piece(axl_worker *worker, const task *now, axl_piece *piece,
                           axl_error *err)
{
    const axl_transfer *t = worker->work->transfer;
    piece->offset = piece->item->begin + now->piece * t->piece;
    piece->length = axl_piece_length(t, piece->item, now->piece);
    piece->checksum = (t->flags & AXL_CHECKSUM) != 0;
    piece->buffer = worker->buffer;
    piece->buffer_size = worker->buffer_size;
    piece->kernel_step =
        t->bandwidth > 0 || t->percent > 0 ? worker->buffer_size : KERNEL_STEP;
    piece->worker = worker;
    piece->data = &worker->data;
    int rc = work_open_source(worker, piece->item, err);
    piece->in = worker->in;
    if (!rc) rc = work_open_destination(worker, now, &piece->out, err);
    piece->by_kernel = worker->by_kernel;
    if (!rc) work_open_claimed(worker, now, piece);
    if (!rc) rc = axl_piece_move(piece, err);
    if (!rc) rc = axl_check_source(piece->item, piece->in, err);
    io_close(&piece->there);
    if (rc || !piece->item->part) work_close_source(worker);
    return rc;
}

/* ---- complete files ---- */

/* Marks all parts of a holder as done. The lock is held. */
static void work_note_done(axl_work *w, size_t holder)
{
    axl_item *items = w->transfer->items;
    for (size_t i = holder; i <= items[holder].last; i++) {
        if (items[i].holder != holder || items[i].pieces == 0) continue;
        items[i].file.done = 1;
        w->files_done++;
    }
}

static void work_place_batch(axl_worker *worker)
{
    axl_work *w = worker->work;
    axl_error err = {""};
    int placed;
    int rc = axl_place_batch(w->transfer, &worker->batch, &placed, &err);
    worker->batch_bytes = 0;
    pthread_mutex_lock(&w->lock);
    for (int k = 0; k < placed; k++)
        work_note_done(w, worker->batch.items[k]);
    pthread_mutex_unlock(&w->lock);
    if (rc) axl_work_fail(w, rc, err.text);
}

static void work_add_to_batch(axl_worker *worker, size_t i, int fd)
{
    axl_batch *batch = &worker->batch;
    batch->items[batch->count] = i;
    batch->fds[batch->count++] = fd;
    worker->batch_bytes += worker->work->transfer->items[i].size;
    if (batch->count == worker->work->batch || worker->batch_bytes >= BATCH_BYTES)
        work_place_batch(worker);
}

bool axl_worker_make_room(axl_worker *worker, int rc)
{
    if ((rc != -EMFILE && rc != -ENFILE) || worker->batch.count == 0) return false;
    work_place_batch(worker);
    return true;
}

/* Returns whether this piece completes its file, or all parts of its holder. */
static bool work_finish_piece(axl_work *w, const task *now, uint32_t crc)
{
    axl_item *item = &w->transfer->items[now->item];
    axl_item *holder = &w->transfer->items[item->holder];
    pthread_mutex_lock(&w->lock);
    item->crcs[now->piece] = crc;
    item->moved[now->piece] = 1;
    bool complete = --item->left == 0;
    if (complete) item->file.size = axl_copied(w->transfer, item, &item->file.crc);
    complete = complete && --holder->held == 0;
    if (complete) holder->fd = -1; /* the descriptor moves to the batch */
    pthread_mutex_unlock(&w->lock);
    return complete;
}

static void work_do_task(axl_worker *worker, const task *now)
{
    axl_work *w = worker->work;
    axl_error err = {""};
    axl_piece piece = {
        .item = &w->transfer->items[now->item], .in = -1, .out = -1, .there = -1};
    int rc = work_move_piece(worker, now, &piece, &err);
    if (axl_worker_make_room(worker, rc)) rc = work_move_piece(worker, now, &piece, &err);
    if (!rc && work_finish_piece(w, now, piece.crc))
        work_add_to_batch(worker, piece.item->holder, piece.out);
    if (rc && rc != -ECANCELED) axl_work_fail(w, rc, err.text);
    if (!rc) axl_save_sometimes(worker);
}

/* ---- workers ---- */

/* At most the bytes of a tenth of a second with a bandwidth limit, but at least 4096. */
static size_t work_buffer_size(const axl_transfer *t)
{
    size_t size = t->buffer;
    if (t->bandwidth > 0 && t->bandwidth / 10 < (double)size)
        size = (size_t)(t->bandwidth / 10);
    return size < 4096 ? 4096 : size;
}

static void *work_run(void *arg)
{
    axl_work *w = arg;
    task next;
    axl_worker worker = {.work = w, .buffer_size = work_buffer_size(w->transfer)};
    worker.cpu = axl_seconds(CLOCK_THREAD_CPUTIME_ID);
    worker.buffer = io_buffer(worker.buffer_size);
    if (!worker.buffer)
        axl_work_fail(w, -ENOMEM, "buffer of a transfer: Cannot allocate memory");
    axl_slots_enter(w);
    while (work_take_task(w, &next))
        work_do_task(&worker, &next);
    work_close_source(&worker);
    if (worker.batch.count && !work_is_cancelled(w)) work_place_batch(&worker);
    for (int k = 0; k < worker.batch.count; k++)
        io_close(&worker.batch.fds[k]);
    axl_folder_done(&worker.folder);
    free(worker.buffer);
    pthread_mutex_lock(&w->lock);
    if (w->running == 1) axl_slots_leave(w->transfer);
    w->running--;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static int work_prepare_item(axl_work *w, axl_item *item)
{
    uint64_t left = item->size - item->begin;
    item->pieces = item->left = 0;
    item->open = false;
    w->bytes += item->file.done ? item->size : item->begin;
    if (item->file.done) {
        w->files_done++;
        return 0;
    }
    item->pieces = left ? (size_t)((left - 1) / w->transfer->piece + 1) : 1;
    item->left = item->pieces;
    item->crcs = calloc(item->pieces, sizeof *item->crcs);
    item->moved = calloc(item->pieces, 1);
    return item->crcs && item->moved ? 0 : -ENOMEM;
}

/* Joins part number i to the holder of item *before if both have the same destination. */
static void work_join_item(axl_transfer *t, size_t i, size_t *before)
{
    axl_item *item = &t->items[i];
    item->holder = item->last = i;
    item->held = 1;
    if (item->pieces == 0) return; /* in place already */
    if (i > 0 && item->part && t->items[*before].part && t->items[*before].pieces > 0 &&
        strcmp(item->file.destination, t->items[*before].file.destination) == 0) {
        item->holder = t->items[*before].holder;
        t->items[item->holder].held++;
        t->items[item->holder].last = i;
    }
    *before = i;
}

static int work_prepare_list(axl_work *w)
{
    axl_transfer *t = w->transfer;
    size_t before = 0;
    int rc = 0;
    for (size_t i = 0; i < t->count && !rc; i++) {
        rc = work_prepare_item(w, &t->items[i]);
        work_join_item(t, i, &before);
    }
    if (!rc) axl_transfer_report(t, w->bytes);
    return rc;
}

static int work_batch_size(int threads)
{
    struct rlimit limit;
    rlim_t size = AXL_BATCH;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / BATCHED_SHARE < size)
        size = limit.rlim_cur / BATCHED_SHARE;
    if (threads > 1) size /= (rlim_t)threads;
    return size < 1 ? 1 : (int)size;
}

static axl_work *work_new(axl_transfer *t, int threads)
{
    pthread_condattr_t attributes;
    axl_work *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->transfer = t;
    w->batch = work_batch_size(threads);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    w->command = AXL_COMMAND_RUN;
    w->next_save = axl_seconds(CLOCK_MONOTONIC) + t->interval;
    axl_throttle_begin(&w->throttle, t->bandwidth, t->percent,
                       axl_seconds(CLOCK_MONOTONIC));
    return w;
}

static void work_free(axl_work *w)
{
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    free(w->threads);
    free(w);
}

/* Removes the temporary files of unfinished items, unless they may be resumed. */
static void work_clean_up(axl_transfer *t, bool keep)
{
    for (size_t i = 0; i < t->count; i++) {
        axl_item *item = &t->items[i];
        io_close(&item->fd);
        if (item->made && !item->file.done && !keep) {
            axl_place_remove(t, i);
            item->synced = 0;
        }
        free(item->crcs);
        free(item->moved);
        item->crcs = NULL;
        item->moved = NULL;
    }
}

/* Syncs complete parts whose holder has incomplete parts, and marks them as done. */
static void work_sync_held(axl_work *w)
{
    axl_item *items = w->transfer->items;
    for (size_t h = 0; h < w->transfer->count; h++) {
        if (items[h].fd < 0 || items[h].last == h) continue;
        int rc = io_fsync(items[h].fd);
        if (rc && !w->rc)
            w->rc = err_sys(&w->err, rc, "fsync %s", items[h].file.destination);
        for (size_t i = h; i <= items[h].last && !rc; i++) {
            if (items[i].holder != h || items[i].pieces == 0 || items[i].left > 0)
                continue;
            items[i].file.done = 1;
            w->files_done++;
        }
    }
}

/* A stop is not recorded as a result, since the transfer may continue. If an error cannot
 * be recorded, the temporary files are removed, because they may have filled the disk. */
static void work_save_result(axl_work *w, axl_news *news)
{
    axl_news told = *news;
    axl_error err = {""};
    told.follows = w->transfer->obeys;
    if (!w->rc) told.result = 0;
    int rc = axl_save(w, &told, &err);
    if (rc && w->rc) {
        work_clean_up(w->transfer, false);
        rc = axl_save(w, &told, &err);
    }
    w->transfer->unsaved = rc;
    if (!rc || news->result) return;
    news->result = rc;
    news->error = err;
}

/* Finishes the transfer after the last worker has ended. */
static void work_conclude(axl_transfer *t)
{
    axl_work *w = t->work;
    for (int i = 0; i < w->started; i++)
        pthread_join(w->threads[i], NULL);
    if (!w->cancelled) work_sync_held(w);
    axl_slots_leave(t);
    axl_news news = {.done = w->files_done == t->count && !w->rc, .result = w->rc};
    if (!news.result && !news.done) news.result = -ECANCELED;
    snprintf(news.error.text, sizeof news.error.text, "%s",
             w->rc ? w->err.text : "the transfer was cancelled");
    if (t->state_path && !w->cancelled) work_save_result(w, &news);
    work_clean_up(t, t->state_path && !w->cancelled);
    t->bytes_done = w->bytes;
    t->files_done = w->files_done;
    axl_transfer_finish(t, news.result, news.error.text);
    work_free(w);
    t->work = NULL;
}

/* Starts threads that block all signals, which are for the threads of the application. */
static int work_start_threads(axl_work *w, int threads)
{
    sigset_t all, before;
    int rc = 0;
    w->threads = calloc((size_t)threads, sizeof *w->threads);
    if (!w->threads) return -ENOMEM;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->running = threads;
    while (w->started < threads && rc == 0) {
        rc = pthread_create(&w->threads[w->started], NULL, work_run, w);
        w->started += rc == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_lock(&w->lock);
    w->running -= threads - w->started;
    pthread_mutex_unlock(&w->lock);
    return w->started ? 0 : -rc; /* fewer threads are enough */
}

int axl_work_start(axl_transfer *transfer, int threads, axl_error *err)
{
    int rc = (transfer->work = work_new(transfer, threads)) ? 0 : -ENOMEM;
    if (!rc) rc = work_prepare_list(transfer->work);
    if (!rc && transfer->state_path)
        rc = axl_save(transfer->work,
                      &(axl_news){.fresh = !transfer->obeys,
                                  .follows = transfer->obeys,
                                  .running = true},
                      err);
    if (!rc && threads > 0) rc = work_start_threads(transfer->work, threads);
    if (rc) {
        if (transfer->work) work_free(transfer->work);
        transfer->work = NULL;
        return err_sys(err, rc, "start a transfer of %zu files", transfer->count);
    }
    if (threads == 0) {
        transfer->work->running = 1;
        work_run(transfer->work);
        work_conclude(transfer);
    }
    return 0;
}

int axl_work_test(axl_transfer *transfer)
{
    axl_work *w = transfer->work;
    pthread_mutex_lock(&w->lock);
    bool running = w->running > 0;
    pthread_mutex_unlock(&w->lock);
    if (running) return AXL_RUNNING;
    work_conclude(transfer);
    return 0;
}

void axl_work_wait(axl_transfer *transfer)
{
    axl_work *w = transfer->work;
    pthread_mutex_lock(&w->lock);
    while (w->running > 0)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    work_conclude(transfer);
}

void axl_work_stop(axl_transfer *transfer, bool for_good)
{
    axl_work *w = transfer->work;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    w->cancelled = for_good;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    axl_work_wait(transfer);
}

void axl_work_look(const axl_transfer *transfer, size_t i, axl_file *file,
                   axl_progress *progress)
{
    axl_work *w = transfer->work;
    pthread_mutex_lock(&w->lock);
    if (file) *file = transfer->items[i].file;
    if (progress) {
        progress->files_done = w->files_done;
        progress->bytes_done = w->bytes;
    }
    pthread_mutex_unlock(&w->lock);
}
