/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CONTEXT_H
#define SCR_CONTEXT_H

/* The context of a run: one struct scr has all of its state; there are no other
 * variables. The SCR_* calls in api/scr.c use one default context.
 *
 * Functions here return SCR_SUCCESS or an SCR_ERR_ code. Functions that are collective
 * over scr->job.world (most are) return the same code on every rank. The function that
 * detects a failure reports it, once, by scr_fail. */

#include "cache/cache.h"
#include "config/descs.h"
#include "config/parameters.h"
#include "config/values.h"
#include "halt/halt_run.h"
#include "job/job.h"
#include "ops/restart.h"
#include "ops/tally.h"
#include "plan/cadence.h"
#include "plan/dataset.h"
#include "plan/lifecycle.h"
#include "prefix/prefix.h"
#include "report/history.h"
#include "report/report.h"
#include "scr.h"
#include <mpi.h>
#include <redset/redset_mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* State of the API: which calls are allowed, and the dataset of the open phase. */
typedef struct scr_lifecycle {
    scr_state state;
    int disabled;       /* SCR_ENABLE=0 */
    int init_failed;    /* reported only once: an application that ignores it makes
                           thousands of calls */
    scr_dataset open;   /* the dataset of an output or a restart */
    scr_counters last;  /* highest values of all known datasets */
    int begun;          /* an output or a restart was started */
    int have_called;    /* SCR_Have_restart was called */
    int current_called; /* SCR_Current was called: the program restarts by itself */
    int keyval;         /* key of the attribute of MPI_COMM_SELF */
    int watching;       /* the attribute is set */
} scr_lifecycle;

/* The open output. */
typedef struct scr_output {
    kvtree *routed;           /* files: <name below the prefix directory>/{ORIG, PATH} */
    int route_failed;         /* -errno: a file is missing since SCR_Start_output */
    kvtree_error route_error; /* the reason; the first failure counts */
    kvtree *refused;    /* <name>/<reason>: names that SCR_Route_file refused on this rank
                           in this phase and that no other file has replaced yet */
    bool told_in_place; /* the message that the program bypasses the cache was printed */
    double start;       /* MPI_Wtime */
} scr_output;

/* The flush in progress, and the last flush that failed. */
typedef struct scr_flush {
    struct scr_flush_run *current; /* NULL: no flush is in progress */
    int failed;                    /* code of a failed flush, until a call returns it */
    int failed_id;                 /* id of its dataset */
    double waited;                 /* seconds spent waiting for background flushes */
} scr_flush;

/* Facts for SCR_Need_checkpoint. */
typedef struct scr_pace {
    int64_t need_calls;   /* calls of SCR_Need_checkpoint since SCR_Init; on rank 0 */
    double started;       /* scr_clock at the end of SCR_Init */
    double last_ckpt;     /* scr_clock at the last checkpoint; initially as started */
    double output_called; /* scr_clock at the call of SCR_Start_output */
    double idle_since;    /* MPI_Wtime when the application resumed its own work */
    double ckpt_cost;     /* mean seconds of a checkpoint so far */
    int ckpt_count;       /* completed in this run */
    scr_history history;  /* from the log of earlier runs; on rank 0 */
    double interval_told; /* the last logged choice of SCR_CHECKPOINT_INTERVAL=auto */
} scr_pace;

struct scr {
    scr_job job;
    scr_config config;
    scr_descs descs;
    struct scr_settings set;
    scr_lifecycle lifecycle;
    scr_cache cache;
    scr_prefix prefix;
    scr_output output;
    struct scr_restart restart;
    scr_flush flush;
    scr_halt halt;
    scr_pace pace;
    scr_report report;
    scr_once once; /* state of the report */
    scr_tally tally;
};

/* Ends a collective SCR call: drops the index that the call has read. */
static inline void scr_call_end(struct scr *scr)
{
    scr_index_close(&scr->prefix);
}

/* ---- ops/tally.c: progress of an operation on a dataset ---- */

/* Begins progress lines with that message, if SCR_PROGRESS requests them;
 * scr_progress_end ends them. The bytes of a flush count from the start of the flush, the
 * bytes of other operations from this call. Every rank must call it equally often.
 * Local. */
void scr_show_progress(struct scr *scr, scr_progress *progress, scr_message message,
                       const char *what, const scr_dataset *d);

/* ---- ops/logging.c: the log of the run ---- */

