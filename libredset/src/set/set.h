/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SET_SET_H
#define REDSET_SET_SET_H

/* A set as its members see it, and the collective operations on all sets of an encode.
 * The MPI part wraps these operations in the public calls of redset_mpi.h; folder.c uses
 * set_recovery.h for sets within one process.
 *
 * err is not NULL. Results are the same on every process unless the transport itself
 * fails. */

#include "src/files/file_stream.h"
#include "src/header/layout.h"
#include "src/set/transport.h"

/* Default size of a sum in a message. The working set of a member then fits into the
 * second-level cache of current processors; at a quarter of that, messages cost more than
 * the cache saves. */
#define REDSET_PIECE ((size_t)512 * 1024)

/* Smaller pieces are too slow; memory for pieces of this size is always allocated. */
#define REDSET_PIECE_MIN ((size_t)4096)

/* Default size of all buffers together. */
#define REDSET_MEMORY ((size_t)8 << 20)

typedef struct redset {
    redset_transport *world;   /* all ranks of the encode */
    redset_transport *members; /* the members of this set */
    redset_layout layout;
    size_t piece;        /* maximum bytes of a sum in a message */
    size_t memory;       /* bytes of all buffers */
    bool unsynced;       /* see redset_config */
    redset_meter *meter; /* counts bytes of rebuild and verification, or NULL; not
                            owned */
    bool is_lost;        /* the redundancy file of this process counts as lost, even if a
                            file with its name exists */
} redset;

/* Sets scheme and failures of *place to the part of the wanted scheme that a set of
 * place->members members can provide. -EINVAL for more members than RS supports. */
int redset_assign_scheme(redset_scheme scheme, int failures, redset_place *place,
                         redset_error *err);

/* Each is the implementation of the public call of that name in redset_mpi.h. */
int redset_set_encode(redset *set, const char *folder, const kvtree *about, int count,
                      redset_file files[], const redset_extras *extras,
                      redset_error *err);
int redset_set_rebuild(redset *set, const char *folder, redset_manifest **manifest,
                       int *rebuilt, redset_error *err);
int redset_set_verify(redset *set, const char *folder, int *lost, redset_error *err);
int redset_set_measure(redset *set, const char *folder, redset_manifest **manifest,
                       redset_error *err);

/* The first half of redset_recover: sets layout and is_lost from the redundancy files of
 * all ranks of set->world. layout.ranks is the number of these ranks. */
int redset_set_locate(redset *set, const char *folder, const char *file,
                      redset_error *err);

#endif
