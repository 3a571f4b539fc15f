/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FLUSH_FILE_H
#define SCR_FLUSH_FILE_H

/* Where cached datasets are: the flush file .scr/flush.scr,
 * DSET/<id>/{DIR/<name>, LOCATION/{CACHE,PFS,FLUSHING}} (SCR Developer Guide 1.2,
 * section 2.19; docs/formats/scr.md). Scripts read it after a run to see what is still to
 * be saved. */

#include <kvtree/kvtree.h>

#define SCR_FLUSH_FILE_NAME ".scr/flush.scr"
#define SCR_LOCATION_CACHE "CACHE"
#define SCR_LOCATION_PFS "PFS"
#define SCR_LOCATION_FLUSHING "FLUSHING"

/* Reads into the empty tree flush; a missing or damaged file is an empty one, as SCR
 * rebuilds it. */
void scr_flush_file_read(int prefix, kvtree *flush);
int scr_flush_file_write(int prefix, const kvtree *flush, char *err);

/* Sets (on 1) or clears a location of a dataset; name is where it is flushed to. Clearing
 * what is not set changes nothing. */
int scr_flush_file_set(kvtree *flush, int dset, const char *name, const char *location,
                       int on);
int scr_flush_file_has(const kvtree *flush, int dset, const char *location);
void scr_flush_file_remove(kvtree *flush, int dset);

/* Removes the datasets that are not among the count ids: those that the cache no longer
 * has. */
int scr_flush_file_keep(kvtree *flush, const int *ids, int count);

#endif
