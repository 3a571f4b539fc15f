/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_H
#define SCR_H

/* SCR: scalable checkpoint / restart for MPI applications.
 *
 * The application asks SCR where to write its files. SCR keeps the newest datasets in
 * fast storage on the nodes and protects them against the loss of nodes. It copies some
 * of them to the prefix directory on the parallel file system. After a failure it returns
 * the newest complete checkpoint.
 *
 *     SCR_Init();                                    after MPI_Init
 *     SCR_Have_restart(&have, name);
 *     if (have) {
 *         SCR_Start_restart(name);
 *         SCR_Route_file("ckpt.7/rank_3", path);     open path, read, close
 *         SCR_Complete_restart(ok);
 *     }
 *     while (work) {
 *         ...
 *         SCR_Need_checkpoint(&need);
 *         if (need) {
 *             SCR_Start_output("ckpt.7", SCR_FLAG_CHECKPOINT);
 *             SCR_Route_file("ckpt.7/rank_3", path);  open path, write, close
 *             SCR_Complete_output(ok);
 *         }
 *         SCR_Should_exit(&stop);
 *     }
 *     SCR_Finalize();                                before MPI_Finalize
 *
 * Every call returns SCR_SUCCESS or a positive code; SCR_Strerror gives its text. No call
 * exits or aborts, with one exception that the user requests: with SCR_HALT_EXIT=1,
 * SCR_Init and SCR_Complete_output end the processes when a halt condition holds.
 *
 * All calls are collective over the communicator of SCR_Init and return the same code on
 * every rank. The exceptions are SCR_Abandon, SCR_Route_file, SCR_Route_file_part,
 * SCR_Dataset_ranks, SCR_Dataset_files, SCR_Dataset_file, SCR_Config, SCR_Configf,
 * SCR_Get_version and SCR_Strerror, which are local.
 *
 * Three codes are possible for every call that returns a code, and the descriptions do
 * not repeat them: SCR_ERR_STATE when the call is not allowed in this state (also after
 * SCR_Init failed), SCR_ERR_DISABLED when SCR_ENABLE=0, and SCR_FAILURE when MPI fails
 * or memory is exhausted. A call that fails still sets its outputs, unless it says
 * otherwise, so an application that ignores all codes runs unharmed.
 *
 * Only one thread at a time may be inside SCR. */

#include <scr_mpi.h> /* includes mpi.h */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCR_MAJOR_VERSION "4"
#define SCR_MINOR_VERSION "0"
#define SCR_PATCH_VERSION "0"
#define SCR_VERSION "v4.0.0"

#define SCR_SUCCESS 0
#define SCR_FAILURE 1         /* the message gives the reason */
#define SCR_ERR_DISABLED 2    /* SCR_ENABLE=0 */
#define SCR_ERR_STATE 3       /* the call is not allowed in this state */
#define SCR_ERR_ARGUMENT 4    /* an argument is invalid */
#define SCR_ERR_CONFIG 5      /* the configuration is invalid */
#define SCR_ERR_CACHE 6       /* a control or cache directory cannot be used */
#define SCR_ERR_INVALID 7     /* a rank reported invalid files, or a file is missing */
#define SCR_ERR_REDUNDANCY 8  /* the files could not be protected */
#define SCR_ERR_FLUSH 9       /* the files could not be copied to the prefix directory */
#define SCR_ERR_NO_DATASET 10 /* no such dataset */
#define SCR_ERR_PREFIX 11     /* the prefix directory cannot be used */

/* Size of every buffer for a file name or dataset name, in bytes, including the NUL. */
#define SCR_MAX_FILENAME 1024

/* Flags of SCR_Start_output: the kind of the dataset. They may be combined with |. */
#define SCR_FLAG_NONE 0
#define SCR_FLAG_CHECKPOINT (1 << 0) /* the application can restart from it */
#define SCR_FLAG_OUTPUT (1 << 1)     /* must be copied to the prefix directory */
#define SCR_FLAG_BYPASS (1 << 2)     /* is written directly to the prefix directory */

/* ---- start and end SCR ---- */

