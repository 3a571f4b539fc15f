/* SPDX-License-Identifier: BSD-3-Clause */
/* Privileges; see tool_user.h. */
#include "lib/tool_user.h"

#include "base/path.h"
#include "common/errtext.h"
#include "common/io.h"
#include "lib/tool.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINKS_MAX = 40, NAME_SIZE = 256 };

/* ---- the way to the folder ---- */

/* A walk along a path, one component after the other. */
typedef struct walk {
    int here; /* folder, opened with O_PATH */
    int links;
    char rest[2 * PATH_MAX];
} walk;

static int move_to(walk *w, int folder)
{
    io_close(&w->here);
    w->here = folder;
    return folder < 0 ? -errno : 0;
}

static int go_to_root(walk *w)
{
    return move_to(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Whether only root can put an entry into this folder. */
static int is_of_root(const struct stat *folder)
{
    return folder->st_uid == 0 && !(folder->st_mode & 022);
}

/* Puts what a link of root says before the rest of the path. */
static int take_link(walk *w, int link, const char *name, char *err)
{
    char target[PATH_MAX], rest[sizeof w->rest];
    struct stat st, parent;
    if (fstat(link, &st) != 0 || fstat(w->here, &parent) != 0)
        return err_sys(err, -errno, "%s", name);
    if (st.st_uid != 0 || !is_of_root(&parent))
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
    return *w->rest == '/' ? go_to_root(w) : 0;
}

static int step(walk *w, const char *name, char *err)
{
    struct stat st;
    int next = openat(w->here, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 || fstat(next, &st) != 0) {
        int rc = -errno;
        io_close(&next);
        return err_sys(err, rc, "%s", name);
    }
    if (!S_ISLNK(st.st_mode)) return move_to(w, next);
    int rc = take_link(w, next, name, err);
    io_close(&next);
    return rc;
}

/* The descriptor of the folder, or -errno with a text. */
static int open_walking(const char *path, char *err)
{
    walk w = {.here = -1};
    int size = snprintf(w.rest, sizeof w.rest, "%s", path);
    if (size < 0 || (size_t)size >= PATH_MAX) return err_sys(err, -ENAMETOOLONG, "path");
    int rc = *path == '/' ? go_to_root(&w)
                          : move_to(&w, open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
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
        rc = step(&w, name, err);
    }
    int folder = rc ? rc : io_open(w.here, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    io_close(&w.here);
    if (folder < 0 && !rc) err_sys(err, folder, "open it");
    return folder;
}

/* ---- owners ---- */

/* What in a prefix folder decides what a command does there. */
static const struct {
    const char *name;
    int config; /* may be root's, too */
} decisive[] = {{".scr", 0}, {"scr.yaml", 1}, {".scrconf", 1}};

static int find_owner(int folder, uid_t *owner, char *err)
{
    struct stat st, inner;
    if (fstat(folder, &st) != 0) return err_sys(err, -errno, "look at it");
    *owner = st.st_uid;
    for (size_t i = 0; i < sizeof decisive / sizeof *decisive; i++) {
        const char *name = decisive[i].name;
        if (fstatat(folder, name, &inner, AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno == ENOENT) continue;
            return err_sys(err, -errno, "%s", name);
        }
        if (inner.st_uid != *owner && !(decisive[i].config && inner.st_uid == 0))
            return err_set(err, -EPERM,
                           "it belongs to user %lu, but %s in it to user %lu; run this "
                           "as the user whose job it is, or give them one owner",
                           (unsigned long)*owner, name, (unsigned long)inner.st_uid);
        if (*owner && !decisive[i].config && !S_ISDIR(inner.st_mode))
            return err_set(err, -EPERM, "%s in it is no folder", name);
    }
    if (*owner == 0 && !is_of_root(&st))
        return err_set(err, -EPERM,
                       "it belongs to root, but others may write there; run this as the "
                       "user whose job it is");
    return 0;
}

/* ---- becoming the owner ---- */

static pid_t child;

static void forward(int signal)
{
    int known = errno;
    kill(child, signal);
    errno = known;
}

/* Root's part: waits, and ends as the child does. */
static void stand_by(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    const struct sigaction action = {.sa_handler = forward, .sa_flags = SA_RESTART};
    int status = 0;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : COMMAND_BAD);
}

static int become(const struct passwd *user)
{
    if (initgroups(user->pw_name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
        setuid(user->pw_uid) != 0)
        return -errno;
    /* what is run now finds that user's files, not root's */
    if (setenv("HOME", user->pw_dir, 1) != 0 || setenv("USER", user->pw_name, 1) != 0 ||
        setenv("LOGNAME", user->pw_name, 1) != 0)
        return -ENOMEM;
    return 0;
}

/* In the child; a killed parent takes it along. */
static int leave_root(const struct passwd *user, pid_t parent)
{
    if (setsid() < 0) return -errno;
    int rc = become(user);
    if (!rc && prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0) rc = -errno;
    return !rc && getppid() != parent ? -ECHILD : rc;
}

static int go_on_as(uid_t owner, const char *prefix)
{
    const struct passwd *user = getpwuid(owner);
    const pid_t parent = getpid();
    if (!user)
        return tool_complain("prefix folder %s belongs to user %lu, whom the user "
                             "database of this machine does not know",
                             prefix, (unsigned long)owner);
    fflush(NULL);
    child = fork();
    if (child < 0) return tool_complain("a new process: %s", strerror(errno));
    if (child > 0) stand_by();
    int rc = leave_root(user, parent);
    if (rc)
        return tool_complain("prefix folder %s belongs to %s, and this program cannot "
                             "become that user: %s",
                             prefix, user->pw_name, strerror(-rc));
    return COMMAND_GOOD;
}

static int complain(const char *prefix, int rc, const char *why)
{
    char cwd[PATH_MAX];
    char *full = getcwd(cwd, sizeof cwd) ? scr_path_absolute(cwd, prefix) : NULL;
    tool_complain("prefix folder %s: %s", full ? full : prefix,
                  rc == -ENOENT ? strerror(ENOENT) : why);
    free(full);
    return COMMAND_BAD;
}

int tool_user_enter(const char *prefix)
{
    char err[ERRTEXT_SIZE] = "";
    uid_t owner = 0;
    if (geteuid() != 0) return COMMAND_GOOD;
    int folder = open_walking(prefix, err);
    int rc = folder < 0 ? folder : find_owner(folder, &owner, err);
    io_close(&folder);
    if (rc) return complain(prefix, rc, err);
    return owner ? go_on_as(owner, prefix) : COMMAND_GOOD;
}

/* ---- programs ---- */

int tool_user_may_run(const char *path, char *err)
{
    struct stat st;
    if (stat(path, &st) != 0) return err_sys(err, -errno, "%s", path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return err_set(err, -EPERM,
                       "%s belongs to user %lu, and is executed only if it is yours or "
                       "root's",
                       path, (unsigned long)st.st_uid);
    if (st.st_mode & S_IWOTH)
        return err_set(err, -EPERM, "%s can be changed by everybody, and is not executed",
                       path);
    return 0;
}
