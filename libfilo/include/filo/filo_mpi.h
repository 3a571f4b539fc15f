/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_FILO_MPI_H
#define FILO_FILO_MPI_H

/* A distributed list of files, to a directory and back.
 *
 * Each rank of a communicator has some files in its own storage. A flush copies all of
 * them below one directory of a shared file system and writes the map there (filo.h).
 * filo_read_map gives every rank its part of the map, and filo_fetch copies the files
 * back.
 *
 * A flush has two steps. First, all data is copied to files in the directory of the flush
 * in the stage, and synced. When every rank has succeeded, an earlier map is removed, the
 * files are renamed, and the new map is written, its root last. A flush that fails in the
 * first step, which takes nearly all of the time, leaves the directory as it was. A fetch
 * works the same way in the other direction: local files appear when the files of all
 * ranks are complete.
 *
 * Every function is collective over comm unless noted, and returns the same value on
 * every rank: 0, -errno, or a verdict where one is listed. folder, map and options must
 * be the same on every rank, except where noted (-EINVAL if a difference would break a
 * flush or a fetch). files is each rank's own. The text in err is also the same on every
 * rank, and names the rank that it comes from. Messages use a duplicate of comm;
 * MPI_COMM_NULL and intercommunicators are -EINVAL. */

#include <filo/filo.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Verdict of filo_flush_test: still moving. */
#define FILO_RUNNING 2

/* The defaults are zeros, or a NULL pointer to options. */
typedef struct filo_options {
    const char *method; /* transfer method of libaxl-lite; NULL: "sync" */
    int checksum;       /* flush: compute checksums; fetch: verify those in the map */
    size_t map_limit;   /* flush: maximum bytes per map file; 0: 1 MB. A rank with a
                           longer list gets a larger file, and a file above the lowest
                           level holds at least two names, whatever the limit */
    int width;          /* maximum number of ranks that copy at a time; 0: 256. Ranks
                           admit each other by messages, so a flush in the background
                           needs filo_flush_test */
    int turn; /* each rank's own: with more ranks than width, ranks with lower turns copy
                 first. The number of a rank on its node lets all nodes copy from the
                 start */
    const char *slots;  /* each rank's own; NULL on all or on none. Name of slots, as for
                           axl_set_slots */
    int slot_count;     /* with slots: maximum number of ranks with the same slots on one
                           node that copy at a time; width is ignored, and a transfer in
                           the background waits for its turn by itself */
    uint64_t container; /* flush: files are packed into containers of at most this number
                           of bytes; 0: each file lies under its own name */
    uint64_t align;     /* flush: each node packs its files into a container, in which the
                           bytes of each rank begin at a multiple of align; see below. 0:
                           no containers of nodes. Not together with `container` */
    int nodes;        /* flush with align: number of nodes that share a container; 0: 1 */
    const char *node; /* each rank's own. Files of ranks with the same text are packed
                         side by side; NULL on all ranks: ranks that share memory */
    const char *stage; /* flush: directory below `folder`, created if missing, in the file
                          system of the files; NULL: "stage" beside the map */
    const char *identity; /* flush: at most 511 bytes that identify the data; an
                             interrupted flush is resumed by a flush with the same
                             identity, see below. NULL: it cannot be resumed */
    int workers;          /* workers to daemon: for each rank's transfer, as in
                             axl_options; may differ between ranks */
    size_t buffer;
    double bandwidth;
    double percent;
    const char *state;
    const char *daemon;
    int patience;        /* as for axl_set_patience */
    const char *base;    /* flush and register: as in filo_place */
    const char *dataset; /* flush, register and read: as in filo_place */
    int ranks; /* flush, register and filo_write_map: number of ranks that wrote the
                  files, if these are not the ranks of comm; each file has its rank. 0:
                  each rank of comm has its own files */
    int every; /* read: rank r of comm gets the files of all ranks that are r modulo the
                  size of comm, not only its own */
    /* flush and fetch: reports how many of the bytes that this rank copies are copied, as
     * for axl_set_progress; each rank's own; NULL: no reports */
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void *progress_arg;
    int has_group; /* flush and fetch: group permissions of local files apply to `group`,
                      such as the group of a setgid directory that contains `folder`;
                      otherwise to the group of each file */
    unsigned group;
} filo_options;

