/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PREFIX_H
#define SCR_PREFIX_H

/* The prefix directory of a run: the datasets that are complete there, or are being
 * written, and the records of them.
 *
 * On disk it owns .scr/ of the prefix directory (index, flush file, nodes file; the halt
 * file there belongs to halt/, the log to report/) and <dataset>/.scr/ of each dataset
 * (summary, map, stage). The summary and the map of a dataset are what counts: the index
 * is a list of them that can be made again (prefix/scan.h). The flush file is for
 * scripts, and for what this run knows to be flushed.
 *
 * ops/ calls these functions; they know nothing of the caches or of flushes under way.
 * Ranks share the directory, so rank 0 alone reads and writes records. "Local" functions
 * of the index and the flush file are for rank 0; the other ranks may call those that say
 * so, and nothing happens. The others are collective over the job. "Agreed" ones return
 * the same on every rank: 0, or -errno with a text. Each function reports the failures
 * that it does not return. Commands use the parts without MPI: index.h, flush_file.h,
 * nodes.h and scan.h. */

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

/* The dataset that is read on the prefix directory itself, and not fetched. */
typedef struct scr_direct {
    kvtree *files; /* of this rank, by names below the prefix directory
                      (plan/file_names.h), but for those in containers: */
    kvtree *packed;
    int count; /* what the map has of this rank, and of others that it acts for */
    struct filo_file *list;
    bool extracts;       /* some rank has files in containers; they are extracted */
    scr_dataset dataset; /* id 0: none */
} scr_direct;

/* What the map of a dataset has of all ranks. */
typedef struct scr_others {
    int id; /* of the dataset; 0: none was asked for */
    int count;
    struct filo_file *list;
    kvtree
        *names; /* numbers in the list (plan/file_names.h); NULL: too many to be kept */
} scr_others;

typedef struct scr_prefix {
    scr_job *job;
    const struct scr_settings *set;
    char *path;     /* as given, absolute */
    char *real;     /* the same directory without links */
    int fd;         /* -1 until scr_prefix_enter, but on the first rank of each node */
    bool has_group; /* files in it are for this group (beneath_has_group) */
    gid_t group;
    kvtree *flush_file; /* rank 0's copy counts */
    scr_scan *search;   /* rank 0, where the index was lost: what is there; else NULL */
    kvtree *index;      /* rank 0: the view (prefix/index_store.c); NULL: not read yet */
    scr_direct direct;
    scr_others others;
} scr_prefix;

/* ---- prefix/prefix_dir.c: the directory, and places of datasets in it ---- */

/* Rank 0 makes the directory, with .scr in it, but not those above it, and resolves its
 * name. The first rank of each node opens it: a node that does not have it is found at
 * once. Collective, not agreed: 0 or -errno with a text on any rank. */
int scr_prefix_open(scr_prefix *prefix, const scr_config *config, kvtree_error *err);

/* Opens it on this rank, if it is not open yet. Local; 0 or -errno with a text. */
int scr_prefix_enter(scr_prefix *prefix, kvtree_error *err);
void scr_prefix_close(scr_prefix *prefix);

/* Where a flushed dataset is: its directory (absolute, to be freed), the map in it, and
 * what its map leaves out of the names below the prefix directory ("" or "<name>/").
 * Local on any rank; 0 or -ENOMEM. */
typedef struct scr_place {
    char *folder;
    char map[SCR_NAME_SIZE + 32];
    char cache_prefix[SCR_NAME_SIZE + 2];
    char dataset[SCR_DATASET_KEY_SIZE]; /* which the map must be of */
} scr_place;
int scr_place_of(const scr_prefix *prefix, const scr_dataset *dataset, scr_place *place);

/* Opens the directory of a dataset, or, for "", the prefix directory; -ELOOP where a link
 * or something else is in its place. Local on any rank. */
int scr_place_open(const scr_prefix *prefix, const char *name, int *folder,
                   kvtree_error *err);

/* Reads the map of a complete dataset, which has one: the files of this rank, or, of one
 * that another number of ranks wrote, those of its share of them. A positive verdict
 * where the map is missing, or of another number of ranks than the dataset. As
 * filo_read_map; agreed. */
int scr_place_read_map(const scr_prefix *prefix, const scr_dataset *dataset,
                       const scr_place *place, const filo_options *options, int *count,
                       filo_file **files, kvtree_error *err);

/* *others: 1 if others can change the records of the dataset of that name, or put another
 * directory in the place of its own. Agreed. */
int scr_place_find_others(const scr_prefix *prefix, const char *name, int *others,
                          kvtree_error *err);

/* Removes temporary files in .scr of the open directory that a run left which died while
 * it wrote a record. name is for messages. Local on any rank. */
void scr_records_sweep(const scr_prefix *prefix, int folder, const char *name);

