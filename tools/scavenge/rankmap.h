/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_RANKMAP_H
#define SCAVENGE_RANKMAP_H

/* Rank filemaps: what was saved of one rank of a dataset, in the file
 * .scr/<rank>.scrfilemap of the folder to which it was saved (SCR Developer Guide 1.2,
 * section 2.13.1; docs/formats/scavenge.md). It is written when all of its files are
 * there. Such a file may be anybody's: all in it is checked. */

#include "common/errtext.h"
#include "plan/dataset.h"
#include <kvtree/kvtree.h>
#include <stdint.h>

/* The folder of rank filemaps and redundancy files. */
#define SCAVENGE_HIDDEN ".scr"

typedef struct scavenge_file {
    const char *name; /* of the application: below the folder; otherwise in .scr */
    int redundancy;   /* 1: it is a redundancy file */
    uint64_t size;    /* bytes */
    uint32_t crc;     /* CRC32, when has_crc */
    int has_crc;
    const kvtree *meta; /* all that is recorded of it */
} scavenge_file;

typedef struct scavenge_rank {
    int rank;
    int count;
    scavenge_file *files; /* with all that they point to */
    char *lacks;          /* not in the file: why the rank is not whole; NULL: it is */
} scavenge_rank;

/* Frees it, NULL is fine; returns NULL. */
scavenge_rank *scavenge_rank_free(scavenge_rank *rank);

/* One without files; NULL without memory. */
scavenge_rank *scavenge_rank_new(int rank);

/* Adds a copy of a file. What is known of it becomes part of its meta data (which may be
 * NULL). 0, -ENOMEM, or -EINVAL for a redundancy file with another name than these have.
 */
int scavenge_rank_add(scavenge_rank *rank, const scavenge_file *file);

/* 0, or -EBADMSG with a text, for a name that a file of an application cannot have: one
 * that leads out of its folder, or into a folder .scr. */
int scavenge_check_name(const char *name, char *err);

/* "<rank>.scrfilemap" below the folder. */
#define SCAVENGE_NAME_SIZE 64
void scavenge_rank_name(int rank, char name[SCAVENGE_NAME_SIZE]);

/* The other way round, from the last component; -EINVAL for any other name. */
int scavenge_rank_from_name(const char *name, int *rank);

int scavenge_rank_to_tree(const scavenge_rank *rank, const scr_dataset *dataset,
                          kvtree *tree);

/* -EBADMSG with a text for a tree that cannot be one. */
int scavenge_rank_from_tree(const kvtree *tree, scavenge_rank **rank,
                            scr_dataset *dataset, char *err);

/* Below the open folder. */
int scavenge_rank_write(int folder, const scavenge_rank *rank, const scr_dataset *dataset,
                        char *err);
int scavenge_rank_read(int folder, int number, scavenge_rank **rank, scr_dataset *dataset,
                       char *err);

#endif
