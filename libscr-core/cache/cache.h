/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CACHE_H
#define SCR_CACHE_H

/* The node-local side of a run: the control directory, the stores, and the datasets in
 * them.
 *
 * On disk it owns <base>/<owner> of SCR_CNTL_BASE (lock, record of the prefix directory,
 * filemaps, state files of transfers) and of each store (scr.dataset.<id>/ with the files
 * of one dataset and the redundancy file of each rank). What is in a store is what the
 * headers of redundancy files say (cache/catalog.c). Filemaps are written for people and
 * commands; a run does not read them.
 *
 * ops/ calls these functions; they know nothing of the prefix directory or of flushes.
 * "Local" ones may be called by one rank alone. The others are collective over the job.
 * "Agreed" ones return the same on every rank: 0, or -errno with a text. Each function
 * reports the failures that it does not return. */

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
    int capacity;       /* most datasets; 0: none but those of an earlier run */
    int global;         /* all nodes see the same files */
    MPI_Comm comm;      /* processes that share it; the first of them makes and removes */
    int rank;
} scr_store_dir;

typedef enum scr_cached_state {
    SCR_CACHED_INCOMPLETE,  /* its files are being written, fetched or rebuilt */
    SCR_CACHED_GOOD,        /* this run can use it */
    SCR_CACHED_UNREADABLE,  /* an error keeps it from being used, which may pass */
    SCR_CACHED_USELESS,     /* it lost too much, or the program refused it */
    SCR_CACHED_OTHER_RANKS, /* written by another number of ranks */
} scr_cached_state;

/* A dataset in the cache. What this run cannot use leaves when a newer checkpoint is
 * complete; what other numbers of ranks wrote stays. */
typedef struct scr_cached {
    scr_dataset d;
    scr_cached_state state;
    int store;    /* its number; -1: it was not found in any */
    bool held;    /* eviction is due, but the dataset cannot be flushed */
    bool unread;  /* of an earlier run; its checksums have not been compared since then */
    bool used;    /* this run wrote it, or restarted from it, since they were compared */
    bool dropped; /* its files are on the prefix directory, and the program has dropped
                     its entry: it is not flushed again */
    scr_reddesc desc;
} scr_cached;

/* Bytes that come to this process, and who wants to know. */
typedef struct scr_cache_meter {
    void (*report)(void *arg, uint64_t done, uint64_t total); /* or NULL */
    void *arg;
    uint64_t done, total;
} scr_cache_meter;

/* The node-local side: control directory, stores, and what they hold. */
typedef struct scr_cache {
    scr_job *job;
    const struct scr_settings *set;
    const scr_descs *descs;
    const char
        *prefix;      /* real path of the prefix directory, for the record of the lock */
    kvtree *recorded; /* on the leader of a node: STORE/<path> of earlier runs */
    char *control;    /* <base>/<owner> */
    int control_fd;
    int lock_fd; /* at the leader of a node: of this run; else -1 */
    char map_name[64];
    scr_filemap *map;      /* files of the cache, for which this process is responsible */
    scr_store_dir *stores; /* in use, the same number on every rank */
    int store_count;
    int *store_of_desc;  /* number of the store of each redundancy descriptor; -1: none */
    redset **sets;       /* of each redundancy descriptor in force; else NULL */
    scr_cached *list;    /* all datasets, the same on every rank; no order */
    scr_evict_row *rows; /* room to plan evictions among them */
    int count;
    struct scr_removal *removing; /* under way, at the first of a store; or NULL */
    int leaving, leaving_from;    /* the dataset that is removed, or 0; its store */
    int flushing;                 /* id of the dataset that a flush reads; 0: none */
    int lost;    /* another run has taken the directories on the nodes, */
    int unsaved; /* which were the only place of the newest checkpoint, or of an output */
    int clean;   /* nothing is left in the cache, nor is anything to be left of the run */
    scr_cache_meter meter;
} scr_cache;

/* ---- cache/control_dir.c ---- */

