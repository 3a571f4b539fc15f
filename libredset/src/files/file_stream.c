/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a process as one stream.
 *
 * Every file is split at chunk borders into segments. A chunk is a run of segments with a
 * cursor, so no position is ever searched. Segments of different chunks are read in
 * turns, so each segment has its own running checksum; crc32_combine joins the checksums
 * of a file at the end. */
#include "src/files/file_stream.h"

#include "common/beneath.h"
#include "common/crc32.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

void redset_meter_count(redset_meter *meter, uint64_t bytes)
{
    if (!meter || !meter->report) return;
    meter->done += bytes;
    meter->report(meter->arg, meter->done,
                  meter->total > meter->least ? meter->total : meter->least);
}

static void file_stream_split(redset_file_stream *l, uint64_t chunk)
{
    uint64_t position = 0;
    for (int file = 0; file < l->list->count; file++) {
        uint64_t size = l->list->files[file].size, length;
        for (uint64_t offset = 0; offset < size; offset += length, position += length) {
            uint64_t room = chunk - position % chunk;
            length = size - offset < room ? size - offset : room;
            redset_chunk *at = &l->chunks[position / chunk];
            if (at->end == 0) at->next = l->segment_count;
            l->segments[l->segment_count++] = (redset_segment){file, offset, length, 0};
            at->end = l->segment_count;
        }
    }
}

int redset_file_stream_open(int dir, const redset_list *list, int chunks, uint64_t chunk,
                            redset_file_stream **stream, redset_error *err)
{
    if (chunk < list->size / (uint64_t)chunks + (list->size % (uint64_t)chunks != 0))
        return err_set(err, -EINVAL, "%d chunks of %llu bytes are too small for %llu",
                       chunks, (unsigned long long)chunk, (unsigned long long)list->size);
    redset_file_stream *l = calloc(1, sizeof *l);
    if (!l) return err_sys(err, -ENOMEM, "file stream");
    l->dir = dir;
    l->list = list;
    l->open_files = REDSET_OPEN_FILES;
    for (int i = 0; i < REDSET_OPEN_FILES; i++)
        l->slots[i].fd = -1;
    l->chunk_count = chunks;
    l->chunks = calloc((size_t)chunks, sizeof *l->chunks);
    l->segments = calloc((size_t)list->count + (size_t)chunks, sizeof *l->segments);
    if (!l->chunks || !l->segments) {
        redset_file_stream_free(l);
        return err_sys(err, -ENOMEM, "file stream of %d files", list->count);
    }
    file_stream_split(l, chunk);
    *stream = l;
    return 0;
}

static int file_stream_open_file(const redset_file_stream *l, int file, redset_error *err)
{
    const char *name = l->list->files[file].name;
    int opened;
    int rc = l->writing ? batch_open_made(&l->out, (size_t)file, O_WRONLY, &opened, err)
                        : beneath_open(l->dir, name, O_RDONLY, 0, &opened, err);
    return rc ? rc : opened;
}

/* Returns a descriptor of the file, or -errno. A newly opened file takes the least
 * recently used slot. */
static int file_stream_descriptor(redset_file_stream *l, int file, redset_error *err)
{
    redset_slot *slot = &l->slots[0];
    for (int i = 0; i < l->open_files; i++) {
        redset_slot *s = &l->slots[i];
        if (s->fd >= 0 && s->file == file) {
            s->used = ++l->clock;
            return s->fd;
        }
        if (s->used < slot->used) slot = s;
    }
    int rc = io_close(&slot->fd);
    slot->used = 0;
    if (rc) return err_sys(err, rc, "close %s", l->list->files[slot->file].name);
    int fd = file_stream_open_file(l, file, err);
    if (fd < 0) return fd;
    *slot = (redset_slot){.file = file, .fd = fd, .used = ++l->clock};
    return fd;
}

/* Reads or writes at most size bytes of the next segment of a chunk. Returns their
 * number. */
