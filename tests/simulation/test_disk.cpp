/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that simulated disks behave like Linux: random calls of two processes on a
 * simulated disk and on a tmpfs must give the same results: return value, errno, bytes,
 * fields of stat, listings.
 *
 * Needs root and mount namespaces, for a tmpfs of its own and for users; exits with 77 if
 * these are missing. The tmpfs ends with the process.
 *
 * g++ -std=c++17 -Wall -Wextra -O1 -g test_disk.cpp disk*.cpp files*.cpp -o test_disk
 * ./test_disk [seeds] [first seed] [calls per seed] */
#include "test_disk_real.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sim;

/* ---- calls ---- */

static constexpr int SLOTS = 4;       /* descriptors of a process */
static constexpr int DIRECTORIES = 2; /* descriptors that are mostly directories */

struct Call {
    int kind;
    size_t process;
    int slot, other;    /* descriptors */
    int dir, other_dir; /* a slot, or -1: AT_FDCWD */
    std::string path, other_path;
    int flags;
    mode_t mode;
    off_t offset, other_offset;
    size_t size;
    char byte;
    uid_t owner;
};

enum Kind {
    OPEN,
    CLOSE,
    DUP,
    PREAD,
    PWRITE,
    READ_,
    WRITE_,
    SEEK,
    TRUNCATE,
    ALLOCATE,
    COPY,
    FSYNC,
    FCHMOD,
    CHMOD,
    CHOWN,
    STAT,
    STATAT,
    ACCESS,
    MKDIR,
    UNLINK,
    RMDIR,
    RENAME,
    LINK,
    SYMLINK,
    READLINK,
    UTIMES,
    MKFIFO,
    REALPATH,
    LIST,
    LOCK,
    LOCK_TEST,
    KINDS
};

static const char *const KIND_NAMES[] = {
    "open",     "close",  "dup",    "pread",    "pwrite", "read",   "write",    "lseek",
    "truncate", "alloc",  "copy",   "fsync",    "fchmod", "chmod",  "chown",    "stat",
    "statat",   "access", "mkdir",  "unlink",   "rmdir",  "rename", "link",     "symlink",
    "readlink", "utimes", "mkfifo", "realpath", "list",   "lock",   "lock_test"};

/* Weights of the kinds. */
static const std::vector<int> &draws()
{
    static const int weights[KINDS] = {70, 3, 2,  4, 8, 4,  6, 5, 5, 5, 4, 1, 2, 6, 3, 3,
                                       8,  4, 10, 8, 5, 14, 7, 7, 4, 3, 2, 4, 6, 3, 2};
    static std::vector<int> all;
    if (!all.empty()) return all;
    for (int kind = 0; kind < KINDS; kind++)
        all.insert(all.end(), static_cast<size_t>(weights[kind]), kind);
    return all;
}

static std::string draw_path(Random &random, bool mounted)
{
    if (random.chance(0.005)) return "";
    if (random.chance(0.005)) return std::string(random.below(2) ? 256 : 255, 'x');
    if (random.chance(0.002)) return std::string(4000 + random.below(200), '/') + "a";
    std::string path = random.chance(0.15) ? "/" : "";
    if (mounted && random.chance(0.2)) path += "m/";
    const size_t names = 1 + (random.chance(0.3) ? 1 : 0) + (random.chance(0.15) ? 1 : 0);
    for (size_t i = 0; i < names; i++) {
        const std::vector<std::string> usual = {"a", "b", "c"}, dots = {".", ".."};
        if (i) path += random.chance(0.05) ? "//" : "/";
        path += random.of(random.chance(0.07) ? dots : usual);
    }
    if (random.chance(0.07)) path += "/";
    return path;
}

