/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_PACK_H
#define SCAVENGE_PACK_H

/* Files that were saved, packed into containers (SCR Developer Guide 1.2, section 2.12;
 * docs/formats/rank2file.md): the bytes of all files of the application, in the order of
 * ranks, laid end to end and cut into containers of one size. */

#include "scavenge/scan.h"
#include <filo/filo.h>

/* Name of container i, below SCAVENGE_HIDDEN. */
#define SCAVENGE_CONTAINER_SIZE 40
void scavenge_container_name(uint64_t i, char name[SCAVENGE_CONTAINER_SIZE]);

/* How many containers of so many bytes (1 or more) so many bytes need. */
uint64_t scavenge_containers(uint64_t bytes, uint64_t limit);

/* Writes all containers into .scr of the folder; what is whole has its name, and is on
 * disk. They have the rights that each of the files has. A scan that is whole. 0 or
 * -errno. */
int scavenge_pack(const scavenge_folder *folder, const scavenge_scan *scan,
                  uint64_t limit, char *err);

/* Gives file, of file->size bytes that begin at offset, its segments in containers below
 * the folder `in` ("x/.scr"). 0 or -ENOMEM; filo_files_free frees them. */
int scavenge_segments(const char *in, uint64_t offset, uint64_t limit, filo_file *file);

#endif
