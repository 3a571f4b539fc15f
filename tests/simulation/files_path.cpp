/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths of simulated processes: the walk through directories, links and mounts, and the
 * rules of access. Checks have the order of Linux. */
#include "files_node.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sim
{

/* ---- start ---- */

static const char DESCRIPTORS[] = "/proc/self/fd/";

/* Follows mount points in the order of their paths: outer mounts first. */
void Walk::prepare_mounts()
{
    for (const auto &[path, disk] : *files.mounts) {
        if (path == "/") continue;
        Place point = {files.mounts->at("/"), files.mounts->at("/")->root};
        for (size_t at = 1, end; point.inode && at < path.size(); at = end + 1) {
            end = std::min(path.find('/', at), path.size());
            enter_mount(point);
            point.inode = point.inode->child(path.substr(at, end - at));
        }
        if (point.inode) mounts.push_back({point, {disk, disk->root}});
    }
}

void Walk::enter_mount(Place &place) const
{
    for (const Mount &mount : mounts)
        if (mount.point.inode == place.inode) place = mount.root;
}

bool Walk::is_mount_point(const Files &files, const Inode &inode)
{
    if (files.mounts->size() < 2) return false;
    Walk walk(files, 0);
    walk.prepare_mounts();
    return std::any_of(walk.mounts.begin(), walk.mounts.end(), [&](const Mount &mount) {
        return mount.point.inode.get() == &inode;
    });
}

void Walk::start_at_root()
{
    here.disk = files.mounts->at("/");
    here.inode = here.disk->root;
}

int Walk::start(int dir)
{
    if (rest.front() == '/' || (dir == AT_FDCWD && files.cwd == "/")) {
        start_at_root();
        return 0;
    }
    if (dir == AT_FDCWD) {
        Target found;
        int rc = Walk(files, FOLLOW | TRUSTED).run(dir, files.cwd.c_str(), found);
        here = {found.disk, found.inode};
        return rc;
    }
    const Description *d = files.description(dir);
    if (!d) return -EBADF;
    here = {d->disk, d->inode};
    return here.inode->is_directory() ? 0 : -ENOTDIR;
}

/* Starts a path that begins with /proc/self/fd/. */
int Walk::start_at_descriptor(Target &found, bool &done)
{
    rest.remove_prefix(sizeof DESCRIPTORS - 1);
    int fd = 0;
    while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9' && fd < 1 << 20) {
        fd = fd * 10 + (rest.front() - '0');
        rest.remove_prefix(1);
    }
    const Description *d = files.description(fd);
    if (!d || (!rest.empty() && rest.front() != '/')) return -ENOENT;
    here = {d->disk, d->inode};
    if (!rest.empty()) return here.inode->is_directory() ? 0 : -ENOTDIR;
    if (how & ENTRY) return -EPERM;
    found.disk = d->disk;
    found.parent = d->parent;
    found.name = d->name;
    found.inode = d->inode;
    done = true;
    return 0;
}

/* ---- steps ---- */

int Walk::go_up()
{
    for (bool moved = true; moved;) {
        moved = false;
        for (const Mount &mount : mounts) {
            if (mount.root.inode != here.inode) continue;
            here = mount.point;
            moved = true;
        }
    }
    if (here.inode == files.mounts->at("/")->root) return 0;
    here.inode = here.inode->parent.lock();
    if (!here.inode) return -ENOENT;
    enter_mount(here);
    return 0;
}

int Walk::follow(const Inode &link, bool slash)
{
    if (++links > LINKS_LIMIT) return -ELOOP;
    std::string next = link.target;
    if (slash || !rest.empty()) next += '/';
    next += rest;
    text = std::move(next);
    rest = text;
    if (rest.front() == '/') start_at_root();
    return 0;
}

int Walk::step_into(const std::string &name, bool slash)
{
    InodeRef child = here.inode->child(name);
    if (!child) return -ENOENT;
    if (child->is_link()) return follow(*child, slash);
    if (!child->is_directory()) return -ENOTDIR;
    here.inode = child;
    enter_mount(here);
    return 0;
}

void Walk::finish_here(Target::Last last, bool slash, Target &found, bool &done)
{
    found.disk = here.disk;
    found.inode = here.inode;
    found.last = last;
    found.slash = slash;
    done = true;
}

int Walk::finish(const std::string &name, bool slash, Target &found, bool &done)
{
    InodeRef child = here.inode->child(name);
    if (!(how & ENTRY)) {
        if (how & CREATE && slash) return -EISDIR;
        if (!child && !(how & CREATE)) return -ENOENT;
        if (child && child->is_link() && (how & FOLLOW || slash))
            return follow(*child, slash);
        if (slash && !child->is_directory()) return -ENOTDIR;
    }
    found.parent = here.inode;
    found.name = name;
    here.inode = child;
    if (child && !(how & ENTRY)) enter_mount(here);
    finish_here(Target::NAME, slash, found, done);
    return 0;
}