static int draw_flags(Random &random)
{
    const std::vector<int> access = {O_RDONLY, O_RDONLY, O_WRONLY, O_RDWR, O_RDWR};
    int flags = random.of(access) | O_NONBLOCK | O_CLOEXEC;
    if (random.chance(0.6)) flags |= O_CREAT;
    if (random.chance(0.2)) flags |= O_EXCL & (flags & O_CREAT ? -1 : 0);
    if (random.chance(0.2)) flags |= O_TRUNC;
    if (random.chance(0.15)) flags |= O_APPEND;
    if (random.chance(0.25)) flags |= O_NOFOLLOW;
    if (random.chance(0.1)) flags = (flags & ~O_CREAT) | O_DIRECTORY;
    if (random.chance(0.1)) flags |= O_PATH;
    if (random.chance(0.01)) flags |= O_CREAT;
    return flags;
}

static Call draw_call(Random &random, bool mounted)
{
    const std::vector<mode_t> modes = {0777,  0755,  0700,  0666, 0644,  0600,
                                       0555,  0444,  0,     0711, 01777, 02775,
                                       04755, 06777, 02644, 0070, 0007};
    const std::vector<size_t> sizes = {0, 1, 5, 512, 4096, 5000, 9000};
    const std::vector<off_t> offsets = {0, 0, 1, 512, 4095, 4096, 8192, 10000, 20000, -1};
    auto dir = [&] {
        if (random.chance(0.02)) return static_cast<int>(random.below(SLOTS));
        return random.chance(0.3) ? static_cast<int>(random.below(DIRECTORIES)) : -1;
    };
    auto slot = [&] {
        const bool directory = random.chance(0.1);
        return static_cast<int>(directory ? random.below(DIRECTORIES)
                                          : random.between(DIRECTORIES, SLOTS - 1));
    };
    Call call = {};
    call.kind = random.of(draws());
    call.process = random.below(2);
    call.slot = slot();
    call.other = slot();
    call.dir = dir();
    call.other_dir = dir();
    call.path = draw_path(random, mounted);
    call.other_path = draw_path(random, mounted);
    call.flags =
        call.kind == OPEN ? draw_flags(random) : static_cast<int>(random.below(64));
    if (call.kind == OPEN && random.chance(0.25)) {
        call.slot = static_cast<int>(random.below(DIRECTORIES));
        call.flags =
            O_RDONLY | O_NONBLOCK | O_DIRECTORY | (random.chance(0.3) ? O_PATH : 0);
    }
    call.mode = random.of(modes);
    call.offset = random.of(offsets);
    call.other_offset = random.of(offsets);
    call.size = random.of(sizes);
    call.byte = static_cast<char>('a' + random.below(26));
    call.owner = static_cast<uid_t>(random.below(4) ? 1000 + random.below(3) : 0);
    return call;
}

/* ---- execution on one side ---- */

static std::string time_text(const struct timespec &time)
{
    return time.tv_sec < 1000000 ? std::to_string(time.tv_sec) : "now";
}

static std::string stat_text(const struct stat &st)
{
    char text[200];
    snprintf(text, sizeof text, " mode %o size %ld links %lu owner %u:%u blocks %ld ",
             st.st_mode, S_ISDIR(st.st_mode) ? 0L : static_cast<long>(st.st_size),
             static_cast<unsigned long>(st.st_nlink), st.st_uid, st.st_gid,
             S_ISREG(st.st_mode) ? static_cast<long>(st.st_blocks) : 0L);
    return text + time_text(st.st_atim) + " " + time_text(st.st_mtim);
}

template <typename System> struct Side {
    std::vector<System *> processes;
    /* Either blocks are allocated without data, or holes are looked up: the file system
     * determines whether such a block becomes a hole after a part of it was punched. */
    bool allocates;
    int slots[2][SLOTS] = {{-1, -1, -1, -1}, {-1, -1, -1, -1}};

    int dir(const Call &c, int slot) const
    {
        return slot < 0 ? AT_FDCWD : slots[c.process][slot];
    }

    std::string put(const Call &c, int fd)
    {
        int &slot = slots[c.process][c.slot];
        System &system = *processes[c.process];
        struct stat st;
        if (fd < 0) return std::to_string(fd);
        if (slot >= 0) system.close(slot);
        slot = fd;
        if (system.fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode)) { /* pipes hold no data */
            system.close(fd);
            slot = -1;
        }
        return "fd" + stat_text(st);
    }

    std::string on_data(const Call &c);
    std::string on_descriptor(const Call &c);
    std::string on_inode(const Call &c);
    std::string on_name(const Call &c);
    std::string list(const Call &c);
    std::string copy(const Call &c);
    std::string tree(System &root, const std::string &path);
    std::string file(System &root, const std::string &path);
};

