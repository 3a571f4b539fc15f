/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the content of simulated disks after a loss of power: all states of small
 * histories, and properties of random histories.
 *
 * g++ -std=c++17 -Wall -Wextra -O1 -g test_disk_crash.cpp disk*.cpp files*.cpp \
 *     -o test_disk_crash
 * ./test_disk_crash [seeds]; ./test_disk_crash speed */
#include "test_disk_box.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <unistd.h>

static const std::string OLD(1000, 'o'), NEW(1500, 'n');

/* ---- known histories ---- */

/* A file is written under another name and renamed over the old one. */
static void test_replace(Crash how, bool synced)
{
    Box box(how);
    box.write("f", OLD);
    box.disk->sync();
    box.write("t", NEW);
    if (synced) CHECK(box.sync("t") == 0);
    CHECK(box.rename("t", "f") == 0);
    States found = states_of_file(*box.disk, "f");
    if (synced || how == Crash::EXT4)
        CHECK_STATES(found, {"o1000", "n1500"});
    else
        CHECK_STATES(found, {"o1000", "n1500", "empty", "01500", "n512 0988",
                             "n1024 0476", "01024 n476", "0512 n988"});
    CHECK(box.sync("/") == 0);
    found = states_of_file(*box.disk, "f");
    if (synced || how == Crash::EXT4)
        CHECK_STATES(found, {"n1500"});
    else
        CHECK(found.count("empty") && found.count("01500") && !found.count("o1000"));
    CHECK(box.sync("f") == 0);
    CHECK_STATES(states_of(*box.disk), {"f 100644 n1500\n"});
}

/* The same with a new name: no file system flushes the data. */
static void test_first_rename(Crash how)
{
    Box box(how);
    box.write("t", NEW);
    box.rename("t", "f");
    States found = states_of_file(*box.disk, "f");
    CHECK(includes(found, {"none", "empty", "n1500", "01500", "n512 0988"}));
    each_state(*box.disk, [&](const Disk &disk) {
        std::string bytes;
        CHECK(how == Crash::WEAK || !disk.read("t", bytes) || !disk.read("f", bytes));
    });
    found = states_of(*box.disk);
    const std::string both = "f 100644 n1500\nt 100644 n1500\n";
    CHECK(found.count(both) == (how == Crash::WEAK));
}

static void test_names(Crash how)
{
    Box box(how);
    const bool weak = how == Crash::WEAK;
    box.write("f", OLD);
    CHECK(box.sync("f") == 0);
    if (weak)
        CHECK_STATES(states_of_file(*box.disk, "f"), {"none", "o1000"});
    else
        CHECK_STATES(states_of_file(*box.disk, "f"), {"o1000"});
    CHECK(box.sync("/") == 0);
    CHECK_STATES(states_of_file(*box.disk, "f"), {"o1000"});
    box.mkdir("d");
    box.write("d/f", NEW);
    box.sync("d/f");
    box.sync("d");
    if (weak)
        CHECK_STATES(states_of_file(*box.disk, "d/f"), {"none", "n1500"});
    else
        CHECK_STATES(states_of_file(*box.disk, "d/f"), {"n1500"});
    CHECK(box.sync("/") == 0);
    CHECK_STATES(states_of_file(*box.disk, "d/f"), {"n1500"});
    CHECK(box.disk->choices().empty());
}

static void test_prefix(Crash how)
{
    Box box(how);
    box.mkdir("a");
    box.mkdir("b");
    box.remove("a", true);
    const States ordered = {"", "a 40755 \n", "a 40755 \nb 40755 \n", "b 40755 \n"};
    CHECK_STATES(states_of(*box.disk), (ordered));
    box.mkdir("c");
    CHECK(states_of(*box.disk).count("c 40755 \n") == (how == Crash::WEAK));
    CHECK(states_of(*box.disk).count("b 40755 \nc 40755 \n") == 1);
}

