/* SPDX-License-Identifier: BSD-3-Clause */
/* Files with temporary names: created, renamed, removed; see filo_stage.h. */
#include "src/filo_stage.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "src/filo_private.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/). */
uint64_t filo_stage_key(const char *identity, uint64_t container, int ranks)
{
    const uint64_t numbers[] = {container, (uint64_t)ranks};
    const unsigned char *byte = (const unsigned char *)numbers;
    uint64_t h = 14695981039346656037u;
    for (; *identity; identity++)
        h = (h ^ (unsigned char)*identity) * 1099511628211u;
    for (size_t i = 0; i < sizeof numbers; i++)
        h = (h ^ byte[i]) * 1099511628211u;
    return h;
}

/* ---- the list ---- */

int filo_stage_add(filo_stage *stage, char *temporary, const char *name, uint64_t size,
                   mode_t mode)
{
    size_t room = stage->count + 1;
    filo_staged *items = stage->items;
    char *copy = strdup(name);
    if ((stage->count & (stage->count + 1)) == 0) /* 0, 1, 3, 7, ...: it doubles */
        items = reallocarray(items, 2 * room, sizeof *items);
    if (items) stage->items = items;
    if (!items || !copy || !temporary) {
        free(temporary);
        free(copy);
        return -ENOMEM;
    }
    items[stage->count++] =
        (filo_staged){.temporary = temporary, .name = copy, .size = size, .mode = mode};
    return 0;
}

void filo_stage_free(filo_stage *stage)
{
    for (size_t i = 0; i < stage->count; i++) {
        free(stage->items[i].temporary);
        free(stage->items[i].name);
    }
    free(stage->items);
    *stage = (filo_stage){.dir = stage->dir};
}

/* ---- folders ---- */

/* The folders of a file before and after the rename, and its names in them. */
typedef struct ends {
    int from, to;
    const char *temporary, *name;
} ends;

static int stage_enter(const filo_stage *stage, const char *name, bool make, int *parent,
                       const char **last, char *err)
{
    int length = filo_folder_length(name);
    if (stage->dir >= 0)
        return beneath_open_parent(stage->dir, name, 0, parent, last, err);
    char *path = strndup(name, (size_t)length);
    if (!path) return err_sys(err, -ENOMEM, "open the folder of %s", name);
    *last = name + length;
    int rc = folder_make(path, make ? 0777 : 0, parent, err);
    free(path);
    return rc;
}

static void ends_close(ends *e)
{
    io_close(&e->from);
    io_close(&e->to);
}

static int ends_open(const filo_stage *stage, const filo_staged *file, bool make, ends *e,
                     char *err)
{
    e->from = e->to = -1;
    int rc = stage_enter(stage, file->name, make, &e->to, &e->name, err);
    if (!rc) rc = stage_enter(stage, file->temporary, make, &e->from, &e->temporary, err);
    if (rc) ends_close(e);
    return rc;
}

/* ---- created ---- */

/* A rename would find this out as well, but only after all data was copied, and other
 * files are renamed by then. */
static int stage_check_rename(const filo_staged *file, const ends *e, char *err)
{
    struct stat from, to, st;
    if (!*e->name) return err_set(err, -EISDIR, "\"%s\" is no file name", file->name);
    if (fstat(e->from, &from) != 0 || fstat(e->to, &to) != 0)
        return err_sys(err, -errno, "stat the folder of %s", file->name);
    if (from.st_dev != to.st_dev)
        return err_set(err, -EXDEV,
                       "%s lies in another file system than the folder %s, in which it "
                       "is written first",
                       file->name, file->temporary);
    if (fstatat(e->to, e->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "stat %s", file->name);
    return S_ISDIR(st.st_mode) ? err_set(err, -EISDIR, "%s is a folder", file->name) : 0;
}

/* A file that an earlier process created is taken over, if it is a regular file of one
 * name: a pipe or a second name of a file is not written to. One that gives others less
 * than the mode of the file was never written to by that process: it died at once, or it
 * is a private file of the user, to which a colleague has given that name. Such a file,
 * and one that cannot be opened, is replaced. */
static int stage_take_over(const filo_staged *file, const ends *e, struct stat *st)
{
    const int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = io_open(e->from, e->temporary, flags, 0);
    if (fd < 0 && fd != -EACCES) return fd == -ENOENT ? fd : -EEXIST;
    if (fd >= 0) {
        bool regular = fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_nlink == 1;
        if (regular && !beneath_gives_others(st, file->mode)) return fd;
        io_close(&fd);
        if (!regular) return -EEXIST;
    }
    return unlinkat(e->from, e->temporary, 0) == 0 ? -ENOENT : -errno;
}

static int stage_open(const filo_staged *file, const ends *e, struct stat *st)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = io_open(e->from, e->temporary, flags, file->mode ? 0600 : 0666);
    if (fd == -EEXIST && (fd = stage_take_over(file, e, st)) == -ENOENT)
        fd = io_open(e->from, e->temporary, flags, file->mode ? 0600 : 0666);
    if (fd < 0 || fstat(fd, st) == 0) return fd;
    int rc = -errno;
    io_close(&fd);
    return rc;
}