/* Opens the log, if one is configured. Collective; failures are only printed. */
void scr_logging_begin(struct scr *scr);
void scr_logging_ready(struct scr *scr);         /* at the end of SCR_Init */
void scr_logging_end(struct scr *scr, int code); /* at the end of SCR_Finalize */

/* ---- ops/settings.c: parameters to settings ---- */
int scr_settings_load(struct scr *scr);

/* Gives each node its own row of GROUPS. Until then only rank 0 has the rows, those of
 * all nodes; it sends each row to the first rank of its node. Collective; an SCR code. */
int scr_settings_find_groups(struct scr *scr);

/* ---- ops/query.c ---- */

/* Answers a question of SCR_Config. The caller frees the answer; NULL: there is none.
 * Local. */
char *scr_query(struct scr *scr, const char *question);

/* ---- ops/init.c ---- */
/* Starts the run. rc: an earlier error of this process, or 0. Collective. */
int scr_start(struct scr *scr, MPI_Comm comm, int rc);

/* Frees the context. Local, if no flush is in progress. */
void scr_release(struct scr *scr);

/* ---- ops/finalize.c ---- */

/* Watches for a call of MPI_Finalize without SCR_Finalize, and reports it; unwatch ends
 * this. */
void scr_finalize_watch(struct scr *scr);
void scr_finalize_unwatch(struct scr *scr);

/* Does the work of SCR_Finalize, except for freeing the context. */
int scr_finish(struct scr *scr);

/* Flushes the newest cached checkpoint, unless the prefix directory has it. */
int scr_flush_newest(struct scr *scr);

/* SCR_GLOBAL_RESTART: flushes the outputs and the newest checkpoint of the cache and
 * empties it, so that the next restart reads from the prefix directory. If a flush fails,
 * the cache is kept. */
void scr_leave_cache(struct scr *scr);

/* ---- ops/eviction.c: eviction from the cache ---- */

/* Removes useless datasets if the store lacks room for a new dataset beside them.
 * Collective. */
void scr_cache_relieve(struct scr *scr, int store);

/* Removes the datasets with ids above this one that this run cannot use. */
void scr_cache_delete_unusable(struct scr *scr, int above);

/* Removes the datasets that were kept only until a newer checkpoint is complete. */
void scr_cache_outdate(struct scr *scr);

/* Removes the oldest datasets of a store until fewer than capacity are left. With
 * spare_newest the newest checkpoint stays, even if the store then has one dataset too
 * many. */
void scr_cache_make_room(struct scr *scr, int store, int capacity, int spare_newest);

/* Takes the dataset that makes room for a new one out of the records of a store, so that
 * fewer than capacity are left. Returns its id, or 0. Its files may be removed once all
 * ranks have returned from this call. *tight: the store has so little room that they must
 * be removed before any rank writes. */
int scr_cache_leave(struct scr *scr, int store, int capacity, int64_t *tight);

/* Makes datasets that stayed because they could not be flushed candidates for eviction
 * again. Local. */
void scr_cache_try_again(struct scr *scr);

/* Removes a dataset from the cache, files and records, even if it is being flushed.
 * Failures are reported. Collective. */
void scr_cache_delete(struct scr *scr, int id);

/* ---- ops/location.c ---- */

/* Removes a dataset that is not being flushed from the cache, files and records. Failures
 * are reported. Collective. */
void scr_cache_drop(struct scr *scr, int id);

/* Whether the prefix directory has all of a cached dataset, even if the program has
 * dropped its entry. Collective. */
bool scr_cache_is_saved(struct scr *scr, int id);

/* ---- ops/recover.c ---- */

/* Distributes all cached datasets, oldest first, and rebuilds those with missing files.
 * Of complete datasets only headers and sizes are read. */
int scr_rebuild_cache(struct scr *scr);

/* Must be called before a cached dataset is used. Reads a dataset of an earlier run
 * completely the first time, and rebuilds damaged files. Collective. 1: the dataset is as
 * it was written. 0: it is lost, or unusable in this run; this was reported. */
int scr_cache_ensure(struct scr *scr, int id);

/* ---- ops/output.c; ops/route.h has more ---- */
int scr_output_start(struct scr *scr, const char *name, int flags);
int scr_output_complete(struct scr *scr, int valid);

/* ---- ops/redundancy.c ---- */

/* Creates the redundancy sets of all descriptors in use. Agreed; an SCR code; a failure
 * is reported. */
int scr_redundancy_begin(struct scr *scr);

/* The same for a descriptor whose store was opened late. */
int scr_redundancy_late(struct scr *scr, const scr_reddesc *desc);

