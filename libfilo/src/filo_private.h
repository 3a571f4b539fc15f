/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_PRIVATE_H
#define FILO_PRIVATE_H

/* What the sources of libfilo share.
 *
 *     filo.c             the arguments of a call, checked; moving files by libaxl-lite
 *     filo_flush.c       filo_flush
 *     filo_read_map.c    filo_read_map
 *     filo_fetch.c       filo_fetch
 *     filo_names.c       no name twice
 *     filo_map.c         what the map says about one rank: pure functions on trees
 *
 * Functions marked "collective" are entered by all ranks, whatever happened before on one
 * of them, and return the same value everywhere. All others return this rank's own result
 * and the caller agrees on it (common/agree_mpi.h) before the next step. */

#include "common/beneath.h"
#include "common/errtext.h"
#include <filo/filo.h>
#include <kvtree/kvtree_mpi.h>
#include <mpi.h>
#include <stdint.h>

/* ---- a call ---- */

typedef struct filo_job {
    MPI_Comm comm;
    int rank, size;
    const char *folder; /* links on the way to it are followed, none below it */
    const char *map;    /* name of the root of the map below folder */
    const char *method;
    int checksum;
    size_t map_limit;
    int dir;                 /* folder, once open; else -1 */
    char text[ERRTEXT_SIZE]; /* why a step failed: the err of all inner functions */
} filo_job;

/* Takes over the arguments, map and options with their defaults, and checks them. */
int filo_job_begin(filo_job *job, MPI_Comm comm, const char *folder, const char *map,
                   const filo_options *options);

/* Opens the folder. */
int filo_job_open(filo_job *job);

/* Checks each file before any of them is copied: what is wrong is not found halfway. */
int filo_list_check(filo_job *job, int count, const filo_file files[],
                    int (*check)(filo_job *, const filo_file *));

/* Closes the folder; passes on rc and, if that is not 0, the text. */
int filo_job_end(filo_job *job, int rc, char *err);

/* Moves files from local to the folder, or back, by the job's method. result gets the
 * size and, with checksum, the CRC32 of each as it passed by. */
enum filo_direction { FILO_OUT, FILO_IN };
int filo_move(filo_job *job, enum filo_direction direction, int checksum, int count,
              const filo_file files[], filo_file result[]);

/* Collective, agreed. -EEXIST when a name is in the lists of two ranks, or twice in one.
 */
int filo_names_compare(filo_job *job, int count, const filo_file files[]);

/* ---- the map ---- */

/* Where the map is, for libkvtree, which writes and reads it. */
kvtree_gather filo_map_place(const filo_job *job);

/* The entry of a rank that wrote these files; NULL without memory. */
kvtree *filo_map_entry(int count, const filo_file files[]);

/* Checks an entry that was read. FILO_DAMAGED, and err says what is wrong. */
int filo_map_check(const kvtree *entry, char *err);

/* Files of a checked entry, local being NULL. */
int filo_map_files(const kvtree *entry, int *count, filo_file **files);

#endif
