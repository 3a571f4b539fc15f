/* SPDX-License-Identifier: BSD-3-Clause */
/* faults.so, for LD_PRELOAD: counts the calls of a process on files below a directory,
 * and makes the n-th such call the last one, or makes it fail.
 *
 *   FAULTS_BELOW=/a:/b     only files in these directories count
 *   FAULTS_PROGRAM=name    only in programs of that name; others are not affected
 *   FAULTS_RANK=r          only in the process of this rank
 *   FAULTS_AT=n            from 1; 0: only counts
 *   FAULTS_HOW=kill        SIGKILL before the call
 *              torn        a write performs half of its bytes before SIGKILL
 *              stop        SIGSTOP before the call, without a SIGCONT
 *              hang        the call never returns; other threads continue
 *              slow        a call that moves bytes, removes a name or renames takes
 *                          FAULTS_NAP milliseconds more
 *              short       a write, copy or read performs half of its bytes, and returns
 *                          that number
 *              EIO ...     the call fails with EIO, ENOSPC, EDQUOT, ENOMEM, EMFILE, EINTR
 *                          or EACCES; only calls count that can fail so (a full disk
 *                          still removes files)
 *              power       the file systems of FAULTS_DISKS lose power before the call, a
 *                          sync or a rename, and the process is killed; from then on all
 *                          accesses get EIO, and after the next mount they have what was
 *                          synced. Needs ext4 or xfs, and root
 *              journal     the same, but names and sizes were still written to the disk,
 *                          as a journal does now and then, unlike data that was not
 *                          synced
 *   FAULTS_DISKS=/m:/n     mount points of these file systems
 *   FAULTS_STAYS=1         the fault persists: a full disk stays full
 *   FAULTS_ONCE=file       only in the first process that gets there; it makes file
 *   FAULTS_READING=1       calls that only read count, too
 *   FAULTS_MARK=file       is made when the fault happens
 *   FAULTS_LOG=file        gets a line "n time call path" for each call that counts, in
 *                          file.<rank>; times are of the same clock in all processes, in
 *                          nanoseconds
 *
 * A close that fails closes the descriptor nevertheless, as on Linux. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { GO, FAIL, HALF, HALF_AND_DIE };

static const char *below, *how, *once, *mark, *disks;
static char log_path[4200]; /* "": none */
static long at, count, nap;
static int stays, reading;

/* Returns the rank according to the launcher; each launcher has its own variable. */
static const char *launched_rank(void)
{
    const char *rank = getenv("PMI_RANK");
    return rank ? rank : getenv("OMPI_COMM_WORLD_RANK");
}

__attribute__((constructor)) static void begin(void)
{
    const char *program = getenv("FAULTS_PROGRAM"), *rank = getenv("FAULTS_RANK");
    const char *mine = launched_rank(), *number = getenv("FAULTS_AT");
    if (program && strcmp(program, program_invocation_short_name) != 0) return;
    if (rank && (!mine || strcmp(rank, mine) != 0)) return;
    below = getenv("FAULTS_BELOW");
    how = getenv("FAULTS_HOW") ? getenv("FAULTS_HOW") : "kill";
    if (getenv("FAULTS_LOG"))
        snprintf(log_path, sizeof log_path, "%s.%s", getenv("FAULTS_LOG"),
                 mine ? mine : "");
    once = getenv("FAULTS_ONCE");
    mark = getenv("FAULTS_MARK");
    disks = getenv("FAULTS_DISKS");
    at = number ? atol(number) : 0;
    nap = getenv("FAULTS_NAP") ? atol(getenv("FAULTS_NAP")) : 0;
    stays = getenv("FAULTS_STAYS") != NULL;
    reading = getenv("FAULTS_READING") != NULL;
}

