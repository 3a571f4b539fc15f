/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls of the product: each lets time pass, may fail by a strike, and works on
 * the simulated files and clocks; libc_process.cpp has the rest. */
#include "libc.h"

#include "engine.h"

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

using sim::Call;
using sim::Fate;
using sim::Files;
using sim::Machine;
using sim::Process;

char **simulated_environ;

namespace
{

Process &me()
{
    return Machine::self();
}

Files &files()
{
    return *me().files;
}

/* Sets errno and returns -1, as the C library does. */
template <typename T> T result(T value)
{
    if (value >= 0) return value;
    errno = static_cast<int>(-value);
    return -1;
}

std::string name_at(int dir, const char *path)
{
    if (*path == '/') return path;
    std::string folder = dir == AT_FDCWD ? files().cwd : files().path_of(dir);
    return *path ? folder + "/" + path : folder;
}

/* A call on a path. */
template <typename F>
auto on_path(const char *call, bool changes, int dir, const char *path, F work)
    -> decltype(work())
{
    Fate fate = me().machine->enter({call, name_at(dir, path), changes, false, false});
    return result(fate.error ? static_cast<decltype(work())>(fate.error) : work());
}

/* A call on an open file. */
template <typename F>
auto on_file(const char *call, bool changes, int fd, F work) -> decltype(work())
{
    Fate fate = me().machine->enter({call, files().path_of(fd), changes, false, false});
    return result(fate.error ? static_cast<decltype(work())>(fate.error) : work());
}

/* A call that transfers size bytes, possibly fewer. */
template <typename F>
ssize_t move(const char *call, bool changes, int fd, size_t size, F work)
{
    Fate fate = me().machine->enter({call, files().path_of(fd), changes, true, true});
    if (fate.error) return result(static_cast<ssize_t>(fate.error));
    return result(work(fate.half && size > 1 ? size / 2 : size));
}

} // namespace

