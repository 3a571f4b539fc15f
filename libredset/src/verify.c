/* SPDX-License-Identifier: BSD-3-Clause */
/* Is all that a header promises really there? Sizes and checksums of its process's files
 * and of its own redundancy data. */
#include "src/redset_private.h"

#include "common/beneath.h"
#include "common/crc32.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

bool redset_is_loss(int code)
{
    return code < 0 && code != -ENOMEM && code != -EMFILE && code != -ENFILE;
}

int redset_logical_verify(redset_logical *logical, char *err)
{
    const redset_list *list = logical->list;
    uint32_t *crcs = calloc((size_t)list->count + 1, sizeof *crcs);
    if (!crcs) return err_sys(err, -ENOMEM, "checksums");
    int rc = redset_logical_finish(logical, crcs, err);
    for (int i = 0; !rc && i < list->count; i++)
        if (crcs[i] != list->files[i].crc)
            rc = err_set(err, -EBADMSG, "%s has checksum %08x, not %08x",
                         list->files[i].name, crcs[i], list->files[i].crc);
    free(crcs);
    return rc;
}

static int verify_files(int dir, const redset_list *list, unsigned char *buf, char *err)
{
    redset_logical *logical;
    int rc = redset_logical_open(dir, list, 1, list->size, &logical, err);
    if (rc) return rc;
    for (uint64_t done = 0; !rc && done < list->size; done += REDSET_PIECE)
        rc = redset_logical_read(logical, 0, buf, REDSET_PIECE, err);
    if (!rc) rc = redset_logical_verify(logical, err);
    redset_logical_free(logical);
    return rc;
}

static int data_crc(int fd, const redset_header *header, unsigned char *buf,
                    uint32_t *crc, char *err)
{
    for (uint64_t done = 0; done < header->chunk;) {
        uint64_t left = header->chunk - done;
        size_t n = left < REDSET_PIECE ? (size_t)left : REDSET_PIECE;
        ssize_t got = io_pread(fd, buf, n, (off_t)(header->size + done));
        if (got < 0) return err_sys(err, (int)got, "read redundancy data");
        if ((size_t)got < n) return err_set(err, -ESTALE, "redundancy data is cut off");
        *crc = crc32_add(*crc, buf, n);
        done += n;
    }
    return 0;
}

static int verify_data(int dir, const char *name, const redset_header *header,
                       unsigned char *buf, char *err)
{
    uint32_t crc = 0;
    int fd, rc = beneath_open(dir, name, O_RDONLY, 0, &fd, err);
    if (rc) return rc;
    rc = data_crc(fd, header, buf, &crc, err);
    io_close(&fd);
    if (rc) return err_wrap(err, rc, "%s", name);
    if (crc != header->crc)
        return err_set(err, -EBADMSG, "data of %s has checksum %08x, not %08x", name, crc,
                       header->crc);
    return 0;
}

int redset_verify(int dir, const char *name, const redset_header *header, char *err)
{
    unsigned char *buf = malloc(REDSET_PIECE);
    if (!buf) return err_sys(err, -ENOMEM, "buffer");
    int rc = verify_files(dir, &header->current, buf, err);
    if (!rc) rc = verify_data(dir, name, header, buf, err);
    free(buf);
    return rc;
}
