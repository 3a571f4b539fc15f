/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PREFIX_H
#define SCR_PREFIX_H

/* The prefix directory of a run: the datasets that are complete there or are being
 * written, and the records of these datasets.
 *
 * On disk, this chapter owns .scr/ of the prefix directory (index, flush file, nodes
 * file; the halt file there belongs to halt/, the log to report/) and <dataset>/.scr/ of
 * each dataset (summary, map, stage). The summary and the map of a dataset are
 * authoritative: the index is a list of datasets that can be rebuilt (prefix/scan.h). The
 * flush file is for scripts, and tells this run which datasets are flushed.
 *
 * ops/ calls these functions. They do not know of caches or of flushes in progress. Ranks
 * share the directory, so only rank 0 reads and writes records. "Local" functions of the
 * index and the flush file are for rank 0. Other ranks may call those that say so,
 * without an effect. Other functions are collective over the job. "Agreed" functions
 * return the same on every rank: 0, or -errno with a text. Each function reports the
 * failures that it does not return. Commands use the parts without MPI: index.h,
 * flush_file.h, nodes.h and scan.h. */

#include "config/parameters.h"
#include "config/values.h"
#include "job/job.h"
#include "plan/dataset.h"
#include "plan/file_match.h"
#include "plan/own_file.h"
#include "plan/resume.h"
#include "prefix/dataset_records.h"
#include "prefix/index.h"
#include "prefix/scan.h"
#include "scr.h"
#include <filo/filo_mpi.h>
#include <stdbool.h>

/* The dataset that is read on the prefix directory itself, without a fetch. */
typedef struct scr_direct {
    /* of this rank, by names below the prefix directory (plan/file_names.h): all files
     * except those in containers, and those in containers */
    kvtree *files;
    kvtree *packed;
    int count; /* number of files in list: those of this rank in the map, or of the ranks
                  that it acts for */
    struct filo_file *list;
    bool extracts;       /* some rank has files in containers, which are extracted */
    scr_dataset dataset; /* id 0: none */
} scr_direct;

/* The files of all ranks in the map of a dataset. */
typedef struct scr_others {
    int id; /* of the dataset; 0: no map was read */
    int count;
    struct filo_file *list;
    kvtree *names; /* index in list by name (plan/file_names.h); NULL: too many to keep */
} scr_others;

typedef struct scr_prefix {
    scr_job *job;
    const struct scr_settings *set;
    char *path; /* as given, but absolute */
    char *real; /* path of the same directory without links */
    int fd; /* -1 until scr_prefix_enter; the first rank of each node opens it at start */
    bool has_group; /* files in it belong to this group (beneath_has_group) */
    gid_t group;
    kvtree *flush_file; /* only rank 0's copy is used */
    scr_scan *search; /* rank 0, if the index was lost: result of the search; else NULL */
    kvtree *index;    /* rank 0: the view (prefix/index_store.c); NULL: not read yet */
    scr_direct direct;
    scr_others others;
} scr_prefix;

/* ---- prefix/prefix_dir.c: the directory, and places of datasets in it ---- */

/* Opens the prefix directory. Rank 0 makes the directory with .scr in it, but no
 * directory above it, and resolves its name. The first rank of each node opens it, so
 * that a node without the directory is detected at once. Collective, not agreed: 0 or
 * -errno with a text on any rank. */
int scr_prefix_open(scr_prefix *prefix, const scr_config *config, kvtree_error *err);

/* Opens the directory on this rank, if it is not open yet. Local; 0 or -errno with a
 * text. */
int scr_prefix_enter(scr_prefix *prefix, kvtree_error *err);
void scr_prefix_close(scr_prefix *prefix);

/* The place of a flushed dataset: its directory (absolute; the caller frees it), the map
 * in it, and the part of names below the prefix directory that the map leaves out ("" or
 * "<name>/"). scr_place_of is local on any rank and returns 0 or -ENOMEM. */
