/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OWN_FILE_H
#define SCR_OWN_FILE_H

/* Whether SCR may remove what has a name on the prefix directory, outside of a directory
 * of its own. Pure functions: the name alone does not tell, as other users and programs
 * use it, too. */

#include <filo/filo.h>
#include <sys/stat.h>

/* 0 if st is the file of a map: a regular one, with its size and, if the map has one, its
 * time of change. Otherwise FILO_DAMAGED, with a text: another file has its name. */
int scr_file_compare(const filo_file *file, const struct stat *st, kvtree_error *why);

#endif
