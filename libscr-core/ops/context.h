/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CONTEXT_H
#define SCR_CONTEXT_H

/* Everything a run knows hangs off one struct scr; there are no other variables. The
 * SCR_* calls in scr.c are a face over one default context.
 *
 * Functions here return SCR_SUCCESS or an SCR_ERR_ code, the same on every rank where
 * they are collective over scr->job.world (most are). The function that detects a failure
 * reports it, once, by scr_fail. */

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

/* State of the API: what may be called, and the dataset of the open phase. */
typedef struct scr_lifecycle {
    scr_state state;
    int disabled;       /* SCR_ENABLE=0 */
    int init_failed;    /* reported once, though an application that ignores it makes
                           thousands of calls */
    scr_dataset open;   /* the dataset of an output or a restart */
    scr_counters last;  /* of all known datasets */
    int begun;          /* an output or a restart was started */
    int have_called;    /* SCR_Have_restart was */
    int current_called; /* SCR_Current was: the program restarts by itself */
    int keyval;         /* of the attribute of MPI_COMM_SELF, ... */
    int watching;       /* ... which is there */
} scr_lifecycle;

/* The open output. */
typedef struct scr_output {
    kvtree *routed;           /* files: <name below the prefix directory>/{ORIG, PATH} */
    int route_failed;         /* -errno: since SCR_Start_output a file is missing, */
    kvtree_error route_error; /* for this reason; the first one counts */
    kvtree *refused;    /* <name>/<reason>: refused by SCR_Route_file on this rank in
                           this phase, as long as no other file took its place */
    bool told_in_place; /* that the program bypasses the cache */
    double start;       /* MPI_Wtime */
} scr_output;

/* The flush under way, and the last one that failed. */
typedef struct scr_flush {
    struct scr_flush_run *current; /* under way; or NULL */
    int failed;                    /* code of one that failed, until a call returns it; */
    int failed_id;                 /* of which dataset */
    double waited;                 /* seconds for flushes in the background */
} scr_flush;

/* What SCR_Need_checkpoint goes by. */
typedef struct scr_pace {
    int64_t need_calls;   /* of SCR_Need_checkpoint since SCR_Init; on rank 0 */
    double started;       /* scr_clock when SCR_Init was done, */
    double last_ckpt;     /* when the last checkpoint was complete, or that, */
    double output_called; /* and when SCR_Start_output was called */
    double idle_since;    /* MPI_Wtime when the application resumed its own work */
    double ckpt_cost;     /* mean seconds of a checkpoint so far */
    int ckpt_count;       /* completed in this run */
    scr_history history;  /* from the log of earlier runs; on rank 0 */
    double interval_told; /* what SCR_CHECKPOINT_INTERVAL=auto chose when that was logged
                           */
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
    scr_once once; /* of the report */
    scr_tally tally;
};

/* At the end of each collective SCR call: the index that it has read is not kept. */
static inline void scr_call_end(struct scr *scr)
{
    scr_index_close(&scr->prefix);
}

/* ---- ops/tally.c: how far an operation on a dataset is ---- */

/* Lines until scr_progress_end, with that message, where SCR_PROGRESS asks for them. The
 * bytes of a flush are counted from its begin on, those of all else from here on: each
 * rank calls it as often as the others. Local. */
void scr_show_progress(struct scr *scr, scr_progress *progress, scr_message message,
                       const char *what, const scr_dataset *d);

/* ---- ops/logging.c: the log of the run ---- */

/* Begins it, where one is wanted. Collective; whatever fails is only printed. */
void scr_logging_begin(struct scr *scr);
void scr_logging_ready(struct scr *scr);         /* SCR_Init is done */
void scr_logging_end(struct scr *scr, int code); /* SCR_Finalize is */

/* ---- ops/settings.c: parameters to settings ---- */
int scr_settings_load(struct scr *scr);

/* What this node has in GROUPS: rank 0, which has the rows of all nodes until then, tells
 * the first rank of each node. Collective; a code. */
int scr_settings_find_groups(struct scr *scr);

/* ---- ops/query.c ---- */