static ssize_t file_stream_pass(redset_file_stream *l, redset_chunk *at,
                                unsigned char *buf, size_t size, redset_error *err)
{
    redset_segment *segment = &l->segments[at->next];
    const char *name = l->list->files[segment->file].name;
    uint64_t left = segment->length - at->done;
    size_t n = left < size ? (size_t)left : size;
    off_t offset = (off_t)(segment->offset + at->done);
    int fd = file_stream_descriptor(l, segment->file, err);
    if (fd < 0) return fd;
    if (l->writing) {
        int rc = io_pwrite(fd, buf, n, offset);
        if (rc) return err_sys(err, rc, "write %s", name);
    } else {
        ssize_t got = io_pread(fd, buf, n, offset);
        if (got < 0) return err_sys(err, (int)got, "read %s", name);
        if ((size_t)got < n)
            return err_set(err, -ESTALE, "%s became shorter than %llu bytes", name,
                           (unsigned long long)l->list->files[segment->file].size);
    }
    if (!l->list->unchecked) segment->crc = crc32_add(segment->crc, buf, n);
    redset_meter_count(l->meter, n);
    at->done += n;
    if (at->done == segment->length) {
        at->next++;
        at->done = 0;
    }
    return (ssize_t)n;
}

static ssize_t file_stream_pass_all(redset_file_stream *l, int chunk, unsigned char *buf,
                                    size_t size, redset_error *err)
{
    redset_chunk *at = &l->chunks[chunk];
    size_t done = 0;
    while (done < size && at->next < at->end) {
        ssize_t n = file_stream_pass(l, at, buf + done, size - done, err);
        if (n < 0) return n;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int redset_file_stream_read(redset_file_stream *stream, int chunk, void *buf, size_t size,
                            redset_error *err)
{
    ssize_t done = file_stream_pass_all(stream, chunk, buf, size, err);
    if (done < 0) return (int)done;
    memset((unsigned char *)buf + done, 0, size - (size_t)done);
    return 0;
}

int redset_file_stream_write(redset_file_stream *stream, int chunk, const void *buf,
                             size_t size, redset_error *err)
{
    ssize_t done = file_stream_pass_all(stream, chunk, (unsigned char *)buf, size, err);
    return done < 0 ? (int)done : 0;
}

int redset_file_stream_skim(redset_file_stream *stream, size_t piece, redset_error *err)
{
    ssize_t got = 0;
    unsigned char *buf = io_buffer(piece);
    if (!buf) return err_sys(err, -ENOMEM, "buffer");
    for (int i = 0; i < stream->chunk_count && got >= 0; i++)
        do
            got = file_stream_pass_all(stream, i, buf, piece, err);
        while (got > 0);
    free(buf);
    return got < 0 ? (int)got : 0;
}

int redset_file_stream_check_sizes(const redset_file_stream *stream, redset_error *err)
{
    const redset_list *list = stream->list;
    for (int i = 0; i < list->count; i++) {
        struct stat st;
        int rc = beneath_stat(stream->dir, list->files[i].name, &st, err);
        if (rc) return rc;
        if ((uint64_t)st.st_size != list->files[i].size)
            return err_set(err, -ESTALE, "%s has %lld bytes, not %llu",
                           list->files[i].name, (long long)st.st_size,
                           (unsigned long long)list->files[i].size);
    }
    return 0;
}

/* Returns the checksum of a file whose segments begin at *next, and advances *next past
 * them. */
static uint32_t file_stream_crc(const redset_file_stream *stream, int file, size_t *next)
{
    uLong crc = 0;
    for (; *next < stream->segment_count && stream->segments[*next].file == file; ++*next)
        crc = crc32_combine(crc, stream->segments[*next].crc,
                            (z_off_t)stream->segments[*next].length);
    return (uint32_t)crc;
}

void redset_file_stream_set_crcs(const redset_file_stream *stream, redset_file files[])
{
    size_t next = 0;
    for (int i = 0; i < stream->list->count; i++)
        files[i].crc = file_stream_crc(stream, i, &next);
}

int redset_file_stream_compare(const redset_file_stream *stream, redset_error *err)
{
    size_t next = 0;
    for (int i = 0; i < stream->list->count; i++) {
        const redset_file *file = &stream->list->files[i];
        uint32_t crc = file_stream_crc(stream, i, &next);
        if (crc != file->crc)
            return err_set(err, -EBADMSG, "%s has checksum %08x, not %08x", file->name,
                           crc, file->crc);
    }
    return 0;
}

redset_file_stream *redset_file_stream_free(redset_file_stream *stream)
{
    if (!stream) return NULL;
    for (int i = 0; i < REDSET_OPEN_FILES; i++)
        io_close(&stream->slots[i].fd);
    batch_drop(&stream->out);
    free(stream->chunks);
    free(stream->segments);
    free(stream);
    return NULL;
}
