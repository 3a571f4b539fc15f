/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_DISK_NODE_H
#define SIMULATION_DISK_NODE_H

/* Internals of simulated disks: inodes, and the journal of changes that are not
 * durable. */

#include "disk.h"

#include <array>
#include <set>
#include <tuple>

namespace sim
{

constexpr uint64_t BLOCK_SIZE = 4096, SECTOR_SIZE = 512;
constexpr size_t SECTORS = BLOCK_SIZE / SECTOR_SIZE;

using Block = std::array<char, BLOCK_SIZE>;
using BlockRef = std::shared_ptr<Block>;

/* The content of a block when it was last durable; null: a hole. bound: the new content
 * survives if the change of this number does; 0: none. */
struct Unsynced {
    BlockRef old;
    uint64_t bound = 0;
};

/* Data of a file, shared by copies of a disk and by truncations in the journal. */
struct Content {
    std::map<uint64_t, BlockRef> blocks;
    std::map<uint64_t, Unsynced> unsynced;
};

using ContentRef = std::shared_ptr<Content>;

struct Attributes {
    mode_t mode; /* includes the type */
    uid_t user;
    gid_t group;
};

struct Lock {
    const void *owner; /* an open file description, or the files of a process */
    short type;
};

struct Change;

class Inode : public std::enable_shared_from_this<Inode>
{
  public:
    Inode(Disk &disk, ino_t number, const Attributes &attributes);
    ~Inode();

    bool is_directory() const
    {
        return S_ISDIR(attributes.mode);
    }
    bool is_file() const
    {
        return S_ISREG(attributes.mode);
    }
    bool is_link() const
    {
        return S_ISLNK(attributes.mode);
    }
    InodeRef child(const std::string &name) const;

    /* Access to data. Sizes and offsets must be valid; read stops at the end of the file.
     * write and allocate return -ENOSPC; a write that fits only in part returns the size
     * of that part. */
    size_t read(void *buf, size_t count, uint64_t offset) const;
    ssize_t write(const void *buf, size_t count, uint64_t offset);
    void resize(uint64_t new_size);
    void punch(uint64_t offset, uint64_t count);
    int allocate(uint64_t offset, uint64_t count);
    off_t seek(uint64_t offset, bool data) const; /* next data or next hole; -ENXIO */
    void sync_data();
    void bind_unsynced(uint64_t change);

    Disk &disk;
    const ino_t number;
    Attributes attributes;
    nlink_t links = 0;
    unsigned opens = 0;   /* open file descriptions */
    bool counted = false; /* Disk::used includes its space */
    uint64_t size = 0;
    ContentRef content; /* never null; shared while empty */
    std::map<std::string, InodeRef> entries;
    std::weak_ptr<Inode> parent; /* of a directory */
    std::string name;            /* of a directory, in its parent */
    std::string target;          /* of a symbolic link */
    struct timespec accessed = {}, modified = {}, changed = {};
    std::vector<Lock> locks;

    /* For the journal: the last growth in it, and the number of growths. */
    Change *growth = nullptr;
    unsigned growths = 0;

  private:
    Content &own_content();
    Block *writable(uint64_t index);
    void cut(uint64_t new_size);
    void account(int64_t blocks);
};

/* One change that is not durable. Each directory entry, each file size, and the mode and
 * owner of each inode is a slot; changes of a slot survive in order. */
struct Change {
    enum Kind { ENTRY, SIZE, ATTRIBUTES };

    Kind kind;
    InodeRef node;       /* the directory of an entry, or the inode of a size or mode */
    uint64_t number = 0; /* ascending; the same for all parts of one change */

    std::string name; /* name of an entry, and the inodes that it leads to */
    InodeRef before, after;

    uint64_t size_before = 0, size_after = 0;
    ContentRef cut;      /* for a truncation: the previous content */
    bool growth = false; /* survives independently of the journal's order */
    uint64_t bound = 0;  /* for a growth: it survives if the change of this number does */