/* Durable content comes back completely or is gone; it is never mixed with new data. */
static void test_truncate(Crash how)
{
    Box box(how);
    box.write("f", OLD);
    box.disk->sync();
    box.write("f", NEW);
    CHECK_STATES(states_of_file(*box.disk, "f"),
                 {"o1000", "empty", "n1500", "01500", "n512 0988", "n1024 0476",
                  "01024 n476", "0512 n988"});
    int fd = box.open("f", O_WRONLY);
    CHECK(box.files.ftruncate(fd, 700) == 0);
    box.files.close(fd);
    CHECK(states_of_file(*box.disk, "f").count("n700") == 1);
    CHECK(states_of_file(*box.disk, "f").count("n512 0188") == 1);
    CHECK(states_of_file(*box.disk, "f").count("o700") == 0);
    box.sync("f");
    CHECK_STATES(states_of_file(*box.disk, "f"), {"n700"});
}

static void test_append_and_overwrite(Crash how)
{
    Box box(how);
    box.write("f", "aa");
    box.disk->sync();
    box.write("f", "bb", O_APPEND);
    box.write("f", "cc", O_APPEND);
    CHECK_STATES(states_of_file(*box.disk, "f"),
                 {"a2", "a2 b2", "a2 b2 c2", "a2 02", "a2 04"});
    box.sync("f");
    box.write("g", std::string(1024, 'x'));
    box.disk->sync();
    box.write("g", std::string(1024, 'y'), 0);
    CHECK_STATES(states_of_file(*box.disk, "g"),
                 {"x1024", "y1024", "x512 y512", "y512 x512"});
    box.sync("g");
    int fd = box.open("g", O_WRONLY);
    CHECK(box.files.fallocate(fd, 3, 0, 1024) == 0);
    box.files.close(fd);
    CHECK(includes(states_of_file(*box.disk, "g"), {"y1024", "01024"}));
}

/* Data of a lost growth does not come back when the file grows again. */
static void test_end(Crash how)
{
    Box box(how);
    std::string bytes;
    box.write("f", "aaaa");
    box.disk->sync();
    box.write("f", "bb", O_APPEND);
    CHECK((box.disk->choices() == std::vector<unsigned>{2, 2}));
    box.disk->lose_power({0, 1}); /* the growth is lost, the block is kept */
    int fd = box.open("f", O_WRONLY);
    CHECK(box.files.ftruncate(fd, 10) == 0);
    box.files.close(fd);
    CHECK(box.disk->read("f", bytes) && digest(bytes) == "a4 06");
}

/* Directories that are moved into each other in turn are not lost. */
static void test_move_directories(Crash how)
{
    Box box(how);
    box.mkdir("a");
    box.mkdir("b");
    box.disk->sync();
    CHECK(box.rename("a", "b/a") == 0 && box.rename("b/a", "x") == 0);
    CHECK(box.rename("b", "x/b") == 0);
    each_state(*box.disk, [&](const Disk &disk) { CHECK(disk.list().size() == 2); });
}

static void test_modes(Crash how)
{
    Box box(how);
    box.write("f", "");
    box.disk->sync();
    CHECK(box.files.fchmodat(AT_FDCWD, "f", 0600) == 0);
    CHECK_STATES(states_of(*box.disk), {"f 100644 empty\n", "f 100600 empty\n"});
    box.sync("f");
    CHECK_STATES(states_of(*box.disk), {"f 100600 empty\n"});
}

/* A file in a new directory has one name, or (WEAK) is lost with the directory. */
static void test_move_to_new_directory(Crash how)
{
    Box box(how);
    box.mkdir("p");
    box.write("p/f", OLD);
    box.disk->sync();
    box.mkdir("q");
    box.mkdir("q/r");
    box.rename("p/f", "q/r/f");
    box.remove("p", true);
    auto is_lost = [&] {
        int lost = 0;
        each_state(*box.disk, [&](const Disk &disk) {
            std::string bytes;
            lost += !disk.read("p/f", bytes) && !disk.read("q/r/f", bytes);
        });
        return lost > 0;
    };
    CHECK(is_lost() == (how == Crash::WEAK));
    CHECK(box.sync("q/r") == 0 && is_lost() == (how == Crash::WEAK));
    CHECK(box.sync("q") == 0 && box.sync("/") == 0 && !is_lost());
}

