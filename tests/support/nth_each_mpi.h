/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_NTH_EACH_MPI_H
#define TESTS_NTH_EACH_MPI_H

/* Work of all ranks in which one rank lacks memory, at each of its allocations: all ranks
 * get the same result, which is -ENOMEM unless the work does without; no rank leaks a
 * block or a descriptor; and the next try succeeds. See nth_malloc.h. */

#include "check.h"
#include "nth_malloc.h"

static inline int nth_max(int value)
{
    int most = value;
    MPI_Allreduce(&value, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

/* Makes one try without allocation number n of the culprit; returns whether the try had
 * that number of allocations. */
static inline int nth_try_one(const char *name, nth_try *work, void *arg, int culprit,
                              int n, int *failed)
{
    long blocks = live;
    int fired = 0, descriptors = nth_descriptors();
    int rc = nth_without(work, arg, check_rank == culprit ? n : 0, &fired);
    fired = nth_max(check_rank == culprit && fired);
    int good = rc == 0 || (rc == -ENOMEM && fired);
    good = good && nth_max(rc) == rc && live == blocks;
    good = good && nth_descriptors() == descriptors;
    if (!good)
        fprintf(
            stderr,
            "rank %d: %s: allocation %d of rank %d: %d, %ld blocks and %d descriptors "
            "more: %s\n",
            check_rank, name, n, culprit, rc, live - blocks,
            nth_descriptors() - descriptors, rc ? nth_text.text : "");
    CHECK(good);
    *failed += rc != 0;
    if (nth_max(rc != 0)) CHECK_INT(nth_again(work, arg), 0);
    return fired;
}

/* Repeats the work, with tries for each rank. */
static inline void nth_each(const char *name, nth_try *work, void *arg, int tries)
{
    CHECK_INT(nth_again(work, arg),
              0); /* what MPI and libraries keep is there from now on */
    int all = nth_count(work, arg), errors = 0;
    for (int culprit = 0; culprit < check_ranks; culprit++) {
        int count = all, failed = 0;
        MPI_Bcast(&count, 1, MPI_INT, culprit, MPI_COMM_WORLD);
        int stride = nth_stride(count, tries);
        for (int n = 1; nth_try_one(name, work, arg, culprit, n, &failed); n += stride)
            if (nth_max(check_failures)) return;
        errors += failed;
        if (check_rank == 0)
            printf("%s: rank %d: %d allocations, every %d. failed, %d errors\n", name,
                   culprit, count, stride, failed);
    }
    CHECK(errors > 0);
}

#endif
