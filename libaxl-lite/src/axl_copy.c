/* SPDX-License-Identifier: BSD-3-Clause */
/* axl_copy, a transfer of one file in the calling thread, and axl_checksum. */
#include "src/axl_private.h"

#include "common/io.h"
#include <errno.h>
#include <stdlib.h>

int axl_copy(const char *source, const char *destination, unsigned flags, uint64_t *size,
             uint32_t *crc, axl_error *err)
{
    axl_transfer *t;
    axl_file file;
    const axl_options options = {.flags = flags};
    if (flags & AXL_COMPARE)
        return err_set(err, -EINVAL, "axl_copy: there is no earlier copy to compare");
    int rc = axl_create("sync", &options, &t, err);
    if (rc) return rc;
    rc = axl_add(t, source, destination, err);
    if (!rc) rc = axl_dispatch(t, err);
    if (!rc) rc = axl_wait(t, err);
    if (!rc) rc = axl_get(t, 0, &file);
    if (!rc && size) *size = file.size;
    if (!rc && crc && flags & AXL_CHECKSUM) *crc = file.crc;
    axl_free(t);
    return rc;
}

enum { BUFFER_SIZE = 256 * 1024 };

static int copy_read_all(axl_piece *piece, axl_error *err)
{
    piece->buffer = io_buffer(BUFFER_SIZE);
    if (!piece->buffer) return err_sys(err, -ENOMEM, "read %s", piece->item->file.source);
    piece->buffer_size = BUFFER_SIZE;
    int rc = axl_piece_move(piece, err);
    free(piece->buffer);
    return rc ? rc : axl_check_source(piece->item, piece->in, err);
}

int axl_checksum(const char *path, uint64_t *size, uint32_t *crc, axl_error *err)
{
    struct stat st;
    axl_piece piece = {.in = -1, .out = -1, .there = -1, .checksum = true};
    int rc = axl_open_source(path, &piece.in, &st, err);
    if (rc) return rc;
    const axl_item item = {.file.source = path,
                           .size = (uint64_t)st.st_size,
                           .source_size = (uint64_t)st.st_size,
                           .mtime = st.st_mtim,
                           .dense = axl_is_dense(&st)};
    piece.item = &item;
    piece.length = item.size;
    rc = copy_read_all(&piece, err);
    io_close(&piece.in);
    if (!rc && size) *size = item.size;
    if (!rc && crc) *crc = piece.crc;
    return rc;
}
