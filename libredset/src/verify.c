/* SPDX-License-Identifier: BSD-3-Clause */
/* Is all that a header promises really there? Sizes and checksums of its process's files
 * and of its own redundancy data. */
#include "src/redset_private.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include <errno.h>
#include <stdlib.h>

enum redset_loss redset_loss_of(int code)
{
    if (code >= 0 || code == -ENOMEM || code == -EMFILE || code == -ENFILE ||
        code == -ECOMM)
        return 0;
    return err_is_damage(code) ? REDSET_LOST : REDSET_UNREAD;
}

/* As redset_logical_finish, and compares the checksums with the list: -EBADMSG. */
static int verify_logical(redset_logical *logical, char *err)
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

int redset_sizes_check(int dir, const redset_list *list, char *err)
{
    for (int i = 0; i < list->count; i++) {
        struct stat st;
        const redset_file *file = &list->files[i];
        int rc = beneath_stat(dir, file->name, &st, err);
        if (rc) return rc;
        if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != file->size)
            return err_set(err, -EBADMSG, "%s is no file of %llu bytes", file->name,
                           (unsigned long long)file->size);
    }
    return 0;
}

int redset_streams_verify(redset_streams *streams, const char *name,
                          const redset_header *header, size_t piece, char *err)
{
    int rc = streams->unchecked ? 0 : redset_streams_skim(streams, piece, err);
    if (!rc) rc = verify_logical(streams->logical, err);
    if (rc) return rc;
    uint32_t crc = redset_streams_crc(streams);
    if (crc == header->crc) return 0;
    return err_set(err, -EBADMSG, "data of %s has checksum %08x, not %08x", name, crc,
                   header->crc);
}
