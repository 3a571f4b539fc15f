/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_PRIVATE_H
#define FILO_PRIVATE_H

/* What the sources without MPI share. Included by filo_private_mpi.h.
 *
 *     filo_list.c       lists of files
 *     filo_map.c        the map entry of one rank: pure functions on trees
 *     filo_extract.c    filo_extract: a file from its containers
 *     filo_map_file.c   filo_map_write, filo_map_read: the map in one process
 *     filo_begun.c      unfinished flushes */

#include "common/beneath.h"
#include "common/errtext.h"
#include "src/filo_names_private.h"
#include <filo/filo.h>
#include <kvtree/kvtree.h>
#include <string.h>
#include <sys/stat.h>

/* Clears the permissions of group and others in mode that group and others do not have
 * for the container described by st: the map may come from another user. group is the
 * group of the file that is extracted from the container. */
static inline unsigned filo_limit_mode(unsigned mode, const struct stat *st, gid_t group)
{
    mode_t reader = st->st_gid == group ? S_IRGRP : S_IROTH;
    if (!(st->st_mode & reader)) mode &= ~(unsigned)S_IRWXG;
    if (!(st->st_mode & S_IROTH)) mode &= ~(unsigned)S_IRWXO;
    return mode;
}

/* Top key of the map files that list files. */
#define FILO_MAP_TOP "RANK2FILE"

/* Adds files to the entry of the rank that wrote them. 0 or -ENOMEM. */
int filo_map_fill(kvtree *entry, int count, const filo_file files[]);

/* Adds the dataset text of filo_options or filo_place, if there is one. 0 or -ENOMEM. */
int filo_map_set_dataset(kvtree *entry, const char *dataset);

/* Checks an entry that was read, including that it does not have the text of another
 * dataset (NULL: any). FILO_DAMAGED, and err names the fault. */
int filo_map_check(const kvtree *entry, const char *dataset, filo_error *err);

/* Lists the files of a checked entry, with local NULL. */
int filo_map_files(const kvtree *entry, int *count, filo_file **files);

/* Creates the directory of the map below folder, and all directories above it, where
 * missing. */
int filo_map_make_folder(const char *base, const char *folder, const char *map,
                         filo_error *err);

/* Writes the record of a flush into its open directory. The record is not synced. */
int filo_begun_write(int folder, const filo_begun *flush, filo_error *err);

/* Removes the files of a flush, and its directory, from the open directory stage. Files
 * that no flush makes stay, and the result is -ENOTEMPTY. */
int filo_begun_remove(int stage, const char *folder, filo_error *err);

#endif