static void *next_symbol(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* ---- faults ---- */

static int error_of(const char *name)
{
    static const struct {
        const char *name;
        int error;
    } known[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT},
                 {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE}, {"EINTR", EINTR},
                 {"EACCES", EACCES}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return known[i].error;
    return 0;
}

/* Writes to a file of this module; 0 if it cannot be opened with these flags. */
static int put(const char *path, int flags, const char *text)
{
    int (*real_open)(const char *, int, ...);
    ssize_t (*real_write)(int, const void *, size_t);
    int (*real_close)(int);
    *(void **)&real_open = next_symbol("open");
    *(void **)&real_write = next_symbol("write");
    *(void **)&real_close = next_symbol("close");
    int fd = real_open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    if (fd < 0) return 0;
    if (real_write(fd, text, strlen(text)) < 0) abort();
    real_close(fd);
    return 1;
}

static void note(long n, const char *call, const char *path)
{
    char line[4400];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(line, sizeof line, "%ld %lld%09ld %s %s\n", n, (long long)now.tv_sec,
             now.tv_nsec, call, path);
    if (!put(log_path, O_APPEND, line)) abort();
}

/* Whether item is a word of list. */
static int is_in(const char *list, const char *item)
{
    size_t n = strlen(item);
    for (const char *word = strstr(list, item); word; word = strstr(word + 1, item))
        if ((word == list || word[-1] == ' ') && (word[n] == 0 || word[n] == ' '))
            return 1;
    return 0;
}

static int cuts_power(void)
{
    return strcmp(how, "power") == 0 || strcmp(how, "journal") == 0;
}

/* EXT4_IOC_SHUTDOWN, which xfs also supports: 1 writes the journal first, 2 does not. */
static void cut_power(void)
{
    uint32_t flags = strcmp(how, "journal") == 0 ? 1 : 2;
    char path[4096];
    for (const char *part = disks; part && *part;) {
        size_t n = strcspn(part, ":");
        snprintf(path, sizeof path, "%.*s", (int)n, part);
        int (*real_open)(const char *, int, ...);
        *(void **)&real_open = next_symbol("open");
        int fd = real_open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || ioctl(fd, _IOR('X', 125, uint32_t), &flags) != 0) abort();
        part += n + (part[n] == ':');
    }
}

/* Whether a call can fail in the requested way. */
static int can(const char *call)
{
    static const char waits[] = "open openat read pread write pwrite fallocate "
                                "copy_file_range sendfile";
    static const char frees[] = "unlink unlinkat rmdir fchmod fchmodat utimensat "
                                "futimens fstatat read pread";
    static const char opens[] = "open openat";
    static const char moves[] = "read pread write pwrite copy_file_range sendfile";
    static const char syncs[] = "fsync fdatasync syncfs sync_file_range rename renameat "
                                "renameat2";
    if (strcmp(how, "short") == 0) return is_in(moves, call);
    if (strcmp(how, "slow") == 0)
        return is_in(moves, call) || is_in("unlinkat renameat", call);
    if (strcmp(how, "EINTR") == 0) return is_in(waits, call);
    if (strcmp(how, "EMFILE") == 0) return is_in(opens, call);
    if (cuts_power()) return is_in(syncs, call);
    if (strcmp(how, "ENOSPC") == 0 || strcmp(how, "EDQUOT") == 0)
        return !is_in(frees, call);
    return 1;
}

static int is_below(const char *path)
{
    for (const char *part = below; part && *part;) {
        size_t n = strcspn(part, ":");
        if (strncmp(path, part, n) == 0 && (!path[n] || path[n] == '/')) return 1;
        part += n + (part[n] == ':');
    }
    return 0;
}

/* Decides about a call. half: it can perform half of its work. */
static int decide(const char *call, const char *path, int half)
{
    if (!is_below(path) || !can(call)) return GO;
    long number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    if (log_path[0]) note(number, call, path);
    if (!at || number < at || (number > at && !stays)) return GO;
    if (once && !put(once, O_EXCL, "")) return GO;
    if (mark) put(mark, 0, "");
    if (strcmp(how, "slow") == 0) {
        const struct timespec pause = {nap / 1000, nap % 1000 * 1000000};
        nanosleep(&pause, NULL);
        return GO;
    }
    if (strcmp(how, "short") == 0) return HALF;
    if (strcmp(how, "torn") == 0 && half) return HALF_AND_DIE;
    errno = error_of(how);
    if (errno) return FAIL;
    if (cuts_power()) cut_power();
    while (strcmp(how, "hang") == 0)
        pause();
    raise(strcmp(how, "stop") == 0 ? SIGSTOP : SIGKILL);
    return GO;
}

