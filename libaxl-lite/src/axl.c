/* SPDX-License-Identifier: BSD-3-Clause */
/* The transfer: a list of files, an index that finds a destination in the list at once,
 * and the states filling, started, finished. The method decides how files move. */
#include "src/axl_private.h"

#include "common/array.h"
#include "common/batch.h"
#include "common/beneath.h"
#include "common/folder.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- options ---- */

bool axl_is_limit(double limit)
{
    return limit == 0 || (limit >= 1e-6 && isfinite(limit));
}

double axl_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int transfer_check_options(const axl_options *o, axl_error *err)
{
    if (o->flags & ~(AXL_CHECKSUM | AXL_KEEP_MODE | AXL_KEEP_TIMES | AXL_COMPARE))
        return err_set(err, -EINVAL, "unknown transfer flags 0x%x", o->flags);
    if (o->workers < 0 || o->workers > AXL_WORKERS_MAX)
        return err_set(err, -EINVAL, "%d workers, not 0 to %d", o->workers,
                       AXL_WORKERS_MAX);
    if (o->buffer > AXL_BUFFER_MAX)
        return err_set(err, -EINVAL, "buffers of %zu bytes, at most %zu", o->buffer,
                       AXL_BUFFER_MAX);
    if (!axl_is_limit(o->bandwidth))
        return err_set(err, -EINVAL, "a bandwidth of %g bytes per second", o->bandwidth);
    if (!axl_is_limit(o->percent))
        return err_set(err, -EINVAL, "%g percent of a processor", o->percent);
    return 0;
}

/* Between read, CRC and write the bytes should stay in the processor's second-level
 * cache. Sizes from 32 kB to 1 MB were equally fast; with 4 MB the memory accesses cost
 * 15% to 30%. */
#define BUFFER_SIZE ((size_t)256 * 1024)

int axl_create(const char *method, const axl_options *options, axl_transfer **transfer,
               axl_error *err)
{
    static const axl_options none = {0};
    const axl_options *o = options ? options : &none;
    const axl_method *found;
    int rc = axl_method_find(method, &found, err);
    if (!rc) rc = transfer_check_options(o, err);
    if (!rc && found->remote && !o->state)
        rc = err_set(err, -EINVAL, "transfer method \"%s\" needs a state file", method);
    if (rc) return rc;
    axl_transfer *t = calloc(1, sizeof *t);
    if (!t) return err_sys(err, -ENOMEM, "create a transfer");
    t->method = found;
    t->flags = o->flags;
    t->workers = o->workers;
    t->buffer = o->buffer ? o->buffer : BUFFER_SIZE;
    t->piece = AXL_PIECE;
    t->interval = AXL_INTERVAL;
    t->patience = AXL_PATIENCE;
    t->bandwidth = o->bandwidth;
    t->percent = o->percent;
    t->owner = -1;
    t->top_dir = t->slot_fd = -1;
    if (o->state) t->state_path = strdup(o->state);
    if (o->daemon) t->daemon_path = strdup(o->daemon);
    if (o->base) t->base = strdup(o->base);
    if ((o->state && !t->state_path) || (o->daemon && !t->daemon_path) ||
        (o->base && !t->base)) {
        axl_free(t);
        return err_sys(err, -ENOMEM, "create a transfer");
    }
    *transfer = t;
    return 0;
}

void axl_set_patience(axl_transfer *transfer, int seconds)
{
    transfer->patience = seconds > 0 ? seconds : AXL_PATIENCE;
}

void axl_set_progress(axl_transfer *transfer,
                      void (*report)(void *arg, uint64_t done, uint64_t total), void *arg)
{
    transfer->report = report;
    transfer->report_arg = arg;
}

/* A source that grows meanwhile is detected later, so done may exceed total here. */
void axl_transfer_report(const axl_transfer *transfer, uint64_t done)
{
    const uint64_t total = transfer->bytes;
    if (transfer->report)
        transfer->report(transfer->report_arg, done < total ? done : total, total);
}

int axl_set_private(axl_transfer *transfer, const char *folder, int dir, axl_error *err)
{
    const char *rest = transfer->base ? folder_rest(transfer->base, folder) : NULL;
    if (!rest || !*rest || transfer->count || transfer->private_folder)
        return err_set(err, -EINVAL, "private directory %s: %s", folder,
                       rest && *rest ? "the transfer has files already"
                                     : "it is not below the base");
    transfer->private_folder = strdup(folder);
    if (!transfer->private_folder) return err_sys(err, -ENOMEM, "directory %s", folder);
    if (dir < 0) return 0;
    transfer->top_dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    return transfer->top_dir < 0 ? err_sys(err, -errno, "directory %s", folder) : 0;
}

