/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to files below a directory without following links; see beneath.h. */
#include "common/beneath.h"

#include "common/errtext.h"
#include "common/io.h"
#include "common/mount.h"
#include "common/others.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A file server need not open a directory that is only passed through or searched. */
#define PASS_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

int beneath_check_name(const char *name, kvtree_error *err)
{
    size_t len = name ? strnlen(name, BENEATH_NAME_MAX) : 0;
    if (len == 0) return err_set(err, -EINVAL, "empty file name");
    if (len == BENEATH_NAME_MAX)
        return err_set(err, -EINVAL, "file name \"%.60s...\" is longer than %d bytes",
                       name, BENEATH_NAME_MAX - 1);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return err_set(err, -EINVAL,
                           "file name with a control character (byte 0x%02x at %zu)",
                           (unsigned char)*c, (size_t)(c - name));
    for (const char *part = name;; part++) {
        size_t n = strcspn(part, "/");
        if (n == 0)
            return err_set(err, -EINVAL, "file name \"%s\" %s", name,
                           part == name ? "is not relative" : "has an empty component");
        if ((n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return err_set(err, -EINVAL, "file name \"%s\" has a component \"%.*s\"",
                           name, (int)n, part);
        part += n;
        if (!*part) return 0;
    }
}

int beneath_open_folder(const char *path, int *dir, kvtree_error *err)
{
    int fd = io_open(AT_FDCWD, path, FOLDER_FLAGS, 0);
    if (fd < 0) return err_sys(err, fd, "open directory %s", path);
    *dir = fd;
    return 0;
}

/* Opens a directory, which is created if it is missing and mode is not 0. Most
 * directories exist: opening first changes nothing in the directory above, which many
 * ranks of a node may share. *made on entry: dir was just created, so it has no entries;
 * on return: this directory was created, and is not opened then. */
static int beneath_find_component(int dir, const char *part, int flags, mode_t mode,
                                  bool *made)
{
    int fd = *made ? -ENOENT : io_open(dir, part, flags, 0);
    *made = fd == -ENOENT && mode && mkdirat(dir, part, mode) == 0;
    if (fd != -ENOENT || !mode || *made) return fd;
    return errno == EEXIST ? io_open(dir, part, flags, 0) : -errno;
}

static int beneath_open_component(int dir, const char *part, int flags, mode_t mode,
                                  bool *made)
{
    int fd = beneath_find_component(dir, part, flags, mode, made);
    return *made ? io_open(dir, part, flags, 0) : fd;
}

/* Describes why a component could not be opened. For a link the system only reports that
 * it is not a directory. */
static int beneath_component_failed(int dir, const char *part, int rc, mode_t mode,
                                    int len, const char *name, kvtree_error *err)
{
    struct stat st = {.st_mode = 0};
    const char *what = mode ? "make directory" : "open directory";
    if (rc == -ENOTDIR) (void)fstatat(dir, part, &st, AT_SYMLINK_NOFOLLOW);
    int is_link = S_ISLNK(st.st_mode);
    err_sys(err, is_link ? -ELOOP : rc, "%s %.*s", what, len, name);
    return rc;
}

/* Closes a directory that a walk from dir has opened. */
static void beneath_leave(int dir, int *opened)
{
    if (*opened != dir) io_close(opened);
}

/* Like beneath_open_parent, but *parent is opened with flags, is dir itself for a name of
 * one component, and is closed by beneath_leave. *made: *parent was just created. */
static int beneath_walk(int dir, const char *name, int flags, mode_t mode, int *parent,
                        const char **last, bool *made, kvtree_error *err)
{
    char part[BENEATH_NAME_MAX];
    int here = dir, rc = beneath_check_name(name, err);
    if (rc) return rc;
    const char *start = name, *slash;
    *made = false;
    while ((slash = strchr(start, '/')) != NULL) {
        memcpy(part, start, (size_t)(slash - start));
        part[slash - start] = 0;
        int how = strchr(slash + 1, '/') ? PASS_FLAGS : flags;
        int next = beneath_open_component(here, part, how, mode, made);
        if (next < 0)
            next = beneath_component_failed(here, part, next, mode, (int)(slash - name),
                                            name, err);
        beneath_leave(dir, &here);
        if (next < 0) return next;
        here = next;
        start = slash + 1;
    }
    *parent = here;
    *last = start;
    return 0;
}

/* Opens the directory of an entry that may exist. *parent is for access to entries, not
 * for fsync. */
static int beneath_find(int dir, const char *name, int *parent, const char **last,
                        kvtree_error *err)
{
    bool made;
    return beneath_walk(dir, name, PASS_FLAGS, 0, parent, last, &made, err);
}

/* Like beneath_find, with a *parent that fsync can use. */
static int beneath_find_to_sync(int dir, const char *name, int *parent, const char **last,
                                kvtree_error *err)
{
    bool made;
    return beneath_walk(dir, name, FOLDER_FLAGS, 0, parent, last, &made, err);
}

int beneath_open_parent(int dir, const char *name, mode_t mode, int *parent,
                        const char **last, kvtree_error *err)
{
    bool made;
    int here, rc = beneath_walk(dir, name, FOLDER_FLAGS, mode, &here, last, &made, err);
    if (rc) return rc;
    if (here == dir) here = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    if (here < 0) return err_sys(err, -errno, "open directory of %s", name);
    *parent = here;
    return 0;
}

int beneath_open_below(int dir, const char *name, int *folder, kvtree_error *err)
{
    char inside[BENEATH_NAME_MAX + 2];
    const char *last;
    snprintf(inside, sizeof inside, "%s%sx", name, *name ? "/" : "");
    return beneath_open_parent(dir, inside, 0, folder, &last, err);
}

int beneath_open_private(int dir, const char *name, int *folder, kvtree_error *err)
{
    struct stat st;
    uid_t owner = (uid_t)-1;
    int fd, rc = beneath_open_below(dir, name, &fd, err);
    if (rc) return rc;
    rc = fstat(fd, &st) != 0 ? -errno : mount_owner(fd, &st, &owner);
    if (rc)
        rc = err_sys(err, rc, "stat %s", name);
    else if (owner != geteuid())
        rc = err_set(err, -EPERM, "%s belongs to user %ld, not to us (%ld)", name,
                     (long)owner, (long)geteuid());
    else if (st.st_mode & (S_IRWXG | S_IRWXO))
        rc = err_set(err, -EPERM, "%s is open to others (mode %03o, not 700)", name,
                     (unsigned)(st.st_mode & 0777));
    if (rc)
        io_close(&fd);
    else
        *folder = fd;
    return rc;
}

static int beneath_name_failed(kvtree_error *err, int rc, const char *what,
                               const char *name)
{
    return rc == -ENOENT ? err_set(err, rc, "%s is missing", name)
                         : err_sys(err, rc, "%s %s", what, name);
}

static int beneath_check_file(int fd, const char *name, int flags, kvtree_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return err_sys(err, -errno, "stat %s", name);
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "%s is not a regular file", name);
    if (flags & O_CREAT && st.st_nlink > 1)
        return err_set(err, -EPERM,
                       "%s has another name, too (a hard link), and is not changed; "
                       "replace it by a copy, or remove it",
                       name);
    return 0;
}

int beneath_open(int dir, const char *name, int flags, mode_t mode, int *fd,
                 kvtree_error *err)
{
    int parent;
    const char *last;
    int rc = beneath_find(dir, name, &parent, &last, err);
    if (rc) return rc;
    /* O_NONBLOCK: a pipe in its place is refused, not waited for */
    const int extra = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int file = io_open(parent, last, flags | extra, mode);
    rc = file < 0 ? beneath_name_failed(err, file, "open", name)
                  : beneath_check_file(file, name, flags, err);
    beneath_leave(dir, &parent);
    if (rc) {
        if (file >= 0) io_close(&file);
        return rc;
    }
    *fd = file;
    return 0;
}

/* Whether mode grants group or others rights that they lack. */
static bool beneath_gives_others(const struct stat *st, mode_t mode)
{
    return (mode & ~st->st_mode & (S_IRWXG | S_IRWXO)) != 0;
}

int beneath_chmod(int dir, const char *name, mode_t mode, kvtree_error *err)
{
    char path[64];
    struct stat st;
    int rc = 0, file = io_open(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (file < 0) return beneath_name_failed(err, file, "open", name);
    if (fstat(file, &st) != 0)
        rc = err_sys(err, -errno, "stat %s", name);
    else if (S_ISLNK(st.st_mode) || st.st_uid != geteuid() ||
             (S_ISREG(st.st_mode) && st.st_nlink != 1))
        rc = err_set(err, -EPERM, "%s is a link, or not our own", name);
    else if (beneath_gives_others(&st, mode))
        rc = err_set(err, -EPERM, "%s is more private than what should be there", name);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (!rc && chmod(path, mode) != 0)
        rc = err_sys(err, -errno, "set the mode of %s", name);
    io_close(&file);
    return rc;
}

mode_t beneath_mode_in_group(mode_t mode, gid_t from, gid_t to)
{
    const mode_t both = mode >> 3 & mode & S_IRWXO;
    return from == to ? mode : (mode & ~(mode_t)(S_IRWXG | S_IRWXO)) | both << 3 | both;
}

bool beneath_has_group(int dir, gid_t *group)
{
    struct stat st;
    bool given = fstat(dir, &st) == 0 && st.st_mode & S_ISGID;
    *group = given ? st.st_gid : 0;
    return given;
}

static bool beneath_is_shared(const struct stat *st)
{
    return (st->st_mode & (S_ISGID | S_IWGRP)) == (S_ISGID | S_IWGRP);
}

/* Returns the mode bits of those who may write. st describes dir. */
static mode_t beneath_writers(int dir, const struct stat *st)
{
    struct stat above;
    if (!beneath_is_shared(st)) return 0600;
    if (st->st_uid == 0 || st->st_uid == geteuid()) return 0660;
    int up = io_open(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    bool shared = up >= 0 && fstat(up, &above) == 0 && above.st_gid == st->st_gid &&
                  beneath_is_shared(&above);
    io_close(&up);
    return shared ? 0660 : 0600;
}

mode_t beneath_lock_mode(int dir)
{
    struct stat st;
    return fstat(dir, &st) == 0 ? beneath_writers(dir, &st) : 0600;
}

mode_t beneath_record_mode(int dir)
{
    struct stat st;
    if (fstat(dir, &st) != 0) return 0600;
    return beneath_writers(dir, &st) | (st.st_mode & (S_IRGRP | S_IROTH));
}

/* above describes the prefix directory. */
static int beneath_check_log(const struct stat *above, const char *name, int fd,
                             kvtree_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return err_sys(err, -errno, "stat %s", name);
    bool shared = beneath_is_shared(above) && !(above->st_mode & S_IWOTH);
    return st.st_uid == geteuid() || shared
               ? 0
               : err_set(err, -EPERM, "%s belongs to user %ld, not to us (%ld)", name,
                         (long)st.st_uid, (long)geteuid());
}

int beneath_open_log(int prefix, const char *name, int flags, int *fd, kvtree_error *err)
{
    struct stat above;
    int file;
    if (fstat(prefix, &above) != 0)
        return err_sys(err, -errno, "stat the prefix directory");
    int rc = beneath_open(prefix, name, flags | O_APPEND | O_CREAT,
                          beneath_is_shared(&above) ? 0664 : 0644, &file, err);
    if (rc) return rc;
    rc = beneath_check_log(&above, name, file, err);
    if (rc)
        io_close(&file);
    else
        *fd = file;
    return rc;
}

int beneath_mkdirs(int dir, const char *name, mode_t mode, kvtree_error *err)
{
    int parent;
    const char *last;
    bool made;
    int rc = beneath_walk(dir, name, PASS_FLAGS, mode, &parent, &last, &made, err);
    if (rc) return rc;
    int folder = beneath_find_component(parent, last, FOLDER_FLAGS, mode, &made);
    if (folder >= 0)
        io_close(&folder);
    else if (!made)
        rc = beneath_component_failed(parent, last, folder, mode, (int)strlen(name), name,
                                      err);
    beneath_leave(dir, &parent);
    return rc;
}

/* Syncs the directory that has the last component of name. */
static int beneath_sync_parent(int dir, const char *name, kvtree_error *err)
{
    int parent;
    const char *last;
    int rc = beneath_find_to_sync(dir, name, &parent, &last, err);
    if (rc) return rc;
    rc = io_fsync(parent);
    beneath_leave(dir, &parent);
    return rc ? err_sys(err, rc, "fsync of the directory of %s", name) : 0;
}

int beneath_make_durable(int dir, const char *name, mode_t mode, kvtree_error *err)
{
    char part[BENEATH_NAME_MAX];
    int rc = beneath_mkdirs(dir, name, mode, err);
    for (size_t n = 0; !rc && n < strlen(name); n++) {
        n += strcspn(name + n, "/");
        memcpy(part, name, n);
        part[n] = 0;
        rc = beneath_sync_parent(dir, part, err);
    }
    return rc;
}

static int beneath_remove_at(int dir, const char *name, int flags, kvtree_error *err)
{
    int parent;
    const char *last;
    int rc = beneath_find(dir, name, &parent, &last, err);
    if (rc == -ENOENT) return 0;
    if (rc) return rc;
    if (unlinkat(parent, last, flags) != 0 && errno != ENOENT)
        rc = err_sys(err, -errno, "remove %s", name);
    beneath_leave(dir, &parent);
    return rc;
}

int beneath_unlink(int dir, const char *name, kvtree_error *err)
{
    return beneath_remove_at(dir, name, 0, err);
}

int beneath_rmdir(int dir, const char *name, kvtree_error *err)
{
    return beneath_remove_at(dir, name, AT_REMOVEDIR, err);
}

int beneath_unlink_durable(int dir, const char *name, kvtree_error *err)
{
    int parent;
    const char *last;
    int rc = beneath_find_to_sync(dir, name, &parent, &last, err);
    if (rc) return rc;
    if (unlinkat(parent, last, 0) != 0 && errno != ENOENT)
        rc = err_sys(err, -errno, "remove %s", name);
    else if ((rc = io_fsync(parent)) != 0)
        err_sys(err, rc, "fsync of the directory of %s", name);
    beneath_leave(dir, &parent);
    return rc;
}

/* A name has at least one character and a slash per directory. */
enum { BENEATH_DEPTH_MAX = BENEATH_NAME_MAX / 2 };

static int beneath_empty_folder(int fd, int depth, kvtree_error *err);

static int beneath_remove_entry(int dir, const char *name, int depth, kvtree_error *err)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT) return 0;
    int is_folder = errno == EISDIR || errno == EPERM;
    if (is_folder && unlinkat(dir, name, AT_REMOVEDIR) == 0) return 0;
    if (is_folder && depth == BENEATH_DEPTH_MAX) return -ENAMETOOLONG;
    int inner = is_folder ? io_open(dir, name, FOLDER_FLAGS, 0) : -errno;
    int rc = inner < 0 ? inner : beneath_empty_folder(inner, depth + 1, err);
    if (!rc && unlinkat(dir, name, AT_REMOVEDIR) != 0 && errno != ENOENT) rc = -errno;
    return rc;
}

/* Empties the directory fd and closes it. Directories at depth BENEATH_DEPTH_MAX, deeper
 * than any name of SCR, remain unless they are empty. */
static int beneath_empty_folder(int fd, int depth, kvtree_error *err)
{
    DIR *stream = fdopendir(fd);
    if (!stream) {
        int rc = err_sys(err, -errno, "read a directory");
        io_close(&fd);
        return rc;
    }
    int rc = 0;
    const struct dirent *item;
    while ((item = readdir(stream)) != NULL) {
        const char *name = item->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        int failed = beneath_remove_entry(fd, name, depth, err);
        if (failed && !rc) rc = err_sys(err, failed, "remove %s", name);
    }
    closedir(stream);
    return rc;
}

int beneath_remove_tree(int dir, const char *name, kvtree_error *err)
{
    int parent;
    const char *last;
    int rc = beneath_find(dir, name, &parent, &last, err);
    if (rc == -ENOENT) return 0;
    if (rc) return rc;
    int folder = io_open(parent, last, FOLDER_FLAGS, 0);
    if (folder >= 0)
        rc = beneath_empty_folder(folder, 1, err);
    else if (folder != -ENOENT)
        rc = err_sys(err, folder, "open directory %s", name);
    if (!rc && unlinkat(parent, last, AT_REMOVEDIR) != 0 && errno != ENOENT)
        rc = err_sys(err, -errno, "remove directory %s", name);
    beneath_leave(dir, &parent);
    return rc;
}

bool beneath_is_temporary(const char *name)
{
    enum { DIGITS = 16 };
    if (name[0] != '.' || strspn(name + 1, "0123456789abcdef") != DIGITS) return false;
    const char *rest = name + 1 + DIGITS;
    return strcmp(rest + strspn(rest, "-0123456789"), ".tmp") == 0;
}

DIR *beneath_list(int dir)
{
    int copy = io_open(dir, ".", FOLDER_FLAGS, 0);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    int error = copy < 0 ? -copy : errno;
    if (!stream) io_close(&copy);
    errno = error;
    return stream;
}

int beneath_stat(int dir, const char *name, struct stat *st, kvtree_error *err)
{
    int parent;
    const char *last;
    int rc = beneath_find(dir, name, &parent, &last, err);
    if (rc) return rc;
    if (fstatat(parent, last, st, AT_SYMLINK_NOFOLLOW) != 0)
        rc = beneath_name_failed(err, -errno, "stat", name);
    beneath_leave(dir, &parent);
    return rc;
}

int beneath_stat_source(int dir, const char *name, struct stat *st, kvtree_error *err)
{
    int parent;
    const char *last;
    int rc = beneath_find(dir, name, &parent, &last, err);
    if (rc) return rc;
    int fd = io_open(parent, last, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0 || fstat(fd, st) != 0)
        rc = beneath_name_failed(err, fd < 0 ? fd : -errno, "stat", name);
    else if (S_ISREG(st->st_mode))
        others_limit_mode(fd, st);
    io_close(&fd);
    beneath_leave(dir, &parent);
    return rc;
}

static int beneath_refuse_foreign(int fd, const char *base, const char *name, size_t len,
                                  kvtree_error *err)
{
    struct stat st;
    uid_t owner = (uid_t)-1;
    int rc = fstat(fd, &st) != 0 ? -errno : mount_owner(fd, &st, &owner);
    if (rc) return err_sys(err, rc, "stat %s/%.*s", base, (int)len, name);
    if (owner != geteuid())
        return err_set(err, -EPERM, "%s/%.*s belongs to user %ld, not to us (%ld)", base,
                       (int)len, name, (long)owner, (long)geteuid());
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(err, -EPERM, "%s/%.*s can be written by others (mode %03o)", base,
                       (int)len, name, (unsigned)(st.st_mode & 0777));
    return 0;
}

/* A component that could not be opened may be a link of another user. */
static int beneath_refuse_component(int rc, const char *base, const char *name, int len,
                                    kvtree_error *err)
{
    char path[2 * BENEATH_NAME_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/%.*s", base, len, name);
    if (rc == -ENOTDIR && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return err_set(err, rc,
                       "%s is a symbolic link of user %ld, which is not followed; remove "
                       "it, or choose another place",
                       path, (long)st.st_uid);
    return err_sys(err, rc, "make directory %s", path);
}

int beneath_private_folder(const char *base, const char *name, int *dir,
                           kvtree_error *err)
{
    int rc = beneath_check_name(name, err);
    if (rc) return rc;
    int opened = io_open(AT_FDCWD, base, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (opened < 0) return err_sys(err, opened, "open directory %s", base);
    rc = beneath_private_folder_at(opened, base, name, dir, err);
    io_close(&opened);
    return rc;
}

int beneath_private_folder_at(int opened, const char *base, const char *name, int *dir,
                              kvtree_error *err)
{
    char part[BENEATH_NAME_MAX];
    int here = opened, rc = beneath_check_name(name, err);
    bool made = false;
    if (rc) return rc;
    for (const char *start = name; start;) {
        size_t len = strcspn(start, "/"), end = (size_t)(start - name) + len;
        memcpy(part, start, len);
        part[len] = 0;
        int next = beneath_open_component(here, part, FOLDER_FLAGS, 0700, &made);
        beneath_leave(opened, &here);
        if (next < 0) return beneath_refuse_component(next, base, name, (int)end, err);
        here = next;
        rc = beneath_refuse_foreign(here, base, name, end, err);
        if (rc) {
            io_close(&here);
            return rc;
        }
        start = start[len] ? start + len + 1 : NULL;
    }
    *dir = here;
    return 0;
}