template <typename System> std::string Side<System>::on_data(const Call &c)
{
    System &system = *processes[c.process];
    const int fd = slots[c.process][c.slot];
    std::string bytes(c.size, c.byte);
    struct stat st = {};
    switch (c.kind) {
    case PREAD:
    case READ_: {
        ssize_t rc = c.kind == READ_ ? system.read(fd, &bytes[0], c.size)
                                     : system.pread(fd, &bytes[0], c.size, c.offset);
        return std::to_string(rc) + " " +
               bytes.substr(0, rc > 0 ? static_cast<size_t>(rc) : 0);
    }
    case PWRITE:
        return std::to_string(system.pwrite(fd, bytes.data(), c.size, c.offset));
    case WRITE_:
        return std::to_string(system.write(fd, bytes.data(), c.size));
    case SEEK: {
        const int whences[] = {SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE, 77};
        system.fstat(fd, &st);
        if (S_ISDIR(st.st_mode)) return "";
        if (allocates && (c.flags % 6 == 3 || c.flags % 6 == 4)) return "";
        return std::to_string(system.lseek(fd, c.offset, whences[c.flags % 6]));
    }
    case TRUNCATE:
        return std::to_string(system.ftruncate(fd, c.offset));
    case ALLOCATE: {
        const int modes[] = {0, FALLOC_FL_KEEP_SIZE, 2, 3, 3, 3};
        const int mode = modes[allocates ? c.flags % 6 : 2 + c.flags % 4];
        return std::to_string(
            system.fallocate(fd, mode, c.offset, static_cast<off_t>(c.size)));
    }
    default:
        return copy(c);
    }
}

/* The kernel determines whether files can be copied to other file systems. */
template <typename System> std::string Side<System>::copy(const Call &c)
{
    System &system = *processes[c.process];
    const int in = slots[c.process][c.slot], out = slots[c.process][c.other];
    off_t from = c.offset, to = c.other_offset;
    struct stat a = {}, b = {};
    system.fstat(in, &a);
    system.fstat(out, &b);
    if (a.st_dev != b.st_dev) return "";
    ssize_t rc =
        system.copy_file_range(in, c.flags & 1 ? &from : nullptr, out,
                               c.flags & 2 ? &to : nullptr, c.size, c.flags >> 5);
    return std::to_string(rc) + " " + std::to_string(from) + " " + std::to_string(to);
}

template <typename System> std::string Side<System>::list(const Call &c)
{
    std::vector<Files::Name> names;
    std::string text =
        std::to_string(processes[c.process]->list(slots[c.process][c.slot], names));
    std::sort(names.begin(), names.end(),
              [](const auto &a, const auto &b) { return a.name < b.name; });
    for (const auto &name : names)
        text += " " + name.name + ":" + std::to_string(name.type);
    return text;
}

template <typename System> std::string Side<System>::on_descriptor(const Call &c)
{
    System &system = *processes[c.process];
    int &fd = slots[c.process][c.slot];
    const short types[] = {F_RDLCK, F_WRLCK, F_UNLCK};
    struct stat st;
    int rc = c.kind == CLOSE ? system.close(fd) : 0;
    switch (c.kind) {
    case CLOSE:
        fd = -1;
        return std::to_string(rc);
    case DUP:
        return put(c, system.dup(slots[c.process][c.other]));
    case FSYNC:
        return std::to_string(system.fsync(fd));
    case FCHMOD:
        return std::to_string(system.fchmod(fd, c.mode));
    case STAT:
        rc = system.fstat(fd, &st);
        return std::to_string(rc) + (rc ? "" : stat_text(st));
    case LIST:
        return list(c);
    case LOCK:
        return std::to_string(system.lock(fd, types[c.flags % 3]));
    case LOCK_TEST:
        return std::to_string(system.lock_test(fd, types[c.flags % 2]));
    default:
        return on_data(c);
    }
}

