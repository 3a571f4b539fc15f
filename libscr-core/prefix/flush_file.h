/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FLUSH_FILE_H
#define SCR_FLUSH_FILE_H

/* Where cached datasets are: the flush file .scr/flush.scr,
 * DSET/<id>/{DIR/<name>, LOCATION/{CACHE,PFS,FLUSHING,FAILED}, CKPT/1, OUTPUT/1} (SCR
 * Developer Guide 1.2, section 2.19; docs/formats/scr.md). Scripts read it after a run to
 * see what is still to be saved.
 *
 * OWNER/<owner> names the owner of the caches: those of another allocation are gone.
 */

#include "base/versions.h"
#include "plan/dataset.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>

#define SCR_LOCATION_CACHE "CACHE"
#define SCR_LOCATION_PFS "PFS"
#define SCR_LOCATION_FLUSHING "FLUSHING"
#define SCR_LOCATION_FAILED "FAILED" /* an application could not restart from it */

/* Reads into the empty tree flush. On failure (-ENOENT, -EBADMSG, which an id that is
 * none is, too, or another -errno) the tree is left empty, which a caller may take for
 * the file, as SCR makes it again. */
int scr_flush_file_read(int prefix, kvtree *flush, kvtree_error *err);
int scr_flush_file_write(int prefix, const kvtree *flush, kvtree_error *err);

/* The same, but after a loss of power the file may be the earlier one: for what a run may
 * forget. */
int scr_flush_file_note(int prefix, const kvtree *flush, kvtree_error *err);

/* Sets (on 1) or clears a location of a dataset; name is where it is flushed to. Clearing
 * what is not set changes nothing. */
int scr_flush_file_set(kvtree *flush, int dset, const char *name, const char *location,
                       int on);
int scr_flush_file_has(const kvtree *flush, int dset, const char *location);
void scr_flush_file_remove(kvtree *flush, int dset);

/* What a dataset is: a checkpoint, an output, or both; 0 or 1 for each. 0 or -ENOMEM. */
#define SCR_FLUSH_CKPT "CKPT"
#define SCR_FLUSH_OUTPUT "OUTPUT"
int scr_flush_file_set_kind(kvtree *flush, int dset, bool ckpt, bool output);
bool scr_flush_file_is(const kvtree *flush, int dset, const char *kind);

/* Ids of all datasets, to be freed; the name of one, or NULL for none that a dataset can
 * have. */
int scr_flush_file_list(const kvtree *flush, int *count, int **ids);
const char *scr_flush_file_name(const kvtree *flush, int dset);

/* Removes the datasets that are not among the count ids: those that the cache no longer
 * has. */
int scr_flush_file_keep(kvtree *flush, const int *ids, int count);

/* The owner of the caches that the locations are in, "<user>/scr.<job id>..."; NULL: not
 * recorded. 0 or -ENOMEM. */
int scr_flush_file_set_owner(kvtree *flush, const char *owner);
const char *scr_flush_file_owner(const kvtree *flush);

#endif
