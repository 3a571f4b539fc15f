/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding and opening configuration files; see config/config_file.h. */
#include "config/config_file.h"

#include "base/path.h"
#include "common/io.h"
#include "common/others.h"
#include "config/reader.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_FOLDER (O_PATH | O_DIRECTORY | O_CLOEXEC)

enum { FILE_LINKS_MAX = 8, FILE_IS_LINK = -4096 /* not a valid -errno */ };

int scr_config_text_read(const char *path, const char *text, size_t size, kvtree *layer,
                         scr_problems *problems)
{
    scr_reader r = {path, layer, problems, .plain = false};
    return scr_is_lines(text, size) ? scr_read_lines(&r, text, size)
                                    : scr_read_yaml(&r, text, size);
}

/* A configuration file and its directory. In a prefix directory (shared), other users may
 * create files, so a file there is read only if its owner is accepted. trusted: names or
 * numbers of accepted owners, separated by commas, besides root and the effective user;
 * NULL: none. */
typedef struct file_place {
    bool shared;
    const char *trusted;
    const char *name; /* these fields are for a prefix directory: the file in dir */
    int dir;          /* the open directory */
    bool open;   /* other users can rename files in dir, and so give this name to any file
                    of the effective user */
    bool linked; /* a link led to dir */
} file_place;

static bool file_is_trusted(const char *trusted, uid_t uid)
{
    char *copy = trusted ? strdup(trusted) : NULL, *rest = copy, *name, *end;
    bool found = false;
    while (!found && (name = strsep(&rest, ", ")) != NULL) {
        const struct passwd *user = *name ? getpwnam(name) : NULL;
        unsigned long number = strtoul(name, &end, 10);
        found = user ? user->pw_uid == uid : *name && !*end && number == uid;
    }
    free(copy);
    return found;
}

static bool file_is_accepted_owner(const file_place *place, uid_t uid)
{
    return (!place->open && (uid == 0 || uid == geteuid())) ||
           file_is_trusted(place->trusted, uid);
}

#define FILE_REMEDY                                                                      \
    "chmod g-w,o-w the directory, or SCR_CONF_FILE=<its path> reads it, or "             \
    "your name in SCR_TRUSTED_OWNERS, in the environment or the system file"

/* Returns why a file in a shared directory is not accepted; NULL if it is. A
 * configuration file can name programs to execute, and other directories. */
static const char *file_find_distrust(int fd, const struct stat *st,
                                      const file_place *place)
{
    bool own = st->st_uid == geteuid() || st->st_uid == 0;
    if (!file_is_accepted_owner(place, st->st_uid))
        return own && place->linked
                   ? "is a link to a file in a directory where others can give that name "
                     "to any file of yours or root's, and is not read; " FILE_REMEDY
               : own ? "is in a directory where others can give that name to any file of "
                       "yours or root's, and is not read; " FILE_REMEDY
                     : "belongs to another user, and is not read; SCR_CONF_FILE=<its "
                       "path> reads it, or its owner's name in SCR_TRUSTED_OWNERS, in "
                       "the environment or the system file";
    if (others_write(fd, st))
        return st->st_mode & S_IWOTH
                   ? "can be changed by everybody, and is not read"
                   : "can be changed by its group, and is not read: chmod g-w, or "
                     "SCR_CONF_FILE=<its path>";
    return NULL;
}

/* Reads a whole file into *text, with a NUL at the end. The caller frees *text. */
static int file_read_all(int fd, const file_place *place, char **text, size_t *size,
                         const char **fault)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return -errno;
    if (!S_ISREG(st.st_mode)) *fault = "not a regular file";
    if (!*fault && place->shared) *fault = file_find_distrust(fd, &st, place);
    if (!*fault && st.st_size > SCR_CONFIG_FILE_MAX) *fault = "too large";
    if (*fault) return -EINVAL;
    *text = malloc((size_t)st.st_size + 1);
    if (!*text) return -ENOMEM;
    ssize_t n = io_read(fd, *text, (size_t)st.st_size);
    if (n < 0) return (int)n;
    *size = (size_t)n;
    (*text)[n] = 0;
    return 0;
}

/* Returns why a link is not followed; NULL if it is. The owner of the link must be
 * accepted: another user's link may point to any file whose owner is accepted. */
static const char *file_find_foreign_link(const struct stat *link,
                                          const file_place *place)
{
    if (file_is_accepted_owner(place, link->st_uid)) return NULL;
    return link->st_uid == geteuid() || link->st_uid == 0
               ? "is a link in a directory where others can put it, and is not followed"
               : "is a link of another user, and is not followed";
}

/* Opens with O_NONBLOCK, so that a pipe without a writer is refused at once. */
static int file_open_plain(const char *path)
{
    return io_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
}

/* Replaces the directory and the name by those of the target of the open link. */
static int file_follow(int link, file_place *place, char name[PATH_MAX])
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(link, "", target, sizeof target - 1);
    if (n < 0) return -errno;
    target[n] = 0;
    char *slash = strrchr(target, '/');
    strcpy(name, slash ? slash + 1 : target);
    if (slash) slash[slash == target] = 0;
    int dir = io_open(place->dir, slash ? target : ".", FILE_FOLDER, 0);
    if (dir < 0) return dir;
    io_close(&place->dir);
    place->dir = dir;
    place->name = name;
    place->linked = true;
    return 0;
}

