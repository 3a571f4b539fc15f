/* SPDX-License-Identifier: BSD-3-Clause */
/* Data of simulated files: blocks that are shared until a user changes them, with the
 * durable content of each block that was not synced. */
#include "disk_node.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sim
{

/* An allocated block that reads as zeros; as on real disks, SEEK_DATA treats it as a
 * hole. */
static const BlockRef &unwritten_block()
{
    static const BlockRef block = std::make_shared<Block>(Block{});
    return block;
}

static bool is_data(const BlockRef &block)
{
    return block && block != unwritten_block();
}

static BlockRef zeroed_tail(const Block &block, size_t from)
{
    BlockRef copy = std::make_shared<Block>(block);
    std::fill(copy->begin() + static_cast<ptrdiff_t>(from), copy->end(), 0);
    return copy;
}

void Inode::account(int64_t blocks)
{
    if (counted) disk.in_use += static_cast<uint64_t>(blocks) * BLOCK_SIZE;
}

Content &Inode::own_content()
{
    if (content.use_count() > 1) content = std::make_shared<Content>(*content);
    return *content;
}

/* Returns the block for a change and keeps its durable content; null: no space. */
Block *Inode::writable(uint64_t index)
{
    Content &own = *content;
    auto [slot, created] = own.blocks.try_emplace(index);
    BlockRef &block = slot->second;
    if (created && !disk.has_room(BLOCK_SIZE)) {
        own.blocks.erase(slot);
        return nullptr;
    }
    auto [old, clean] = own.unsynced.try_emplace(index);
    if (clean || old->second.bound) old->second = {block, 0};
    if (created) {
        account(1);
        block = std::make_shared<Block>(Block{});
    } else if (block.use_count() > 1) {
        block = std::make_shared<Block>(*block);
    }
    return block.get();
}

size_t Inode::read(void *buf, size_t count, uint64_t offset) const
{
    if (offset >= size) return 0;
    count = std::min<uint64_t>(count, size - offset);
    char *to = static_cast<char *>(buf);
    auto next = content->blocks.lower_bound(offset / BLOCK_SIZE);
    for (size_t done = 0, part; done < count; done += part) {
        uint64_t index = (offset + done) / BLOCK_SIZE,
                 start = (offset + done) % BLOCK_SIZE;
        part = std::min<uint64_t>(count - done, BLOCK_SIZE - start);
        if (next == content->blocks.end() || next->first != index) {
            memset(to + done, 0, part);
            continue;
        }
        memcpy(to + done, next->second->data() + start, part);
        ++next;
    }
    return count;
}

ssize_t Inode::write(const void *buf, size_t count, uint64_t offset)
{
    const char *from = static_cast<const char *>(buf);
    size_t done = 0;
    disk.limit_journal();
    own_content();
    while (done < count) {
        uint64_t start = (offset + done) % BLOCK_SIZE;
        size_t part = std::min<uint64_t>(count - done, BLOCK_SIZE - start);
        Block *block = writable((offset + done) / BLOCK_SIZE);
        if (!block) break;
        memcpy(block->data() + start, from + done, part);
        done += part;
    }
    if (count && !done) return -ENOSPC;
    if (offset + done > size && done) {
        disk.journal->grow(*this, offset + done);
        size = offset + done;
    }
    return static_cast<ssize_t>(done);
}

/* Drops everything behind new_size in a new content. The journal holds the previous
 * content, which returns if a loss of power loses the truncation. */
void Inode::cut(uint64_t new_size)
{
    uint64_t tail = new_size % BLOCK_SIZE, end = new_size / BLOCK_SIZE + (tail != 0);
    Content &own = own_content();
    auto dropped = own.blocks.lower_bound(end);
    account(-std::distance(dropped, own.blocks.end()));
    own.blocks.erase(dropped, own.blocks.end());
    own.unsynced.erase(own.unsynced.lower_bound(end), own.unsynced.end());
    if (!tail) return;
    auto last = own.blocks.find(end - 1);
    if (last != own.blocks.end()) last->second = zeroed_tail(*last->second, tail);
    auto old = own.unsynced.find(end - 1);
    if (old != own.unsynced.end() && old->second.old)
        old->second.old = zeroed_tail(*old->second.old, tail);
}

void Inode::resize(uint64_t new_size)
{
    disk.limit_journal();
    if (new_size > size) disk.journal->grow(*this, new_size);
    if (new_size < size) {
        disk.journal->truncate(*this, new_size);
        cut(new_size);
    }
    if (new_size == size) cut(new_size); /* blocks that were allocated behind the end */
    size = new_size;
}

void Inode::punch(uint64_t offset, uint64_t count)
{
    uint64_t end = offset + count;
    Content &own = own_content();
    auto slot = own.blocks.lower_bound(offset / BLOCK_SIZE);
    while (slot != own.blocks.end() && slot->first * BLOCK_SIZE < end) {
        uint64_t index = slot->first, base = index * BLOCK_SIZE;
        uint64_t from = std::max(offset, base), to = std::min(end, base + BLOCK_SIZE);
        if (to - from < BLOCK_SIZE) {
            if (is_data(slot->second))
                memset(writable(index)->data() + (from - base), 0, to - from);
            ++slot;
            continue;
        }
        auto [old, clean] = own.unsynced.try_emplace(index);
        if (clean || old->second.bound) old->second = {slot->second, 0};
        slot = own.blocks.erase(slot);
        account(-1);
    }
}

int Inode::allocate(uint64_t offset, uint64_t count)
{
    uint64_t first = offset / BLOCK_SIZE, last = (offset + count - 1) / BLOCK_SIZE;
    auto begin = content->blocks.lower_bound(first),
         end = content->blocks.upper_bound(last);
    uint64_t missing =
        last - first + 1 - static_cast<uint64_t>(std::distance(begin, end));
    if (missing > disk.capacity / BLOCK_SIZE || !disk.has_room(missing * BLOCK_SIZE))
        return -ENOSPC;
    Content &own = own_content();
    for (uint64_t index = first; index <= last; index++)
        own.blocks.try_emplace(index, unwritten_block());
    account(static_cast<int64_t>(missing));
    return 0;
}

off_t Inode::seek(uint64_t offset, bool data) const
{
    if (offset >= size) return -ENXIO;
    uint64_t index = offset / BLOCK_SIZE;
    auto next = content->blocks.lower_bound(index);
    if (data) {
        while (next != content->blocks.end() && !is_data(next->second))
            ++next;
        if (next == content->blocks.end()) return -ENXIO;
        uint64_t found = std::max(offset, next->first * BLOCK_SIZE);
        return found < size ? static_cast<off_t>(found) : -ENXIO;
    }
    while (next != content->blocks.end() && next->first == index &&
           is_data(next->second)) {
        ++next;
        ++index;
    }
    return static_cast<off_t>(std::min(size, std::max(offset, index * BLOCK_SIZE)));
}

void Inode::sync_data()
{
    if (!content->unsynced.empty()) own_content().unsynced.clear();
}

/* Binds all data that is not synced now to the change: the data survives if the change
 * does. */
void Inode::bind_unsynced(uint64_t change)
{
    if (content->unsynced.empty()) return;
    for (auto &block : own_content().unsynced)
        block.second.bound = change;
}

} // namespace sim
