/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PART_NAME_H
#define SCR_PART_NAME_H

/* Names of parts. A part of a file that ranks write together is a separate file in the
 * cache, "<file>.scr-part.<offset>". The name shows where the bytes of the part belong,
 * in all records that contain it. Pure functions. */

#include <filo/filo.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the name of the part of file at offset, at most INT64_MAX: 0, or
 * -ENAMETOOLONG. */
int scr_part_name(const char *file, uint64_t offset, size_t size, char *name);

/* The length of the file's name in the name of a part, and the part's offset; 0: not a
 * part. */
size_t scr_part_parse(const char *name, uint64_t *offset);

/* If a file of a flush, with name and size, is a part: fills in the place of its bytes.
 * 0, also for other files, or -ENOMEM. */
int scr_part_place(filo_file *file);

/* Whether a file of a map is a part that lies in the file it belongs to, at the offset in
 * its name. */
bool scr_part_is(const filo_file *file);

/* Remove shared files, or their parts, from the list of a map, which has both. Return the
 * number of remaining files. */
int scr_part_drop_shared(int count, filo_file *files);
int scr_part_drop_parts(int count, filo_file *files);

/* Whether no file of an application may have the name: SCR uses it itself, or it is the
 * name of a part. */
bool scr_part_name_is_reserved(const char *name);

#endif
