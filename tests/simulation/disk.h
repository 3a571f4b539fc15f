/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_DISK_H
#define SIMULATION_DISK_H

/* File systems in memory, and the open files of simulated processes.
 *
 * A Disk is one file system: that of a node, or the parallel one. Processes see all
 * changes at once; a journal holds those that are not durable yet, and loss of power
 * drops a part of them (see Crash). All of it is deterministic: the same calls with the
 * same random numbers give the same results.
 *
 * Files are the descriptors of one process. All calls return the result of the system
 * call, or -errno. They neither block nor fail on their own: waiting for locks and
 * injected faults are up to the caller. */

#include "random.h"

#include <cstdint>
#include <fcntl.h>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <vector>

namespace sim
{

class Inode; /* disk_node.h */
class Journal;
class Walk;
struct Attributes;
struct Description;
struct Place;
struct Target;

using InodeRef = std::shared_ptr<Inode>;

/* Which changes survive a loss of power, and what fsync makes durable.
 *
 * EXT4, XFS: names, modes, owners and truncations are in one ordered journal: a prefix of
 * it survives, and a rename is one change. A file grows when its data is written back
 * (delayed allocation), independently of that order: it is found with any size it had
 * since the last truncation that survives. fsync of a file makes its data and size
 * durable, and the journal up to the last change of the file, its name included. fsync of
 * a directory: the journal up to the last change in it. XFS: a file without fsync that is
 * renamed over another may be found empty or damaged. EXT4 (auto_da_alloc): its data and
 * size survive wherever that rename survives.
 *
 * WEAK: every directory entry, size, and mode is found as it was at some time since it
 * was durable, independently of all others, but a rename never loses both entries: the
 * old one goes after the new one is there (both may be found), and a renamed directory
 * has one name. An entry in a directory that was lost is lost. fsync of a file makes its
 * data, size and mode durable, not its name; fsync of a directory its entries, not its
 * own name.
 *
 * Data that was not synced, in all: each block of 4096 bytes has its old content (zeros
 * if it is new), or its new one, or a mix that changes at a multiple of 512 bytes. */
enum class Crash { EXT4, XFS, WEAK };

class Disk
{
  public:
    /* number: st_dev. capacity: bytes; see used(). clock: seconds since the epoch, for
     * the times of files. */
    Disk(dev_t number, uint64_t capacity, std::function<double()> clock,
         Crash how = Crash::EXT4);
    ~Disk();
    Disk(const Disk &) = delete;
    Disk &operator=(const Disk &) = delete;

    /* Processes see a state in which the disk may be after a loss of power now; all of it
     * is durable. Descriptors of it must be closed before. */
    void lose_power(Random &random);

    /* For exhaustive search: the number of alternatives of each independent choice, each
     * at least 2, and the state for one alternative of each (0 .. number - 1). In order:
     * - EXT4, XFS: how many changes of the journal survive; then, for each file that
     * grew, how many of its growths do.
     * - WEAK: for each entry, size and mode that changed, how many of its changes survive
     *   (fewer where one depends on a change that is lost).
     * - For each block of data that was not synced: 0 is lost, 1 is kept; if d > 1 of its
     *   sectors of 512 bytes differ, 2 .. d: only the first 1 .. d - 1 of these are new;
     *   d + 1 .. 2d - 1: only the last 1 .. d - 1. */
    std::vector<unsigned> choices() const;
    size_t first_block_choice() const; /* those from there on are of blocks */
    void lose_power(const std::vector<unsigned> &choice);

    /* All that processes see is durable. A disk does this by itself when its journal
     * holds JOURNAL_LIMIT changes, as real ones do after some seconds. */
    void sync();
    static constexpr size_t JOURNAL_LIMIT = 4096;
    void erase(); /* all below the root, durably */

    uint64_t used() const; /* data in blocks of 4096 bytes, and 4096 bytes per inode */
    uint64_t capacity;     /* writes beyond it are -ENOSPC */
    const Crash how;

