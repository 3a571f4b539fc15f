/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_FILO_H
#define FILO_FILO_H

/* A distributed list of files in a directory, and the map from files to ranks.
 *
 * Each rank of a parallel program had some files, and all of them lie below one directory
 * now: each under its own name, or packed into large containers. A map in the directory
 * tells which rank wrote which files, their sizes and checksums, and where in the
 * containers they are. The map is a tree of kvtree files of at most 1 MB each
 * ("rank2file", docs/formats/rank2file.md); all names in it are relative, so that the
 * directory may be moved.
 *
 * This header is the part without MPI, for tools: the map, and files out of containers.
 * filo_mpi.h copies the files of all ranks to the directory, and back.
 *
 * Functions return 0, a negative error (-errno), or a positive verdict where one is
 * listed. */

#include <filo/filo_names.h>
#include <kvtree/kvtree_error.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The text of a failure: a struct with the member char text[512]. Every `filo_error *err`
 * is NULL, or gets a text for people when the function fails, and is unchanged otherwise.
 */
typedef kvtree_error filo_error;

/* Verdict: the directory does not hold what its map says, or the map is damaged; err
 * names the file. */
#define FILO_DAMAGED 1

/* Default name of the root of the map below its directory, and of the stage beside it. */
#define FILO_MAP ".scr/rank2file.scr"
#define FILO_STAGE ".scr/stage"

/* Bytes of a file that lie in a container. */
typedef struct filo_segment {
    char *container; /* name below the directory */
    uint64_t offset; /* in the container */
    uint64_t length; /* bytes */
} filo_segment;

typedef struct filo_file {
    char *local; /* path of the rank's own copy */
    char *name;  /* relative to the directory, shorter than 1024 bytes, without empty, "."
                  * and ".." components and control characters */
    uint64_t size; /* bytes */
    uint32_t crc;  /* CRC32, when has_crc */
    int has_crc;
    int packed;    /* 1: in containers, not under its name; in a flush: in files that
                    * ranks write together, at the segments given. What follows is */
    unsigned mode; /* known of packed files only: permissions, and ... */
    int segments;  /* ... number of segments, ... */
    filo_segment *segment; /* ... the bytes of the file in this order */
    int64_t mtime; /* of files that are not packed, when has_mtime: time of the last
                      change when the map was written, nanoseconds since 1970 */
    int has_mtime;
    unsigned group; /* for the library: the group that mode is meant for */
    int rank;       /* that wrote it: set by filo_read_map, and read with `ranks` of
                       filo_options */
    int shared; /* in a map: ranks wrote it together, and its bytes are those of packed
                   files; filo_fetch leaves it out */
    int64_t others; /* who else may have chosen the name, as in `shared` of filo_target: a
                       map that was made of records of others says so for good */
} filo_file;

/* Frees count files with all they point to; NULL is fine; returns NULL. */
filo_file *filo_files_free(int count, filo_file *files);

/* Takes the time of its last change into file. */
void filo_file_note_time(filo_file *file, const struct stat *st);

/* 1 when a file that is not packed has another time than its map says: it was written
 * since, or copied without its time. Then only a checksum tells whether it has the bytes
 * that it had. 0 also where the map has no time of it. */
int filo_file_was_written(const filo_file *file, const struct stat *st);

/* ---- the map, written and read by one process ----
 *
 * What filo_flush writes, filo_map_read reads; what filo_map_write writes, filo_read_map
 * reads. Ranks come and go one by one, and memory is needed for what one file of each
 * level of the map holds, not for all ranks. */

typedef struct filo_place {
    const char *folder; /* links on the way to it are followed, none below it */
    const char
        *base; /* NULL, or a directory that is there and that directory lies below, and
                  begins with: then links are followed on the way to base only */
    const char *map; /* name of the root of the map below folder; NULL: FILO_MAP */
    size_t limit;    /* writing: most bytes per map file; 0: 1 MB. A rank with a
                        longer list gets a larger file, and a file above the lowest
                        level holds at least two names, whatever the limit */
    const int *dir;  /* NULL, or the open directory of the map: links and later exchanges
                        of directories on the way to it have no effect */
    size_t skip;     /* with dir: bytes of map that lead to it, "x/" of "x/map" */
    const char *dataset; /* NULL, or a short text that tells the dataset from others:
                            written to the map; a map that has another one is damaged */
} filo_place;

/* Tells the *count files of rank, which must stay until the next call; local is not
 * looked at. 0, or what ends the writing, which passes it on with err. */
typedef int filo_map_give(void *arg, int rank, int *count, const filo_file **files,
                          filo_error *err);

/* Takes the files of rank, local being NULL; they are gone after the return. 0, or what
 * ends the reading, which passes it on with err. */
typedef int filo_map_take(void *arg, int rank, int count, const filo_file files[],
                          filo_error *err);

