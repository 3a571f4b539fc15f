/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_INDEX_H
#define SCR_INDEX_H

/* The index of the datasets in a prefix folder, in .scr/index.scr, and the summary of one
 * dataset, in <dataset>/.scr/summary.scr (SCR Developer Guide 1.2, sections 2.15
 * and 2.16; docs/formats/scr.md).
 *
 * An index is a kvtree in memory: read, changed by the functions below, and written again
 * by one process at a time. */

#include "records/scr_dataset.h"
#include <kvtree/kvtree.h>

#define SCR_INDEX_NAME ".scr/index.scr"
#define SCR_SUMMARY_NAME ".scr/summary.scr" /* below the dataset's folder */
#define SCR_SUMMARY_VERSION 6

typedef struct kvtree scr_index;

/* Reads the index below the open prefix folder into the empty tree index. A missing file
 * gives an index without datasets; a damaged one, or one of another version, -EBADMSG
 * with a text. */
int scr_index_read(int prefix, scr_index *index, char *err);
int scr_index_write(int prefix, const scr_index *index, char *err);

/* Enters a dataset, or changes its entry: complete 0 before its files are copied, 1
 * afterwards, which also records the time. An earlier dataset of that name loses its
 * entry. */
int scr_index_add(scr_index *index, const scr_dataset *dataset, int complete);

/* Removes the entry of name; -ENOENT if there is none. */
int scr_index_remove(scr_index *index, const char *name);

/* Makes name (in the index, else -ENOENT) the dataset to restart from; NULL: none. */
int scr_index_set_current(scr_index *index, const char *name);

/* Records that name is about to be fetched (before it is tried), or that it failed. */
int scr_index_mark_fetched(scr_index *index, const char *name);
int scr_index_mark_failed(scr_index *index, const char *name);

/* The dataset that name stands for. -ENOENT. */
int scr_index_get(const scr_index *index, const char *name, scr_dataset *dataset);

/* The checkpoint to fetch: CURRENT if it can be used and below is INT_MAX, else the
 * newest (by id) that is complete, has not failed and has an id less than below. -ENOENT
 * if there is none. A pure function. */
int scr_index_next_fetch(const scr_index *index, int below, scr_dataset *dataset);

/* The highest dataset and checkpoint ids in the index; 0 if there are none. */
void scr_index_highest(const scr_index *index, int *dset, int *ckpt);

/* folder is the open folder of the dataset. */
int scr_summary_write(int folder, const scr_dataset *dataset, char *err);
int scr_summary_read(int folder, scr_dataset *dataset, char *err);

#endif