/* Protects the files of this rank (named in the map or routed) and records them. File
 * names are relative to the dataset's directory. Collective; 0 or -errno with a text. */
int scr_protect(scr_cache *cache, const scr_dataset *dataset, int count,
                redset_file *files, kvtree_error *err);

/* Frees a list of files, and their meta data. */
void scr_files_free(int count, redset_file *files);

/* ---- ops/direct_io.c: output to the prefix directory itself ---- */

/* Begins the open dataset on the prefix directory. Agreed; 0 or -errno with a text. */
int scr_bypass_start(struct scr *scr, kvtree_error *err);

/* Completes the open dataset. Collective; an SCR code, with a text. */
int scr_bypass_complete(struct scr *scr, int valid, kvtree_error *err);

/* Extracts a file of the map of dataset id from its containers, which are below the open
 * directory folder, as the copy of that name in a store. Its bytes are added to the
 * meter. 0, also if the copy exists; otherwise a result of filo_extract with a text.
 * Local. */
int scr_bypass_extract(scr_cache_meter *meter, const scr_store_dir *store, int id,
                       int folder, const struct filo_file *file, const char *name,
                       kvtree_error *err);

/* Finds a file of the dataset that is read in place, if it lies in containers: extracts
 * it to the cache of this node until the end of the restart. Local. -ENOENT: this rank
 * has no such file in containers; -EBADMSG with a text: it is damaged; or another -errno
 * with a text. */
int scr_bypass_find_packed(struct scr *scr, scr_file_match *match,
                           char path[SCR_MAX_FILENAME], kvtree_error *err);

/* Removes the extracted files. Called before the next SCR_Have_restart, before the next
 * output, and at the end. Collective. */
void scr_bypass_forget(struct scr *scr);

/* ---- ops/flush.c ---- */

/* Flushes a dataset, and waits for the end of the flush. */
int scr_flush_dataset(struct scr *scr, int id);

/* Waits for the flush in progress, if any, and starts to flush a dataset, in the
 * background if SCR_FLUSH_ASYNC is set. */
int scr_flush_start(struct scr *scr, int id);

/* Checks the progress of the flush, and concludes it if it has ended. Failures are
 * reported; the next call of scr_flush_result returns their code. */
void scr_flush_look(struct scr *scr);

/* Wait for the flush in progress; the second one only if that flush may write files of a
 * dataset of this name. */
void scr_flush_wait(struct scr *scr);
void scr_flush_wait_for(struct scr *scr, const char *name);

/* Stops the flush in progress if it is of dataset id (0: of any). Local files are not in
 * use then. */
void scr_flush_stop(struct scr *scr, int id);

/* Abandons the flush on this rank alone, as if the process had died. Local. */
void scr_flush_forget(struct scr *scr);

/* Returns the code of a background flush that failed, once. */
int scr_flush_result(struct scr *scr);

/* Id of the dataset that is being flushed; 0: none. */
int scr_flush_id(const struct scr *scr);

/* Path of the state file of a rank's transfer, in the control directory of this node. The
 * caller frees it; NULL without memory. */
char *scr_flush_state(const struct scr *scr, int rank);

/* A number that identifies the distribution of the processes over the nodes.
 * Collective. */
uint64_t scr_flush_layout(const struct scr *scr);

/* Resumes a flush that an earlier run began, in the background and with that form; an SCR
 * code. */
int scr_flush_resume(struct scr *scr, int id, const filo_form *form);

/* ---- ops/flush_files.c: the cached files of a flush ---- */

/* Sets d->scattered: whether a cached dataset has files outside of its directory.
 * Collective. */
void scr_flush_spread(struct scr *scr, scr_dataset *d);

/* Lists the files of the dataset that this process has, for filo. Local; 0 or -ENOMEM. */
int scr_flush_list(struct scr *scr, const scr_dataset *d, const scr_place *place,
                   int *count, filo_file **files, kvtree_error *err);

/* Deletes older checkpoints from the prefix directory (SCR_PREFIX_SIZE), after checkpoint
 * id was written to it. Collective; failures are reported. */
void scr_retain(struct scr *scr, int id);

/* ---- ops/flush_recovery.c ---- */

/* Handles interrupted flushes of this job: resumes one, and removes the stages of the
 * others. Must follow the rebuild of the cache. Collective. */
void scr_flush_recover(struct scr *scr);

/* ---- ops/dataset_admin.c ---- */
int scr_manage_current(struct scr *scr, const char *name);
int scr_manage_delete(struct scr *scr, const char *name, int files_too);

#endif