extern "C" {

/* ---- files ---- */

static int open_with(int dir, const char *path, int flags, mode_t mode)
{
    const bool changes = flags & (O_CREAT | O_TRUNC);
    return on_path("open", changes, dir, path,
                   [&] { return files().openat(dir, path, flags, mode); });
}

static mode_t mode_of(int flags, va_list list)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

int simulated_open64(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const mode_t mode = mode_of(flags, list);
    va_end(list);
    return open_with(AT_FDCWD, path, flags, mode);
}

int simulated_openat64(int dir, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const mode_t mode = mode_of(flags, list);
    va_end(list);
    return open_with(dir, path, flags, mode);
}

int simulated_close(int fd)
{
    const std::string path = files().path_of(fd);
    Fate fate = me().machine->enter({"close", path, false, false, false});
    int rc = files().close(fd); /* on Linux the descriptor is closed even if this fails */
    return result(rc ? rc : fate.error);
}

ssize_t simulated_read(int fd, void *buf, size_t size)
{
    return move("read", false, fd, size,
                [&](size_t n) { return files().read(fd, buf, n); });
}

ssize_t simulated_pread64(int fd, void *buf, size_t size, off_t offset)
{
    return move("read", false, fd, size,
                [&](size_t n) { return files().pread(fd, buf, n, offset); });
}

/* Output to the descriptors 1 and 2, the terminal. */
static ssize_t print(const void *text, size_t size)
{
    me().printed.append(static_cast<const char *>(text), size);
    return static_cast<ssize_t>(size);
}

ssize_t simulated_write(int fd, const void *buf, size_t size)
{
    if (fd == 1 || fd == 2) return print(buf, size);
    return move("write", true, fd, size,
                [&](size_t n) { return files().write(fd, buf, n); });
}

ssize_t simulated_pwrite64(int fd, const void *buf, size_t size, off_t offset)
{
    return move("write", true, fd, size,
                [&](size_t n) { return files().pwrite(fd, buf, n, offset); });
}

ssize_t simulated_copy_file_range(int in, off_t *from, int out, off_t *to, size_t size,
                                  unsigned flags)
{
    return move("copy", true, out, size, [&](size_t n) {
        return files().copy_file_range(in, from, out, to, n, flags);
    });
}

off_t simulated_lseek64(int fd, off_t offset, int whence)
{
    return result(files().lseek(fd, offset, whence));
}

int simulated_ftruncate64(int fd, off_t size)
{
    return on_file("truncate", true, fd, [&] { return files().ftruncate(fd, size); });
}

int simulated_fallocate64(int fd, int mode, off_t offset, off_t size)
{
    return on_file("fallocate", true, fd,
                   [&] { return files().fallocate(fd, mode, offset, size); });
}

int simulated_fsync(int fd)
{
    return on_file("fsync", true, fd, [&] { return files().fsync(fd); });
}

int simulated_sync_file_range(int, off_t, off_t, unsigned)
{
    return 0;
}

int simulated_posix_fadvise64(int, off_t, off_t, int)
{
    return 0;
}

int simulated_fchmod(int fd, mode_t mode)
{
    return on_file("chmod", true, fd, [&] { return files().fchmod(fd, mode); });
}

int simulated_chmod(const char *path, mode_t mode)
{
    return on_path("chmod", true, AT_FDCWD, path,
                   [&] { return files().fchmodat(AT_FDCWD, path, mode); });
}

int simulated_fchmodat(int dir, const char *path, mode_t mode, int)
{
    return on_path("chmod", true, dir, path,
                   [&] { return files().fchmodat(dir, path, mode); });
}

int simulated_fstat64(int fd, struct stat *st)
{
    return result(files().fstat(fd, st));
}

int simulated_fstatat64(int dir, const char *path, struct stat *st, int flags)
{
    return on_path("stat", false, dir, path,
                   [&] { return files().fstatat(dir, path, st, flags); });
}

int simulated_stat64(const char *path, struct stat *st)
{
    return simulated_fstatat64(AT_FDCWD, path, st, 0);
}

int simulated_lstat64(const char *path, struct stat *st)
{
    return simulated_fstatat64(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int simulated_fstatvfs64(int fd, struct statvfs *st)
{
    return on_file("statvfs", false, fd, [&] { return files().fstatvfs(fd, st); });
}

/* The product asks only for the type of the file system. 0 is none that needs another way
 * to copy. */
int simulated_fstatfs64(int, struct statfs *st)
{
    memset(st, 0, sizeof *st);
    return 0;
}

int simulated_access(const char *path, int mode)
{
    return on_path("access", false, AT_FDCWD, path,
                   [&] { return files().faccessat(AT_FDCWD, path, mode); });
}

int simulated_mkdirat(int dir, const char *path, mode_t mode)
{
    return on_path("mkdir", true, dir, path,
                   [&] { return files().mkdirat(dir, path, mode); });
}

int simulated_unlinkat(int dir, const char *path, int flags)
{
    return on_path("unlink", true, dir, path,
                   [&] { return files().unlinkat(dir, path, flags); });
}

int simulated_unlink(const char *path)
{
    return simulated_unlinkat(AT_FDCWD, path, 0);
}

int simulated_renameat2(int from_dir, const char *from, int to_dir, const char *to,
                        unsigned flags)
{
    return on_path("rename", true, to_dir, to,
                   [&] { return files().renameat2(from_dir, from, to_dir, to, flags); });
}

int simulated_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    return simulated_renameat2(from_dir, from, to_dir, to, 0);
}

int simulated_linkat(int from_dir, const char *from, int to_dir, const char *to,
                     int flags)
{
    return on_path("link", true, to_dir, to,
                   [&] { return files().linkat(from_dir, from, to_dir, to, flags); });
}

int simulated_symlinkat(const char *target, int dir, const char *path)
{
    return on_path("symlink", true, dir, path,
                   [&] { return files().symlinkat(target, dir, path); });
}

ssize_t simulated_readlink(const char *path, char *buf, size_t size)
{
    return on_path("readlink", false, AT_FDCWD, path,
                   [&] { return files().readlinkat(AT_FDCWD, path, buf, size); });
}

ssize_t simulated_readlinkat(int dir, const char *path, char *buf, size_t size)
{
    return on_path("readlink", false, dir, path,
                   [&] { return files().readlinkat(dir, path, buf, size); });
}

int simulated_utimensat(int dir, const char *path, const struct timespec times[2],
                        int flags)
{
    return on_path("utimens", true, dir, path ? path : "",
                   [&] { return files().utimensat(dir, path, times, flags); });
}

int simulated_futimens(int fd, const struct timespec times[2])
{
    return on_file("utimens", true, fd,
                   [&] { return files().utimensat(fd, nullptr, times, 0); });
}

ssize_t simulated_getxattr(const char *, const char *, void *, size_t)
{
    errno = ENODATA;
    return -1;
}

ssize_t simulated_lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    return simulated_getxattr(path, name, value, size);
}

char *simulated_realpath(const char *path, char *resolved)
{
    std::string found;
    int rc = on_path("realpath", false, AT_FDCWD, path,
                     [&] { return files().realpath(path, found); });
    if (rc < 0) return nullptr;
    if (!resolved) return strdup(found.c_str());
    return strcpy(resolved, found.c_str());
}

char *simulated_getcwd(char *buf, size_t size)
{
    return strncpy(buf, files().cwd.c_str(), size);
}

int simulated_fcntl64(int fd, int command, ...)
{
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    auto *lock = static_cast<struct flock *>(argument);
    const bool of_process = command == F_SETLK || command == F_GETLK;
    switch (command) {
    case F_SETLK:
    case F_OFD_SETLK:
        return on_file("lock", false, fd,
                       [&] { return files().lock(fd, lock->l_type, of_process); });
    case F_OFD_SETLKW:
        for (;;) {
            int rc = on_file("lock", false, fd,
                             [&] { return files().lock(fd, lock->l_type); });
            if (rc == 0 || errno != EAGAIN) return rc;
            simgrid::s4u::this_actor::sleep_for(1e-3);
        }
    case F_GETLK:
    case F_OFD_GETLK: {
        int type = files().lock_test(fd, lock->l_type, of_process);
        if (type < 0) return result(type);
        lock->l_type = static_cast<short>(type);
        return 0;
    }
    case F_DUPFD_CLOEXEC:
        return result(files().dup(fd));
    default:
        return 0; /* descriptor flags */
    }
}

/* ---- directories ---- */

namespace
{
struct Directory {
    int fd;
    std::vector<Files::Name> names;
    size_t next = 0;
    struct dirent64 item;
};
} // namespace

DIR *simulated_fdopendir(int fd)
{
    auto directory = std::make_unique<Directory>();
    directory->fd = fd;
    int rc =
        on_file("readdir", false, fd, [&] { return files().list(fd, directory->names); });
    return rc < 0 ? nullptr : reinterpret_cast<DIR *>(directory.release());
}

DIR *simulated_opendir(const char *path)
{
    int fd = open_with(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) return nullptr;
    DIR *stream = simulated_fdopendir(fd);
    if (!stream) files().close(fd);
    return stream;
}

struct dirent64 *simulated_readdir64(DIR *stream)
{
    auto *d = reinterpret_cast<Directory *>(stream);
    if (d->next == d->names.size()) return nullptr;
    const Files::Name &name = d->names[d->next++];
    d->item.d_ino = name.number;
    d->item.d_type = name.type;
    strcpy(d->item.d_name, name.name.c_str());
    return &d->item;
}

int simulated_closedir(DIR *stream)
{
    auto *d = reinterpret_cast<Directory *>(stream);
    int rc = files().close(d->fd);
    delete d;
    return result(rc);
}

int simulated_dirfd(DIR *stream)
{
    return reinterpret_cast<Directory *>(stream)->fd;
}

/* ---- time ---- */

int simulated_clock_gettime(clockid_t clock, struct timespec *time)
{
    const Process &p = me();
    double seconds =
        clock == CLOCK_REALTIME ? p.machine->date(*p.node) : 1000 + p.machine->now();
    time->tv_sec = static_cast<time_t>(seconds);
    time->tv_nsec =
        static_cast<long>(1e9 * (seconds - static_cast<double>(time->tv_sec)));
    return 0;
}

int simulated_gettimeofday(struct timeval *time, void *)
{
    struct timespec now;
    simulated_clock_gettime(CLOCK_REALTIME, &now);
    *time = {now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t simulated_time(time_t *place)
{
    struct timespec now;
    simulated_clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}

static void sleep_for(double seconds)
{
    simgrid::s4u::this_actor::sleep_for(seconds);
    simulated_environ = me().environ.data();
}

int simulated_nanosleep(const struct timespec *time, struct timespec *)
{
    sleep_for(static_cast<double>(time->tv_sec) +
              1e-9 * static_cast<double>(time->tv_nsec));
    return 0;
}

int simulated_usleep(useconds_t microseconds)
{
    sleep_for(1e-6 * microseconds);
    return 0;
}

/* ---- the terminal ---- */

ssize_t simulated_writev(int fd, const struct iovec *parts, int count)
{
    ssize_t size = 0;
    for (int i = 0; i < count; i++)
        size += simulated_write(fd, parts[i].iov_base, parts[i].iov_len);
    return size;
}

} // extern "C"
