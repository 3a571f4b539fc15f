/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, modes and times as simulated processes see and change them. Checks have the
 * order of Linux. */
#include "files_node.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <unistd.h>

namespace sim
{

/* ---- from descriptors and paths to inodes ---- */

int Files::inode_for(int dir, const char *path, int flags, Target &found) const
{
    if (flags & AT_EMPTY_PATH && !*path && dir != AT_FDCWD) {
        const Description *d = description(dir);
        if (!d) return -EBADF;
        found.disk = d->disk;
        found.inode = d->inode;
        return 0;
    }
    const bool current = flags & AT_EMPTY_PATH && !*path;
    const unsigned how = flags & AT_SYMLINK_NOFOLLOW ? 0u : Walk::FOLLOW;
    return Walk(*this, current ? Walk::TRUSTED : how)
        .run(dir, current ? "." : path, found);
}

/* Finds the place for a new entry. */
int Files::new_name(int dir, const char *path, bool directory, Target &found) const
{
    int rc = Walk(*this, Walk::ENTRY).run(dir, path, found);
    if (rc) return rc;
    if (found.inode) return -EEXIST;          /* also ".", ".." and "/" */
    if (!found.parent->links) return -ENOENT; /* it was removed */
    if (found.name.size() > NAME_LIMIT) return -ENAMETOOLONG;
    return found.slash && !directory ? -ENOENT : 0;
}

/* ---- inspection ---- */

void Files::fill_stat(const Disk &disk, const Inode &inode, struct stat *st)
{
    memset(st, 0, sizeof *st);
    st->st_dev = disk.number;
    st->st_ino = inode.number;
    st->st_mode = inode.attributes.mode;
    st->st_uid = inode.attributes.user;
    st->st_gid = inode.attributes.group;
    st->st_nlink = inode.links;
    st->st_size = static_cast<off_t>(inode.is_directory() ? BLOCK_SIZE
                                     : inode.is_link()    ? inode.target.size()
                                                          : inode.size);
    st->st_blksize = BLOCK_SIZE;
    st->st_blocks =
        static_cast<blkcnt_t>(inode.content->blocks.size() * BLOCK_SIZE / 512);
    st->st_atim = inode.accessed;
    st->st_mtim = inode.modified;
    st->st_ctim = inode.changed;
}

int Files::fstat(int fd, struct stat *st)
{
    const Description *d = description(fd);
    if (!d) return -EBADF;
    fill_stat(*d->disk, *d->inode, st);
    return 0;
}

int Files::fstatat(int dir, const char *path, struct stat *st, int flags)
{
    Target found;
    int rc = inode_for(dir, path, flags, found);
    if (!rc) fill_stat(*found.disk, *found.inode, st);
    return rc;
}

int Files::fstatvfs(int fd, struct statvfs *st)
{
    const Description *d = description(fd);
    if (!d) return -EBADF;
    memset(st, 0, sizeof *st);
    st->f_bsize = st->f_frsize = BLOCK_SIZE;
    st->f_blocks = st->f_files = d->disk->capacity / BLOCK_SIZE;
    const uint64_t used = d->disk->in_use / BLOCK_SIZE;
    st->f_bfree = st->f_blocks > used ? st->f_blocks - used : 0;
    st->f_bavail = st->f_ffree = st->f_favail = st->f_bfree;
    st->f_fsid = d->disk->number;
    st->f_namemax = NAME_LIMIT;
    return 0;
}

int Files::faccessat(int dir, const char *path, int mode)
{
    Target found;
    if (mode & ~(R_OK | W_OK | X_OK)) return -EINVAL;
    int rc = inode_for(dir, path, 0, found);
    if (rc) return rc;
    return is_allowed(*found.inode, mode) ? 0 : -EACCES;
}

ssize_t Files::readlinkat(int dir, const char *path, char *buf, size_t size)
{
    Target found;
    if (size == 0) return -EINVAL;
    int rc = inode_for(dir, path, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, found);
    if (rc) return rc;
    if (!found.inode->is_link()) return *path ? -EINVAL : -ENOENT;
    const std::string &target = found.inode->target;
    size = std::min(size, target.size());
    memcpy(buf, target.data(), size);
    return static_cast<ssize_t>(size);
}

int Files::list(int fd, std::vector<Name> &names)
{
    const Description *d = description(fd);
    if (!d || d->is_path()) return -EBADF;
    const Inode &dir = *d->inode;
    if (!dir.is_directory()) return -ENOTDIR;
    if (!dir.links) return -ENOENT;
    const InodeRef up = dir.parent.lock();
    names = {{".", DT_DIR, dir.number}, {"..", DT_DIR, up ? up->number : dir.number}};
    for (const auto &[name, inode] : dir.entries)
        names.push_back({name, static_cast<unsigned char>(IFTODT(inode->attributes.mode)),
                         inode->number});
    order.shuffle(names);
    return 0;
}

std::string Files::absolute(const Disk &disk, const Inode &dir) const
{
    std::string path;
    InodeRef up;
    for (const Inode *here = &dir; here != disk.root.get(); here = up.get()) {
        path.insert(0, "/" + here->name);
        up = here->parent.lock();
        if (!up) return "";
    }
    for (const auto &[point, mounted] : *mounts)
        if (mounted.get() == &disk && point != "/") path.insert(0, point);
    return path.empty() ? "/" : path;
}

static std::string joined_path(const std::string &dir, const std::string &name)
{
    return dir.empty() || dir == "/" ? dir + name : dir + "/" + name;
}

std::string Files::path_of(int fd) const
{
    const Description *d = description(fd);
    if (!d) return "";
    if (d->inode->is_directory()) return absolute(*d->disk, *d->inode);
    return d->parent ? joined_path(absolute(*d->disk, *d->parent), d->name) : "";
}

int Files::realpath(const char *path, std::string &resolved)
{
    Target found;
    int rc = inode_for(AT_FDCWD, path, 0, found);
    if (rc) return rc;
    resolved = found.inode->is_directory()
                   ? absolute(*found.disk, *found.inode)
                   : joined_path(absolute(*found.disk, *found.parent), found.name);
    return 0;
}

/* ---- modes, owners, times ---- */

int Files::change_mode(Disk &disk, Inode &inode, mode_t mode) const
{
    if (!is_owner(inode)) return -EPERM;
    Attributes attributes = inode.attributes;
    attributes.mode = (attributes.mode & S_IFMT) | (mode & 07777);
    if (user != 0 && group != attributes.group)
        attributes.mode &= ~static_cast<mode_t>(S_ISGID);
    disk.set_attributes(inode, attributes);
    return 0;
}

int Files::fchmod(int fd, mode_t mode)
{
    const Description *d = description(fd);
    if (!d || d->is_path()) return -EBADF;
    return change_mode(*d->disk, *d->inode, mode);
}

int Files::fchmodat(int dir, const char *path, mode_t mode)
{
    Target found;
    int rc = inode_for(dir, path, 0, found);
    return rc ? rc : change_mode(*found.disk, *found.inode, mode);
}

int Files::fchownat(int dir, const char *path, uid_t owner, gid_t new_group, int flags)
{
    Target found;
    int rc = inode_for(dir, path, flags, found);
    if (rc) return rc;
    Inode &inode = *found.inode;
    Attributes attributes = inode.attributes;
    if (owner != static_cast<uid_t>(-1)) attributes.user = owner;
    if (new_group != static_cast<gid_t>(-1)) attributes.group = new_group;
    const bool given =
        attributes.user != inode.attributes.user ||
        (attributes.group != inode.attributes.group && attributes.group != group);
    if (!inode.is_directory()) attributes.mode = unprivileged_mode(inode);
    const bool changes = owner != static_cast<uid_t>(-1) ||
                         new_group != static_cast<gid_t>(-1) ||
                         attributes.mode != inode.attributes.mode;
    if (user != 0 && (given || (changes && !is_owner(inode)))) return -EPERM;
    found.disk->set_attributes(inode, attributes);
    return 0;
}

static bool is_valid_time(const struct timespec &time)
{
    return time.tv_nsec == UTIME_NOW || time.tv_nsec == UTIME_OMIT ||
           (time.tv_nsec >= 0 && time.tv_nsec < 1000000000);
}

static void set_time(struct timespec &to, const struct timespec &time,
                     const struct timespec &now)
{
    if (time.tv_nsec == UTIME_NOW)
        to = now;
    else if (time.tv_nsec != UTIME_OMIT)
        to = time;
}

int Files::utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
    Target found;
    const struct timespec current[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    if (!times) times = current;
    if (!is_valid_time(times[0]) || !is_valid_time(times[1])) return -EINVAL;
    if (times[0].tv_nsec == UTIME_OMIT && times[1].tv_nsec == UTIME_OMIT) return 0;
    if (!path && dir == AT_FDCWD) return -EFAULT;
    const Description *d = path ? nullptr : description(dir);
    if (!path && (!d || d->is_path())) return -EBADF;
    int rc = inode_for(dir, path ? path : "", path ? flags : AT_EMPTY_PATH, found);
    if (rc) return rc;
    Inode &inode = *found.inode;
    const bool only_now = times[0].tv_nsec == UTIME_NOW && times[1].tv_nsec == UTIME_NOW;
    if (!is_owner(inode) && !only_now) return -EPERM;
    if (!is_owner(inode) && !is_allowed(inode, WRITE)) return -EACCES;
    const struct timespec now = found.disk->now();
    set_time(inode.accessed, times[0], now);
    set_time(inode.modified, times[1], now);
    inode.changed = now;
    return 0;
}

/* ---- names ---- */

/* type: includes permissions; target: of a symbolic link. */
int Files::make_entry(int dir, const char *path, mode_t type, const char *target)
{
    Target found;
    int rc = new_name(dir, path, S_ISDIR(type), found);
    if (!rc) rc = may_create(*found.parent);
    if (rc) return rc;
    if (!found.disk->has_room(BLOCK_SIZE)) return -ENOSPC;
    Attributes attributes = attributes_in(*found.parent, type & S_IFMT, type & 07777);
    InodeRef made = found.disk->create(*found.parent, found.name, attributes);
    if (target) made->target = target;
    return 0;
}

int Files::mkdirat(int dir, const char *path, mode_t mode)
{
    return make_entry(dir, path, S_IFDIR | (mode & 01777), nullptr);
}

int Files::mkfifoat(int dir, const char *path, mode_t mode)
{
    return make_entry(dir, path, S_IFIFO | (mode & 07777), nullptr);
}

int Files::symlinkat(const char *target, int dir, const char *path)
{
    if (!*target) return -ENOENT;
    if (strlen(target) > PATH_LIMIT) return -ENAMETOOLONG;
    return make_entry(dir, path, S_IFLNK | 0777, target);
}

int Files::linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    Target source, found;
    if (flags & ~AT_SYMLINK_FOLLOW) return -EINVAL;
    int rc = inode_for(from_dir, from,
                       flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW, source);
    if (!rc) rc = new_name(to_dir, to, false, found);
    if (rc) return rc;
    if (source.disk != found.disk) return -EXDEV;
    if (!is_linkable(*source.inode)) return -EPERM;
    rc = may_create(*found.parent);
    if (rc) return rc;
    if (source.inode->is_directory()) return -EPERM;
    if (!source.inode->links) return -ENOENT;
    found.disk->link(*found.parent, found.name, source.inode);
    return 0;
}