/* The control directory of job->owner on this node. Local; 0 or -errno with a text. */
int scr_control_open(scr_cache *cache, kvtree_error *err);
void scr_control_close(scr_cache *cache);

/* Reports that a file of it is damaged, and why. Local. */
void scr_control_warn(const scr_cache *cache, const char *reason);

/* Removes it, and what is empty above it. Local. */
void scr_control_remove(const scr_cache *cache);

/* Whether this node has a control directory of that owner. Local. */
bool scr_control_exists(const scr_cache *cache, const char *owner);

/* Reports bases that other users can change, or have taken. Local. */
void scr_control_warn_of_bases(const scr_cache *cache);

/* The record in it: the prefix directory of the calculation, and stores in use. Reading
 * keeps the stores in cache->recorded if the record is of this calculation; err gives the
 * reason for DAMAGED. Local; 0 or -errno with a text. */
#define SCR_RECORD_NAME "prefix.scriinfo"
typedef enum scr_record_owner {
    SCR_RECORD_NONE,
    SCR_RECORD_MADE, /* ours, since this run has taken the lock */
    SCR_RECORD_OURS,
    SCR_RECORD_THEIRS,
    SCR_RECORD_DAMAGED
} scr_record_owner;
int scr_record_read(scr_cache *cache, scr_record_owner *owner, kvtree_error *err);
int scr_record_write(const scr_cache *cache, kvtree_error *err);

/* Writes it if stores in use are missing from it. The same. */
int scr_record_update(const scr_cache *cache, kvtree_error *err);

/* ---- cache/renew.c ---- */

/* Whether a cleanup has removed a directory of the run on this node, or what keeps other
 * runs away from it. Local. */
bool scr_cache_is_gone(const scr_cache *cache);

/* Recreates it, empty, so that the run can proceed; what was lost is reported. Agreed;
 * -EBUSY: another run has it now, and nothing of that one was touched. */
int scr_cache_renew(scr_cache *cache, kvtree_error *err);

/* Drops all that is known of the cache, which another run has now, and does not touch it
 * any more. Local. */
void scr_cache_abandon(scr_cache *cache);

/* ---- cache/job_lock.c ---- */

/* Finds out whether control and cache directories of this job belong to the calculation
 * of this prefix directory, takes others if not, opens the control directory, and keeps
 * other runs away. *elsewhere becomes the id of the newest checkpoint of this calculation
 * in directories that this run cannot use; 0: there is none. Agreed. */
int scr_job_lock_take(scr_cache *cache, int *elsewhere, kvtree_error *err);

void scr_job_lock_release(scr_cache *cache);

/* Updates the times of lock and record, which are written once: cleanups go by age.
 * Local. */
void scr_job_lock_touch(const scr_cache *cache);

/* Whether it was removed, or the files that keep other runs away. Local. */
bool scr_job_lock_is_lost(const scr_cache *cache);

/* Takes the same control directory again. As scr_cache_renew. */
int scr_job_lock_renew(scr_cache *cache, kvtree_error *err);

/* On the leader of a node, before scr_job_lock_release: removes what the run has left in
 * the control directory, and the directory. Failures are ignored. */
void scr_job_lock_remove(scr_cache *cache);

/* ---- cache/store_dir.c: the stores in use, and what lies in which ---- */

/* Opens those of the redundancy descriptors in force. Agreed. */
int scr_stores_open(scr_cache *cache, kvtree_error *err);

/* Opens that of a descriptor which writes to the prefix directory itself, for what can be
 * read in a cache only. Agreed. */
int scr_stores_open_late(scr_cache *cache, const scr_reddesc *desc, kvtree_error *err);
void scr_stores_close(scr_cache *cache);

/* Reopens those that were removed. Local; 0 or -errno with a text. */
int scr_stores_renew(scr_cache *cache, kvtree_error *err);

/* The store of a dataset; NULL: unknown. */
scr_store_dir *scr_cache_of(const scr_cache *cache, int id);

