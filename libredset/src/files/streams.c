/* SPDX-License-Identifier: BSD-3-Clause */
/* The streams of one member in its files. */
#include "src/files/streams.h"

#include "common/beneath.h"
#include "common/crc32.h"
#include "common/errtext.h"
#include "common/io.h"
#include "src/files/file_output.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <zlib.h>

int redset_streams_init(const redset_header *header, redset_streams *streams,
                        redset_error *err)
{
    int parts = header->shape.failures;
    uint64_t offset = 0;
    redset_part *part = calloc((size_t)parts + 1, sizeof *part);
    if (!part) return err_sys(err, -ENOMEM, "%d parts of redundancy data", parts);
    for (int i = 0; i < parts; i++) {
        part[i].offset = offset;
        part[i].length = redset_header_part(header, i);
        offset += part[i].length;
    }
    bool is_coded = redset_shape_is_coded(&header->shape);
    *streams = (redset_streams){.data = redset_shape_data_streams(&header->shape),
                                .parts = parts,
                                .part = part,
                                .unchecked = header->layout.unchecked,
                                .chunk = is_coded ? header->chunk : header->list[0].size,
                                .fd = -1};
    return 0;
}

int redset_streams_open(int dir, const char *name, const redset_header *header,
                        redset_streams *streams, redset_error *err)
{
    int rc = redset_streams_init(header, streams, err);
    if (rc) return rc;
    streams->start = header->size;
    rc = beneath_open(dir, name, O_RDONLY, 0, &streams->fd, err);
    if (!rc)
        rc = redset_file_stream_open(dir, &header->list[0], streams->data, streams->chunk,
                                     &streams->files, err);
    if (rc) redset_streams_done(streams);
    return rc;
}

int redset_streams_create(int dir, const char *name, const redset_header *header,
                          redset_streams *streams, redset_error *err)
{
    int rc = redset_streams_init(header, streams, err);
    if (rc) return rc;
    rc = redset_file_output_create(dir, &header->list[0], streams->data, streams->chunk,
                                   &streams->files, err);
    if (rc) return rc;
    return redset_redundancy_file_begin(dir, name, -1, header->tree, &streams->out, err);
}

void redset_streams_done(redset_streams *streams)
{
    redset_redundancy_file_abort(&streams->out);
    redset_file_stream_free(streams->files);
    io_close(&streams->fd);
    free(streams->part);
    *streams = (redset_streams){.fd = -1};
}

/* ---- bytes ---- */

void redset_streams_set_meter(redset_streams *streams, redset_meter *meter)
{
    if (!meter) return;
    meter->total += streams->files->list->size;
    for (int i = 0; i < streams->parts; i++)
        meter->total += streams->part[i].length;
    streams->meter = streams->files->meter = meter;
}

static void streams_count(const redset_streams *streams, redset_part *part,
                          const void *buf, size_t size)
{
    if (!streams->unchecked) part->crc = crc32_add(part->crc, buf, size);
    part->done += size;
    redset_meter_count(streams->meter, size);
}

int redset_streams_read(redset_streams *streams, int stream, void *buf, size_t size,
                        redset_error *err)
{
    if (stream < streams->data)
        return redset_file_stream_read(streams->files, stream, buf, size, err);
    redset_part *part = &streams->part[stream - streams->data];
    uint64_t at = streams->start + part->offset + part->done;
    ssize_t got = io_pread(streams->fd, buf, size, (off_t)at);
    if (got < 0) return err_sys(err, (int)got, "read redundancy data");
    if ((size_t)got < size)
        return err_set(err, -ESTALE, "redundancy file became shorter");
    streams_count(streams, part, buf, size);
    return 0;
}

int redset_streams_write(redset_streams *streams, int stream, const void *buf,
                         size_t size, redset_error *err)
{
    if (stream < streams->data)
        return redset_file_stream_write(streams->files, stream, buf, size, err);
    redset_part *part = &streams->part[stream - streams->data];
    int rc = redset_redundancy_file_write(&streams->out, part->offset + part->done, buf,
                                          size, err);
    if (!rc) streams_count(streams, part, buf, size);
    return rc;
}

uint32_t redset_streams_crc(const redset_streams *streams)
{
    uLong crc = 0;
    for (int i = 0; i < streams->parts; i++)
        crc = crc32_combine(crc, streams->part[i].crc, (z_off_t)streams->part[i].length);
    return (uint32_t)crc;
}

/* ---- verification ---- */

static int streams_skim_parts(redset_streams *streams, size_t piece, redset_error *err)
{
    int rc = 0;
    unsigned char *buf = io_buffer(piece);
    if (!buf) return err_sys(err, -ENOMEM, "buffer");
    for (int i = 0; i < streams->parts && !rc; i++)
        for (const redset_part *p = &streams->part[i]; !rc && p->done < p->length;) {
            uint64_t left = p->length - p->done;
            rc = redset_streams_read(streams, streams->data + i, buf,
                                     left < piece ? (size_t)left : piece, err);
        }
    free(buf);
    return rc;
}

int redset_streams_verify(redset_streams *streams, const char *name,
                          const redset_header *header, size_t piece, redset_error *err)
{
    int rc = streams->unchecked ? 0 : streams_skim_parts(streams, piece, err);
    if (!rc && !streams->unchecked)
        rc = redset_file_stream_skim(streams->files, piece, err);
    if (!rc) rc = redset_file_stream_check_sizes(streams->files, err);
    if (!rc) rc = redset_file_stream_compare(streams->files, err);
    if (rc) return rc;
    uint32_t crc = redset_streams_crc(streams);
    if (crc == header->crc) return 0;
    return err_set(err, -EBADMSG, "data of %s has checksum %08x, not %08x", name, crc,
                   header->crc);
}

/* ---- from temporary to final names ---- */

int redset_streams_complete(redset_streams *streams, redset_header *header,
                            redset_error *err)
{
    int rc = redset_file_output_complete(streams->files, err);
    if (rc) return rc;
    header->crc = redset_streams_crc(streams);
    rc = redset_redundancy_file_complete(&streams->out, header->tree, header->crc, err);
    if (rc) return rc;
    header->size = streams->out.header;
    return 0;
}

int redset_streams_clear_way(const redset_streams *streams, redset_error *err)
{
    int rc = redset_file_output_clear_way(streams->files, err);
    return rc ? rc : redset_redundancy_file_clear_way(&streams->out, err);
}

int redset_streams_commit(redset_streams *streams, redset_error *err)
{
    int rc = redset_file_output_commit(streams->files, err);
    return rc ? rc : redset_redundancy_file_commit(&streams->out, err);
}