/* Copies count files from local to folder/name, and writes the map to folder/map (NULL:
 * FILO_MAP). Missing directories are created, each by one rank. No two files of any ranks
 * may have the same name (-EEXIST), and no file may have the name of a map file or of a
 * container beside the map, or a name below these. size must be the size of the local
 * file. If has_crc is set, the bytes read must have this crc: an altered local file is
 * -EIO. On success size, crc and has_crc of each file are the values found (crc only with
 * checksum or if has_crc was set).
 *
 * A file with packed set is one part, or several, of files that ranks write together: its
 * bytes go to its segments, in this order. Two parts with the same byte are -EEXIST. The
 * rank of the first part also has the shared file in its map.
 *
 * On failure the directory is unchanged, except for directories that were created. Only
 * if the very last step fails, the renames and the map (err says "may have no map now"),
 * files may be in place that no map names. */
int filo_flush(MPI_Comm comm, const char *folder, const char *map, int count,
               filo_file files[], const filo_options *options, filo_error *err);

/* With the option align the lowest rank of each node reads the local files of all ranks
 * of the node and writes them. The local paths must lead it to the same files. Only this
 * rank opens the directory and the container, once, and syncs the container once. width
 * counts only such ranks, and only the values of workers, buffer, bandwidth, percent,
 * state and daemon on these ranks count. A failure is reported as from the rank that
 * copied, or from the rank that has the file. */

/* A flush that runs in the background. */
typedef struct filo_transfer filo_transfer;

/* Starts a flush in the background: everything is checked, directories are created, and
 * the first ranks start to copy. Further ranks start in filo_flush_test when it is their
 * turn. With slots all ranks start at once, and wait for their turn by themselves. With
 * the method "sync" the ranks that start here copy before the call returns. All arguments
 * are copied, but comm must exist until the transfer is freed. */
int filo_flush_start(MPI_Comm comm, const char *folder, const char *map, int count,
                     const filo_file files[], const filo_options *options,
                     filo_transfer **transfer, filo_error *err);

/* An interrupted flush is resumed by starting it again with the same identity, folder,
 * map, stage, container, align, nodes and node, the same ranks, the same files on each
 * and the same state files. Data that a rank copied is not copied again as long as its
 * state file records the data, its local files were not changed, and the copies are in
 * the stage. The copies are read and compared with the local files, though, and copied
 * again where they differ (AXL_COMPARE). A rank that does not meet these conditions, or
 * has no state file, copies all of its files. The identity must not be used for other
 * data, nor, with containers, for ranks that are distributed over nodes in another way.
 * Flushes with different identities never write to the same files of the stage, even at
 * the same time. A flush that ends, in any way, removes its directory from the stage;
 * filo_begun_sweep (filo.h) removes the directories of interrupted flushes. */

/* Not collective. Stops the process that copies for a state file on this node, and
 * removes the state file; the copies stay in the stage. For ranks of a flush that is not
 * resumed here. Returns 0 also without such a file. patience is as for axl_set_patience.
 */
int filo_flush_abandon(const char *state, int patience, filo_error *err);

/* Returns 0 if the flush is complete, including the map; FILO_RUNNING; or the first
 * error, after copying has ended on all ranks: the directory is then as after a failed
 * filo_flush. Repeats its result when called again. */
int filo_flush_test(filo_transfer *transfer, filo_error *err);

/* Waits for the end of the flush. Returns 0 or the first error. */
int filo_flush_wait(filo_transfer *transfer, filo_error *err);

/* Stops a running flush: no rank copies any more when it returns, the directory is as
 * after a failed filo_flush, and test and wait return -ECANCELED. Returns 0, also if the
 * flush was finished before, which then stays complete. */
