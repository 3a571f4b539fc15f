/* SPDX-License-Identifier: BSD-3-Clause */
/* Privileges; see tool_user.h. */
#include "lib/tool_user.h"

#include "base/path.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/others.h"
#include "common/owner.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int tool_user_enter(const char *prefix)
{
    return owner_enter("prefix directory", prefix);
}

/* Checks that only root or this user can change the file or directory. above: a directory
 * above the program's directory. If such a directory has a sticky bit, only owners can
 * replace its entries. In the program's own directory, others could put any file of this
 * user. */
static int user_check_open(int fd, const char *path, bool above, kvtree_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return err_sys(err, -errno, "%s", path);
    const char *folder = S_ISDIR(st.st_mode) ? "directory " : "";
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return err_set(err, -EPERM,
                       "%s%s belongs to user %lu, and %s executed only if it is yours or "
                       "root's",
                       folder, path, (unsigned long)st.st_uid,
                       *folder ? "what is in it is" : "is");
    if (!others_write(fd, &st) || (above && st.st_mode & S_ISVTX)) return 0;
    return err_set(err, -EPERM, "%s%s can be changed by %s, and %s executed", folder,
                   path, st.st_mode & S_IWOTH ? "everybody" : "its group",
                   *folder ? "nothing in it is" : "is not");
}

static int user_check_owner(const char *path, bool above, kvtree_error *err)
{
    int fd = io_open(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0) return err_sys(err, fd, "%s", path);
    int rc = user_check_open(fd, path, above, err);
    io_close(&fd);
    return rc;
}

enum { LINKS_MAX = 40 }; /* nested links, as in the kernel */

static int user_check_links(const char *path, int links, kvtree_error *err);

/* Checks a link. A link of another user may lead to any program of this user. So may a
 * link of this user in a directory that others can change. The links in its target are
 * checked, too. */
static int user_check_link(const char *path, const struct stat *st, int links,
                           kvtree_error *err)
{
    char folder[PATH_MAX], target[PATH_MAX], next[2 * PATH_MAX];
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return err_set(err, -EPERM, "%s is a link of user %lu, and not followed", path,
                       (unsigned long)st->st_uid);
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    int rc = user_check_owner(folder, false, err);
    if (rc) return rc;
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0 || links == 0) return err_sys(err, n < 0 ? -errno : -ELOOP, "%s", path);
    target[n] = 0;
    snprintf(next, sizeof next, "%s%s%s", *target == '/' ? "" : folder,
             *target == '/' || slash ? "" : "/", target);
    return user_check_links(next, links - 1, err);
}

static int user_check_links(const char *path, int links, kvtree_error *err)
{
    char part[2 * PATH_MAX];
    struct stat st;
    for (size_t n = 0; path[n]; n++) {
        n += strspn(path + n, "/");
        n += strcspn(path + n, "/");
        snprintf(part, sizeof part, "%.*s", (int)n, path);
        if (lstat(part, &st) != 0) return err_sys(err, -errno, "%s", part);
        int rc = S_ISLNK(st.st_mode) ? user_check_link(part, &st, links, err) : 0;
        if (rc || !path[n]) return rc;
    }
    return 0;
}

int tool_user_program(const char *path, char **program, kvtree_error *err)
{
    char *full = realpath(path, NULL), *above = full ? strdup(full) : NULL;
    int rc = !full   ? err_sys(err, -errno, "%s", path)
             : above ? user_check_owner(full, false, err)
                     : err_sys(err, -ENOMEM, "%s", path);
    /* after the program, since a link may have changed after realpath followed it */
    if (!rc) rc = user_check_links(path, LINKS_MAX, err);
    bool is_above = false;
    for (char *slash; !rc && above[1] && (slash = strrchr(above, '/')) != NULL;) {
        slash[slash == above] = 0;
        rc = user_check_owner(above, is_above, err);
        is_above = true;
    }
    free(above);
    if (rc)
        free(full);
    else
        *program = full;
    return rc;
}
