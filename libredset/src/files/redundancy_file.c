/* SPDX-License-Identifier: BSD-3-Clause */
/* A redundancy file while it is written. */
#include "src/files/redundancy_file.h"

#include "common/errtext.h"
#include "common/io.h"
#include "common/record_size.h"
#include "src/files/file_output.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <unistd.h>

int redset_redundancy_file_begin(int dir, const char *name, int spare, kvtree *header,
                                 redset_redundancy_file *file, redset_error *err)
{
    redset_redundancy_file s = {.out.dir = dir, .name = name};
    batch_spare old = {.dir = spare, .name = name};
    int rc = batch_open_over(&s.out, name, 0600, spare < 0 ? NULL : &old, &s.fd, err);
    ssize_t size = rc ? rc : kvtree_fd_write(s.fd, RECORD_SIZE_FILES, header, err);
    if (size < 0) {
        batch_drop(&s.out);
        return rc ? rc : err_wrap(err, (int)size, "write header of %s", name);
    }
    s.reused = old.reused;
    s.header = (uint64_t)size;
    *file = s;
    return 0;
}

int redset_redundancy_file_write(redset_redundancy_file *file, uint64_t offset,
                                 const void *buf, size_t size, redset_error *err)
{
    int rc = io_pwrite(file->fd, buf, size, (off_t)(file->header + offset));
    if (offset + size > file->data) file->data = offset + size;
    return rc ? err_sys(err, rc, "write %s", file->name) : 0;
}

int redset_redundancy_file_complete(redset_redundancy_file *file, kvtree *header,
                                    uint32_t crc, redset_error *err)
{
    bool checked = kvtree_get(header, "CRC") != NULL;
    int rc = checked ? kvtree_util_set_crc32(header, "CRC", crc) : 0;
    if (rc) return err_sys(err, rc, "header of %s", file->name);
    if (lseek(file->fd, 0, SEEK_SET) != 0)
        return err_sys(err, -errno, "seek in %s", file->name);
    ssize_t size = kvtree_fd_write(file->fd, RECORD_SIZE_FILES, header, err);
    if (size < 0) return err_wrap(err, (int)size, "write header of %s", file->name);
    if ((uint64_t)size != file->header)
        return err_set(err, -EIO, "header of %s changed its length", file->name);
    if (file->reused && ftruncate(file->fd, (off_t)(file->header + file->data)) != 0)
        return err_sys(err, -errno, "cut %s to its size", file->name);
    return file->unsynced ? 0 : batch_sync(&file->out, err);
}

int redset_redundancy_file_clear_way(const redset_redundancy_file *file,
                                     redset_error *err)
{
    return redset_clear_way(file->out.dir, file->name, false, err);
}

int redset_redundancy_file_retire(const redset_redundancy_file *file, redset_error *err)
{
    int dir = file->out.dir, rc = redset_redundancy_file_clear_way(file, err);
    if (rc) return rc;
    if (unlinkat(dir, file->name, 0) != 0)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "remove %s", file->name);
    rc = file->unsynced ? 0 : io_fsync(dir);
    return rc ? err_sys(err, rc, "fsync of the directory of %s", file->name) : 0;
}

int redset_redundancy_file_commit(redset_redundancy_file *file, redset_error *err)
{
    if (file->unsynced) file->out.durability = BATCH_UNSYNCED;
    int rc = batch_commit(&file->out, err);
    batch_drop(&file->out);
    return rc;
}

void redset_redundancy_file_abort(redset_redundancy_file *file)
{
    batch_drop(&file->out);
}