/* ---- random histories ---- */

struct History {
    std::vector<std::string> names = {"a", "b", "d/a", "d/b", "e/a"};
    bool data = true, syncs = true;

    void step(Box &box, Random random) const
    {
        const std::string name = random.of(names), other = random.of(names);
        const std::string bytes(1 + random.below(900),
                                static_cast<char>('a' + random.below(26)));
        switch (random.below(13)) {
        case 0:
        case 1:
            box.mkdir(random.of(std::vector<std::string>{"d", "e", "d/b", "a"}));
            break;
        case 2:
        case 3:
            box.write(name, data ? bytes : "", O_EXCL);
            break;
        case 4:
            box.write(name, data ? bytes : "",
                      data ? random.below(2) ? O_TRUNC : 0 : O_EXCL);
            break;
        case 5:
            box.remove(name);
            break;
        case 6:
            box.remove(random.of(std::vector<std::string>{"d", "e", "d/b"}), true);
            break;
        case 7:
        case 8:
            box.rename(name, other);
            break;
        case 9:
            box.rename(random.below(2) ? "d" : "e", random.below(2) ? "e" : "d/b");
            break;
        case 10:
            box.link(name, other);
            break;
        case 11:
            box.files.fchmodat(AT_FDCWD, name.c_str(), random.below(2) ? 0600 : 0640);
            break;
        default:
            if (!syncs) break;
            box.sync(random.below(2) ? name : random.below(2) ? "d" : "/");
        }
    }
};

/* Names on ordered disks: the states are those that processes have seen since the last
 * sync. */
static void test_snapshots(Crash how, uint64_t seed)
{
    Box box(how);
    Random random(seed);
    History history;
    history.data = false;
    history.syncs = seed % 2;
    std::vector<std::string> seen = {state_of(*box.disk)};
    for (int i = 0; i < 25; i++) {
        history.step(box, random.fork());
        seen.push_back(state_of(*box.disk));
    }
    const States states = states_of(*box.disk), all(seen.begin(), seen.end());
    CHECK(history.syncs ? includes(all, states) : states == all);
    CHECK(states.count(seen.back()) == 1);
}

/* The same history on two disks: all states of the stronger disk are states of the
 * other. */
static void test_inclusion(Crash strong, Crash loose, uint64_t seed)
{
    Box one(strong), two(loose);
    Random random(seed);
    const History history;
    one.mkdir("d");
    two.mkdir("d");
    for (int i = 0; i < 9; i++) {
        Random step = random.fork();
        history.step(one, step);
        history.step(two, step);
        if (i == 3 && random.chance(0.8)) one.disk->sync();
        if (i == 3 && one.disk->choices().empty()) two.disk->sync();
        if (count_states(*one.disk) > 3000 || count_states(*two.disk) > 3000) return;
        CHECK(state_of(*one.disk) == state_of(*two.disk));
        CHECK(includes(states_of(*two.disk), states_of(*one.disk)));
    }
}