/* The answer to a question of SCR_Config, to be freed; NULL: there is none. Local. */
char *scr_query(struct scr *scr, const char *question);

/* ---- ops/init.c ---- */
/* Collective; rc: what this process has met with before, a negative error. */
int scr_start(struct scr *scr, MPI_Comm comm, int rc);

/* Frees everything. Local, if no flush is under way. */
void scr_release(struct scr *scr);

/* ---- ops/finalize.c ---- */

/* Reports a program that calls MPI_Finalize without SCR_Finalize; until it is released.
 */
void scr_finalize_watch(struct scr *scr);
void scr_finalize_unwatch(struct scr *scr);

/* The work of SCR_Finalize before everything is freed. */
int scr_finish(struct scr *scr);

/* Flushes the newest checkpoint of the cache, unless that was done. */
int scr_flush_newest(struct scr *scr);

/* SCR_GLOBAL_RESTART: all that the cache has goes to the prefix directory, and the next
 * restart comes from there. What could not be flushed is not given up. */
void scr_leave_cache(struct scr *scr);

/* ---- ops/eviction.c: eviction from the cache ---- */

/* Removes useless datasets, if the store has no room for a new dataset beside
 * it. Collective. */
void scr_cache_relieve(struct scr *scr, int store);

/* Removes what this run cannot use and has an id above this one. */
void scr_cache_delete_unusable(struct scr *scr, int above);

/* Removes what was kept only until a newer checkpoint is complete. */
void scr_cache_outdate(struct scr *scr);

/* Removes the oldest datasets of a store until there are less than capacity; with
 * spare_newest, the newest checkpoint stays even if that makes one too many. */
void scr_cache_make_room(struct scr *scr, int store, int capacity, int spare_newest);

/* Takes the dataset that is to make way for a new one out of the records of a store, so
 * that there are less than capacity; its id, or 0. Its files may go when all ranks have
 * come so far. *tight: so little room is left that they must go before any rank writes.
 */
int scr_cache_leave(struct scr *scr, int store, int capacity, int64_t *tight);

/* What could not be flushed, and stayed therefore, may leave if it can be now. Local. */
void scr_cache_try_again(struct scr *scr);

/* Removes a dataset from the cache, also one that is being flushed: files and records.
 * Failures are reported. Collective. */
void scr_cache_delete(struct scr *scr, int id);

/* ---- ops/location.c ---- */

/* Removes a dataset that is not being flushed from the cache: files and records. Failures
 * are reported. Collective. */
void scr_cache_drop(struct scr *scr, int id);

/* Whether the prefix directory has all of a cached dataset, also where the program has
 * dropped its entry. Collective. */
bool scr_cache_is_saved(struct scr *scr, int id);

/* ---- ops/recover.c ---- */

/* Distributes all cached datasets, oldest first, and rebuilds those of which something is
 * missing. Of others only headers and sizes are read. */
int scr_rebuild_cache(struct scr *scr);

/* To be called before a cached dataset is used: one of an earlier run is read as a whole
 * the first time, and what is damaged is rebuilt. Collective; 1: it is as it was written.
 * 0: it is lost, or cannot be used in this run, which was reported. */
int scr_cache_ensure(struct scr *scr, int id);

/* ---- ops/output.c; ops/route.h has more ---- */
int scr_output_start(struct scr *scr, const char *name, int flags);
int scr_output_complete(struct scr *scr, int valid);

/* ---- ops/redundancy.c ---- */

/* The redundancy sets of all descriptors in force. Agreed; a code; a failure is reported.
 */
int scr_redundancy_begin(struct scr *scr);

/* Those of a descriptor whose store was opened late. The same. */
int scr_redundancy_late(struct scr *scr, const scr_reddesc *desc);

/* Protects the files of this rank (named in the map or routed) and records them. names:
 * below the dataset's directory. Collective; 0 or -errno with a text. */
int scr_protect(scr_cache *cache, const scr_dataset *dataset, int count,
                redset_file *files, kvtree_error *err);

