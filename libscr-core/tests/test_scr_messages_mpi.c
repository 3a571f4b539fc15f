/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a checkpoint in MPI and file system calls, for 4 to 32 ranks on four nodes:
 * one file of 1000 bytes per rank, two checkpoints kept, and none flushed. The numbers of
 * collective calls and of fsync calls are fixed; all other messages are those of the
 * redundancy scheme; records are replaced, and nothing else is written. */
#include "count_mpi.h"
#include "scr.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NODES = 4, BYTES_OF_FILE = 1000 };

/* ---- file systems: functions that replace those of the C library ---- */

typedef struct disk {
    long syncs, renames, others; /* others: open, create, remove */
} disk;

static disk now;

int fsync(int fd)
{
    now.syncs++;
    return (int)syscall(SYS_fsync, fd);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    now.renames++;
    return (int)syscall(SYS_renameat, from_dir, from, to_dir, to);
}

int openat(int dir, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    now.others++;
    return (int)syscall(SYS_openat, dir, name, flags, mode);
}

int unlinkat(int dir, const char *name, int flags)
{
    __atomic_add_fetch(&now.others, 1, __ATOMIC_SEQ_CST); /* also called in a thread */
    return (int)syscall(SYS_unlinkat, dir, name, flags);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    now.others++;
    return (int)syscall(SYS_mkdirat, dir, name, mode);
}

/* ---- a job ---- */

static const char *prefix;

static void use_folder(const char *folder)
{
    prefix = folder;
    setenv("SCR_PREFIX", folder, 1);
    setenv("SCR_CNTL_BASE", folder, 1);
    setenv("SCR_JOB_ID", "1", 1);
    setenv("SCR_USER_NAME", "tester", 1);
    setenv("SCR_FLUSH", "0", 1);
    setenv("SCR_CACHE_SIZE", "2", 1);
    setenv("SCR_CACHE_PURGE", "1", 1);
}

static void use_node(MPI_Comm comm, const char *scheme)
{
    int rank, ranks;
    char node[16], cache[600];
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &ranks);
    snprintf(node, sizeof node, "n%d", rank * NODES / ranks);
    snprintf(cache, sizeof cache, "%.500s/%s", prefix, node);
    setenv("SCR_NODE_NAME", node, 1);
    setenv("SCR_CACHE_BASE", cache, 1);
    setenv("SCR_COPY_TYPE", scheme, 1);
}

static void checkpoint(int number)
{
    char dataset[32], path[SCR_MAX_FILENAME], name[SCR_MAX_FILENAME];
    static const char bytes[BYTES_OF_FILE];
    snprintf(dataset, sizeof dataset, "ckpt.%d", number);
    snprintf(name, sizeof name, "%.500s/%s/rank_%d", prefix, dataset, check_rank);
    CHECK_INT(SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT), SCR_SUCCESS);
    CHECK_INT(SCR_Route_file(name, path), SCR_SUCCESS);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK_INT(write(fd, bytes, sizeof bytes), sizeof bytes);
    close(fd);
    CHECK_INT(SCR_Complete_output(1), SCR_SUCCESS);
}

/* ---- limits ---- */

typedef struct scheme {
    const char *name;
    int failures, most; /* most: number of collective calls */
} scheme;

static void print_row(int ranks, const scheme *s, const tally *t, const disk *d)
{
    printf("| %5d | %-7s | %11ld | %8ld | %4.1f | %6.0f | %5ld | %7ld | %6ld |\n", ranks,
           s->name, t->most[COLLECTIVES], t->most[SENDS], (double)t->sum[WIRE] / ranks,
           (double)t->sum[BYTES] / ranks, d->syncs, d->renames, d->others);
}

static void test_checkpoint(MPI_Comm comm, const scheme *s)
{
    int ranks, rank;
    disk most;
    PMPI_Comm_size(comm, &ranks);
    PMPI_Comm_rank(comm, &rank);
    use_node(comm, s->name);
    CHECK_INT(SCR_Init_comm(comm), SCR_SUCCESS);
    checkpoint(1);
    checkpoint(2);
    now = (disk){0};
    begin_counting(comm);
    checkpoint(3); /* evicts the first checkpoint */
    tally t = end_counting(comm);
    PMPI_Allreduce(&now, &most, 3, MPI_LONG, MPI_MAX, comm);
    SCR_Finalize();
    if (rank == 0) print_row(ranks, s, &t, &most);
    CHECK_INT(t.own[COLLECTIVES], s->most);
    CHECK_INT(t.own[DUPLICATES], 0);
    /* lists are sent to the neighbors twice; the rest is small here, one message each */
    CHECK(t.own[SENDS] <= 2 * s->failures + NODES);
    CHECK(most.syncs <= 4 && most.renames <= 4);
    CHECK(now.syncs <= 2 || rank == 0); /* rank 0 writes the flush file */
}

int main(int argc, char **argv)
{
    static const scheme schemes[] = {
        {"SINGLE", 0, 6}, {"PARTNER", 1, 7}, {"XOR", 1, 7}, {"RS", 2, 7}};
    char folder[64];
    check_begin(&argc, &argv);
    check_folder(folder);
    use_folder(folder);
    if (check_rank == 0)
        printf("| ranks | scheme  | collectives | messages | wire |  bytes | fsync | "
               "renames | others |\n"
               "| ----: | ------- | ----------: | -------: | ---: | -----: | ----: | "
               "------: | -----: |\n");
    for (int ranks = NODES; ranks <= check_ranks; ranks *= 2) {
        MPI_Comm comm;
        PMPI_Comm_split(MPI_COMM_WORLD, check_rank < ranks, check_rank, &comm);
        for (int i = 0; i < 4 && check_rank < ranks; i++)
            test_checkpoint(comm, &schemes[i]);
        PMPI_Comm_free(&comm);
        rest();
    }
    check_remove(folder);
    return check_end();
}