static bool file_is_open_folder(int dir)
{
    return others_put(dir) != 0;
}

/* Opens the file or follows the link that there refers to. The name may be given to
 * another file at any time, so the inode that was checked is also the one that is opened.
 * Returns the descriptor; FILE_IS_LINK if place and name are now those of the target of a
 * link; or -errno. */
static int file_open_there(int there, file_place *place, char name[PATH_MAX],
                           const char **fault)
{
    char opened[64];
    struct stat st;
    if (fstat(there, &st) != 0) return -errno;
    place->open = file_is_open_folder(place->dir);
    snprintf(opened, sizeof opened, "/proc/self/fd/%d", there);
    if (!S_ISLNK(st.st_mode)) return file_open_plain(opened);
    *fault = file_find_foreign_link(&st, place);
    if (*fault) return -EINVAL;
    int rc = file_follow(there, place, name);
    return rc ? rc : FILE_IS_LINK;
}

/* Returns the open file, or -errno. */
static int file_open(const char *path, file_place *place, const char **fault)
{
    char name[PATH_MAX];
    if (!place->shared) return file_open_plain(path);
    int fd = FILE_IS_LINK;
    for (int links = 0; fd == FILE_IS_LINK; links++) {
        int there = io_open(place->dir, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
        if (there < 0) return there;
        fd = links > FILE_LINKS_MAX ? -ELOOP : file_open_there(there, place, name, fault);
        io_close(&there);
    }
    return fd;
}

static int file_read(const char *path, file_place *place, kvtree *layer,
                     scr_problems *problems)
{
    char *text = NULL;
    size_t size = 0;
    const char *fault = NULL;
    int fd = file_open(path, place, &fault), rc = fd;
    if (fd == -ENOENT) return -ENOENT;
    if (fd >= 0) rc = file_read_all(fd, place, &text, &size, &fault);
    if (fd >= 0) io_close(&fd);
    if (rc)
        scr_problems_add(problems, "%s: %s", path, fault ? fault : strerror(-rc));
    else
        rc = scr_config_text_read(path, text, size, layer, problems);
    free(text);
    return rc;
}

int scr_config_file_read(const char *path, kvtree *layer, scr_problems *problems)
{
    return file_read(path, &(file_place){.shared = false}, layer, problems);
}

/* Whether the file exists. A file with an I/O error counts as existing: reading it
 * reports the error. */
static bool file_may_exist(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno == EIO ||
           errno == ESTALE;
}

static void file_read_below(scr_config *config, const char *prefix, file_place *place,
                            scr_problems *problems)
{
    static const char *const names[] = {"scr.yaml", ".scrconf"};
    bool yaml = file_may_exist(place->dir, names[0]),
         lines = file_may_exist(place->dir, names[1]);
    if (yaml && lines)
        scr_problems_add(problems, "both %s/%s and %s/%s exist; remove one of them",
                         prefix, names[0], prefix, names[1]);
    if (yaml == lines) return;
    char *path = scr_path_join(prefix, names[lines]);
    place->name = names[lines];
    if (!path)
        scr_problems_add(problems, "no memory for the user's file");
    else if (file_read(path, place, config->user, problems) == -ENOENT)
        scr_problems_add(problems, "%s: this symbolic link has no target", path);
    free(path);
}

/* Reads the file in the prefix directory. The directory is opened only once, because its
 * path may lead to another directory at any time. An unusable one is reported later. */
static void file_read_prefix(scr_config *config, const char *prefix,
                             scr_problems *problems)
{
    file_place place = {.shared = true,
                        .trusted = scr_config_get(config, "SCR_TRUSTED_OWNERS", NULL)};
    place.dir = prefix ? io_open(AT_FDCWD, prefix, FILE_FOLDER, 0) : -ENOMEM;
    if (place.dir >= 0)
        file_read_below(config, prefix, &place, problems);
    else if (place.dir == -ENOMEM || place.dir == -EIO || place.dir == -ESTALE)
        scr_problems_add(problems, "directory of the user's file: %s",
                         strerror(-place.dir));
    io_close(&place.dir);
}

/* Reads the system file or, if it does not exist, scr.conf, its name in SCR 3.1. */
static void file_read_system(scr_config *config, const char *path, scr_problems *problems)
{
    if (scr_config_file_read(path, config->system, problems) != -ENOENT) return;
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    char *former = NULL;
    if (asprintf(&former, "%.*sscr.conf", folder, path) < 0)
        scr_problems_add(problems, "no memory for the system file");
    else
        scr_config_file_read(former, config->system, problems);
    free(former);
}

void scr_config_read_files(scr_config *config, const char *system_file,
                           scr_problems *problems)
{
    file_read_system(config, system_file, problems);
    const char *named = getenv("SCR_CONF_FILE");
    char *prefix = scr_config_prefix(config);
    if (!named || !*named)
        file_read_prefix(config, prefix, problems);
    else if (scr_config_file_read(named, config->user, problems) == -ENOENT)
        scr_problems_add(problems, "SCR_CONF_FILE=%s: no such file", named);
    free(prefix);
}
