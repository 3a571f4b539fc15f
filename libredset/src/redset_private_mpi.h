/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_PRIVATE_MPI_H
#define REDSET_PRIVATE_MPI_H

/* What the sources of the MPI part share. */

#include "src/redset_private.h"
#include "src/schedule.h"
#include <mpi.h>
#include <redset/redset_mpi.h>

struct redset {
    MPI_Comm comm; /* duplicate of the caller's */
    MPI_Comm set;  /* the members of this process's set, in their order */
    int rank;      /* in comm */
    redset_layout layout;
    size_t piece;  /* most bytes of a sum in a message */
    size_t memory; /* for all buffers */
    bool unsynced; /* see redset_config */
    bool lost;     /* this process has no redundancy file of its own, whatever is there
                      under that name */
};

/* ---- redset_mpi.c ---- */

/* Copies text to err, if there is one and rc is not 0; returns rc. */
int redset_report(char *err, const char *text, int rc);

/* -ECOMM and a text, unless result, which MPI returned, is MPI_SUCCESS: then 0. Errors on
 * the communicators of a set come back to us, and must not end the program. A collective
 * call that fails is no cause for an agreement, as that would most likely fail, too. */
int redset_mpi(int result, char *text);

/* Collective over comm: agrees on rc as agree() does, and on whether all ranks that have
 * values (NULL: none) have the same ones: fills *equal if the result is 0. One allreduce
 * when all is well. */
enum { REDSET_VALUES = 6 };
int redset_agree_equal(MPI_Comm comm, int rc, const int64_t values[REDSET_VALUES],
                       bool *equal, char *text);

/* A set over a duplicate of comm, still without members; collective. */
int redset_start(MPI_Comm comm, redset **set, char *text);

/* ---- flows_mpi.c: the tasks of this process ---- */

typedef struct redset_flows redset_flows;

/* Schedule and buffers of this member, whose size follows from set; see
 * redset_schedule_new. Nothing but I/O can fail after that. */
int redset_flows_new(const redset *set, const redset_shape *shape, const uint8_t lost[],
                     const uint64_t length[], redset_flows **flows, char *err);

/* Collective over the set: does all tasks. A process that fails goes on with zeros, and
 * returns its error at the end; the others notice nothing. */
int redset_flows_run(redset_flows *flows, redset_streams *streams, char *err);

redset_flows *redset_flows_free(redset_flows *flows);

#endif
