/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_LAYOUT_H
#define FILO_LAYOUT_H

/* The places of bytes in containers. Either the bytes of all files, laid end to end, are
 * cut into containers of one size (SCR Developer Guide 1.2, section 2.12), or each group
 * of nodes has a container, in which the bytes of each rank begin at a multiple of an
 * alignment. Pure functions. */

#include "common/beneath.h"
#include <filo/filo.h>

typedef struct filo_layout {
    const char *map; /* containers lie beside the root of the map */
    uint64_t limit;  /* bytes per container */
    uint64_t total;  /* bytes of all files */
} filo_layout;

/* Writes the name of a container, relative to the directory. -ENAMETOOLONG. */
int filo_container_name(const char *map, uint64_t container, char name[BENEATH_NAME_MAX]);

/* 1 if name is the name of a container beside map. */
int filo_container_owns(const char *map, const char *name);

/* Number of containers, and the size of one of them. */
uint64_t filo_layout_containers(const filo_layout *layout);
uint64_t filo_layout_size(const filo_layout *layout, uint64_t container);

/* Finds the containers that begin within length bytes at offset: from *first up to, but
 * not including, *end. */
void filo_layout_begins(const filo_layout *layout, uint64_t offset, uint64_t length,
                        uint64_t *first, uint64_t *end);

/* Fills in the segments of a file of file->size bytes that begins at offset. */
int filo_layout_pack(const filo_layout *layout, uint64_t offset, filo_file *file);

/* ---- containers of nodes ---- */

/* Places count blocks of these sizes one after the other, each at a multiple of align. A
 * block without bytes takes no space. *end: end of the last block. -EFBIG beyond
 * INT64_MAX. */
int filo_layout_align(uint64_t align, int count, const uint64_t sizes[],
                      uint64_t offsets[], uint64_t *end);

/* Fills in the segment of a file of file->size bytes at offset in this container. */
int filo_layout_place(const char *map, uint64_t container, uint64_t offset,
                      filo_file *file);

#endif
