/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are rebuilt: temporary files, checksums, and final names. */
#include "src/files/file_output.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/others.h"
#include "common/replace.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int file_output_create_all(redset_file_stream *l, char *err)
{
    for (int i = 0; i < l->list->count; i++) {
        char temporary[64];
        redset_file_stream_temporary(l, i, temporary);
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

int redset_file_output_create(int dir, const redset_list *list, int chunks,
                              uint64_t chunk, redset_file_stream **stream, char *err)
{
    redset_file_stream *l;
    int rc = redset_file_stream_open(dir, list, chunks, chunk, &l, err);
    if (rc) return rc;
    l->writing = true;
    rc = replace_draw(&l->unique);
    if (rc) err_sys(err, rc, "random name");
    if (!rc) rc = file_output_create_all(l, err);
    if (rc) {
        redset_file_stream_free(l);
        return rc;
    }
    *stream = l;
    return 0;
}

static int file_output_close(redset_file_stream *l, char *err)
{
    int result = 0;
    for (int i = 0; i < REDSET_OPEN_FILES; i++) {
        int rc = io_close(&l->slots[i].fd);
        if (rc && !result)
            result = err_sys(err, rc, "close %s", l->list->files[l->slots[i].file].name);
    }
    return result;
}

static int file_output_sync(const redset_file_stream *l, int i, char *err)
{
    char temporary[64];
    redset_file_stream_temporary(l, i, temporary);
    int fd = io_open(l->dir, temporary, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0) return err_sys(err, fd, "open %s", temporary);
    int rc = io_fsync(fd), closed = io_close(&fd);
    if (!rc) rc = closed;
    return rc ? err_sys(err, rc, "fsync %s", l->list->files[i].name) : 0;
}

int redset_file_output_complete(redset_file_stream *stream, char *err)
{
    int rc = file_output_close(stream, err);
    if (!rc && redset_file_stream_compare(stream, err) != 0)
        rc = err_wrap(err, -EBADMSG,
                      "some redundancy data is not of this encode, so a rebuilt file is "
                      "wrong");
    for (int i = 0; !rc && i < stream->list->count; i++)
        rc = file_output_sync(stream, i, err);
    return rc;
}

/* Another writer may have set the entry aside meanwhile and have put the right kind, a
 * folder or not, in its place; that one is moved back. */
static int file_output_move_aside(int parent, const char *last, const char *aside,
                                  bool folder)
{
    struct stat st;
    if (renameat(parent, last, parent, aside) != 0) return errno == ENOENT ? 0 : -errno;
    if (fstatat(parent, aside, &st, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
    if (!S_ISDIR(st.st_mode) == !folder) return 0;
    return renameat(parent, aside, parent, last) != 0 ? -errno : 0;
}

/* Renames an entry that this library does not own, and so may not remove. */
static int file_output_set_aside(int dir, const char *name, bool folder, bool shared,
                                 char *err)
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
    if (!rc && (rc = file_output_move_aside(parent, last, aside, folder)) != 0)
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
        if (!S_ISDIR(st.st_mode))
            return file_output_set_aside(dir, folder, false, shared, err);
    }
    int rc = beneath_stat(dir, name, &st, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    return S_ISDIR(st.st_mode) ? file_output_set_aside(dir, name, true, shared, err) : 0;
}

/* Renames temporary file i; missing folders are created. */
static int file_output_rename(redset_file_stream *l, int i, char *err)
{
    const char *name = l->list->files[i].name, *last;
    char temporary[64];
    int parent, rc = beneath_open_parent(l->dir, name, 0700, &parent, &last, err);
    if (rc) return rc;
    redset_file_stream_temporary(l, i, temporary);
    if (l->shared) rc = others_reach(l->dir, parent, name, err);
    if (!rc && renameat(l->dir, temporary, parent, last) != 0)
        rc = err_sys(err, -errno, "rename to %s", name);
    if (!rc) l->committed = i + 1;
    io_close(&parent);
    return rc;
}

/* Length of the folder part of name, without the slash. */
static size_t file_output_folder_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) : 0;
}

/* Syncs the folder of name and those above it, down to dir itself. */
static int file_output_sync_folders(int dir, const char *name, char *err)
{
    char path[BENEATH_NAME_MAX];
    snprintf(path, sizeof path, "%s", name);
    for (;;) {
        const char *last;
        int parent, rc = beneath_open_parent(dir, path, 0, &parent, &last, err);
        if (rc) return rc;
        rc = io_fsync(parent);
        io_close(&parent);
        size_t length = file_output_folder_length(path);
        if (rc) return err_sys(err, rc, "fsync of the folder of %s", path);
        if (length == 0) return 0;
        path[length] = 0;
    }
}

int redset_file_output_clear_way(const redset_file_stream *stream, char *err)
{
    int rc = 0;
    for (int i = 0; i < stream->list->count && !rc; i++)
        rc = redset_clear_way(stream->dir, stream->list->files[i].name, stream->shared,
                              err);
    return rc;
}

int redset_file_output_commit(redset_file_stream *stream, char *err)
{
    const redset_list *list = stream->list;
    int rc = 0;
    for (int i = 0; i < list->count && !rc; i++)
        rc = file_output_rename(stream, i, err);
    if (rc) return rc;
    for (int i = 0; i < list->count; i++) {
        const char *name = list->files[i].name;
        const char *before = i > 0 ? list->files[i - 1].name : NULL;
        size_t length = file_output_folder_length(name);
        /* files of one folder are mostly consecutive: sync it once */
        if (before && file_output_folder_length(before) == length &&
            !strncmp(before, name, length))
            continue;
        rc = file_output_sync_folders(stream->dir, name, err);
        if (rc) return rc;
    }
    return 0;
}
