/* SPDX-License-Identifier: BSD-3-Clause */
/* Rebuilt files: temporary files, checksums, and final names. */
#include "src/files/file_output.h"

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

static int file_output_create_all(redset_file_stream *l, redset_error *err)
{
    uint64_t random;
    int rc = batch_draw(&random);
    if (rc) return err_sys(err, rc, "random name");
    l->out = (batch){.dir = l->dir, .folders = 0700};
    for (int i = 0; i < l->list->count && !rc; i++) {
        char temporary[64];
        const batch_file file = {.name = l->list->files[i].name,
                                 .from = l->dir,
                                 .temporary = temporary,
                                 .mode = l->list->files[i].mode};
        snprintf(temporary, sizeof temporary, ".%016llx-%d.tmp",
                 (unsigned long long)random, i);
        rc = batch_add(&l->out, &file, err);
    }
    return rc ? rc : batch_make(&l->out, err);
}

int redset_file_output_create(int dir, const redset_list *list, int chunks,
                              uint64_t chunk, redset_file_stream **stream,
                              redset_error *err)
{
    redset_file_stream *l;
    int rc = redset_file_stream_open(dir, list, chunks, chunk, &l, err);
    if (rc) return rc;
    l->writing = true;
    rc = file_output_create_all(l, err);
    if (rc) {
        redset_file_stream_free(l);
        return rc;
    }
    *stream = l;
    return 0;
}

static int file_output_close(redset_file_stream *l, redset_error *err)
{
    int result = 0;
    for (int i = 0; i < REDSET_OPEN_FILES; i++) {
        int rc = io_close(&l->slots[i].fd);
        if (rc && !result)
            result = err_sys(err, rc, "close %s", l->list->files[l->slots[i].file].name);
    }
    return result;
}

int redset_file_output_complete(redset_file_stream *stream, redset_error *err)
{
    int rc = file_output_close(stream, err);
    if (!rc && redset_file_stream_compare(stream, err) != 0)
        rc = err_wrap(err, -EBADMSG,
                      "some redundancy data is not of this encode, so a rebuilt file is "
                      "wrong");
    return rc ? rc : batch_sync(&stream->out, err);
}

/* Another writer may have renamed the entry meanwhile, and put the right kind, a
 * directory or not, in its place; this new entry is moved back. */
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
static int file_output_set_aside(int dir, const char *name, bool folder, int64_t shared,
                                 redset_error *err)
{
    const char *last;
    char aside[256];
    uint64_t random;
    int parent, rc = batch_draw(&random);
    if (rc) return err_sys(err, rc, "random name");
    rc = beneath_open_parent(dir, name, 0, &parent, &last, err);
    if (rc) return rc;
    snprintf(aside, sizeof aside, "%.200s.%016llx.old", last, (unsigned long long)random);
    if (shared) rc = others_reach(shared, dir, parent, name, err);
    if (!rc && (rc = file_output_move_aside(parent, last, aside, folder)) != 0)
        err_sys(err, rc, "rename %s to %s", name, aside);
    io_close(&parent);
    return rc;
}

int redset_clear_way(int dir, const char *name, int64_t shared, redset_error *err)
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

int redset_file_output_clear_way(const redset_file_stream *stream, redset_error *err)
{
    int rc = 0;
    for (int i = 0; i < stream->list->count && !rc; i++)
        rc = redset_clear_way(stream->dir, stream->list->files[i].name,
                              stream->out.shared, err);
    return rc;
}

int redset_file_output_commit(redset_file_stream *stream, redset_error *err)
{
    /* others who could change the list must not determine who can read the file */
    for (size_t i = 0; stream->out.shared && i < stream->out.count; i++)
        stream->out.items[i].mode = 0600;
    return batch_commit(&stream->out, err);
}