/* Prepares the control and cache directories and rebuilds cached datasets. Uses
 * MPI_COMM_WORLD. From then on, the signals in SCR_HALT_SIGNALS are a halt condition.
 *
 * Returns SCR_ERR_CONFIG, SCR_ERR_PREFIX, SCR_ERR_CACHE, SCR_ERR_REDUNDANCY, or, with
 * SCR_CURRENT, SCR_ERR_NO_DATASET. */
int SCR_Init(void);

/* Does the same as SCR_Init over a communicator of the application, which SCR duplicates.
 *
 * Returns the codes of SCR_Init, and SCR_ERR_ARGUMENT for MPI_COMM_NULL and for an
 * intercommunicator. */
int SCR_Init_comm(MPI_Comm comm);

/* Ends SCR. Records in the halt file that the application ended regularly
 * (SCR_FINALIZE_CALLED, unless a reason is recorded already) and restores the signal
 * handlers. Flushes the newest checkpoint if the prefix directory does not have it yet
 * (unless SCR_FLUSH=0). When that checkpoint is complete there, removes all data of the
 * run from the nodes (unless SCR_CACHE_KEEP=1). Frees all memory.
 *
 * If an output is open, the call closes the output as failed. If a restart is open, the
 * call closes the restart and does not mark the checkpoint. In both cases the call then
 * does everything above and returns SCR_ERR_STATE.
 *
 * Returns SCR_ERR_FLUSH when a checkpoint or an output could not be flushed, or
 * SCR_ERR_CACHE when another run has taken the cache that held it. SCR is finalized in
 * both cases. */
int SCR_Finalize(void);

/* Abandons the run on this rank, when other ranks have died or are about to leave: frees
 * all memory, communicators and locks. Local: it sends no messages, so it also works when
 * the communicator of SCR_Init has failed. An open output or restart is lost. A
 * background flush ends. All complete datasets stay in the cache, as after a kill.
 *
 * SCR_Init_comm may follow, over a communicator of the ranks that continue. There may be
 * more or fewer of them than before; each must have called SCR_Abandon or must not have
 * been part of the run. SCR_Init_comm rebuilds the files of missing ranks, and
 * SCR_Have_restart offers the newest checkpoint (with SCR_RESTART_RANKS=any, if the
 * number of ranks differs). All settings of SCR_Config are dropped, as by SCR_Finalize.
 *
 * Returns only the codes that are common to all calls, such as SCR_ERR_STATE. */
int SCR_Abandon(void);

/* ---- set and read the configuration ---- */

/* Sets or reads the configuration. Parameters and descriptors are set before SCR_Init,
 * with the same calls on every rank; the configuration can be read at any time.
 *
 *     "K=V"                          sets parameter K
 *     "K="                           removes the value that an earlier call set
 *     "K"                            returns the value in force
 *     "CKPT=0 TYPE=XOR SET_SIZE=16"  sets fields of a descriptor
 *     "CKPT=0 TYPE="                 removes a field
 *     "CKPT="                        removes all descriptors CKPT
 *     "CKPT=0 TYPE"                  returns a field
 *     "CKPT"                         returns the keys, one per line
 *
 * The same forms work for "STORE=/ssd COUNT=3" and "GROUPS=node1 RACK=7".
 *
 * A call that sets returns NULL. A call that reads returns a string that the caller
 * frees, or NULL if there is no value or no such name. An unknown name that is set is
 * printed as an error. A value that is invalid for its parameter makes SCR_Init fail with
 * SCR_ERR_CONFIG. SCR_Finalize drops all settings. */
const char *SCR_Config(const char *config);
const char *SCR_Configf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- write a checkpoint or an output ---- */

/* *flag becomes 1 when a checkpoint is due:
 *
 *  - a halt condition holds;
 *  - the number of calls since SCR_Init is a multiple of SCR_CHECKPOINT_INTERVAL;
 *  - with SCR_CHECKPOINT_INTERVAL=auto, the interval that wastes the least has passed;
 *  - SCR_CHECKPOINT_SECONDS have passed since the last checkpoint;
 *  - the cost of a checkpoint is below SCR_CHECKPOINT_OVERHEAD percent.
 *
 * Returns only the codes that are common to all calls, such as SCR_FAILURE. */
