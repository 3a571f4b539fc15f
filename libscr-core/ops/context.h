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
#include "plan/cadence.h"
#include "plan/dataset.h"
#include "plan/lifecycle.h"
#include "report/history.h"
#include "report/report.h"
#include "scr.h"
#include <mpi.h>
#include <redset/redset_mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* The prefix folder. */
typedef struct scr_prefix {
    char *path; /* as given, absolute */
    char *real; /* the same folder without links */
    int fd;
    kvtree *flush_file; /* rank 0's copy counts */
    kvtree *staged;     /* rank 0, where the index was lost and made again: the search met
                           stages of flushes in these folders, as keys; else NULL */
} scr_prefix;

/* State of the API: what may be called, and the dataset of the open phase. */
typedef struct scr_lifecycle {
    scr_state state;
    int disabled;            /* SCR_ENABLE=0 */
    int init_failed;         /* reported once, though an application that ignores it makes
                                thousands of calls */
    scr_dataset open;        /* the dataset of an output or a restart */
    int dataset_id, ckpt_id; /* last ones used */
    int begun;               /* an output or a restart was started */
    int have_called;         /* SCR_Have_restart was */
    int keyval;              /* of the attribute of MPI_COMM_SELF, ... */
    int watching;            /* ... which is there */
} scr_lifecycle;

/* The open output. */
typedef struct scr_output {
    kvtree *routed;   /* files: <name below the prefix folder>/{ORIG, PATH} */
    int route_failed; /* here, since SCR_Start_output: a file of it is missing */
    kvtree *refused;  /* names that SCR_Route_file refused on this rank in this phase, as
                         long as no other file took their place */
    double start;     /* MPI_Wtime */
} scr_output;

/* Files that are read on the prefix folder itself. */
typedef struct scr_direct {
    kvtree *files;       /* of this rank in the dataset that is read there */
    scr_dataset dataset; /* which dataset that is; id 0: none */
} scr_direct;

/* The flush under way, and the last one that failed. */
typedef struct scr_flush {
    struct scr_flush_run *current; /* under way; or NULL */
    int failed;                    /* code of one that failed, until a call returns it; */
    int failed_id;                 /* of which dataset */
    double waited;                 /* seconds for flushes in the background */
} scr_flush;

/* What SCR_Need_checkpoint goes by. */
typedef struct scr_pace {
    int64_t need_calls;   /* of SCR_Need_checkpoint since SCR_Init */
    int need_given;       /* SCR_Need_checkpoint said 1 */
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
    scr_direct direct;
    scr_flush flush;
    scr_halt halt;
    scr_pace pace;
    scr_report report;
};

/* ---- ops/logging.c: the log of the run ---- */

/* Begins it, where one is wanted. Collective; whatever fails is only printed. */
void scr_logging_begin(struct scr *scr);
void scr_logging_ready(struct scr *scr);         /* SCR_Init is done */
void scr_logging_end(struct scr *scr, int code); /* SCR_Finalize is */

/* ---- ops/settings.c: parameters to settings ---- */
int scr_settings_load(struct scr *scr);

/* ---- ops/query.c ---- */

/* The answer to a question of SCR_Config, to be freed; NULL: there is none. Local. */
char *scr_query(struct scr *scr, const char *question);

/* ---- ops/init.c ---- */
/* Collective; rc: what this process has met with before, a negative error. */
int scr_start(struct scr *scr, MPI_Comm comm, int rc);

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

/* SCR_GLOBAL_RESTART: all that the cache has goes to the prefix folder, and the next
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

/* Stops a flush of a dataset, and removes it from the cache as scr_cache_drop does. */
void scr_cache_delete(struct scr *scr, int id);

/* ---- ops/location.c ---- */

/* Removes a dataset that no flush reads from the cache: files and records. A failure is
 * reported, and not fatal. */
void scr_cache_drop(struct scr *scr, int id);

/* Records on rank 0 where a dataset is, and writes the flush file. */
void scr_location(struct scr *scr, const scr_dataset *dataset, const char *location,
                  int on);

/* Whether the prefix folder has all of a cached dataset, also where the program has
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

/* 1 for names below the prefix folder that SCR uses itself: with a component ".scr", and
 * those of redundancy files. */