/* For a directory: checks its name, and that it is empty. */
int Files::may_remove_directory(const Target &found) const
{
    if (found.last == Target::DOTDOT) return -ENOTEMPTY;
    if (found.last == Target::DOT) return -EINVAL;
    if (found.last == Target::ROOT) return -EBUSY;
    if (!found.inode) return found.missing();
    int rc = may_remove(*found.parent, *found.inode, true);
    if (rc) return rc;
    if (Walk::is_mount_point(*this, *found.inode)) return -EBUSY;
    return found.inode->entries.empty() ? 0 : -ENOTEMPTY;
}

int Files::may_unlink(const Target &found) const
{
    if (found.last != Target::NAME) return -EISDIR;
    if (!found.inode) return found.missing();
    if (found.slash) return found.inode->is_directory() ? -EISDIR : -ENOTDIR;
    return may_remove(*found.parent, *found.inode, false);
}

int Files::unlinkat(int dir, const char *path, int flags)
{
    Target found;
    if (flags & ~AT_REMOVEDIR) return -EINVAL;
    int rc = Walk(*this, Walk::ENTRY).run(dir, path, found);
    if (!rc) rc = flags & AT_REMOVEDIR ? may_remove_directory(found) : may_unlink(found);
    if (rc) return rc;
    found.disk->unlink(*found.parent, found.name);
    return 0;
}