int SCR_Need_checkpoint(int *flag);

/* Opens a dataset for output. May remove the oldest dataset from the cache
 * (SCR_CACHE_SIZE).
 *
 * name is the name of the dataset. The files of the dataset belong in the directory of
 * that name below the prefix directory. name is unique and relative, and shorter than
 * SCR_MAX_FILENAME. It has no control characters and no empty, "." or ".." component, and
 * is not below ".scr". NULL stands for "scr.dataset.<id>". The files of such a dataset
 * keep the paths given to SCR_Route_file, and should have different names each time, such
 * as ckpt_7/rank_3.
 *
 * With SCR_FLAG_BYPASS the files are written to the prefix directory itself, as with
 * SCR_CACHE_BYPASS=1. Several ranks may then write one file, for instance by MPI-IO or
 * parallel HDF5.
 *
 * Returns SCR_ERR_ARGUMENT for an invalid name or flag, or when ranks differ;
 * SCR_ERR_CACHE; or, where the dataset bypasses the cache, SCR_ERR_PREFIX. */
int SCR_Start_output(const char *name, int flags);

/* Returns the path at which to open a file. Local, not collective. file is a buffer of
 * SCR_MAX_FILENAME bytes; after a failure it holds name, if that fits.
 *
 * In an output: registers the file and returns the path to write it to. name is a path,
 * absolute or relative to the current directory, that lies below the prefix directory,
 * directly or through symbolic links. The rules for dataset names apply to the path below
 * the prefix directory. That path must not be the name of the dataset, which is a
 * directory. A failure makes SCR_Complete_output fail, too. The exception is
 * SCR_ERR_ARGUMENT if the rank then routes another file, one for each refused name.
 *
 * In a restart: returns the path to read the file from. The file is found by its path
 * below the prefix directory, by its name at output, or by the end of its path, such as a
 * bare file name; the current directory does not matter. A file of another rank is found
 * after SCR_Fetch_files has fetched it. If the dataset is on the prefix directory,
 * outside containers, the file is found and read there.
 *
 * Between SCR_Init and the first SCR_Start_output or SCR_Start_restart: returns the path
 * of a file that this rank has in the checkpoint that SCR_Have_restart offered. If
 * SCR_Have_restart was not called, the checkpoint is the newest one in the cache, or,
 * with SCR_FETCH_ON_INIT=1, the newest one in cache and prefix directory. The path is
 * valid until the next SCR_Have_restart, SCR_Start_output or SCR_Start_restart.
 *
 * At any other time, also before SCR_Init: copies name to file.
 *
 * Returns SCR_ERR_ARGUMENT for a name that is missing, too long, not allowed, unknown or
 * ambiguous; in an output SCR_ERR_CACHE or SCR_ERR_PREFIX; in a restart SCR_FAILURE when
 * the file cannot be read. */
int SCR_Route_file(const char *name, char *file);

/* Returns the path for a part of a file that several ranks write: length bytes from
 * offset on. In the file at the returned path, the part begins at byte *at. That file may
 * contain only this part. Local, not collective.
 *
 * In an output: each rank routes its own parts and then writes exactly these bytes. Parts
 * of different ranks must not overlap; bytes that no rank writes are zero. In the cache,
 * each part is a separate file, protected like other files. On the prefix directory, the
 * parts are one file, called name: a rank must not truncate the file that it opens.
 *
 * In a restart: finds a part that this rank wrote, or a range within it. Finds any other
 * bytes after SCR_Fetch_file_parts has fetched them, or when the file is on the prefix
 * directory.
 *
 * If length is 0, there is nothing to write or read, and the path is /dev/null.
 *
 * Returns the codes of SCR_Route_file, and SCR_ERR_ARGUMENT when the file would have more
 * than 2^63 - 1 bytes. */
int SCR_Route_file_part(const char *name, uint64_t offset, uint64_t length, char *file,
                        uint64_t *at);