/* Durable files that are only moved, also with their directories, are not lost. */
static void test_moves(Crash how, uint64_t seed)
{
    Box box(how);
    Random random(seed);
    std::vector<std::string> directories = {"d", "e", "g", "d/g", "d/d", "e/d", "g/e"};
    std::vector<std::string> files;
    for (const std::string &directory : directories)
        for (const char *name : {"/x", "/y", "/z"})
            files.push_back(directory + name);
    for (const char *directory : {"d", "e"})
        box.mkdir(directory);
    for (size_t i = 0; i < 4; i++)
        box.write(files[i], std::string(1, static_cast<char>('A' + i)));
    box.disk->sync();
    for (int i = 0; i < 30; i++) {
        const std::string from = random.of(files), to = random.of(files);
        const std::string directory = random.of(directories),
                          other = random.of(directories);
        switch (random.below(7)) {
        case 0: /* WEAK: a new directory may be lost with files that were moved there */
            if (how != Crash::WEAK) box.mkdir(directory);
            break;
        case 1:
            box.remove(directory, true);
            break;
        case 2:
            box.rename(directory, other);
            break;
        case 3:
            box.sync(directory);
            break;
        default: /* never over another file */
            box.files.renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                                RENAME_NOREPLACE);
        }
    }
    for (int i = 0; i < 40; i++) {
        auto copy = box.disk->copy();
        copy->lose_power(random);
        std::string all;
        for (const Disk::Entry &entry : copy->list()) {
            std::string bytes;
            if (copy->read(entry.path, bytes)) all += bytes;
        }
        for (char file = 'A'; file < 'E'; file++)
            CHECK(all.find(file) != std::string::npos);
    }
}

/* A file that is synced with all directories above it survives. */
static void test_synced(Crash how, uint64_t seed)
{
    Box box(how);
    Random random(seed);
    const History history;
    box.mkdir("d");
    for (int i = 0; i < 15; i++)
        history.step(box, random.fork());
    const std::string name = random.of(history.names),
                      bytes = "synced" + std::to_string(seed);
    if (box.write(name, bytes) != 0) return;
    CHECK(box.sync(name) == 0);
    if (name.size() > 1) CHECK(box.sync(name.substr(0, 1)) == 0);
    CHECK(box.sync("/") == 0);
    for (int i = 0; i < 5; i++) {
        box.write("z" + std::to_string(i), bytes);
        box.mkdir("m" + std::to_string(i));
    }
    for (int i = 0; i < 20; i++) {
        std::string found;
        auto copy = box.disk->copy();
        copy->lose_power(random);
        CHECK(copy->read(name, found) && found == bytes);
    }
}

static uint64_t links_below(const Disk &disk,
                            std::map<std::string, uint64_t> &directories)
{
    uint64_t entries = 0;
    for (const Disk::Entry &entry : disk.list()) {
        const size_t slash = entry.path.rfind('/');
        if (S_ISDIR(entry.mode)) {
            directories[entry.path] += 2;
            directories[slash == std::string::npos ? "" : entry.path.substr(0, slash)]++;
        }
        entries++;
    }
    return entries;
}

/* After a loss of power: counts are right, all is durable, and the disk works. */
static void test_consistent(Crash how, uint64_t seed)
{
    Box box(how);
    Random random(seed);
    const History history;
    for (int i = 0; i < 40; i++)
        history.step(box, random.fork());
    const std::string before = state_of(*box.disk);
    auto copy = box.disk->copy();
    CHECK(state_of(*copy) == before && copy->used() == box.disk->used());
    CHECK(copy->choices() == box.disk->choices());
    Random same = random;
    copy->lose_power(random);
    CHECK(state_of(*box.disk) == before);
    box.disk->lose_power(same);
    CHECK(state_of(*box.disk) == state_of(*copy) && copy->used() == box.disk->used());
    CHECK(box.disk->choices().empty());
    std::map<std::string, uint64_t> directories;
    links_below(*box.disk, directories);
    for (const auto &[path, links] : directories) {
        struct stat st;
        CHECK(box.files.fstatat(AT_FDCWD, ("/" + path).c_str(), &st, 0) == 0);
        CHECK(st.st_nlink == links + (path.empty() ? 2 : 0));
    }
    for (int i = 0; i < 40; i++)
        history.step(box, random.fork());
    box.disk->erase();
    CHECK(box.disk->used() == 4096 && box.disk->list().empty());
}

/* ---- other properties ---- */

