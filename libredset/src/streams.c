/* SPDX-License-Identifier: BSD-3-Clause */
/* The streams of one member on its storage: data in its files, redundancy in parts of its
 * redundancy file, each read or written from its start to its end with checksums on the
 * way. */
#include "src/redset_private.h"

#include "common/beneath.h"
#include "common/crc32.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <zlib.h>

int redset_streams_init(const redset_header *header, redset_streams *streams, char *err)
{
    int parts = header->shape.failures;
    uint64_t offset = 0;
    redset_part *part = calloc((size_t)parts + 1, sizeof *part);
    if (!part) return err_sys(err, -ENOMEM, "%d parts of redundancy data", parts);
    for (int i = 0; i < parts; i++) {
        part[i].offset = offset;
        part[i].length = redset_part_length(header, i);
        offset += part[i].length;
    }
    *streams = (redset_streams){.data = redset_data_streams(&header->shape),
                                .parts = parts,
                                .part = part,
                                .unchecked = header->layout.unchecked,
                                .fd = -1};
    streams->chunk =
        redset_is_coded(&header->shape) ? header->chunk : header->list[0].size;
    return 0;
}

int redset_streams_open(int dir, const char *name, const redset_header *header,
                        redset_streams *streams, char *err)
{
    int rc = redset_streams_init(header, streams, err);
    if (rc) return rc;
    streams->start = header->size;
    rc = beneath_open(dir, name, O_RDONLY, 0, &streams->fd, err);
    if (!rc)
        rc = redset_logical_open(dir, &header->list[0], streams->data, streams->chunk,
                                 &streams->logical, err);
    if (rc) redset_streams_done(streams);
    return rc;
}

void redset_streams_done(redset_streams *streams)
{
    redset_logical_free(streams->logical);
    io_close(&streams->fd);
    free(streams->part);
    *streams = (redset_streams){.fd = -1};
}

static void count_bytes(const redset_streams *streams, redset_part *part, const void *buf,
                        size_t size)
{
    if (!streams->unchecked) part->crc = crc32_add(part->crc, buf, size);
    part->done += size;
}

int redset_streams_read(redset_streams *streams, int stream, void *buf, size_t size,
                        char *err)
{
    if (stream < streams->data)
        return redset_logical_read(streams->logical, stream, buf, size, err);
    redset_part *part = &streams->part[stream - streams->data];
    uint64_t at = streams->start + part->offset + part->done;
    ssize_t got = io_pread(streams->fd, buf, size, (off_t)at);
    if (got < 0) return err_sys(err, (int)got, "read redundancy data");
    if ((size_t)got < size)
        return err_set(err, -ESTALE, "redundancy file became shorter");
    count_bytes(streams, part, buf, size);
    return 0;
}

int redset_streams_write(redset_streams *streams, int stream, const void *buf,
                         size_t size, char *err)
{
    if (stream < streams->data)
        return redset_output_write(streams->logical, stream, buf, size, err);
    redset_part *part = &streams->part[stream - streams->data];
    int rc =
        redset_store_write(streams->store, part->offset + part->done, buf, size, err);
    if (!rc) count_bytes(streams, part, buf, size);
    return rc;
}

static int skim_part(redset_streams *streams, int i, unsigned char *buf, size_t piece,
                     char *err)
{
    int rc = 0;
    const redset_part *part = &streams->part[i];
    while (!rc && part->done < part->length) {
        uint64_t left = part->length - part->done;
        size_t n = left < piece ? (size_t)left : piece;
        rc = redset_streams_read(streams, streams->data + i, buf, n, err);
    }
    return rc;
}

int redset_streams_skim(redset_streams *streams, size_t piece, char *err)
{
    int rc = 0;
    unsigned char *buf = malloc(piece);
    if (!buf) return err_sys(err, -ENOMEM, "buffer");
    for (int i = 0; i < streams->parts && !rc; i++)
        rc = skim_part(streams, i, buf, piece, err);
    free(buf);
    return !rc && streams->logical ? redset_logical_skim(streams->logical, piece, err)
                                   : rc;
}

uint32_t redset_streams_crc(const redset_streams *streams)
{
    uLong crc = 0;
    for (int i = 0; i < streams->parts; i++)
        crc = crc32_combine(crc, streams->part[i].crc, (z_off_t)streams->part[i].length);
    return (uint32_t)crc;
}
