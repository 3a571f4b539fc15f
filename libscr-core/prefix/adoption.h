/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_ADOPTION_H
#define SCR_ADOPTION_H

/* Files that lie on the prefix directory already, and that this SCR did not write, become
 * a dataset: they get a map and a summary, and stay where they are. */

#include "plan/dataset.h"
#include <kvtree/kvtree.h>
#include <stdint.h>

/* What a dataset is made of. */
typedef struct scr_adoption {
    int prefix;          /* the open prefix directory */
    const char *real;    /* its path without links */
    int64_t shared;      /* others who may have chosen names, as of others_put_below */
    const kvtree *files; /* has the ranks as keys, 0 and on, and below each FILE/<name>:
                            names are relative to the prefix directory. SIZE and CRC below
                            a name are what it must have */
} scr_adoption;

/* Writes map and summary of a dataset, durably. A dataset that has both already, of that
 * id and time of creation, stays as it is.
 *
 * The caller gives id, name, creation and origin of the dataset, and maybe the number of
 * its files with their size; what follows from the files is filled in: ranks, files,
 * size, scattered, complete.
 *
 * Names that others may have chosen, that of the dataset among them, reach only
 * directories that these can change themselves; the map says so for good.
 *
 * 0. -EINVAL for a name that is not allowed, or a rank that is missing; -EBADMSG where a
 * file is missing, no regular file, of another size or out of reach, there are others
 * than the caller gave, the directory has records of another dataset, or is a prefix
 * directory or in another one; or -errno. With a text, and then
 * nothing is changed but, maybe, records that no index names. */
int scr_adopt_files(const scr_adoption *from, scr_dataset *dataset, kvtree_error *err);

#endif
