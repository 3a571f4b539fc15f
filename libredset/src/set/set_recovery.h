/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SET_SET_RECOVERY_H
#define REDSET_SET_SET_RECOVERY_H

/* Verification and rebuild of one set, with one member or all members in this process:
 *
 *     redset_recovery_open      reads the headers of the local members
 *     redset_recovery_judge     collective: makes the plan that follows from the losses
 *     redset_recovery_rebuild   collective: rebuilds the lost members in temporary files
 *     redset_recovery_complete  checks and syncs these files
 *     redset_recovery_commit    collective: assigns the names
 *
 * or, to change nothing, redset_recovery_verify before redset_recovery_judge. Collective
 * functions agree among all ranks of set->world, unless stated otherwise. */

#include "src/set/flow_engine.h"
#include "src/set/member_recovery.h"

typedef struct redset_recovery {
    const redset *set;
    redset_shape shape;
    bool explains;         /* text is also set for RECOVERABLE */
    redset_member *member; /* the local members */
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

/* Opens a recovery; set and dir stay in use. Files are below dir, redundancy files in its
 * subdirectory redundancy (NULL: in dir). The caller calls redset_recovery_close in any
 * case. */
int redset_recovery_open(redset_recovery *r, const redset *set, int dir,
                         const char *redundancy, redset_error *err);
void redset_recovery_close(redset_recovery *r);

/* Returns the local member of that number; NULL if it is not local. */
redset_member *redset_recovery_member(const redset_recovery *r, int member);

/* Compares the sizes of all files of the local members. */
int redset_recovery_check_sizes(redset_recovery *r, redset_error *err);

/* Reads and verifies all files of the local members. */
int redset_recovery_verify(redset_recovery *r, redset_error *err);

/* Collective over the set only. Sets plan, verdict and text from the current states. */
int redset_recovery_judge(redset_recovery *r, redset_error *err);

/* Judges, agrees on any verdict other than REDSET_RECOVERABLE, and checks that all sets
 * are of one encode. */
int redset_recovery_agree(redset_recovery *r, redset_error *err);

/* Collective over the set, not agreed: sends the lost members, as planned, their headers.
 */
int redset_recovery_pass_headers(redset_recovery *r, redset_error *err);

/* Rebuilds the lost members; or returns a verdict. A survivor that turns out to be
 * damaged counts as lost, and all processes start again. */
int redset_recovery_rebuild(redset_recovery *r, redset_error *err);

/* Not collective. */
int redset_recovery_complete(redset_recovery *r, redset_error *err);

/* Clears the way (redset_clear_way), and gives rebuilt files their names. */
int redset_recovery_commit(redset_recovery *r, redset_error *err);

#endif
