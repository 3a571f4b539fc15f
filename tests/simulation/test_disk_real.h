/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_TEST_DISK_REAL_H
#define SIMULATION_TEST_DISK_REAL_H

/* The calls of sim::Files on a real file system as a given user. */

#include "disk.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

struct RealFiles {
    RealFiles(uid_t user, gid_t group) : user(user), group(group)
    {
    }

    uid_t user;
    gid_t group;
    mode_t umask = 022;

    /* Calls as the user, who has no capabilities. */
    template <typename Call> long as_user(Call call)
    {
        ::umask(umask);
        if (setegid(group) != 0 || seteuid(user) != 0) abort();
        long rc = call();
        int error = errno;
        if (seteuid(0) != 0 || setegid(0) != 0) abort();
        return rc < 0 ? -error : rc;
    }
    template <typename Call> int as_user_int(Call call)
    {
        return static_cast<int>(as_user(call));
    }

    int openat(int dir, const char *path, int flags, mode_t mode)
    {
        return as_user_int([&] { return ::openat(dir, path, flags, mode); });
    }
    int close(int fd)
    {
        return as_user_int([&] { return ::close(fd); });
    }
    int dup(int fd)
    {
        return as_user_int([&] { return ::dup(fd); });
    }
    int flags(int fd)
    {
        return as_user_int([&] { return fcntl(fd, F_GETFL); });
    }
    ssize_t pread(int fd, void *buf, size_t size, off_t offset)
    {
        return as_user([&] { return ::pread(fd, buf, size, offset); });
    }
    ssize_t pwrite(int fd, const void *buf, size_t size, off_t offset)
    {
        return as_user([&] { return ::pwrite(fd, buf, size, offset); });
    }
    ssize_t read(int fd, void *buf, size_t size)
    {
        return as_user([&] { return ::read(fd, buf, size); });
    }
    ssize_t write(int fd, const void *buf, size_t size)
    {
        return as_user([&] { return ::write(fd, buf, size); });
    }
    off_t lseek(int fd, off_t offset, int whence)
    {
        return as_user([&] { return ::lseek(fd, offset, whence); });
    }
    int ftruncate(int fd, off_t size)
    {
        return as_user_int([&] { return ::ftruncate(fd, size); });
    }
    int fallocate(int fd, int mode, off_t offset, off_t size)
    {
        return as_user_int([&] { return ::fallocate(fd, mode, offset, size); });
    }
    ssize_t copy_file_range(int in, off_t *in_offset, int out, off_t *out_offset,
                            size_t size, unsigned flags)
    {
        return as_user([&] {
            return ::copy_file_range(in, in_offset, out, out_offset, size, flags);
        });
    }
    int fsync(int fd)
    {
        return as_user_int([&] { return ::fsync(fd); });
    }
    int fchmod(int fd, mode_t mode)
    {
        return as_user_int([&] { return ::fchmod(fd, mode); });
    }
    int fchmodat(int dir, const char *path, mode_t mode)
    {
        return as_user_int([&] { return ::fchmodat(dir, path, mode, 0); });
    }
    int fchownat(int dir, const char *path, uid_t owner, gid_t owners, int flags)
    {
        return as_user_int([&] { return ::fchownat(dir, path, owner, owners, flags); });
    }
    int fstat(int fd, struct stat *st)
    {
        return as_user_int([&] { return ::fstat(fd, st); });
    }
    int fstatat(int dir, const char *path, struct stat *st, int flags)
    {
        return as_user_int([&] { return ::fstatat(dir, path, st, flags); });
    }
    int faccessat(int dir, const char *path, int mode)
    {
        return as_user_int([&] { return ::faccessat(dir, path, mode, AT_EACCESS); });
    }
    int mkdirat(int dir, const char *path, mode_t mode)
    {
        return as_user_int([&] { return ::mkdirat(dir, path, mode); });
    }
    int unlinkat(int dir, const char *path, int flags)
    {
        return as_user_int([&] { return ::unlinkat(dir, path, flags); });
    }
    int renameat2(int from_dir, const char *from, int to_dir, const char *to,
                  unsigned flags)
    {
        return as_user_int(
            [&] { return ::renameat2(from_dir, from, to_dir, to, flags); });
    }
    int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
    {
        return as_user_int([&] { return ::linkat(from_dir, from, to_dir, to, flags); });
    }
    int symlinkat(const char *target, int dir, const char *path)
    {
        return as_user_int([&] { return ::symlinkat(target, dir, path); });
    }
    ssize_t readlinkat(int dir, const char *path, char *buf, size_t size)
    {
        return as_user([&] { return ::readlinkat(dir, path, buf, size); });
    }
    int utimensat(int dir, const char *path, const struct timespec times[2], int flags)
    {
        return as_user_int(
            [&] { return syscall(SYS_utimensat, dir, path, times, flags); });
    }
    int mkfifoat(int dir, const char *path, mode_t mode)
    {
        return as_user_int([&] { return ::mkfifoat(dir, path, mode); });
    }
    int realpath(const char *path, std::string &resolved)
    {
        char found[PATH_MAX];
        return as_user_int([&] {
            if (!::realpath(path, found)) return -1;
            resolved = found;
            return 0;
        });
    }
    int list(int fd, std::vector<sim::Files::Name> &names)
    {
        char buf[16384];
        off_t before = ::lseek(fd, 0, SEEK_CUR);
        ::lseek(fd, 0, SEEK_SET);
        long size = as_user([&] { return syscall(SYS_getdents64, fd, buf, sizeof buf); });
        ::lseek(fd, before, SEEK_SET);
        for (long at = 0; at < size;) {
            auto *entry = reinterpret_cast<struct dirent64 *>(buf + at);
            names.push_back({entry->d_name, entry->d_type, entry->d_ino});
            at += entry->d_reclen;
        }
        return size < 0 ? static_cast<int>(size) : 0;
    }
    int lock(int fd, short type)
    {
        struct flock all = {};
        all.l_type = type;
        return as_user_int([&] { return fcntl(fd, F_OFD_SETLK, &all); });
    }
    int lock_test(int fd, short type)
    {
        struct flock all = {};
        all.l_type = type;
        int rc = as_user_int([&] { return fcntl(fd, F_OFD_GETLK, &all); });
        return rc ? rc : all.l_type;
    }
};

#endif
