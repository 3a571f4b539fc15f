/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_INDEX_H
#define SCR_INDEX_H

/* The index of the datasets in a prefix directory, in .scr/index.scr, and the summary of
 * one dataset, in <dataset>/.scr/summary.scr (SCR Developer Guide 1.2, sections 2.15 and
 * 2.16; docs/formats/scr.md).
 *
 * An index is a kvtree in memory: one process at a time reads it, changes it by the
 * functions below, and writes it. */

#include "base/record_change.h"
#include "base/versions.h"
#include "plan/dataset.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>

#define SCR_SUMMARY_NAME ".scr/summary.scr" /* below the directory of the dataset */
#define SCR_SUMMARY_VERSION 6

typedef kvtree scr_index;

/* After this number of attempts to restart without a result, a checkpoint is skipped: it
 * may be the reason why the program terminates. */
#define SCR_INDEX_ATTEMPTS 2

/* Reads the index below the open prefix directory into the empty tree index. Returns
 * -ENOENT if there is no index, or an empty tree; -EBADMSG if it is damaged;
 * SCR_OTHER_VERSION (base/versions.h) if it is of another version. Errors have a text. */
int scr_index_read(int prefix, scr_index *index, kvtree_error *err);

/* Changes the index under its lock (base/record_change.h), and reads it only there. The
 * empty tree index receives the result. Errors are as for scr_index_read. Marks of a
 * deletion that scr_index_check_name refuses are dropped: in the written index, they
 * would look like marks of this user. */
int scr_index_update(int prefix, scr_changer *change, void *arg, scr_index *index,
                     kvtree_error *err);

/* Enters datasets that were found on the prefix directory and are missing in the index,
 * under its lock. Makes the index if there is none, even without datasets. The empty tree
 * index receives the result. *added: number of entries added. */
int scr_index_make(int prefix, const scr_dataset *found, int count, scr_index *index,
                   int *added, kvtree_error *err);

/* Renames a damaged index under its lock, and returns the new name. The name is empty if
 * another process did so meanwhile, or made a new index. */
#define SCR_INDEX_ASIDE_SIZE 64
int scr_index_set_aside(int prefix, char aside[SCR_INDEX_ASIDE_SIZE], kvtree_error *err);

/* Returns -EPERM, with a text, if the open directory or one between it and the prefix
 * directory is itself a prefix directory, whose records and datasets belong to other
 * runs. The open directory is that of the dataset called name, or lies above it. */
int scr_index_check_place(int prefix, int folder, const char *name, kvtree_error *err);

/* Checks the same. Also returns -EPERM if other users can change the index, but can
 * change neither the open directory of the dataset nor its name: a name in the index
 * reaches only directories that these users can change themselves. */
int scr_index_check_name(int prefix, int folder, const char *name, kvtree_error *err);

/* Makes the empty tree an index without datasets. */
int scr_index_start(scr_index *index);

/* Enters a dataset, or changes its entry: complete is 0 before its files are copied, and
 * 1 afterwards, which also records the time. An earlier dataset of that name keeps its
 * entry until this one is complete: its files remain if copying fails. */
int scr_index_add(scr_index *index, const scr_dataset *dataset, int complete);

/* Enters the datasets that were found on the prefix directory, with their flag complete,
 * and makes the newest complete checkpoint the current one. A pure function; -ENOMEM. */
int scr_index_restore(scr_index *index, const scr_dataset *found, int count);

/* Enters the datasets that the index does not have. Makes an empty tree an index first.
 * Chooses a current checkpoint only if there is none. *added: number of entries added. */
int scr_index_enter(scr_index *index, const scr_dataset *found, int count, int *added);

/* Finds the dataset with that name: if there are several, a complete one, then the one
 * with the highest id. Returns -ENOENT if there is none. */
int scr_index_get(const scr_index *index, const char *name, scr_dataset *dataset);

/* The state of an entry. */
typedef struct scr_index_state {
    int complete, failed;
    int attempts; /* to restart, without a result */
    int deleting; /* its files are being deleted; some of them may still exist */
    int refused;  /* failed: the program could not use any copy of it */
} scr_index_state;

/* Returns -ENOENT without an entry. */
int scr_index_look(const scr_index *index, const scr_dataset *dataset,
                   scr_index_state *state);

/* Returns why a run cannot restart from a dataset in that state; NULL: it can. */
const char *scr_index_why_not(const scr_dataset *dataset, const scr_index_state *state);

/* Whether name is the dataset to restart from. */
bool scr_index_is_current(const scr_index *index, const char *name);

/* Values of what in scr_index_time, which returns the last time of that event in local
 * time: "2026-11-22T18:30:00". The text is owned by the index; NULL if there was no
 * event. */
