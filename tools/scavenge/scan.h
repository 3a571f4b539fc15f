/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_SCAN_H
#define SCAVENGE_SCAN_H

/* What was saved of a dataset: the folder to which nodes copied their parts of it, read
 * by one process (SCR Developer Guide 1.2, section 2.13.2 and 2.33.7 to 2.33.9).
 *
 *     scavenge_scan scan;
 *     int rc = scavenge_scan_read(&place, &scan, err);
 *     if (!rc && scavenge_scan_missing(&scan) == 0) ...all files of all ranks are there
 *     scavenge_scan_done(&scan);
 *
 * Files are compared with their sizes; checksums are read when something is rebuilt. */

#include "scavenge/rankmap.h"

/* A member of a redundancy set whose redundancy file is there. */
typedef struct scavenge_member {
    int member; /* its place in the set */
    int rank;
} scavenge_member;

typedef struct scavenge_set {
    int id;
    int scheme;  /* of redset.h */
    int members; /* of the set */
    int count;   /* of those whose redundancy files are there */
    scavenge_member *list;
} scavenge_set;

typedef struct scavenge_scan {
    scr_dataset dataset;   /* scattered as the files say */
    int count;             /* ranks of which there is a filemap, ... */
    scavenge_rank **ranks; /* ... in their order */
    int whole;             /* those of which all files are there */
    int files;             /* files of the application, of these ranks, ... */
    uint64_t bytes;        /* ... and their bytes */
    int sets;
    scavenge_set *set;           /* in the order of their ids */
    int refused;                 /* filemaps and redundancy files that cannot be used */
    char why[ERRTEXT_SIZE];      /* of the first of these */
    char conflict[ERRTEXT_SIZE]; /* why the ranks contradict each other; "": they don't */
} scavenge_scan;

/* Where to look. */
typedef struct scavenge_folder {
    const char *path; /* the folder */
    int dir;          /* the same, open */
    int final; /* -1, or the open folder in which some files may have their place already,
                  under the same names */
} scavenge_folder;

/* 0, and the caller calls scavenge_scan_done; -ENOENT where there is nothing of any rank,
 * or -errno, with a text. */
int scavenge_scan_read(const scavenge_folder *folder, scavenge_scan *scan, char *err);
void scavenge_scan_done(scavenge_scan *scan);

/* Ranks that lack a file. */
int scavenge_scan_missing(const scavenge_scan *scan);

/* 1 if all files of all ranks are there, and they are those of the description;
 * otherwise why not, for people. */
int scavenge_scan_is_whole(const scavenge_scan *scan, char why[ERRTEXT_SIZE]);

/* 1 if all files of the rank are there. */
int scavenge_scan_has(const scavenge_scan *scan, int rank);

/* 1 if something of the set was not saved whole. */
int scavenge_set_lacks(const scavenge_scan *scan, const scavenge_set *set);

/* The ids of sets of which a member is not whole while another is, by the filemaps: whose
 * redundancy files are of use. *ids is to be freed. 0 or -ENOMEM. */
int scavenge_scan_wanting(const scavenge_scan *scan, int **ids, int *count);

/* The scan hash of section 2.13.2, as an empty tree gets it. 0 or -ENOMEM. */
int scavenge_scan_to_tree(const scavenge_scan *scan, kvtree *tree);

#endif
