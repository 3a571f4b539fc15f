/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CACHE_H
#define SCR_CACHE_H

/* The node-local side of a run: the control directory, the stores, and the datasets in
 * them.
 *
 * On disk the cache owns <base>/<owner> of SCR_CNTL_BASE (lock, record of the prefix
 * directory, filemaps, state files of transfers) and of each store (scr.dataset.<id>/
 * with the files of one dataset and the redundancy file of each rank). The headers of the
 * redundancy files define what is in a store (cache/catalog.c). Filemaps are for people
 * and commands; a run reads only those of earlier runs, to replace lost headers and to
 * find the newest checkpoint in directories that it does not use.
 *
 * ops/ calls these functions; they know nothing of the prefix directory or of flushes.
 * "Local" functions may be called by one rank alone; all others are collective over the
 * job. "Agreed" functions return the same on every rank: 0, or -errno with a text. Each
 * function reports the failures that it does not return. */

#include "cache/filemap.h"
#include "config/descs.h"
#include "config/values.h"
#include "job/job.h"
#include "plan/dataset.h"
#include "plan/evict.h"
#include <redset/redset_mpi.h>
#include <stdbool.h>

/* The directory of this job in one store. */
typedef struct scr_store_dir {
    char path[SCR_DESC_PATH_SIZE]; /* of the store on this node */
    char *folder;                  /* <path>/<owner> */
    int fd;
    const char *method; /* of transfers */
    int capacity;       /* maximum number of datasets; 0: only those of an earlier run */
    int global;         /* all nodes see the same files */
    MPI_Comm comm;      /* processes that share the store; the first of them creates and
                           removes files */
    int rank;
} scr_store_dir;

typedef enum scr_cached_state {
    SCR_CACHED_INCOMPLETE,  /* its files are being written, fetched or rebuilt */
    SCR_CACHED_GOOD,        /* this run can use it */
    SCR_CACHED_UNREADABLE,  /* an error, which may be temporary, keeps it from being
                               used */
    SCR_CACHED_USELESS,     /* it lost too much, or the program refused it */
    SCR_CACHED_OTHER_RANKS, /* written by another number of ranks */
} scr_cached_state;

/* A dataset in the cache. A dataset that this run cannot use leaves when a newer
 * checkpoint is complete; one that another number of ranks wrote stays. */
typedef struct scr_cached {
    scr_dataset d;
    scr_cached_state state;
    int store;    /* number of its store; -1: not found in any */
    bool held;    /* eviction is due, but the dataset cannot be flushed */
    bool unread;  /* its files must be compared with their checksums before use */
    bool used;    /* this run wrote it, or restarted from it, since its last comparison */
    bool dropped; /* its files are on the prefix directory, and the program has dropped
                     its index entry: it is not flushed again */
    scr_reddesc desc;
} scr_cached;

/* Counts the bytes that come to this process, for progress reports. */
typedef struct scr_cache_meter {
    void (*report)(void *arg, uint64_t done, uint64_t total); /* NULL: no reports */
    void *arg;
    uint64_t done, total;
} scr_cache_meter;

/* The node-local side: control directory, stores, and what they hold. */
typedef struct scr_cache {
    scr_job *job;
    const struct scr_settings *set;
    const scr_descs *descs;
    const char *prefix; /* real path of the prefix directory, for the record */
    kvtree *recorded;   /* on the leader of a node: STORE/<path> of earlier runs */
    char *control;      /* <base>/<owner> */
    int control_fd;
    int lock_fd; /* at the leader of a node: lock of this run; else -1 */
    char map_name[64];
    scr_filemap *map;      /* the cached files for which this process is responsible */
    scr_store_dir *stores; /* in use; the same number on every rank */
    int store_count;
    int *store_of_desc;  /* number of the store of each redundancy descriptor; -1: none */
    redset **sets;       /* of each redundancy descriptor in use; else NULL */
    scr_cached *list;    /* all datasets, unsorted, the same on every rank */
    scr_evict_row *rows; /* working memory for planning evictions */
    int count;
    struct scr_removal *removing; /* removal in progress, at the first process of a store;
                                     or NULL */
    int leaving, leaving_from;    /* id of the dataset that is being removed, or 0; its
                                     store */
    int flushing;                 /* id of the dataset that a flush reads; 0: none */
    int lost;                     /* another run has taken the directories on the nodes */
    int unsaved; /* they had the only copy of the newest checkpoint, or of an output */
    int clean;   /* the cache is empty, and the run must leave nothing on the nodes */
    scr_cache_meter meter;
} scr_cache;