int scr_name_is_reserved(const char *name);

/* ---- ops/redundancy.c ---- */

/* The redundancy sets of all descriptors in force. Agreed; a code; a failure is reported.
 */
int scr_redundancy_begin(struct scr *scr);

/* Those of a descriptor whose store was opened late. The same. */
int scr_redundancy_late(struct scr *scr, const scr_reddesc *desc);

/* Protects the files of this rank (named in the map or routed) and records them. names:
 * below the dataset's folder. Collective; 0 or -errno with a text. */
int scr_protect(scr_cache *cache, const scr_dataset *dataset, int count,
                redset_file *files, char *err);

/* Frees such a list with the meta data in it. */
void scr_files_free(int count, redset_file *files);

/* ---- ops/direct_io.c: datasets in the prefix folder itself ---- */

/* Begins the open dataset there. Agreed; 0 or -errno with a text. */
int scr_bypass_start(struct scr *scr, char *err);

/* The path to write to for a name below the prefix folder; its folder is made. Local; 0
 * or -errno with a text. */
int scr_bypass_route(struct scr *scr, const char *below, char path[SCR_MAX_FILENAME],
                     char *err);

/* Makes the open dataset complete: all is on disk, with map, summary and index entry.
 * Collective; an SCR code, with a text. */
int scr_bypass_complete(struct scr *scr, int valid, char *err);

/* Removes what was routed. Collective; what fails is said. */
void scr_bypass_remove(struct scr *scr);

/* 1 when a dataset of the prefix folder is read there, and not fetched. */
int scr_bypass_wanted(const struct scr *scr, const scr_dataset *d);

/* Finds the files of this rank, for scr_bypass_find; compare: reads them, for their
 * checksums. Agreed; 0, -errno or a verdict of filo, with a text. */
int scr_bypass_open(struct scr *scr, const scr_dataset *d, int compare, char *err);

/* The same check of this rank's files below folder that are about to be fetched, and that
 * have no checksum: whether one was written since its map. Agreed. */
struct filo_file;
int scr_bypass_check(struct scr *scr, const scr_dataset *d, const char *folder, int count,
                     struct filo_file *files, char *err);

/* ---- ops/flush.c ---- */

/* Flushes a dataset, and returns when that is done. */
int scr_flush_dataset(struct scr *scr, int id);

/* Starts to flush a dataset, in the background where SCR_FLUSH_ASYNC says so. One that is
 * under way already is waited for. */
int scr_flush_start(struct scr *scr, int id);

/* Looks after a flush that is under way; it may be done then. What went wrong is said,
 * and returned by the next call of scr_flush_result. */
void scr_flush_look(struct scr *scr);

/* Waits for it; the second one only if it may write files of a dataset of that name. */
void scr_flush_wait(struct scr *scr);
void scr_flush_wait_for(struct scr *scr, const char *name);

/* Stops it, if it is one of dataset id (0: of any); local files are free then. */
void scr_flush_stop(struct scr *scr, int id);

/* The code of a flush that failed in the background, once. */
int scr_flush_result(struct scr *scr);

/* Id of the dataset that is being flushed; 0: none. */
int scr_flush_id(const struct scr *scr);

/* Path of the state file of a rank's transfer, in the control folder of this node; to be
 * freed, NULL without memory. */
char *scr_flush_state(const struct scr *scr, int rank);

/* A number for how the processes are distributed over nodes. Collective. */
uint64_t scr_flush_layout(const struct scr *scr);

/* The identity of a flush of this job in its stage (filo_options). layout: that number
 * where files are packed, else 0. Local. */
enum { SCR_FLUSH_IDENTITY_SIZE = 512 };
void scr_flush_identity(const struct scr *scr, const scr_dataset *dataset,
                        uint64_t layout, char identity[SCR_FLUSH_IDENTITY_SIZE]);

/* Resumes in the background a flush that an earlier run began, with containers of that
 * size (0: none), or returns a code. */
int scr_flush_resume(struct scr *scr, int id, uint64_t container);

/* ---- ops/flush_files.c: the files that a flush is of ---- */

