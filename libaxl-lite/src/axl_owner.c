/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of a state file: a lock on a file beside it, which ends with its owner; the
 * signs of life that scr_transfer writes into the lock file; and the killing of an owner
 * that gives no sign, because it is stopped or hangs in a file system. */
#include "src/axl_private.h"

#include "common/errtext.h"
#include "common/io.h"
#include "common/number.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the lock ---- */

static int owner_lock_name(const char *path, char name[PATH_MAX], axl_error *err)
{
    if (snprintf(name, PATH_MAX, "%s.lock", path) < PATH_MAX) return 0;
    return err_sys(err, -ENAMETOOLONG, "state file %.100s", path);
}

/* Whether the locked file is still the lock file: a previous owner may have removed it.
 */
static bool owner_is_current(int fd, const char *name)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && stat(name, &there) == 0 &&
           io_is_same_file(&ours, &there);
}

/* Opens the lock file: returns its descriptor, or -errno with a text. The owner writes
 * into the lock file, so a file with a second name is refused. */
static int owner_open_lock(const char *name, axl_error *err)
{
    const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    struct stat st;
    int fd = io_open(AT_FDCWD, name, flags, 0600);
    if (fd < 0) return err_sys(err, fd, "open %s", name);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink <= 1) return fd;
    io_close(&fd);
    return err_set(err, -EPERM, "%s is not a file of its own, and is not locked", name);
}

int axl_owner_take(const char *path, int *owner, axl_error *err)
{
    char name[PATH_MAX];
    int rc = owner_lock_name(path, name, err);
    while (!rc) {
        int fd = owner_open_lock(name, err);
        if (fd < 0) return fd;
        rc = io_lock(fd, F_OFD_SETLK, F_WRLCK);
        if (!rc && owner_is_current(fd, name)) {
            *owner = fd;
            return 0;
        }
        io_close(&fd);
        if (rc == -EAGAIN)
            return err_set(err, -EBUSY, "another process works on %s", path);
        if (rc) err_sys(err, rc, "lock %s", name);
    }
    return rc;
}

/* Queries the lock without taking it: even a brief lock could turn an owner away. */
int axl_is_busy(const char *path)
{
    char name[PATH_MAX];
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int rc = owner_lock_name(path, name, NULL);
    if (rc) return rc;
    int fd = io_open(AT_FDCWD, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0) return fd == -ENOENT ? 0 : fd;
    rc = fcntl(fd, F_OFD_GETLK, &all) == 0 ? all.l_type != F_UNLCK : -errno;
    io_close(&fd);
    return rc;
}

bool axl_owner_is_there(const char *path)
{
    return axl_is_busy(path) > 0;
}

void axl_owner_drop(const char *path, int *owner)
{
    char name[PATH_MAX];
    if (*owner >= 0 && owner_lock_name(path, name, NULL) == 0) unlink(name);
    io_close(owner);
}

/* ---- signs of life ---- */

/* Errors are ignored: a disk that is full for a sign is also full for the state file. */
void axl_pulse_beat(axl_pulse *pulse, uint64_t bytes)
{
    char text[64];
    double now = axl_seconds(CLOCK_MONOTONIC);
    if (!pulse || now < pulse->next) return;
    pulse->next = now + AXL_BEAT;
    int n = snprintf(text, sizeof text, "%020lu %020llu\n", ++pulse->beats,
                     (unsigned long long)bytes);
    io_pwrite(pulse->owner, text, (size_t)n, 0);
}

