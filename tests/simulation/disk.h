/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_DISK_H
#define SIMULATION_DISK_H

/* File systems in memory, and the open files of simulated processes.
 *
 * A Disk is one file system: that of a node, or the parallel one. Processes see all
 * changes at once. A journal holds the changes that are not durable yet; a loss of power
 * drops a part of them (see Crash). Everything is deterministic: the same calls with the
 * same random numbers give the same results.
 *
 * Files are the descriptors of one process. All calls return the result of the system
 * call, or -errno. They neither block nor fail on their own: the caller waits for locks
 * and injects faults. */

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
 * EXT4, XFS: names, modes, owners and truncations are in one ordered journal. A prefix of
 * the journal survives, and a rename is one change. A file grows when its data is written
 * back (delayed allocation), independently of the journal: after a loss of power it has
 * any size that it had since the last surviving truncation. fsync of a file makes its
 * data and size durable, and the journal up to the last change of the file, including its
 * name. fsync of a directory makes the journal durable up to the last change in the
 * directory. XFS: a file that was renamed over another one without fsync may be empty or
 * damaged. EXT4 (auto_da_alloc): its data and size survive if the rename survives.
 *
 * WEAK: every directory entry, size, and mode returns to any of its values since it was
 * last durable, independently of all others. However, a rename never loses both entries:
 * the old entry disappears only after the new one exists (both may be found), and a
 * renamed directory has one name. An entry in a lost directory is lost. fsync of a file
 * makes its data, size and mode durable, but not its name; fsync of a directory makes its
 * entries durable, but not its own name.
 *
 * In all three, each block of 4096 bytes that was not synced has its old content (zeros
 * if it is new), its new content, or a mix that changes at a multiple of 512 bytes. */
enum class Crash { EXT4, XFS, WEAK };

class Disk
{
  public:
    /* number: st_dev. capacity: bytes; see used(). clock: seconds since the epoch, for
     * file times. */
    Disk(dev_t number, uint64_t capacity, std::function<double()> clock,
         Crash how = Crash::EXT4);
    ~Disk();
    Disk(const Disk &) = delete;
    Disk &operator=(const Disk &) = delete;

    /* Puts the disk into a possible state after a loss of power now; all of that state is
     * durable. Descriptors of the disk must be closed before. */
    void lose_power(Random &random);

    /* For exhaustive search: the number of alternatives of each independent choice, each
     * at least 2. lose_power applies one alternative of each (0 .. number - 1). In order:
     * - EXT4, XFS: how many changes of the journal survive; then, for each file that
     *   grew, how many of its growths survive.
     * - WEAK: for each entry, size and mode that changed, how many of its changes survive
     *   (fewer if one depends on a change that is lost).
     * - For each block of data that was not synced: 0 is lost, 1 is kept; if d > 1 of its
     *   sectors of 512 bytes differ, 2 .. d: only the first 1 .. d - 1 of these are new;
     *   d + 1 .. 2d - 1: only the last 1 .. d - 1. */
    std::vector<unsigned> choices() const;
    size_t first_block_choice() const; /* choices from this one on concern blocks */
    void lose_power(const std::vector<unsigned> &choice);

    /* Makes durable all that processes see. A disk does this by itself when its journal
     * holds JOURNAL_LIMIT changes, as real disks do after some seconds. */
    void sync();
    static constexpr size_t JOURNAL_LIMIT = 4096;
    void erase(); /* durably removes everything below the root */

    uint64_t used() const; /* data in blocks of 4096 bytes, and 4096 bytes per inode */
    uint64_t capacity;     /* writes beyond it are -ENOSPC */
    const Crash how;

    /* For the judge and for damage: these functions change no times, check no access and
     * follow no links. path is relative to the root, without "." and "..". */
    struct Entry {
        std::string path;
        mode_t mode; /* includes the type */
        uint64_t size;
        std::string link; /* target of a symbolic link */
    };
    std::vector<Entry> list() const; /* all entries, sorted by path */
    bool read(const std::string &path,
              std::string &bytes) const; /* false: no such file */
    /* Durably replaces the content of a file, or creates it (mode 0644, owned by the
     * owner of its directory, which must exist). */
    bool write(const std::string &path, const std::string &bytes);
    bool remove(const std::string &path); /* durably removes a file or a tree */
    /* Copies the visible and the durable state; blocks are shared until a disk changes
     * them. */
    std::unique_ptr<Disk> copy() const;