/* Closes the dataset. valid is 1 on a rank that wrote all its files. Each file belongs to
 * the one rank that routed it, except files that ranks write in parts.
 *
 * The call succeeds when every rank was valid, every refused name was replaced, there is
 * at least one file, every file exists, and the files are protected. Otherwise SCR
 * removes the dataset and keeps older ones. The call also flushes the dataset if a flush
 * is due.
 *
 * Returns SCR_ERR_INVALID when a rank was not valid or a file is missing;
 * SCR_ERR_REDUNDANCY when the files could not be protected; SCR_ERR_PREFIX where the
 * dataset bypasses the cache; SCR_ERR_FLUSH when this flush, or one in the background,
 * failed. With SCR_ERR_FLUSH the dataset is complete and stays in the cache. */
int SCR_Complete_output(int valid);

/* Write an unnamed checkpoint: the same as SCR_Start_output(NULL, SCR_FLAG_CHECKPOINT)
 * and SCR_Complete_output.
 *
 * They return the codes of these calls, such as SCR_ERR_CACHE and SCR_ERR_INVALID. */
int SCR_Start_checkpoint(void);
int SCR_Complete_checkpoint(int valid);

/* ---- restart from a checkpoint ---- */

/* Finds the newest checkpoint that can be read: in the cache, or else on the prefix
 * directory, from which SCR fetches it. If one cannot be read, SCR tries older ones.
 * *flag becomes 1, and name (SCR_MAX_FILENAME bytes, or NULL) receives the name of the
 * checkpoint. If there is no checkpoint, *flag becomes 0 and name empty. A checkpoint
 * that does not fit in the cache is read in the prefix directory itself.
 *
 * If checkpoints exist but none can be read because of an I/O error rather than
 * corruption (such as a full or failing cache), *flag becomes 0 and the call fails. An
 * application that then starts from the beginning ignores checkpoints that exist.
 *
 * Returns SCR_ERR_CACHE or SCR_ERR_PREFIX, depending on the place that cannot be read. */
int SCR_Have_restart(int *flag, char *name);

/* Opens the checkpoint that SCR_Have_restart offered, for SCR_Route_file. name
 * (SCR_MAX_FILENAME bytes, or NULL) receives the name of the checkpoint. A call that
 * fails does not write to name.
 *
 * Returns SCR_ERR_STATE when SCR_Have_restart offered no checkpoint. */
int SCR_Start_restart(char *name);

/* Closes the restart. valid is 1 on a rank that read all it needs. If a rank was not
 * valid, the call fails on every rank and marks the checkpoint as failed, and
 * SCR_Have_restart offers an older one next.
 *
 * The checkpoint is not marked when SCR_Route_file refused a name on some rank that
 * routed no other file afterwards, or when memory was exhausted. The next run then offers
 * the checkpoint again.
 *
 * Returns SCR_ERR_INVALID when a rank was not valid. */
int SCR_Complete_restart(int valid);

/* ---- files of other ranks, and another number of ranks ----
 *
 * With SCR_RESTART_RANKS=any, SCR_Have_restart also offers checkpoints that another
 * number of ranks wrote. Between SCR_Start_restart and SCR_Complete_restart, each rank
 * asks which ranks wrote which files, fetches the files that it needs to its node, and
 * reads them:
 *
 *     SCR_Start_restart(name);
 *     SCR_Dataset_ranks(&ranks);                      of the run that wrote it
 *     for each of these ranks with data that I need
 *         SCR_Dataset_files(rank, &files);
 *         SCR_Dataset_file(rank, 0, names[i], NULL);  the first of them
 *     SCR_Fetch_files(count, names);                  collective
 *     SCR_Route_file(names[i], path);                 open path, read, close
 *     SCR_Complete_restart(ok);
 *
 * This works for any two numbers of ranks, including equal ones, so an application needs
 * only one way to restart. SCR_Fetch_files itself needs no parameter to be set. */