static int decide_at(const char *call, int dir, const char *name)
{
    char link[64], path[8300] = "";
    int error = errno, result;
    if (!below) return GO;
    if (name[0] != '/' && dir == AT_FDCWD) {
        if (!getcwd(path, 4096)) return GO;
    } else if (name[0] != '/') {
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        ssize_t n = readlink(link, path, 4096);
        if (n < 0) return errno = error, GO;
        path[n] = 0;
    }
    size_t n = strlen(path);
    snprintf(path + n, sizeof path - n, "%s%s", n && name[0] ? "/" : "", name);
    errno = error;
    result = decide(call, path, 0);
    return result;
}

static int decide_fd(const char *call, int fd, int half)
{
    char link[64], path[4097];
    int error = errno;
    if (!below) return GO;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    errno = error;
    if (n <= 0 || path[0] != '/') return GO;
    path[n] = 0;
    return decide(call, path, half);
}

/* Returns the number of bytes that a call must move. */
static size_t bytes_for(int decision, size_t n)
{
    return decision == HALF || decision == HALF_AND_DIE ? (n + 1) / 2 : n;
}

static ssize_t after(int decision, ssize_t done)
{
    if (decision == HALF_AND_DIE) raise(SIGKILL);
    return done;
}

/* ---- calls ---- */

#define REAL(type, name, ...)                                                            \
    type (*real)(__VA_ARGS__);                                                           \
    *(void **)&real = next_symbol(name)

