/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_FILO_H
#define FILO_FILO_H

/* A distributed list of files in a folder, and the map that tells whose they are.
 *
 * Each rank of a parallel program had some files, and all of them lie below one folder
 * now: each under its own name, or packed into large containers. A map in the folder
 * tells which rank wrote which files, their sizes and checksums, and where in the
 * containers they are. The map is a tree of kvtree files of at most 1 MB each
 * ("rank2file", docs/formats/rank2file.md); all names in it are relative, so that the
 * folder may be moved.
 *
 * This header is the part without MPI, for tools: the map, and files out of containers.
 * filo_mpi.h copies the files of all ranks to the folder, and back.
 *
 * Functions return 0, a negative error (-errno), or a positive verdict where one is
 * listed. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Size of every `char *err`: NULL, or a buffer of at least this many bytes that gets a
 * text for people when the function fails, and is left alone otherwise. */
#define FILO_ERROR_SIZE 512

/* Verdict: the folder does not hold what its map says, or the map is damaged; err names
 * the file. */
#define FILO_DAMAGED 1

/* Name of the root of the map below its folder, where none is given. */
#define FILO_MAP ".scr/rank2file.scr"

/* Bytes of a file that lie in a container. */
typedef struct filo_segment {
    char *container; /* name below the folder */
    uint64_t offset; /* in the container */
    uint64_t length; /* bytes */
} filo_segment;

typedef struct filo_file {
    char *local;   /* path of the rank's own copy */
    char *name;    /* below the folder, relative and without ".." */
    uint64_t size; /* bytes */
    uint32_t crc;  /* CRC32, when has_crc */
    int has_crc;
    int packed;            /* 1: in containers, not under its name. What follows is */
    unsigned mode;         /* known of packed files only: permissions, and ... */
    int segments;          /* ... number of segments, ... */
    filo_segment *segment; /* ... in whose order the bytes are those of the file */
} filo_file;

/* Frees count files with all they point to; NULL is fine; returns NULL. */
filo_file *filo_files_free(int count, filo_file *files);

#ifdef __cplusplus
}
#endif
#endif