/* Writes the map of a directory where the files of `ranks` ranks (1 or more) are, asking
 * for those of rank 0, 1, ... in turn. The directory and that of the map are made where
 * missing; the files themselves are not looked at.
 *
 * -EINVAL, with the rank, for a name that is not allowed or belongs to the map, and for
 * segments that are not the file; -EEXIST when a rank gives a name twice. Two ranks with
 * the same name are not noticed.
 *
 * An earlier map is removed before the first file is written, and the root of the new one
 * comes last: after a crash, or a failure, of give too, there is the earlier map, or
 * none, or the new one. */
int filo_map_write(const filo_place *to, int ranks, filo_map_give *give, void *arg,
                   filo_error *err);

/* Reads the map. Ranks come in the order of its files, in which one with a long list is
 * later than its neighbours; take may be NULL, to see that all is whole. On success take
 * had each rank below *ranks (unless ranks is NULL, their number) once.
 *
 * Without a map: -ENOENT. FILO_DAMAGED when it is not whole or contradicts itself, which
 * may be found at the end only: take may have had any of the ranks before. Whether the
 * files are there is another question. */
int filo_map_read(const filo_place *from, int *ranks, filo_map_take *take, void *arg,
                  filo_error *err);

/* Reads the entry of one rank, and as little else as is needed to find it: take has it
 * once. *ranks as in filo_map_read; -ENOENT also where the map has no such rank. What is
 * not read is not checked. */
int filo_map_read_rank(const filo_place *from, int rank, int *ranks, filo_map_take *take,
                       void *arg, filo_error *err);

/* ---- flushes that have begun and not ended ---- */

/* How a flush packs files; all zeros: each lies under its name. */
typedef struct filo_form {
    uint64_t container; /* these are as in filo_options */
    uint64_t align;
    unsigned nodes; /* 0 without align */
} filo_form;

/* A flush writes below a directory of its own in the stage, which it removes at its end.
 * A flush that was interrupted is what remains there. */
typedef struct filo_begun {
    const char *identity; /* that of its filo_options; "" where its record cannot be used
                             and it cannot be resumed */
    filo_form form;       /* the same */
} filo_begun;

/* 1: it stays; 0: it is removed. */
typedef int filo_begun_keep(void *arg, const filo_begun *flush);

/* Presents every flush in the stage, a directory below the open directory dir, to keep,
 * and removes those that are not kept; keep NULL: all. 0 also without a stage. A flush
 * that cannot be read now (no permission, a failing disk) stays; the first error is
 * returned. That of another user is private, stays, and is no error unless keep is NULL.
 * A flush that is removed while it still runs fails, and writes no other file. Serial. */
int filo_begun_sweep(int dir, const char *stage, filo_begun_keep *keep, void *arg,
                     filo_error *err);

/* ---- files out of containers ---- */

/* Verdict: a file with that size and checksum is there, and stays as it is. */
#define FILO_THERE 3

/* Where a file is to be put. */
typedef struct filo_target {
    int dir; /* an open directory */
    const char
        *name;   /* below it; missing directories are made, and no link is followed */
    int replace; /* anything else of that name but a directory is replaced; otherwise it
                    is -EEXIST */
    int64_t shared; /* others who may change the map, which lies below dir: 0, none; the
                       id of a group plus 1; 2^40 more, together with the access control
                       list of dir; INT64_MAX, everybody. It is -EPERM where they may not
                       change the directory of the file. */
    int has_group;  /* group permissions of a file that is not packed are meant for this
                       group, not for that of the file */
    unsigned group;
} filo_target;

/* Copies one file of a map to a place of its own: from its segments below the open
 * directory dir, or, if it is not packed, from its name there. Each byte is read once,
 * size and, if the map has it, CRC32 are checked on the way, and the copy appears whole
 * and durably: after a crash there is at most a file ".<16 hex digits>.tmp" beside it.
 * Its mode is that of the map (0: 0600), where others may read all of its containers, or
 * of the file that is not packed; in another group than that, group and others get what
 * both had. Without `to` (NULL) the file is only read and checked, without a checksum
 * also by its time; of one that ranks wrote together, the bytes of which are those of
 * others in the map, only the size.
 *
 * FILO_DAMAGED, with nothing written, when a container is missing, too short or no
 * regular file, or the bytes are not those of the map; err names the container. */
int filo_extract(int dir, const filo_file *file, const filo_target *to, filo_error *err);

/* filo_extract, which has report called after each few bytes: done of the total bytes of
 * the file. It calls nothing of this library. */
int filo_extract_with(int dir, const filo_file *file, const filo_target *to,
                      void (*report)(void *arg, uint64_t done, uint64_t total), void *arg,
                      filo_error *err);

#ifdef __cplusplus
}
#endif
#endif