/* Its directory of this job, for messages; "" if unknown. */
const char *scr_cache_path(const scr_cache *cache, int id);

/* Finds out where a dataset of an earlier run is, by the paths of its files in the map,
 * also in a store that this run does not use otherwise, and records it with its
 * descriptor. Agreed. */
int scr_stores_locate(scr_cache *cache, const scr_dataset *dataset,
                      const scr_reddesc *desc, kvtree_error *err);

/* Path of a dataset's directory in the cache; the caller frees it. NULL: unknown, or no
 * memory. */
char *scr_dataset_folder(const scr_cache *cache, int id);

/* Creates it, on those who are the first in their store. Local; 0 or -errno with a text.
 */
int scr_dataset_folder_make(scr_cache *cache, int id, kvtree_error *err);

/* Removes it with all in it, and forgets the dataset; of one that is unknown, in all
 * stores. Collective; failures are reported. */
void scr_dataset_folder_remove(scr_cache *cache, int id);

/* ---- cache/catalog.c: what is in the cache, as the headers of redundancy files say ----
 */

/* Reads the headers in all stores into the maps of the processes that share them, also
 * entries of other numbers of ranks and of ranks that run elsewhere; and those of the
 * stores that the record of earlier runs names. Agreed. */
int scr_catalog_read(scr_cache *cache, kvtree_error *err);

/* Whether the entry of a rank comes from the header of a redundancy file, and not from a
 * filemap alone. Local. */
bool scr_catalog_has_header(const scr_filemap *map, int id, int rank);

/* Removes directories of datasets that no header describes, left by runs that were
 * killed. One that has redundancy files, which cannot be used, is entered as useless;
 * *highest becomes its id where that is greater. Agreed. */
int scr_cache_sweep(scr_cache *cache, int *highest, kvtree_error *err);

/* ---- cache/filemaps.c: filemaps, for people and commands ---- */

/* Enters what redset reports of the files of a rank into the map: after an encode or a
 * rebuild. The dataset is GOOD then. */
int scr_map_record(scr_cache *cache, const scr_dataset *dataset,
                   const redset_manifest *manifest, kvtree_error *err);

/* The same in any map, for the rank that manifest names and files in folder. Local; 0 or
 * -ENOMEM. */
int scr_map_record_found(scr_filemap *map, const scr_dataset *dataset, const char *folder,
                         const redset_manifest *manifest);

/* Writes those of this run, in the place of earlier ones. Agreed. */
int scr_filemaps_begin(scr_cache *cache, kvtree_error *err);

/* Adds all filemaps of the control directory to all; damaged ones are reported and
 * skipped. Local; 0 or -errno with a text. */
int scr_filemaps_read(const scr_cache *cache, scr_filemap *all, kvtree_error *err);

/* Writes this process's filemap. Local; 0 or -errno with a text. */
int scr_filemaps_write(const scr_cache *cache, kvtree_error *err);

/* Id of the newest complete checkpoint in filemaps of the control directory; 0: none.
 * Local. */
int scr_filemaps_newest(const scr_cache *cache);

/* ---- cache/cached.c: the datasets of the cache. Local; the same on every rank ---- */

/* Name of a cached file below the fd of its store: "scr.dataset.<id>/<name>". Cut if name
 * is longer than a file's name may be, and then refused by beneath.h. */
#define SCR_CACHED_NAME_SIZE (SCR_NAME_SIZE + 64)
void scr_cached_name(int id, const char *name, char path[SCR_CACHED_NAME_SIZE]);

/* The name of a dataset's directory in a store. */
#define SCR_FOLDER_SIZE 64
void scr_dataset_folder_name(int id, char name[SCR_FOLDER_SIZE]);

/* Enters a dataset, in the place of any other with its id; its state is INCOMPLETE. 0 or
 * -ENOMEM. */
int scr_cached_add(scr_cache *cache, const scr_dataset *dataset, int store,
                   const scr_reddesc *desc);
void scr_cached_remove(scr_cache *cache, int id);