  private:
    friend class Files;
    friend class Inode;
    friend class Journal;
    friend class Walk;
    friend class CrashState;
    friend struct Description;

    /* Changes of names, after all checks; the journal records them. */
    InodeRef make_inode(const Attributes &attributes);
    InodeRef create(Inode &dir, const std::string &name, const Attributes &attributes);
    void link(Inode &dir, const std::string &name, const InodeRef &inode);
    void unlink(Inode &dir, const std::string &name);
    void rename(Inode &from, const std::string &old, Inode &to, const std::string &name);
    void attach(Inode &dir, const std::string &name, const InodeRef &inode);
    InodeRef detach(Inode &dir, const std::string &name);
    void discard(Inode &dir, const std::string &name);

    void set_attributes(Inode &inode, const Attributes &attributes);
    void release(Inode &inode); /* releases its space if no name and no descriptor is
                                 * left */
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
    std::vector<ino_t> free_numbers; /* a heap: the lowest number is reused first */
    InodeRef root;
    std::unique_ptr<Journal> journal;
};

/* The mounts of the processes of one node: absolute paths without links, e.g. {"/": node,
 * "/prefix": parallel}. The directories of mount points exist durably. */
using Mounts = std::map<std::string, std::shared_ptr<Disk>>;

class Files
{
  public:
    /* order: determines the order in which directories are read. User 0 passes all checks
     * of access; the process is in one group. */
    Files(const Mounts *mounts, uid_t user, gid_t group, Random order);
    ~Files(); /* closes all descriptors, which ends the locks of the process */

    mode_t umask = 022;
    std::string cwd = "/";

    /* Descriptors begin at FIRST, so that they differ from those of real files. dir: a
     * descriptor, or AT_FDCWD. */
    static constexpr int FIRST = 488;
    bool owns(int fd) const;

    /* A path that begins with /proc/self/fd/N leads to the file of descriptor N. */
    int openat(int dir, const char *path, int flags, mode_t mode); /* no O_TMPFILE */
    int close(int fd);
    int dup(int fd);
    int flags(int fd) const; /* as with F_GETFL */
    ssize_t pread(int fd, void *buf, size_t size, off_t offset);
    ssize_t pwrite(int fd, const void *buf, size_t size, off_t offset);
    ssize_t read(int fd, void *buf, size_t size);
    ssize_t write(int fd, const void *buf, size_t size);
    off_t lseek(int fd, off_t offset, int whence); /* with SEEK_DATA, SEEK_HOLE */
    int ftruncate(int fd, off_t size);
    int fallocate(int fd, int mode, off_t offset,
                  off_t size); /* punches a hole or allocates */
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
    /* Creates a pipe, which cannot hold data. Opening it without O_NONBLOCK is
     * -EAGAIN. */
    int mkfifoat(int dir, const char *path, mode_t mode);
    int realpath(const char *path, std::string &resolved);

    /* Lists the names in a directory, including "." and "..", with DT_ types. Each call
     * draws the order. */
    struct Name {
        std::string name;
        unsigned char type;
        ino_t number;
    };
    int list(int fd, std::vector<Name> &names);

    /* Locks of the open file description, as with F_OFD_*, or of the process: exclusive
     * or shared, of the whole file. -EAGAIN if another lock conflicts; lock_test:
     * F_UNLCK, or the type of the conflicting lock. Locks of a description end with its
     * last descriptor; locks of a process end when the process closes any descriptor of
     * the file. */
    int lock(int fd, short type, bool of_process = false); /* F_RDLCK, F_WRLCK, F_UNLCK */
    int lock_test(int fd, short type, bool of_process = false);

    /* An absolute path for logs and strikes: the name by which the file was opened, in
     * the current path of its directory. "": unknown. */
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

    /* Finds the inode for dir and path; flags: as for fstatat. */
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