static void test_space()
{
    Box box(Crash::EXT4, 10 * 4096);
    const std::string big(8 * 4096, 'b'), more(2 * 4096, 'm');
    CHECK(box.write("f", big) == 0);
    CHECK(box.disk->used() == 10 * 4096);
    CHECK(box.mkdir("d") == -ENOSPC && box.open("g", O_CREAT | O_RDWR) == -ENOSPC);
    CHECK(box.write("f", "x", O_APPEND) == -ENOSPC);
    CHECK(box.write("f", big, 0) == 0);
    int fd = box.open("f", O_RDWR);
    CHECK(box.remove("f") == 0 && box.disk->used() == 10 * 4096);
    CHECK(box.files.fallocate(fd, 0, 0, 9 * 4096) == -ENOSPC);
    box.files.close(fd);
    CHECK(box.disk->used() == 4096);
    fd = box.open("f", O_CREAT | O_RDWR);
    CHECK(box.files.pwrite(fd, big.data(), big.size(), 2 * 4096) == 8 * 4096);
    CHECK(box.files.pwrite(fd, more.data(), more.size(), 0) == -ENOSPC);
    CHECK(box.files.fallocate(fd, 3, 2 * 4096, 4096) == 0);
    CHECK(box.files.pwrite(fd, more.data(), more.size(), 0) == 4096);
    CHECK(box.files.ftruncate(fd, 0) == 0 && box.disk->used() == 2 * 4096);
    CHECK(box.files.fallocate(fd, 0, 0, 8 * 4096) == 0);
    CHECK(box.disk->used() == 10 * 4096);
    box.files.close(fd);
}

/* Damage is durable and changes nothing else. */
static void test_damage(Crash how)
{
    Box box(how);
    std::string bytes;
    box.write("f", OLD);
    box.mkdir("d");
    box.disk->sync();
    box.write("t", NEW);
    CHECK(box.disk->write("f", "damaged") && box.disk->write("d/new", "created"));
    CHECK(!box.disk->write("d", "x") && !box.disk->write("none/x", "x"));
    CHECK(!box.disk->remove("none") && box.disk->remove("t"));
    CHECK_STATES(states_of(*box.disk), {"d 40755 \nd/new 100644 " + digest("created") +
                                        "\nf 100644 " + digest("damaged") + "\n"});
    CHECK(box.disk->remove("d"));
    CHECK(states_of_file(*box.disk, "d/new") == States{"none"});
}

static void test_descriptors()
{
    Box box(Crash::EXT4);
    char buf[8] = "";
    box.mkdir("d");
    box.write("d/f", "data");
    int fd = box.open("d/f", O_RDONLY);
    CHECK(fd == Files::FIRST && box.files.owns(fd) && !box.files.owns(fd + 1));
    CHECK(box.files.path_of(fd) == "/d/f");
    const std::string magic = "/proc/self/fd/" + std::to_string(fd);
    CHECK(box.files.fchmodat(AT_FDCWD, magic.c_str(), 0600) == 0);
    CHECK(box.rename("d", "e") == 0 && box.files.path_of(fd) == "/e/f");
    CHECK(box.remove("e/f") == 0 && box.files.pread(fd, buf, 4, 0) == 4);
    CHECK(memcmp(buf, "data", 4) == 0);
    int writer = box.open(magic, O_RDWR);
    CHECK(writer == fd + 1 && box.files.lock(writer, F_WRLCK) == 0);
    CHECK(box.files.lock(fd, F_RDLCK) == -EAGAIN &&
          box.files.lock(fd, F_WRLCK) == -EBADF);
    CHECK(box.files.lock_test(fd, F_RDLCK) == F_WRLCK);
    int second = box.files.dup(writer);
    box.files.close(writer);
    CHECK(box.files.lock(fd, F_RDLCK) == -EAGAIN);
    box.files.close(second);
    CHECK(box.files.lock(fd, F_RDLCK) == 0);
}

static void test_links()
{
    Box box(Crash::EXT4);
    std::string last = "f";
    box.write(last, "data");
    for (int i = 1; i <= 41; i++) {
        const std::string next = "l" + std::to_string(i);
        CHECK(box.files.symlinkat(last.c_str(), AT_FDCWD, next.c_str()) == 0);
        last = next;
    }
    CHECK(box.open("l40", O_RDONLY) >= 0 && box.open("l41", O_RDONLY) == -ELOOP);
}

