/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CATALOG_H
#define SCR_CATALOG_H

/* Folders of datasets in stores, for cache/catalog.c and cache/cached.c. Local. */

#include "cache/cache.h"

/* *next: the smallest id above last that has a folder in this store; INT_MAX: there is
 * none. 0 or -errno. */
int scr_next_folder(const scr_store_dir *dir, int last, int *next);

/* Whether the dataset has redundancy files, whatever is in them, in a store of which this
 * process is the first. A folder that cannot be read now may have them. */
bool scr_catalog_has_redundancy(const scr_cache *cache, int id);

/* In cache/filemaps.c: adds all filemaps of the control directory to all; damaged ones
 * are reported and skipped. 0 or -errno with a text. */
int scr_filemaps_read(const scr_cache *cache, scr_filemap *all, char *err);

/* Whether the entry of a rank comes from the header of a redundancy file, and not from a
 * filemap alone. */
bool scr_catalog_has_header(const scr_filemap *map, int id, int rank);

#endif
