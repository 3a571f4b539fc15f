/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding and opening configuration files; see config/config_file.h. */
#include "config/config_file.h"

#include "base/path.h"
#include "common/io.h"
#include "config/identity.h"
#include "config/reader.h"
#include <errno.h>
#include <fcntl.h>
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

/* In this file, trusted is a list of user names or numbers, separated by commas. A file
 * that other users may have created must belong to one of them, to root or to the
 * effective user; NULL: the user named the file, and nothing is checked. */

static bool file_has_accepted_owner(const struct stat *st, const char *trusted)
{
    char *copy = strdup(trusted), *rest = copy, *name, *end;
    bool accepted = st->st_uid == 0 || st->st_uid == geteuid();
    while (!accepted && (name = strsep(&rest, ", ")) != NULL) {
        const struct passwd *user = *name ? getpwnam(name) : NULL;
        unsigned long number = strtoul(name, &end, 10);
        accepted =
            user ? user->pw_uid == st->st_uid : *name && !*end && number == st->st_uid;
    }
    free(copy);
    return accepted;
}

/* Why a file in a folder with files of other users is not accepted. It can name programs
 * to execute, and other folders. */
static const char *file_find_distrust(const struct stat *st, const char *trusted)
{
    if (!file_has_accepted_owner(st, trusted))
        return "belongs to another user, and is not read; SCR_CONF_FILE=<its path> reads "
               "it, or its owner's name in SCR_TRUSTED_OWNERS, in the environment or the "
               "system file";
    if (scr_identity_others_write(st))
        return st->st_mode & S_IWOTH
                   ? "can be changed by everybody, and is not read"
                   : "can be changed by its group, and is not read: chmod g-w, or "
                     "SCR_CONF_FILE=<its path>";
    return NULL;
}

/* Reads a whole file into *text, to be freed, with a NUL at the end. */
static int file_read_all(int fd, const char *trusted, char **text, size_t *size,
                         const char **fault)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return -errno;
    if (!S_ISREG(st.st_mode)) *fault = "not a regular file";
    if (!*fault && trusted) *fault = file_find_distrust(&st, trusted);
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
static const char *file_find_foreign_link(const char *path, const char *trusted)
{
    struct stat st;
    if (!trusted || lstat(path, &st) != 0 || !S_ISLNK(st.st_mode) ||
        file_has_accepted_owner(&st, trusted))
        return NULL;
    return "is a link of another user, and is not followed";
}

static int file_read(const char *path, const char *trusted, kvtree *layer,
                     scr_problems *problems)
{
    char *text = NULL;
    size_t size = 0;
    const char *fault = file_find_foreign_link(path, trusted);
    if (fault) {
        scr_problems_add(problems, "%s: %s", path, fault);
        return -EINVAL;
    }
    /* O_NONBLOCK: refuses a pipe without a writer at once */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return -ENOENT;
    int rc = fd < 0 ? -errno : file_read_all(fd, trusted, &text, &size, &fault);
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
    return file_read(path, NULL, layer, problems);
}

/* A file with an I/O error counts as existing: reading it reports the error. An unusable
 * prefix folder is reported later. */
static bool file_may_exist(const char *path)
{
    struct stat st;
    return path && (lstat(path, &st) == 0 || errno == EIO || errno == ESTALE);
}

static void file_read_prefix(scr_config *config, const char *prefix,
                             scr_problems *problems)
{
    char *path[2] = {prefix ? scr_path_join(prefix, "scr.yaml") : NULL,
                     prefix ? scr_path_join(prefix, ".scrconf") : NULL};
    const char *trusted = scr_config_get(config, "SCR_TRUSTED_OWNERS", NULL);
    bool exists[2];
    for (int i = 0; i < 2; i++)
        exists[i] = file_may_exist(path[i]);
    if (!path[0] || !path[1])
        scr_problems_add(problems, "no memory for the user's file");
    else if (exists[0] && exists[1])
        scr_problems_add(problems, "both %s and %s exist; remove one of them", path[0],
                         path[1]);
    else if ((exists[0] || exists[1]) &&
             file_read(path[exists[1]], trusted ? trusted : "", config->user, problems) ==
                 -ENOENT)
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