    /* For the judge and for damage: no effect on times, no checks of access, no links are
     * followed. path is relative to the root, without "." and "..". */
    struct Entry {
        std::string path;
        mode_t mode; /* with type */
        uint64_t size;
        std::string link; /* where a symbolic link points */
    };
    std::vector<Entry> list() const; /* all entries, sorted by path */
    bool read(const std::string &path,
              std::string &bytes) const; /* false: no such file */
    /* Durably replaces the content of a file, or creates it (mode 0644, owned by the
     * owner of its directory, which must exist). */
    bool write(const std::string &path, const std::string &bytes);
    bool remove(const std::string &path); /* a file, or a whole tree, durably */
    /* Visible and durable state; blocks are shared until one of the two changes them. */
    std::unique_ptr<Disk> copy() const;

  private:
    friend class Files;
    friend class Inode;
    friend class Journal;
    friend class Walk;
    friend class CrashState;
    friend struct Description;

    /* Changes of names: checks are done, the journal records them. */
    InodeRef make_inode(const Attributes &attributes);
    InodeRef create(Inode &dir, const std::string &name, const Attributes &attributes);
    void link(Inode &dir, const std::string &name, const InodeRef &inode);
    void unlink(Inode &dir, const std::string &name);
    void rename(Inode &from, const std::string &old, Inode &to, const std::string &name);
    void attach(Inode &dir, const std::string &name, const InodeRef &inode);
    InodeRef detach(Inode &dir, const std::string &name);
    void discard(Inode &dir, const std::string &name);

    void set_attributes(Inode &inode, const Attributes &attributes);
    void release(Inode &inode); /* its space, when neither name nor descriptor is left */
    bool has_room(uint64_t bytes) const;
    void limit_journal();
    struct timespec now() const;
    Inode *inode_at(const std::string &path, Inode **dir, std::string *name) const;
    InodeRef copy_inode(const Inode &from, std::map<const Inode *, InodeRef> &copies);
    void recount(Inode &dir); /* after a loss of power */

    dev_t number;
    std::function<double()> clock;
    uint64_t in_use = 0;
    ino_t next_number = 2;
    std::vector<ino_t> free_numbers; /* a heap: the lowest is used again first */
    InodeRef root;
    std::unique_ptr<Journal> journal;
};

/* Where disks are mounted for the processes of one node: absolute paths without links,
 * e.g. {"/": node, "/prefix": parallel}. The directories of mount points exist, durably.
 */
using Mounts = std::map<std::string, std::shared_ptr<Disk>>;

class Files
{
  public:
    /* order: the order in which directories are read. User 0 passes all checks of access;
     * the process is in one group. */
    Files(const Mounts *mounts, uid_t user, gid_t group, Random order);
    ~Files(); /* closes all: locks of the process end */

    mode_t umask = 022;
    std::string cwd = "/";

    /* Descriptors begin at FIRST, so that none is that of a real file. dir: one of them,
     * or AT_FDCWD. */
    static constexpr int FIRST = 1000;
    bool owns(int fd) const;

