/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_PRIVATE_MPI_H
#define FILO_PRIVATE_MPI_H

/* What the sources of the MPI part share.
 *
 *     filo_mpi.c             the arguments of a call, checked; moving files
 *     filo_flush_mpi.c       filo_flush
 *     filo_read_map_mpi.c    filo_read_map
 *     filo_fetch_mpi.c       filo_fetch
 *     filo_names_mpi.c       no name twice
 *
 * Functions marked "collective" are entered by all ranks, whatever happened before on one
 * of them, and return the same value everywhere. All others return this rank's own result
 * and the caller agrees on it (common/agree_mpi.h) before the next step. */

#include "src/filo_private.h"

#include <filo/filo_mpi.h>
#include <kvtree/kvtree_mpi.h>
#include <mpi.h>

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

#endif
