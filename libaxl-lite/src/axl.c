/* SPDX-License-Identifier: BSD-3-Clause */
/* The transfer: a list of files, an index that finds a destination in it at once, and the
 * states filling, started, finished. How files move is the method's business. */
#include "src/axl_private.h"

#include "common/io.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int axl_create(const char *method, unsigned flags, axl_transfer **transfer, char *err)
{
    const axl_method *found;
    int rc = axl_method_find(method, &found, err);
    if (rc) return rc;
    if (flags & ~(AXL_CHECKSUM | AXL_KEEP_MODE))
        return err_set(err, -EINVAL, "unknown transfer flags 0x%x", flags);
    axl_transfer *t = calloc(1, sizeof *t);
    if (!t) return err_sys(err, -ENOMEM, "create a transfer");
    t->method = found;
    t->flags = flags;
    *transfer = t;
    return 0;
}

/* ---- the list ---- */

/* FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/). */
static uint64_t hash(const char *text)
{
    uint64_t h = 14695981039346656037u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

/* The slot that holds destination, or the free one where it belongs. */
static size_t find_slot(const axl_transfer *t, const char *destination)
{
    size_t slot = hash(destination) & (t->slots - 1);
    while (t->index[slot] &&
           strcmp(t->files[t->index[slot] - 1].destination, destination) != 0)
        slot = (slot + 1) & (t->slots - 1);
    return slot;
}

/* Room for one more file in the list and in its index. Both double, so that n files cost
 * n steps. */
static int grow(axl_transfer *t)
{
    if (t->count < t->capacity) return 0;
    size_t capacity = t->capacity ? 2 * t->capacity : 16;
    axl_file *files = reallocarray(t->files, capacity, sizeof *files);
    if (!files) return -ENOMEM;
    t->files = files;
    size_t *index = calloc(2 * capacity, sizeof *index);
    if (!index) return -ENOMEM;
    free(t->index);
    t->index = index;
    t->slots = 2 * capacity;
    t->capacity = capacity;
    for (size_t i = 0; i < t->count; i++)
        index[find_slot(t, files[i].destination)] = i + 1;
    return 0;
}

int axl_add(axl_transfer *transfer, const char *source, const char *destination,
            char *err)
{
    if (!source || !*source || !destination || !*destination)
        return err_set(err, -EINVAL, "add a file: empty path");
    if (transfer->state != AXL_FILLING)
        return err_set(err, -EINVAL, "add %s: the transfer was dispatched already",
                       source);
    if (grow(transfer)) return err_sys(err, -ENOMEM, "add %s", source);
    size_t slot = find_slot(transfer, destination);
    if (transfer->index[slot])
        return err_set(err, -EEXIST, "add %s: %s is the destination of %s already",
                       source, destination,
                       transfer->files[transfer->index[slot] - 1].source);
    axl_file file = {.source = strdup(source), .destination = strdup(destination)};
    if (!file.source || !file.destination) {
        free((char *)file.source);
        free((char *)file.destination);
        return err_sys(err, -ENOMEM, "add %s", source);
    }
    transfer->files[transfer->count] = file;
    transfer->index[slot] = ++transfer->count;
    return 0;
}

size_t axl_count(const axl_transfer *transfer)
{
    return transfer->count;
}

int axl_get(const axl_transfer *transfer, size_t i, axl_file *file)
{
    if (i >= transfer->count) return -EINVAL;
    *file = transfer->files[i];
    return 0;
}

/* ---- the states ---- */

void axl_transfer_finish(axl_transfer *transfer, int result, const char *error)
{
    transfer->result = result;
    if (result) snprintf(transfer->error, sizeof transfer->error, "%s", error);
    transfer->state = AXL_FINISHED;
}

static int result_of(const axl_transfer *transfer, char *err)
{
    return transfer->result ? err_set(err, transfer->result, "%s", transfer->error) : 0;
}

static int check_sources(const axl_transfer *transfer, char *err)
{
    for (size_t i = 0; i < transfer->count; i++) {
        int fd;
        int rc = axl_open_source(transfer->files[i].source, &fd, err);
        if (rc) return rc;
        io_close(&fd);
    }
    return 0;
}

int axl_dispatch(axl_transfer *transfer, char *err)
{
    char text[AXL_ERROR_SIZE] = "";
    if (transfer->state != AXL_FILLING)
        return err_set(err, -EINVAL, "the transfer was dispatched already");
    int rc = check_sources(transfer, text);
    if (rc == 0) {
        transfer->state = AXL_STARTED;
        rc = transfer->method->start(transfer, text);
    }
    if (rc == 0) return 0;
    axl_transfer_finish(transfer, rc, text);
    return result_of(transfer, err);
}

int axl_test(axl_transfer *transfer, char *err)
{
    if (transfer->state == AXL_FILLING)
        return err_set(err, -EINVAL, "the transfer was not dispatched");
    if (transfer->state == AXL_STARTED && transfer->method->test(transfer) == AXL_RUNNING)
        return AXL_RUNNING;
    return result_of(transfer, err);
}

int axl_wait(axl_transfer *transfer, char *err)
{
    if (transfer->state == AXL_FILLING)
        return err_set(err, -EINVAL, "the transfer was not dispatched");
    if (transfer->state == AXL_STARTED) transfer->method->wait(transfer);
    return result_of(transfer, err);
}

axl_transfer *axl_free(axl_transfer *transfer)
{
    if (!transfer) return NULL;
    if (transfer->state != AXL_FILLING) transfer->method->stop(transfer);
    for (size_t i = 0; i < transfer->count; i++) {
        free((char *)transfer->files[i].source);
        free((char *)transfer->files[i].destination);
    }
    free(transfer->files);
    free(transfer->index);
    free(transfer);
    return NULL;
}
