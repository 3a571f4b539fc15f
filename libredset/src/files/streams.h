/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_FILES_STREAMS_H
#define REDSET_FILES_STREAMS_H

/* The streams of one member (flow.h) in its files: data in the protected files,
 * redundancy data in parts of the redundancy file. Each stream is read, or written, from
 * its start to its end, with checksums computed on the way. */

#include "src/files/file_stream.h"
#include "src/files/redundancy_file.h"
#include "src/header/header.h"

/* The bytes of one redundancy stream within the redundancy data. */
typedef struct redset_part {
    uint64_t offset, length, done;
    uint32_t crc; /* of the bytes passed so far */
} redset_part;

typedef struct redset_streams {
    int data, parts; /* numbers of data and redundancy streams */
    bool unchecked;  /* without checksums */
    uint64_t chunk;  /* bytes of a data stream */
    redset_file_stream *files;
    int fd;                     /* redundancy file that is read, or -1 */
    uint64_t start;             /* offset of the redundancy data in it */
    redset_redundancy_file out; /* redundancy file that is written */
    redset_part *part;
    redset_meter *meter; /* or NULL */
} redset_streams;

/* Initializes the streams of header, without files. */
int redset_streams_init(const redset_header *header, redset_streams *streams,
                        redset_error *err);

/* Opens the redundancy file name and the files of header, below dir, for reading. name
 * and header stay in use, here and below. */
int redset_streams_open(int dir, const char *name, const redset_header *header,
                        redset_streams *streams, redset_error *err);

/* Creates the redundancy file and the files under temporary names. */
int redset_streams_create(int dir, const char *name, const redset_header *header,
                          redset_streams *streams, redset_error *err);

/* Counts the bytes of the streams from now on, and adds all of them to the total of the
 * meter. */
void redset_streams_set_meter(redset_streams *streams, redset_meter *meter);

/* Closes all files, and removes files without a final name. */
void redset_streams_done(redset_streams *streams);

/* Reads or writes the next size bytes of a stream. -ESTALE if a file is shorter than its
 * header says. */
int redset_streams_read(redset_streams *streams, int stream, void *buf, size_t size,
                        redset_error *err);
int redset_streams_write(redset_streams *streams, int stream, const void *buf,
                         size_t size, redset_error *err);

/* Returns the checksum of all redundancy data, after it has passed. */
uint32_t redset_streams_crc(const redset_streams *streams);

/* Reads all remaining bytes, in pieces of that size, and compares all checksums with
 * header: -EBADMSG. Without checksums, only sizes are compared. */
int redset_streams_verify(redset_streams *streams, const char *name,
                          const redset_header *header, size_t piece, redset_error *err);

/* For created streams: completes the files if their checksums are as recorded (-EBADMSG
 * otherwise), and sets crc and size of header. */
int redset_streams_complete(redset_streams *streams, redset_header *header,
                            redset_error *err);

/* Clears the way for the names of the files (redset_clear_way). */
int redset_streams_clear_way(const redset_streams *streams, redset_error *err);

/* Gives complete files their names, the redundancy file last: without it the member
 * counts as lost. */
int redset_streams_commit(redset_streams *streams, redset_error *err);

#endif
