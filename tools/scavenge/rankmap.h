/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_RANKMAP_H
#define SCAVENGE_RANKMAP_H

/* Rank filemaps: the file .scr/<rank>.scrfilemap of a staging directory lists the files
 * of one rank of a dataset (SCR Developer Guide 1.2, section 2.13.1;
 * docs/formats/scavenge.md). It is written after these files are complete. Its content is
 * untrusted, so all of it is checked. */

#include "common/errtext.h"
#include "plan/dataset.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>
#include <stdint.h>

/* The subdirectory for rank filemaps, redundancy files and containers. */
#define SCAVENGE_HIDDEN ".scr"

typedef struct scavenge_file {
    const char *name; /* relative to the directory; of a redundancy file, relative to
                       * .scr */
    bool redundancy;
    uint64_t size; /* bytes */
    uint32_t crc;  /* CRC32, if has_crc */
    bool has_crc;
    const kvtree *meta; /* all records about the file */
} scavenge_file;

typedef struct scavenge_rank {
    int rank;
    int count;
    scavenge_file *files; /* owned, with all their pointers */
    char *lacks; /* why files of the rank are missing, not recorded; NULL: none are
                  * missing */
} scavenge_rank;

/* Returns a rank without files; NULL without memory. */
scavenge_rank *scavenge_rank_new(int rank);

/* Frees a rank; accepts NULL; returns NULL. */
scavenge_rank *scavenge_rank_free(scavenge_rank *rank);

/* Adds a copy of a file. Writes name, type, size and checksum into its copy of the
 * metadata (meta may be NULL). 0, -ENOMEM, or -EINVAL for a redundancy file with an
 * invalid name. */
int scavenge_rank_add(scavenge_rank *rank, const scavenge_file *file);

/* Whether an application file may have the name: relative, without "..", and not in a
 * directory .scr. 0, or -EBADMSG with a text. */
int scavenge_check_name(const char *name, kvtree_error *err);

/* ".scr/<rank>.scrfilemap" */
#define SCAVENGE_NAME_SIZE 64
void scavenge_rank_name(int rank, char name[SCAVENGE_NAME_SIZE]);

/* The inverse, for the last component; -EINVAL for an invalid name. */
int scavenge_rank_from_name(const char *name, int *rank);

int scavenge_rank_to_tree(const scavenge_rank *rank, const scr_dataset *dataset,
                          kvtree *tree);

/* -EBADMSG with a text for an invalid tree. */
int scavenge_rank_from_tree(const kvtree *tree, scavenge_rank **rank,
                            scr_dataset *dataset, kvtree_error *err);

/* folder: the open staging directory. */
int scavenge_rank_write(int folder, const scavenge_rank *rank, const scr_dataset *dataset,
                        kvtree_error *err);
int scavenge_rank_read(int folder, int number, scavenge_rank **rank, scr_dataset *dataset,
                       kvtree_error *err);

#endif
