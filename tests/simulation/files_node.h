/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_FILES_NODE_H
#define SIMULATION_FILES_NODE_H

/* Internals of simulated descriptors: open file descriptions, and the walk along
 * paths. */

#include "disk_node.h"

#include <cerrno>
#include <string_view>

namespace sim
{

constexpr size_t NAME_LIMIT = 255, PATH_LIMIT = 4095;
constexpr unsigned LINKS_LIMIT = 40;
constexpr int READ = 4, WRITE = 2, EXECUTE = 1; /* as in file modes */

struct Place {
    std::shared_ptr<Disk> disk;
    InodeRef inode;
};

/* The result of a walk. parent and name: null and "" if the path ends with ".", ".." or
 * "/". inode: null if the name does not exist. */
struct Target {
    enum Last { NAME, DOT, DOTDOT, ROOT };

    std::shared_ptr<Disk> disk;
    InodeRef parent, inode;
    std::string name;
    Last last = NAME;
    bool slash = false; /* the name is followed by a slash */

    int missing() const
    {
        return name.size() > NAME_LIMIT ? -ENAMETOOLONG : -ENOENT;
    }
};

/* An open file description. */
struct Description {
    Description(const Target &target, int flags);
    ~Description();
    Description(const Description &) = delete;
    Description &operator=(const Description &) = delete;

    bool is_path() const
    {
        return flags & O_PATH;
    }
    bool reads() const;
    bool writes() const;
    void unlock(const void *owner);

    std::shared_ptr<Disk> disk;
    InodeRef inode, parent;
    std::string name; /* in parent, at the time of opening */
    int flags;
    uint64_t offset = 0;
};

class Walk
{
  public:
    /* FOLLOW: follows a link at the end. ENTRY: finds the entry itself, which may be
     * missing. CREATE: the file at the end may be missing. TRUSTED: skips checks of
     * access. */
    enum How : unsigned { FOLLOW = 1, ENTRY = 2, CREATE = 4, TRUSTED = 8 };

    Walk(const Files &files, unsigned how) : files(files), how(how)
    {
    }

    int run(int dir, const char *path, Target &found);
    static bool is_mount_point(const Files &files, const Inode &inode);

  private:
    struct Mount {
        Place point, root;
    };

    int start(int dir);
    int start_at_descriptor(Target &found, bool &done);
    void start_at_root();
    void prepare_mounts();
    int step(Target &found, bool &done);
    int step_into(const std::string &name, bool slash);
    int finish(const std::string &name, bool slash, Target &found, bool &done);
    void finish_here(Target::Last last, bool slash, Target &found, bool &done);
    int follow(const Inode &link, bool slash);
    int go_up();
    void enter_mount(Place &place) const;

    const Files &files;
    const unsigned how;
    Place here;
    std::string text; /* keeps the text of rest after a link */
    std::string_view rest;
    unsigned links = 0;
    std::vector<Mount> mounts;
};

} // namespace sim

#endif
