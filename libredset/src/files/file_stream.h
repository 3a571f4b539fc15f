/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_FILES_FILE_STREAM_H
#define REDSET_FILES_FILE_STREAM_H

/* The files of a process as one stream of bytes, split into chunks.
 *
 * The stream is the files in the order of their list, padded with zeros to chunks * chunk
 * bytes. Each chunk is read (written) from its start to its end in steps, and steps of
 * different chunks come in any order. So every byte passes once, and checksums are
 * computed on the way. */

#include "common/batch.h"
#include "src/header/list.h"

/* Limit of open files of a stream. */
enum { REDSET_OPEN_FILES = 32 };

/* Counts and reports the bytes that a process reads and writes. */
typedef struct redset_meter {
    void (*report)(void *arg, uint64_t done, uint64_t total); /* or NULL */
    void *arg;
    uint64_t done, total;
    uint64_t least; /* lower bound of the total, before all files are open */
} redset_meter;

/* meter may be NULL. */
void redset_meter_count(redset_meter *meter, uint64_t bytes);

/* The part of a file that lies in one chunk. */
typedef struct redset_segment {
    int file;
    uint64_t offset, length;
    uint32_t crc; /* of the bytes passed so far */
} redset_segment;

/* Progress within a chunk. */
typedef struct redset_chunk {
    size_t next, end; /* current segment, end of its segments */
    uint64_t done;    /* bytes done of the segment `next` */
} redset_chunk;

typedef struct redset_slot {
    int file, fd;  /* fd -1: free */
    uint64_t used; /* time of last use; the least recently used slot is closed first */
} redset_slot;

typedef struct redset_file_stream {
    int dir;
    const redset_list *list;
    redset_meter *meter; /* or NULL */
    size_t segment_count;
    redset_segment *segments;
    int chunk_count;
    redset_chunk *chunks;
    redset_slot slots[REDSET_OPEN_FILES];
    int open_files; /* number of slots used: all unless the caller reduces it */
    uint64_t clock;
    /* of a stream that is written (file_output.h): */
    bool writing;
    batch out; /* the files, in the order of the list */
} redset_file_stream;

/* Opens the files of list below dir for reading. dir and list stay in use until the end.
 * list->size is at most chunks * chunk. */
int redset_file_stream_open(int dir, const redset_list *list, int chunks, uint64_t chunk,
                            redset_file_stream **stream, redset_error *err);

/* Closes files, and removes temporary files without a final name. NULL is allowed.
 * Returns NULL. */
redset_file_stream *redset_file_stream_free(redset_file_stream *stream);

/* Reads the next size bytes of a chunk. -ESTALE if a file is shorter than listed. */
int redset_file_stream_read(redset_file_stream *stream, int chunk, void *buf, size_t size,
                            redset_error *err);

/* Writes the next size bytes of a chunk; bytes of the padding are ignored. */
int redset_file_stream_write(redset_file_stream *stream, int chunk, const void *buf,
                             size_t size, redset_error *err);

/* Reads all remaining bytes, in pieces of that size, to compute the checksums. */
int redset_file_stream_skim(redset_file_stream *stream, size_t piece, redset_error *err);

/* -ESTALE if a file that was read no longer has its listed size. */
int redset_file_stream_check_sizes(const redset_file_stream *stream, redset_error *err);

/* Called when all chunks have passed: sets the checksums of files[list->count], or
 * compares the checksums with the list (-EBADMSG). */
void redset_file_stream_set_crcs(const redset_file_stream *stream, redset_file files[]);
int redset_file_stream_compare(const redset_file_stream *stream, redset_error *err);

#endif
