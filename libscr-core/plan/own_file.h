/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OWN_FILE_H
#define SCR_OWN_FILE_H

/* Whether SCR may remove what has a name on the prefix directory, outside of a directory
 * of its own. Pure functions: the name alone does not tell, as other users and programs
 * use it, too. */

#include <filo/filo.h>
#include <stdbool.h>
#include <sys/stat.h>

/* 0 if st is the file of a map: a regular one, with its size and, if the map has one, its
 * time of change. Otherwise FILO_DAMAGED, with a text: another file has its name. */
int scr_file_compare(const filo_file *file, const struct stat *st, kvtree_error *why);

/* What a name had before the application got its path, for the functions below: folder,
 * the directory of it, has st there; NULL: nothing. */
enum { SCR_FILE_MARK_SIZE = 160 };
void scr_file_mark(const struct stat *folder, const struct stat *st,
                   char mark[SCR_FILE_MARK_SIZE]);

/* Whether folder is still that directory. Others may have given its name to another one
 * of the user's, with a file of that name. */
bool scr_file_is_in(const char *mark, const struct stat *folder);

/* Whether st, in that directory, is a file of the user that was made or changed since.
 * Its inode, size and time tell: not its time of status change, because others who give
 * the file another name change that one. */
bool scr_file_is_written(const char *mark, const struct stat *folder,
                         const struct stat *st, uid_t user);

#endif
