/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends files from process to process, one at a time, in the rounds of plan/bring.h. The
 * receiver sends the name, the sender answers with the size or an error and sends the
 * bytes, and a final number reports whether the sender could read them. */
#include "cache/brought.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { MESSAGE = 1 << 20, TAG = 0x5342 };

#define BROUGHT_FOLDER "scr.brought"

void scr_brought_name(int id, const char *name, char path[SCR_BROUGHT_NAME_SIZE])
{
    snprintf(path, SCR_BROUGHT_NAME_SIZE, BROUGHT_FOLDER "/%d/%s", id, name);
}

char *scr_brought_path(const scr_store_dir *store, int id, const char *name)
{
    char path[SCR_BROUGHT_NAME_SIZE];
    scr_brought_name(id, name, path);
    return scr_path_join(store->folder, path);
}

int scr_brought_clear(const scr_store_dir *store, kvtree_error *err)
{
    return beneath_remove_tree(store->fd, BROUGHT_FOLDER, err);
}

void scr_brought_remove(const scr_cache *cache)
{
    for (int i = 0; i < cache->store_count; i++)
        if (cache->stores[i].rank == 0) scr_brought_clear(&cache->stores[i], NULL);
}

static size_t brought_piece(const scr_bringing *b)
{
    const uint64_t message = b->cache->set->message;
    return message ? (size_t)message : MESSAGE;
}

/* ---- progress ---- */

void scr_brought_count(scr_cache_meter *meter, uint64_t bytes)
{
    meter->done += bytes;
    if (meter->report) meter->report(meter->arg, meter->done, meter->total);
}

uint64_t scr_brought_size(const kvtree_elem *file)
{
    unsigned long size = 0;
    kvtree_util_get_bytecount(kvtree_elem_hash(file), SCR_META_SIZE, &size);
    return size;
}

static uint64_t brought_total(const scr_bringing *b)
{
    uint64_t total = 0;
    for (const kvtree_elem *e = kvtree_elem_first(b->files); e; e = kvtree_elem_next(e))
        total += scr_brought_size(kvtree_elem_first(kvtree_elem_hash(e)));
    return total;
}

/* ---- the sender ---- */

/* Opens a file of this process, or a copy that it received in an earlier round. */
static int brought_open_source(const scr_bringing *b, const scr_bring_want *w,
                               const char *name, int *fd, int64_t *size)
{
    char path[SCR_BROUGHT_NAME_SIZE];
    struct stat st;
    const int dir =
        w->from == w->holder ? scr_cache_of(b->cache, b->id)->fd : b->store->fd;
    if (w->from == w->holder)
        scr_cached_name(b->id, name, path);
    else
        scr_brought_name(b->id, name, path);
    int rc = beneath_open(dir, path, O_RDONLY, 0, fd, NULL);
    if (!rc && fstat(*fd, &st) != 0) rc = -errno;
    if (!rc) *size = st.st_size;
    return rc;
}

/* Sends the bytes of a file. After an error it sends zeros for the rest; the final number
 * reports the error to the receiver. */
static int brought_send_bytes(const scr_bringing *b, int to, int fd, int64_t size,
                              char *buf)
{
    const int64_t piece = (int64_t)brought_piece(b);
    int rc = 0;
    for (int64_t n; size > 0; size -= n) {
        n = size < piece ? size : piece;
        ssize_t got = rc ? n : io_read(fd, buf, (size_t)n);
        if (got != n) {
            rc = got < 0 ? (int)got : -EIO;
            memset(buf, 0, (size_t)n);
        }
        MPI_Send(buf, (int)n, MPI_BYTE, to, TAG, b->cache->job->world);
    }
    return rc;
}

static void brought_send(const scr_bringing *b, const scr_bring_want *w)
{
    char name[SCR_NAME_SIZE];
    int64_t size = 0;
    MPI_Comm world = b->cache->job->world;
    MPI_Recv(name, sizeof name, MPI_CHAR, w->to, TAG, world, MPI_STATUS_IGNORE);
    name[sizeof name - 1] = 0;
    if (!name[0]) return;
    char *buf = io_buffer(brought_piece(b));
    int fd = -1, rc = buf ? brought_open_source(b, w, name, &fd, &size) : -ENOMEM;
    if (rc) size = rc;
    MPI_Send(&size, 1, MPI_INT64_T, w->to, TAG, world);
    if (!rc) {
        rc = brought_send_bytes(b, w->to, fd, size, buf);
        MPI_Send(&rc, 1, MPI_INT, w->to, TAG, world);
    }
    io_close(&fd);
    free(buf);
}

/* ---- the receiver ---- */