    Attributes attributes_before = {}, attributes_after = {};

    std::vector<uint64_t> needs; /* WEAK: the change is lost if one of these is */
};

using ChangeRef = std::shared_ptr<Change>;
using Slot = std::tuple<const Inode *, Change::Kind, std::string>;

class Journal
{
  public:
    explicit Journal(Crash how) : how(how)
    {
    }

    /* Recording. Each function is called before the inodes change. */
    void entry(Inode &dir, const std::string &name, const InodeRef &after);
    void rename(Inode &from, const std::string &old, Inode &to, const std::string &name);
    void grow(Inode &file, uint64_t size);
    void truncate(Inode &file, uint64_t size);
    void set_attributes(Inode &inode, const Attributes &after);

    void sync(Inode &inode); /* fsync */
    void clear();
    /* Makes the entry durable as it is, and nothing else. */
    void settle(const Inode &dir, const std::string &name);
    void settle_size(const Inode &file);

    size_t index_of(uint64_t number) const; /* changes.size(): already durable */
    bool is_full() const
    {
        return changes.size() >= Disk::JOURNAL_LIMIT;
    }
    static Slot slot_of(const Change &change);

    const Crash how;
    std::vector<ChangeRef> changes; /* ordered by number */
    uint64_t last_number = 0;

  private:
    Change &append(Change::Kind kind, Inode &node, uint64_t number);
    Change &append_entry(Inode &dir, const std::string &name, const InodeRef &after,
                         uint64_t number);
    void need_path(Change &change, const Inode &dir) const;
    void need_entries(Change &change, const Inode &dir) const;
    void bind(Inode &file, uint64_t number);
    void commit_until(uint64_t number);
    void commit_slots_of(const Inode &inode);
    bool commit_group(size_t first, size_t last, std::set<uint64_t> &numbers,
                      std::set<Slot> &slots) const;
    void drop(const std::function<bool(const Change &)> &is_done);

    uint64_t last_directory_rename = 0;
};

/* The possible results of a loss of power: the choices, and the state for given
 * choices. */
class CrashState
{
  public:
    explicit CrashState(const Disk &disk);

    const std::vector<unsigned> &alternatives() const
    {
        return radix;
    }
    size_t first_block_choice() const
    {
        return first_block;
    }
    std::vector<unsigned> draw(Random &random) const;
    void apply(const std::vector<unsigned> &choice);

  private:
    struct DirtyBlock {
        const Content *content;
        uint64_t index;
        size_t choice;
    };

    void visit(Inode *inode);
    void number_changes();
    void number_blocks(const Content &content);
    void decide_ordered(const std::vector<unsigned> &choice);
    void decide_weak(const std::vector<unsigned> &choice);
    bool is_kept(size_t first, size_t last, const std::vector<unsigned> &choice,
                 const std::set<Slot> &stopped) const;
    bool has_survived(uint64_t number) const;
    void restore_slots();
    void restore_size(const Change &change, bool kept);
    void settle_blocks(const std::vector<unsigned> &choice);
    void settle_content(Inode &file);

    const Journal &journal;
    std::vector<unsigned> radix;
    std::vector<Inode *> inodes; /* all that may be found, in a fixed order */
    std::set<const Inode *> seen;

    std::vector<uint64_t> ordered; /* numbers of changes in the journal, without
                                    * growths */
    std::map<Slot, size_t> slots;  /* slot -> its choice */
    std::vector<size_t> position;  /* of each change among the changes of its choice */
    size_t first_block = 0;        /* the first choice of a block */
    std::vector<DirtyBlock> blocks;
    std::vector<bool> kept;                      /* for each change of the journal */
    std::map<Inode *, ContentRef> found_content; /* of files whose size changed */
    std::map<const Content *, std::map<uint64_t, BlockRef>> settled; /* null: a hole */
};

} // namespace sim

#endif
