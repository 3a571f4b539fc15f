/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SET_PLAN_H
#define REDSET_SET_PLAN_H

/* The plan that follows from the losses of a set: pure functions. */

#include "src/header/header.h"

/* Why a member cannot be read. A member that is unread, because of a disk error or a
 * missing permission, counts as lost, but may become readable again. */
enum redset_loss { REDSET_LOST = 1, REDSET_UNREAD = 2 };

/* The loss that an error while reading implies. 0: no loss; this process lacks memory or
 * descriptors, or the transport failed. */
enum redset_loss redset_loss_of(int code);

/* What a member contributes to the plan, as checksums. */
typedef struct redset_state {
    uint32_t lost;   /* enum redset_loss; if not 0, the rest is 0 */
    uint32_t layout; /* of the keys that all headers of a set have in common */
    uint32_t list[]; /* of its list of files, and of the lists of its `failures` left
                        neighbors */
} redset_state;

/* The size of a state, and the state of a member in an array of states. */
size_t redset_state_size(const redset_shape *shape);
redset_state *redset_state_at(const redset_shape *shape, void *states, int member);

/* Sets the state of a member with that header; -ENOMEM. */
int redset_state_set(redset_state *state, const redset_header *header);

typedef enum redset_plan_kind {
    REDSET_PLAN_NOTHING,  /* nothing is lost */
    REDSET_PLAN_REBUILD,  /* the lost members can be rebuilt from the others */
    REDSET_PLAN_WAIT,     /* the lost members can be rebuilt if unread members become
                             readable */
    REDSET_PLAN_HOPELESS, /* more is lost than can be rebuilt */
    REDSET_PLAN_MIXED     /* survivors are of different encodes */
} redset_plan_kind;

typedef struct redset_plan {
    redset_plan_kind kind;
    int lost;   /* number of lost members */
    int member; /* MIXED: a member on which survivors disagree */
} redset_plan;

/* Sets lost[members] to 1 for lost members and 0 for others. */
redset_plan redset_plan_make(const redset_shape *shape, void *states, uint8_t lost[]);

/* 0, REDSET_RECOVERABLE, REDSET_UNRECOVERABLE, or -EIO for WAIT. */
int redset_plan_verdict(const redset_plan *plan);

/* ---- texts ---- */

/* Describes the set and its lost members. */
void redset_plan_describe_lost(const redset_layout *layout, const uint8_t lost[],
                               redset_error *err);

/* Appends the reason why one member is lost. Only the first REDSET_EXPLAINED lost members
 * are explained. */
enum { REDSET_EXPLAINED = 2, REDSET_REASON_SIZE = 160 };
void redset_plan_add_reason(int rank, const char *reason, redset_error *err);

/* Writes the text for MIXED. */
void redset_plan_describe_mixed(const redset_layout *layout, const redset_plan *plan,
                                redset_error *err);

#endif
