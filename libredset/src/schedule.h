/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SCHEDULE_H
#define REDSET_SCHEDULE_H

/* What one member of a set does in the flows of an encode or a rebuild.
 *
 * A flow is a chain: its first source makes the sums (one for each target) of what it
 * has, and passes them to the next source, which adds its own; the last one sends each
 * sum to its target. A member's task is its part in one flow; its stage is its place in
 * the chain, targets come after all sources.
 *
 * All flows are worked on together, piece by piece. Every member does its tasks in the
 * order of (piece, stage, flow), and a message always leads to a task with a higher stage
 * of the same piece: no one waits for a task that waits for him. */

#include "src/flow.h"
#include "src/redset_names_private.h"

typedef struct redset_task {
    int flow, stage;
    int stream;      /* of this member: what it adds, or, as a target, what it gets */
    bool target;     /* sums end here: one comes */
    int from;        /* the member that sends; -1: the sums begin here */
    int sums;        /* that come and go on */
    uint8_t *coefs;  /* by which stream enters each sum */
    bool copies;     /* all sums are the stream itself: one buffer does for all */
    int messages;    /* 1 within a chain, with all sums; one for each sum at its end */
    int *to;         /* where each message goes */
    uint64_t length; /* bytes of the stream */
} redset_task;

typedef struct redset_schedule {
    int count;
    redset_task *tasks; /* in the order of (stage, flow) */
    int sums;           /* most of any task that are no copies; at least 1 */
    int messages;       /* most of any task */
    uint64_t longest;   /* length of any task */
    int *members;       /* memory behind the tasks */
    uint8_t *coefs;
} redset_schedule;

/* The tasks of member. lost[m] != 0 for members that are rebuilt; NULL: to encode. Flow i
 * moves length[i] bytes of each stream. NULL without memory. */
redset_schedule *redset_schedule_new(const redset_shape *shape, const uint8_t lost[],
                                     const uint64_t length[], int member);
redset_schedule *redset_schedule_free(redset_schedule *schedule);

/* Tasks in a row that may belong to one stage of one piece: as far ahead a member must be
 * ready to receive, and as far behind it must not need a message to be gone. */
int redset_schedule_reach(const redset_shape *shape);

#endif
