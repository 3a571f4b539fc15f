/* SPDX-License-Identifier: BSD-3-Clause */
/* Resuming a transfer of an earlier process: the list is read from the state file, and
 * each file is examined to see how far it was copied. */
#include "src/axl_private.h"

#include "common/crc32.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

static int resume_read_list(axl_transfer *t, const char *path, axl_error *err)
{
    axl_news news;
    axl_command command;
    kvtree *state = kvtree_new();
    int rc = state ? 0 : err_sys(err, -ENOMEM, "state file %s", path);
    if (!rc) rc = axl_state_read(path, state, &news, &command, err);
    if (!rc) {
        rc = axl_state_fill(t, state, err);
        if (rc) err_wrap(err, rc, "state file %s", path);
    }
    kvtree_delete(&state);
    return rc;
}

int axl_resume(const char *state, const char *method, axl_transfer **transfer,
               axl_error *err)
{
    axl_transfer *t;
    axl_error cause = {""};
    const axl_options options = {.state = state};
    if (!state || !*state) return err_set(err, -EINVAL, "resume: no state file");
    int rc = axl_create(method, &options, &t, &cause);
    if (rc) return err_set(err, rc, "%s", cause.text);
    t->resumed = true;
    rc = resume_read_list(t, state, &cause);
    if (rc) {
        t->resumed = false;
        axl_free(t);
        return err_set(err, rc, "%s", cause.text);
    }
    *transfer = t;
    return 0;
}

/* ---- one file ---- */

/* Discards all progress of an item. */
static void resume_begin_anew(axl_item *item)
{
    item->begin = item->synced = item->claimed = 0;
    item->begin_crc = item->synced_crc = 0;
}

/* Copied bytes count only when they are compared. The state file still records them: a
 * process that reads it compares them, too. */
static void resume_begin_comparing(axl_item *item)
{
    item->claimed = item->begin;
    item->begin = 0;
    item->begin_crc = 0;
}

/* Reads both files to their ends. *equal: they have the same bytes, whose checksum is
 * *crc. */
static int resume_read_both(const axl_transfer *t, const axl_item *item, int there,
                            bool *equal, uint32_t *crc)
{
    enum { STEP = 128 * 1024 };
    struct stat st;
    int in = -1, rc = axl_open_source(item->file.source, &in, &st, NULL);
    char *a = io_buffer(2 * (size_t)STEP), *b = a + STEP;
    if (!rc && !a) rc = -ENOMEM;
    *equal = true;
    *crc = 0;
    for (uint64_t at = 0; at < item->size && !rc && *equal; at += STEP) {
        ssize_t n = io_pread(in, a, STEP, (off_t)at);
        ssize_t m = io_pread(there, b, STEP, (off_t)at);
        if (n < 0 || m < 0) rc = n < 0 ? (int)n : (int)m;
        axl_pulse_beat(t->pulse, at);
        *equal = !rc && n > 0 && n == m && memcmp(a, b, (size_t)n) == 0;
        if (*equal) *crc = crc32_add(*crc, a, (size_t)n);
    }
    io_close(&in);
    free(a);
    return rc;
}

/* Looks for a complete destination. A file that was renamed just before its process
 * ended, too late for the state file, has no temporary file and has the bytes of its
 * source. The same holds for a file that the state file records as done, if the record is
 * still true. */
static void resume_find_destination(const axl_transfer *t, axl_item *item)
{
    struct stat st;
    bool equal;
    uint32_t crc;
    int fd = -1;
    if (axl_place_open_named(t, item, &fd, &st, NULL) != 0) return;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* only data on disk counts */
    if ((uint64_t)st.st_size == item->size &&
        resume_read_both(t, item, fd, &equal, &crc) == 0 && equal && io_fsync(fd) == 0 &&
        axl_place_sync_named(t, item, NULL) == 0) {
        item->file.done = 1;
        item->file.size = item->size;
        item->file.crc = crc;
    }
    io_close(&fd);
}

/* Whether the data of a part is lost because its destination is another file. */
static bool resume_is_lost(const axl_transfer *t, size_t i)
{
    return t->items[i].part && !axl_place_reaches(t, &t->items[i]);
}

int axl_look_again(axl_transfer *transfer, size_t i, axl_folder *folder, axl_error *err)
{
    bool same, fits;
    axl_item *item = &transfer->items[i];
    axl_pulse_beat(transfer->pulse, i);
    bool compare = (transfer->flags & AXL_COMPARE) != 0;
    if (item->file.done && !compare && !resume_is_lost(transfer, i)) return 0;
    item->file.done = 0;
    int rc = axl_look_at_source(item, &same, err);
    if (rc) return rc;
    int left = axl_place_find(transfer, i, folder, &fits, err);
    if (left < 0) return left;
    item->made = fits && same && item->begin > 0;
    if (item->made && compare) resume_begin_comparing(item);
    if (item->made) return 0;
    resume_begin_anew(item);
    if (left) axl_place_drop(transfer, i, folder);
    if (!left && same && !item->part) resume_find_destination(transfer, item);
    return 0;
}
