/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FLUSH_FILE_H
#define SCR_FLUSH_FILE_H

/* The locations of cached datasets: the flush file .scr/flush.scr, DSET/<id>/{DIR/<name>,
 * LOCATION/{CACHE,PFS,FLUSHING,FAILED}, CKPT/1, OUTPUT/1} (SCR Developer Guide 1.2,
 * section 2.19; docs/formats/scr.md). Scripts read the file after a run to find datasets
 * that are still to be saved.
 *
 * OWNER/<owner> names the owner of the caches. The caches of another allocation are
 * gone. */

#include "base/versions.h"
#include "plan/dataset.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>

#define SCR_LOCATION_CACHE "CACHE"
#define SCR_LOCATION_PFS "PFS"
#define SCR_LOCATION_FLUSHING "FLUSHING"
#define SCR_LOCATION_FAILED "FAILED" /* the application could not restart from it */

/* Reads the flush file into the empty tree flush. After an error (-ENOENT; -EBADMSG, also
 * for an invalid id; or another -errno) the tree is empty. The caller may continue with
 * the empty tree, because SCR writes a new file. */
int scr_flush_file_read(int prefix, kvtree *flush, kvtree_error *err);
int scr_flush_file_write(int prefix, const kvtree *flush, kvtree_error *err);

/* Writes the file, but a power loss may restore the earlier file. For changes that a run
 * may lose. */
int scr_flush_file_note(int prefix, const kvtree *flush, kvtree_error *err);

/* Sets (on 1) or clears a location of a dataset; name is the name that the dataset has on
 * the prefix directory. Clearing a location that is not set changes nothing. */
int scr_flush_file_set(kvtree *flush, int dset, const char *name, const char *location,
                       int on);
int scr_flush_file_has(const kvtree *flush, int dset, const char *location);
void scr_flush_file_remove(kvtree *flush, int dset);

/* Sets the kind of a dataset: a checkpoint, an output, or both. Returns 0 or -ENOMEM. */
#define SCR_FLUSH_CKPT "CKPT"
#define SCR_FLUSH_OUTPUT "OUTPUT"
int scr_flush_file_set_kind(kvtree *flush, int dset, bool ckpt, bool output);
bool scr_flush_file_is(const kvtree *flush, int dset, const char *kind);

/* scr_flush_file_list returns the ids of all datasets, which the caller frees.
 * scr_flush_file_name returns the name of one; NULL: none, or not a valid name. */
int scr_flush_file_list(const kvtree *flush, int *count, int **ids);
const char *scr_flush_file_name(const kvtree *flush, int dset);

/* Removes all datasets except those with one of the count ids, which the cache still
 * has. */
int scr_flush_file_keep(kvtree *flush, const int *ids, int count);

/* The owner of the caches that the locations refer to, "<user>/scr.<job id>..."; NULL:
 * not recorded. scr_flush_file_set_owner returns 0 or -ENOMEM. */
int scr_flush_file_set_owner(kvtree *flush, const char *owner);
const char *scr_flush_file_owner(const kvtree *flush);

#endif
