/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_FILO_MPI_H
#define FILO_FILO_MPI_H

/* A distributed list of files, to a folder and back.
 *
 * Each rank of a communicator has some files in storage of its own. A flush copies them
 * all below one folder of a shared file system and writes the map there (filo.h);
 * filo_read_map hands every rank its part of the map, and filo_fetch copies the files
 * back.
 *
 * Every function is collective over comm and returns the same value on every rank: 0,
 * -errno, or a verdict where one is listed. folder, map and options must be the same on
 * every rank; files are each rank's own. The text in err is the same
 * everywhere, too, and says which rank it comes from. */

#include <filo/filo.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zeros are the defaults; a NULL pointer to options, too. */
typedef struct filo_options {
    const char *method; /* transfer method of libaxl-lite; NULL: "sync" */
    int checksum;       /* flush: compute checksums; fetch: verify those in the map */
    size_t map_limit;   /* flush: most bytes per map file; 0: 1 MB. A rank whose own list
                           needs more gets a larger file, and a file above the lowest
                           level holds at least two names, whatever the limit */
} filo_options;

/* Copies count files from local to folder/name; missing folders are made. No two files
 * may have the same name, on whatever ranks (-EEXIST), and none that of a map file. size
 * must be that of the local file, and has_crc on entry demands that the bytes read have
 * that crc: a local file that was altered is -EIO. On success size, crc and has_crc of
 * each file are what was found (crc only with checksum or where it was demanded). Then
 * the map is written to folder/map (NULL: FILO_MAP).
 *
 * An earlier map of that name is removed when all arguments and local files were found
 * good, before the first file is copied: from there on its files may be replaced. On
 * failure files may be in place, but no map names them. */
int filo_flush(MPI_Comm comm, const char *folder, const char *map, int count,
               filo_file files[], const filo_options *options, char *err);

/* What filo_flush demands of names, to be known before there is anything to flush: of
 * each file only name is looked at. -EINVAL for a name that is not allowed, -EEXIST when
 * two files of any ranks have the same one; err names the ranks. */
int filo_check_names(MPI_Comm comm, int count, const filo_file files[], char *err);

/* Reads the map below folder. *files (freed with filo_files_free) are the *count files of
 * this rank, local being NULL; *ranks is the number of ranks that wrote them, which may
 * differ from comm's: entries of ranks that comm does not have are checked, but given to
 * no one. Without a map: -ENOENT. FILO_DAMAGED when the map is not whole or contradicts
 * itself; whether the files are there is for filo_fetch to say. */
int filo_read_map(MPI_Comm comm, const char *folder, const char *map, int *ranks,
                  int *count, filo_file **files, const filo_options *options, char *err);

/* Copies count files from folder/name to local and verifies size
 * and, with checksum, crc where has_crc is set. FILO_DAMAGED when a file is missing, has
 * another size or other bytes. Missing files and wrong sizes are found before anything is
 * copied; if it fails after that, every rank removes all its local files, whether they
 * were copied or there before. */
int filo_fetch(MPI_Comm comm, const char *folder, int count, filo_file files[],
               const filo_options *options, char *err);

#ifdef __cplusplus
}
#endif
#endif
