/* SPDX-License-Identifier: BSD-3-Clause */
/* Changing from root to the owner of a directory; see owner.h. */
#include "common/owner.h"

#include "common/command.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/mount.h"
#include "common/relay.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40, NAME_SIZE = 256 };

/* ---- the way to the directory ---- */

/* A walk along a path, one component after the other. */
typedef struct walk {
    int here; /* directory, opened with O_PATH */
    int links;
    int loose; /* users other than root can exchange a directory on the way */
    char rest[2 * PATH_MAX];
} walk;

static int owner_walk_to(walk *w, int folder)
{
    io_close(&w->here);
    w->here = folder;
    return folder < 0 ? -errno : 0;
}

static int owner_walk_to_root(walk *w)
{
    return owner_walk_to(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Whether only root can put an entry into this directory. */
static bool owner_is_root_only(const struct stat *folder)
{
    return folder->st_uid == 0 && !(folder->st_mode & 022);
}

/* Replaces a link of root in the path by its target. */
static int owner_walk_link(walk *w, int link, const char *name, kvtree_error *err)
{
    char target[PATH_MAX], rest[sizeof w->rest];
    struct stat st, parent;
    if (fstat(link, &st) != 0 || fstat(w->here, &parent) != 0)
        return err_sys(err, -errno, "%s", name);
    if (st.st_uid != 0 || !owner_is_root_only(&parent))
        return err_set(err, -ELOOP,
                       "%s on the way to it is a link that user %lu can change; give the "
                       "path without links",
                       name, (unsigned long)(st.st_uid ? st.st_uid : parent.st_uid));
    ssize_t n = readlinkat(link, "", target, sizeof target - 1);
    if (n < 0) return err_sys(err, -errno, "%s", name);
    target[n] = 0;
    int size = snprintf(rest, sizeof rest, "%s/%s", target, w->rest);
    if (++w->links > LINKS_MAX) return err_sys(err, -ELOOP, "%s", name);
    if (size < 0 || (size_t)size >= sizeof rest)
        return err_sys(err, -ENAMETOOLONG, "%s", name);
    strcpy(w->rest, rest);
    return *w->rest == '/' ? owner_walk_to_root(w) : 0;
}

/* In a sticky directory of root, only root can replace entries of root. */
static bool owner_is_fixed(const struct stat *parent, const struct stat *entry)
{
    int sticky = parent->st_uid == 0 && parent->st_mode & S_ISVTX;
    return owner_is_root_only(parent) || (sticky && entry->st_uid == 0);
}

static int owner_walk_step(walk *w, const char *name, kvtree_error *err)
{
    struct stat st, parent;
    int next = openat(w->here, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 || fstat(next, &st) != 0 || fstat(w->here, &parent) != 0) {
        int rc = -errno;
        io_close(&next);
        return err_sys(err, rc, "%s", name);
    }
    w->loose |= !owner_is_fixed(&parent, &st);
    if (!S_ISLNK(st.st_mode)) return owner_walk_to(w, next);
    int rc = owner_walk_link(w, next, name, err);
    io_close(&next);
    return rc;
}

/* Opens a directory: returns its descriptor, or -errno with a text. *firm: only root can
 * make the path lead elsewhere. */
static int owner_open_folder(const char *path, int *firm, kvtree_error *err)
{
    walk w = {.here = -1};
    char cwd[PATH_MAX] = "";
    if (*path != '/' && !getcwd(cwd, sizeof cwd)) return err_sys(err, -errno, "path");
    int size = snprintf(w.rest, sizeof w.rest, "%s/%s", cwd, path);
    if (size < 0 || (size_t)size >= PATH_MAX) return err_sys(err, -ENAMETOOLONG, "path");
    int rc = owner_walk_to_root(&w);
    while (!rc) {
        char name[NAME_SIZE];
        const char *first = w.rest + strspn(w.rest, "/");
        size_t n = strcspn(first, "/");
        if (!n) break;
        if (n >= sizeof name) {
            rc = err_sys(err, -ENAMETOOLONG, "%.40s...", first);
            break;
        }
        memcpy(name, first, n);
        name[n] = 0;
        memmove(w.rest, first + n, strlen(first + n) + 1);
        rc = owner_walk_step(&w, name, err);
    }
    int folder = rc ? rc : io_open(w.here, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    io_close(&w.here);
    if (folder < 0 && !rc) err_sys(err, folder, "open it");
    *firm = !w.loose;
    return folder;
}

/* ---- owners ---- */

/* Entries of a directory that determine the work of a command there. */
static const struct {
    const char *name;
    int config; /* may belong to root */
} decisive[] = {{".scr", 0}, {"scr.yaml", 1}, {".scrconf", 1}};

/* Checks that an entry belongs to the owner, or to root where allowed. *known: the entry
 * exists. */
static int owner_check_entry(int folder, const char *name, uid_t owner, int may_be_root,
                             struct stat *inner, int *known, kvtree_error *err)
{
    *known = 0;
    if (fstatat(folder, name, inner, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "%s", name);
    *known = 1;
    if (inner->st_uid == owner || (may_be_root && inner->st_uid == 0)) return 0;
    return err_set(err, -EPERM,
                   "it belongs to user %lu, but %s in it to user %lu; run this as the "
                   "user of the job, or give them one owner",
                   (unsigned long)owner, name, (unsigned long)inner->st_uid);
}

/* A file system that a user mounted reports whatever owners that user chooses. */
static int owner_check_mount(int folder, const struct stat *st, kvtree_error *err)
{
    uid_t user = (uid_t)-1;
    int rc = mount_owner(folder, st, &user);
    if (rc) return err_sys(err, rc, "look at its file system");
    if (user == st->st_uid) return 0;
    if (user == (uid_t)-1)
        return err_set(err, -EPERM, "who mounted its file system cannot be told");
    return err_set(err, -EPERM,
                   "it belongs to user %lu according to a file system that user %lu "
                   "mounted; run this as the user of the job",
                   (unsigned long)st->st_uid, (unsigned long)user);
}

static int owner_find(int folder, int firm, const char *file, uid_t *owner,
                      kvtree_error *err)
{
    struct stat st, inner;
    int known, rc = 0;
    if (fstat(folder, &st) != 0) return err_sys(err, -errno, "look at it");
    *owner = st.st_uid;
    rc = owner_check_mount(folder, &st, err);
    for (size_t i = 0; i < sizeof decisive / sizeof *decisive && !rc; i++) {
        const char *name = decisive[i].name;
        int config = decisive[i].config;
        rc = owner_check_entry(folder, name, *owner, config, &inner, &known, err);
        if (!rc && known && *owner && !config && !S_ISDIR(inner.st_mode))
            rc = err_set(err, -EPERM, "%s in it is not a directory", name);
        if (!rc && known && !*owner && !config && !owner_is_root_only(&inner))
            rc = err_set(err, -EPERM,
                         "it belongs to root, but others may write to %s in it; run this "
                         "as the user of the job",
                         name);
    }
    if (!rc && file) rc = owner_check_entry(folder, file, *owner, 0, &inner, &known, err);
    if (!rc && *owner == 0 && !owner_is_root_only(&st))
        rc = err_set(err, -EPERM,
                     "it belongs to root, but others may write there; run this as the "
                     "user of the job");
    if (!rc && *owner == 0 && !firm)
        rc = err_set(err, -EPERM,
                     "it belongs to root, but others can put another directory in its "
                     "place, or in that of one above it");
    return rc;
}

/* ---- becoming the owner ---- */

/* The directory whose owner root became. */
static struct {
    bool is_known;
    struct stat folder;
} owner_entered;

/* Drops privileges in scheduling that users cannot have: a higher priority, and
 * protection from being killed when memory is short. Failures are ignored, as in other
 * programs that change the user. */
static void owner_drop_priority(void)
{
    const struct sched_param none = {.sched_priority = 0};
    char text[16] = "";
    int policy = sched_getscheduler(0);
    if (policy == SCHED_FIFO || policy == SCHED_RR)
        (void)sched_setscheduler(0, SCHED_OTHER, &none);
    if (getpriority(PRIO_PROCESS, 0) < 0) (void)setpriority(PRIO_PROCESS, 0, 0);
    int fd = io_open(AT_FDCWD, "/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return;
    if (read(fd, text, sizeof text - 1) > 0 && *text == '-')
        (void)io_pwrite(fd, "0", 1, 0);
    io_close(&fd);
}

static int owner_become(const struct passwd *user)
{
    owner_drop_priority();
    if (initgroups(user->pw_name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
        setuid(user->pw_uid) != 0)
        return -errno;
    /* programs must find the files of that user, not of root */
    if (setenv("HOME", user->pw_dir, 1) != 0 || setenv("USER", user->pw_name, 1) != 0 ||
        setenv("LOGNAME", user->pw_name, 1) != 0)
        return -ENOMEM;
    return 0;
}

/* Leaves a hidden working directory. A process keeps access to its working directory,
 * even if the path to it is closed for its user. */
static int owner_leave_hidden_folder(const char *folder)
{
    char path[PATH_MAX];
    struct stat here, there;
    if (getcwd(path, sizeof path) && stat(".", &here) == 0 && stat(path, &there) == 0 &&
        io_is_same_file(&here, &there))
        return 0;
    return *folder == '/' && chdir("/") == 0 ? 0 : -EACCES;
}

/* New files get the permissions of the directory, and only a group that shares the
 * directory may write besides the owner: the umask of root does not express what the
 * owner wants. */
static mode_t owner_umask(mode_t folder)
{
    const mode_t shared = S_ISGID | S_IWGRP;
    const mode_t group = (folder & shared) == shared ? 0 : S_IWGRP;
    return (~folder & (S_IRWXG | S_IRWXO)) | group | S_IWOTH;
}

static int owner_continue_as(uid_t owner, const char *what, const char *folder)
{
    const struct passwd *user = getpwuid(owner);
    pid_t front = 0;
    if (!user)
        return command_complain("OWNER_UNKNOWN",
                                "%s %s belongs to user %lu, whom the user database of "
                                "this machine does not know",
                                what, folder, (unsigned long)owner);
    int rc = relay_split(&front);
    if (!rc) rc = owner_become(user);
    if (!rc && owner_entered.is_known) umask(owner_umask(owner_entered.folder.st_mode));
    if (!rc) rc = relay_depend(front);
    if (!rc) rc = owner_leave_hidden_folder(folder);
    if (rc)
        return command_complain("OWNER_CHANGE_FAILED",
                                "%s %s belongs to %s, and this program cannot become "
                                "that user: %s",
                                what, folder, user->pw_name, strerror(-rc));
    return COMMAND_GOOD;
}

static int owner_complain(const char *what, const char *folder, int rc, const char *why)
{
    char cwd[PATH_MAX] = "";
    if (*folder != '/' && !getcwd(cwd, sizeof cwd)) *cwd = 0;
    const char *slash = *cwd && strcmp(cwd, "/") != 0 ? "/" : "";
    if (strcmp(folder, ".") == 0 && *cwd) folder = slash = "";
    return command_complain("DIRECTORY_UNUSABLE", "%s %s%s%s: %s", what, cwd, slash,
                            folder, rc == -ENOENT ? strerror(ENOENT) : why);
}

static int owner_enter_folder(const char *what, const char *folder, const char *file)
{
    kvtree_error err = {""};
    uid_t owner = 0;
    if (geteuid() != 0) return COMMAND_GOOD;
    int firm = 0, dir = owner_open_folder(folder, &firm, &err);
    int rc = dir < 0 ? dir : owner_find(dir, firm, file, &owner, &err);
    owner_entered.is_known = !rc && owner && fstat(dir, &owner_entered.folder) == 0;
    io_close(&dir);
    if (rc) return owner_complain(what, folder, rc, err.text);
    return owner ? owner_continue_as(owner, what, folder) : COMMAND_GOOD;
}

int owner_enter(const char *what, const char *folder)
{
    return owner_enter_folder(what, folder, NULL);
}

bool owner_is_entered(int folder)
{
    struct stat st;
    return !owner_entered.is_known ||
           (fstat(folder, &st) == 0 && io_is_same_file(&st, &owner_entered.folder));
}

/* Returns the directory part of the path of a file. */
static int owner_folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + (slash == path) : 0;
    if (n >= PATH_MAX)
        return command_complain("PATH_TOO_LONG", "%.100s...: %s", path,
                                strerror(ENAMETOOLONG));
    memcpy(folder, slash ? path : ".", slash ? n : 1);
    folder[slash ? n : 1] = 0;
    return COMMAND_GOOD;
}

static const char *owner_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int owner_enter_of(const char *path)
{
    char folder[PATH_MAX];
    if (owner_folder_of(path, folder) != COMMAND_GOOD) return COMMAND_BAD;
    return owner_enter_folder("directory", folder, owner_name_of(path));
}

int owner_keep_folder_of(const char **path)
{
    static char kept[PATH_MAX];
    char folder[PATH_MAX];
    if (!owner_entered.is_known) return COMMAND_GOOD;
    if (owner_folder_of(*path, folder) != COMMAND_GOOD) return COMMAND_BAD;
    int fd = io_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return command_complain("DIRECTORY_UNUSABLE", "directory %s: %s", folder,
                                strerror(-fd));
    if (!owner_is_entered(fd))
        return command_complain("DIRECTORY_UNUSABLE",
                                "directory %s: another directory is in its place now",
                                folder);
    if (snprintf(kept, sizeof kept, "/proc/self/fd/%d/%s", fd, owner_name_of(*path)) >=
        (int)sizeof kept)
        return command_complain("PATH_TOO_LONG", "%.100s...: %s", *path,
                                strerror(ENAMETOOLONG));
    *path = kept;
    return COMMAND_GOOD;
}