/* ---- the list ---- */

/* FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/). */
static uint64_t transfer_hash(const char *text)
{
    uint64_t h = 14695981039346656037u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

/* Returns the slot that holds the destination with that hash at that offset, or the free
 * slot where it belongs. */
static axl_slot *transfer_find_slot(const axl_transfer *t, const char *destination,
                                    uint64_t hash, uint64_t offset)
{
    for (uint64_t rest = offset; rest; rest >>= 8)
        hash = (hash ^ (rest & 255)) * 1099511628211u;
    size_t i = hash & (t->slots - 1);
    while (t->index[i].item &&
           (t->index[i].offset != offset ||
            strcmp(t->items[t->index[i].item - 1].file.destination, destination) != 0))
        i = (i + 1) & (t->slots - 1);
    return &t->index[i];
}

static void transfer_occupy(axl_transfer *t, size_t item, uint64_t hash, uint64_t offset)
{
    axl_slot *slot = transfer_find_slot(t, t->items[item].file.destination, hash, offset);
    if (slot->item) return;
    *slot = (axl_slot){item + 1, offset};
    t->used++;
}

/* Makes room for two more slots, because a part takes two. */
static int transfer_grow_index(axl_transfer *t)
{
    if (2 * (t->used + 2) <= t->slots) return 0;
    size_t before = t->slots, slots = before ? 2 * before : 32;
    axl_slot *old = t->index, *index = calloc(slots, sizeof *index);
    if (!index) return -ENOMEM;
    t->index = index;
    t->slots = slots;
    t->used = 0;
    for (size_t i = 0; i < before; i++)
        if (old[i].item) {
            const axl_item *item = &t->items[old[i].item - 1];
            transfer_occupy(t, old[i].item - 1, transfer_hash(item->file.destination),
                            old[i].offset);
        }
    free(old);
    return 0;
}

/* Makes room for one more entry in the list and in its index. Both double, so that n
 * files cost O(n) steps. */
static int transfer_grow(axl_transfer *t)
{
    axl_item *items = array_grow(t->items, t->count, sizeof *items);
    if (!items) return -ENOMEM;
    t->items = items;
    return transfer_grow_index(t);
}

/* The offset in the index: that of a part, or AXL_FILE_ITSELF for a whole file. */
static uint64_t transfer_offset_of(const axl_item *item)
{
    return item->part ? item->to : AXL_FILE_ITSELF;
}

static int transfer_check_free(const axl_transfer *t, const axl_item *item, uint64_t hash,
                               axl_error *err)
{
    const char *path = item->file.destination;
    const axl_slot *slot = transfer_find_slot(t, path, hash, transfer_offset_of(item)),
                   *whole = transfer_find_slot(t, path, hash, AXL_FILE_ITSELF);
    if (slot->item && item->part)
        return err_set(err, -EEXIST, "add %s: a part of %s goes to byte %llu of %s",
                       item->file.source, t->items[slot->item - 1].file.source,
                       (unsigned long long)item->to, path);
    if (!whole->item || (item->part && t->items[whole->item - 1].part)) return 0;
    return err_set(err, -EEXIST, "add %s: %s is the destination of %s already",
                   item->file.source, path, t->items[whole->item - 1].file.source);
}

static int transfer_check_base(const axl_transfer *t, const char *destination,
                               axl_error *err)
{
    const char *top = axl_place_top(t);
    const char *rest = top ? folder_rest(top, destination) : NULL;
    if (!top) return 0;
    if (!rest || !*rest)
        return err_set(err, -EINVAL, "%s is not below directory %s", destination, top);
    return beneath_check_name(rest, err);
}

/* Adds a copy of item, whose paths belong to the caller. */
static int transfer_add_item(axl_transfer *t, axl_item item, axl_error *err)
{
    const char *source = item.file.source, *destination = item.file.destination;
    if (!source || !*source || !destination || !*destination)
        return err_set(err, -EINVAL, "add a file: empty path");
    if (t->state != AXL_FILLING)
        return err_set(err, -EINVAL, "add %s: the transfer was dispatched already",
                       source);
    int rc = transfer_check_base(t, destination, err);
    if (rc) return rc;
    if (transfer_grow(t)) return err_sys(err, -ENOMEM, "add %s", source);
    const uint64_t hash = transfer_hash(destination);
    rc = transfer_check_free(t, &item, hash, err);
    if (rc) return rc;
    item.file.source = strdup(source);
    item.file.destination = strdup(destination);
    if (!item.file.source || !item.file.destination) {
        free((char *)item.file.source);
        free((char *)item.file.destination);
        return err_sys(err, -ENOMEM, "add %s", source);
    }
    item.fd = -1;
    t->items[t->count] = item;
    transfer_occupy(t, t->count, hash, AXL_FILE_ITSELF);
    transfer_occupy(t, t->count++, hash, transfer_offset_of(&item));
    return 0;
}

int axl_add(axl_transfer *transfer, const char *source, const char *destination,
            axl_error *err)
{
    const axl_file file = {.source = source, .destination = destination};
    return transfer_add_item(transfer, (axl_item){.file = file}, err);
}

static bool transfer_is_range(uint64_t offset, uint64_t length)
{
    return offset <= INT64_MAX && length <= INT64_MAX - offset;
}

int axl_add_part(axl_transfer *transfer, const axl_part *part, axl_error *err)
{
    const axl_file file = {.source = part->source, .destination = part->destination};
    if (!transfer_is_range(part->source_offset, part->length) ||
        !transfer_is_range(part->destination_offset, part->length))
        return err_set(err, -EINVAL, "add a part of %s: no file is that long",
                       part->source ? part->source : "a file");
    axl_item item = {.file = file,
                     .part = true,
                     .from = part->source_offset,
                     .to = part->destination_offset,
                     .size = part->length,
                     .checked_device = (dev_t)part->device,
                     .checked_inode = (ino_t)part->inode};
    if (part->seen) axl_take_seen(&item, part->seen);
    return transfer_add_item(transfer, item, err);
}

/* Takes the descriptor, unless the method is remote: another process cannot use it. */
static int transfer_take_opened(axl_transfer *t, size_t i, int *fd, axl_error *err)
{
    if (t->state != AXL_FILLING || i >= t->count || !t->items[i].part ||
        t->items[i].given || *fd < 0)
        return err_set(err, -EINVAL, "entry %zu of a transfer cannot get an open file",
                       i);
    t->items[i].given = true;
    if (t->method->remote) return 0;
    t->items[i].fd = *fd;
    *fd = -1;
    return 0;
}

int axl_set_opened(axl_transfer *transfer, size_t i, int fd, axl_error *err)
{
    int rc = transfer_take_opened(transfer, i, &fd, err);
    io_close(&fd);
    return rc;
}

size_t axl_count(const axl_transfer *transfer)
{
    return transfer->count;
}

int axl_get(const axl_transfer *transfer, size_t i, axl_file *file)
{
    if (i >= transfer->count) return -EINVAL;
    if (transfer->state == AXL_STARTED)
        transfer->method->look(transfer, i, file, NULL);
    else
        *file = transfer->items[i].file;
    return 0;
}

int axl_progress_get(const axl_transfer *transfer, axl_progress *progress)
{
    *progress = (axl_progress){.files = transfer->count,
                               .files_done = transfer->files_done,
                               .bytes = transfer->bytes,
                               .bytes_done = transfer->bytes_done};
    if (transfer->state == AXL_STARTED)
        transfer->method->look(transfer, 0, NULL, progress);
    return 0;
}

/* ---- the states ---- */

void axl_transfer_finish(axl_transfer *transfer, int result, const char *error)
{
    transfer->result = result;
    if (result) snprintf(transfer->error.text, sizeof transfer->error.text, "%s", error);
    transfer->state = AXL_FINISHED;
}

static int transfer_result_of(const axl_transfer *transfer, axl_error *err)
{
    return transfer->result ? err_set(err, transfer->result, "%s", transfer->error.text)
                            : 0;
}

/* Looks at the sources. A process that resumes a transfer checks its progress as well. A
 * remote method leaves this to the process scr_transfer. */
static int transfer_look_at_files(axl_transfer *transfer, axl_error *err)
{
    axl_folder folder = {0};
    bool unchanged, elsewhere = transfer->resumed && transfer->method->remote;
    int rc = 0;
    transfer->bytes = 0;
    for (size_t i = 0; i < transfer->count && !rc; i++) {
        axl_item *item = &transfer->items[i];
        if (transfer->resumed && !elsewhere)
            rc = axl_look_again(transfer, i, &folder, err);
        else if (item->seen)
            rc = axl_check_range(item, err);
        else if (!elsewhere && i > 0 && axl_has_same_source(item, item - 1))
            rc = axl_look_as_before(item, item - 1, err);
        else if (!elsewhere)
            rc = axl_look_at_source(item, &unchanged, err);
        transfer->bytes += item->size;
    }
    axl_folder_done(&folder);
    return rc;
}

static int transfer_start(axl_transfer *transfer, axl_error *err)
{
    int rc = axl_place_begin(transfer, err);
    if (!rc && !transfer->method->remote) {
        if (transfer->state_path && transfer->owner < 0)
            rc = axl_owner_take(transfer->state_path, &transfer->owner, err);
        transfer->ours = rc == 0;
    }
    if (!rc) rc = transfer_look_at_files(transfer, err);
    if (!rc && !transfer->id && (rc = batch_draw(&transfer->id)) != 0)
        err_sys(err, rc, "random names");
    if (rc) return rc;
    transfer->state = AXL_STARTED;
    return transfer->method->start(transfer, err);
}

int axl_dispatch(axl_transfer *transfer, axl_error *err)
{
    axl_error cause = {""};
    if (transfer->state != AXL_FILLING)
        return err_set(err, -EINVAL, "the transfer was dispatched already");
    int rc = transfer_start(transfer, &cause);
    if (rc == 0) return 0;
    for (size_t i = 0; i < transfer->count; i++)
        io_close(&transfer->items[i].fd); /* its file may be removed now */
    axl_transfer_finish(transfer, rc, cause.text);
    return transfer_result_of(transfer, err);
}

int axl_test(axl_transfer *transfer, axl_error *err)
{
    if (transfer->state == AXL_FILLING)
        return err_set(err, -EINVAL, "the transfer was not dispatched");
    if (transfer->state == AXL_STARTED && transfer->method->test(transfer) == AXL_RUNNING)
        return AXL_RUNNING;
    return transfer_result_of(transfer, err);
}

int axl_wait(axl_transfer *transfer, axl_error *err)
{
    if (transfer->state == AXL_FILLING)
        return err_set(err, -EINVAL, "the transfer was not dispatched");
    if (transfer->state == AXL_STARTED) transfer->method->wait(transfer);
    return transfer_result_of(transfer, err);
}

/* Removes the state file, which is no longer needed. */
static void transfer_forget(axl_transfer *transfer)
{
    if (transfer->state_path && transfer->ours && !transfer->obeys)
        unlink(transfer->state_path);
}

/* Cancels what an earlier process began and this process has not resumed. */
static int transfer_cancel_earlier(axl_transfer *t, axl_error *err)
{
    int rc = 0;
    if (!t->method->remote && t->owner < 0)
        rc = axl_owner_take(t->state_path, &t->owner, err);
    if (rc) return rc;
    t->ours = true;
    t->state = AXL_STARTED;
    if (t->method->remote) {
        t->method->stop(t, true);
    } else {
        axl_place_begin(t, NULL); /* without the base there is nothing to remove */
        for (size_t i = 0; i < t->count; i++)
            axl_place_remove(t, i);
        axl_transfer_finish(t, -ECANCELED, "the transfer was cancelled");
    }
    if (t->result != -ECANCELED) return transfer_result_of(t, err);
    transfer_forget(t);
    return 0;
}

int axl_cancel(axl_transfer *transfer, axl_error *err)
{
    if (transfer->state == AXL_FILLING && transfer->resumed)
        return transfer_cancel_earlier(transfer, err);
    if (transfer->state == AXL_FILLING)
        return err_set(err, -EINVAL, "the transfer was not dispatched");
    if (transfer->state == AXL_STARTED)
        transfer->method->stop(transfer, true);
    else if (transfer->result && transfer->state_path && transfer->ours)
        for (size_t i = 0; i < transfer->count; i++)
            if (!transfer->items[i].file.done) axl_place_remove(transfer, i);
    transfer_forget(transfer);
    return 0;
}

axl_transfer *axl_free(axl_transfer *transfer)
{
    if (!transfer) return NULL;
    if (transfer->state == AXL_STARTED)
        transfer->method->stop(transfer, !transfer->state_path);
    if (transfer->state == AXL_FINISHED && transfer->result == 0)
        transfer_forget(transfer);
    if (transfer->owner >= 0) axl_owner_drop(transfer->state_path, &transfer->owner);
    free(transfer->state_path);
    free(transfer->daemon_path);
    free(transfer->base);
    free(transfer->private_folder);
    free(transfer->slot_path);
    io_close(&transfer->top_dir);
    for (size_t i = 0; i < transfer->count; i++) {
        free((char *)transfer->items[i].file.source);
        free((char *)transfer->items[i].file.destination);
        free(transfer->items[i].crcs);
        free(transfer->items[i].moved);
        io_close(&transfer->items[i].fd);
    }
    free(transfer->items);
    free(transfer->index);
    free(transfer);
    return NULL;
}
