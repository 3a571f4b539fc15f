/* SPDX-License-Identifier: BSD-3-Clause */
/* Determines whether an earlier process worked on the same list, and how far it came.
 * Either all of its progress counts or none: the next process would believe a state file
 * that is true about one part and false about another. */
#include "src/axl_private.h"

#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the same list ---- */

static bool continue_same_path(const char *given, const char *read)
{
    char *full = axl_absolute(given);
    bool same = full && strcmp(full, read) == 0;
    free(full);
    return same;
}

/* Compares two directories, of which NULL means none. */
static bool continue_same_folder(const char *given, const char *read)
{
    return !given == !read && (!given || continue_same_path(given, read));
}

static bool continue_same_item(const axl_item *given, const axl_item *read)
{
    return given->part == read->part && given->from == read->from &&
           given->to == read->to && (!given->part || given->size == read->size) &&
           continue_same_path(given->file.source, read->file.source) &&
           continue_same_path(given->file.destination, read->file.destination);
}

/* Whether the recorded progress of an item is still valid. */
static bool continue_is_valid(const axl_transfer *old, axl_item *read)
{
    bool unchanged, begun = read->file.done || read->begin > 0;
    if (axl_look_at_source(read, &unchanged, NULL) != 0) return false;
    return !begun || (unchanged && (!read->part || axl_place_reaches(old, read)));
}

static bool continue_fits(const axl_transfer *t, axl_transfer *old)
{
    axl_place_begin(old, NULL); /* without the base none of its files exists */
    bool same = t->count == old->count && t->flags == old->flags &&
                continue_same_folder(t->base, old->base) &&
                continue_same_folder(t->private_folder, old->private_folder);
    for (size_t i = 0; i < t->count && same; i++) {
        axl_item *read = &old->items[i];
        read->checked_device = t->items[i].checked_device; /* not in the file */
        read->checked_inode = t->items[i].checked_inode;
        same = continue_same_item(&t->items[i], read) && continue_is_valid(old, read);
    }
    return same;
}

static void continue_take_over(axl_transfer *t, const axl_transfer *old)
{
    for (size_t i = 0; i < t->count; i++) {
        axl_item item = old->items[i];
        item.file.source = t->items[i].file.source;
        item.file.destination = t->items[i].file.destination;
        io_close(&t->items[i].fd);
        if (t->flags & AXL_COMPARE) item.file.done = 0; /* not compared yet */
        t->items[i] = item;
    }
    t->id = old->id;
    t->resumed = t->continues = true;
}

/* ---- the state file ---- */

/* Removes, durably, a file that is damaged or has no list. A process that serves the file
 * notices this as well. */
static int continue_drop_file(const char *path, axl_error *err)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return err_sys(err, -errno, "unlink %s", path);
    return axl_place_sync_folder(path, err);
}

static int continue_drop_old(axl_transfer *old, const char *path, axl_error *err)
{
    int rc = axl_cancel(old, err);
    return rc ? rc : axl_place_sync_folder(path, err);
}

/* Reads the earlier transfer. *old stays NULL if there is nothing to continue. */
static int continue_look_back(const axl_transfer *t, axl_transfer **old, axl_error *err)
{
    axl_error cause = {""};
    const char *path = t->state_path;
    int rc = 0;
    bool stop = !t->method->remote || t->flags & AXL_COMPARE;
    if (stop && axl_owner_is_there(path))
        rc = axl_daemon_halt(path, t->patience, false, &cause);
    if (!rc) rc = axl_resume(path, "daemon", old, &cause);
    if (!rc) (*old)->patience = t->patience;
    if (rc == -ENOENT) return 0;
    if (rc == -EBADMSG || rc == -ENODATA) return continue_drop_file(path, err);
    return rc ? err_set(err, rc, "%s", cause.text) : 0;
}

int axl_continue(axl_transfer *transfer, axl_error *err)
{
    axl_transfer *old = NULL;
    if (transfer->state != AXL_FILLING || transfer->resumed || !transfer->state_path)
        return err_set(err, -EINVAL, "continue: the transfer %s",
                       transfer->state_path ? "was dispatched or resumed already"
                                            : "has no state file");
    int rc = continue_look_back(transfer, &old, err);
    if (rc || !old) return rc;
    bool same = continue_fits(transfer, old);
    if (same)
        continue_take_over(transfer, old);
    else
        rc = continue_drop_old(old, transfer->state_path, err);
    axl_free(old);
    return rc ? rc : same ? AXL_CONTINUES : 0;
}