/* ---- cache/control_dir.c ---- */

/* Opens the control directory of job->owner on this node. Local; 0 or -errno with a
 * text. */
int scr_control_open(scr_cache *cache, kvtree_error *err);
void scr_control_close(scr_cache *cache);

/* Reports that a file in the control directory is damaged, and why. Local. */
void scr_control_warn(const scr_cache *cache, const char *reason);

/* Removes the control directory, and empty directories above it. Local. */
void scr_control_remove(const scr_cache *cache);

/* Whether this node has a control directory of that owner. Local. */
bool scr_control_exists(const scr_cache *cache, const char *owner);

/* Reports base directories that other users can change, or in which they have taken the
 * user's name. Local. */
void scr_control_warn_of_bases(const scr_cache *cache);

/* The record in the control directory: the prefix directory of the calculation, and the
 * stores in use. scr_record_read keeps the stores in cache->recorded if the record is of
 * this calculation; err has the reason for DAMAGED. Local; 0 or -errno with a text. */
#define SCR_RECORD_NAME "prefix.scriinfo"
typedef enum scr_record_owner {
    SCR_RECORD_NONE,
    SCR_RECORD_MADE, /* ours; written since this run took the lock */
    SCR_RECORD_OURS,
    SCR_RECORD_THEIRS,
    SCR_RECORD_DAMAGED
} scr_record_owner;
int scr_record_read(scr_cache *cache, scr_record_owner *owner, kvtree_error *err);
int scr_record_write(const scr_cache *cache, kvtree_error *err);

/* Writes the record if it differs from the stores in use. Local; 0 or -errno with a
 * text. */
int scr_record_update(const scr_cache *cache, kvtree_error *err);

/* ---- cache/renew.c ---- */

/* Whether a cleanup has removed a directory of the run on this node, or the files that
 * keep other runs away. Local. */
bool scr_cache_is_gone(const scr_cache *cache);

/* Recreates removed directories, empty, so that the run can continue; the loss is
 * reported. Agreed; -EBUSY: another run uses the directories now, and its files were left
 * alone. */
int scr_cache_renew(scr_cache *cache, kvtree_error *err);

/* Drops all records of the cache, which another run uses now; the cache is not used
 * again. Local. */
void scr_cache_abandon(scr_cache *cache);

/* ---- cache/job_lock.c ---- */

/* Takes the control directory for this run: finds out whether control and cache
 * directories of this job belong to the calculation of this prefix directory, chooses
 * others if not, opens the control directory, and keeps other runs away. *elsewhere: id
 * of the newest checkpoint of this calculation in directories that this run cannot use;
 * 0: none. Agreed. */
int scr_job_lock_take(scr_cache *cache, int *elsewhere, kvtree_error *err);

void scr_job_lock_release(scr_cache *cache);

/* Updates the times of lock and record, which are written only once: cleanups delete by
 * age. Local. */
void scr_job_lock_touch(const scr_cache *cache);

/* Whether the control directory was removed, or the files in it that keep other runs
 * away. Local. */
bool scr_job_lock_is_lost(const scr_cache *cache);

/* Takes the same control directory again. Results as of scr_cache_renew. */
int scr_job_lock_renew(scr_cache *cache, kvtree_error *err);

/* On the leader of a node, before scr_job_lock_release: removes the files of the run in
 * the control directory, and the directory. Failures are ignored. */
void scr_job_lock_remove(scr_cache *cache);

/* ---- cache/store_dir.c: the stores in use, and the datasets in them ---- */

/* Opens the stores of the redundancy descriptors in use. Agreed. */
int scr_stores_open(scr_cache *cache, kvtree_error *err);

/* Opens the store of a descriptor that bypasses the cache, for files that can only be
 * read in a cache. Agreed. */
int scr_stores_open_late(scr_cache *cache, const scr_reddesc *desc, kvtree_error *err);
void scr_stores_close(scr_cache *cache);

