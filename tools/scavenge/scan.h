/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_SCAN_H
#define SCAVENGE_SCAN_H

/* The content of a staging directory, to which nodes copied their parts of a dataset (SCR
 * Developer Guide 1.2, sections 2.13.2 and 2.33.7 to 2.33.9).
 *
 *     scavenge_scan scan;
 *     int rc = scavenge_scan_read(&directory, &scan, err);
 *     if (!rc && scavenge_scan_missing(&scan) == 0) ...the files of all ranks exist
 *     scavenge_scan_done(&scan);
 *
 * A scan checks the existence and sizes of files; a rebuild verifies checksums. */

#include "scavenge/rankmap.h"
#include <filo/filo.h>
#include <redset/redset.h>

/* A rank and its place in its redundancy set. */
typedef struct scavenge_member {
    redset_place place;
    int rank;
} scavenge_member;

/* A part of a file that ranks wrote together; the directory has it as a file of its own
 * (plan/part_name.h). */
typedef struct scavenge_shared_part {
    filo_segment at; /* the shared file, and the place of the bytes in it */
    const scavenge_file *file;
    int rank;
} scavenge_shared_part;

typedef struct scavenge_shared {
    const char *name; /* in the form of names of other application files */
    uint64_t size;    /* bytes */
    int rank;         /* rank that has the shared file in the map: the rank of the first
                       * part */
    int count;        /* number of parts, which are in the order of offsets */
    const scavenge_shared_part *parts;
} scavenge_shared;

typedef struct scavenge_scan {
    scr_dataset dataset;   /* scattered if the names of files imply that */
    int count;             /* rank filemaps, ... */
    scavenge_rank **ranks; /* ... in the order of ranks */
    int whole;             /* ranks with all files, ... */
    long files;            /* ... their application files, ... */
    uint64_t bytes;        /* ... and their bytes */
    uint64_t part_bytes;   /* bytes of parts of shared files, ... */
    int part_count;        /* ... which are these */
    scavenge_shared_part *parts;
    int shared_count;
    scavenge_shared *shared; /* in the order of ranks */
    int members;             /* redundancy files, ... */
    scavenge_member *list;   /* ... in the order of sets and of members in a set */
    int refused;             /* unusable filemaps and redundancy files */
    kvtree_error why;        /* the reason for the first of them */
    kvtree_error conflict;   /* a contradiction between ranks; "": none */
} scavenge_scan;

typedef struct scavenge_folder {
    char *path; /* path of the staging directory */
    int dir;    /* the same directory, open */
    int final;  /* -1, or the prefix directory, to which some files may have been renamed
                 * already */
} scavenge_folder;

/* Whether a file exists below the open directory with its full size; otherwise why, which
 * may be NULL, has the reason. */
bool scavenge_has_file(int dir, const scavenge_file *f, kvtree_error *why);

/* Whether the file is an application file and not a part, so that it gets its own
 * name. */
bool scavenge_is_whole_file(const scavenge_file *f);

/* Reads and checks the directory. 0, and the caller must call scavenge_scan_done; -ENOENT
 * if the directory has no valid record of a rank, or another -errno, with a text. */
int scavenge_scan_read(const scavenge_folder *folder, scavenge_scan *scan,
                       kvtree_error *err);
void scavenge_scan_done(scavenge_scan *scan);

/* Lists the shared files of all ranks in the scan, for scan.c. 0 or -ENOMEM; a conflict
 * between ranks is recorded. */
int scavenge_scan_list_shared(scavenge_scan *scan);
void scavenge_scan_drop_shared(scavenge_scan *scan);

/* Returns the number of ranks with missing files. */
int scavenge_scan_missing(const scavenge_scan *scan);

/* Whether all files of all ranks exist and agree with the description; otherwise why has
 * the reason. */
bool scavenge_scan_is_whole(const scavenge_scan *scan, kvtree_error *why);

/* Whether all files of the rank exist. */
bool scavenge_scan_has(const scavenge_scan *scan, int rank);

/* Returns the index after the last of the count members that are in the same set as
 * list[i]. */
int scavenge_set_end(const scavenge_member *list, int count, int i);

/* Whether files of a rank of the set are missing; its members are first to end - 1. */
bool scavenge_set_is_incomplete(const scavenge_scan *scan, int first, int end);

/* Finds the ids of the sets with at least one complete and one incomplete rank, according
 * to filemaps: redundancy files of these sets can help. *ids is to be freed. 0 or
 * -ENOMEM. */
int scavenge_scan_repairable(const scavenge_scan *scan, int **ids, int *count);

/* Writes the scan hash of section 2.13.2 to the empty tree. 0 or -ENOMEM. */
int scavenge_scan_to_tree(const scavenge_scan *scan, kvtree *tree);

#endif
