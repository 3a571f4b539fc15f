/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

/* Checks for programs that run under MPI (unit tests without MPI use cmocka). A failed
 * check is printed and counted, and the test continues, so that no rank leaves the others
 * waiting:
 *
 *     int main(int argc, char **argv)
 *     {
 *         check_begin(&argc, &argv);
 *         CHECK(1 + 1 == 2);
 *         CHECK_INT(redset_create(...), 0);
 *         CHECK_STR(name, "1_of_4_in_0.xor");
 *         return check_end();     collective: 1 on every rank if a check failed on any
 *     } */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int check_rank, check_ranks, check_failures;

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "rank %d: %s:%d: failed: %s\n", check_rank, __FILE__,        \
                    __LINE__, #condition);                                               \
            check_failures++;                                                            \
        }                                                                                \
    } while (0)

#define CHECK_INT(value, expected)                                                       \
    do {                                                                                 \
        long long got_ = (long long)(value), want_ = (long long)(expected);              \
        if (got_ != want_) {                                                             \
            fprintf(stderr, "rank %d: %s:%d: %s is %lld, not %lld\n", check_rank,        \
                    __FILE__, __LINE__, #value, got_, want_);                            \
            check_failures++;                                                            \
        }                                                                                \
    } while (0)

#define CHECK_STR(value, expected)                                                       \
    do {                                                                                 \
        const char *got_ = (value), *want_ = (expected);                                 \
        if (!got_ || strcmp(got_, want_) != 0) {                                         \
            fprintf(stderr, "rank %d: %s:%d: %s is \"%s\", not \"%s\"\n", check_rank,    \
                    __FILE__, __LINE__, #value, got_ ? got_ : "(null)", want_);          \
            check_failures++;                                                            \
        }                                                                                \
    } while (0)

static inline void check_begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_ranks);
}

static inline int check_end(void)
{
    int all = 0;
    MPI_Allreduce(&check_failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (check_rank == 0 && all) fprintf(stderr, "%d checks failed\n", all);
    MPI_Finalize();
    return all != 0;
}

/* Makes a new directory that all ranks know, on rank 0's machine, in memory if possible,
 * since tests sync much; check_remove removes it. */
static inline void check_folder(char path[64])
{
    if (check_rank == 0) {
        strcpy(path, "/dev/shm/scr-test-XXXXXX");
        if (!mkdtemp(path)) {
            strcpy(path, "/tmp/scr-test-XXXXXX");
            if (!mkdtemp(path)) path[0] = 0;
        }
    }
    MPI_Bcast(path, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (!path[0]) MPI_Abort(MPI_COMM_WORLD, 1);
}

static inline void check_remove(const char *path)
{
    char command[128];
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0 && strstr(path, "/scr-test-")) {
        snprintf(command, sizeof command, "rm -rf %s", path);
        if (system(command) != 0) check_failures++;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

#endif
