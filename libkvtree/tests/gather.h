/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GATHER_H
#define GATHER_H

/* For the tests of gathered trees: a set in a separate directory, and checks that every
 * rank gets the same result. */

#include "build_tree.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_mpi.h>
#include <sys/stat.h>

#define ROOT_NAME "set.scr"

static char gather_base[64]; /* directory of all sets of this program */

/* Creates a directory below gather_base, with the name path, and opens it as to->dir on
 * every rank. */
static inline void gather_begin(kvtree_gather *to, char path[128], const char *folder)
{
    snprintf(path, 128, "%s/%s", gather_base, folder);
    if (check_rank == 0) CHECK(mkdir(path, 0700) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    *to = (kvtree_gather){.comm = MPI_COMM_WORLD,
                          .dir = open(path, O_RDONLY | O_DIRECTORY),
                          .name = ROOT_NAME};
    CHECK(to->dir >= 0);
}

static inline void gather_finish(kvtree_gather *to)
{
    close(to->dir);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Every rank has the same code and text, which contains part. */
static inline void gather_expect(int rc, int expected, const char *err, const char *part)
{
    kvtree_error first;
    int codes[2] = {rc, -rc}, worst[2];
    MPI_Allreduce(codes, worst, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    CHECK_INT(rc, expected);
    CHECK_INT(worst[0], -worst[1]);
    memcpy(first.text, err, sizeof first.text);
    MPI_Bcast(first.text, (int)sizeof first.text, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK_STR(err, first.text);
    if (!strstr(err, part)) CHECK_STR(err, part); /* shows both */
}

#endif
