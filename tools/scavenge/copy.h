/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_COPY_H
#define SCAVENGE_COPY_H

/* One node's part of a dataset goes from its cache to the prefix folder (SCR Developer
 * Guide 1.2, section 2.33.3): each file under a temporary name until it is whole, with
 * its checksum compared on the way, and then the filemap of its rank. A file that is
 * there already with the same checksum stays. */

#include "scavenge/node.h"

/* What to copy. */
typedef struct scavenge_wish {
    int dset;
    int64_t created; /* only the dataset of that id that was made then; 0: the newest */
    int files;       /* 1: files of the application, and filemaps */
    int redundancy;  /* 1: redundancy files, of ... */
    const int *sets; /* ... these sets; NULL: of all */
    int set_count;
    int width; /* ranks at a time */
    int stop;  /* 1: ends what scr_transfer still copies for ranks that are saved */
} scavenge_wish;

typedef struct scavenge_copied {
    scr_dataset dataset;    /* what was copied of */
    int ranks;              /* of which all that was wanted is on the prefix folder now */
    int files;              /* that are there, ... */
    uint64_t bytes;         /* ... and their bytes */
    int failed;             /* ranks of which something could not be copied */
    int code;               /* of the first of them, ... */
    char why[ERRTEXT_SIZE]; /* ... and why */
} scavenge_copied;

/* Copies. 0 also when some ranks failed; -ENOENT when the cache has nothing of that
 * dataset; -ESTALE when the prefix folder has a newer one of its name; or another -errno
 * where nothing could be copied, with a text. prefix is the open prefix folder. */
int scavenge_copy(const scavenge_node *node, int prefix, const scavenge_wish *wish,
                  scavenge_copied *copied, char *err);

/* The newest description of a dataset in the cache; -ENOENT. */
int scavenge_newest(const scavenge_node *node, int dset, scr_dataset *dataset);

#endif
