/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_NAMES_H
#define SCR_NAMES_H

/* The names of all datasets that the index of a prefix folder has, once more: lines at
 * the end of .scr/datasets, "+NAME" before a name enters the index, "-NAME" when it has
 * left it. Should the index be lost, they tell where to look, so that nobody has to walk
 * through a folder of millions of files (docs/formats/scr.md). Each line has a checksum
 * of itself and of that of the line before, so that lines that are missing are missed.
 * What cannot be understood is passed over: a damage costs the names that it hit. */

#include <kvtree/kvtree.h>

#define SCR_NAMES_NAME ".scr/datasets"

/* Longest file that is read. */
#define SCR_NAMES_MAX (64 << 20)

/* Adds a line, durably. entered: 1 or 0. */
int scr_names_add(int prefix, const char *name, int entered, char *err);

/* Puts the names that are in the index into the tree, as keys. -ENOENT without such a
 * file, or one without lines; -EFBIG if it is too long; -EBADMSG if it was damaged, and
 * the tree then has the names that are left. */
int scr_names_read(int prefix, kvtree *names, char *err);

/* At the start of a run, with the names that its index has, as keys: writes a list anew
 * that was damaged or has far more lines than names. 0; 1 when it was damaged, which text
 * tells; or -errno. Without a list there is nothing to do. A line that somebody adds at
 * this very moment may get lost. */
int scr_names_tidy(int prefix, const kvtree *indexed, char *text);

#endif
