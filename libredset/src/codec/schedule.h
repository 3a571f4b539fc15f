/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_CODEC_SCHEDULE_H
#define REDSET_CODEC_SCHEDULE_H

/* The tasks by which members execute flows.
 *
 * A flow is a chain. Its first source computes the partial sums (one for each target) of
 * its own bytes and sends them to the next source, which adds its own bytes. The last
 * source sends each sum to its target. A task is the part of one member in one flow, and
 * its stage is its place in the chain; targets come after all sources.
 *
 * An encode with several redundancy streams sends less: each source sends its own bytes
 * to the first target, which gathers them, computes all sums, and forwards the sums of
 * the other targets. Per flow this sends sources + targets - 1 streams; a chain sends
 * sources * targets. First targets of different flows are different members, so the load
 * is even. A rebuild would have few first targets, and chains spread its load better.
 *
 * A schedule has either all tasks of one or several members, which work on all flows
 * together, or the tasks of all members in one flow, which one process executes by
 * itself. Tasks are executed piece by piece, in the order of (piece, stage, flow). A
 * message always leads to a task of the next stage of the same piece, so members never
 * wait in a cycle. */

#include "src/codec/flow.h"

typedef struct redset_task {
    int flow, stage, member;
    int stream;      /* input of a source, or output of a target */
    bool is_target;  /* the task writes one sum */
    bool gathers;    /* received bytes are added to one sum per target of the flow */
    bool begins;     /* with gathers: the sums begin here, ... */
    bool ends;       /* ... or end here: the first one is the stream, others are sent */
    int from;        /* the member that sends to this task; -1: none, the sums begin
                        here */
    int sums;        /* number of partial sums received and sent */
    uint8_t *coefs;  /* factor of the stream in each sum */
    bool copies;     /* all sums equal the stream: one buffer holds them */
    int messages;    /* 1 within a chain, with all sums; one per sum at its end; none
                        while sums are gathered */
    int *to;         /* receiver of each message */
    uint64_t length; /* bytes of the stream */
} redset_task;

typedef struct redset_schedule {
    redset_flow *flow;
    int count;
    redset_task *tasks; /* in the order of (stage, flow) */
    uint64_t longest;   /* length of any task */
    int *to;            /* storage of the tasks' arrays */
    uint8_t *coefs;
} redset_schedule;

/* Allocates an empty schedule for sets of that shape, for all tasks of that number of
 * members, or for the tasks of one flow. NULL without memory. */
redset_schedule *redset_schedule_new(const redset_shape *shape, int members);
redset_schedule *redset_schedule_free(redset_schedule *schedule);

/* Fills in all tasks of some members. lost[m] != 0: members to rebuild; NULL: encode.
 * Flow i moves length[i] bytes of each stream. */
void redset_schedule_members(redset_schedule *schedule, const uint8_t lost[],
                             const uint64_t length[], int count, const int member[]);

/* Fills in the tasks of all members in one flow. */
void redset_schedule_flow(redset_schedule *schedule, const uint8_t lost[],
                          const uint64_t length[], int flow);

/* Upper bound of consecutive tasks of one stage of one piece, with that number of members
 * in a schedule, plus one. A process posts receives for this number of tasks in advance,
 * and reclaims the buffers of its sends after this number of tasks. */
int redset_schedule_reach(const redset_shape *shape, int members);

/* Upper bounds for any task: messages that it sends, and partial sums that it stores. */
int redset_schedule_messages(const redset_shape *shape);
int redset_schedule_sums(const redset_shape *shape, const uint8_t lost[]);

/* Whether flows are gathered instead of chained. */
bool redset_schedule_gathers(const redset_shape *shape, const uint8_t lost[]);

#endif
