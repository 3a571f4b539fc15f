/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of simulated processes: opening, data, locks. */
#include "files_node.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace sim
{

/* ---- open file descriptions ---- */

Description::Description(const Target &target, int flags)
    : disk(target.disk), inode(target.inode), parent(target.parent), name(target.name),
      flags(flags)
{
    inode->opens++;
}

Description::~Description()
{
    unlock(this);
    inode->opens--;
    disk->release(*inode);
}

bool Description::reads() const
{
    const int access = flags & O_ACCMODE;
    return !is_path() && (access == O_RDONLY || access == O_RDWR);
}

bool Description::writes() const
{
    const int access = flags & O_ACCMODE;
    return !is_path() && (access == O_WRONLY || access == O_RDWR);
}

void Description::unlock(const void *owner)
{
    auto &locks = inode->locks;
    auto is_of = [owner](const Lock &lock) { return lock.owner == owner; };
    locks.erase(std::remove_if(locks.begin(), locks.end(), is_of), locks.end());
}

/* ---- descriptors ---- */

Files::Files(const Mounts *mounts, uid_t user, gid_t group, Random order)
    : mounts(mounts), user(user), group(group), order(order)
{
}

Files::~Files()
{
    for (const auto &d : descriptors)
        if (d) d->unlock(this);
}

bool Files::owns(int fd) const
{
    return description(fd) != nullptr;
}

Description *Files::description(int fd) const
{
    if (fd < FIRST) return nullptr;
    const size_t at = static_cast<size_t>(fd - FIRST);
    return at < descriptors.size() ? descriptors[at].get() : nullptr;
}

int Files::add_descriptor(std::shared_ptr<Description> description)
{
    auto free = std::find(descriptors.begin() + lowest_free, descriptors.end(), nullptr);
    const int fd = FIRST + static_cast<int>(free - descriptors.begin());
    if (free == descriptors.end())
        descriptors.push_back(std::move(description));
    else
        *free = std::move(description);
    lowest_free = fd - FIRST + 1;
    return fd;
}

int Files::close(int fd)
{
    Description *d = description(fd);
    if (!d) return -EBADF;
    d->unlock(this);
    descriptors[static_cast<size_t>(fd - FIRST)].reset();
    lowest_free = std::min(lowest_free, fd - FIRST);
    return 0;
}

int Files::dup(int fd)
{
    if (!description(fd)) return -EBADF;
    return add_descriptor(descriptors[static_cast<size_t>(fd - FIRST)]);
}

int Files::flags(int fd) const
{
    const Description *d = description(fd);
    return d ? d->flags : -EBADF;
}

/* ---- opening ---- */

int Files::create_file(const Target &found, mode_t mode, InodeRef &inode)
{
    int rc = may_create(*found.parent);
    if (rc) return rc;
    if (!found.disk->has_room(BLOCK_SIZE)) return -ENOSPC;
    inode = found.disk->create(*found.parent, found.name,
                               attributes_in(*found.parent, S_IFREG, mode & 07777));
    return 0;
}

/* Opens a pipe, which has no other end. */
static int open_pipe(int flags)
{
    const int access = flags & O_ACCMODE;
    if (access == O_RDWR) return 0;
    if (!(flags & O_NONBLOCK)) return -EAGAIN;
    return access == O_WRONLY ? -ENXIO : 0;
}

static int access_of(int flags)
{
    const int access = flags & O_ACCMODE;
    const int want = access == O_RDONLY   ? READ
                     : access == O_WRONLY ? WRITE
                                          : READ | WRITE;
    return flags & O_TRUNC ? want | WRITE : want;
}

int Files::check_open(const Inode &inode, int flags) const
{
    const bool directory = inode.is_directory();
    if (flags & O_CREAT && flags & O_EXCL) return -EEXIST;
    if (flags & O_CREAT && directory) return -EISDIR;
    if (flags & O_DIRECTORY && !directory) return -ENOTDIR;
    if (flags & O_PATH) return 0;
    if (inode.is_link()) return -ELOOP;
    const int want = access_of(flags);
    if (directory && want & WRITE) return -EISDIR;
    if (!is_allowed(inode, want)) return -EACCES;
    return S_ISFIFO(inode.attributes.mode) ? open_pipe(flags) : 0;
}

int Files::openat(int dir, const char *path, int flags, mode_t mode)
{
    Target found;
    if ((flags & O_TMPFILE) == O_TMPFILE) return -EOPNOTSUPP;
    if (flags & O_PATH) flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (flags & O_CREAT && flags & O_DIRECTORY) return -EINVAL;
    const bool exclusive = flags & O_CREAT && flags & O_EXCL;
    const unsigned follow = flags & O_NOFOLLOW || exclusive ? 0u : Walk::FOLLOW;
    int rc =
        Walk(*this, follow | (flags & O_CREAT ? Walk::CREATE : 0u)).run(dir, path, found);
    if (rc) return rc;
    const bool existed = found.inode != nullptr;
    rc =
        existed ? check_open(*found.inode, flags) : create_file(found, mode, found.inode);
    if (rc) return rc;
    if (existed && flags & O_TRUNC && found.inode->is_file())
        truncate_file(*found.disk, *found.inode, 0);
    flags &= ~(O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY);
    return add_descriptor(std::make_shared<Description>(found, flags));
}

/* ---- data ---- */

/* Gets the description of a file for reading or writing. */
int Files::file_for(int fd, bool writes, Description *&d) const
{
    d = description(fd);
    if (!d || !(writes ? d->writes() : d->reads())) return -EBADF;
    return d->inode->is_directory() ? -EISDIR : 0;
}

static bool is_pipe(const Description *d)
{
    return d && !d->is_path() && S_ISFIFO(d->inode->attributes.mode);
}

ssize_t Files::pread(int fd, void *buf, size_t size, off_t offset)
{
    Description *d;
    if (offset < 0) return -EINVAL;
    if (is_pipe(description(fd))) return -ESPIPE;
    int rc = file_for(fd, false, d);
    if (rc) return rc;
    return static_cast<ssize_t>(d->inode->read(buf, size, static_cast<uint64_t>(offset)));
}

ssize_t Files::read(int fd, void *buf, size_t size)
{
    Description *d;
    int rc = file_for(fd, false, d);
    if (rc) return rc;
    if (is_pipe(d)) return (d->flags & O_ACCMODE) == O_RDWR ? -EAGAIN : 0;
    const size_t count = d->inode->read(buf, size, d->offset);
    d->offset += count;
    return static_cast<ssize_t>(count);
}

ssize_t Files::write_file(Description &d, const void *buf, size_t size, uint64_t offset)
{
    if (size == 0) return 0;
    if (offset > LLONG_MAX - size) return -EFBIG;
    Inode &inode = *d.inode;
    drop_privileges(*d.disk, inode);
    const ssize_t count = inode.write(buf, size, offset);
    if (count > 0) inode.modified = inode.changed = d.disk->now();
    return count;
}

ssize_t Files::pwrite(int fd, const void *buf, size_t size, off_t offset)
{
    Description *d;
    if (offset < 0) return -EINVAL;
    if (is_pipe(description(fd))) return -ESPIPE;
    int rc = file_for(fd, true, d);
    if (rc) return rc;
    const bool append = d->flags & O_APPEND; /* on Linux, also with an offset */
    return write_file(*d, buf, size,
                      append ? d->inode->size : static_cast<uint64_t>(offset));
}

ssize_t Files::write(int fd, const void *buf, size_t size)
{
    Description *d;
    int rc = file_for(fd, true, d);
    if (rc) return rc;
    if (is_pipe(d)) return -EAGAIN;
    const uint64_t offset = d->flags & O_APPEND ? d->inode->size : d->offset;
    const ssize_t count = write_file(*d, buf, size, offset);
    if (count > 0) d->offset = offset + static_cast<uint64_t>(count);
    return count;
}

off_t Files::lseek(int fd, off_t offset, int whence)
{
    Description *d = description(fd);
    if (!d || d->is_path()) return -EBADF;
    if (is_pipe(d)) return -ESPIPE;
    off_t base = 0;
    if (whence == SEEK_DATA || whence == SEEK_HOLE) {
        if (!d->inode->is_file()) return -EINVAL;
        if (offset < 0) return -ENXIO;
        offset = d->inode->seek(static_cast<uint64_t>(offset), whence == SEEK_DATA);
        if (offset < 0) return offset;
    } else if (whence == SEEK_CUR) {
        base = static_cast<off_t>(d->offset);
    } else if (whence == SEEK_END) {
        base = static_cast<off_t>(d->inode->size);
    } else if (whence != SEEK_SET) {
        return -EINVAL;
    }
    if (offset > LLONG_MAX - base) return -EOVERFLOW;
    if (base + offset < 0) return -EINVAL;
    d->offset = static_cast<uint64_t>(base + offset);
    return base + offset;
}

void Files::truncate_file(Disk &disk, Inode &inode, uint64_t size)
{
    drop_privileges(disk, inode);
    inode.resize(size);
    inode.modified = inode.changed = disk.now();
}

int Files::ftruncate(int fd, off_t size)
{
    Description *d = description(fd);
    if (size < 0) return -EINVAL;
    if (!d || d->is_path()) return -EBADF;
    if (!d->writes() || !d->inode->is_file()) return -EINVAL;
    truncate_file(*d->disk, *d->inode, static_cast<uint64_t>(size));
    return 0;
}

int Files::fallocate(int fd, int mode, off_t offset, off_t size)
{
    const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    Description *d = description(fd);
    if (!d || d->is_path()) return -EBADF;
    if (offset < 0 || size <= 0) return -EINVAL;
    if (mode != 0 && mode != FALLOC_FL_KEEP_SIZE && mode != punch) return -EOPNOTSUPP;
    if (!d->writes()) return -EBADF;
    if (is_pipe(d)) return -ESPIPE;
    if (offset > LLONG_MAX - size) return -EFBIG;
    Inode &inode = *d->inode;
    drop_privileges(*d->disk, inode);
    const uint64_t from = static_cast<uint64_t>(offset),
                   end = from + static_cast<uint64_t>(size);
    if (mode == punch) {
        inode.punch(from, end - from);
    } else {
        int rc = inode.allocate(from, end - from);
        if (rc) return rc;
        if (mode == 0 && end > inode.size) inode.resize(end);
    }
    inode.modified = inode.changed = d->disk->now();
    return 0;
}

static int check_copy(const Description *in, const Description *out, unsigned flags)
{
    if (!in || !out || in->is_path() || out->is_path()) return -EBADF;
    if (flags) return -EINVAL;
    if (in->inode->is_directory() || out->inode->is_directory()) return -EISDIR;
    if (!in->inode->is_file() || !out->inode->is_file()) return -EINVAL;
    if (!in->reads() || !out->writes() || out->flags & O_APPEND) return -EBADF;
    return in->disk == out->disk ? 0 : -EXDEV;
}

ssize_t Files::copy_file_range(int in, off_t *in_offset, int out, off_t *out_offset,
                               size_t size, unsigned flags)
{
    Description *source = description(in), *target = description(out);
    int rc = check_copy(source, target, flags);
    if (rc) return rc;
    uint64_t from = in_offset ? static_cast<uint64_t>(*in_offset) : source->offset;
    uint64_t to = out_offset ? static_cast<uint64_t>(*out_offset) : target->offset;
    if (from + size < from || to + size < to) return -EOVERFLOW;
    if (from > LLONG_MAX || to > LLONG_MAX) return -EINVAL;
    if (from >= source->inode->size) return 0;
    size = std::min(size, source->inode->size - from);
    if (source->inode == target->inode && to + size > from && to < from + size)
        return -EINVAL;
    size_t done = 0;
    char bytes[BLOCK_SIZE];
    while (done < size) {
        size_t part =
            source->inode->read(bytes, std::min(size - done, sizeof bytes), from);
        ssize_t count = write_file(*target, bytes, part, to);
        if (count < 0 && !done) return count;
        if (count <= 0) break;
        done += static_cast<size_t>(count);
        from += static_cast<uint64_t>(count);
        to += static_cast<uint64_t>(count);
    }
    in_offset ? *in_offset = static_cast<off_t>(from) : source->offset = from;
    out_offset ? *out_offset = static_cast<off_t>(to) : target->offset = to;
    return static_cast<ssize_t>(done);
}

int Files::fsync(int fd)
{
    Description *d = description(fd);
    if (!d || d->is_path()) return -EBADF;
    if (is_pipe(d)) return -EINVAL;
    d->inode->sync_data();
    d->disk->journal->sync(*d->inode);
    return 0;
}

int Files::syncfs(int fd)
{
    Description *d = description(fd);
    if (!d || d->is_path()) return -EBADF;
    d->disk->sync();
    return 0;
}

/* ---- locks ---- */

/* Returns the type of a conflicting lock of another owner, or F_UNLCK. */
static short conflicting_lock(const Description *d, const void *owner, short type)
{
    for (const Lock &lock : d->inode->locks)
        if (lock.owner != owner && (type == F_WRLCK || lock.type == F_WRLCK))
            return lock.type;
    return F_UNLCK;
}

int Files::lock(int fd, short type, bool of_process)
{
    Description *d = description(fd);
    if (!d || d->is_path()) return -EBADF;
    const void *owner = of_process ? static_cast<const void *>(this) : d;
    if (type == F_RDLCK ? !d->reads() : type == F_WRLCK && !d->writes()) return -EBADF;
    if (type != F_UNLCK && conflicting_lock(d, owner, type) != F_UNLCK) return -EAGAIN;
    d->unlock(owner);
    if (type != F_UNLCK) d->inode->locks.push_back({owner, type});
    return 0;
}

int Files::lock_test(int fd, short type, bool of_process)
{
    const Description *d = description(fd);
    if (!d || d->is_path()) return -EBADF;
    return conflicting_lock(d, of_process ? static_cast<const void *>(this) : d, type);
}

} // namespace sim
