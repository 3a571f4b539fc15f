/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_INDEX_H
#define SCR_INDEX_H

/* The index of the datasets in a prefix directory, in .scr/index.scr, and the summary of
 * one dataset, in <dataset>/.scr/summary.scr (SCR Developer Guide 1.2, sections 2.15
 * and 2.16; docs/formats/scr.md).
 *
 * An index is a kvtree in memory: read, changed by the functions below, and written again
 * by one process at a time. */

#include "base/record_change.h"
#include "base/versions.h"
#include "plan/dataset.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>

#define SCR_SUMMARY_NAME ".scr/summary.scr" /* below the dataset's directory */
#define SCR_SUMMARY_VERSION 6

typedef kvtree scr_index;

/* After this number of attempts to restart that had no result, a checkpoint is skipped:
 * it may be what ends the program. */
#define SCR_INDEX_ATTEMPTS 2

/* Reads the index below the open prefix directory into the empty tree index. -ENOENT if
 * there is none, or a tree without anything in it; a damaged one is -EBADMSG, one of
 * another version SCR_OTHER_VERSION (base/versions.h), with a text. */
int scr_index_read(int prefix, scr_index *index, kvtree_error *err);

/* Changes the index under its lock (base/record_change.h), and reads it only there. The
 * empty tree index gets what it is then. Errors as of scr_index_read. A mark of a
 * deletion that scr_index_check_name refuses is dropped: in what is written it would be
 * the user's own. */
int scr_index_update(int prefix, scr_changer *change, void *arg, scr_index *index,
                     kvtree_error *err);

/* Enters what was found on the prefix directory and the index does not have, under its
 * lock; makes the index, also of nothing, where there is none. The empty tree index gets
 * what it is then. *added: how many. */
int scr_index_make(int prefix, const scr_dataset *found, int count, scr_index *index,
                   int *added, kvtree_error *err);

/* Renames a damaged index, under its lock, and returns the new name; an empty one if
 * another process did that meanwhile, or made a new index. */
#define SCR_INDEX_ASIDE_SIZE 64
int scr_index_set_aside(int prefix, char aside[SCR_INDEX_ASIDE_SIZE], kvtree_error *err);

/* -EPERM, with a text, if the open directory, which is that of the dataset of that name
 * or above it, or one between it and the prefix directory, is a prefix directory: its
 * records and datasets are those of other runs. */
int scr_index_check_place(int prefix, int folder, const char *name, kvtree_error *err);

/* The same, and if others can change the index and cannot change the open directory of
 * the dataset, nor its name: a name in the index reaches only what they can change
 * themselves. */
int scr_index_check_name(int prefix, int folder, const char *name, kvtree_error *err);

/* Makes the empty tree an index without datasets. */
int scr_index_start(scr_index *index);

/* Enters a dataset, or changes its entry: complete 0 before its files are copied, 1
 * afterwards, which also records the time. An earlier dataset of that name keeps its
 * entry until this one is complete: its files are what is there should the copying fail.
 */
int scr_index_add(scr_index *index, const scr_dataset *dataset, int complete);

/* Enters what was found on the prefix directory, complete or not as found, and makes the
 * newest complete checkpoint the current one. A pure function; -ENOMEM. */
int scr_index_restore(scr_index *index, const scr_dataset *found, int count);

/* The same for what the index does not have; the current one stays, where there is one.
 * Makes an empty tree an index first. *added: how many. */
int scr_index_enter(scr_index *index, const scr_dataset *found, int count, int *added);

/* The dataset that name stands for: of several the complete one, then that of the highest
 * id. -ENOENT. */
int scr_index_get(const scr_index *index, const char *name, scr_dataset *dataset);

/* What is known of a dataset's entry. */
typedef struct scr_index_state {
    int complete, failed;
    int attempts; /* without a result */
    int deleting; /* its files are being deleted, or some of them still are there */
    int refused;  /* failed: the program could not use it, in any copy */
} scr_index_state;

/* -ENOENT. */
int scr_index_look(const scr_index *index, const scr_dataset *dataset,
                   scr_index_state *state);

/* Why a run cannot restart from a dataset in that state; NULL: it can. */
const char *scr_index_why_not(const scr_dataset *dataset, const scr_index_state *state);

/* Whether that name is the one to restart from. */
bool scr_index_is_current(const scr_index *index, const char *name);