int Walk::step(Target &found, bool &done)
{
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
    if (rest.empty()) {
        finish_here(Target::ROOT, true, found, done);
        return 0;
    }
    if (!(how & TRUSTED) && !files.is_allowed(*here.inode, EXECUTE)) return -EACCES;
    const size_t size = std::min(rest.find('/'), rest.size());
    const std::string name(rest.substr(0, size));
    rest.remove_prefix(size);
    const bool slash = !rest.empty();
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
    const bool last = rest.empty();
    if (name == "." || name == "..") {
        const bool stays = name == "." || (last && how & ENTRY);
        int rc = stays ? 0 : go_up();
        if (!rc && last)
            finish_here(name == "." ? Target::DOT : Target::DOTDOT, slash, found, done);
        return rc;
    }
    if (name.size() > NAME_LIMIT && !(last && how & ENTRY))
        return here.inode->links ? -ENAMETOOLONG : -ENOENT;
    return last ? finish(name, slash, found, done) : step_into(name, slash);
}

int Walk::run(int dir, const char *path, Target &found)
{
    bool done = false;
    rest = path;
    if (rest.empty()) return -ENOENT;
    if (rest.size() > PATH_LIMIT) return -ENAMETOOLONG;
    if (files.mounts->size() > 1) prepare_mounts();
    const bool magic = rest.compare(0, sizeof DESCRIPTORS - 1, DESCRIPTORS) == 0;
    int rc = magic ? start_at_descriptor(found, done) : start(dir);
    while (!rc && !done)
        rc = step(found, done);
    return rc;
}

/* ---- access ---- */

bool Files::is_allowed(const Inode &inode, int want) const
{
    const mode_t mode = inode.attributes.mode;
    if (user == 0) return !(want & EXECUTE) || inode.is_directory() || mode & 0111;
    const int shift = user == inode.attributes.user     ? 6
                      : group == inode.attributes.group ? 3
                                                        : 0;
    return (want & ~(mode >> shift)) == 0;
}

bool Files::is_owner(const Inode &inode) const
{
    return user == 0 || user == inode.attributes.user;
}

bool Files::is_sticky(const Inode &dir, const Inode &inode) const
{
    return dir.attributes.mode & S_ISVTX && !is_owner(inode) && !is_owner(dir);
}

int Files::may_create(const Inode &dir) const
{
    if (!dir.links) return -ENOENT; /* it was removed */
    return is_allowed(dir, WRITE | EXECUTE) ? 0 : -EACCES;
}

int Files::may_remove(const Inode &dir, const Inode &inode, bool directory) const
{
    if (!is_allowed(dir, WRITE | EXECUTE)) return -EACCES;
    if (is_sticky(dir, inode)) return -EPERM;
    if (directory && !inode.is_directory()) return -ENOTDIR;
    if (!directory && inode.is_directory()) return -EISDIR;
    return 0;
}

/* Applies the rules of fs.protected_hardlinks, which distributions set. */
bool Files::is_linkable(const Inode &inode) const
{
    const mode_t mode = inode.attributes.mode;
    if (is_owner(inode)) return true;
    const bool group_runs = (mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
    return inode.is_file() && !(mode & S_ISUID) && !group_runs &&
           is_allowed(inode, READ | WRITE);
}

/* Attributes of a new inode in dir. mode: without type, before the umask, which links
 * ignore. */
Attributes Files::attributes_in(const Inode &dir, mode_t type, mode_t mode) const
{
    const mode_t runs = S_ISGID | S_IXGRP;
    const bool inherits = dir.attributes.mode & S_ISGID;
    Attributes result = {type, user, inherits ? dir.attributes.group : group};
    if (inherits && (mode & runs) == runs && user != 0 && group != result.group)
        mode &= ~static_cast<mode_t>(S_ISGID);
    result.mode |= S_ISLNK(type) ? mode : mode & ~umask;
    if (inherits && S_ISDIR(type)) result.mode |= S_ISGID;
    return result;
}

/* Returns the mode without the privileges that the file gives to those who execute it. */
mode_t Files::unprivileged_mode(const Inode &inode) const
{
    mode_t mode = inode.attributes.mode & ~static_cast<mode_t>(S_ISUID);
    if (mode & S_IXGRP || (user != 0 && group != inode.attributes.group))
        mode &= ~static_cast<mode_t>(S_ISGID);
    return mode;
}

/* Removes these privileges when an ordinary user changes data. */
void Files::drop_privileges(Disk &disk, Inode &inode) const
{
    Attributes attributes = inode.attributes;
    if (user == 0 || !inode.is_file()) return;
    attributes.mode = unprivileged_mode(inode);
    if (attributes.mode != inode.attributes.mode) disk.set_attributes(inode, attributes);
}

} // namespace sim
