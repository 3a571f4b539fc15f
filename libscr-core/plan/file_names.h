/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FILE_NAMES_H
#define SCR_FILE_NAMES_H

/* The files of a dataset, found by name in a time that does not depend on their number: a
 * tree
 *
 *     <last component>/<file>/ORIG/<name at output>
 *
 * All ways in which a name may refer to a file (plan/file_match.h) need the same last
 * component: of the file, or of its name at output. Pure functions. */

#include "plan/file_match.h"
#include <kvtree/kvtree.h>

/* Adds a file under its name, and under the one at output (NULL: none), which may end in
 * links. The tree below its name, NULL without memory. */
kvtree *scr_file_names_add(kvtree *names, const char *file, const char *orig);

bool scr_file_names_has(const kvtree *names, const char *file);

/* The file that the name means: *found has it as its key; NULL: there is none.
 * match->files says whether it is the only one. 0 or -ENOMEM. */
int scr_file_names_find(const kvtree *names, scr_file_match *match,
                        const kvtree_elem **found);

#endif
