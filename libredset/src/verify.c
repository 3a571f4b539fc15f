/* SPDX-License-Identifier: BSD-3-Clause */
/* Is all that a header promises really there? Sizes and checksums of its process's files
 * and of its own redundancy data. */
#include "src/redset_private.h"

#include "common/errtext.h"
#include <errno.h>
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

static int verify_files(int dir, const redset_list *list, char *err)
{
    redset_logical *logical;
    int rc = redset_logical_open(dir, list, 1, list->size, &logical, err);
    if (rc) return rc;
    rc = redset_logical_skim(logical, REDSET_PIECE, err);
    if (!rc) rc = redset_logical_verify(logical, err);
    redset_logical_free(logical);
    return rc;
}

static int verify_data(int dir, const char *name, const redset_header *header, char *err)
{
    redset_streams streams;
    int rc = redset_streams_open(dir, name, header, &streams, err);
    if (rc) return rc;
    rc = redset_streams_skim(&streams, REDSET_PIECE, err);
    uint32_t crc = redset_streams_crc(&streams);
    redset_streams_done(&streams);
    if (rc) return err_wrap(err, rc, "%s", name);
    if (crc == header->crc) return 0;
    return err_set(err, -EBADMSG, "data of %s has checksum %08x, not %08x", name, crc,
                   header->crc);
}

int redset_verify(int dir, const char *name, const redset_header *header, char *err)
{
    int rc = verify_files(dir, &header->list[0], err);
    return rc ? rc : verify_data(dir, name, header, err);
}
