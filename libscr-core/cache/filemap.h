/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FILEMAP_H
#define SCR_FILEMAP_H

/* Which files of which dataset and which rank lie in the cache of this node: a kvtree
 *
 *     DSET/<id>/RANK/<rank>                                     index
 *     RANK/<rank>/DSET/<id>/{FILES/<n>, FILE/<path>/<meta>, REDDESC/..., DATADESC/...}
 *
 * (SCR Developer Guide 1.2, section 2.4; docs/formats/scr.md). Paths are absolute. Each
 * process keeps its own map and writes it to its own file in the control directory.
 * Returned trees belong to the map. */

#include "plan/dataset.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>

typedef kvtree scr_filemap;

#define SCR_META_TYPE "TYPE" /* FULL: of the application; a scheme's name: redundancy */
#define SCR_META_FULL "FULL"
#define SCR_META_SIZE "SIZE"
#define SCR_META_CRC "CRC"
#define SCR_META_FILE "FILE"     /* name below the dataset's directory in the cache */
#define SCR_META_ORIG "ORIG"     /* as the application gave it to SCR_Route_file */
#define SCR_META_PATH "ORIGPATH" /* directory of the absolute original path */
#define SCR_META_NAME "ORIGNAME" /* its last component */
#define SCR_META_RANKS "RANKS"
#define SCR_META_COMPLETE "COMPLETE"

/* Notes in a file's meta data where the application asked for it: an absolute path in its
 * one form. 0 or -ENOMEM. */
int scr_meta_set_place(kvtree *meta, const char *path);

/* Adds a file and returns its meta data, empty when new; NULL without memory. */
kvtree *scr_filemap_add_file(scr_filemap *map, int dset, int rank, const char *path);
int scr_filemap_remove_file(scr_filemap *map, int dset, int rank, const char *path);

/* The files of a rank in a dataset: elements of path -> meta data. */
const kvtree *scr_filemap_files(const scr_filemap *map, int dset, int rank);

/* Number of files that the rank should have; -1 if that was never set. */
int scr_filemap_expected(const scr_filemap *map, int dset, int rank);
int scr_filemap_set_expected(scr_filemap *map, int dset, int rank, int files);

/* Descriptions kept per dataset and rank; set copies, get gives NULL if there is none. */
int scr_filemap_set_dataset(scr_filemap *map, int dset, int rank, const kvtree *dataset);
const kvtree *scr_filemap_get_dataset(const scr_filemap *map, int dset, int rank);
int scr_filemap_set_reddesc(scr_filemap *map, int dset, int rank, const kvtree *reddesc);
const kvtree *scr_filemap_get_reddesc(const scr_filemap *map, int dset, int rank);

/* Removes all that is known of a dataset, or of one rank in it. */
int scr_filemap_remove_dataset(scr_filemap *map, int dset);
int scr_filemap_remove_rank(scr_filemap *map, int dset, int rank);

/* Adds all that from knows of one rank in a dataset to target. 0 or -ENOMEM. */
int scr_filemap_copy(const scr_filemap *from, int dset, int rank, scr_filemap *target);

/* Takes all of a rank out of map and puts it into target. */
int scr_filemap_move_rank(scr_filemap *map, int rank, scr_filemap *target);

/* Whether a file of a map is one of the application, and not a redundancy file. */
bool scr_meta_is_full(const kvtree_elem *file);

/* A walk through the files of the application of all ranks in a dataset; it begins as
 * {NULL, NULL}. */
typedef struct scr_filemap_walk {
    const kvtree_elem *rank, *file; /* the last one that was given */
} scr_filemap_walk;

/* The next file, which is walk->file then; NULL at the end. */
const kvtree_elem *scr_filemap_next(const scr_filemap *map, int dset,
                                    scr_filemap_walk *walk);

/* The redundancy file of a rank in a dataset; NULL: it has none. */
const kvtree_elem *scr_filemap_redundancy(const scr_filemap *map, int dset, int rank);

/* The first element of the datasets, and of the ranks of one dataset: keys are numbers,
 * in no order. */
const kvtree_elem *scr_filemap_datasets(const scr_filemap *map);
const kvtree_elem *scr_filemap_ranks_of(const scr_filemap *map, int dset);

/* Sorted lists, to be freed: dataset ids, the ranks of one dataset, all ranks. */
int scr_filemap_list_datasets(const scr_filemap *map, int *count, int **ids);
int scr_filemap_list_ranks_of(const scr_filemap *map, int dset, int *count, int **ranks);
int scr_filemap_list_ranks(const scr_filemap *map, int *count, int **ranks);

/* Files: dir is the control directory. Reading merges, and checks every id and path
 * before any of it is believed: a path must lie in a directory
 * ".../<owner>/scr.dataset.<id>/", where owner is the part
 * "<user>/scr.<job>" that is SCR's own. -EBADMSG with a text otherwise. */
int scr_filemap_write(int dir, const char *name, const scr_filemap *map,
                      kvtree_error *err);
int scr_filemap_read(int dir, const char *name, const char *owner, scr_filemap *map,
                     kvtree_error *err);

/* The filemaps of the control directory dir, by their names, as keys of the empty tree
 * names. Those that the master filemap tells: of a path only the last component counts,
 * whatever is before it. Or, with all 1, each one that lies there. 0 or -errno with a
 * text, and nothing in names: -ENOENT without a master filemap, -EBADMSG if it is
 * damaged. */
#define SCR_FILEMAP_MASTER "filemap.scriinfo"
int scr_filemap_names(int dir, int all, kvtree *names, kvtree_error *err);

/* Name of a path below its dataset's directory, inside path; NULL if it is not of the
 * form above. */
const char *scr_filemap_name_of(const char *path, const char *owner, int dset);

#endif