static bool is_above(const Inode &top, InodeRef inode)
{
    for (; inode; inode = inode->parent.lock())
        if (inode.get() == &top) return true;
    return false;
}

/* Checks that Linux makes before those of access. */
static int check_rename(const Target &from, const Target &to, unsigned flags)
{
    if (from.disk != to.disk) return -EXDEV;
    if (from.last != Target::NAME) return -EBUSY;
    if (to.last != Target::NAME) return flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
    if (!from.inode) return from.missing();
    if (!to.parent->links) return -ENOENT; /* it was removed */
    if (to.name.size() > NAME_LIMIT) return -ENAMETOOLONG;
    if (flags & RENAME_NOREPLACE && to.inode) return -EEXIST;
    if (!from.inode->is_directory() && (from.slash || to.slash)) return -ENOTDIR;
    if (from.inode->is_directory() && is_above(*from.inode, to.parent)) return -EINVAL;
    if (to.inode && is_above(*to.inode, from.parent)) return -ENOTEMPTY;
    return 0;
}

int Files::may_rename(const Target &from, const Target &to) const
{
    const bool directory = from.inode->is_directory();
    int rc = may_remove(*from.parent, *from.inode, directory);
    if (!rc)
        rc = to.inode ? may_remove(*to.parent, *to.inode, directory)
                      : may_create(*to.parent);
    if (rc) return rc;
    if (directory && from.parent != to.parent && !is_allowed(*from.inode, WRITE))
        return -EACCES;
    if (directory && Walk::is_mount_point(*this, *from.inode)) return -EBUSY;
    if (directory && to.inode && Walk::is_mount_point(*this, *to.inode)) return -EBUSY;
    return to.inode && !to.inode->entries.empty() ? -ENOTEMPTY : 0;
}

int Files::renameat2(int from_dir, const char *from, int to_dir, const char *to,
                     unsigned flags)
{
    Target source, target;
    if (flags & ~static_cast<unsigned>(RENAME_NOREPLACE)) return -EINVAL;
    int rc = Walk(*this, Walk::ENTRY).run(from_dir, from, source);
    if (!rc) rc = Walk(*this, Walk::ENTRY).run(to_dir, to, target);
    if (!rc) rc = check_rename(source, target, flags);
    if (rc || source.inode == target.inode) return rc;
    rc = may_rename(source, target);
    if (!rc)
        source.disk->rename(*source.parent, source.name, *target.parent, target.name);
    return rc;
}

} // namespace sim
