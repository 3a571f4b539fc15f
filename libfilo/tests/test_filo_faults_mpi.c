/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank fails, at each of the calls that change files, in a flush over an earlier
 * dataset with the same names and in a fetch. Every rank gets the same code and text, no
 * rank blocks, and the directory then has the earlier dataset, the new one, or no map.
 * Functions of this program replace the system calls. */
#include "lists.h"

#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

static char folder[64], prefix[128];
static filo_error err;

/* ---- calls that fail ---- */

enum call { CREATE, SIZE, MODE, WRITE, SYNC, CLOSE, RENAME, UNLINK, MKDIR, CALLS };

static const int code_of[CALLS] = {EROFS,  ENOSPC, EPERM, EDQUOT, EIO,
                                   ENOSPC, EIO,    EROFS, ENOSPC};

static struct {
    int armed;
    enum call call;
    int left; /* number of calls until the one that fails */
} fault;

static int fails(enum call call)
{
    if (!fault.armed || fault.call != call || --fault.left > 0) return 0;
    fault.armed = 0;
    errno = code_of[call];
    return 1;
}

int openat(int dir, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (flags & O_CREAT && fails(CREATE)) return -1;
    return (int)syscall(SYS_openat, dir, name, flags, mode);
}

int ftruncate(int fd, off_t size)
{
    return fails(SIZE) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int fchmod(int fd, mode_t mode)
{
    return fails(MODE) ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    return fails(WRITE) ? -1 : syscall(SYS_pwrite64, fd, bytes, size, offset);
}

int fsync(int fd)
{
    return fails(SYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}

/* Fails for files that were written. The descriptor is closed all the same. */
int close(int fd)
{
    int written = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    int rc = (int)syscall(SYS_close, fd);
    return written && fault.armed && fault.call == CLOSE && fails(CLOSE) ? -1 : rc;
}

int renameat(int from, const char *old, int to, const char *name)
{
    return fails(RENAME) ? -1 : (int)syscall(SYS_renameat2, from, old, to, name, 0);
}

static int slow_unlink;

int unlinkat(int dir, const char *name, int flags)
{
    const struct timespec nap = {0, 100000000};
    if (slow_unlink) nanosleep(&nap, NULL);
    return fails(UNLINK) ? -1 : (int)syscall(SYS_unlinkat, dir, name, flags);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    return fails(MKDIR) ? -1 : (int)syscall(SYS_mkdirat, dir, name, mode);
}

static void arm(enum call call, int n, int culprit)
{
    fault.armed = check_rank == culprit;
    fault.call = call;
    fault.left = n;
}

/* Whether the call was made and failed. */
static int fired(int culprit)
{
    int hit = !fault.armed;
    fault.armed = 0;
    MPI_Bcast(&hit, 1, MPI_INT, culprit, MPI_COMM_WORLD);
    return hit;
}

/* ---- two datasets with the same names ---- */

enum { PER_RANK = 2, OLD = 0, NEW = 100 };

static const char *const names[PER_RANK] = {"top.%d", "a/b/deep.%d"};

/* Files of this rank with the bytes of the rank that is `shift` higher. */
static void create(list *l, int shift)
{
    list_init(l, folder, check_rank, PER_RANK);
    for (int f = 0; f < PER_RANK; f++) {
        unsigned char bytes[2000];
        snprintf(l->name[f], sizeof l->name[f], names[f], check_rank);
        l->files[f].size = (size_t)(700 + 10 * check_rank + f + shift);
        for (size_t i = 0; i < l->files[f].size; i++)
            bytes[i] = list_byte(check_rank + shift, f, i);
        list_write(l->local[f], bytes, l->files[f].size);
    }
}

/* Returns which dataset is complete in the directory: OLD or NEW, or -1 if there is no
 * map. */
static int look(void)
{
    int ranks, count, all;
    filo_file *files;
    list l;
    const filo_options options = {.checksum = 1};
    int rc =
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err);
    if (rc == -ENOENT) return -1;
    CHECK_INT(rc, 0);
    CHECK_INT(count, PER_RANK);
    list_init(&l, folder, check_rank, PER_RANK);
    for (int f = 0; f < count; f++)
        files[f].local = strdup(l.local[f]);
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, count, files, &options, &err), 0);
    int found = files[1].size > 900 + 10 * (uint64_t)check_rank ? NEW : NEW + 1;
    found =
        files[1].size == (uint64_t)(701 + 10 * check_rank) ? OLD : found - (found > NEW);
    MPI_Allreduce(&found, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK_INT(found, all);
    filo_files_free(count, files);
    return all;
}