/* Rank 0 removes the records of a dataset and, if nothing else is in it, its directory.
 * Local; 0 or -errno with a text. */
int scr_records_remove(const scr_prefix *prefix, const scr_dataset *dataset,
                       kvtree_error *err);

/* ---- prefix/location.c: where cached datasets are, in the flush file ---- */

/* Records on rank 0 where a dataset is (on 1) or no longer is, and writes the flush file.
 * Local; any rank may call it. */
void scr_location(scr_prefix *prefix, const scr_dataset *dataset, const char *location,
                  int on);

/* The same for several locations of a dataset, with one write. */
typedef struct scr_location_change {
    const char *location;
    int on;
} scr_location_change;
void scr_locations(scr_prefix *prefix, const scr_dataset *dataset, int count,
                   const scr_location_change changes[]);

/* Drops what is recorded of a dataset. The same. */
void scr_location_remove(scr_prefix *prefix, int id);

/* Collective. */
bool scr_location_has(const scr_prefix *prefix, int id, const char *location);

/* Rank 0, local: reads the flush file. Without a usable one, it counts as empty. */
void scr_locations_read(scr_prefix *prefix);

/* Rank 0, local: what the index does not have as complete is not found again, so it does
 * not count as flushed; and of another job nothing does. */
void scr_locations_correct(scr_prefix *prefix, const kvtree *index);

/* ---- prefix/index_store.c: the index. Local on rank 0 ---- */

/* At start: reads index and flush file, and corrects them. *highest becomes what the
 * index has. 0 or -errno with a text. */
int scr_index_begin(scr_prefix *prefix, scr_counters *highest, kvtree_error *err);

/* The index as this SCR call has read or written it: a call reads it once, when it first
 * needs it, and again, under the lock, for each change. A damaged one is set aside
 * first; in the place of that, or of one that was lost, an index is made from what is on
 * the prefix directory, which is reported. Valid until the next change; NULL on failure.
 */
int scr_index_view(scr_prefix *prefix, const kvtree **index, kvtree_error *err);

/* The stages that the search for a lost index met are removed: writes the index that was
 * made again. A failure is reported. */
void scr_index_settle(scr_prefix *prefix);

/* A new SCR call begins: what the last one has read does not count. Any rank. */
void scr_index_close(scr_prefix *prefix);

/* Lets change alter the entry of a dataset, and writes the index if that has changed. 0,
 * -ENOENT when there is no such entry, or another -errno, with a text. The change is made
 * twice: on the view, and on what is there under the lock. */
typedef int scr_index_changer(kvtree *index, const scr_dataset *dataset);
int scr_index_change(scr_prefix *prefix, const scr_dataset *dataset,
                     scr_index_changer *change, kvtree_error *err);

/* The same with a change of any of it (> 0: it must be written). */
int scr_index_rewrite(scr_prefix *prefix, scr_changer *change, void *arg,
                      kvtree_error *err);

/* Removes all that the index has of that name, for good. */
int scr_index_drop(scr_prefix *prefix, const scr_dataset *dataset, kvtree_error *err);

/* A complete dataset takes the place of all that the index has of its name. */
int scr_index_correct(scr_prefix *prefix, const scr_dataset *dataset, kvtree_error *err);

/* Around a flush: before its stage is made the index gets an entry that is not complete;
 * when files and map are in place, the summary is written, and the entry becomes
 * complete. A checkpoint becomes the current one then, unless the index has a newer one
 * that is older than below. Other ranks do nothing. 0 or -errno with a text. */
int scr_index_flush_begins(scr_prefix *prefix, const scr_dataset *dataset,
                           kvtree_error *err);
int scr_index_flush_ends(scr_prefix *prefix, const scr_dataset *dataset, scr_age below,
                         kvtree_error *err);

/* ---- prefix/retention.c: deletion and retention ---- */

/* Deletes a flushed dataset: its files, shared out among the ranks, its records, and its
 * entry. Agreed. */
int scr_retention_delete(scr_prefix *prefix, const scr_dataset *dataset,
                         kvtree_error *err);

/* At start: deletes all of the prefix directory (SCR_PREFIX_PURGE), or finishes what a
 * run that was killed began to delete. Collective; failures are reported. */
void scr_retention_begin(scr_prefix *prefix);

/* A checkpoint has just been flushed: deletes older ones than the window keeps.
 * Collective; failures are reported. */
void scr_retention_flushed(scr_prefix *prefix, const scr_window *window);

/* ---- prefix/stages.c: flushes that were interrupted, in stages. Local on rank 0 ---- */

/* Whether files are packed into containers. */
bool scr_form_packs(const filo_form *form);

/* The identity of a flush of this job in its stage (filo_options). layout: a number for
 * how processes are distributed over nodes where files are packed, else their number. Any
 * rank. */