typedef struct scr_place {
    char *folder;
    char map[SCR_NAME_SIZE + 32];
    char cache_prefix[SCR_NAME_SIZE + 2];
    char dataset[SCR_DATASET_KEY_SIZE]; /* the dataset that the map must belong to */
} scr_place;
int scr_place_of(const scr_prefix *prefix, const scr_dataset *dataset, scr_place *place);

/* Opens the directory of a dataset or, for "", the prefix directory. Returns -ELOOP if a
 * link or something else is in its place. Local on any rank. */
int scr_place_open(const scr_prefix *prefix, const char *name, int *folder,
                   kvtree_error *err);

/* Reads the map of a complete dataset, which has one. Returns the files of this rank. If
 * another number of ranks wrote the dataset, returns this rank's share of the files.
 * Returns a positive verdict if the map is missing or of another number of ranks than the
 * dataset. Otherwise like filo_read_map; agreed. */
int scr_place_read_map(const scr_prefix *prefix, const scr_dataset *dataset,
                       const scr_place *place, const filo_options *options, int *count,
                       filo_file **files, kvtree_error *err);

/* *others becomes 1 if other users can change the records of the named dataset or replace
 * its directory by another one. Agreed. */
int scr_place_find_others(const scr_prefix *prefix, const char *name, int *others,
                          kvtree_error *err);

/* Removes temporary files in .scr of the open directory, left by a run that died while it
 * wrote a record. name is for messages. Local on any rank. */
void scr_records_sweep(const scr_prefix *prefix, int folder, const char *name);

/* Rank 0 removes the records of a dataset and, if it is then empty, the directory of the
 * dataset. Local; 0 or -errno with a text. */
int scr_records_remove(const scr_prefix *prefix, const scr_dataset *dataset,
                       kvtree_error *err);

/* ---- prefix/location.c: locations of cached datasets, in the flush file ---- */

/* Sets (on 1) or clears a location of a dataset on rank 0, and writes the flush file.
 * Local; any rank may call it. */
void scr_location(scr_prefix *prefix, const scr_dataset *dataset, const char *location,
                  int on);

/* Does the same for several locations of a dataset, with one write. */
typedef struct scr_location_change {
    const char *location;
    int on;
} scr_location_change;
void scr_locations(scr_prefix *prefix, const scr_dataset *dataset, int count,
                   const scr_location_change changes[]);

/* Removes the entry of a dataset. Local; any rank may call it. */
void scr_location_remove(scr_prefix *prefix, int id);

/* Whether rank 0 has that location of a dataset. Collective. */
bool scr_location_has(const scr_prefix *prefix, int id, const char *location);

/* Rank 0, local: reads the flush file. An unusable file counts as empty. */
void scr_locations_read(scr_prefix *prefix);

/* Rank 0, local: clears the location PFS of datasets that the index does not have as
 * complete, since they cannot be found again. Clears the entries of another job. */
void scr_locations_correct(scr_prefix *prefix, const kvtree *index);

/* ---- prefix/index_store.c: the index. Local on rank 0 ---- */

/* At start: reads index and flush file, and corrects both. *highest receives the highest
 * values in the index. 0 or -errno with a text. */
int scr_index_begin(scr_prefix *prefix, scr_counters *highest, kvtree_error *err);

/* Returns the index as this SCR call has read or written it. A call reads the index when
 * it first needs it, and again, under the lock, for each change. A damaged index is set
 * aside. A damaged or lost index is rebuilt from the datasets on the prefix directory,
 * which is reported. Valid until the next change; NULL on failure. */
int scr_index_view(scr_prefix *prefix, const kvtree **index, kvtree_error *err);

/* Writes the index that was rebuilt, after the stages that the search found are removed.
 * A failure is reported. */
void scr_index_settle(scr_prefix *prefix);

/* Begins a new SCR call: drops what the previous call has read. Any rank. */
void scr_index_close(scr_prefix *prefix);