template <typename System> std::string Side<System>::on_inode(const Call &c)
{
    System &system = *processes[c.process];
    const int at = dir(c, c.dir);
    const char *path = c.path.c_str();
    const int nofollow = c.flags & 1 ? AT_SYMLINK_NOFOLLOW : 0;
    const int empty = c.flags & 2 ? AT_EMPTY_PATH : 0;
    const gid_t owners = c.flags & 4 ? static_cast<gid_t>(-1) : c.owner;
    const uid_t owner = c.flags & 8 ? static_cast<uid_t>(-1) : c.owner;
    const struct timespec times[2] = {{c.offset + 1, c.flags & 4 ? UTIME_NOW : 0},
                                      {c.offset + 2, c.flags & 24 ? UTIME_NOW : 0}};
    struct stat st;
    std::string resolved;
    int rc;
    switch (c.kind) {
    case OPEN:
        return put(c, system.openat(at, path, c.flags, c.mode));
    case CHMOD:
        return std::to_string(system.fchmodat(at, path, c.mode));
    case CHOWN:
        return std::to_string(system.fchownat(at, path, owner, owners, nofollow | empty));
    case STATAT:
        rc = system.fstatat(at, path, &st, nofollow | empty);
        return std::to_string(rc) + (rc ? "" : stat_text(st));
    case ACCESS:
        return std::to_string(system.faccessat(at, path, c.flags & 7));
    case UTIMES:
        return std::to_string(system.utimensat(at, c.flags & 32 ? path : nullptr,
                                               c.flags & 16 ? times : nullptr,
                                               c.flags & 32 ? nofollow : 0));
    case REALPATH: /* the C library drops dots and slashes first */
        if (c.path.size() >= PATH_MAX || c.path.find('.') != std::string::npos) return "";
        rc = system.realpath(path, resolved);
        break;
    default:
        return on_descriptor(c);
    }
    return std::to_string(rc) + " " + resolved;
}

template <typename System> std::string Side<System>::on_name(const Call &c)
{
    System &system = *processes[c.process];
    const int at = dir(c, c.dir), other = dir(c, c.other_dir);
    const char *path = c.path.c_str(), *second = c.other_path.c_str();
    const unsigned once = c.flags % 4 == 0 ? RENAME_NOREPLACE : 0u;
    char buf[64];
    ssize_t size;
    switch (c.kind) {
    case MKDIR:
        return std::to_string(system.mkdirat(at, path, c.mode | 0700));
    case UNLINK:
        return std::to_string(system.unlinkat(at, path, 0));
    case RMDIR:
        return std::to_string(system.unlinkat(at, path, AT_REMOVEDIR));
    case RENAME:
        return std::to_string(system.renameat2(at, path, other, second, once));
    case LINK:
        return std::to_string(
            system.linkat(at, path, other, second, c.flags & 1 ? AT_SYMLINK_FOLLOW : 0));
    case SYMLINK:
        return std::to_string(system.symlinkat(second, at, path));
    case MKFIFO:
        return std::to_string(system.mkfifoat(at, path, c.mode));
    case READLINK:
        size = system.readlinkat(at, path, buf, std::min<size_t>(c.size, sizeof buf));
        return std::to_string(size) +
               std::string(buf, size > 0 ? static_cast<size_t>(size) : 0);
    default:
        return on_inode(c);
    }
}

