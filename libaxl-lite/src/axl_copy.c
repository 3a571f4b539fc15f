/* SPDX-License-Identifier: BSD-3-Clause */
/* One file from here to there: the data passes once, into a file with a temporary name
 * beside the destination, which is synced and renamed when it is whole. With a checksum
 * the data passes through a small buffer; without one, the kernel copies. */
#include "src/axl_private.h"

#include "common/crc32.h"
#include "common/folder.h"
#include "common/io.h"
#include "common/replace.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Between read, CRC and write the bytes should stay in the processor's second-level
 * cache. From 64 kB to 1 MB this was equally fast; with 16 kB the system calls cost 10%
 * more, with 4 MB the trips to memory 15% to 30%. */
#define BUFFER_SIZE ((size_t)256 * 1024)

/* Most bytes that the kernel is asked to copy in one call. */
#define KERNEL_STEP ((uint64_t)1 << 30)

typedef struct copy {
    const char *source, *destination;
    int in, out;
    uint64_t size; /* of the source when it was opened */
    uint64_t done; /* bytes copied */
    uint32_t crc;  /* of them */
} copy;

int axl_open_source(const char *path, int *fd, char *err)
{
    struct stat st;
    /* O_NONBLOCK: opening a pipe must not wait for somebody who writes to it */
    int in = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (in < 0 && errno == ELOOP)
        return err_set(err, -ELOOP, "%s is a symbolic link, or lies in a loop of them",
                       path);
    if (in < 0) return err_sys(err, -errno, "open %s", path);
    int rc = fstat(in, &st) == 0 ? 0 : err_sys(err, -errno, "stat %s", path);
    if (rc == 0 && !S_ISREG(st.st_mode))
        rc = err_set(err, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL,
                     "%s is not a regular file", path);
    if (rc) {
        io_close(&in);
        return rc;
    }
    *fd = in;
    return 0;
}

/* Lets the bytes from the present offset to c->size pass through a buffer; out may be -1.
 * Stops early where the source ends early. */
static int pass_by_buffer(copy *c, int checksum, char *err)
{
    char *buffer = malloc(BUFFER_SIZE);
    if (!buffer) return err_sys(err, -ENOMEM, "read %s", c->source);
    int rc = 0;
    while (rc == 0 && c->done < c->size) {
        size_t want =
            c->size - c->done < BUFFER_SIZE ? (size_t)(c->size - c->done) : BUFFER_SIZE;
        ssize_t n = io_read(c->in, buffer, want);
        if (n < 0) rc = err_sys(err, (int)n, "read %s", c->source);
        if (n <= 0) break;
        if (checksum) c->crc = crc32_add(c->crc, buffer, (size_t)n);
        if (c->out != -1) rc = io_write(c->out, buffer, (size_t)n);
        if (rc) err_sys(err, rc, "write %s", c->destination);
        c->done += (uint64_t)n;
    }
    free(buffer);
    return rc;
}

/* Not all file systems can, nor between all of them; and some say "0 bytes" before the
 * end of the file. */
static int kernel_declines(ssize_t n, int error)
{
    return n == 0 || error == EXDEV || error == ENOSYS || error == EINVAL ||
           error == EOPNOTSUPP;
}

static int pass_by_kernel(copy *c, char *err)
{
    while (c->done < c->size) {
        uint64_t left = c->size - c->done;
        ssize_t n = copy_file_range(c->in, NULL, c->out, NULL,
                                    (size_t)(left < KERNEL_STEP ? left : KERNEL_STEP), 0);
        if (n > 0)
            c->done += (uint64_t)n;
        else if (kernel_declines(n, errno))
            return pass_by_buffer(c, 0, err); /* goes on at the offset reached */
        else if (errno != EINTR)
            return err_sys(err, -errno, "copy %s to %s", c->source, c->destination);
    }
    return 0;
}

static int stat_source(const copy *c, struct stat *st, char *err)
{
    return fstat(c->in, st) == 0 ? 0 : err_sys(err, -errno, "stat %s", c->source);
}

static int pass_unchanged(copy *c, unsigned flags, char *err)
{
    struct stat before, after;
    int rc = stat_source(c, &before, err);
    if (rc) return rc;
    c->size = (uint64_t)before.st_size;
    rc = c->out == -1 || flags & AXL_CHECKSUM ? pass_by_buffer(c, 1, err)
                                              : pass_by_kernel(c, err);
    if (rc) return rc;
    rc = stat_source(c, &after, err);
    if (rc) return rc;
    if (c->done != c->size || after.st_size != before.st_size ||
        after.st_mtim.tv_sec != before.st_mtim.tv_sec ||
        after.st_mtim.tv_nsec != before.st_mtim.tv_nsec)
        return err_set(err, -ESTALE, "%s changed while it was read", c->source);
    if (c->out != -1 && flags & AXL_KEEP_MODE && fchmod(c->out, before.st_mode & 0777))
        return err_sys(err, -errno, "set the mode of %s", c->destination);
    return 0;
}

/* Opens the folder of path, made where it is missing; *last is the name in it. */
static int open_parent(const char *path, int *folder, const char **last, char *err)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    if (!path[length]) return err_set(err, -EISDIR, "\"%s\" is no file name", path);
    char *parent = strndup(path, length);
    if (!parent) return err_sys(err, -ENOMEM, "open the folder of %s", path);
    int rc = folder_make(parent, 0777, folder, err);
    free(parent);
    *last = path + length;
    return rc;
}

/* A rename would find this out as well, but only after all the data was written. */
static int refuse_folder(int folder, const char *last, const char *path, char *err)
{
    struct stat st;
    if (fstatat(folder, last, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode))
        return 0;
    return err_set(err, -EISDIR, "%s is a folder", path);
}

static int copy_into(copy *c, int folder, const char *last, unsigned flags, char *err)
{
    replacement r;
    int rc = refuse_folder(folder, last, c->destination, err);
    if (rc) return rc;
    rc = replace_begin(folder, last, flags & AXL_KEEP_MODE ? 0600 : 0666, &r, err);
    if (rc) return err_wrap(err, rc, "copy to %s", c->destination);
    c->out = r.fd;
    rc = pass_unchanged(c, flags, err);
    if (rc) {
        replace_abort(&r);
        return rc;
    }
    rc = replace_commit(&r, err);
    return rc ? err_wrap(err, rc, "copy to %s", c->destination) : 0;
}

static void give(const copy *c, unsigned flags, uint64_t *size, uint32_t *crc)
{
    if (size) *size = c->size;
    if (crc && flags & AXL_CHECKSUM) *crc = c->crc;
}

int axl_copy(const char *source, const char *destination, unsigned flags, uint64_t *size,
             uint32_t *crc, char *err)
{
    copy c = {.source = source, .destination = destination, .in = -1, .out = -1};
    const char *last = NULL;
    int folder = -1;
    int rc = axl_open_source(source, &c.in, err);
    if (rc == 0) rc = open_parent(destination, &folder, &last, err);
    if (rc == 0) rc = copy_into(&c, folder, last, flags, err);
    io_close(&folder);
    io_close(&c.in);
    if (rc == 0) give(&c, flags, size, crc);
    return rc;
}

int axl_checksum(const char *path, uint64_t *size, uint32_t *crc, char *err)
{
    copy c = {.source = path, .in = -1, .out = -1};
    int rc = axl_open_source(path, &c.in, err);
    if (rc == 0) rc = pass_unchanged(&c, AXL_CHECKSUM, err);
    io_close(&c.in);
    if (rc == 0) give(&c, AXL_CHECKSUM, size, crc);
    return rc;
}