/* Calls change for the entry of a dataset, and writes the index if the entry has changed.
 * Returns 0, -ENOENT if there is no such entry, or another -errno, with a text. change is
 * called twice: for the view, and for the index that is read under the lock. */
typedef int scr_index_changer(kvtree *index, const scr_dataset *dataset);
int scr_index_change(scr_prefix *prefix, const scr_dataset *dataset,
                     scr_index_changer *change, kvtree_error *err);

/* Does the same for a change of any part of the index (change returns > 0: it must be
 * written). */
int scr_index_rewrite(scr_prefix *prefix, scr_changer *change, void *arg,
                      kvtree_error *err);

/* Removes all entries of that name, durably. */
int scr_index_drop(scr_prefix *prefix, const scr_dataset *dataset, kvtree_error *err);

/* Enters a complete dataset in place of all entries of its name. */
int scr_index_correct(scr_prefix *prefix, const scr_dataset *dataset, kvtree_error *err);

/* Called around a flush. Before the stage is made, scr_index_flush_begins enters the
 * dataset as not complete. When files and map are in place, scr_index_flush_ends writes
 * the summary and makes the entry complete. A checkpoint then becomes the current one,
 * unless the index has a newer one that is older than below. Other ranks do nothing. 0 or
 * -errno with a text. */
int scr_index_flush_begins(scr_prefix *prefix, const scr_dataset *dataset,
                           kvtree_error *err);
int scr_index_flush_ends(scr_prefix *prefix, const scr_dataset *dataset, scr_age below,
                         kvtree_error *err);

/* ---- prefix/retention.c: deletion and retention ---- */

/* Deletes a flushed dataset: its files, which are distributed over the ranks, its
 * records, and its entry. Agreed. */
int scr_retention_delete(scr_prefix *prefix, const scr_dataset *dataset,
                         kvtree_error *err);

/* At start: deletes all datasets on the prefix directory (SCR_PREFIX_PURGE), or finishes
 * deletions that a killed run began. Collective; failures are reported. */
void scr_retention_begin(scr_prefix *prefix);

/* After the flush of a checkpoint: deletes datasets that are older than the window keeps.
 * Collective; failures are reported. */
void scr_retention_flushed(scr_prefix *prefix, const scr_window *window);

/* ---- prefix/stages.c: stages of interrupted flushes. Local on rank 0 ---- */

/* Whether files are packed into containers. */
bool scr_form_packs(const filo_form *form);

/* Writes the identity of a flush of this job in its stage (filo_options). layout: a
 * number for the distribution of processes over nodes if files are packed, otherwise the
 * number of processes. Any rank. */
enum { SCR_STAGE_IDENTITY_SIZE = 512 };
void scr_stage_identity(const scr_prefix *prefix, const scr_dataset *dataset,
                        uint64_t layout, char identity[SCR_STAGE_IDENTITY_SIZE]);

typedef struct scr_staged {
    const char *name; /* of the directory */
    int id;           /* of the dataset; 0: unknown, since the record is unusable */
    bool is_foreign;  /* another job began it */
    filo_form form;   /* as in filo_begun */
    char identity[SCR_STAGE_IDENTITY_SIZE];
} scr_staged;

typedef struct scr_stages {
    kvtree *names; /* directories to inspect, as keys */
    int count;
    scr_staged *list;
} scr_stages;

/* Lists the flushes in the stages of the directories in names. names has the directories
 * of datasets in the cache; the function adds those that plan/clean.h wants to be
 * inspected. 0 or -errno with a text. */
int scr_stages_find(scr_prefix *prefix, scr_stages *stages, kvtree_error *err);

/* Removes the flushes whose row has is_removed set, and other remains in the directories.
 * Failures are reported. */
void scr_stages_clean(scr_prefix *prefix, scr_stages *stages,
                      const scr_resume_flush *rows);