/* Recreates stores that were removed. Local; 0 or -errno with a text. */
int scr_stores_renew(scr_cache *cache, kvtree_error *err);

/* The store of a dataset; NULL: unknown. */
scr_store_dir *scr_cache_of(const scr_cache *cache, int id);

/* The directory of this job in a dataset's store, for messages; "" if unknown. */
const char *scr_cache_path(const scr_cache *cache, int id);

/* Finds the store of a dataset of an earlier run by the paths of its files in the map,
 * even if this run does not use that store otherwise, and records the dataset with its
 * store and descriptor. Agreed. */
int scr_stores_locate(scr_cache *cache, const scr_dataset *dataset,
                      const scr_reddesc *desc, kvtree_error *err);

/* Path of a dataset's directory in the cache; the caller frees it. NULL: unknown, or no
 * memory. */
char *scr_dataset_folder(const scr_cache *cache, int id);

/* Creates the directory, on the first process of its store. Local; 0 or -errno with a
 * text. */
int scr_dataset_folder_make(scr_cache *cache, int id, kvtree_error *err);

/* Removes the directory with all its files, and forgets the dataset; if its store is
 * unknown, in all stores. Collective; failures are reported. */
void scr_dataset_folder_remove(scr_cache *cache, int id);

/* ---- cache/catalog.c: what is in the cache, by the headers of redundancy files ---- */

/* Reads the headers in all stores into the maps of the processes that share them,
 * including entries of other numbers of ranks and of ranks that run elsewhere; also in
 * the stores that the record of earlier runs names. Agreed. */
int scr_catalog_read(scr_cache *cache, kvtree_error *err);

/* Whether the entry of a rank comes from the header of a redundancy file, and not only
 * from a filemap. Local. */
bool scr_catalog_has_header(const scr_filemap *map, int id, int rank);

/* Removes directories of datasets that no header describes, which killed runs left. A
 * directory with unusable redundancy files is entered as a useless dataset instead, and
 * raises *highest to its id. Agreed. */
int scr_cache_sweep(scr_cache *cache, int *highest, kvtree_error *err);

/* ---- cache/filemaps.c: filemaps, for people and commands ---- */

/* Enters the files of a rank, as redset describes them after an encode or a rebuild, into
 * the map. Makes the dataset GOOD. Local; 0 or -errno with a text. */
int scr_map_record(scr_cache *cache, const scr_dataset *dataset,
                   const redset_manifest *manifest, kvtree_error *err);

/* Enters files in folder into any map, for the rank in manifest. Local; 0 or -ENOMEM. */
int scr_map_record_found(scr_filemap *map, const scr_dataset *dataset, const char *folder,
                         const redset_manifest *manifest);

/* Writes the filemaps of this run, which replace earlier ones. Agreed. */
int scr_filemaps_begin(scr_cache *cache, kvtree_error *err);

/* Adds all filemaps in the control directory to all; damaged ones are reported and
 * skipped. Local; 0 or -errno with a text. */
int scr_filemaps_read(const scr_cache *cache, scr_filemap *all, kvtree_error *err);

/* Writes this process's filemap. Local; 0 or -errno with a text. */
int scr_filemaps_write(const scr_cache *cache, kvtree_error *err);

/* Id of the newest complete checkpoint in the filemaps of the control directory; 0: none.
 * Local. */
int scr_filemaps_newest(const scr_cache *cache);

/* ---- cache/cached.c: the datasets of the cache. Local; the same on every rank ---- */

/* Name of a cached file below the fd of its store: "scr.dataset.<id>/<name>". A name that
 * is too long for a file is truncated, and then beneath.h refuses it. */
#define SCR_CACHED_NAME_SIZE (SCR_NAME_SIZE + 64)
void scr_cached_name(int id, const char *name, char path[SCR_CACHED_NAME_SIZE]);

/* The name of a dataset's directory in a store. */
#define SCR_FOLDER_SIZE 64
void scr_dataset_folder_name(int id, char name[SCR_FOLDER_SIZE]);

/* Enters a dataset in state INCOMPLETE, in place of any other with its id. 0 or
 * -ENOMEM. */
