/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_PRIVATE_H
#define FILO_PRIVATE_H

/* What the sources of libfilo share.
 *
 *     filo.c             the arguments of a call, checked; moving files by libaxl-lite
 *     filo_flush.c       filo_flush        filo_map_write.c   the map, from all ranks
 *     filo_fetch.c       filo_fetch        filo_map_read.c    filo_read_map
 *     filo_names.c       no name twice
 *     filo_map.c         the contents of one map file: pure functions on trees
 *
 * Functions marked "collective" are entered by all ranks, whatever happened before on one
 * of them, and return the same value everywhere. All others return this rank's own result
 * and the caller agrees on it (common/agree_mpi.h) before the next step. */

#include "common/beneath.h"
#include "common/errtext.h"
#include <filo/filo.h>
#include <kvtree/kvtree.h>
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
    uint64_t map_limit;
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

/* ---- one map file ---- */

/* Most levels that are believed: with two files below each, 2^32 ranks. */
#define FILO_LEVEL_MAX 32

/* Largest map file that is read: what one rank may have said about its files. */
#define FILO_MAP_FILE_MAX ((off_t)1 << 30)

/* What a file needs besides its items: 24 bytes of header and checksum, and the packed
 * keys RANK2FILE, LEVEL, RANKS and RANK with two numbers and their counts. */
#define FILO_MAP_OVERHEAD 128

typedef struct filo_map_part {
    int level;
    int ranks;     /* below this part of the map */
    kvtree *items; /* rank -> entry (level 0) or pointer (above) */
} filo_map_part;

/* Name of the file at level that rank wrote, beside map: ".scr/rank2file.0.3.scr". */
int filo_map_name(const char *map, int level, int rank, char name[BENEATH_NAME_MAX]);

/* 1 if name is that of the map or may be that of one of its files. */
int filo_map_owns(const char *map, const char *name);

/* Bytes that a pointer to a file of this map may need, with its key. */
uint64_t filo_map_pointer_max(const char *map);

/* An item: what a rank wrote, or where to read on. NULL without memory. */
kvtree *filo_map_entry(int count, const filo_file files[]);
kvtree *filo_map_pointer(const char *name);

/* The tree of a file with these items, which it takes over; NULL without memory, items
 * freed. */
kvtree *filo_map_make(int level, int ranks, kvtree *items);

/* Checks the tree of a file completely, and takes the items out of it. level -1: that of
 * a root. FILO_DAMAGED, and err says what is wrong. */
int filo_map_take(kvtree *tree, int level, filo_map_part *part, char *err);

/* Files of a checked entry, local being NULL. */
int filo_map_files(const kvtree *entry, int *count, filo_file **files);

/* Name of the lower file in a checked pointer. */
const char *filo_map_lower(const kvtree *pointer);

/* ---- all of them ---- */

/* Collective, agreed. Writes the map of count files of this rank: the lowest level first,
 * the root last. */
int filo_map_write(filo_job *job, int count, const filo_file files[]);

#endif
