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

int scr_config_text_read(const char *path, const char *text, size_t size, kvtree *layer,
                         scr_problems *problems)
{
    scr_reader r = {path, layer, problems, .plain = false};
    return scr_is_lines(text, size) ? scr_read_lines(&r, text, size)
                                    : scr_read_yaml(&r, text, size);
}

/* The directory of a file. In a prefix directory (shared) other users may create files,
 * so a file there is accepted by its owner only. trusted: names or numbers of accepted
 * owners, separated by commas, besides root and the effective user; NULL: none. open:
 * other users can rename files there, so that any file of the effective user may have
 * that name. */
typedef struct file_place {
    bool shared, open;
    const char *trusted;
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
    return uid == 0 || (!place->open && uid == geteuid()) ||
           file_is_trusted(place->trusted, uid);
}

/* Why a file in a shared directory is not accepted. It can name programs to execute, and
 * other directories. */
static const char *file_find_distrust(int fd, const struct stat *st,
                                      const file_place *place)
{
    if (!file_is_accepted_owner(place, st->st_uid))
        return st->st_uid == geteuid()
                   ? "is in a directory where others can give that name to any of your "
                     "files, and is not read; chmod g-w,o-w (or +t) the directory, or "
                     "SCR_CONF_FILE=<its path> reads it, or your name in "
                     "SCR_TRUSTED_OWNERS, in the environment or the system file"
                   : "belongs to another user, and is not read; SCR_CONF_FILE=<its path> "
                     "reads it, or its owner's name in SCR_TRUSTED_OWNERS, in the "
                     "environment or the system file";
    if (others_write(fd, st))
        return st->st_mode & S_IWOTH
                   ? "can be changed by everybody, and is not read"
                   : "can be changed by its group, and is not read: chmod g-w, or "
                     "SCR_CONF_FILE=<its path>";
    return NULL;
}

/* Reads a whole file into *text, to be freed, with a NUL at the end. */
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

/* A link of another user may point to any file of the user, with an accepted owner. */
static const char *file_find_foreign_link(const struct stat *link,
                                          const file_place *place)
{
    if (file_is_accepted_owner(place, link->st_uid)) return NULL;
    return link->st_uid == geteuid()
               ? "is a link in a directory where others can put it, and is not followed"
               : "is a link of another user, and is not followed";
}

/* O_NONBLOCK: a pipe without a writer is refused at once. */
static int file_open_plain(const char *path)
{
    return io_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
}

/* Opens what the open link with that path leads to. */
static int file_follow(int link, const char *path)
{
    char target[PATH_MAX], full[2 * PATH_MAX];
    ssize_t n = readlinkat(link, "", target, sizeof target - 1);
    if (n < 0) return -errno;
    target[n] = 0;
    const char *slash = *target == '/' ? NULL : strrchr(path, '/');
    int size = slash ? (int)(slash + 1 - path) : 0;
    if (snprintf(full, sizeof full, "%.*s%s", size, path, target) >= (int)sizeof full)
        return -ENAMETOOLONG;
    return file_open_plain(full);
}

/* The file, open. In a shared directory what has the name may be exchanged at any time:
 * what was judged is what is opened. */
static int file_open(const char *path, const file_place *place, const char **fault)
{
    char opened[64];
    struct stat st;
    if (!place->shared) return file_open_plain(path);
    int fd = -1, there = io_open(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (there < 0) return there;
    snprintf(opened, sizeof opened, "/proc/self/fd/%d", there);
    if (fstat(there, &st) != 0)
        fd = -errno;
    else if (!S_ISLNK(st.st_mode))
        fd = file_open_plain(opened);
    else if ((*fault = file_find_foreign_link(&st, place)) != NULL)
        fd = -EINVAL;
    else
        fd = file_follow(there, path);
    io_close(&there);
    return fd;
}

static int file_read(const char *path, const file_place *place, kvtree *layer,
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
    return file_read(path, &(file_place){false, false, NULL}, layer, problems);
}

/* A file with an I/O error counts as existing: reading it reports the error. An unusable
 * prefix directory is reported later. */
static bool file_may_exist(const char *path)
{
    struct stat st;
    return path && (lstat(path, &st) == 0 || errno == EIO || errno == ESTALE);
}

static bool file_is_open_folder(const char *path)
{
    struct stat st;
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool found = fd >= 0 && fstat(fd, &st) == 0 && others_rename(fd, &st);
    if (fd >= 0) io_close(&fd);
    return found;
}

static void file_read_prefix(scr_config *config, const char *prefix,
                             scr_problems *problems)
{
    char *path[2] = {prefix ? scr_path_join(prefix, "scr.yaml") : NULL,
                     prefix ? scr_path_join(prefix, ".scrconf") : NULL};
    const file_place shared = {true, prefix && file_is_open_folder(prefix),
                               scr_config_get(config, "SCR_TRUSTED_OWNERS", NULL)};
    bool exists[2];
    for (int i = 0; i < 2; i++)
        exists[i] = file_may_exist(path[i]);
    if (!path[0] || !path[1])
        scr_problems_add(problems, "no memory for the user's file");
    else if (exists[0] && exists[1])
        scr_problems_add(problems, "both %s and %s exist; remove one of them", path[0],
                         path[1]);
    else if ((exists[0] || exists[1]) &&
             file_read(path[exists[1]], &shared, config->user, problems) == -ENOENT)
        scr_problems_add(problems, "%s: this symbolic link has no target",
                         path[exists[1]]);
    free(path[0]);
    free(path[1]);
}

void scr_config_read_files(scr_config *config, const char *system_file,
                           scr_problems *problems)
{
    scr_config_file_read(system_file, config->system, problems);
    const char *named = getenv("SCR_CONF_FILE");
    char *prefix = scr_config_prefix(config);
    if (!named || !*named)
        file_read_prefix(config, prefix, problems);
    else if (scr_config_file_read(named, config->user, problems) == -ENOENT)
        scr_problems_add(problems, "SCR_CONF_FILE=%s: no such file", named);
    free(prefix);
}