template <typename System>
std::string Side<System>::file(System &root, const std::string &path)
{
    struct stat st = {};
    root.fstatat(AT_FDCWD, path.c_str(), &st, AT_SYMLINK_NOFOLLOW);
    std::string text = path + stat_text(st);
    if (S_ISREG(st.st_mode)) {
        int fd = root.openat(AT_FDCWD, path.c_str(), O_RDONLY, 0);
        std::string bytes(static_cast<size_t>(st.st_size), 0);
        root.pread(fd, &bytes[0], bytes.size(), 0);
        root.close(fd);
        text += " " + bytes;
    }
    return text + "\n" + (S_ISDIR(st.st_mode) ? tree(root, path + "/") : "");
}

template <typename System>
std::string Side<System>::tree(System &root, const std::string &path)
{
    std::vector<Files::Name> names;
    std::string text;
    int fd = root.openat(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY, 0);
    root.list(fd, names);
    root.close(fd);
    std::sort(names.begin(), names.end(),
              [](const auto &a, const auto &b) { return a.name < b.name; });
    for (const auto &name : names)
        if (name.name != "." && name.name != "..") text += file(root, path + name.name);
    return text;
}

/* ---- one seed ---- */

/* In a sticky directory, newer kernels check the owner of a link before O_NOFOLLOW. The C
 * library drops dots, also in links, without checking access. */
static bool is_tolerated(const Call &c, const std::string &real,
                         const std::string &simulated)
{
    const int flags = O_CREAT | O_NOFOLLOW;
    if (c.kind == REALPATH && simulated == std::to_string(-EACCES) + " ") return true;
    return c.kind == OPEN && (c.flags & flags) == flags &&
           real == std::to_string(-EACCES) && simulated == std::to_string(-ELOOP);
}

static const char BASE[] = "/dev/shm";
static bool links_protected, trace; /* DISK_TRACE=1: prints all calls */

static std::string printable(std::string text)
{
    for (char &c : text)
        if (c == 0) c = '0';
    return text.size() > 300 ? text.substr(0, 300) + "..." : text;
}

static std::string describe(const Call &c, const std::string &real,
                            const std::string &simulated)
{
    char text[2000];
    snprintf(text, sizeof text,
             "%s process %zu slot %d %d dir %d %d path '%.60s' '%.60s' flags %#o mode %o "
             "offset %ld %ld size %zu owner %u\n  real      %s\n  simulated %s\n",
             KIND_NAMES[c.kind], c.process, c.slot, c.other, c.dir, c.other_dir,
             c.path.c_str(), c.other_path.c_str(), c.flags, c.mode,
             static_cast<long>(c.offset), static_cast<long>(c.other_offset), c.size,
             c.owner, printable(real).c_str(), printable(simulated).c_str());
    return text;
}

static int fail(uint64_t seed, int at, const std::string &call)
{
    printf("seed %lu call %d: %s", static_cast<unsigned long>(seed), at, call.c_str());
    return 1;
}

struct Setup {
    uid_t users[2];
    gid_t groups[2];
    mode_t umasks[2], root_mode;
    bool mounted, allocates;
};

static Setup draw_setup(Random &random)
{
    Setup setup = {};
    for (int i = 0; i < 2; i++) {
        setup.users[i] = static_cast<uid_t>(random.below(4) ? 1001 + random.below(2) : 0);
        setup.groups[i] = static_cast<gid_t>(1001 + random.below(2));
        setup.umasks[i] = random.of(std::vector<mode_t>{022, 0, 077, 027});
    }
    setup.root_mode = random.of(std::vector<mode_t>{0777, 0777, 01777, 02777});
    setup.mounted = random.chance(0.3);
    setup.allocates = random.chance(0.5);
    return setup;
}

template <typename System> static void prepare(System &root, const Setup &setup)
{
    if (setup.mounted) root.fchmodat(AT_FDCWD, "/m", setup.root_mode);
    root.fchmodat(AT_FDCWD, "/", setup.root_mode);
}

