/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SET_MEMBER_RECOVERY_H
#define REDSET_SET_MEMBER_RECOVERY_H

/* One member of a set while the set is verified or rebuilt. What remains of it is
 * inspected, read and verified; what is lost is written under temporary names.
 *
 * That a member turns out to be lost is not an error: functions return 0, the state has
 * the kind of loss, and reason its cause. An error is one of this process. */

#include "common/beneath.h"
#include "src/files/streams.h"
#include "src/set/plan.h"

typedef struct redset_member {
    const redset_layout *layout;
    int member;
    int dir;                     /* directory of its files; not owned */
    char name[BENEATH_NAME_MAX]; /* of the redundancy file, relative to dir */
    size_t piece;                /* bytes of a buffer for verification */
    int open_files;              /* limit of files that are read at a time */
    int64_t shared; /* others who can change the headers that name the files of a lost
                       member, as of others_put_below */
    redset_meter *meter;   /* of its bytes, or NULL; not owned */
    redset_state *state;   /* not owned */
    redset_header *header; /* of a lost member: rebuilt from those of its neighbors */
    redset_streams streams;
    redset_error reason;
} redset_member;

/* Reads the header, sets the state, and compares the sizes of the files. Both are cheap,
 * and sizes are checked separately to find contradictions between headers first. */
int redset_member_inspect(redset_member *member, redset_error *err);
int redset_member_check_sizes(redset_member *member, redset_error *err);

/* Marks the member as lost if rc (with its text in member->reason) implies that;
 * otherwise returns rc. */
int redset_member_lose(redset_member *member, int rc, redset_error *err);

/* Opens the streams for reading, unless the member is lost; or creates those of a lost
 * member. */
int redset_member_open(redset_member *member, redset_error *err);
int redset_member_create(redset_member *member, redset_error *err);

/* Unless the member is lost: opens the streams if necessary, reads all bytes that were
 * not read yet, compares all checksums and closes the streams. */
int redset_member_verify(redset_member *member, redset_error *err);

/* The last steps of a created member; see redset_streams_complete. */
int redset_member_complete(redset_member *member, redset_error *err);
int redset_member_clear_way(redset_member *member, redset_error *err);
int redset_member_commit(redset_member *member, redset_error *err);

/* Closes the streams, removes temporary files, and drops a rebuilt header. */
void redset_member_reset(redset_member *member);

/* The same, and frees the header. */
void redset_member_done(redset_member *member);

#endif
