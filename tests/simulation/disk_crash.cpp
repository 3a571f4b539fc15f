/* SPDX-License-Identifier: BSD-3-Clause */
/* The content of a simulated disk after a loss of power. First, the choices are numbered.
 * Then each change of the journal is kept or lost; each slot gets the value of its last
 * kept change; and each block of data that was not synced gets its old content, its new
 * content, or a mix. Links and space are recounted, as a check of the file system
 * does. */
#include "disk_node.h"

#include <algorithm>
#include <cstring>

namespace sim
{

static const Block ZEROS = {};

static const Block &block_or_zeros(const BlockRef &block)
{
    return block ? *block : ZEROS;
}

/* The sectors in which two states of a block differ. */
static std::vector<size_t> differing_sectors(const Block &a, const Block &b)
{
    std::vector<size_t> sectors;
    for (size_t i = 0; i < SECTORS; i++)
        if (memcmp(a.data() + i * SECTOR_SIZE, b.data() + i * SECTOR_SIZE, SECTOR_SIZE) !=
            0)
            sectors.push_back(i);
    return sectors;
}

static BlockRef block_in(const Content &content, uint64_t index)
{
    auto found = content.blocks.find(index);
    return found == content.blocks.end() ? nullptr : found->second;
}

/* ---- numbering ---- */

CrashState::CrashState(const Disk &disk) : journal(*disk.journal)
{
    visit(disk.root.get());
    for (const ChangeRef &change : journal.changes) {
        visit(change->node.get());
        if (change->before) visit(change->before.get());
        if (change->after) visit(change->after.get());
    }
    number_changes();
    first_block = radix.size();
    std::map<const Inode *, std::vector<const Content *>> cuts;
    for (const ChangeRef &change : journal.changes)
        if (change->cut) cuts[change->node.get()].push_back(change->cut.get());
    for (Inode *inode : inodes) {
        number_blocks(*inode->content);
        for (const Content *content : cuts[inode])
            number_blocks(*content);
    }
}

void CrashState::visit(Inode *inode)
{
    if (!seen.insert(inode).second) return;
    inodes.push_back(inode);
    for (const auto &entry : inode->entries)
        visit(entry.second.get());
}

void CrashState::number_changes()
{
    const bool weak = journal.how == Crash::WEAK;
    position.resize(journal.changes.size());
    for (const ChangeRef &c : journal.changes)
        if (!weak && !c->growth && (ordered.empty() || ordered.back() != c->number))
            ordered.push_back(c->number);
    if (!ordered.empty()) radix.push_back(static_cast<unsigned>(ordered.size()) + 1);
    for (size_t i = 0; i < journal.changes.size(); i++) {
        const Change &c = *journal.changes[i];
        if (!weak && !c.growth) continue;
        auto [slot, created] = slots.try_emplace(Journal::slot_of(c), radix.size());
        if (created) radix.push_back(1);
        position[i] = radix[slot->second]++ - 1;
    }
}

void CrashState::number_blocks(const Content &content)
{
    for (const auto &[index, unsynced] : content.unsynced) {
        size_t count = differing_sectors(block_or_zeros(unsynced.old),
                                         block_or_zeros(block_in(content, index)))
                           .size();
        if (count == 0) continue;
        blocks.push_back({&content, index, radix.size()});
        radix.push_back(static_cast<unsigned>(2 * count));
    }
}

/* Draws one of: everything lost, everything kept, or independent choices. */
std::vector<unsigned> CrashState::draw(Random &random) const
{
    std::vector<unsigned> choice;
    const uint64_t names = random.below(4), data = random.below(4);
    for (size_t i = 0; i < radix.size(); i++) {
        const bool block = i >= first_block;
        const uint64_t mood = block ? data : names;
        const unsigned kept = block ? 1 : radix[i] - 1;
        unsigned one = mood == 0 ? 0 : kept;
        if (mood > 1) one = static_cast<unsigned>(random.below(radix[i]));
        if (mood > 1 && block && random.chance(0.5))
            one = static_cast<unsigned>(random.below(2));
        choice.push_back(one);
    }
    return choice;
}

/* ---- which changes are kept ---- */

bool CrashState::has_survived(uint64_t number) const
{
    size_t i = journal.index_of(number);
    return i == journal.changes.size() || kept[i]; /* a change that is not pending is
                                                    * durable */
}

/* A growth counts only on top of the size from which it started: if a growth is lost,
 * those that follow are lost, up to a kept truncation. */
void CrashState::decide_ordered(const std::vector<unsigned> &choice)
{
    const size_t count = ordered.empty() ? 0 : choice[0];
    for (size_t i = 0; i < journal.changes.size(); i++)
        if (!journal.changes[i]->growth)
            kept[i] = count > 0 && journal.changes[i]->number <= ordered[count - 1];
    std::map<const Inode *, bool> stopped;
    for (size_t i = 0; i < journal.changes.size(); i++) {
        const Change &c = *journal.changes[i];
        if (c.kind != Change::SIZE) continue;
        bool &stop = stopped[c.node.get()];
        if (!c.growth) {
            stop = !kept[i];
            continue;
        }
        const bool chosen = position[i] < choice[slots.at(Journal::slot_of(c))];
        kept[i] = !stop && (chosen || (c.bound && has_survived(c.bound)));
        stop = !kept[i];
    }
}

/* The parts of one change, first <= i < last, are kept or lost together. */
bool CrashState::is_kept(size_t first, size_t last, const std::vector<unsigned> &choice,
                         const std::set<Slot> &stopped) const
{
    for (size_t i = first; i < last; i++) {
        const Change &c = *journal.changes[i];
        const Slot slot = Journal::slot_of(c);
        if (stopped.count(slot) || position[i] >= choice[slots.at(slot)]) return false;
        for (uint64_t number : c.needs)
            if (!has_survived(number)) return false;
    }
    return true;
}

void CrashState::decide_weak(const std::vector<unsigned> &choice)
{
    std::set<Slot> stopped;
    for (size_t first = 0, last; first < journal.changes.size(); first = last) {
        const uint64_t number = journal.changes[first]->number;
        last = first + 1;
        while (last < journal.changes.size() && journal.changes[last]->number == number)
            last++;
        const bool keep = is_kept(first, last, choice, stopped);
        for (size_t i = first; i < last; i++) {
            kept[i] = keep;
            if (!keep) stopped.insert(Journal::slot_of(*journal.changes[i]));
        }
    }
}

/* ---- the state ---- */

static void restore_entry(Inode &dir, const std::string &name, const InodeRef &inode)
{
    if (inode)
        dir.entries[name] = inode;
    else
        dir.entries.erase(name);
}

/* The first lost truncation restores the previous content; all changes of the size after
 * it are lost, too. */
void CrashState::restore_size(const Change &change, bool is_kept)
{
    Inode &file = *change.node;
    if (is_kept) file.size = change.size_after;
    ContentRef &found = found_content.try_emplace(&file, file.content).first->second;
    if (!is_kept && change.cut && found == file.content) found = change.cut;
}

void CrashState::restore_slots()
{
    std::set<Slot> started;
    for (size_t i = 0; i < journal.changes.size(); i++) {
        const Change &c = *journal.changes[i];
        const bool first = started.insert(Journal::slot_of(c)).second;
        switch (c.kind) {
        case Change::ENTRY:
            if (first) restore_entry(*c.node, c.name, c.before);
            if (kept[i]) restore_entry(*c.node, c.name, c.after);
            break;
        case Change::ATTRIBUTES:
            if (first) c.node->attributes = c.attributes_before;
            if (kept[i]) c.node->attributes = c.attributes_after;
            break;
        case Change::SIZE:
            if (first) c.node->size = c.size_before;
            restore_size(c, kept[i]);
        }
    }
}

/* ---- data ---- */

static BlockRef mixed_block(const BlockRef &before, const BlockRef &after,
                            unsigned choice)
{
    if (choice == 0) return before;
    if (choice == 1) return after;
    const Block &old = block_or_zeros(before), &fresh = block_or_zeros(after);
    const std::vector<size_t> sectors = differing_sectors(old, fresh);
    const size_t count = sectors.size();
    const bool front = choice <= count;
    const size_t parts = front ? choice - 1 : choice - count;
    BlockRef mixed = std::make_shared<Block>(old);
    for (size_t i = 0; i < parts; i++) {
        size_t at = sectors[front ? i : count - 1 - i] * SECTOR_SIZE;
        memcpy(mixed->data() + at, fresh.data() + at, SECTOR_SIZE);
    }
    return mixed;
}

void CrashState::settle_blocks(const std::vector<unsigned> &choice)
{
    for (const DirtyBlock &dirty : blocks) {
        const Unsynced &unsynced = dirty.content->unsynced.at(dirty.index);
        if (unsynced.bound && has_survived(unsynced.bound)) continue;
        settled[dirty.content][dirty.index] = mixed_block(
            unsynced.old, block_in(*dirty.content, dirty.index), choice[dirty.choice]);
    }
}

/* Removes everything behind the end of a file. */
static void clip_content(Content &content, uint64_t size)
{
    const uint64_t tail = size % BLOCK_SIZE, end = size / BLOCK_SIZE + (tail != 0);
    content.blocks.erase(content.blocks.lower_bound(end), content.blocks.end());
    auto last = content.blocks.find(end - 1);
    if (!tail || last == content.blocks.end()) return;
    BlockRef copy = std::make_shared<Block>(*last->second);
    std::fill(copy->begin() + static_cast<ptrdiff_t>(tail), copy->end(), 0);
    last->second = copy;
}

void CrashState::settle_content(Inode &file)
{
    auto resized = found_content.find(&file);
    if (resized == found_content.end() && file.content->unsynced.empty()) return;
    const ContentRef from =
        resized == found_content.end() ? file.content : resized->second;
    ContentRef content = std::make_shared<Content>();
    content->blocks = from->blocks;
    for (const auto &[index, block] : settled[from.get()]) {
        if (block)
            content->blocks[index] = block;
        else
            content->blocks.erase(index);
    }
    clip_content(*content, file.size);
    file.content = content;
}

void CrashState::apply(const std::vector<unsigned> &choice)
{
    kept.assign(journal.changes.size(), false);
    if (journal.how == Crash::WEAK)
        decide_weak(choice);
    else
        decide_ordered(choice);
    restore_slots();
    settle_blocks(choice);
    for (Inode *inode : inodes) {
        settle_content(*inode);
        inode->counted = false;
        inode->links = 0;
    }
}

} // namespace sim
