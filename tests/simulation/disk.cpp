/* SPDX-License-Identifier: BSD-3-Clause */
/* Simulated disks: the tree of names, space, copies, and access for judge and damage. */
#include "disk.h"

#include "disk_node.h"

#include <algorithm>
#include <cmath>

namespace sim
{

/* ---- inodes ---- */

static ino_t lowest_number(std::vector<ino_t> &numbers)
{
    std::pop_heap(numbers.begin(), numbers.end(), std::greater<>());
    ino_t number = numbers.back();
    numbers.pop_back();
    return number;
}

static const ContentRef &empty_content()
{
    static const ContentRef content = std::make_shared<Content>();
    return content;
}

Inode::Inode(Disk &disk, ino_t number, const Attributes &attributes)
    : disk(disk), number(number), attributes(attributes), content(empty_content())
{
}

Inode::~Inode()
{
    disk.free_numbers.push_back(number);
    std::push_heap(disk.free_numbers.begin(), disk.free_numbers.end(), std::greater<>());
}

InodeRef Inode::child(const std::string &name) const
{
    auto found = entries.find(name);
    return found == entries.end() ? nullptr : found->second;
}

InodeRef Disk::make_inode(const Attributes &attributes)
{
    ino_t inode = free_numbers.empty() ? next_number++ : lowest_number(free_numbers);
    InodeRef made = std::make_shared<Inode>(*this, inode, attributes);
    made->accessed = made->modified = made->changed = now();
    return made;
}

/* ---- disks ---- */

Disk::Disk(dev_t number, uint64_t capacity, std::function<double()> clock, Crash how)
    : capacity(capacity), how(how), number(number), clock(std::move(clock)),
      journal(std::make_unique<Journal>(how))
{
    root = make_inode({S_IFDIR | 0755, 0, 0});
    root->links = 2;
    root->counted = true;
    in_use = BLOCK_SIZE;
}

Disk::~Disk()
{
    journal->clear(); /* inodes are destroyed before the numbers that they return */
    root.reset();
}

struct timespec Disk::now() const
{
    double seconds = clock(), whole = std::floor(seconds);
    return {static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
}

bool Disk::has_room(uint64_t bytes) const
{
    return in_use + bytes <= capacity;
}

uint64_t Disk::used() const
{
    return in_use;
}

void Disk::release(Inode &inode)
{
    if (inode.links || inode.opens || !inode.counted) return;
    in_use -= BLOCK_SIZE * (1 + inode.content->blocks.size());
    inode.counted = false;
}

/* ---- names ---- */

void Disk::attach(Inode &dir, const std::string &name, const InodeRef &inode)
{
    dir.entries[name] = inode;
    dir.modified = dir.changed = inode->changed = now();
    if (!inode->is_directory()) {
        inode->links++;
        return;
    }
    if (!inode->links) inode->links = 2;
    inode->parent = dir.weak_from_this();
    inode->name = name;
    dir.links++;
}

/* A directory keeps the links of its entries, since its caller renames or removes it. */
InodeRef Disk::detach(Inode &dir, const std::string &name)
{
    InodeRef inode = dir.child(name);
    dir.entries.erase(name);
    dir.modified = dir.changed = inode->changed = now();
    if (inode->is_directory())
        dir.links--;
    else
        inode->links--;
    return inode;
}

void Disk::discard(Inode &dir, const std::string &name)
{
    InodeRef inode = detach(dir, name);
    if (inode->is_directory()) inode->links = 0;
    release(*inode);
}

InodeRef Disk::create(Inode &dir, const std::string &name, const Attributes &attributes)
{
    InodeRef inode = make_inode(attributes);
    inode->counted = true;
    in_use += BLOCK_SIZE;
    link(dir, name, inode);
    return inode;
}

void Disk::link(Inode &dir, const std::string &name, const InodeRef &inode)
{
    limit_journal();
    journal->entry(dir, name, inode);
    attach(dir, name, inode);
}

void Disk::unlink(Inode &dir, const std::string &name)
{
    limit_journal();
    journal->entry(dir, name, nullptr);
    discard(dir, name);
}

void Disk::rename(Inode &from, const std::string &old, Inode &to, const std::string &name)
{
    limit_journal();
    journal->rename(from, old, to, name);
    if (to.child(name)) discard(to, name);
    attach(to, name, detach(from, old));
}

void Disk::set_attributes(Inode &inode, const Attributes &attributes)
{
    limit_journal();
    journal->set_attributes(inode, attributes);
    inode.attributes = attributes;
    inode.changed = now();
}

/* ---- durability ---- */

static void sync_tree(Inode &inode)
{
    inode.sync_data();
    for (const auto &entry : inode.entries)
        sync_tree(*entry.second);
}

void Disk::sync()
{
    sync_tree(*root);
    journal->clear();
}

void Disk::limit_journal()
{
    if (journal->is_full()) sync();
}

void Disk::erase()
{
    while (!root->entries.empty())
        remove(root->entries.begin()->first);
    sync();
}

std::vector<unsigned> Disk::choices() const
{
    return CrashState(*this).alternatives();
}

size_t Disk::first_block_choice() const
{
    return CrashState(*this).first_block_choice();
}

void Disk::lose_power(Random &random)
{
    lose_power(CrashState(*this).draw(random));
}

void Disk::lose_power(const std::vector<unsigned> &choice)
{
    CrashState(*this).apply(choice);
    journal->clear(); /* lost inodes are destroyed */
    in_use = 0;
    recount(*root);
}

/* Recounts links and space of everything below dir; before, no inode is counted. */
void Disk::recount(Inode &dir)
{
    in_use += BLOCK_SIZE;
    dir.counted = true;
    dir.links = 2;
    for (const auto &[name, inode] : dir.entries) {
        if (inode->is_directory()) {
            inode->parent = dir.weak_from_this();
            inode->name = name;
            dir.links++;
            recount(*inode);
            continue;
        }
        if (!inode->counted) in_use += BLOCK_SIZE * (1 + inode->content->blocks.size());
        inode->counted = true;
        inode->links++;
    }
}

/* ---- copies ---- */

InodeRef Disk::copy_inode(const Inode &from, std::map<const Inode *, InodeRef> &copies)
{
    InodeRef &copy = copies[&from];
    if (copy) return copy;
    InodeRef inode = copy = std::make_shared<Inode>(*this, from.number, from.attributes);
    inode->links = from.links;
    inode->counted = from.counted;
    inode->size = from.size;
    inode->content = from.content;
    inode->name = from.name;
    inode->target = from.target;
    inode->accessed = from.accessed;
    inode->modified = from.modified;
    inode->changed = from.changed;
    for (const auto &[name, child] : from.entries) {
        InodeRef entry = copy_inode(*child, copies);
        inode->entries.emplace_hint(inode->entries.end(), name, entry);
        if (entry->is_directory()) entry->parent = inode;
    }
    return inode;
}

std::unique_ptr<Disk> Disk::copy() const
{
    auto disk = std::make_unique<Disk>(number, capacity, clock, how);
    std::map<const Inode *, InodeRef> copies;
    disk->root = disk->copy_inode(*root, copies);
    disk->in_use = in_use;
    disk->next_number = next_number;
    disk->free_numbers = free_numbers;
    auto copied = [&](const InodeRef &inode) {
        return inode ? disk->copy_inode(*inode, copies) : nullptr;
    };
    for (const ChangeRef &change : journal->changes) {
        auto copy = std::make_shared<Change>(*change);
        copy->node = copied(change->node);
        copy->before = copied(change->before);
        copy->after = copied(change->after);
        disk->journal->changes.push_back(copy);
    }
    disk->journal->last_number = journal->last_number;
    return disk;
}

/* ---- access for judge and damage ---- */

/* Returns the inode at path; null: none. dir and name: its place, even if it does not
 * exist; dir is null if there is no such directory. */
Inode *Disk::inode_at(const std::string &path, Inode **dir, std::string *name) const
{
    Inode *parent = nullptr, *here = root.get();
    std::string last;
    for (size_t at = 0, end; at < path.size(); at = end + 1) {
        end = std::min(path.find('/', at), path.size());
        if (end == at) continue;
        parent = here && here->is_directory() ? here : nullptr;
        last = path.substr(at, end - at);
        here = parent ? parent->child(last).get() : nullptr;
    }
    if (dir) *dir = parent;
    if (name) *name = last;
    return here;
}

static void list_entries(const Inode &dir, const std::string &path,
                         std::vector<Disk::Entry> &entries)
{
    for (const auto &[name, inode] : dir.entries) {
        entries.push_back(
            {path + name, inode->attributes.mode, inode->size, inode->target});
        if (inode->is_directory()) list_entries(*inode, path + name + "/", entries);
    }
}

std::vector<Disk::Entry> Disk::list() const
{
    std::vector<Entry> entries;
    list_entries(*root, "", entries);
    std::sort(entries.begin(), entries.end(),
              [](const Entry &a, const Entry &b) { return a.path < b.path; });
    return entries;
}

bool Disk::read(const std::string &path, std::string &bytes) const
{
    const Inode *inode = inode_at(path, nullptr, nullptr);
    if (!inode || !inode->is_file()) return false;
    bytes.resize(inode->size);
    inode->read(&bytes[0], bytes.size(), 0);
    return true;
}

bool Disk::write(const std::string &path, const std::string &bytes)
{
    Inode *dir;
    std::string name;
    InodeRef inode;
    if (Inode *found = inode_at(path, &dir, &name)) inode = found->shared_from_this();
    if (!dir || (inode && !inode->is_file())) return false;
    if (!inode)
        inode = create(*dir, name,
                       {S_IFREG | 0644, dir->attributes.user, dir->attributes.group});
    journal->settle(*dir, name);
    const struct timespec before = inode->modified;
    inode->resize(0);
    const bool fits =
        inode->write(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    inode->modified = before;
    inode->sync_data();
    journal->settle_size(*inode);
    return fits;
}

bool Disk::remove(const std::string &path)
{
    Inode *dir;
    std::string name;
    Inode *inode = inode_at(path, &dir, &name);
    if (!dir || !inode) return false;
    while (inode->is_directory() && !inode->entries.empty())
        remove(path + "/" + inode->entries.begin()->first);
    discard(*dir, name);
    journal->settle(*dir, name);
    return true;
}

} // namespace sim