/* A function that returns an int, -1 on failure. */
#define PLAIN(name, types, args, decision)                                               \
    int name types                                                                       \
    {                                                                                    \
        int(*real) types;                                                                \
        *(void **)&real = next_symbol(#name);                                            \
        return (decision) == FAIL ? -1 : real args;                                      \
    }

PLAIN(fsync, (int fd), (fd), decide_fd("fsync", fd, 0))
PLAIN(fdatasync, (int fd), (fd), decide_fd("fdatasync", fd, 0))
PLAIN(syncfs, (int fd), (fd), decide_fd("syncfs", fd, 0))
PLAIN(sync_file_range, (int fd, off_t from, off_t size, unsigned flags),
      (fd, from, size, flags), decide_fd("sync_file_range", fd, 0))
PLAIN(ftruncate, (int fd, off_t size), (fd, size), decide_fd("ftruncate", fd, 0))
PLAIN(fallocate, (int fd, int mode, off_t from, off_t size), (fd, mode, from, size),
      decide_fd("fallocate", fd, 0))
PLAIN(renameat, (int from_dir, const char *from, int to_dir, const char *to),
      (from_dir, from, to_dir, to), decide_at("renameat", to_dir, to))
PLAIN(rename, (const char *from, const char *to), (from, to),
      decide_at("rename", AT_FDCWD, to))
PLAIN(renameat2,
      (int from_dir, const char *from, int to_dir, const char *to, unsigned flags),
      (from_dir, from, to_dir, to, flags), decide_at("renameat2", to_dir, to))
PLAIN(unlinkat, (int dir, const char *name, int flags), (dir, name, flags),
      decide_at("unlinkat", dir, name))
PLAIN(unlink, (const char *name), (name), decide_at("unlink", AT_FDCWD, name))
PLAIN(rmdir, (const char *name), (name), decide_at("rmdir", AT_FDCWD, name))
PLAIN(mkdirat, (int dir, const char *name, mode_t mode), (dir, name, mode),
      decide_at("mkdirat", dir, name))
PLAIN(mkdir, (const char *name, mode_t mode), (name, mode),
      decide_at("mkdir", AT_FDCWD, name))
PLAIN(linkat, (int from_dir, const char *from, int to_dir, const char *to, int flags),
      (from_dir, from, to_dir, to, flags), decide_at("linkat", to_dir, to))
PLAIN(symlinkat, (const char *target, int dir, const char *name), (target, dir, name),
      decide_at("symlinkat", dir, name))
PLAIN(fchmod, (int fd, mode_t mode), (fd, mode), decide_fd("fchmod", fd, 0))
PLAIN(fchmodat, (int dir, const char *name, mode_t mode, int flags),
      (dir, name, mode, flags), decide_at("fchmodat", dir, name))
PLAIN(utimensat, (int dir, const char *name, const struct timespec t[2], int flags),
      (dir, name, t, flags), decide_at("utimensat", dir, name))
PLAIN(futimens, (int fd, const struct timespec t[2]), (fd, t),
      decide_fd("futimens", fd, 0))
PLAIN(fstatat, (int dir, const char *name, struct stat *st, int flags),
      (dir, name, st, flags), reading ? decide_at("fstatat", dir, name) : GO)

/* Opening counts as a change if it creates or truncates a file. */
static int decide_open(const char *call, int dir, const char *name, int flags)
{
    return flags & (O_CREAT | O_TRUNC) || reading ? decide_at(call, dir, name) : GO;
}

static mode_t mode_in(int flags, va_list list)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

int openat(int dir, const char *name, int flags, ...)
{
    REAL(int, "openat", int, const char *, int, ...);
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_in(flags, list);
    va_end(list);
    return decide_open("openat", dir, name, flags) == FAIL ? -1
                                                           : real(dir, name, flags, mode);
}

int open(const char *name, int flags, ...)
{
    REAL(int, "open", const char *, int, ...);
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_in(flags, list);
    va_end(list);
    return decide_open("open", AT_FDCWD, name, flags) == FAIL ? -1
                                                              : real(name, flags, mode);
}

/* Counts only for files that were written to, unless reading counts. */
int close(int fd)
{
    REAL(int, "close", int);
    int flags = fcntl(fd, F_GETFL), error = errno;
    int changed = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
    int decision = changed || reading ? decide_fd("close", fd, 0) : GO;
    if (decision == FAIL) error = errno;
    int rc = real(fd);
    if (rc == 0 || decision == FAIL) errno = error;
    return decision == FAIL ? -1 : rc;
}

ssize_t write(int fd, const void *buf, size_t n)
{
    REAL(ssize_t, "write", int, const void *, size_t);
    int decision = decide_fd("write", fd, 1);
    return decision == FAIL ? -1 : after(decision, real(fd, buf, bytes_for(decision, n)));
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t to)
{
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    int decision = decide_fd("pwrite", fd, 1);
    return decision == FAIL ? -1
                            : after(decision, real(fd, buf, bytes_for(decision, n), to));
}

ssize_t copy_file_range(int in, off_t *from, int out, off_t *to, size_t n, unsigned flags)
{
    REAL(ssize_t, "copy_file_range", int, off_t *, int, off_t *, size_t, unsigned);
    int decision = decide_fd("copy_file_range", out, 1);
    if (decision == FAIL) return -1;
    return after(decision, real(in, from, out, to, bytes_for(decision, n), flags));
}

ssize_t sendfile(int out, int in, off_t *from, size_t n)
{
    REAL(ssize_t, "sendfile", int, int, off_t *, size_t);
    int decision = decide_fd("sendfile", out, 1);
    return decision == FAIL
               ? -1
               : after(decision, real(out, in, from, bytes_for(decision, n)));
}

ssize_t read(int fd, void *buf, size_t n)
{
    REAL(ssize_t, "read", int, void *, size_t);
    int decision = reading ? decide_fd("read", fd, 1) : GO;
    return decision == FAIL ? -1 : after(decision, real(fd, buf, bytes_for(decision, n)));
}

ssize_t pread(int fd, void *buf, size_t n, off_t from)
{
    REAL(ssize_t, "pread", int, void *, size_t, off_t);
    int decision = reading ? decide_fd("pread", fd, 1) : GO;
    return decision == FAIL
               ? -1
               : after(decision, real(fd, buf, bytes_for(decision, n), from));
}
