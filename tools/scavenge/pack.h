/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_PACK_H
#define SCAVENGE_PACK_H

/* Makes large files from the files of a staging directory (docs/formats/rank2file.md).
 * Parts of files that ranks wrote together are joined. The other application files of all
 * ranks may be packed into containers (SCR Developer Guide 1.2, section 2.12): in the
 * order of ranks they form one stream of bytes, which is cut into containers of equal
 * size. */

#include "scavenge/scan.h"
#include <filo/filo.h>

/* The name of container i, relative to SCAVENGE_HIDDEN. */
#define SCAVENGE_CONTAINER_SIZE 40
void scavenge_container_name(uint64_t i, char name[SCAVENGE_CONTAINER_SIZE]);

/* Writes each shared file under its name below the directory, and all containers, of
 * `limit` bytes (0: none), into its .scr. Each output gets its name when it is complete
 * and synced. It has the permissions that every file in it has. The scan must be whole. 0
 * or -errno. */
int scavenge_pack(const scavenge_folder *folder, const scavenge_scan *scan,
                  uint64_t limit, kvtree_error *err);

/* Sets the segments of a file of file->size bytes that begins at `offset` of the stream;
 * `in` is the directory of containers ("x/.scr"). 0 or -ENOMEM; filo_files_free frees the
 * segments. */
int scavenge_segments(const char *in, uint64_t offset, uint64_t limit, filo_file *file);

#endif
