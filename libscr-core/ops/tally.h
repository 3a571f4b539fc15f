/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_TALLY_H
#define SCR_TALLY_H

/* The bytes that the ranks of a node have moved, for progress lines (SCR_PROGRESS). The
 * ranks of a node share a file without a name, in which each rank has a slot that it
 * updates as its files move. Rank 0 adds up the slots of its node, as an estimate for all
 * nodes: ranks of all nodes take their turns at the same time. No messages are sent.
 * Without SCR_PROGRESS there is no file, and these functions do nothing. */

#include "job/job.h"
#include "report/progress.h"
#include <stdbool.h>

/* Operations that can run at the same time have separate tallies. */
typedef enum scr_tally_kind {
    SCR_TALLY_FLUSH, /* also in the background */
    SCR_TALLY_FILES, /* a fetch, or a rebuild */
    SCR_TALLY_KINDS
} scr_tally_kind;

typedef struct scr_tally_channel {
    int fd; /* of the file; -1: there is no tally */
    scr_tally_kind kind;
    int own, count;             /* slot of this rank; number of slots on the node */
    _Atomic uint64_t operation; /* number of the last operation, the same on every rank */
} scr_tally_channel;

typedef struct scr_tally {
    scr_tally_channel channels[SCR_TALLY_KINDS];
} scr_tally;

/* Must be called before the other functions. */
void scr_tally_init(scr_tally *tally);

/* Collective over the node. Creates the file in the control directory, and unlinks it.
 * After a failure there is no tally. */
void scr_tally_open(scr_tally *tally, const scr_job *job, int control_fd);

/* Local; after all transfers have ended. */
void scr_tally_close(scr_tally *tally);

/* Begins an operation. Every rank must call it equally often. Local. */
void scr_tally_begin(scr_tally *tally, scr_tally_kind kind);

/* For libraries: a function that updates the slot of this rank, or NULL, and its
 * argument. */
typedef void scr_tally_report(void *arg, uint64_t done, uint64_t total);
scr_tally_report *scr_tally_reporter(const scr_tally *tally);
void *scr_tally_arg(scr_tally *tally, scr_tally_kind kind);

/* For progress lines: the sums of the node. */
scr_progress_source scr_tally_source(scr_tally *tally, scr_tally_kind kind);

#endif
