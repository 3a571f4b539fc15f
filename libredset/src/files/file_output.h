/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_FILES_FILE_OUTPUT_H
#define REDSET_FILES_FILE_OUTPUT_H

/* Rebuilt files: a file stream that is written.
 *
 * Bytes go to temporary files at the top of the directory. Directories are created and
 * names assigned only when all files have the right checksum and are synced, so a failure
 * before that leaves nothing behind. */

#include "src/files/file_stream.h"

/* Like redset_file_stream_open, with an empty temporary file in dir for each listed file.
 */
int redset_file_output_create(int dir, const redset_list *list, int chunks,
                              uint64_t chunk, redset_file_stream **stream,
                              redset_error *err);

/* Compares each file's checksum with its list (-EBADMSG) and syncs the file. */
int redset_file_output_complete(redset_file_stream *stream, redset_error *err);

/* Renames an entry that blocks a file of that name to "<name>.<16 hex digits>.old": a
 * directory, or another kind of entry where a directory is needed. shared: others who can
 * change the list with the name (others_put_below). */
int redset_clear_way(int dir, const char *name, int64_t shared, redset_error *err);

/* Clears the way for all files. All writers of a directory do this before any file gets
 * its name, so that no new file is ever renamed. */
int redset_file_output_clear_way(const redset_file_stream *stream, redset_error *err);

/* Creates directories and gives the files their names, durably. */
int redset_file_output_commit(redset_file_stream *stream, redset_error *err);

#endif
