/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving one piece of a file from one descriptor to another. With a checksum, or to a
 * file in memory, the bytes pass through a small buffer; otherwise the kernel copies.
 * Holes of the source are skipped, since the destination already has its final size. Only
 * the destination of a part, or of what an earlier process copied, may have other bytes
 * where the source has a hole. Offsets refer to the source. */
#include "src/axl_private.h"

#include "common/crc32.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

static int piece_ended_early(const axl_piece *p, axl_error *err)
{
    return err_set(err, -ESTALE, "%s changed while it was read", p->item->file.source);
}

static int piece_pay(const axl_piece *p, uint64_t bytes)
{
    return p->worker ? axl_worker_pay(p->worker, bytes) : 0;
}

/* The offset in the destination. */
static off_t piece_target(const axl_piece *p, uint64_t at)
{
    return (off_t)(at - p->item->from + p->item->to);
}

/* ---- bytes ---- */

/* Whether the destination already has the bytes in the first half of the buffer. */
static bool piece_is_there(const axl_piece *p, uint64_t at, size_t size)
{
    char *found = p->buffer + p->buffer_size / 2;
    return p->there >= 0 &&
           io_pread(p->there, found, size, piece_target(p, at)) == (ssize_t)size &&
           memcmp(p->buffer, found, size) == 0;
}

static int piece_write_out(axl_piece *p, uint64_t at, size_t size, axl_error *err)
{
    if (p->out < 0) return 0;
    int rc = io_pwrite(p->out, p->buffer, size, piece_target(p, at));
    return rc ? err_sys(err, rc, "write %s", p->item->file.destination) : 0;
}

static int piece_move_by_buffer(axl_piece *p, uint64_t at, uint64_t end, axl_error *err)
{
    size_t step = p->there < 0 ? p->buffer_size : p->buffer_size / 2;
    int rc = 0;
    while (at < end && !rc) {
        size_t want = end - at < step ? (size_t)(end - at) : step;
        ssize_t n = io_pread(p->in, p->buffer, want, (off_t)at);
        if (n < 0) return err_sys(err, (int)n, "read %s", p->item->file.source);
        if ((size_t)n < want) return piece_ended_early(p, err);
        if (p->checksum) p->crc = crc32_add(p->crc, p->buffer, want);
        rc = piece_is_there(p, at, want) ? 0 : piece_write_out(p, at, want, err);
        if (rc) return rc;
        rc = piece_pay(p, want);
        at += want;
    }
    return rc;
}

/* Whether copy_file_range does not work here. Not all file systems support it, nor all
 * pairs of file systems, and some return 0 before the end of the file. */
static bool piece_kernel_declines(ssize_t n, int error)
{
    return n == 0 || error == EXDEV || error == ENOSYS || error == EINVAL ||
           error == EOPNOTSUPP;
}

static int piece_move_by_kernel(axl_piece *p, uint64_t at, uint64_t end, axl_error *err)
{
    int rc = 0;
    while (at < end && !rc) {
        off64_t from = (off64_t)at, to = piece_target(p, at);
        size_t want = end - at < p->kernel_step ? (size_t)(end - at) : p->kernel_step;
        ssize_t n = copy_file_range(p->in, &from, p->out, &to, want, 0);
        if (n > 0) {
            at += (uint64_t)n;
            rc = piece_pay(p, (uint64_t)n);
        } else if (piece_kernel_declines(n, errno)) {
            return piece_move_by_buffer(p, at, end, err);
        } else if (errno != EINTR) {
            return err_sys(err, -errno, "copy %s to %s", p->item->file.source,
                           p->item->file.destination);
        }
    }
    return rc;
}

/* ---- holes ---- */

static bool piece_is_known(const axl_piece *p, uint64_t at)
{
    const axl_extent *data = p->data;
    if (!data || !data->item || at < data->begin || at >= data->end) return false;
    return data->item == p->item || axl_has_same_source(p->item, data->item);
}

/* Finds the next data at or after an offset, up to end. File systems without support for
 * holes report data everywhere. Some search the whole file up to the next hole. Therefore
 * a file without holes is not searched, and an extent found for one piece is reused for
 * the following pieces. */
static void piece_find_data(const axl_piece *p, uint64_t at, uint64_t end, uint64_t *from,
                            uint64_t *to)
{
    *from = at;
    *to = end;
    if (p->item->dense) return;
    if (piece_is_known(p, at)) {
        if (p->data->end < end) *to = p->data->end;
        return;
    }
    off_t data = lseek(p->in, (off_t)at, SEEK_DATA);
    if (data >= 0 || errno == ENXIO) *from = data >= 0 ? (uint64_t)data : end;
    if (*from >= end) {
        *from = end;
        return;
    }
    off_t hole = lseek(p->in, (off_t)*from, SEEK_HOLE);
    if (hole <= (off_t)*from) return;
    if ((uint64_t)hole < end) *to = (uint64_t)hole;
    if (p->data) *p->data = (axl_extent){p->item, *from, (uint64_t)hole};
}

static int piece_write_zeros(axl_piece *p, uint64_t at, uint64_t end, axl_error *err)
{
    int rc = 0;
    memset(p->buffer, 0, p->buffer_size);
    while (at < end && !rc) {
        size_t size = end - at < p->buffer_size ? (size_t)(end - at) : p->buffer_size;
        rc = piece_write_out(p, at, size, err);
        if (!rc) rc = piece_pay(p, size);
        at += size;
    }
    return rc;
}

/* Punches a hole where the destination may have other bytes. Returns false if it cannot.
 */
static bool piece_punch(const axl_piece *p, uint64_t at, uint64_t end)
{
    bool blank = !p->item->part && p->there < 0;
    return blank || p->out < 0 ||
           fallocate(p->out, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     piece_target(p, at), (off_t)(end - at)) == 0;
}

/* Whether a hole ends at the end of an item with an open file from the caller. That file
 * may end there, too, and must then be extended. */
static bool piece_is_last(const axl_piece *p, uint64_t end)
{
    return p->item->given && p->out >= 0 && end == p->item->from + p->item->size;
}

/* Handles a hole without moving bytes. Where the file system cannot punch holes, or
 * refuses now, zeros are written. */
static int piece_move_hole(axl_piece *p, uint64_t at, uint64_t end, axl_error *err)
{
    if (at == end) return 0;
    if (!piece_punch(p, at, end)) return piece_write_zeros(p, at, end, err);
    if (piece_is_last(p, end)) {
        int rc = io_pwrite(p->out, "", 1, piece_target(p, end - 1));
        if (rc) return err_sys(err, rc, "write %s", p->item->file.destination);
    }
    if (p->worker) axl_worker_skip(p->worker, end - at);
    return 0;
}

bool axl_is_in_memory(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 &&
           (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

int axl_piece_move(axl_piece *piece, axl_error *err)
{
    bool by_kernel =
        piece->by_kernel && !piece->checksum && piece->out >= 0 && piece->there < 0;
    uint64_t at = piece->item->from + piece->offset, end = at + piece->length, from, to;
    int rc = 0;
    piece->crc = 0;
    while (at < end && !rc) {
        piece_find_data(piece, at, end, &from, &to);
        if (piece->checksum) piece->crc = crc32_add_zeros(piece->crc, from - at);
        rc = piece_move_hole(piece, at, from, err);
        if (rc || from == end) break;
        rc = by_kernel ? piece_move_by_kernel(piece, from, to, err)
                       : piece_move_by_buffer(piece, from, to, err);
        at = to;
    }
    return rc;
}