    /* A path that begins with /proc/self/fd/N leads to the file of descriptor N. */
    int openat(int dir, const char *path, int flags, mode_t mode); /* no O_TMPFILE */
    int close(int fd);
    int dup(int fd);
    int flags(int fd) const; /* as F_GETFL */
    ssize_t pread(int fd, void *buf, size_t size, off_t offset);
    ssize_t pwrite(int fd, const void *buf, size_t size, off_t offset);
    ssize_t read(int fd, void *buf, size_t size);
    ssize_t write(int fd, const void *buf, size_t size);
    off_t lseek(int fd, off_t offset, int whence); /* with SEEK_DATA, SEEK_HOLE */
    int ftruncate(int fd, off_t size);
    int fallocate(int fd, int mode, off_t offset,
                  off_t size); /* punch hole, or allocate */
    ssize_t copy_file_range(int in, off_t *in_offset, int out, off_t *out_offset,
                            size_t size, unsigned flags); /* -EXDEV between disks */
    int fsync(int fd); /* of a file or a directory; fdatasync is the same */
    int syncfs(int fd);
    int fchmod(int fd, mode_t mode);
    int fchmodat(int dir, const char *path, mode_t mode);
    int fchownat(int dir, const char *path, uid_t owner, gid_t group,
                 int flags); /* AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH */
    int fstat(int fd, struct stat *st);
    int fstatat(int dir, const char *path, struct stat *st,
                int flags); /* AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH */
    int fstatvfs(int fd, struct statvfs *st);
    int faccessat(int dir, const char *path, int mode);
    int mkdirat(int dir, const char *path, mode_t mode);
    int unlinkat(int dir, const char *path, int flags); /* AT_REMOVEDIR */
    int renameat2(int from_dir, const char *from, int to_dir, const char *to,
                  unsigned flags); /* RENAME_NOREPLACE */
    int linkat(int from_dir, const char *from, int to_dir, const char *to,
               int flags); /* AT_SYMLINK_FOLLOW */
    int symlinkat(const char *target, int dir, const char *path);
    /* path "": dir is an O_PATH descriptor of a link */
    ssize_t readlinkat(int dir, const char *path, char *buf, size_t size);
    /* path NULL: dir itself; flags: AT_SYMLINK_NOFOLLOW */
    int utimensat(int dir, const char *path, const struct timespec times[2], int flags);
    /* Pipes only exist: they hold no data. To open one without O_NONBLOCK is -EAGAIN. */
    int mkfifoat(int dir, const char *path, mode_t mode);
    int realpath(const char *path, std::string &resolved);

    /* Names in a directory, "." and ".." among them, in an order drawn for each call,
     * with DT_ types. */
    struct Name {
        std::string name;
        unsigned char type;
        ino_t number;
    };
    int list(int fd, std::vector<Name> &names);

    /* Locks of the open file description, as of F_OFD_*, or of the process: exclusive or
     * shared, of the whole file. -EAGAIN when another one has it; lock_test: F_UNLCK, or
     * the type of the lock that conflicts. They end with the last descriptor of the
     * description; those of a process where it closes any descriptor of the file. */
    int lock(int fd, short type, bool of_process = false); /* F_RDLCK, F_WRLCK, F_UNLCK */
    int lock_test(int fd, short type, bool of_process = false);

    /* Absolute, for logs and strikes: the name by which a file was opened, in the
     * directory where that is now. "": unknown. */
    std::string path_of(int fd) const;

  private:
    friend class Walk;

    Description *description(int fd) const;
    int add_descriptor(std::shared_ptr<Description> description);
    int file_for(int fd, bool writes, Description *&d) const;
    int check_open(const Inode &inode, int flags) const;
    int create_file(const Target &found, mode_t mode, InodeRef &inode);
    ssize_t write_file(Description &d, const void *buf, size_t size, uint64_t offset);
    void truncate_file(Disk &disk, Inode &inode, uint64_t size);

    bool is_allowed(const Inode &inode, int want) const;
    bool is_owner(const Inode &inode) const;
    bool is_sticky(const Inode &dir, const Inode &inode) const;
    bool is_linkable(const Inode &inode) const;
    int may_create(const Inode &dir) const;
    int may_remove(const Inode &dir, const Inode &inode, bool directory) const;
    int may_unlink(const Target &found) const;
    int may_remove_directory(const Target &found) const;
    int may_rename(const Target &from, const Target &to) const;
    Attributes attributes_in(const Inode &dir, mode_t type, mode_t mode) const;
    mode_t unprivileged_mode(const Inode &inode) const;
    void drop_privileges(Disk &disk, Inode &inode) const;

    /* dir and path to an inode; flags as of fstatat */
    int inode_for(int dir, const char *path, int flags, Target &found) const;
    int new_name(int dir, const char *path, bool directory, Target &found) const;
    int make_entry(int dir, const char *path, mode_t type, const char *target);
    int change_mode(Disk &disk, Inode &inode, mode_t mode) const;
    std::string absolute(const Disk &disk, const Inode &dir) const;
    static void fill_stat(const Disk &disk, const Inode &inode, struct stat *st);

    const Mounts *mounts;
    uid_t user;
    gid_t group;
    Random order;
    std::vector<std::shared_ptr<Description>> descriptors; /* from FIRST on */
    int lowest_free = 0;                                   /* no lower one is free */
};

} // namespace sim

#endif
