/* SPDX-License-Identifier: BSD-3-Clause */
/* Files with temporary names: made, named, dropped; see filo_stage.h. */
#include "src/filo_stage.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "src/filo_private.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- names ---- */

void filo_stage_file_name(char temporary[FILO_TEMPORARY_SIZE], uint64_t id, int rank,
                          int i)
{
    snprintf(temporary, FILO_TEMPORARY_SIZE, ".%016" PRIx64 "-%d-%d.tmp", id, rank, i);
}

void filo_stage_container_name(char temporary[FILO_TEMPORARY_SIZE], uint64_t id,
                               const char *container)
{
    snprintf(temporary, FILO_TEMPORARY_SIZE, ".%016" PRIx64 "-%s.tmp", id,
             container + filo_folder_length(container));
}

char *filo_stage_path(const char *folder, const char *name, const char *temporary)
{
    char *path;
    int n = asprintf(&path, "%s%s%.*s%s", folder ? folder : "", folder ? "/" : "",
                     filo_folder_length(name), name, temporary);
    return n < 0 ? NULL : path;
}

/* ---- the list ---- */

int filo_stage_add(filo_stage *stage, const filo_staged *file)
{
    size_t room = stage->count + 1;
    if ((stage->count & (stage->count + 1)) == 0) { /* 0, 1, 3, 7, ...: it doubles */
        filo_staged *items = reallocarray(stage->items, 2 * room, sizeof *stage->items);
        if (!items) return -ENOMEM;
        stage->items = items;
    }
    filo_staged *item = &stage->items[stage->count];
    *item = *file;
    item->made = item->named = false;
    item->name = strdup(file->name);
    if (!item->name) return -ENOMEM;
    stage->count++;
    return 0;
}

void filo_stage_free(filo_stage *stage)
{
    for (size_t i = 0; i < stage->count; i++)
        free(stage->items[i].name);
    free(stage->items);
    *stage = (filo_stage){.dir = stage->dir};
}

/* Opens the folder of a file; *last is the name in it. */
static int enter(const filo_stage *stage, const filo_staged *file, bool make, int *parent,
                 const char **last, char *err)
{
    int length = filo_folder_length(file->name);
    if (stage->dir >= 0)
        return beneath_open_parent(stage->dir, file->name, 0, parent, last, err);
    char *path = strndup(file->name, (size_t)length);
    if (!path) return err_sys(err, -ENOMEM, "open the folder of %s", file->name);
    *last = file->name + length;
    int rc = folder_make(path, make ? 0777 : 0, parent, err);
    free(path);
    return rc;
}

/* ---- made ---- */

/* A rename would find this out as well, but only after all the data was copied, and files
 * before this one have their names. */
static int check_name(int parent, const char *last, const char *name, char *err)
{
    struct stat st;
    if (!*last) return err_set(err, -EISDIR, "\"%s\" is no file name", name);
    if (fstatat(parent, last, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "stat %s", name);
    return S_ISDIR(st.st_mode) ? err_set(err, -EISDIR, "%s is a folder", name) : 0;
}

/* The one who makes it may write it, whatever mode it gets. */
static int make(const filo_staged *file, int parent, char *err)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = io_open(parent, file->temporary, flags, file->mode ? 0600 : 0666);
    if (fd < 0) return err_sys(err, fd, "create a temporary file for %s", file->name);
    int rc = ftruncate(fd, (off_t)file->size) == 0 ? 0 : -errno;
    if (!rc && file->mode && fchmod(fd, file->mode | S_IRUSR | S_IWUSR) != 0) rc = -errno;
    int closed = io_close(&fd);
    if (!rc) rc = closed;
    if (!rc) return 0;
    unlinkat(parent, file->temporary, 0);
    return err_sys(err, rc, "create a temporary file for %s", file->name);
}

