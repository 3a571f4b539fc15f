/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OWN_FILE_H
#define SCR_OWN_FILE_H

/* Whether SCR may remove a file on the prefix directory that is outside of SCR's own
 * directories. Pure functions. The name alone is not sufficient, because other users and
 * programs may use it, too. */

#include <filo/filo.h>
#include <stdbool.h>
#include <sys/stat.h>

/* 0 if st is the file of a map: a regular file of the size and, if the map has one, the
 * modification time in the map. Otherwise FILO_DAMAGED, with a text: another file has its
 * name. */
int scr_file_compare(const filo_file *file, const struct stat *st, kvtree_error *why);

/* Records the state of a name before the application gets its path, for the functions
 * below: its directory folder, and the file st that has the name; NULL: none. */
enum { SCR_FILE_MARK_SIZE = 160 };
void scr_file_mark(const struct stat *folder, const struct stat *st,
                   char mark[SCR_FILE_MARK_SIZE]);

/* Whether folder is still the directory of the mark. Others may have given its name to
 * another directory of the user, with a file of that name. */
bool scr_file_is_in(const char *mark, const struct stat *folder);

/* Whether st, in that directory, is a file of the user that was created or changed since
 * the mark, by its inode, size and modification time. The status change time is not used:
 * it changes when others rename the file. */
bool scr_file_is_written(const char *mark, const struct stat *folder,
                         const struct stat *st, uid_t user);

#endif
