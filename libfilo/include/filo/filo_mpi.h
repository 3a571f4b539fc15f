/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_FILO_MPI_H
#define FILO_FILO_MPI_H

/* A distributed list of files, to a directory and back.
 *
 * Each rank of a communicator has some files in storage of its own. A flush copies them
 * all below one directory of a shared file system and writes the map there (filo.h);
 * filo_read_map hands every rank its part of the map, and filo_fetch copies the files
 * back.
 *
 * A flush has two steps. First all data is copied to files in a directory of the flush in
 * the stage, and synced. When every rank has succeeded, an earlier map is removed, the
 * files are renamed, and the new map is written, its root last. A flush that fails in the
 * first step, which takes nearly all of the time, leaves everything as it was. A fetch
 * does the same in the other direction: local files appear when the files of all ranks
 * are complete.
 *
 * Every function is collective over comm and returns the same value on every rank: 0,
 * -errno, or a verdict where one is listed. folder, map and options must be the same on
 * every rank but where told (-EINVAL where a flush or a fetch would go wrong by it);
 * files are each rank's own. The text in err is the same everywhere, too, and says which
 * rank it comes from. Messages go over a duplicate of comm, which is -EINVAL when it is
 * MPI_COMM_NULL or an intercommunicator. */

#include <filo/filo.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Verdict of filo_flush_test: still moving. */
#define FILO_RUNNING 2

/* Zeros are the defaults; a NULL pointer to options, too. */
typedef struct filo_options {
    const char *method; /* transfer method of libaxl-lite; NULL: "sync" */
    int checksum;       /* flush: compute checksums; fetch: verify those in the map */
    size_t map_limit;   /* flush: most bytes per map file; 0: 1 MB. A rank with a longer
                           list gets a larger file, and a file above the lowest
                           level holds at least two names, whatever the limit */
    int width;          /* most ranks that copy at a time; 0: 256. Messages between ranks
                           say whose turn it is, so that a flush in the background needs
                           filo_flush_test */
    int turn; /* each rank's own: with more ranks than width, those of lower turns
                 copy first. The number of a rank on its node lets all nodes
                 copy from the start on */
    const char *slots;  /* each rank's own, NULL on all or on none: at most slot_count */
    int slot_count;     /* ranks with the same slots on one node copy at a time, as for
                           axl_set_slots, and width does not count: a transfer in the
                           background waits for its turn by itself */
    uint64_t container; /* flush: files are packed into containers of at most that
                           many bytes; 0: each file lies under its name */
    uint64_t align;     /* flush: each node packs its files into a container, in which the
                           bytes of each rank begin at a multiple of align; see below. 0: it
                           does not. Not together with `container` */
    int nodes;        /* flush with align: number of nodes that share a container; 0: 1 */
    const char *node; /* each rank's own. Files of ranks with the same text are packed
                         side by side; NULL on all ranks: those that share memory */
    const char *stage; /* flush: directory below `folder`, made where missing, in the file
                          system of the files; NULL: "stage" beside the map */
    const char *identity; /* flush: at most 511 bytes that say which data this is; a flush
                             that was interrupted is resumed by one with the same
                             identity, see below. NULL: it cannot be resumed */
    int workers;          /* these are for each rank's transfer, as in axl_options, */
    size_t buffer;        /* and may differ */
    double bandwidth;
    double percent;
    const char *state;
    const char *daemon;
    int patience;        /* as for axl_set_patience */
    const char *base;    /* flush and register: as in filo_place */
    const char *dataset; /* flush, register and read: as in filo_place */
    int ranks; /* flush and register: number of ranks that wrote the files, if these are
                  not those of comm; each file tells its rank. 0: each rank of comm has
                  its own files */
    int every; /* read: a rank gets the files of all ranks that leave its number as a
                  remainder when divided by the size of comm, not only its own */
    /* flush and fetch: how many bytes of all that this rank copies are copied, as for
     * axl_set_progress; for each rank its own, and NULL: nobody wants to know */
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void *progress_arg;
    int has_group; /* flush and fetch: group permissions of local files are meant for
                      this group, such as that of a setgid directory that has `folder`;
                      otherwise for the group of each file */
    unsigned group;
} filo_options;

/* Copies count files from local to folder/name; missing directories are made, each by one
 * rank. No two files may have the same name, on whatever ranks (-EEXIST), and none that
 * of a map file or of a container beside the map, or one below these. size must be that
 * of the local file, and has_crc on entry demands that the bytes read have that crc: a
 * local file that was altered is -EIO. On success size, crc and has_crc of each file are
 * what was found (crc only with checksum or where it was demanded). Then the map is
 * written to folder/map (NULL: FILO_MAP).
 *
 * A file with packed set is one part, or several, of files that ranks write together: its
 * bytes go to its segments, in this order. -EEXIST when two parts have the same byte.
 * The rank of the first part has the shared file in its map, too.
 *
 * On failure the directory is what it was before, but for directories that were made;
 * only where the very last step fails, names and map (err says "may have no map now"),
 * files may be in place, and no map names them. */
int filo_flush(MPI_Comm comm, const char *folder, const char *map, int count,
               filo_file files[], const filo_options *options, filo_error *err);

/* With the option align one rank of each node, the lowest, reads the local files of all
 * of its ranks, whose paths mean the same to it, and writes them. It alone opens the
 * directory and its container, once, and syncs that once; width is the number of such
 * ranks, and of workers, buffer, bandwidth, percent, state and daemon those of that rank
 * count. What fails is reported as from the rank that copied, or that has the file. */

/* A flush that goes on while the program does something else. */
typedef struct filo_transfer filo_transfer;

