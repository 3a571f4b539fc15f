/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are being rebuilt: a logical file that is written instead of read.
 *
 * The bytes go to temporary files at the top of the folder. Only when all have the right
 * checksum and are synced are folders made and names given, so that a failure before that
 * leaves nothing behind. */
#include "src/redset_private.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/others.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int create_all(redset_logical *l, char *err)
{
    for (int i = 0; i < l->list->count; i++) {
        char temporary[64];
        redset_logical_temporary(l, i, temporary);
        int fd = io_open(l->dir, temporary,
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return err_sys(err, fd, "create a temporary file for %s",
                           l->list->files[i].name);
        l->created = i + 1;
        int rc = io_close(&fd);
        if (rc) return err_sys(err, rc, "close %s", temporary);
    }
    return 0;
}

int redset_output_create(int dir, const redset_list *list, int chunks, uint64_t chunk,
                         redset_logical **logical, char *err)
{
    redset_logical *l;
    int rc = redset_logical_open(dir, list, chunks, chunk, &l, err);
    if (rc) return rc;
    l->writing = true;
    rc = replace_draw(&l->unique);
    if (rc) err_sys(err, rc, "random name");
    if (!rc) rc = create_all(l, err);
    if (rc) {
        redset_logical_free(l);
        return rc;
    }
    *logical = l;
    return 0;
}

static int close_all(redset_logical *l, char *err)
{
    int result = 0;
    for (int i = 0; i < REDSET_OPEN_FILES; i++) {
        int rc = io_close(&l->slots[i].fd);
        if (rc && !result)
            result = err_sys(err, rc, "close %s", l->list->files[l->slots[i].file].name);
    }
    return result;
}

static int sync_temporary(const redset_logical *l, int i, char *err)
{
    char temporary[64];
    redset_logical_temporary(l, i, temporary);
    int fd = io_open(l->dir, temporary, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0) return err_sys(err, fd, "open %s", temporary);
    int rc = io_fsync(fd), closed = io_close(&fd);
    if (!rc) rc = closed;
    return rc ? err_sys(err, rc, "fsync %s", l->list->files[i].name) : 0;
}

static int compare_crcs(const redset_logical *l, char *err)
{
    int rc = 0;
    uint32_t *crcs = calloc((size_t)l->list->count + 1, sizeof *crcs);
    if (!crcs) return err_sys(err, -ENOMEM, "checksums");
    redset_logical_crcs(l, crcs);
    for (int i = 0; i < l->list->count && !rc; i++)
        if (crcs[i] != l->list->files[i].crc)
            rc = err_set(err, -EBADMSG,
                         "%s was rebuilt with checksum %08x, not %08x: some redundancy "
                         "data is not of this encode",
                         l->list->files[i].name, crcs[i], l->list->files[i].crc);
    free(crcs);
    return rc;
}

int redset_output_complete(redset_logical *logical, char *err)
{
    int rc = close_all(logical, err);
    if (!rc) rc = compare_crcs(logical, err);
    for (int i = 0; !rc && i < logical->list->count; i++)
        rc = sync_temporary(logical, i, err);
    return rc;
}

/* Others may have set aside since then what was seen, a folder or not, and have put there
 * what belongs there. */
static int move_aside(int parent, const char *last, const char *aside, bool folder)
{
    struct stat st;
    if (renameat(parent, last, parent, aside) != 0) return errno == ENOENT ? 0 : -errno;
    if (fstatat(parent, aside, &st, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
    if (!S_ISDIR(st.st_mode) == !folder) return 0;
    return renameat(parent, aside, parent, last) != 0 ? -errno : 0;
}

/* It is not ours to remove. */
static int set_aside(int dir, const char *name, bool folder, bool shared, char *err)
{
    const char *last;
    char aside[256];
    uint64_t random;
    int parent, rc = replace_draw(&random);
    if (rc) return err_sys(err, rc, "random name");
    rc = beneath_open_parent(dir, name, 0, &parent, &last, err);
    if (rc) return rc;
    snprintf(aside, sizeof aside, "%.200s.%016llx.old", last, (unsigned long long)random);
    if (shared) rc = others_reach(dir, parent, name, err);
    if (!rc && (rc = move_aside(parent, last, aside, folder)) != 0)
        err_sys(err, rc, "rename %s to %s", name, aside);
    io_close(&parent);
    return rc;
}

int redset_clear_way(int dir, const char *name, bool shared, char *err)
{
    struct stat st;
    for (const char *end = strchr(name, '/'); end; end = strchr(end + 1, '/')) {
        char folder[BENEATH_NAME_MAX];
        snprintf(folder, sizeof folder, "%.*s", (int)(end - name), name);
        int rc = beneath_stat(dir, folder, &st, err);
        if (rc) return rc == -ENOENT ? 0 : rc;
        if (!S_ISDIR(st.st_mode)) return set_aside(dir, folder, false, shared, err);
    }
    int rc = beneath_stat(dir, name, &st, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    return S_ISDIR(st.st_mode) ? set_aside(dir, name, true, shared, err) : 0;
}

/* Renames temporary file i, into a folder that is made where missing. */
static int give_name(redset_logical *l, int i, char *err)
{
    const char *name = l->list->files[i].name, *last;
    char temporary[64];
    int parent, rc = beneath_open_parent(l->dir, name, 0700, &parent, &last, err);
    if (rc) return rc;
    redset_logical_temporary(l, i, temporary);
    if (l->shared) rc = others_reach(l->dir, parent, name, err);
    if (!rc && renameat(l->dir, temporary, parent, last) != 0)
        rc = err_sys(err, -errno, "rename to %s", name);
    if (!rc) l->committed = i + 1;
    io_close(&parent);
    return rc;
}

/* Length of the folder part of name, without the slash. */
static size_t folder_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) : 0;
}

/* Syncs the folder of name and those above it, down to dir itself. */
static int sync_folders(int dir, const char *name, char *err)
{
    char path[BENEATH_NAME_MAX];
    snprintf(path, sizeof path, "%s", name);
    for (;;) {
        const char *last;
        int parent, rc = beneath_open_parent(dir, path, 0, &parent, &last, err);
        if (rc) return rc;
        rc = io_fsync(parent);
        io_close(&parent);
        size_t length = folder_length(path);
        if (rc) return err_sys(err, rc, "fsync of the folder of %s", path);
        if (length == 0) return 0;
        path[length] = 0;
    }
}

int redset_output_clear_way(const redset_logical *logical, char *err)
{
    int rc = 0;
    for (int i = 0; i < logical->list->count && !rc; i++)
        rc = redset_clear_way(logical->dir, logical->list->files[i].name, logical->shared,
                              err);
    return rc;
}

int redset_output_commit(redset_logical *logical, char *err)
{
    const redset_list *list = logical->list;
    int rc = 0;
    for (int i = 0; i < list->count && !rc; i++)
        rc = give_name(logical, i, err);
    if (rc) return rc;
    for (int i = 0; i < list->count; i++) {
        const char *name = list->files[i].name;
        const char *before = i > 0 ? list->files[i - 1].name : NULL;
        size_t length = folder_length(name);
        /* files of one folder mostly come in a row: sync it once */
        if (before && folder_length(before) == length && !strncmp(before, name, length))
            continue;
        rc = sync_folders(logical->dir, name, err);
        if (rc) return rc;
    }
    return 0;
}