/* Many unsynced changes: the journal stays bounded, and old ones become durable. */
static void test_long_journal(Crash how)
{
    Box box(how);
    for (int i = 0; i < 10000; i++)
        box.mkdir("d" + std::to_string(i));
    Random random(3);
    box.disk->lose_power(random);
    CHECK(box.disk->list().size() >= 10000 - Disk::JOURNAL_LIMIT);
    for (int i = 0; i < 10000; i++)
        box.write("log", "line\n", O_APPEND);
    CHECK(box.disk->choices().size() < 20);
    std::string bytes;
    CHECK(box.disk->read("log", bytes) && bytes.size() == 50000);
}

/* ---- speed ---- */

static void measure_speed()
{
    Box box(Crash::EXT4);
    char buf[100] = "text";
    box.mkdir("d");
    box.mkdir("d/e");
    box.mkdir("m");
    box.mounts["/m"] = Box(Crash::XFS).disk;
    int dir = box.open("d", O_RDONLY), fd = -1;
    clock_t start = clock();
    auto stop = [&](const char *what) {
        printf("%s: %.2f s\n", what,
               static_cast<double>(clock() - start) / CLOCKS_PER_SEC);
        start = clock();
    };
    for (int i = 0; i < 333333; i++) {
        fd = box.files.openat(dir, "e/file", O_WRONLY | O_CREAT, 0644);
        box.files.pwrite(fd, buf, sizeof buf, i % 1000 * 100);
        box.files.close(fd);
    }
    stop("a million calls of openat, pwrite, close");
    for (int i = 0; i < 10000; i++) {
        fd = box.files.openat(dir, "t", O_WRONLY | O_CREAT, 0644);
        box.files.pwrite(fd, buf, sizeof buf, 0);
        box.files.fsync(fd);
        box.files.close(fd);
        box.rename("d/t", "d/f" + std::to_string(i % 1000));
        box.files.fsync(dir);
    }
    stop("10,000 durable replacements");
    for (int i = 0; i < 100; i++)
        box.disk->copy();
    stop("100 copies of a disk with 1,000 files");
    std::vector<char> big(1 << 20, 'x');
    fd = box.open("big", O_WRONLY | O_CREAT);
    for (int i = 0; i < 512; i++)
        box.files.pwrite(fd, big.data(), big.size(), (i % 64) << 20);
    stop("512 MiB in writes of 1 MiB");
}

int main(int argc, char **argv)
{
    const uint64_t seeds = argc > 1 ? strtoull(argv[1], nullptr, 10) : 500;
    if (argc > 1 && strcmp(argv[1], "speed") == 0) {
        measure_speed();
        return 0;
    }
    test_space();
    test_descriptors();
    test_links();
    for (Crash how : KINDS) {
        test_replace(how, true);
        test_replace(how, false);
        test_first_rename(how);
        test_names(how);
        test_prefix(how);
        test_truncate(how);
        test_append_and_overwrite(how);
        test_end(how);
        test_move_directories(how);
        test_modes(how);
        test_move_to_new_directory(how);
        test_damage(how);
        test_long_journal(how);
    }
    for (uint64_t seed = 0; seed < seeds && failures < 20; seed++) {
        test_snapshots(Crash::EXT4, seed);
        test_snapshots(Crash::XFS, seed);
        test_inclusion(Crash::EXT4, Crash::XFS, seed);
        test_inclusion(Crash::EXT4, Crash::WEAK, seed);
        test_inclusion(Crash::XFS, Crash::WEAK, seed);
        for (Crash how : KINDS) {
            test_moves(how, seed);
            test_synced(how, seed);
            test_consistent(how, seed);
        }
    }
    printf("%lu seeds, %d failed checks\n", static_cast<unsigned long>(seeds), failures);
    return failures != 0;
}
