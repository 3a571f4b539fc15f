/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_H
#define SCR_H

/* SCR: scalable checkpoint / restart for MPI applications.
 *
 * The application asks SCR where to write its files; SCR keeps the newest datasets in
 * fast storage on the nodes, protects them against the loss of nodes, copies some of them
 * to the prefix folder on the parallel file system, and after a failure hands the newest
 * complete checkpoint back.
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
 * Every call returns SCR_SUCCESS or a positive code (SCR_Strerror tells which) and never
 * exits or aborts, with one exception that users choose: with SCR_HALT_EXIT=1, SCR_Init
 * and SCR_Complete_output end the processes when a halt condition holds. All calls but
 * SCR_Route_file, SCR_Config and the last section are collective over the communicator of
 * SCR_Init and return the same code on every rank. A call in the wrong state returns
 * SCR_ERR_STATE. With SCR_ENABLE=0, or after SCR_Init failed, every call fails but still
 * sets its outputs, so that an application that ignores codes runs unharmed. One thread
 * at a time may be inside SCR. */

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCR_MAJOR_VERSION "4"
#define SCR_MINOR_VERSION "0"
#define SCR_PATCH_VERSION "0"
#define SCR_VERSION "v4.0.0"

#define SCR_SUCCESS 0
#define SCR_FAILURE 1      /* see the message */
#define SCR_ERR_DISABLED 2 /* SCR_ENABLE=0 */
#define SCR_ERR_STATE 3    /* the call is not legal in this state */
#define SCR_ERR_ARGUMENT 4 /* an argument of the call is invalid */
#define SCR_ERR_CONFIG 5   /* configuration is wrong */
#define SCR_ERR_CACHE 6    /* a control or cache folder cannot be used */
#define SCR_ERR_INVALID 7  /* a rank reported invalid files, or a file is missing */
#define SCR_ERR_REDUNDANCY 8  /* the files could not be protected */
#define SCR_ERR_FLUSH 9       /* the files could not be copied to the prefix folder */
#define SCR_ERR_NO_DATASET 10 /* no such dataset */
#define SCR_ERR_PREFIX 11     /* the prefix folder cannot be used */

/* Size of every buffer for a file or dataset name, in bytes with the NUL. */
#define SCR_MAX_FILENAME 1024

/* Flags of SCR_Start_output: what the dataset is. They may be combined with |. */
#define SCR_FLAG_NONE 0
#define SCR_FLAG_CHECKPOINT (1 << 0) /* the application can restart from it */
#define SCR_FLAG_OUTPUT (1 << 1)     /* wanted on the prefix folder */

/* ---- begin and end ---- */

/* Prepares cache and control folders and rebuilds cached datasets. Uses MPI_COMM_WORLD.
 * From now on signals (SCR_HALT_SIGNALS) are a halt condition. */
int SCR_Init(void);

/* As SCR_Init over a communicator of the application, which is duplicated. */
int SCR_Init_comm(MPI_Comm comm);

/* Records that the application ended by itself (SCR_FINALIZE_CALLED, unless the halt file
 * has a reason already), gives signals back, flushes the newest checkpoint if it is
 * not on the prefix folder yet (unless SCR_FLUSH=0), and frees everything. Once that
 * checkpoint is there, nothing of the run is left on the nodes (but SCR_CACHE_KEEP). An
 * output that is open is closed as failed, an open restart without a mark: the call does
 * all of the above, and returns SCR_ERR_STATE. */
int SCR_Finalize(void);

/* ---- configuration: any number of calls before SCR_Init, the same on every rank ---- */

/* "K=V" sets a parameter, "K=" unsets what an earlier call set; both return NULL. "K"
 * returns a copy of the value in force, to be freed, or NULL; queries may be made at any
 * time. Descriptors: "CKPT=0 TYPE=XOR SET_SIZE=16" sets fields, "CKPT=0 TYPE=" unsets
 * one, "CKPT=" all; "CKPT=0 TYPE" returns one, "CKPT" the numbers that there are, one in
 * a line. Likewise "STORE=/ssd COUNT=3" and "GROUPS=node1 RACK=7". A name that does not
 * exist is printed as an error, and nothing is set; a value that its parameter cannot
 * have fails SCR_Init. SCR_Finalize forgets what was set: another SCR_Init is without. */
const char *SCR_Config(const char *config);
const char *SCR_Configf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- output ---- */