/* Sets the state of a dataset that is in the list. */
void scr_cached_set_state(scr_cache *cache, int id, scr_cached_state state);

/* Sets the state of a dataset, and adds it to the list where it is missing; its store may
 * be unknown. Collective, agreed: -ENOMEM where a rank could not add it; no rank has it
 * then. */
int scr_cached_note(scr_cache *cache, const scr_dataset *dataset, scr_cached_state state,
                    kvtree_error *err);

scr_cached *scr_cached_find(const scr_cache *cache, int id); /* NULL: unknown */

/* The GOOD dataset with the smallest id above; 0: the first. NULL: there is none. Valid
 * until a dataset is added or removed. */
scr_cached *scr_cached_next(const scr_cache *cache, int above);

/* The same among all that this run cannot use, but for those of other numbers of ranks.
 */
scr_cached *scr_cached_next_unusable(const scr_cache *cache, int above);
bool scr_cached_is_unusable(const scr_cached *cached);

/* Id of the newest GOOD checkpoint; 0: none. */
int scr_cached_newest(const scr_cache *cache);

/* The description of a complete dataset. 0 or -ENOENT. */
int scr_cached_get(const scr_cache *cache, int id, scr_dataset *dataset);

/* Adds up the files of a dataset that the map has, without redundancy, and their bytes.
 */
void scr_cached_sums(const scr_cache *cache, int id, unsigned long sums[2]);

/* Whether the store could become full when a dataset is written that is as large as the
 * largest that is known, or as dataset id. 0 but on the first of a store. */
int scr_cached_lacks_room(const scr_cache *cache, int store);
int scr_cached_is_tight(const scr_cache *cache, int store, int id);

/* Name of the redundancy file that the map has of a rank, below the dataset's directory;
 * inside the map. NULL: none. */
const char *scr_cached_redundancy(const scr_cache *cache, int id, int rank);

/* ---- cache/verify.c ---- */

/* Compares the files of a dataset with their checksums. Local; 0, or -errno with a text.
 */
int scr_cache_compare(const scr_cache *cache, int id, kvtree_error *err);

/* The same before they leave, with SCR_CRC_ON_DELETE; damage is reported. Collective. */
void scr_cache_verify(const scr_cache *cache, int id);

/* ---- cache/adopt.c ---- */

/* Makes a dataset of another number of ranks usable where its files are: each process
 * acts for some of the ranks that wrote it, and has these in its map. All is read, and
 * what is lost is rebuilt; *rebuilt grows by the number of ranks whose files this process
 * rebuilt. Agreed; REDSET_UNRECOVERABLE where too much is lost. */
int scr_adopt(scr_cache *cache, const scr_dataset *dataset, int *rebuilt,
              kvtree_error *err);

/* ---- cache/distribute.c, cache/rank_transfer.c ---- */

/* Brings the files of a dataset to the ranks that wrote them. Agreed. That some could not
 * be moved, which is reported, is no failure: they may be rebuilt. */
typedef struct scr_moved {
    unsigned long sums[2]; /* number and bytes of files that came to this rank */
    int failed;            /* files for this rank could not be moved */
} scr_moved;
int scr_distribute(scr_cache *cache, const scr_dataset *dataset, scr_moved *moved,
                   kvtree_error *err);

/* Whether every rank has its files of the dataset, by names and sizes: then there is
 * nothing to distribute. Collective. */
bool scr_distribute_is_done(scr_cache *cache, const scr_dataset *dataset);

/* Drops the files of a rank in a dataset from the map; with delete, also removes them.
 * Local. */
void scr_drop_files(scr_cache *cache, int id, int rank, int delete);

/* Gives the files of rank to (MPI_PROC_NULL: none) to it, and gets our own from rank
 * from: 0, or -errno when we do not have them. Between the ranks named only. What could
 * not be moved stays with the sender; the receiver has none of it then, and reports it.
 */
int scr_move_files(scr_cache *cache, const scr_dataset *dataset, int to, int from);

#endif