/* Frees such a list with the meta data in it. */
void scr_files_free(int count, redset_file *files);

/* ---- ops/direct_io.c: output to the prefix directory itself ---- */

/* Begins the open dataset there. Agreed; 0 or -errno with a text. */
int scr_bypass_start(struct scr *scr, kvtree_error *err);

/* Makes the open dataset complete. Collective; an SCR code, with a text. */
int scr_bypass_complete(struct scr *scr, int valid, kvtree_error *err);

/* Extracts a file of the map of dataset id, out of its containers below the open
 * directory folder, as the copy of that name in a store. Its bytes count in the meter. 0,
 * also where the copy is there; or a result of filo_extract with a text. Local. */
int scr_bypass_extract(scr_cache_meter *meter, const scr_store_dir *store, int id,
                       int folder, const struct filo_file *file, const char *name,
                       kvtree_error *err);

/* A file of the dataset that is read in place, out of its containers: extracted to the
 * cache of this node for the time of the restart. Local. -ENOENT: this rank has none of
 * that name there; or another -errno with a text, -EBADMSG for one that is damaged. */
int scr_bypass_find_packed(struct scr *scr, scr_file_match *match,
                           char path[SCR_MAX_FILENAME], kvtree_error *err);

/* Before the next question for a restart, the next output, and at the end: removes what
 * was extracted. Collective. */
void scr_bypass_forget(struct scr *scr);

/* ---- ops/flush.c ---- */

/* Flushes a dataset, and returns when that is done. */
int scr_flush_dataset(struct scr *scr, int id);

/* Starts to flush a dataset, in the background where SCR_FLUSH_ASYNC says so. One that is
 * under way already is waited for. */
int scr_flush_start(struct scr *scr, int id);

/* Checks the progress of a flush that is under way; it may be complete then. Failures are
 * reported, and returned by the next call of scr_flush_result. */
void scr_flush_look(struct scr *scr);

/* Waits for it; the second one only if it may write files of a dataset of that name. */
void scr_flush_wait(struct scr *scr);
void scr_flush_wait_for(struct scr *scr, const char *name);

/* Stops it, if it is one of dataset id (0: of any); local files are free then. */
void scr_flush_stop(struct scr *scr, int id);

/* Gives it up on this rank alone, as its death would do. Local. */
void scr_flush_forget(struct scr *scr);

/* The code of a flush that failed in the background, once. */
int scr_flush_result(struct scr *scr);

/* Id of the dataset that is being flushed; 0: none. */
int scr_flush_id(const struct scr *scr);

/* Path of the state file of a rank's transfer, in the control directory of this node; to
 * be freed, NULL without memory. */
char *scr_flush_state(const struct scr *scr, int rank);

/* A number for how the processes are distributed over nodes. Collective. */
uint64_t scr_flush_layout(const struct scr *scr);

/* Resumes in the background a flush that an earlier run began, in that form, or returns a
 * code. */
int scr_flush_resume(struct scr *scr, int id, const filo_form *form);

/* ---- ops/flush_files.c: the cached files that a flush is of ---- */

/* Sets d->scattered: whether a cached dataset has files outside of its directory.
 * Collective. */
void scr_flush_spread(struct scr *scr, scr_dataset *d);

/* The files of the dataset that this process has, as filo sees them. Local; 0 or
 * -ENOMEM. */
int scr_flush_list(struct scr *scr, const scr_dataset *d, const scr_place *place,
                   int *count, filo_file **files, kvtree_error *err);

/* Checkpoint id has just been written to the prefix directory: older ones make way
 * (SCR_PREFIX_SIZE). Collective; failures are reported. */
void scr_retain(struct scr *scr, int id);

/* ---- ops/flush_recovery.c ---- */

/* Flushes of this job that were interrupted: one is resumed, the stages of the others are
 * removed. After the cache was rebuilt. Collective. */
void scr_flush_recover(struct scr *scr);

/* ---- ops/dataset_admin.c ---- */
int scr_manage_current(struct scr *scr, const char *name);
int scr_manage_delete(struct scr *scr, const char *name, int files_too);

#endif
