/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal of a simulated disk: the record of each change, and what a sync makes
 * durable. Durable changes leave the journal. */
#include "disk_node.h"

#include <algorithm>

namespace sim
{

/* Growths of one file beyond this number are merged into the last one. */
static constexpr unsigned GROWTHS_MAX = 16;

Slot Journal::slot_of(const Change &change)
{
    return {change.node.get(), change.kind, change.name};
}

Change &Journal::append(Change::Kind kind, Inode &node, uint64_t number)
{
    changes.push_back(std::make_shared<Change>());
    Change &change = *changes.back();
    change.kind = kind;
    change.node = node.shared_from_this();
    change.number = number;
    return change;
}

Change &Journal::append_entry(Inode &dir, const std::string &name, const InodeRef &after,
                              uint64_t number)
{
    Change &change = append(Change::ENTRY, dir, number);
    change.name = name;
    change.before = dir.child(name);
    change.after = after;
    return change;
}

size_t Journal::index_of(uint64_t number) const
{
    auto found = std::lower_bound(
        changes.begin(), changes.end(), number,
        [](const ChangeRef &change, uint64_t n) { return change->number < n; });
    if (found == changes.end() || (*found)->number != number) return changes.size();
    return static_cast<size_t>(found - changes.begin());
}

/* ---- dependencies, for WEAK ---- */

/* A change needs the directory and all directories above it. */
void Journal::need_path(Change &change, const Inode &dir) const
{
    std::set<const Inode *> path;
    for (InodeRef up = dir.parent.lock(); up; up = up->parent.lock())
        if (!path.insert(up.get()).second) break;
    path.insert(&dir);
    for (const ChangeRef &c : changes)
        if (c->after && path.count(c->after.get())) change.needs.push_back(c->number);
}

/* The removal of a directory needs the removal of everything that was moved out of it. */
void Journal::need_entries(Change &change, const Inode &dir) const
{
    for (const ChangeRef &c : changes)
        if (c->kind == Change::ENTRY && c->node.get() == &dir)
            change.needs.push_back(c->number);
}

/* ---- records ---- */

void Journal::entry(Inode &dir, const std::string &name, const InodeRef &after)
{
    Change &change = append_entry(dir, name, after, ++last_number);
    if (how == Crash::WEAK && !after && change.before->is_directory())
        need_entries(change, *change.before);
}

void Journal::rename(Inode &from, const std::string &old, Inode &to,
                     const std::string &name)
{
    const InodeRef inode = from.child(old);
    const bool directory = inode->is_directory();
    Change &added = append_entry(to, name, inode, ++last_number);
    if (how == Crash::WEAK && !directory) {
        Change &removed = append_entry(from, old, nullptr, ++last_number);
        removed.needs.push_back(added.number);
        return;
    }
    append_entry(from, old, nullptr, last_number);
    if (how == Crash::WEAK) {
        if (last_directory_rename) added.needs.push_back(last_directory_rename);
        need_path(added, to);
        if (added.before) need_entries(added, *added.before);
        last_directory_rename = last_number;
    }
    if (how == Crash::EXT4 && added.before && inode->is_file()) bind(*inode, last_number);
}

void Journal::bind(Inode &file, uint64_t number)
{
    file.bind_unsynced(number);
    for (const ChangeRef &c : changes)
        if (c->growth && c->node.get() == &file) c->bound = number;
}

void Journal::grow(Inode &file, uint64_t size)
{
    if (file.growth && file.growths >= GROWTHS_MAX && !file.growth->bound) {
        file.growth->size_after = size;
        return;
    }
    Change &change = append(Change::SIZE, file, ++last_number);
    change.growth = true;
    change.size_before = file.size;
    change.size_after = size;
    file.growth = &change;
    file.growths++;
}

void Journal::truncate(Inode &file, uint64_t size)
{
    Change &change = append(Change::SIZE, file, ++last_number);
    change.size_before = file.size;
    change.size_after = size;
    change.cut = file.content;
    file.growth = nullptr;
}

void Journal::set_attributes(Inode &inode, const Attributes &after)
{
    Change &change = append(Change::ATTRIBUTES, inode, ++last_number);
    change.attributes_before = inode.attributes;
    change.attributes_after = after;
}

/* ---- durability ---- */

void Journal::drop(const std::function<bool(const Change &)> &is_done)
{
    auto end = std::remove_if(changes.begin(), changes.end(), [&](const ChangeRef &c) {
        if (!is_done(*c)) return false;
        if (c->kind == Change::SIZE) {
            c->node->growth = nullptr;
            c->node->growths = 0;
        }
        return true;
    });
    changes.erase(end, changes.end());
}

void Journal::clear()
{
    drop([](const Change &) { return true; });
}

void Journal::settle(const Inode &dir, const std::string &name)
{
    drop([&](const Change &c) {
        return c.kind == Change::ENTRY && c.node.get() == &dir && c.name == name;
    });
}

void Journal::settle_size(const Inode &file)
{
    drop(
        [&](const Change &c) { return c.kind == Change::SIZE && c.node.get() == &file; });
}

/* Growths before a durable truncation have no effect. */
void Journal::commit_until(uint64_t number)
{
    std::map<const Inode *, uint64_t> truncated;
    for (const ChangeRef &c : changes)
        if (c->kind == Change::SIZE && !c->growth && c->number <= number)
            truncated[c->node.get()] = c->number;
    drop([&](const Change &c) {
        if (!c.growth) return c.number <= number;
        if (c.bound && c.bound <= number) return true;
        auto found = truncated.find(c.node.get());
        return found != truncated.end() && c.number < found->second;
    });
}

/* Selects all changes of one number, first <= i < last, if one of them is selected by its
 * number or slot; then also all changes that must be durable before them. */
bool Journal::commit_group(size_t first, size_t last, std::set<uint64_t> &numbers,
                           std::set<Slot> &slots) const
{
    bool chosen = numbers.count(changes[first]->number) != 0;
    for (size_t i = first; i < last; i++)
        chosen = chosen || slots.count(slot_of(*changes[i])) != 0;
    if (!chosen) return false;
    for (size_t i = first; i < last; i++) {
        slots.insert(slot_of(*changes[i]));
        numbers.insert(changes[i]->number);
        numbers.insert(changes[i]->needs.begin(), changes[i]->needs.end());
    }
    return true;
}

/* WEAK: commits all slots of an inode, and everything that their changes need. */
void Journal::commit_slots_of(const Inode &inode)
{
    std::set<uint64_t> numbers, done;
    std::set<Slot> slots;
    for (const ChangeRef &c : changes)
        if (c->node.get() == &inode) slots.insert(slot_of(*c));
    for (size_t last = changes.size(), first; last > 0; last = first) {
        first = last - 1;
        while (first > 0 && changes[first - 1]->number == changes[first]->number)
            first--;
        if (commit_group(first, last, numbers, slots))
            done.insert(changes[first]->number);
    }
    drop([&](const Change &c) { return done.count(c.number) != 0; });
}

void Journal::sync(Inode &inode)
{
    if (changes.empty()) return;
    if (how == Crash::WEAK) return commit_slots_of(inode);
    uint64_t last = 0;
    for (const ChangeRef &c : changes)
        if (!c->growth && (c->node.get() == &inode || c->after.get() == &inode))
            last = c->number;
    commit_until(last);
    drop([&](const Change &c) { return c.growth && c.node.get() == &inode; });
}

} // namespace sim
