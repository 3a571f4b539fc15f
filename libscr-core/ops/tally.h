/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_TALLY_H
#define SCR_TALLY_H

/* The bytes that the ranks of a node have moved, where the program wants to see progress
 * (SCR_PROGRESS). Each rank has a place in a file without a name that the node shares,
 * and fills it as files move; rank 0 adds up those of its node, whose ranks take their
 * turns at the same time as all others. No message is sent. Without SCR_PROGRESS there is
 * no such file, and all of this does nothing. */

#include "job/job.h"
#include "report/progress.h"
#include <stdbool.h>

/* What moves at the same time has tallies of its own. */
typedef enum scr_tally_kind {
    SCR_TALLY_FLUSH, /* also in the background */
    SCR_TALLY_FILES, /* a fetch, or a rebuild */
    SCR_TALLY_KINDS
} scr_tally_kind;

typedef struct scr_tally_channel {
    int fd; /* of the file; -1: there is no tally */
    scr_tally_kind kind;
    int own, count;             /* place of this rank, of those of the node */
    _Atomic uint64_t operation; /* number of the last one, the same on all ranks */
} scr_tally_channel;

typedef struct scr_tally {
    scr_tally_channel channels[SCR_TALLY_KINDS];
} scr_tally;

/* Before the others. */
void scr_tally_init(scr_tally *tally);

/* Collective over the node. The file is made in the control directory, and nothing of it
 * stays there. Where that fails there is no tally. */
void scr_tally_open(scr_tally *tally, const scr_job *job, int control_fd);

/* Local; nothing moves any more. */
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