int scr_brought_create(const scr_store_dir *store, const char *path, int *fd,
                       kvtree_error *err)
{
    const char *last;
    int parent, rc = beneath_open_parent(store->fd, path, 0700, &parent, &last, err);
    if (rc) return rc;
    rc = beneath_unlink(parent, last, err);
    rc = rc ? rc : beneath_open(parent, last, O_WRONLY | O_CREAT | O_EXCL, 0600, fd, err);
    io_close(&parent);
    return rc;
}

/* The expected file: its size, and its checksum if known. */
typedef struct brought_file {
    const char *name;
    unsigned long size, crc;
    bool has_crc;
} brought_file;

/* Writes the received bytes. After an error it continues to receive, so that the sender
 * can finish. */
static int brought_receive_bytes(const scr_bringing *b, int from, int fd, int64_t size,
                                 const brought_file *f, char *buf, kvtree_error *err)
{
    const int64_t piece = (int64_t)brought_piece(b);
    MPI_Comm world = b->cache->job->world;
    uLong crc = crc32(0, NULL, 0);
    int rc = 0, sent = 0;
    for (int64_t n, left = size; left > 0; left -= n) {
        n = left < piece ? left : piece;
        MPI_Recv(buf, (int)n, MPI_BYTE, from, TAG, world, MPI_STATUS_IGNORE);
        crc = crc32(crc, (const Bytef *)buf, (uInt)n);
        rc = rc ? rc : io_write(fd, buf, (size_t)n);
        scr_brought_count(&b->cache->meter, (uint64_t)n);
    }
    MPI_Recv(&sent, 1, MPI_INT, from, TAG, world, MPI_STATUS_IGNORE);
    if (rc) return err_sys(err, rc, "write to %s", b->store->folder);
    if (sent) return err_sys(err, sent, "rank %d could not read it", from);
    if ((unsigned long)size != f->size || (f->has_crc && crc != f->crc))
        return err_set(err, -EIO, "rank %d has a damaged copy", from);
    return 0;
}

static int brought_take(const scr_bringing *b, int from, int fd, const brought_file *f,
                        char *buf, kvtree_error *err)
{
    int64_t size = 0;
    MPI_Recv(&size, 1, MPI_INT64_T, from, TAG, b->cache->job->world, MPI_STATUS_IGNORE);
    if (size < 0) return err_sys(err, (int)size, "rank %d could not open it", from);
    return brought_receive_bytes(b, from, fd, size, f, buf, err);
}

/* Receives a file. An empty name informs the sender that it must not send anything. */
static int brought_receive_file(const scr_bringing *b, int from, const brought_file *f,
                                kvtree_error *err)
{
    char path[SCR_BROUGHT_NAME_SIZE], name[SCR_NAME_SIZE] = "";
    char *buf = io_buffer(brought_piece(b));
    int fd = -1, rc = buf ? 0 : err_sys(err, -ENOMEM, "a buffer");
    scr_brought_name(b->id, f->name, path);
    rc = rc ? rc : scr_brought_create(b->store, path, &fd, err);
    if (!rc) snprintf(name, sizeof name, "%s", f->name);
    MPI_Send(name, sizeof name, MPI_CHAR, from, TAG, b->cache->job->world);
    rc = rc ? rc : brought_take(b, from, fd, f, buf, err);
    int closed = io_close(&fd);
    if (!rc && closed) rc = err_sys(err, closed, "close a file in %s", b->store->folder);
    if (rc) beneath_unlink(b->store->fd, path, NULL);
    free(buf);
    return rc;
}

/* 0 or -ENOMEM. */
static int brought_receive(scr_bringing *b, const scr_bring_want *w)
{
    char key[24];
    kvtree_error err = {""};
    snprintf(key, sizeof key, "%" PRIu64, w->file);
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(b->files, key));
    brought_file f = {.name = kvtree_elem_key(e)};
    kvtree_util_get_bytecount(kvtree_elem_hash(e), SCR_META_SIZE, &f.size);
    f.has_crc = kvtree_util_get_crc32(kvtree_elem_hash(e), SCR_META_CRC, &f.crc) == 0;
    if (brought_receive_file(b, w->from, &f, &err) == 0) return 0;
    return kvtree_util_set_str(b->failed, f.name, err.text) == 0 ? 0 : -ENOMEM;
}

int scr_brought_execute(scr_bringing *b)
{
    const int own = b->cache->job->rank;
    int rc = 0;
    b->cache->meter.total += brought_total(b);
    for (int i = 0; i < b->count; i++) {
        const scr_bring_want *w = &b->plan[i];
        if (w->from == own) brought_send(b, w);
        if (w->to == own && brought_receive(b, w) != 0) rc = -ENOMEM;
    }
    return rc;
}
