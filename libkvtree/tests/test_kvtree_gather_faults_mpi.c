/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank fails, at any of the calls that change a file, or without memory: every rank
 * gets the same code and text, no rank waits, and afterwards the earlier set, none, or
 * the new set can be read, but never a mixture. */
#include "fail_malloc.h"
#include "gather.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { LONG_KEY = 100000 };

static char path[128];
static kvtree_error err;

/* ---- calls that fail, and calls that are watched ---- */

enum call { CREATE, RENAME, SYNC, UNLINK, CALLS };

static const int code_of[CALLS] = {EROFS, ENOSPC, EIO, EROFS};

static struct {
    int armed;
    enum call call;
    int left; /* number of calls until the failing one; 0: it has failed */
} fault;

static struct {
    int on;
    int removed; /* the root was removed, but its directory not synced since */
    int torn;    /* files of level 0 that were replaced while a root was there */
    int early;   /* roots written before the files that they name */
    int roots;
} watch;

static int fails(enum call call)
{
    if (!fault.armed || fault.call != call || --fault.left > 0) return 0;
    fault.armed = 0;
    errno = code_of[call];
    return 1;
}

static int ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static int here(const char *name)
{
    char file[256];
    snprintf(file, sizeof file, "%s/%s", path, name);
    return access(file, F_OK) == 0;
}

static void watch_rename(const char *name)
{
    char lower[32];
    if (!watch.on) return;
    if (strcmp(name, ROOT_NAME) != 0) {
        watch.torn += here(ROOT_NAME) || watch.removed;
        return;
    }
    watch.roots++;
    for (int rank = 0; rank < check_ranks; rank++) {
        snprintf(lower, sizeof lower, "set.0.%d.scr", rank);
        watch.early += !here(lower);
    }
}

int openat(int dir, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (flags & O_CREAT && ends_with(name, ".tmp") && fails(CREATE)) return -1;
    return (int)syscall(SYS_openat, dir, name, flags, mode);
}

int renameat(int from_dir, const char *from, int dir, const char *name)
{
    if (fails(RENAME)) return -1;
    watch_rename(name);
    return renameat2(from_dir, from, dir, name, 0);
}

int fsync(int fd)
{
    struct stat st;
    if (fails(SYNC)) return -1;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) watch.removed = 0;
    return (int)syscall(SYS_fsync, fd);
}

int unlinkat(int dir, const char *name, int flags)
{
    if (ends_with(name, ".scr") && fails(UNLINK)) return -1;
    if (strcmp(name, ROOT_NAME) == 0) watch.removed = 1;
    return (int)syscall(SYS_unlinkat, dir, name, flags);
}

/* ---- versions of a set ---- */

static void begin(kvtree_gather *to, const char *folder, size_t limit)
{
    gather_begin(to, path, folder);
    to->limit = limit;
    err.text[0] = 0;
}

/* The tree of this rank in version 1, 2, ... */
static kvtree *version(int number)
{
    kvtree *tree = gather_tree(check_rank, 300);
    kvtree_util_set_int(tree, "VERSION", number);
    return tree;
}

static int write_version(const kvtree_gather *to, int number)
{
    kvtree *tree = version(number);
    err.text[0] = 0;
    int rc = kvtree_gather_write(to, tree, &err);
    kvtree_delete(&tree);
    return rc;
}

/* Returns the version that all ranks read, 0 if there is no set; -1 for a mixture or
 * damage. */