/* Starts what filo_flush does: everything is checked, directories are made, and the first
 * ranks start to copy; further ones start from filo_flush_test when it is their turn.
 * With slots all start at once, and wait for their turn by themselves. With the method
 * "sync" these copy before the call returns. All arguments are copied, but comm must stay
 * until the transfer is freed. */
int filo_flush_start(MPI_Comm comm, const char *folder, const char *map, int count,
                     const filo_file files[], const filo_options *options,
                     filo_transfer **transfer, filo_error *err);

/* A flush that was interrupted is resumed by starting it again with the same identity,
 * folder, map, stage, container, align, nodes and node, the same ranks, the same files on
 * each and the same state files. Data that a rank copied is not copied again as long as
 * its state file records it, its local files were not changed, and the copies are in the
 * stage; it is read and compared with the local files, though, and copied again where it
 * differs (AXL_COMPARE). A rank for which that is not true, or without a state file,
 * copies all of its files. The identity must not be used for other data, nor, with
 * containers, for ranks that are distributed over nodes in another way. Flushes with
 * different identities never write to the same files of the stage, even at the same time.
 * A flush that ends, in any way, removes what it has in the stage; filo_begun_sweep
 * (filo.h) removes what an interrupted one has left. */

/* Not collective. Stops the process that copies for a state file on this node, and
 * removes the file; the copies stay in the stage. For the ranks of a flush that is not
 * resumed here. 0 also without such a file. patience is that of axl_set_patience. */
int filo_flush_abandon(const char *state, int patience, filo_error *err);

/* 0: the flush is complete, map and all. FILO_RUNNING. Negative: the first error; the
 * copying has ended everywhere, and the directory is as after a failed filo_flush.
 * Repeats its result when called again. */
int filo_flush_test(filo_transfer *transfer, filo_error *err);

/* Waits for the end: 0 or the first error. */
int filo_flush_wait(filo_transfer *transfer, filo_error *err);

/* Stops a flush that runs: nothing moves any more when it returns, the directory is as
 * after a failed filo_flush, and test and wait return -ECANCELED. 0, also when it was
 * finished before, which then stays as it is. */
int filo_flush_stop(filo_transfer *transfer, filo_error *err);

/* Not collective. Why a flush that ended could not remove its directory in the stage,
 * which has no data of a flush that is complete: its text belongs to the transfer. On
 * rank 0; NULL on others, and where nothing stays. */
const char *filo_flush_left(const filo_transfer *transfer);

/* Not collective. The files of this rank; after success with what was found. They belong
 * to the transfer. */
const filo_file *filo_flush_files(const filo_transfer *transfer, int *count);

/* Stops the flush if it runs, and frees it. NULL (on all ranks) is fine. Returns NULL. */
filo_transfer *filo_flush_free(filo_transfer *transfer);

/* Not collective, and sends nothing: frees a flush on this rank after its communicator
 * has failed, or while other ranks are gone. Copying ends here; what other ranks copied
 * stays in the stage, as after their death. NULL is fine. Returns NULL. */
filo_transfer *filo_flush_forget(filo_transfer *transfer);

/* What filo_flush demands of names, to be known before there is anything to flush: of
 * each file only name and, with packed, segments are looked at. -EINVAL for a name that
 * is not allowed, -EEXIST when two files of any ranks have the same one, or two parts the
 * same byte; err names the ranks. */
int filo_check_names(MPI_Comm comm, int count, const filo_file files[], filo_error *err);

/* The owner of a file that several ranks wrote together: owner[i] becomes the lowest of
 * the ranks that list the name of files[i], of which only name is looked at. -EINVAL for
 * a name that is not allowed, -EEXIST for one that a rank lists twice. */
int filo_find_owners(MPI_Comm comm, int count, const filo_file files[], int owner[],
                     filo_error *err);

/* Writes the map of files that are below folder already, because they were written there
 * in the first place; names are as for filo_flush, local is not looked at. Every file and
 * its directories are synced, and its size is filled in, and its crc with the option
 * checksum, for which it is read. An earlier map is removed first. On failure the files
 * stay as they are; after the very last step there may be no map. -ENOENT when a file is
 * missing. */
int filo_register(MPI_Comm comm, const char *folder, const char *map, int count,
                  filo_file files[], const filo_options *options, filo_error *err);

/* Writes a map of files that are not looked at, and need not be there: name, size, crc
 * and, with the option ranks, rank of each. As filo_register otherwise; folder is there,
 * and that of the map is made. */
int filo_write_map(MPI_Comm comm, const char *folder, const char *map, int count,
                   filo_file files[], const filo_options *options, filo_error *err);

/* Reads the map below folder. *files (freed with filo_files_free) are the *count files of
 * this rank, local being NULL; *ranks is the number of ranks that wrote them, which may
 * differ from comm's: entries of ranks that comm does not have are checked, but given to
 * no one without the option `every`. Without a map: -ENOENT. FILO_DAMAGED when the map is
 * not whole or contradicts itself; whether the files are there is for filo_fetch to say.
 */
int filo_read_map(MPI_Comm comm, const char *folder, const char *map, int *ranks,
                  int *count, filo_file **files, const filo_options *options,
                  filo_error *err);

/* Copies count files from folder/name, or from their segments, to local and verifies size
 * and, with checksum, crc where has_crc is set. FILO_DAMAGED when a file is missing, has
 * another size or other bytes. Missing files and wrong sizes are found before anything is
 * copied. -EEXIST when a rank gives a local path twice; that two ranks give the same one
 * is not noticed. On failure no local file was touched; only where the last step fails,
 * their names, every rank removes all of them, also those that were there before. */
int filo_fetch(MPI_Comm comm, const char *folder, int count, filo_file files[],
               const filo_options *options, filo_error *err);

#ifdef __cplusplus
}
#endif
#endif