int scr_cached_add(scr_cache *cache, const scr_dataset *dataset, int store,
                   const scr_reddesc *desc);
void scr_cached_remove(scr_cache *cache, int id);

/* Sets the state of a dataset that is in the list. */
void scr_cached_set_state(scr_cache *cache, int id, scr_cached_state state);

/* Sets the state of a dataset, and adds it to the list, without a store, if it is
 * missing. Collective, agreed: -ENOMEM if any rank could not add it; then no rank has
 * it. */
int scr_cached_note(scr_cache *cache, const scr_dataset *dataset, scr_cached_state state,
                    kvtree_error *err);

scr_cached *scr_cached_find(const scr_cache *cache, int id); /* NULL: unknown */

/* The GOOD dataset with the smallest id above this one (0: the first); NULL: there is
 * none. Valid until a dataset is added or removed. */
scr_cached *scr_cached_next(const scr_cache *cache, int above);

/* The same among the datasets that this run cannot use, except for those of other numbers
 * of ranks. */
scr_cached *scr_cached_next_unusable(const scr_cache *cache, int above);
bool scr_cached_is_unusable(const scr_cached *cached);

/* Id of the newest GOOD checkpoint; 0: none. */
int scr_cached_newest(const scr_cache *cache);

/* The description of a complete dataset. 0 or -ENOENT. */
int scr_cached_get(const scr_cache *cache, int id, scr_dataset *dataset);

/* Sums up the application's files of a dataset in the map: number and bytes. */
void scr_cached_sums(const scr_cache *cache, int id, unsigned long sums[2]);

/* Whether the store could become full when a dataset is written that is as large as the
 * largest known one, or as dataset id. 0 except on the first process of the store. */
int scr_cached_lacks_room(const scr_cache *cache, int store);
int scr_cached_is_tight(const scr_cache *cache, int store, int id);

/* Name of a rank's redundancy file in the map, below the dataset's directory; it points
 * into the map. NULL: none. */
const char *scr_cached_redundancy(const scr_cache *cache, int id, int rank);

/* ---- cache/verify.c ---- */

/* Compares the files of a dataset with their checksums. Local; 0, or -errno with a text.
 */
int scr_cache_compare(const scr_cache *cache, int id, kvtree_error *err);

/* The same before the files are removed, if SCR_CRC_ON_DELETE is set; damage is reported.
 * Collective. */
void scr_cache_verify(const scr_cache *cache, int id);

/* ---- cache/adopt.c ---- */

/* Makes a dataset of another number of ranks usable where its files are: each process
 * acts for some of the ranks that wrote it, and has their files in its map. All files are
 * read, and lost ones are rebuilt; *rebuilt grows by the number of ranks whose files this
 * process rebuilt. Agreed; REDSET_UNRECOVERABLE if too much is lost. */
int scr_adopt(scr_cache *cache, const scr_dataset *dataset, int *rebuilt,
              kvtree_error *err);

/* ---- cache/distribute.c, cache/rank_transfer.c ---- */

/* Moves the files of a dataset to the ranks that wrote them. Agreed. Files that could not
 * be moved are reported; this is not a failure, because they may be rebuilt. */
typedef struct scr_moved {
    unsigned long sums[2]; /* number and bytes of the files that were moved to this
                              rank */
    int failed;            /* files for this rank could not be moved */
} scr_moved;
int scr_distribute(scr_cache *cache, const scr_dataset *dataset, scr_moved *moved,
                   kvtree_error *err);

/* Whether every rank has its files of the dataset, by names and sizes, so that there is
 * nothing to distribute. Collective. */
bool scr_distribute_is_done(scr_cache *cache, const scr_dataset *dataset);

/* Drops the files of a rank in a dataset from the map; with delete, also removes them.
 * Local. */
void scr_drop_files(scr_cache *cache, int id, int rank, int delete);

/* Sends the files of rank `to` to that rank, and receives this rank's own files from rank
 * `from` (MPI_PROC_NULL: none). 0, or -errno if this rank did not receive its files. Only
 * the ranks involved call it. Files that could not be moved stay with the sender; the
 * receiver drops and reports them. */
int scr_move_files(scr_cache *cache, const scr_dataset *dataset, int to, int from);

#endif