/* Where a flushed dataset lies: its folder (absolute, to be freed), the map in it, and
 * the prefix that the names of its files have in the cache ("" or "<name>/"). Local; 0 or
 * -ENOMEM. */
typedef struct scr_place {
    char *folder;
    char map[SCR_NAME_SIZE + 32];
    char cache_prefix[SCR_NAME_SIZE + 2];
} scr_place;
/* Opens the folder of a dataset, or, for "", the prefix folder; -ELOOP where a link or
 * something else is in its place. */
int scr_place_open(const struct scr *scr, const char *name, int *folder, char *err);

int scr_place_of(const struct scr *scr, const scr_dataset *dataset, scr_place *place);

/* Sets d->scattered: whether a cached dataset has files outside of its folder.
 * Collective. */
void scr_flush_spread(struct scr *scr, scr_dataset *d);

/* This rank's files of the dataset, as filo sees them. Local; 0 or -ENOMEM. */
struct filo_file;
int scr_flush_list(struct scr *scr, const scr_dataset *d, const scr_place *place,
                   int *count, struct filo_file **files, char *err);

/* ---- ops/flush_recovery.c ---- */

/* Flushes of this job that were interrupted: one is resumed, the stages of the others are
 * removed. After the cache was rebuilt. Collective. */
void scr_flush_recover(struct scr *scr);

/* ---- ops/index_store.c: the index, on rank 0 ---- */

/* At start: reads the index, takes the ids of new datasets from it, and reads the flush
 * file. Local; 0 or -errno with a text. */
int scr_index_begin(struct scr *scr, char *err);

/* Removes temporary files in .scr of the open folder that a run left which died while it
 * wrote a record. name is for messages. Local. */
void scr_records_sweep(const struct scr *scr, int folder, const char *name);

/* Rank 0 reads the index into the empty tree index. One that is damaged is set aside
 * first; from that or one that was lost, an index is made again from what is on the
 * prefix folder, which is said. Local. */
int scr_index_load(struct scr *scr, kvtree *index, char *err);

/* Rank 0 reads the index, lets change alter the entry of a dataset, and writes it. Local;
 * 0, -ENOENT when there is no such entry, or another -errno. */
typedef int scr_index_changer(kvtree *index, const scr_dataset *dataset);
int scr_index_change(struct scr *scr, const scr_dataset *dataset,
                     scr_index_changer *change, char *err);

/* Rank 0 reads the index, lets change alter any of it (> 0: it did), and writes it.
 * Local; 0 or -errno with a text. */
int scr_index_rewrite(struct scr *scr, scr_changer *change, void *arg, char *err);

/* Removes all that the index has of that name, for good. The same. */
int scr_index_drop(struct scr *scr, const scr_dataset *dataset, char *err);

/* On rank 0: a complete dataset takes the place of all that the index has of its name.
 * The same. */
int scr_index_correct(struct scr *scr, const scr_dataset *dataset, char *err);

/* Around a flush: before its stage is made the index says that the dataset is not
 * complete; and that it is complete when summary and files are in place. Other ranks do
 * nothing. Local; 0 or -errno with a text. */
int scr_index_flush_begins(struct scr *scr, const scr_dataset *dataset, char *err);
int scr_index_flush_ends(struct scr *scr, const scr_dataset *dataset, char *err);

/* ---- ops/retention.c: deletion and retention on the prefix folder ---- */

/* Deletes a flushed dataset: its files, shared out among the ranks, its records, and its
 * entry. 0 or -errno with a text. */
int scr_flushed_delete(struct scr *scr, const scr_dataset *dataset, char *err);

/* At start: deletes all of the prefix folder (SCR_PREFIX_PURGE), or finishes what a run
 * that was killed began to delete. Failures are said. */
void scr_retention_begin(struct scr *scr);

/* Checkpoint id has just been flushed: older ones make way (SCR_PREFIX_SIZE). Failures
 * are said. */
void scr_retention_flushed(struct scr *scr, int id);

/* ---- ops/dataset_admin.c ---- */
int scr_manage_current(struct scr *scr, const char *name);
int scr_manage_delete(struct scr *scr, const char *name, int files_too);

#endif