/* Fetches files of the open restart to the node of each rank that names them. Each file
 * is sent to a node only once. names are count file names as for SCR_Route_file, but
 * complete: paths that lie below the prefix directory. count may be 0, and names then
 * NULL. Files that this rank can read already stay where they are. SCR_Complete_restart
 * removes the fetched copies.
 *
 * Returns SCR_ERR_ARGUMENT when a name is invalid or no rank wrote such a file, and
 * SCR_FAILURE when a file could not be fetched. Other files may have been fetched then,
 * and the checkpoint is not marked as failed. If the checkpoint is read on the prefix
 * directory, outside containers, the call fetches nothing, and SCR_Route_file refuses the
 * name of a file that no rank wrote. */
int SCR_Fetch_files(int count, const char *const names[]);

/* Does the same for files that ranks wrote in parts: fetches lengths[i] bytes from offset
 * offsets[i] of file names[i] to this rank, for SCR_Route_file_part. Any rank may have
 * written these bytes. Bytes of several parts are joined in one file on the node.
 *
 * Returns the codes of SCR_Fetch_files, and SCR_ERR_ARGUMENT for bytes beyond the end of
 * the file. If the checkpoint is read on the prefix directory, the call fetches nothing:
 * SCR_Route_file_part finds all bytes there. */
int SCR_Fetch_file_parts(int count, const char *const names[], const uint64_t offsets[],
                         const uint64_t lengths[]);

/* *ranks becomes the number of ranks that wrote the checkpoint of the open restart.
 * Local.
 *
 * Returns only the codes that are common to all calls, such as SCR_ERR_STATE. */
int SCR_Dataset_ranks(int *ranks);

/* *files becomes the number of files that rank wrote; rank is one of the ranks that wrote
 * the checkpoint. Parts of files that ranks wrote together do not count; but where the
 * dataset bypassed the cache, such a file counts as a file of one of its writers. Local.
 * A call reads few files, of at most 1 MB, whatever the number of ranks. It is fastest to
 * query one rank after the other.
 *
 * Returns SCR_ERR_ARGUMENT when the checkpoint has no such rank; SCR_FAILURE when the
 * list of files cannot be read, or when the checkpoint is in the cache only and
 * SCR_RESTART_RANKS=any is not set. */
int SCR_Dataset_files(int rank, int *files);

/* name (SCR_MAX_FILENAME bytes, or NULL) becomes the name of file number 0, 1, ... of
 * rank, for SCR_Fetch_files and SCR_Route_file: its path on the prefix directory, even if
 * it is not there. *size (or NULL) becomes its size in bytes. Local.
 *
 * Returns the codes of SCR_Dataset_files, and SCR_ERR_ARGUMENT when there is no such
 * file. */
int SCR_Dataset_file(int rank, int number, char *name, uint64_t *size);

/* ---- when to stop; select and remove datasets ---- */

/* *flag becomes 1 when the run should stop: a condition of the halt file holds, the
 * allocation is about to end (SCR_HALT_SECONDS), or a rank received a signal in
 * SCR_HALT_SIGNALS.
 *
 * Returns only the codes that are common to all calls, such as SCR_FAILURE. */
int SCR_Should_exit(int *flag);

/* Makes the named checkpoint the one to restart from, even if it failed before. Removes
 * newer checkpoints from the cache.
 *
 * Returns SCR_ERR_ARGUMENT when no name is given or ranks differ, SCR_ERR_NO_DATASET when
 * there is no such checkpoint or it is not complete, or SCR_ERR_PREFIX. */
int SCR_Current(const char *name);

/* SCR_Delete removes a dataset, written by any number of ranks: its files in the cache
 * and on the prefix directory, and its entry in the index. SCR_Drop removes only the
 * entry.
 *
 * They return SCR_ERR_ARGUMENT when no name is given or ranks differ, SCR_ERR_NO_DATASET,
 * or SCR_ERR_PREFIX. */
int SCR_Delete(const char *name);
int SCR_Drop(const char *name);

/* ---- version and error texts ---- */

/* Return the version and the text of a code. The strings are static. */
char *SCR_Get_version(void);
const char *SCR_Strerror(int code);

#ifdef __cplusplus
}
#endif
#endif
