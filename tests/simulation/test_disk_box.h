/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_TEST_DISK_BOX_H
#define SIMULATION_TEST_DISK_BOX_H

/* For tests of a loss of power: a disk with short calls, all states in which it may be
 * found, and checks of these states. */

#include "disk.h"

#include <algorithm>
#include <cstdio>
#include <set>

using namespace sim;

using States = std::set<std::string>;

static int failures;
static std::string context;

static void check(bool condition, const char *what, int line)
{
    if (condition) return;
    failures++;
    printf("line %d: %s: %s\n", line, context.c_str(), what);
}

#define CHECK(condition) check((condition), #condition, __LINE__)

static const std::vector<Crash> KINDS = {Crash::EXT4, Crash::XFS, Crash::WEAK};
static const char *const KIND_NAMES[] = {"ext4", "xfs", "weak"};

/* A disk and a process on it, with short calls for both. */
struct Box {
    explicit Box(Crash how, uint64_t capacity = 1 << 30)
        : disk(std::make_shared<Disk>(
              1, capacity, [] { return 1.7e9; }, how)),
          mounts({{"/", disk}}), files(&mounts, 0, 0, Random(1))
    {
        context = KIND_NAMES[static_cast<int>(how)];
    }

    int open(const std::string &path, int flags)
    {
        return files.openat(AT_FDCWD, path.c_str(), flags, 0644);
    }

    int write(const std::string &path, const std::string &bytes, int flags = O_TRUNC,
              off_t offset = 0)
    {
        int fd = open(path, O_WRONLY | O_CREAT | flags);
        ssize_t size = files.pwrite(fd, bytes.data(), bytes.size(), offset);
        files.close(fd);
        return size == static_cast<ssize_t>(bytes.size()) ? 0 : static_cast<int>(size);
    }

    int sync(const std::string &path)
    {
        int fd = open(path, O_RDONLY), rc = files.fsync(fd);
        files.close(fd);
        return rc;
    }

    int mkdir(const std::string &path)
    {
        return files.mkdirat(AT_FDCWD, path.c_str(), 0755);
    }

    int remove(const std::string &path, bool directory = false)
    {
        return files.unlinkat(AT_FDCWD, path.c_str(), directory ? AT_REMOVEDIR : 0);
    }

    int rename(const std::string &from, const std::string &to)
    {
        return files.renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0);
    }

    int link(const std::string &from, const std::string &to)
    {
        return files.linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0);
    }

    std::shared_ptr<Disk> disk;
    Mounts mounts;
    Files files;
};

/* Runs of the same byte with their lengths; zero bytes are "0". */
static std::string digest(const std::string &bytes)
{
    std::string text;
    for (size_t at = 0, end; at < bytes.size(); at = end) {
        end = std::min(bytes.find_first_not_of(bytes[at], at), bytes.size());
        text += (bytes[at] ? bytes[at] : '0') + std::to_string(end - at) + " ";
    }
    return text.empty() ? "empty" : text.substr(0, text.size() - 1);
}

static std::string state_of(const Disk &disk)
{
    std::string text, bytes;
    for (const Disk::Entry &entry : disk.list()) {
        char mode[20];
        snprintf(mode, sizeof mode, " %o ", entry.mode);
        text += entry.path + mode + entry.link;
        if (disk.read(entry.path, bytes)) text += digest(bytes);
        text += "\n";
    }
    return text;
}

static uint64_t count_states(const Disk &disk)
{
    uint64_t count = 1;
    for (unsigned alternatives : disk.choices()) {
        if (count > 1000000) return count;
        count *= alternatives;
    }
    return count;
}

/* Calls visit for each possible state after a loss of power. */
template <typename Visit> static void each_state(const Disk &disk, Visit visit)
{
    const std::vector<unsigned> alternatives = disk.choices();
    std::vector<unsigned> choice(alternatives.size(), 0);
    for (size_t i = 0; i < choice.size() || choice.empty();) {
        auto copy = disk.copy();
        copy->lose_power(choice);
        visit(*copy);
        for (i = 0; i < choice.size() && ++choice[i] == alternatives[i]; i++)
            choice[i] = 0;
        if (choice.empty()) break;
    }
}

static States states_of(const Disk &disk)
{
    States states;
    each_state(disk, [&](const Disk &found) { states.insert(state_of(found)); });
    return states;
}

/* The states of one file: digests, or "none". */
static States states_of_file(const Disk &disk, const std::string &path)
{
    States states;
    each_state(disk, [&](const Disk &found) {
        std::string bytes;
        states.insert(found.read(path, bytes) ? digest(bytes) : "none");
    });
    return states;
}

static bool includes(const States &all, const States &part)
{
    for (const std::string &state : part)
        if (!all.count(state)) return false;
    return true;
}

static void print(const char *name, const States &states)
{
    printf("%s:\n", name);
    for (const std::string &state : states)
        printf("  %s\n", state.c_str());
}

static void check_states(const States &found, const States &expected, int line)
{
    if (found == expected) return;
    check(false, "other states", line);
    print("found", found);
    print("expected", expected);
}

#define CHECK_STATES(found, ...) check_states((found), States __VA_ARGS__, __LINE__)

#endif
