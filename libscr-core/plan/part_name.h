/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PART_NAME_H
#define SCR_PART_NAME_H

/* Names of parts. A part of a file that ranks write together is a file of its own in the
 * cache, "<file>.scr-part.<offset>": the name tells where its bytes belong, and so do all
 * records that have it. Pure functions. */

#include <filo/filo.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Name of the part of file at offset, at most INT64_MAX: 0, or -ENAMETOOLONG. */
int scr_part_name(const char *file, uint64_t offset, size_t size, char *name);

/* The length of the file's name in that of a part, and the offset; 0: it is no part. */
size_t scr_part_parse(const char *name, uint64_t *offset);

/* Fills in a file of a flush, with name and size, that is a part: where its bytes go. 0,
 * also for other files, or -ENOMEM. */
int scr_part_place(filo_file *file);

/* Whether a file of a map is a part, which lies in the file that it is of, at the offset
 * that its name tells. */
bool scr_part_is(const filo_file *file);

/* Takes shared files, or their parts, out of a list that a map has, which has both.
 * Returns the number of files that stay. */
int scr_part_drop_shared(int count, filo_file *files);
int scr_part_drop_parts(int count, filo_file *files);

/* Whether no file of an application may have the name: SCR gives it itself, or it is that
 * of a part. */
bool scr_part_name_is_reserved(const char *name);

#endif