/* *flag becomes 1 when it is time to checkpoint: a halt condition holds,
 * it is the SCR_CHECKPOINT_INTERVAL-th call, or with "auto" the time that wastes the
 * least passed, SCR_CHECKPOINT_SECONDS passed, or checkpoints cost less than
 * SCR_CHECKPOINT_OVERHEAD percent. */
int SCR_Need_checkpoint(int *flag);

/* Opens a dataset. name: unique, relative, shorter than SCR_MAX_FILENAME, without empty,
 * "." and ".." components and control characters, not below ".scr" (SCR_ERR_ARGUMENT);
 * its files belong below the folder of that name. NULL: "scr.dataset.<id>". May remove
 * the oldest dataset from the cache (SCR_CACHE_SIZE). */
int SCR_Start_output(const char *name, int flags);

/* Local, not collective. In output: registers the file (path relative to the current
 * folder or absolute, below the prefix folder, also where links lead there) and gives the
 * path to write it to. In restart: gives the path to read it from, and fails if that is
 * not readable. The file is found by its place below the prefix folder, by its name at
 * output, or by the end of its path, such as a bare file name, whatever the current
 * folder is now; SCR_ERR_ARGUMENT if that may be several files. A file of another rank is
 * found where the dataset is on the prefix folder, too, not in containers, and read
 * there. Between SCR_Init and the first SCR_Start_... call: gives the path of a file that
 * this rank has in the checkpoint that SCR_Have_restart offered or, if it was not called,
 * in the newest one of the cache (SCR_FETCH_ON_INIT=1: of cache and prefix folder); the
 * application may read it until the first SCR_Start_... call. Otherwise, also before
 * SCR_Init: copies name. In output, a failure makes
 * SCR_Complete_output fail, too, unless the name was at fault (SCR_ERR_ARGUMENT) and the
 * rank routes another file afterwards, one for each such name. What holds for names of
 * datasets holds for the path below the prefix folder, too. file has SCR_MAX_FILENAME
 * bytes and holds name after a failure, too, if that fits. */
int SCR_Route_file(const char *name, char *file);

/* Closes the dataset: valid is 1 on a rank that wrote all its files. A file belongs to
 * the one rank that routed it. Success means that every rank was valid, no name was
 * refused without another one in its place, there is at least one file, every file is
 * there, and the files are protected; otherwise the dataset is removed, and older ones
 * stay. Also flushes it when its turn has come; if that fails, SCR_ERR_FLUSH, and the
 * dataset stays in the cache. */
int SCR_Complete_output(int valid);

/* An unnamed checkpoint: SCR_Start_output(NULL, SCR_FLAG_CHECKPOINT),
 * SCR_Complete_output. */
int SCR_Start_checkpoint(void);
int SCR_Complete_checkpoint(int valid);

/* ---- restart ---- */

/* *flag becomes 1 and name (SCR_MAX_FILENAME bytes, or NULL) the newest checkpoint that
 * can be read: from the cache, otherwise fetched from the prefix folder, walking to older
 * ones. Without one, *flag becomes 0 and name empty. One that the cache has no room for
 * is read in the prefix folder itself. Where there are checkpoints, but none could be
 * read for a reason that is not theirs (a full or failing cache, say), *flag is 0 and the
 * call fails: whoever begins anew then begins from nothing though there is something. */
int SCR_Have_restart(int *flag, char *name);

/* Opens that checkpoint for SCR_Route_file; name (SCR_MAX_FILENAME bytes, or NULL) gets
 * its name. A call that fails does not write to it. */
int SCR_Start_restart(char *name);

/* Closes it: valid is 1 on a rank that read what it needs. If any was not, the call fails
 * on every rank, the checkpoint is marked as failed, and SCR_Have_restart offers an older
 * one. There is no mark when SCR_Route_file refused a name on some rank and gave it no
 * other file afterwards, or had no memory: then the next run offers the checkpoint again.
 */
int SCR_Complete_restart(int valid);

/* ---- control ---- */

/* *flag becomes 1 when the run should end: a condition of the halt file holds, the
 * allocation ends (SCR_HALT_SECONDS), or a signal came to any rank. */
int SCR_Should_exit(int *flag);

/* Makes the checkpoint of that name the one to restart from, also if it failed before;
 * newer ones leave the cache. */
int SCR_Current(const char *name);

/* Removes a dataset: its files in cache and prefix folder and its entry (Delete),
 * whatever the number of ranks that wrote it; its entry only (Drop). */
int SCR_Delete(const char *name);
int SCR_Drop(const char *name);

/* ---- texts, static ---- */

char *SCR_Get_version(void);
const char *SCR_Strerror(int code);

#ifdef __cplusplus
}
#endif
#endif