static int version_there(const kvtree_gather *from)
{
    int number = -1, all[2];
    kvtree_error cause = {""};
    kvtree *got = kvtree_new();
    int rc = kvtree_scatter_read(from, NULL, got, &cause);
    kvtree *mine = kvtree_elem_hash(kvtree_elem_first(got));
    if (rc == -ENOENT) number = 0;
    if (rc == 0 && kvtree_util_get_int(mine, "VERSION", &number) == 0) {
        kvtree *expected = version(number);
        CHECK(same_tree(mine, expected));
        kvtree_delete(&expected);
    }
    int range[2] = {number, -number};
    MPI_Allreduce(range, all, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    kvtree_delete(&got);
    return all[0] == -all[1] ? number : -1;
}

/* ---- tests ---- */

/* Each rank writes a file over an earlier set. When the first file is replaced, no root
 * exists or can reappear; the new root is written when all files are in place. */
static void order_of_writing(void)
{
    kvtree_gather to;
    char file[32];
    begin(&to, "order", 1);
    CHECK_INT(write_version(&to, 1), 0);
    snprintf(file, sizeof file, "set.0.%d.scr", check_rank);
    for (int round = 2; round < 4; round++) {
        memset(&watch, 0, sizeof watch);
        MPI_Barrier(MPI_COMM_WORLD);
        watch.on = 1;
        CHECK_INT(write_version(&to, round), 0);
        CHECK_INT(watch.torn, 0);
        CHECK_INT(watch.early, 0);
        CHECK_INT(watch.roots, check_rank == 0);
        CHECK_INT(version_there(&to), round);
        /* next time the lower files are missing at the beginning */
        if (round == 2) CHECK(unlinkat(to.dir, file, 0) == 0);
        watch.on = 0;
    }
    gather_finish(&to);
}

/* One rank fails at its first, second, ... call of a kind, until there is no further
 * call. Returns the number of failures. */
static int sweep(kvtree_gather *to, int who, enum call call)
{
    for (int n = 1;; n++) {
        int fired, was = version_there(to), next = n + 1000 * (who + 1);
        if (was <= 0) CHECK_INT(write_version(to, was = next - 500), 0);
        fault.call = call;
        fault.left = n;
        fault.armed = check_rank == who;
        int rc = write_version(to, next);
        fired = check_rank == who && !fault.armed;
        fault.armed = 0;
        MPI_Bcast(&fired, 1, MPI_INT, who, MPI_COMM_WORLD);
        gather_expect(rc, fired ? -code_of[call] : 0, err.text, fired ? "set." : "");
        int now = version_there(to);
        CHECK(now == next || (rc && (now == 0 || now == was)));
        /* a root that could not be removed kept all its files */
        if (rc && call == UNLINK) CHECK_INT(now, was);
        if (!fired || n > 100) return n - 1;
    }
}

static void every_call_fails(const char *folder, size_t limit)
{
    kvtree_gather to;
    begin(&to, folder, limit);
    int ranks[] = {0, check_ranks - 1};
    for (int i = 0; i < (check_ranks > 1 ? 2 : 1); i++) {
        int writes = ranks[i] == 0 || limit; /* its own file at level 0 */
        int files =
            writes + (ranks[i] == 0) + (ranks[i] == 0 && limit && check_ranks == 8);
        CHECK_INT(sweep(&to, ranks[i], CREATE), files);
        CHECK_INT(sweep(&to, ranks[i], RENAME), files);
        CHECK_INT(sweep(&to, ranks[i], SYNC), 2 * files + (ranks[i] == 0));
        CHECK_INT(sweep(&to, ranks[i], UNLINK), ranks[i] == 0);
    }
    gather_finish(&to);
}

/* A file that cannot grow, like on a full disk, on one rank. */
static void no_space(void)
{
    struct rlimit before, small;
    kvtree_gather to;
    begin(&to, "space", 1);
    CHECK_INT(write_version(&to, 1), 0);
    for (int who = 0; who < check_ranks; who++) {
        CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
        small = (struct rlimit){100, before.rlim_max};
        signal(SIGXFSZ, SIG_IGN);
        if (check_rank == who) CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
        int rc = write_version(&to, 2);
        if (check_rank == who) CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
        signal(SIGXFSZ, SIG_DFL);
        gather_expect(rc, -EFBIG, err.text, "set.0.");
        CHECK_INT(version_there(&to), 0);
    }
    gather_finish(&to);
}

/* Errors that are detected beforehand leave the earlier set. */
static void refused(void)
{
    static const char *const bad[] = {NULL, "", "../set.scr", "/tmp/set.scr", "set\n"};
    kvtree_gather to;
    char large[1014], root[256];
    begin(&to, "refused", 0);
    CHECK_INT(write_version(&to, 1), 0);
    for (int i = 0; i < 5; i++) {
        to.name = check_rank == check_ranks - 1 ? bad[i] : ROOT_NAME;
        gather_expect(write_version(&to, 2), -EINVAL, err.text, "file name");
    }
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    to.name = large;
    gather_expect(write_version(&to, 2), -ENAMETOOLONG, err.text,
                  "xxx...: File name too");
    to.name = ROOT_NAME;
    CHECK_INT(version_there(&to), 1);

    kvtree *tree = version(2);
    snprintf(root, sizeof root, "%s/" ROOT_NAME, path);
    int last = check_rank == check_ranks - 1;
    CHECK_INT(kvtree_write_gather(last ? NULL : root, tree, MPI_COMM_WORLD), -EINVAL);
    CHECK_INT(kvtree_write_gather(last ? "/no/such/x" : root, tree, MPI_COMM_WORLD),
              -ENOENT);
    CHECK_INT(version_there(&to), 1);
    CHECK_INT(kvtree_write_gather(root, tree, MPI_COMM_WORLD), 0);
    CHECK_INT(version_there(&to), 2);
    kvtree_delete(&tree);
    gather_finish(&to);
}

/* On the last rank the directory is a wrong one, or missing. */
static void wrong_folder(void)
{
    kvtree_gather to;
    char gone[192];
    int last = check_rank == check_ranks - 1;
    begin(&to, "wrong", 1);
    int good = to.dir;
    snprintf(gone, sizeof gone, "%s/gone", path);
    if (last) CHECK(mkdir(gone, 0700) == 0);
    int removed = last ? open(gone, O_RDONLY | O_DIRECTORY) : dup(good);
    if (last) CHECK(rmdir(gone) == 0);
    to.dir = removed;
    gather_expect(write_version(&to, 1), -ENOENT, err.text, "write set.");
    to.dir = last ? -1 : good;
    gather_expect(write_version(&to, 1), -EBADF, err.text, "set.");
    to.dir = good;
    CHECK_INT(version_there(&to), 0);
    CHECK_INT(write_version(&to, 3), 0);
    CHECK_INT(version_there(&to), 3);
    close(removed);
    gather_finish(&to);
}

/* Directories in the places of files. */
static void in_the_way(void)
{
    kvtree_gather to;
    char lower[32];
    begin(&to, "way", 1);
    if (check_rank == 0) CHECK(mkdirat(to.dir, ROOT_NAME, 0700) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    gather_expect(write_version(&to, 1), -EISDIR, err.text,
                  "remove set.scr: Is a directory");
    CHECK(!here("set.0.0.scr")); /* nothing was started */
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) CHECK(rmdir(strcat(path, "/" ROOT_NAME)) == 0);
    snprintf(lower, sizeof lower, "set.0.%d.scr", check_ranks - 1);
    if (check_rank == 0) CHECK(mkdirat(to.dir, lower, 0700) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    gather_expect(write_version(&to, 1), -EISDIR, err.text, lower);
    CHECK_INT(version_there(&to), 0);
    gather_finish(&to);
}

enum task { WRITE, READ, MERGE };

/* One rank has no memory for a block with a long key, the first, second, ... time that it
 * asks for one: to copy its tree, to send, receive, write or read, or to merge into a
 * tree that is not empty. Returns the number of failures. */
static int starve(kvtree_gather *to, int who, const kvtree *tree, enum task task)
{
    for (int spared = 0;; spared++) {
        kvtree *got = kvtree_new();
        int kept = task == MERGE && check_rank == who;
        if (kept) kvtree_set_kv(got, "KEPT", "1");
        CHECK_INT(kvtree_gather_write(to, tree, &err), 0);
        err.text[0] = 0;
        if (check_rank == who) fail_sizes(LONG_KEY, 10 * LONG_KEY);
        fail_spared = spared;
        int rc = task == WRITE ? kvtree_gather_write(to, tree, &err)
                               : kvtree_scatter_read(to, NULL, got, &err);
        fail_sizes(0, 0);
        if (rc) gather_expect(rc, -ENOMEM, err.text, "set.");
        CHECK(kvtree_size(got) == kept + (task != WRITE && !rc) || (kept && rc));
        kvtree_unset_all(got);
        int left = kvtree_scatter_read(to, NULL, got, NULL);
        /* the tree is packed before the earlier root is removed */
        CHECK(left == 0 || (left == -ENOENT && task == WRITE && rc && spared > 0));
        CHECK_INT(kvtree_size(got), !left);
        kvtree_delete(&got);
        if (!rc || spared > 100) return spared;
    }
}

static void without_memory(const char *folder, size_t limit)
{
    kvtree_gather to;
    char *key = malloc(LONG_KEY + 1);
    kvtree *tree = kvtree_new();
    begin(&to, folder, limit);
    memset(key, 'k', LONG_KEY);
    key[LONG_KEY] = 0;
    kvtree_set(tree, key, NULL);
    int step = check_ranks > 1 ? check_ranks - 1 : 1; /* the first and the last rank */
    for (int who = 0; who < check_ranks && can_fail_malloc(); who += step) {
        for (int task = WRITE; task <= MERGE; task++) {
            int failures = starve(&to, who, tree, (enum task)task);
            CHECK(failures >= 1 && failures < 100);
        }
    }
    free(key);
    kvtree_delete(&tree);
    gather_finish(&to);
}

/* One rank has no memory for its first, second, ... tree on the way: all ranks get the
 * error, and what is reported as written or read is so on every rank. Returns the number
 * of failures. */
static int lose_a_tree(kvtree_gather *to, int who, enum task task)
{
    for (int n = 1;; n++) {
        kvtree *mine = version(n + 1), *got = kvtree_new();
        CHECK_INT(write_version(to, n), 0);
        err.text[0] = 0;
        fail_calloc = check_rank == who ? n : 0;
        int rc = task == WRITE ? kvtree_gather_write(to, mine, &err)
                               : kvtree_scatter_read(to, NULL, got, &err);
        int fired = check_rank == who && fail_calloc == 0;
        fail_calloc = 0;
        MPI_Bcast(&fired, 1, MPI_INT, who, MPI_COMM_WORLD);
        if (rc || !fired)
            gather_expect(rc, fired ? -ENOMEM : 0, err.text, rc ? "set." : "");
        CHECK_INT(kvtree_size(got), task == READ && rc == 0);
        kvtree_delete(&mine);
        kvtree_delete(&got);
        int now = version_there(to), next = task == WRITE ? n + 1 : n;
        CHECK(now == next || (rc && (now == 0 || now == n)));
        if (!fired || n > 200) return n - 1;
    }
}

static void without_memory_for_a_tree(const char *folder, size_t limit)
{
    kvtree_gather to;
    begin(&to, folder, limit);
    int step = check_ranks > 1 ? check_ranks - 1 : 1; /* the first and the last rank */
    for (int who = 0; who < check_ranks && can_fail_malloc(); who += step) {
        /* a rank that writes no file has only the tree of the caller */
        CHECK(lose_a_tree(&to, who, WRITE) >= (who == 0 ? 4 : 0));
        CHECK(lose_a_tree(&to, who, READ) >= 4);
    }
    gather_finish(&to);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(gather_base);
    order_of_writing();
    every_call_fails("calls", 1);
    every_call_fails("calls, one file", 0);
    no_space();
    refused();
    wrong_folder();
    in_the_way();
    without_memory("memory", 1);
    without_memory("memory, one file", 0);
    without_memory_for_a_tree("trees", 1);
    without_memory_for_a_tree("trees, one file", 0);
    check_remove(gather_base);
    return check_end();
}
