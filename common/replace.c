/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic, durable replacement of a file; see replace.h. */
#include "common/replace.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

/* The kernel gives so few bytes all at once. */
int replace_draw(uint64_t *random)
{
    ssize_t n;
    do
        n = getrandom(random, sizeof *random, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n < (ssize_t)sizeof *random ? -EIO : 0;
}

static int create_temporary(replacement *r, mode_t mode)
{
    for (int tries = 0; tries < 16; tries++) {
        uint64_t random;
        int rc = replace_draw(&random);
        if (rc) return rc;
        snprintf(r->temporary, sizeof r->temporary, ".%016llx.tmp",
                 (unsigned long long)random);
        r->fd = io_open(r->parent, r->temporary,
                        O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (r->fd != -EEXIST) return r->fd < 0 ? r->fd : 0;
    }
    return -EEXIST;
}

int replace_begin(int dir, const char *name, mode_t mode, replacement *r, char *err)
{
    const char *last;
    int rc = beneath_open_parent(dir, name, 0, &r->parent, &last, err);
    if (rc) return rc;
    snprintf(r->final, sizeof r->final, "%s", last);
    rc = create_temporary(r, mode);
    if (rc) {
        io_close(&r->parent);
        return err_sys(err, rc, "create a temporary file for %s", name);
    }
    return 0;
}

static int rename_over(const replacement *r)
{
    return renameat(r->parent, r->temporary, r->parent, r->final) ? -errno : 0;
}

/* Not every file system knows the flag (NFS does not); a link does not replace either. */
static int rename_new(const replacement *r)
{
    if (renameat2(r->parent, r->temporary, r->parent, r->final, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS) return -errno;
    if (linkat(r->parent, r->temporary, r->parent, r->final, 0) != 0) return -errno;
    unlinkat(r->parent, r->temporary, 0);
    return 0;
}

static int commit(replacement *r, int (*put)(const replacement *), char *err)
{
    int rc = io_fsync(r->fd);
    if (rc) {
        replace_abort(r);
        return err_sys(err, rc, "fsync %s", r->final);
    }
    rc = io_close(&r->fd);
    if (rc) {
        replace_abort(r);
        return err_sys(err, rc, "close %s", r->final);
    }
    rc = put(r);
    if (rc) {
        replace_abort(r);
        return err_sys(err, rc, "rename to %s", r->final);
    }
    rc = io_fsync(r->parent);
    io_close(&r->parent);
    return rc ? err_sys(err, rc, "fsync of the folder of %s (the file is in place)",
                        r->final)
              : 0;
}

int replace_commit(replacement *r, char *err)
{
    return commit(r, rename_over, err);
}

int replace_commit_new(replacement *r, char *err)
{
    return commit(r, rename_new, err);
}

void replace_abort(replacement *r)
{
    io_close(&r->fd);
    unlinkat(r->parent, r->temporary, 0);
    io_close(&r->parent);
}

int replace_bytes(int dir, const char *name, mode_t mode, const void *data, size_t size,
                  char *err)
{
    replacement r;
    int rc = replace_begin(dir, name, mode, &r, err);
    if (rc) return rc;
    rc = io_write(r.fd, data, size);
    if (rc) {
        replace_abort(&r);
        return err_sys(err, rc, "write %s", name);
    }
    return replace_commit(&r, err);
}
