/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_FILES_REDUNDANCY_FILE_H
#define REDSET_FILES_REDUNDANCY_FILE_H

/* A redundancy file while it is written: first the header, then the redundancy data as it
 * is computed, then the header again with the checksums, which are known by then. */

#include "common/batch.h"
#include <kvtree/kvtree.h>
#include <redset/redset.h>
#include <stdbool.h>

typedef struct redset_redundancy_file {
    batch out;
    int fd;
    const char *name; /* without directories */
    bool reused;      /* written over another file, which may be longer */
    bool unsynced;    /* skip every fsync */
    uint64_t header;  /* bytes of the header */
    uint64_t data;    /* bytes of redundancy data so far */
} redset_redundancy_file;

/* Creates the file with a header that has placeholders for checksums. name stays in use.
 * A file of that name in the open directory spare (-1: none) is overwritten, if possible,
 * and is then gone from spare. */
int redset_redundancy_file_begin(int dir, const char *name, int spare, kvtree *header,
                                 redset_redundancy_file *file, redset_error *err);

/* Writes redundancy data at an offset after the header. */
int redset_redundancy_file_write(redset_redundancy_file *file, uint64_t offset,
                                 const void *buf, size_t size, redset_error *err);

/* Sets the CRC of header, if it has that key, writes the header over the first one, and
 * syncs (unless unsynced). */
int redset_redundancy_file_complete(redset_redundancy_file *file, kvtree *header,
                                    uint32_t crc, redset_error *err);

/* Clears the way for the name of the file (redset_clear_way). */
int redset_redundancy_file_clear_way(const redset_redundancy_file *file,
                                     redset_error *err);

/* Clears the way, and durably (unless unsynced) removes an earlier file of that name. */
int redset_redundancy_file_retire(const redset_redundancy_file *file, redset_error *err);

/* Gives a complete file its name. */
int redset_redundancy_file_commit(redset_redundancy_file *file, redset_error *err);

/* Removes the file unless it is committed. */
void redset_redundancy_file_abort(redset_redundancy_file *file);

#endif
