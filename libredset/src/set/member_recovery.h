/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SET_MEMBER_RECOVERY_H
#define REDSET_SET_MEMBER_RECOVERY_H

/* One member of a set while the set is verified or rebuilt. Remaining files are
 * inspected, read and verified; lost files are written under temporary names.
 *
 * A member that turns out to be lost is not an error: functions return 0, the state has
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
    int open_files;              /* maximum number of files open for reading */
    int64_t shared; /* others who can change the headers that name the files of a lost
                       member, as found by others_put_below */
    redset_meter *meter;   /* counts bytes, or NULL; not owned */
    redset_state *state;   /* not owned */
    redset_header *header; /* of a lost member: rebuilt from the headers of its
                              neighbors */
    redset_streams streams;
    redset_error reason;
} redset_member;

/* redset_member_inspect reads the header and sets the state; redset_member_check_sizes
 * compares the sizes of the files. Both are cheap. They are separate so that
 * contradictions between headers are found first. */
int redset_member_inspect(redset_member *member, redset_error *err);
int redset_member_check_sizes(redset_member *member, redset_error *err);

/* Marks the member as lost if rc (with its text in member->reason) implies a loss;
 * otherwise returns rc. */
int redset_member_lose(redset_member *member, int rc, redset_error *err);

/* redset_member_open opens the streams for reading, unless the member is lost.
 * redset_member_create creates the streams of a lost member. */
int redset_member_open(redset_member *member, redset_error *err);
int redset_member_create(redset_member *member, redset_error *err);

/* Unless the member is lost: opens the streams if necessary, reads all remaining bytes,
 * compares all checksums and closes the streams. */
int redset_member_verify(redset_member *member, redset_error *err);

/* The last steps of a created member; see redset_streams_complete. */
int redset_member_complete(redset_member *member, redset_error *err);
int redset_member_clear_way(redset_member *member, redset_error *err);
int redset_member_commit(redset_member *member, redset_error *err);

/* Closes the streams, removes temporary files, and drops a rebuilt header. */
void redset_member_reset(redset_member *member);

/* Resets the member, and frees the header. */
void redset_member_done(redset_member *member);

#endif
