/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SET_SET_RECOVERY_H
#define REDSET_SET_SET_RECOVERY_H

/* Verification and rebuild of one set, with one member or all of them in this process:
 *
 *     redset_recovery_open      reads the headers of the local members
 *     redset_recovery_judge     collective: what follows from the losses
 *     redset_recovery_rebuild   collective: rebuilds the lost members in temporary files
 *     redset_recovery_complete  checks and syncs these
 *     redset_recovery_commit    collective: assigns the names
 *
 * or, to change nothing, redset_recovery_verify before redset_recovery_judge. Collective
 * functions agree among all ranks of set->world, if not stated otherwise. */

#include "src/set/flow_engine.h"
#include "src/set/member_recovery.h"

typedef struct redset_recovery {
    const redset *set;
    redset_shape shape;
    bool explains;         /* text is also set for RECOVERABLE */
    redset_member *member; /* the local ones */
    void *states;          /* redset_state of all members */
    uint8_t *lost;         /* of all members, as planned */
    redset_plan plan;
    int verdict;      /* of plan: 0, RECOVERABLE, UNRECOVERABLE, -EIO; 0 after a commit */
    redset_error err; /* of verdict */
    redset_engine *engine;
    redset_port *ports; /* of the local members */
    uint64_t *length;   /* of flows */
    kvtree **messages;  /* out and in for each local member */
} redset_recovery;

/* Opens a recovery; set and dir stay in use. Files are below dir, redundancy files in the
 * directory redundancy below that (NULL: in dir). redset_recovery_close is due in any
 * case.
 */
int redset_recovery_open(redset_recovery *r, const redset *set, int dir,
                         const char *redundancy, redset_error *err);
void redset_recovery_close(redset_recovery *r);

/* The local member of that number; NULL if it is not local. */
redset_member *redset_recovery_member(const redset_recovery *r, int member);

/* Compares the sizes of all files of the local members. */
int redset_recovery_check_sizes(redset_recovery *r, redset_error *err);

/* Reads all that the local members have. */
int redset_recovery_verify(redset_recovery *r, redset_error *err);

/* Collective over the set only. Sets plan, verdict and text from the current states. */
int redset_recovery_judge(redset_recovery *r, redset_error *err);

/* Judges, and agrees on a verdict other than REDSET_RECOVERABLE, and on all sets being of
 * one encode. */
int redset_recovery_agree(redset_recovery *r, redset_error *err);

/* Collective over the set, not agreed: sends the headers of the lost members, as planned,
 * to these. */
int redset_recovery_pass_headers(redset_recovery *r, redset_error *err);

/* Rebuilds what is lost; or a verdict. A survivor that turns out to be damaged counts as
 * lost, and all begin again. */
int redset_recovery_rebuild(redset_recovery *r, redset_error *err);

/* Not collective. */
int redset_recovery_complete(redset_recovery *r, redset_error *err);

/* Sets aside what is in the way, and gives rebuilt files their names. */
int redset_recovery_commit(redset_recovery *r, redset_error *err);

#endif
