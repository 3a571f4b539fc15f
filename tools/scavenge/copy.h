/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_COPY_H
#define SCAVENGE_COPY_H

/* Copies one node's part of a dataset from its cache to the staging directory (SCR
 * Developer Guide 1.2, section 2.33.3). Each file has a temporary name until it is
 * complete; its checksum is verified during the copy. The filemap of a rank follows its
 * files. An existing file with the same checksum stays. */

#include "scavenge/node.h"

/* What to copy. */
typedef struct scavenge_wish {
    int dset;
    int64_t created; /* the creation time of the dataset; 0: the newest dataset with the
                      * id */
    bool files;      /* application files and filemaps */
    bool redundancy; /* redundancy files, of ... */
    const int *sets; /* ... these sets; NULL: all sets */
    int set_count;
    int width; /* ranks in parallel */
    int stop;  /* 1: ends transfers of scr_transfer for saved ranks */
} scavenge_wish;

typedef struct scavenge_copied {
    scr_dataset dataset;
    int ranks;        /* ranks with all wanted files in the staging directory: ... */
    int files;        /* ... these files, ... */
    uint64_t bytes;   /* ... and their bytes */
    int failed;       /* ranks with a file that could not be copied */
    int code;         /* error of the first of these ranks, ... */
    kvtree_error why; /* ... and the reason */
} scavenge_copied;

/* Copies the wished files. 0 even if some ranks failed; -ENOENT if the cache has nothing
 * of the dataset; -ESTALE if the prefix directory has a newer dataset of its name; or
 * another -errno if nothing could be copied, with a text. prefix is the open prefix
 * directory. */
int scavenge_copy(const scavenge_node *node, int prefix, const scavenge_wish *wish,
                  scavenge_copied *copied, kvtree_error *err);

#endif
