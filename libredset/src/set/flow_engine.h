/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SET_FLOW_ENGINE_H
#define REDSET_SET_FLOW_ENGINE_H

/* Executes the flows of a set: reads, adds, sends and writes the streams of the local
 * members, piece by piece. Buffers follow from piece and memory of the set. */

#include "src/codec/schedule.h"
#include "src/files/streams.h"
#include "src/set/set.h"

/* One local member: its streams and its first error. */
typedef struct redset_port {
    redset_streams *streams;
    int rc;
    redset_error *err; /* for the text of rc */
} redset_port;

typedef struct redset_engine redset_engine;

/* Creates an engine for an encode (lost NULL) or for the rebuild of the lost members;
 * set, lost and length stay in use. Flow i moves length[i] bytes of each stream. After
 * this, only I/O and the transport can fail. */
int redset_engine_new(const redset *set, const uint8_t lost[], const uint64_t length[],
                      redset_engine **engine, redset_error *err);

/* Collective over the set. port has one element for each local member. A member that
 * fails sets rc in its port and sends zeros from then on; the other members do not
 * notice. */
void redset_engine_run(redset_engine *engine, redset_port port[]);

redset_engine *redset_engine_free(redset_engine *engine);

#endif