enum { SCR_STAGE_IDENTITY_SIZE = 512 };
void scr_stage_identity(const scr_prefix *prefix, const scr_dataset *dataset,
                        uint64_t layout, char identity[SCR_STAGE_IDENTITY_SIZE]);

typedef struct scr_staged {
    const char *name; /* of the directory */
    int id;           /* of the dataset; 0: not known, as the record cannot be used */
    bool is_foreign;  /* another job began it */
    filo_form form;   /* as filo_begun */
    char identity[SCR_STAGE_IDENTITY_SIZE];
} scr_staged;

typedef struct scr_stages {
    kvtree *names; /* directories that are inspected, as keys */
    int count;
    scr_staged *list;
} scr_stages;

/* Lists the flushes in the stages of the directories in names, which has those of
 * datasets in the cache; others that plan/clean.h wants to be inspected are added. 0 or
 * -errno with a text. */
int scr_stages_find(scr_prefix *prefix, scr_stages *stages, kvtree_error *err);

/* Removes those of which the row is_removed, and other remains in the directories.
 * Failures are reported. */
void scr_stages_clean(scr_prefix *prefix, scr_stages *stages,
                      const scr_resume_flush *rows);
void scr_stages_free(scr_stages *stages);

/* ---- prefix/direct_io.c: datasets that the program writes and reads there ---- */

/* Begins a dataset. Agreed. */
int scr_direct_begin(scr_prefix *prefix, const scr_dataset *dataset, kvtree_error *err);

/* In a list of routed files: the mark of what was there before. */
#define SCR_DIRECT_MARK "MARK"

/* The path to write to for a name below the prefix directory, and the mark of what is
 * there; its directory is made. Local on any rank; 0 or -errno with a text. */
int scr_direct_route(scr_prefix *prefix, const char *below, char path[SCR_MAX_FILENAME],
                     char mark[SCR_FILE_MARK_SIZE], kvtree_error *err);

/* Makes the dataset complete: the files of this rank, as keys of routed, and the
 * directories are on disk, with map, summary and index entry. Its size, files, complete
 * and scattered are set. Agreed; *mapped: the map was written, so that the failure is not
 * one of the files. */
int scr_direct_complete(scr_prefix *prefix, scr_dataset *dataset, const kvtree *routed,
                        scr_age below, bool *mapped, kvtree_error *err);

/* Removes the routed files that are not as they were before, and the records. Collective;
 * failures are reported. */
void scr_direct_remove(scr_prefix *prefix, const scr_dataset *dataset,
                       const kvtree *routed);

/* ---- prefix/direct_read.c: the same in a restart ---- */

/* Finds the files of this rank in a dataset that is read there, for scr_direct_find;
 * compare: reads them, for their checksums. extracts: files in containers will be
 * extracted one by one; otherwise they are -EOPNOTSUPP. Agreed; 0, -errno or a verdict of
 * filo. */
int scr_direct_open(scr_prefix *prefix, const scr_dataset *dataset, int compare,
                    bool extracts, kvtree_error *err);

/* Whether a file of the list is to be extracted: it lies in containers, and is no part of
 * a file that is there. */
bool scr_direct_is_packed(const struct filo_file *file);

/* The name of a file of a map below the prefix directory. */
enum { SCR_DIRECT_NAME_SIZE = 2 * SCR_NAME_SIZE };
void scr_direct_name(const scr_dataset *dataset, const char *file,
                     char name[SCR_DIRECT_NAME_SIZE]);

/* The file in containers that the name means, of those that scr_direct_open found for
 * this rank, and its name below the prefix directory. NULL: there is none. */
const struct filo_file *scr_direct_find_packed(const scr_prefix *prefix,
                                               struct scr_file_match *match,
                                               char name[SCR_DIRECT_NAME_SIZE]);

/* Frees what scr_direct_open found. */
void scr_direct_close(scr_prefix *prefix);

/* Checks this rank's files below folder that are about to be fetched and have no
 * checksum: whether one was written since its map. Agreed, as scr_direct_open. */
int scr_direct_check(scr_prefix *prefix, const scr_dataset *dataset, const char *folder,
                     int count, filo_file *files, kvtree_error *err);

/* The path to read from, for a name of a file of this rank in prefix->direct. Local on
 * any rank; 0, -ENOENT or -ENAMETOOLONG. */
int scr_direct_find(scr_prefix *prefix, scr_file_match *match,
                    char path[SCR_MAX_FILENAME]);

/* The same for a file of another rank, in any complete dataset. 0; -ENOENT; -ENOTUNIQ: it
 * may be several; -EKEYREJECTED: what is there is damaged; or another -errno, with a
 * text. A map that is not large is read once, until it is forgotten. */
int scr_direct_find_other(scr_prefix *prefix, const scr_dataset *dataset,
                          const scr_file_match *match, char path[SCR_MAX_FILENAME],
                          kvtree_error *err);
void scr_direct_forget_others(scr_prefix *prefix);

#endif
