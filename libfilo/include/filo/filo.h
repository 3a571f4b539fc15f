/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_FILO_H
#define FILO_FILO_H

/* A distributed list of files in a directory, and the map from files to ranks.
 *
 * Each rank of a parallel program wrote some files, and all of them lie below one
 * directory now: each under its own name, or packed into large containers. A map in the
 * directory records which rank wrote which files, their sizes and checksums, and their
 * places in the containers. The map is a tree of kvtree files of at most 1 MB each
 * ("rank2file", docs/formats/rank2file.md). All names in it are relative, so that the
 * directory can be moved.
 *
 * This header is the part without MPI, for tools: it reads and writes maps, and extracts
 * files from containers. filo_mpi.h copies the files of all ranks to the directory and
 * back.
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
 * is NULL, or receives a readable text if the function fails and is unchanged otherwise.
 */
typedef kvtree_error filo_error;

/* Verdict: the files in the directory contradict the map, or the map is damaged; err
 * names the file. */
#define FILO_DAMAGED 1

/* Default names below the directory: the root of the map, and the stage beside it. */
#define FILO_MAP ".scr/rank2file.scr"
#define FILO_STAGE ".scr/stage"

/* Bytes of a file in a container. */
typedef struct filo_segment {
    char *container; /* name below the directory */
    uint64_t offset; /* in the container */
    uint64_t length; /* bytes */
} filo_segment;

typedef struct filo_file {
    char *local; /* path of the rank's own copy */
    char *name;  /* relative to the directory, shorter than 1024 bytes, without empty, "."
                    and ".." components and control characters */
    uint64_t size; /* bytes */
    uint32_t crc;  /* CRC32, when has_crc */
    int has_crc;
    int packed;    /* 1: the bytes are in containers, not under the name of the file; in a
                      flush: in files that ranks write together, at the given segments */
    unsigned mode; /* of packed files only: permissions */
    int segments;  /* of packed files only: number of segments */
    filo_segment *segment; /* their bytes, in this order, are the file */
    int64_t mtime; /* of files that are not packed, when has_mtime: modification time when
                      the map was written, nanoseconds since 1970 */
    int has_mtime;
    unsigned group; /* used by the library: the group that mode applies to */
    int rank;       /* rank that wrote the file: set by filo_read_map, an input with
                       `ranks` of filo_options */
    int shared;     /* in a map: several ranks wrote this file together, and its bytes are
                       those of packed files in the map; filo_fetch skips it */
    int64_t others; /* other users who may have chosen the name, encoded like `shared` of
                       filo_target; recorded permanently in a map that was made from
                       records of others */
} filo_file;

/* Frees count files and everything that they point to. NULL is allowed. Returns NULL. */
filo_file *filo_files_free(int count, filo_file *files);

/* Stores the modification time of st in file. */
void filo_file_note_time(filo_file *file, const struct stat *st);

/* Returns 1 if the modification time of a file that is not packed differs from the time
 * in its map: the file was written since, or copied without its time. Then only a
 * checksum shows whether its bytes are unchanged. Returns 0 as well if the map has no
 * time for the file. */
int filo_file_was_written(const filo_file *file, const struct stat *st);

/* ---- the map, written and read by one process ----
 *
 * filo_map_read reads maps that filo_flush wrote, and filo_read_map reads maps that
 * filo_map_write wrote. Ranks are processed one by one. Memory is needed for one file of
 * each level of the map, not for all ranks. */

typedef struct filo_place {
    const char *folder; /* symbolic links on the path to it are followed, but none below
                           it */
    const char *base;   /* NULL, or an existing directory that `folder` begins with: then
                           symbolic links are followed only on the path to base */
    const char *map;    /* name of the root of the map below folder; NULL: FILO_MAP */
    size_t limit;   /* writing: maximum bytes per map file; 0: 1 MB. A rank with a longer
                       list gets a larger file, and a file above the lowest level holds
                       at least two names, whatever the limit */
    const int *dir; /* NULL, or the open directory of the map: symbolic links on the path
                       to it, and directories replaced on this path later, have no
                       effect */
    size_t skip;    /* with dir: number of leading bytes of map that stand for dir, "x/"
                       of "x/map" */
    const char *dataset; /* NULL, or a short text that identifies the dataset: written to
                            the map; a map with a different text is damaged */
} filo_place;

/* Provides the *count files of rank. They must stay valid until the next call. local is
 * ignored. Returns 0, or a value that ends the writing; filo_map_write then returns this
 * value and err. */
typedef int filo_map_give(void *arg, int rank, int *count, const filo_file **files,
                          filo_error *err);

/* Receives the files of rank, with local NULL. They are freed after the return. Returns
 * 0, or a value that ends the reading; the reading function then returns this value and
 * err. */
typedef int filo_map_take(void *arg, int rank, int count, const filo_file files[],
                          filo_error *err);