/* Reads the sign of life. An empty sign counts as one, too. */
static void owner_read_sign(const char *path, char sign[AXL_SIGN_SIZE])
{
    char name[PATH_MAX];
    ssize_t n = 0;
    if (owner_lock_name(path, name, NULL) == 0) {
        int fd = io_open(AT_FDCWD, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (fd >= 0) n = io_pread(fd, sign, AXL_SIGN_SIZE - 1, 0);
        io_close(&fd);
    }
    sign[n > 0 ? n : 0] = 0;
}

/* Number of patience intervals that a living process may copy nothing: written data may
 * be waiting for a slow disk. */
enum { STILL = 10 };

void axl_listen(axl_listener *l, const char *path, double patience)
{
    char sign[AXL_SIGN_SIZE];
    double now = axl_seconds(CLOCK_MONOTONIC), step = now - l->looked;
    owner_read_sign(path, sign);
    /* the whole job may have been stopped: that time is not silence */
    if (step > patience / 3) step = patience / 3;
    const char *bytes = strchr(sign, ' '), *before = strchr(l->sign, ' ');
    bool first = l->looked == 0, moved = !bytes || !before || strcmp(bytes, before) != 0;
    l->silent = first || strcmp(sign, l->sign) != 0 ? 0 : l->silent + step;
    l->still = first || moved ? 0 : l->still + step;
    if (l->silent >= patience)
        snprintf(l->why, sizeof l->why, "has given no sign of life for %g seconds",
                 patience);
    else if (l->still >= STILL * patience)
        snprintf(l->why, sizeof l->why, "has copied nothing for %g seconds",
                 STILL * patience);
    l->looked = now;
    strcpy(l->sign, sign);
}

/* ---- killing an owner that hangs ---- */

/* Seconds in which the kernel ends a killed process that does not wait for a device. */
#define DEATH 2.0

/* Whether descriptor fd of a process refers to the lock file and holds its lock. */
static bool owner_has_lock(const char *pid, const char *fd, const struct stat *lock)
{
    char path[2 * NAME_MAX + 32], text[1024];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%s/fd/%s", pid, fd);
    if (stat(path, &st) != 0 || !io_is_same_file(&st, lock)) return false;
    snprintf(path, sizeof path, "/proc/%s/fdinfo/%s", pid, fd);
    int info = io_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    ssize_t n = info < 0 ? 0 : io_read(info, text, sizeof text - 1);
    io_close(&info);
    text[n > 0 ? n : 0] = 0;
    return strstr(text, "OFDLCK") != NULL;
}

static bool owner_owns(const char *pid, const struct stat *lock)
{
    char path[NAME_MAX + 16];
    const struct dirent *item;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *stream = opendir(path); /* fails for processes of other users */
    while (stream && !found && (item = readdir(stream)) != NULL)
        found = isdigit((unsigned char)*item->d_name) &&
                owner_has_lock(pid, item->d_name, lock);
    if (stream) closedir(stream);
    return found;
}

/* Kills all processes that hold the lock: one, or a parent and its child. Returns the
 * last of them, or 0. */
static pid_t owner_kill_owners(const struct stat *lock)
{
    const struct dirent *item;
    int64_t pid;
    pid_t killed = 0;
    DIR *stream = opendir("/proc");
    while (stream && (item = readdir(stream)) != NULL)
        if (number_int64(item->d_name, &pid) == 0 && pid != getpid() &&
            owner_owns(item->d_name, lock) && kill((pid_t)pid, SIGKILL) == 0)
            killed = (pid_t)pid;
    if (stream) closedir(stream);
    return killed;
}

pid_t axl_owner_kill(const char *path)
{
    char name[PATH_MAX];
    struct stat lock, now;
    if (owner_lock_name(path, name, NULL) != 0 || stat(name, &lock) != 0) return 0;
    pid_t killed = owner_kill_owners(&lock);
    double end = axl_seconds(CLOCK_MONOTONIC) + DEATH;
    while (killed && axl_owner_is_there(path) && axl_seconds(CLOCK_MONOTONIC) < end)
        usleep(1000);
    /* the process hangs in the kernel: without its file, its lock has no effect */
    if (killed && stat(name, &now) == 0 && now.st_ino == lock.st_ino) unlink(name);
    return killed;
}
