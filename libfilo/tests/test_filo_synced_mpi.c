/* SPDX-License-Identifier: BSD-3-Clause */
/* The order in which changes reach the disk. A file gets its name after its bytes are on
 * disk, a file of the new dataset after the removal of the earlier map is, and the root
 * of the new map after all other names are; a fetch returns after all of its changes are.
 * No rank writes after a rank before it has failed, nor faster than allowed. Functions of
 * this program watch the system calls; all ranks record what they see in shared memory.
 */
#include "lists.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static char folder[64], prefix[128];
static filo_error err;

/* ---- what is not on disk yet ---- */

enum { NODES_MAX = 512 };

static struct board {
    atomic_flag taken;
    int count;
    ino_t node[NODES_MAX]; /* files and directories with changes that no fsync followed */
    ino_t unmapped;        /* one of them: the directory that the root of a map was in */
    int roots, names, writes;
} * board;

static MPI_Win window;
static int watching, own_writes;

static void share(void)
{
    MPI_Aint size;
    int unit;
    MPI_Win_allocate_shared(check_rank == 0 ? sizeof *board : 0, 1, MPI_INFO_NULL,
                            MPI_COMM_WORLD, &board, &window);
    MPI_Win_shared_query(window, 0, &size, &unit, &board);
    if (check_rank == 0) memset(board, 0, sizeof *board);
}

static void lock(void)
{
    while (atomic_flag_test_and_set(&board->taken))
        sched_yield();
}

static void unlock(void)
{
    atomic_flag_clear(&board->taken);
}

static int find(ino_t node)
{
    for (int i = 0; i < board->count; i++)
        if (board->node[i] == node) return i;
    return -1;
}

static void add(ino_t node)
{
    if (find(node) >= 0) return;
    CHECK(board->count < NODES_MAX);
    if (board->count < NODES_MAX) board->node[board->count++] = node;
}

static ino_t node_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static void wrote(int fd)
{
    if (!watching) return;
    lock();
    add(node_of(fd));
    board->writes++;
    own_writes++;
    unlock();
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    ssize_t n = syscall(SYS_pwrite64, fd, bytes, size, offset);
    wrote(fd);
    return n;
}

ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size,
                        unsigned flags)
{
    ssize_t n = syscall(SYS_copy_file_range, in, from, out, to, size, flags);
    if (n > 0) wrote(out);
    return n;
}

int fsync(int fd)
{
    if (watching) {
        lock();
        int i = find(node_of(fd));
        if (i >= 0) board->node[i] = board->node[--board->count];
        if (board->unmapped == node_of(fd)) board->unmapped = 0;
        unlock();
    }
    return (int)syscall(SYS_fsync, fd);
}

/* Whether name is the name of a root, .scr/rank2file.scr. */
static int is_root(const char *name)
{
    return strcmp(name, strrchr(FILO_MAP, '/') + 1) == 0;
}

/* Directories and the record of a stage are removed before the flush is complete. */
static int is_of_stage(int dir, const char *name)
{
    char link[64], path[512] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    return strcmp(name, "stage") == 0 ||
           (readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/stage"));
}

int renameat(int from, const char *old, int to, const char *name)
{
    struct stat st;
    if (watching && !is_of_stage(to, name) &&
        fstatat(from, old, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        lock();
        CHECK(find(st.st_ino) < 0);
        CHECK(board->unmapped == 0);
        if (is_root(name)) CHECK_INT(board->count, 0);
        board->roots += is_root(name);
        board->names++;
        add(node_of(to));
        unlock();
    }
    return (int)syscall(SYS_renameat2, from, old, to, name, 0);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    int rc = (int)syscall(SYS_mkdirat, dir, name, mode);
    if (watching && rc == 0 && !is_of_stage(dir, name)) {
        lock();
        add(node_of(dir));
        unlock();
    }
    return rc;
}

int unlinkat(int dir, const char *name, int flags)
{
    if (watching && is_root(name)) {
        lock();
        board->unmapped = node_of(dir);
        add(node_of(dir));
        unlock();
    }
    return (int)syscall(SYS_unlinkat, dir, name, flags);
}

static void begin(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        board->count = board->roots = board->names = board->writes = 0;
        board->unmapped = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    own_writes = 0;
    watching = 1;
}

/* Checks that nothing is left to be synced, and the numbers of roots and names. */
static void end(int roots, int names)
{
    watching = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(board->count, 0);
    CHECK_INT(board->roots, roots);
    CHECK(board->names >= names);
    CHECK(board->writes > 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- calls ---- */

enum { PER_RANK = 3 };

static void flush(const filo_options *options, int names)
{
    list l;
    list_create(&l, folder, check_rank, PER_RANK);
    begin();
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, options, &err),
              0);
    end(1, names + 1);
    list_unlink(&l);
}

static void fetch(const filo_options *options)
{
    list l;
    int ranks, count;
    filo_file *files;
    list_init(&l, folder, check_rank, PER_RANK);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err),
        0);
    for (int f = 0; f < count; f++) {
        char *path;
        CHECK(asprintf(&path, "%s/back/%d/f%d", folder, check_rank, f) > 0);
        files[f].local = path;
    }
    begin();
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, count, files, options, &err), 0);
    end(0, PER_RANK * check_ranks);
    for (int f = 0; f < count; f++)
        CHECK(list_file_is_good(files[f].local, check_rank, f));
    filo_files_free(count, files);
}

/* Runs each flush also over an earlier dataset. */
static void test_order(const char *name, const filo_options *options)
{
    int names = options->container ? 1 : PER_RANK * check_ranks;
    snprintf(prefix, sizeof prefix, "%s/%s", folder, name);
    flush(options, names);
    flush(options, names);
    fetch(options);
}

/* Rank 0 copies, alone, and fails: no waiting rank writes anything. */
static void test_who_waits(void)
{
    list l;
    const filo_options options = {.width = 1};
    snprintf(prefix, sizeof prefix, "%s/waits", folder);
    list_create(&l, folder, check_rank, PER_RANK);
    l.files[2].has_crc = check_rank == 0;
    begin();
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options, &err),
              -EIO);
    watching = 0;
    CHECK_INT(own_writes > 0, check_rank == 0);
    list_unlink(&l);
}

/* 300,000 bytes or more on each rank. */
static void test_bandwidth(void)
{
    list l;
    const filo_options options = {.bandwidth = 1e6};
    snprintf(prefix, sizeof prefix, "%s/slow", folder);
    list_create(&l, folder, check_rank, PER_RANK);
    double start = MPI_Wtime();
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options, &err),
              0);
    CHECK(MPI_Wtime() - start > 0.15);
    list_unlink(&l);
}

int main(int argc, char **argv)
{
    const filo_options plain = {.width = 2},
                       threads = {.method = "pthread", .workers = 2},
                       packed = {.container = 100000}, tiny = {.map_limit = 1};
    check_begin(&argc, &argv);
    check_folder(folder);
    share();
    test_order("plain", &plain);
    test_order("threads", &threads);
    test_order("packed", &packed);
    test_order("tiny", &tiny);
    test_who_waits();
    test_bandwidth();
    MPI_Win_free(&window);
    check_remove(folder);
    return check_end();
}