static void same_everywhere(int rc)
{
    int first = rc;
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK_INT(rc, first);
    if (rc) list_expect_text(err.text, ":");
}

static void flush_old(const filo_options *options)
{
    list l;
    create(&l, OLD);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, PER_RANK, l.files, options, &err),
              0);
}

static void remove_prefix(void)
{
    char command[256];
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(command, sizeof command, "rm -rf %s", prefix);
    if (check_rank == 0) CHECK(system(command) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- a flush that fails ---- */

static struct {
    int untouched, no_map, complete;
} seen;

/* Fails the n-th call on one rank. Returns 0 if there was no n-th call. */
static int fail_flush(const filo_options *options, enum call call, int n, int culprit)
{
    list l;
    flush_old(options);
    uint64_t before = list_folder_sum(prefix);
    create(&l, NEW);
    arm(call, n, culprit);
    int rc = filo_flush(MPI_COMM_WORLD, prefix, NULL, PER_RANK, l.files, options, &err);
    int hit = fired(culprit);
    same_everywhere(rc);
    filo_error cause = err;
    list_unlink(&l);
    uint64_t after = list_folder_sum(prefix);
    CHECK(call == UNLINK || list_temporaries == 0);
    if (after == before) {
        CHECK(rc < 0);
        CHECK_INT(look(), OLD);
        seen.untouched++;
    } else {
        int found = look();
        CHECK_INT(found == NEW, rc == 0 || found == NEW);
        CHECK(found != OLD);
        seen.no_map += found < 0;
        seen.complete += found == NEW;
        if (found < 0) CHECK(rc < 0);
        if (found < 0) list_expect_text(cause.text, " may have no map now: ");
    }
    list_unlink(&l);
    return hit;
}

static void test_flush(const filo_options *options, int culprit)
{
    for (enum call call = 0; call < CALLS; call++) {
        int n = 1;
        if (call == MKDIR) continue;
        while (fail_flush(options, call, n, culprit))
            n++;
        remove_prefix();
    }
}

/* Flushes into a missing directory: a failure leaves no map and no partial files. */
static void test_first_flush(enum call call, int culprit)
{
    list l;
    create(&l, NEW);
    for (int n = 1, hit = 1; hit; n++) {
        arm(call, n, culprit);
        int rc = filo_flush(MPI_COMM_WORLD, prefix, NULL, PER_RANK, l.files, NULL, &err);
        hit = fired(culprit);
        same_everywhere(rc);
        CHECK(!hit || rc < 0);
        if (rc) {
            uint64_t left = list_folder_sum(prefix);
            CHECK(call != MKDIR || left == 0);
            CHECK_INT(list_temporaries, 0);
            CHECK(!list_exists(prefix, FILO_MAP));
        }
        remove_prefix();
    }
    list_unlink(&l);
}

/* Containers that a flush could not remove are removed by the next one. */
static void test_surplus(void)
{
    const filo_options many = {.container = 100}, one = {.container = 1000000};
    list l;
    flush_old(&many);
    create(&l, NEW);
    arm(UNLINK, 3, 0); /* after the map and one container */
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, PER_RANK, l.files, &one, &err),
              -EROFS);
    CHECK(fired(0));
    list_expect_text(err.text, " may have no map now: ");
    flush_old(NULL);
    for (int i = 0; i < 50; i++) {
        char name[32];
        snprintf(name, sizeof name, ".scr/ctr.%d.scr", i);
        CHECK(!list_exists(prefix, name));
    }
    list_unlink(&l);
    remove_prefix();
}

/* ---- a fetch that fails ---- */

/* After success, local files are those of the dataset. After a failure, all files of all
 * ranks are unchanged, or none exists. */
