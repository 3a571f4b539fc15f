/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FILE_NAMES_H
#define SCR_FILE_NAMES_H

/* The files of a dataset, by name, with look-ups in a time that does not depend on their
 * number: a tree
 *
 *     <last component>/<file>/ORIG/<name at output>
 *
 * In all ways in which a name may refer to a file (plan/file_match.h), its last component
 * is that of the file, or that of the file's name at output. Pure functions. */

#include "plan/file_match.h"
#include <kvtree/kvtree.h>

/* Adds a file under its name, and under its name at output (NULL: none), whose last
 * component may be a link. Returns the tree below its name; NULL without memory. */
kvtree *scr_file_names_add(kvtree *names, const char *file, const char *orig);

bool scr_file_names_has(const kvtree *names, const char *file);

/* Finds the file that the name refers to: it is the key of *found; NULL: there is none.
 * match->files is the number of files that fit equally well. 0 or -ENOMEM. */
int scr_file_names_find(const kvtree *names, scr_file_match *match,
                        const kvtree_elem **found);

#endif