int filo_flush_stop(filo_transfer *transfer, filo_error *err);

/* Not collective. Returns the reason why a flush that ended could not remove its
 * directory in the stage (which has no data of a complete flush). The text belongs to the
 * transfer. Only on rank 0; NULL on other ranks, and if the directory was removed. */
const char *filo_flush_left(const filo_transfer *transfer);

/* Not collective. Returns the files of this rank, after success with the values found.
 * They belong to the transfer. */
const filo_file *filo_flush_files(const filo_transfer *transfer, int *count);

/* Stops the flush if it runs, and frees it. NULL (on all ranks) is allowed. Returns NULL.
 */
filo_transfer *filo_flush_free(filo_transfer *transfer);

/* Not collective, and sends no messages: frees a flush on this rank after its
 * communicator has failed, or while other ranks are gone. Copying on this rank ends.
 * Copies of other ranks stay in the stage, as after their death. NULL is allowed. Returns
 * NULL. */
filo_transfer *filo_flush_forget(filo_transfer *transfer);

/* Checks the names as filo_flush does, before there is anything to flush. Of each file
 * only name and, with packed, segments are used. Returns -EINVAL for a name that is not
 * allowed, -EEXIST if two files of any ranks have the same name, or two parts have the
 * same byte; err names the ranks. */
int filo_check_names(MPI_Comm comm, int count, const filo_file files[], filo_error *err);

/* Finds the owner of each file that several ranks wrote together: owner[i] becomes the
 * lowest rank that lists the name of files[i]. Only name is used. Returns -EINVAL for a
 * name that is not allowed, -EEXIST for a name that a rank lists twice. */
int filo_find_owners(MPI_Comm comm, int count, const filo_file files[], int owner[],
                     filo_error *err);

/* Writes the map of files that already exist below folder because they were written there
 * in the first place. Names are as for filo_flush; local is ignored. Every file and its
 * directories are synced, and size is filled in; with the option checksum the file is
 * read, and crc is filled in. An earlier map is removed first. On failure the files are
 * unchanged; after a failure of the very last step there may be no map. Returns -ENOENT
 * if a file is missing. */
int filo_register(MPI_Comm comm, const char *folder, const char *map, int count,
                  filo_file files[], const filo_options *options, filo_error *err);

/* Writes a map of files without accessing them; they need not exist. Uses name, size, crc
 * and, with the option ranks, rank of each file. Otherwise like filo_register. folder
 * must exist; the directory of the map is created if missing. */
int filo_write_map(MPI_Comm comm, const char *folder, const char *map, int count,
                   filo_file files[], const filo_options *options, filo_error *err);

/* Reads the map below folder. *files (freed with filo_files_free) are the *count files of
 * this rank, with local NULL. *ranks is the number of ranks that wrote them, which may
 * differ from the size of comm: without the option `every`, entries of ranks that comm
 * does not have are checked, but no rank gets their files. Returns -ENOENT without a map,
 * FILO_DAMAGED if the map is incomplete or contradicts itself. Whether the files exist is
 * checked by filo_fetch. */
int filo_read_map(MPI_Comm comm, const char *folder, const char *map, int *ranks,
                  int *count, filo_file **files, const filo_options *options,
                  filo_error *err);

/* Copies count files from folder/name, or from their segments, to local, and verifies
 * size and, with checksum, crc if has_crc is set. Returns FILO_DAMAGED if a file is
 * missing, has another size or other bytes. Missing files and wrong sizes are found
 * before anything is copied. A local path that a rank lists twice is -EEXIST; a path that
 * two ranks list is not detected. On failure no local file is changed. Only if the last
 * step fails, the renames, every rank removes all of its local files, including earlier
 * ones under these paths. */
int filo_fetch(MPI_Comm comm, const char *folder, int count, filo_file files[],
               const filo_options *options, filo_error *err);

#ifdef __cplusplus
}
#endif
#endif
