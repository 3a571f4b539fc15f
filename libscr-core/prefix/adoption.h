/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_ADOPTION_H
#define SCR_ADOPTION_H

/* Files that lie on the prefix directory already, and that this SCR did not write, become
 * a dataset: they get a map and a summary, and stay where they are. */

#include "plan/dataset.h"
#include <kvtree/kvtree.h>

/* Writes map and summary of a dataset, durably.
 *
 * prefix is the open prefix directory, real its path without links. The caller gives id,
 * name, creation and origin of the dataset, and maybe the number of its files with their
 * size; what follows from the files is filled in: ranks, files, size, scattered,
 * complete. files has the ranks as keys, 0 and on, and below each FILE/<name>: names are
 * relative to the prefix directory. SIZE and CRC below a name are what it must have.
 *
 * 0. -EINVAL for a name that is not allowed, or a rank that is missing; -EBADMSG where a
 * file is missing, no regular file, or of another size, or there are others than the
 * caller gave; or -errno. With a text, and then
 * nothing is changed but, maybe, records that no index names. */
int scr_adopt_files(int prefix, const char *real, scr_dataset *dataset,
                    const kvtree *files, kvtree_error *err);

#endif