#define SCR_INDEX_FLUSHED "FLUSHED"
#define SCR_INDEX_FETCHED "FETCHED"
#define SCR_INDEX_FAILED "FAILED"

/* With this value, scr_index_time returns why the dataset is not complete, in words. */
#define SCR_INDEX_REASON "REASON"
const char *scr_index_time(const scr_index *index, const scr_dataset *dataset,
                           const char *what);

/* Writes the names in the index, newest first, to text, as a list for users that is
 * shortened to fit. */
void scr_index_names(const scr_index *index, char *text, size_t size);

/* ---- changes of an entry: -ENOENT if there is none of that id, name and time ---- */

/* Removes all entries of that name, whatever their ids. */
int scr_index_remove(scr_index *index, const scr_dataset *dataset);

/* Makes the dataset the one to restart from. */
int scr_index_set_current(scr_index *index, const scr_dataset *dataset);

/* Does the same at a user's request: earlier failures and attempts no longer count. */
int scr_index_choose(scr_index *index, const scr_dataset *dataset);

/* Note that a fetch, or an attempt to restart, begins. Both count as attempts until they
 * succeed. */
int scr_index_mark_fetched(scr_index *index, const scr_dataset *dataset);
int scr_index_mark_tried(scr_index *index, const scr_dataset *dataset);

/* Takes back an attempt: the fetch is complete, or it ended for a reason unrelated to the
 * dataset. */
int scr_index_unmark_tried(scr_index *index, const scr_dataset *dataset);

/* Notes that the program has restarted from the dataset: no attempt is open. */
int scr_index_mark_good(scr_index *index, const scr_dataset *dataset);

/* Notes that the dataset is not complete, and why, and that no flush is about to complete
 * it. */
int scr_index_mark_incomplete(scr_index *index, const scr_dataset *dataset,
                              const char *reason);

/* Notes that the files on the prefix directory are damaged, until the dataset is flushed
 * again. */
int scr_index_mark_failed(scr_index *index, const scr_dataset *dataset);

/* Notes that the program cannot use the dataset, neither this copy nor another one. */
int scr_index_mark_refused(scr_index *index, const scr_dataset *dataset);

/* Notes that the files are being deleted: no run may restart from a dataset of that
 * name. */
int scr_index_mark_deleting(scr_index *index, const scr_dataset *dataset);

/* Removes marks of deletion from names that check refuses with -EPERM. Returns the number
 * of marks removed. */
typedef int scr_index_check(void *arg, const char *name);
int scr_index_drop_marks(scr_index *index, scr_index_check *check, void *arg);

/* ---- decisions: pure functions ---- */

/* Whether a newer dataset of that name is complete and has not failed. */
bool scr_index_has_newer(const scr_index *index, const scr_dataset *dataset);

/* Finds the checkpoint that CURRENT names. Returns -ENOENT if there is none. */
int scr_index_get_current(const scr_index *index, scr_dataset *dataset);

/* Finds the checkpoint to fetch: CURRENT, if it can be used and below is SCR_AGE_ANY.
 * Otherwise the newest one that is complete, has not failed, has fewer than
 * SCR_INDEX_ATTEMPTS attempts without a result, and is older than below. If CURRENT has
 * too many attempts, no checkpoint newer than CURRENT is chosen. Names in the tree tried
 * are skipped (NULL: none). Returns -ENOENT if there is none. */
int scr_index_next_fetch(const scr_index *index, scr_age below, const kvtree *tried,
                         scr_dataset *dataset);

/* Checkpoints on the prefix directory that retention must keep. */
typedef struct scr_window {
    int keep;    /* number of usable checkpoints; 0: all */
    int flushed; /* id of the checkpoint that was just written */
    int reading; /* id of the checkpoint that a restart reads or may read; 0: none */
    const kvtree *stay; /* further ids, as keys; NULL: none */
} scr_window;

/* Lists the datasets to be deleted, oldest first: checkpoints that are no output and are
 * older than the newest `keep` usable ones, except CURRENT and those that the window
 * names; and datasets whose deletion was not finished. The caller frees *list. */
int scr_index_leaving(const scr_index *index, const scr_window *window,
                      scr_dataset **list, int *count);

/* Lists all datasets by id, and those with the same id by time. The caller frees
 * *list. */
int scr_index_list(const scr_index *index, scr_dataset **list, int *count);

/* Returns the highest values in the index; 0 if there are none. */
scr_counters scr_index_highest(const scr_index *index);

/* ---- summary ---- */

/* folder is the open directory of the dataset. */
int scr_summary_write(int folder, const scr_dataset *dataset, kvtree_error *err);
int scr_summary_read(int folder, scr_dataset *dataset, kvtree_error *err);

#endif