static int compare(uint64_t seed, int calls, Random random, const Setup &setup)
{
    auto constant_clock = [] { return 1.7e9; };
    auto disk = std::make_shared<Disk>(1, 1 << 30, constant_clock);
    auto second = std::make_shared<Disk>(2, 1 << 30, constant_clock);
    Mounts mounts = {{"/", disk}};
    Files root(&mounts, 0, 0, random.fork());
    root.mkdirat(AT_FDCWD, "/m", 0755);
    if (setup.mounted) mounts["/m"] = second;
    Files one(&mounts, setup.users[0], setup.groups[0], random.fork());
    Files two(&mounts, setup.users[1], setup.groups[1], random.fork());
    RealFiles real_root(0, 0), real_one(setup.users[0], setup.groups[0]),
        real_two(setup.users[1], setup.groups[1]);
    one.umask = real_one.umask = setup.umasks[0];
    two.umask = real_two.umask = setup.umasks[1];
    Side<Files> simulated = {{&one, &two}, setup.allocates};
    Side<RealFiles> real = {{&real_one, &real_two}, setup.allocates};
    prepare(root, setup);
    prepare(real_root, setup);
    for (int i = 0; i < calls; i++) {
        Call call = draw_call(random, setup.mounted);
        if (call.kind == LINK && !links_protected) continue;
        const std::string there = real.on_name(call), here = simulated.on_name(call);
        if (trace) printf("%d: %s", i, describe(call, there, here).c_str());
        if (there != here && !is_tolerated(call, there, here))
            return fail(seed, i, describe(call, there, here));
    }
    const std::string there = real.tree(real_root, "/"), here = simulated.tree(root, "/");
    if (there == here) return 0;
    size_t at = 0;
    while (there[at] == here[at])
        at++;
    const size_t from = at < 150 ? 0 : at - 150;
    printf("seed %lu: other files at the end, byte %zu\nreal:\n%s\nsimulated:\n%s\n",
           static_cast<unsigned long>(seed), at, printable(there.substr(from)).c_str(),
           printable(here.substr(from)).c_str());
    return 1;
}

/* Runs a seed in its own root directory and file system. */
static int run_seed(uint64_t seed, int calls)
{
    Random random(seed);
    const Setup setup = draw_setup(random);
    if (mount("none", BASE, "tmpfs", MS_NOATIME, "size=1g,mode=755,huge=never") != 0 ||
        chroot(BASE) != 0 || chdir("/") != 0 || mkdir("/m", 0755) != 0 ||
        (setup.mounted &&
         mount("none", "/m", "tmpfs", MS_NOATIME, "size=1g,huge=never") != 0)) {
        perror("tmpfs");
        return 1;
    }
    return compare(seed, calls, random, setup);
}

static int run_seed_in_child(uint64_t seed, int calls)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int rc = unshare(CLONE_NEWNS) != 0 ||
                 mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                 setgroups(0, nullptr) != 0;
        rc = rc ? 1 : run_seed(seed, calls);
        fflush(stdout);
        _exit(rc);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) return 1;
    return status != 0;
}

static bool can_mount()
{
    pid_t child = fork();
    int status = 1;
    if (child == 0)
        _exit(geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
              mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0);
    return waitpid(child, &status, 0) > 0 && status == 0;
}

int main(int argc, char **argv)
{
    const uint64_t seeds = argc > 1 ? strtoull(argv[1], nullptr, 10) : 2000;
    const uint64_t first = argc > 2 ? strtoull(argv[2], nullptr, 10) : 0;
    const int calls = argc > 3 ? atoi(argv[3]) : 300;
    int failed = 0;
    trace = getenv("DISK_TRACE") != nullptr;
    char protection = '0';
    if (!can_mount()) {
        printf("skipped: needs root and mount namespaces\n");
        return 77;
    }
    if (FILE *file = fopen("/proc/sys/fs/protected_hardlinks", "r")) {
        links_protected = fread(&protection, 1, 1, file) == 1 && protection == '1';
        fclose(file);
    }
    for (uint64_t seed = first; seed < first + seeds && failed < 20; seed++)
        failed += run_seed_in_child(seed, calls);
    printf("%lu seeds, %d failed\n", static_cast<unsigned long>(seeds), failed);
    return failed != 0;
}
