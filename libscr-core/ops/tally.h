/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_TALLY_H
#define SCR_TALLY_H

/* The bytes that the ranks of a node have moved, where the program wants to see progress
 * (SCR_PROGRESS). Each rank has a place in memory that the node shares, which libraries
 * fill as files move; rank 0 adds up those of its node, whose ranks take their turns at
 * the same time as all others. Nothing is sent. Without SCR_PROGRESS there is no such
 * memory, and all of this does nothing. */

#include "job/job.h"
#include "report/progress.h"

/* What moves at the same time has tallies of its own. */
typedef enum scr_tally_kind {
    SCR_TALLY_FLUSH, /* also in the background */
    SCR_TALLY_FILES, /* a fetch, or a rebuild */
    SCR_TALLY_KINDS
} scr_tally_kind;

typedef struct scr_tally_place scr_tally_place;

typedef struct scr_tally_channel {
    scr_tally_place *places; /* of the ranks of the node; NULL: there is no tally */
    int own, count;
    uint64_t operation; /* number of the last one, the same on all ranks */
} scr_tally_channel;

typedef struct scr_tally {
    MPI_Win window; /* that has the memory, where wanted */
    bool wanted;
    scr_tally_channel channels[SCR_TALLY_KINDS];
} scr_tally;

/* Collective where wanted. Without memory there is no tally. */
void scr_tally_open(scr_tally *tally, const scr_job *job, bool wanted);

/* Collective where wanted. */
void scr_tally_close(scr_tally *tally);

/* An operation begins. Each rank calls it as often as the others; local. */
void scr_tally_begin(scr_tally *tally, scr_tally_kind kind);

/* For libraries: a function that fills the place of this rank, or NULL, and its argument.
 */
typedef void scr_tally_report(void *arg, uint64_t done, uint64_t total);
scr_tally_report *scr_tally_reporter(const scr_tally *tally);
void *scr_tally_arg(scr_tally *tally, scr_tally_kind kind);

/* For lines: the sums of the node. */
scr_progress_source scr_tally_source(scr_tally *tally, scr_tally_kind kind);

#endif