static int fail_fetch(enum call call, int n, int culprit)
{
    int ranks, count, found[2] = {0}, all[2]; /* files of the dataset; older files */
    filo_file *files;
    list l;
    const filo_options options = {.checksum = 1};
    list_init(&l, folder, check_rank, PER_RANK);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err),
        0);
    for (int f = 0; f < count; f++)
        files[f].local = strdup(l.local[f]);
    for (int f = 0; f < count; f++)
        list_write(l.local[f], "old", 3);
    arm(call, n, culprit);
    int rc = filo_fetch(MPI_COMM_WORLD, prefix, count, files, &options, &err);
    int hit = fired(culprit);
    same_everywhere(rc);
    for (int f = 0; f < count; f++) {
        struct stat st = {0};
        int there = stat(l.local[f], &st) == 0;
        found[0] += there && (uint64_t)st.st_size == files[f].size;
        found[1] += there && st.st_size == 3;
    }
    CHECK_INT(found[0], rc ? 0 : count);
    MPI_Allreduce(found, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(!rc || all[1] == 0 || all[1] == check_ranks * count);
    filo_files_free(count, files);
    list_unlink(&l);
    uint64_t left = list_folder_sum(folder), expected = list_folder_sum(prefix);
    CHECK(left == expected); /* no temporary file */
    return hit;
}

static void test_fetch(int culprit)
{
    list l;
    flush_old(NULL);
    list_init(&l, folder, check_rank, PER_RANK);
    list_unlink(&l);
    for (enum call call = 0; call < CALLS; call++)
        for (int n = 1; fail_fetch(call, n, culprit); n++) {
        }
    remove_prefix();
}

/* ---- a slow rank ---- */

/* No barrier before this check, so that temporary files of other ranks are seen. */
static void expect_no_temporaries(const char *path)
{
    list_temporaries = 0;
    nftw(path, list_add_to_sum, 16, FTW_PHYS);
    CHECK_INT(list_temporaries, 0);
}

/* The last rank takes long to remove its temporary files; no other rank returns before
 * they are gone. */
static void test_slow_rank(void)
{
    list l;
    int ranks, count;
    filo_file *files;
    filo_transfer *t = NULL;
    const filo_options slow = {.method = "pthread", .bandwidth = 100},
                       check = {.checksum = 1};
    flush_old(&check);
    create(&l, NEW);
    slow_unlink = check_rank == check_ranks - 1;
    l.files[1].has_crc = 1;
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, PER_RANK, l.files, NULL, &err),
              -EIO);
    expect_no_temporaries(prefix);
    l.files[1].has_crc = 0;
    CHECK_INT(filo_flush_start(MPI_COMM_WORLD, prefix, NULL, PER_RANK, l.files, &slow, &t,
                               &err),
              0);
    CHECK_INT(filo_flush_stop(t, &err), 0);
    expect_no_temporaries(prefix);
    filo_flush_free(t);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err),
        0);
    for (int f = 0; f < count; f++)
        files[f].local = strdup(l.local[f]);
    files[1].crc ^= 1;
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, count, files, &check, &err),
              FILO_DAMAGED);
    expect_no_temporaries(folder);
    filo_files_free(count, files);
    slow_unlink = 0;
    list_unlink(&l);
    remove_prefix();
}

int main(int argc, char **argv)
{
    const filo_options plain = {.checksum = 1, .map_limit = 300},
                       packed = {.checksum = 1, .container = 1000},
                       led = {.checksum = 1, .align = 512, .node = "all"};
    check_begin(&argc, &argv);
    check_folder(folder);
    snprintf(prefix, sizeof prefix, "%s/prefix", folder);
    int last = check_ranks - 1;
    for (int culprit = 0; culprit <= last; culprit += last ? last : 1) {
        test_flush(&plain, culprit);
        test_flush(&packed, culprit);
        test_flush(&led, culprit);
        test_first_flush(MKDIR, culprit);
        test_first_flush(CREATE, culprit);
        test_first_flush(RENAME, culprit);
        test_fetch(culprit);
    }
    test_surplus();
    test_slow_rank();
    if (check_rank == 0)
        printf(
            "flushes that failed: %d changed nothing, %d left no map; %d were complete\n",
            seen.untouched, seen.no_map, seen.complete);
    CHECK(seen.untouched > 20 && seen.no_map > 0 && seen.complete > 0);
    check_remove(folder);
    return check_end();
}