/* Bytes and time of a file that is there stay. */
static int stage_create(const filo_staged *file, const ends *e, char *err)
{
    struct stat st;
    int fd = stage_open(file, e, &st), rc = fd < 0 ? fd : 0;
    if (!rc && (uint64_t)st.st_size != file->size &&
        ftruncate(fd, (off_t)file->size) != 0)
        rc = -errno;
    if (!rc && file->mode && fchmod(fd, file->mode | S_IRUSR | S_IWUSR) != 0) rc = -errno;
    int closed = io_close(&fd);
    if (!rc) rc = closed;
    return rc ? err_sys(err, rc, "create a temporary file for %s", file->name) : 0;
}

int filo_stage_make(filo_stage *stage, char *err)
{
    int rc = 0;
    for (size_t i = 0; i < stage->count && !rc; i++) {
        ends e;
        rc = ends_open(stage, &stage->items[i], true, &e, err);
        if (rc) return rc;
        rc = stage_check_rename(&stage->items[i], &e, err);
        if (!rc) rc = stage_create(&stage->items[i], &e, err);
        ends_close(&e);
    }
    return rc;
}

/* ---- renamed ---- */

/* Whether the next file lies in another folder, or there is none. */
static bool is_last_of_folder(const filo_stage *stage, size_t i)
{
    if (i + 1 == stage->count) return true;
    const char *here = stage->items[i].name, *next = stage->items[i + 1].name;
    int length = filo_folder_length(here);
    return length != filo_folder_length(next) || memcmp(here, next, (size_t)length) != 0;
}

static int stage_rename(filo_staged *file, const ends *e, char *err)
{
    mode_t made = file->mode | S_IRUSR | S_IWUSR;
    int rc = file->mode && made != file->mode
                 ? beneath_chmod(e->from, e->temporary, file->mode, err)
                 : 0;
    if (rc) return err_wrap(err, rc, "%s", file->name);
    if (renameat(e->from, e->temporary, e->to, e->name) != 0)
        return err_sys(err, -errno, "rename to %s", file->name);
    file->renamed = true;
    return 0;
}

int filo_stage_commit(filo_stage *stage, char *err)
{
    int rc = 0;
    for (size_t i = 0; i < stage->count && !rc; i++) {
        filo_staged *file = &stage->items[i];
        ends e;
        rc = ends_open(stage, file, false, &e, err);
        if (rc) return rc;
        rc = stage_rename(file, &e, err);
        if (!rc && stage->dir < 0 && is_last_of_folder(stage, i) &&
            (rc = io_fsync(e.to)) != 0)
            err_sys(err, rc, "fsync of the folder of %s", file->name);
        ends_close(&e);
    }
    return rc;
}

void filo_stage_drop(filo_stage *stage, bool all)
{
    for (size_t i = 0; i < stage->count; i++) {
        const filo_staged *file = &stage->items[i];
        ends e;
        if ((file->renamed && !all) || ends_open(stage, file, false, &e, NULL) != 0)
            continue;
        if (!file->renamed) unlinkat(e.from, e.temporary, 0);
        if (all) unlinkat(e.to, e.name, 0);
        ends_close(&e);
    }
}