/* Writes the map of a directory that has the files of `ranks` ranks (1 or more). Calls
 * give for rank 0, 1, ... in turn. Creates the directory and the directory of the map if
 * missing. Does not access the files themselves.
 *
 * Returns -EINVAL, and the rank, for a name that is not allowed or belongs to the map,
 * and for segments that are not the whole file; -EEXIST if a rank lists a name twice. A
 * name listed by two ranks is not detected.
 *
 * An earlier map is removed before the first file is written, and the root of the new map
 * is written last. After a crash or a failure, also of give, the directory has the
 * earlier map, no map, or the new map. */
int filo_map_write(const filo_place *to, int ranks, filo_map_give *give, void *arg,
                   filo_error *err);

/* Reads the map. Ranks come in the order of the files of the map, in which a rank with a
 * long list comes later than its neighbors. take may be NULL to verify the map only. On
 * success *ranks is the number of ranks (ranks may be NULL), and take has received each
 * rank below this number once.
 *
 * Returns -ENOENT without a map, FILO_DAMAGED if the map is incomplete or contradicts
 * itself. Damage may be found only at the end, after take has received any of the ranks.
 * Whether the files exist is not checked. */
int filo_map_read(const filo_place *from, int *ranks, filo_map_take *take, void *arg,
                  filo_error *err);

/* Reads the entry of one rank, and only those files of the map that lead to it. take
 * receives this rank once. *ranks is as in filo_map_read. Returns -ENOENT also if the map
 * has no such rank. Files of the map that are not read are not checked. */
int filo_map_read_rank(const filo_place *from, int rank, int *ranks, filo_map_take *take,
                       void *arg, filo_error *err);

/* ---- unfinished flushes ---- */

/* How a flush packs files. All zeros: each file lies under its own name. */
typedef struct filo_form {
    uint64_t container; /* the fields are as in filo_options */
    uint64_t align;
    unsigned nodes; /* 0 without align */
} filo_form;

/* A flush writes below its own directory in the stage and removes this directory at its
 * end. An interrupted flush is a directory that remains there. */
typedef struct filo_begun {
    const char *identity; /* as in the filo_options of the flush; "" if its record cannot
                             be used and the flush cannot be resumed */
    filo_form form;       /* as in the filo_options of the flush */
} filo_begun;

/* Returns 1 to keep the flush, 0 to remove it. */
typedef int filo_begun_keep(void *arg, const filo_begun *flush);

/* Passes every flush in the stage, a directory below the open directory dir, to keep, and
 * removes the flushes that are not kept; keep NULL: removes all. Returns 0 also without a
 * stage. A flush that cannot be read now (no permission, a failing disk) stays, and the
 * first error is returned. A private flush of another user stays; this is an error only
 * if keep is NULL. A flush that is removed while it still runs fails, and writes no other
 * file. Serial. */
int filo_begun_sweep(int dir, const char *stage, filo_begun_keep *keep, void *arg,
                     filo_error *err);

/* ---- files out of containers ---- */

/* Verdict: the target already has this size and checksum, and stays unchanged. */
#define FILO_THERE 3

/* Destination of an extracted file. */
typedef struct filo_target {
    int dir;          /* an open directory */
    const char *name; /* below dir; missing directories are created, and no symbolic link
                         is followed */
    int replace; /* 1: an existing entry with this name, except a directory, is replaced;
                    0: it is -EEXIST */
    int64_t shared; /* others who may change the map, which lies below dir. 0: none; the
                       id of a group plus 1; 2^40 more: also the users and groups of the
                       access control list of dir; INT64_MAX: everybody. -EPERM if they
                       may not change the directory of the file */
    int has_group;  /* 1: group permissions of a file that is not packed apply to `group`;
                       0: to the group of the file */
    unsigned group;
} filo_target;

/* Copies one file of a map to a file of its own: from its segments below the open
 * directory dir, or, if it is not packed, from its name there. Each byte is read once.
 * Size and, if the map has one, CRC32 are verified on the way. The copy appears complete
 * and durable: a crash leaves at most a file ".<16 hex digits>.tmp" beside it. The mode
 * of a packed file is that of the map (0: 0600), without permissions that its containers
 * do not grant to others; the mode of any other file is that of the file. If the copy is
 * in another group, group and others get only the permissions that both had. With `to`
 * NULL the file is only read and verified, and, without a checksum, its time as well. Of
 * a file that ranks wrote together, whose bytes are those of other files in the map, only
 * the size is verified.
 *
 * Returns FILO_DAMAGED, and writes nothing, if a container is missing, too short or not a
 * regular file, or if the bytes are not those of the map; err names the container. */
int filo_extract(int dir, const filo_file *file, const filo_target *to, filo_error *err);

/* Like filo_extract, and calls report repeatedly during the copy with the number of bytes
 * done, of the total bytes of the file. report must not call this library. */
int filo_extract_with(int dir, const filo_file *file, const filo_target *to,
                      void (*report)(void *arg, uint64_t done, uint64_t total), void *arg,
                      filo_error *err);

#ifdef __cplusplus
}
#endif
#endif