/* When that last happened to a dataset, in local time: "2026-11-22T18:30:00". The text is
 * the index's; NULL if it never did. */
#define SCR_INDEX_FLUSHED "FLUSHED"
#define SCR_INDEX_FETCHED "FETCHED"
#define SCR_INDEX_FAILED "FAILED"

/* The same way: why it is not complete, in words. */
#define SCR_INDEX_REASON "REASON"
const char *scr_index_time(const scr_index *index, const scr_dataset *dataset,
                           const char *what);

/* The names in the index, newest first, as a list for people that fits into text. */
void scr_index_names(const scr_index *index, char *text, size_t size);

/* ---- changes of an entry: -ENOENT without one of that id, name and time ---- */

/* Removes what the index has of that name, whatever the ids. */
int scr_index_remove(scr_index *index, const scr_dataset *dataset);

/* Makes it the one to restart from. */
int scr_index_set_current(scr_index *index, const scr_dataset *dataset);

/* The same at a user's request: earlier failures and attempts count no longer. */
int scr_index_choose(scr_index *index, const scr_dataset *dataset);

/* A fetch begins, or an attempt to restart from it: both count until they end well. */
int scr_index_mark_fetched(scr_index *index, const scr_dataset *dataset);
int scr_index_mark_tried(scr_index *index, const scr_dataset *dataset);

/* That was no attempt: the fetch is complete, or it ended for a reason that is not the
 * dataset's. */
int scr_index_unmark_tried(scr_index *index, const scr_dataset *dataset);

/* The program has restarted from it: no attempt is open. */
int scr_index_mark_good(scr_index *index, const scr_dataset *dataset);

/* It is not complete, for that reason, and no flush is about to complete it. */
int scr_index_mark_incomplete(scr_index *index, const scr_dataset *dataset,
                              const char *reason);

/* Its files on the prefix directory are damaged: until it is flushed again. */
int scr_index_mark_failed(scr_index *index, const scr_dataset *dataset);

/* The program cannot use it: neither this copy nor another one of the same dataset. */
int scr_index_mark_refused(scr_index *index, const scr_dataset *dataset);

/* Its files are being deleted: no run may restart from what has its name. */
int scr_index_mark_deleting(scr_index *index, const scr_dataset *dataset);

/* Removes such marks from names that check refuses by -EPERM; returns how many. */
typedef int scr_index_check(void *arg, const char *name);
int scr_index_drop_marks(scr_index *index, scr_index_check *check, void *arg);

/* ---- decisions: pure functions ---- */

/* Whether a newer dataset of that name is complete and has not failed. */
bool scr_index_has_newer(const scr_index *index, const scr_dataset *dataset);

/* The checkpoint that CURRENT names. -ENOENT. */
int scr_index_get_current(const scr_index *index, scr_dataset *dataset);

/* The checkpoint to fetch: CURRENT, if it can be used and below is SCR_AGE_ANY; else the
 * newest that is complete, has not failed, was not tried in vain too often, and is older
 * than below. A CURRENT that was tried too often is not
 * made up for by newer ones. Names in the tree tried are left out (NULL: none). -ENOENT
 * if there is none. */
int scr_index_next_fetch(const scr_index *index, scr_age below, const kvtree *tried,
                         scr_dataset *dataset);

/* What a window of checkpoints on the prefix directory must not lose. */
typedef struct scr_window {
    int keep;           /* number of usable checkpoints; 0: all */
    int flushed;        /* id of the one that was just written */
    int reading;        /* id of the one that a restart reads, or may; 0: none */
    const kvtree *stay; /* more ids, as keys; NULL: none */
} scr_window;

/* The datasets that are to be deleted, the oldest first: checkpoints that are no output
 * and older than the newest `keep` usable ones, but neither CURRENT nor those of the
 * window; and whatever a deletion left that did not come to its end. *list is to be
 * freed. */
int scr_index_leaving(const scr_index *index, const scr_window *window,
                      scr_dataset **list, int *count);

/* All datasets by id, copies of one id by time; *list is to be freed. */
int scr_index_list(const scr_index *index, scr_dataset **list, int *count);

/* The highest values in the index; 0 if there are none. */
scr_counters scr_index_highest(const scr_index *index);

/* ---- summary ---- */

/* folder is the open directory of the dataset. */
int scr_summary_write(int folder, const scr_dataset *dataset, kvtree_error *err);
int scr_summary_read(int folder, scr_dataset *dataset, kvtree_error *err);

#endif
