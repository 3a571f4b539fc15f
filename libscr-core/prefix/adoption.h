/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_ADOPTION_H
#define SCR_ADOPTION_H

/* Makes a dataset from files that already lie on the prefix directory and that this SCR
 * did not write: the files get a map and a summary, and stay where they are. */

#include "plan/dataset.h"
#include <kvtree/kvtree.h>
#include <stdint.h>

/* The parts of a dataset. */
typedef struct scr_adoption {
    int prefix;       /* the open prefix directory */
    const char *real; /* its path without links */
    int64_t shared; /* other users who may have chosen names, as from others_put_below */
    /* keys: ranks from 0; below each rank FILE/<name>, relative to the prefix directory;
     * below each name SIZE and CRC that the file must have */
    const kvtree *files;
} scr_adoption;

/* Writes the map and summary of a dataset durably. A dataset that already has both, with
 * the same id and time of creation, is unchanged.
 *
 * The caller gives id, name, creation and origin of the dataset, and optionally the
 * number of its files and their size. The function sets ranks, files, size, scattered and
 * complete.
 *
 * Names that other users may have chosen, including the name of the dataset, reach only
 * directories that these users can change themselves. The map records this permanently.
 *
 * Returns 0; -EINVAL for a name that is not allowed, or a missing rank; -EBADMSG if a
 * file is missing, is no regular file, has another size or is out of reach, if number or
 * size of the files differ from those that the caller gave, or if the directory has
 * records of another dataset, is a prefix directory or lies in another one; or -errno.
 * Errors have a text; they change nothing, except that records may be left that no index
 * names. */
int scr_adopt_files(const scr_adoption *from, scr_dataset *dataset, kvtree_error *err);

#endif