void scr_stages_free(scr_stages *stages);

/* ---- prefix/direct_io.c: datasets that the program writes there directly ---- */

/* Begins a dataset. Agreed. */
int scr_direct_begin(scr_prefix *prefix, const scr_dataset *dataset, kvtree_error *err);

/* Key in a list of routed files: the mark of the earlier file of that name. */
#define SCR_DIRECT_MARK "MARK"

/* Returns the path to write to for a name below the prefix directory, and the mark of the
 * existing file. Makes the directory of the file. Local on any rank; 0 or -errno with a
 * text. */
int scr_direct_route(scr_prefix *prefix, const char *below, char path[SCR_MAX_FILENAME],
                     char mark[SCR_FILE_MARK_SIZE], kvtree_error *err);

/* Makes the dataset complete: puts the files of this rank, which are the keys of routed,
 * and their directories on disk, with map, summary and index entry. Sets size, files,
 * complete and scattered of the dataset. Agreed. *mapped: the map was written, so the
 * failure does not concern the files. */
int scr_direct_complete(scr_prefix *prefix, scr_dataset *dataset, const kvtree *routed,
                        scr_age below, bool *mapped, kvtree_error *err);

/* Removes the routed files that were written since they were routed, and the records.
 * Collective; failures are reported. */
void scr_direct_remove(scr_prefix *prefix, const scr_dataset *dataset,
                       const kvtree *routed);

/* ---- prefix/direct_read.c: datasets that the program reads there directly ---- */

/* Finds the files of this rank in a dataset that is read there, for scr_direct_find.
 * compare: reads the files and compares their checksums. extracts: files in containers
 * will be extracted one by one; otherwise they give -EOPNOTSUPP. Agreed; 0, -errno or a
 * verdict of filo. */
int scr_direct_open(scr_prefix *prefix, const scr_dataset *dataset, int compare,
                    bool extracts, kvtree_error *err);

/* Whether a file of the list must be extracted: it lies in containers, and is no part of
 * a file that exists. */
bool scr_direct_is_packed(const struct filo_file *file);

/* Returns the name of a file in a map, relative to the prefix directory. */
enum { SCR_DIRECT_NAME_SIZE = 2 * SCR_NAME_SIZE };
void scr_direct_name(const scr_dataset *dataset, const char *file,
                     char name[SCR_DIRECT_NAME_SIZE]);

/* Returns the file in containers that match describes, of those that scr_direct_open
 * found for this rank, and its name below the prefix directory. NULL: there is none. */
const struct filo_file *scr_direct_find_packed(const scr_prefix *prefix,
                                               struct scr_file_match *match,
                                               char name[SCR_DIRECT_NAME_SIZE]);

/* Frees what scr_direct_open found. */
void scr_direct_close(scr_prefix *prefix);

/* Checks files of this rank below folder that are about to be fetched and have no
 * checksum: fails if one was written since its map. Agreed, as scr_direct_open. */
int scr_direct_check(scr_prefix *prefix, const scr_dataset *dataset, const char *folder,
                     int count, filo_file *files, kvtree_error *err);

/* Returns the path to read from, for a name of a file of this rank in prefix->direct.
 * Local on any rank; 0, -ENOENT or -ENAMETOOLONG. */
int scr_direct_find(scr_prefix *prefix, scr_file_match *match,
                    char path[SCR_MAX_FILENAME]);

/* Does the same for a file of another rank, in any complete dataset. Returns 0; -ENOENT;
 * -ENOTUNIQ: several files match; -EKEYREJECTED: the file or its map is damaged; or
 * another -errno, with a text. A map that is not too large is kept until
 * scr_direct_forget_others. */
int scr_direct_find_other(scr_prefix *prefix, const scr_dataset *dataset,
                          const scr_file_match *match, char path[SCR_MAX_FILENAME],
                          kvtree_error *err);
void scr_direct_forget_others(scr_prefix *prefix);

#endif
