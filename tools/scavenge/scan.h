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
 * Existence and sizes of files are checked here; checksums during a rebuild. */

#include "scavenge/rankmap.h"
#include <filo/filo.h>
#include <redset/redset.h>

/* A rank, and its place in its redundancy set. */
typedef struct scavenge_member {
    redset_place place;
    int rank;
} scavenge_member;

/* Files that ranks wrote together lie here as parts, files of their own
 * (plan/part_name.h). */
typedef struct scavenge_shared_part {
    filo_segment at; /* the file, and where the bytes belong in it */
    const scavenge_file *file;
    int rank;
} scavenge_shared_part;

typedef struct scavenge_shared {
    const char *name; /* as those of other application files */
    uint64_t size;    /* bytes */
    int rank;         /* that has it in the map: that of the first part */
    int count;        /* parts, in the order of offsets */
    const scavenge_shared_part *parts;
} scavenge_shared;

typedef struct scavenge_scan {
    scr_dataset dataset;   /* scattered as the names of files imply */
    int count;             /* rank filemaps, ... */
    scavenge_rank **ranks; /* ... in the order of ranks */
    int whole;             /* ranks with all files, ... */
    long files;            /* ... their application files, ... */
    uint64_t bytes;        /* ... and the bytes of these */
    uint64_t part_bytes;   /* those of parts of shared files, ... */
    int part_count;        /* ... these ones */
    scavenge_shared_part *parts;
    int shared_count;
    scavenge_shared *shared; /* in the order of ranks */
    int members;             /* redundancy files, ... */
    scavenge_member *list;   /* ... in the order of sets and of members in a set */
    int refused;             /* unusable filemaps and redundancy files */
    kvtree_error why;        /* the reason for the first of these */
    kvtree_error conflict;   /* a contradiction between ranks; "": none */
} scavenge_scan;

typedef struct scavenge_folder {
    char *path; /* of the staging directory */
    int dir;    /* the same, open */
    int final;  /* -1, or the prefix directory, to which some files may have been renamed
                 */
} scavenge_folder;

/* Whether a file exists below the open directory, in full size; if not, why (may be
 * NULL).
 */
bool scavenge_has_file(int dir, const scavenge_file *f, kvtree_error *why);

/* Whether it is an application file that gets a name of its own: no part. */
bool scavenge_is_whole_file(const scavenge_file *f);

/* 0, and the caller calls scavenge_scan_done; -ENOENT if the directory has no valid
 * record of a rank, or another -errno, with a text. */
int scavenge_scan_read(const scavenge_folder *folder, scavenge_scan *scan,
                       kvtree_error *err);
void scavenge_scan_done(scavenge_scan *scan);

/* Lists the shared files of all ranks in the scan; for scan.c. 0 or -ENOMEM, and a
 * contradiction between ranks is noted. */
int scavenge_scan_list_shared(scavenge_scan *scan);
void scavenge_scan_drop_shared(scavenge_scan *scan);

/* Number of ranks with missing files. */
int scavenge_scan_missing(const scavenge_scan *scan);

/* Whether all files of all ranks exist and agree with the description; if not, why. */
bool scavenge_scan_is_whole(const scavenge_scan *scan, kvtree_error *why);

/* Whether all files of the rank exist. */
bool scavenge_scan_has(const scavenge_scan *scan, int rank);

/* The index after the last of the count members that are in the same set as list[i]. */
int scavenge_set_end(const scavenge_member *list, int count, int i);

/* Whether files of a rank of the set are missing; its members are first to end - 1. */
bool scavenge_set_is_incomplete(const scavenge_scan *scan, int first, int end);

/* Ids of the sets with at least one complete rank and one that is not, as filemaps list
 * their members: redundancy files of these sets help. *ids is to be freed. 0 or -ENOMEM.
 */
int scavenge_scan_repairable(const scavenge_scan *scan, int **ids, int *count);

/* The scan hash of section 2.13.2, into the empty tree. 0 or -ENOMEM. */
int scavenge_scan_to_tree(const scavenge_scan *scan, kvtree *tree);

#endif