/* What an earlier process may have written there stays. It may have died before the file
 * had its size, or after its mode was that which it gets. One that others may do less
 * with was never written to: that process died at once, or it is another file of the
 * user's, to which a colleague has given the name. */
static int keep(const filo_staged *file, int parent, char *err)
{
    struct stat st;
    if (fstatat(parent, file->temporary, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? make(file, parent, err)
                               : err_sys(err, -errno, "stat %s", file->temporary);
    if (!S_ISREG(st.st_mode))
        return err_sys(err, -EEXIST, "create a temporary file for %s", file->name);
    mode_t mode = file->mode | S_IRUSR | S_IWUSR;
    if (beneath_gives_others(&st, file->mode) &&
        unlinkat(parent, file->temporary, 0) == 0)
        return make(file, parent, err);
    int rc = file->mode ? beneath_chmod(parent, file->temporary, mode, err) : 0;
    if (rc) return err_wrap(err, rc, "take over the temporary file of %s", file->name);
    if ((uint64_t)st.st_size != file->size) {
        int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
        int fd = io_open(parent, file->temporary, flags, 0);
        rc = fd < 0 ? fd : ftruncate(fd, (off_t)file->size) == 0 ? 0 : -errno;
        io_close(&fd);
    }
    return rc ? err_sys(err, rc, "take over the temporary file of %s", file->name) : 0;
}

int filo_stage_make(filo_stage *stage, char *err)
{
    for (size_t i = 0; i < stage->count; i++) {
        filo_staged *file = &stage->items[i];
        const char *last;
        int parent, rc = enter(stage, file, true, &parent, &last, err);
        if (rc) return rc;
        rc = check_name(parent, last, file->name, err);
        if (!rc) rc = (stage->resumed ? keep : make)(file, parent, err);
        file->made = rc == 0;
        io_close(&parent);
        if (rc) return rc;
    }
    return 0;
}

/* ---- named ---- */

/* Whether the file behind this one lies in another folder, or there is none. */
static bool is_last_of_folder(const filo_stage *stage, size_t i)
{
    if (i + 1 == stage->count) return true;
    const char *here = stage->items[i].name, *next = stage->items[i + 1].name;
    int length = filo_folder_length(here);
    return length != filo_folder_length(next) || memcmp(here, next, (size_t)length) != 0;
}

static int give_name(filo_staged *file, int parent, const char *last, char *err)
{
    mode_t given = file->mode | S_IRUSR | S_IWUSR;
    int rc = file->mode && given != file->mode
                 ? beneath_chmod(parent, file->temporary, file->mode, err)
                 : 0;
    if (rc) return err_wrap(err, rc, "%s", file->name);
    if (renameat(parent, file->temporary, parent, last) != 0)
        return err_sys(err, -errno, "rename to %s", file->name);
    file->named = true;
    return 0;
}

int filo_stage_commit(filo_stage *stage, char *err)
{
    for (size_t i = 0; i < stage->count; i++) {
        filo_staged *file = &stage->items[i];
        const char *last;
        int parent, rc = enter(stage, file, false, &parent, &last, err);
        if (rc) return rc;
        rc = give_name(file, parent, last, err);
        if (!rc && stage->dir < 0 && is_last_of_folder(stage, i) &&
            (rc = io_fsync(parent)) != 0)
            err_sys(err, rc, "fsync of the folder of %s", file->name);
        io_close(&parent);
        if (rc) return rc;
    }
    return 0;
}

void filo_stage_drop(filo_stage *stage, bool all)
{
    for (size_t i = 0; i < stage->count; i++) {
        const filo_staged *file = &stage->items[i];
        const char *last;
        int parent;
        bool ours = file->made || stage->resumed;
        if (!ours || (file->named && !all)) continue;
        if (enter(stage, file, false, &parent, &last, NULL) != 0) continue;
        if (!file->named) unlinkat(parent, file->temporary, 0);
        if (all) unlinkat(parent, last, 0);
        io_close(&parent);
    }
}
