/* SPDX-License-Identifier: BSD-3-Clause */
/* A redundancy file that is being written: header first, then the redundancy data as it
 * is computed, then the header again with the checksums that are known by then. */
#include "src/redset_private.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <unistd.h>

int redset_store_begin(int dir, const char *name, int spare, kvtree *header,
                       redset_store *store, char *err)
{
    redset_store s = {.open = true, .name = name};
    int rc = replace_begin_over(dir, name, spare, spare < 0 ? NULL : name, 0600, &s.file,
                                &s.reused, err);
    if (rc) return rc;
    ssize_t size = kvtree_write_fd(s.file.fd, header, err);
    if (size < 0) {
        replace_abort(&s.file);
        return err_wrap(err, (int)size, "write header of %s", name);
    }
    s.header = (uint64_t)size;
    *store = s;
    return 0;
}

int redset_store_write(redset_store *store, uint64_t offset, const void *buf, size_t size,
                       char *err)
{
    int rc = io_pwrite(store->file.fd, buf, size, (off_t)(store->header + offset));
    if (offset + size > store->data) store->data = offset + size;
    return rc ? err_sys(err, rc, "write %s", store->name) : 0;
}

int redset_store_complete(redset_store *store, kvtree *header, uint32_t crc, char *err)
{
    bool checked = kvtree_get(header, "CRC") != NULL;
    int rc = checked ? kvtree_util_set_crc32(header, "CRC", crc) : 0;
    if (rc) return err_sys(err, rc, "header of %s", store->name);
    if (lseek(store->file.fd, 0, SEEK_SET) != 0)
        return err_sys(err, -errno, "seek in %s", store->name);
    ssize_t size = kvtree_write_fd(store->file.fd, header, err);
    if (size < 0) return err_wrap(err, (int)size, "write header of %s", store->name);
    if ((uint64_t)size != store->header)
        return err_set(err, -EIO, "header of %s changed its length", store->name);
    if (store->reused &&
        ftruncate(store->file.fd, (off_t)(store->header + store->data)) != 0)
        return err_sys(err, -errno, "cut %s to its size", store->name);
    rc = store->unsynced ? 0 : io_fsync(store->file.fd);
    return rc ? err_sys(err, rc, "fsync %s", store->name) : 0;
}

int redset_store_clear_way(const redset_store *store, char *err)
{
    return redset_clear_way(store->file.parent, store->file.final, false, err);
}

int redset_store_retire(const redset_store *store, char *err)
{
    int rc = redset_store_clear_way(store, err);
    if (rc) return rc;
    if (unlinkat(store->file.parent, store->file.final, 0) != 0)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "remove %s", store->name);
    rc = store->unsynced ? 0 : io_fsync(store->file.parent);
    return rc ? err_sys(err, rc, "fsync of the folder of %s", store->name) : 0;
}

int redset_store_commit(redset_store *store, char *err)
{
    store->open = false;
    return store->unsynced ? replace_commit_unsynced(&store->file, err)
                           : replace_commit_synced(&store->file, err);
}

void redset_store_abort(redset_store *store)
{
    if (store->open) replace_abort(&store->file);
    store->open = false;
}
