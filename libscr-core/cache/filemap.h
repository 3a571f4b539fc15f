/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FILEMAP_H
#define SCR_FILEMAP_H

/* Which files of which dataset and rank are in the cache of this node: a kvtree
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

/* Records in a file's meta data the absolute path, in normal form, at which the
 * application expects the file. 0 or -ENOMEM. */
int scr_meta_set_place(kvtree *meta, const char *path);

/* Adds a file and returns its meta data, which is empty for a new file; NULL without
 * memory. */
kvtree *scr_filemap_add_file(scr_filemap *map, int dset, int rank, const char *path);
int scr_filemap_remove_file(scr_filemap *map, int dset, int rank, const char *path);

/* The files of a rank in a dataset: elements of path -> meta data. */
const kvtree *scr_filemap_files(const scr_filemap *map, int dset, int rank);

/* Number of files that the rank should have; -1 if it was never set. */
int scr_filemap_expected(const scr_filemap *map, int dset, int rank);
int scr_filemap_set_expected(scr_filemap *map, int dset, int rank, int files);

/* Descriptions per dataset and rank. set copies the tree; get returns NULL if there is
 * none. */
int scr_filemap_set_dataset(scr_filemap *map, int dset, int rank, const kvtree *dataset);
const kvtree *scr_filemap_get_dataset(const scr_filemap *map, int dset, int rank);
int scr_filemap_set_reddesc(scr_filemap *map, int dset, int rank, const kvtree *reddesc);
const kvtree *scr_filemap_get_reddesc(const scr_filemap *map, int dset, int rank);

/* Removes all entries of a dataset, or of one rank in it. */
int scr_filemap_remove_dataset(scr_filemap *map, int dset);
int scr_filemap_remove_rank(scr_filemap *map, int dset, int rank);

/* Adds the entry of one rank in a dataset from one map to target. 0 or -ENOMEM. */
int scr_filemap_copy(const scr_filemap *from, int dset, int rank, scr_filemap *target);

/* Moves all entries of a rank from map to target. */
int scr_filemap_move_rank(scr_filemap *map, int rank, scr_filemap *target);

/* Whether a file in a map belongs to the application, and is not a redundancy file. */
bool scr_meta_is_full(const kvtree_elem *file);

/* A walk through the application's files of all ranks in a dataset; initially {NULL,
 * NULL}. */
typedef struct scr_filemap_walk {
    const kvtree_elem *rank, *file; /* the last rank and file returned */
} scr_filemap_walk;

/* The next file, also in walk->file; NULL at the end. */
const kvtree_elem *scr_filemap_next(const scr_filemap *map, int dset,
                                    scr_filemap_walk *walk);

/* The redundancy file of a rank in a dataset; NULL: it has none. */
const kvtree_elem *scr_filemap_redundancy(const scr_filemap *map, int dset, int rank);

/* The first element of the datasets, and of the ranks of one dataset. Keys are numbers,
 * unsorted. */
const kvtree_elem *scr_filemap_datasets(const scr_filemap *map);
const kvtree_elem *scr_filemap_ranks_of(const scr_filemap *map, int dset);

/* Sorted lists, which the caller frees: dataset ids, the ranks of one dataset, all
 * ranks. */
int scr_filemap_list_datasets(const scr_filemap *map, int *count, int **ids);
int scr_filemap_list_ranks_of(const scr_filemap *map, int dset, int *count, int **ranks);
int scr_filemap_list_ranks(const scr_filemap *map, int *count, int **ranks);

/* Write and read a map as a file; dir is the control directory. Reading merges the file
 * into map, and first checks every id and path: a path must be in a directory
 * ".../<owner>/scr.dataset.<id>/", where owner is SCR's own part, "<user>/scr.<job>".
 * Otherwise -EBADMSG with a text. */
int scr_filemap_write(int dir, const char *name, const scr_filemap *map,
                      kvtree_error *err);
int scr_filemap_read(int dir, const char *name, const char *owner, scr_filemap *map,
                     kvtree_error *err);

/* Adds the names of the filemaps in the control directory dir as keys to the empty tree
 * names: those that the master filemap lists, of whose paths only the last component
 * counts; or, with all 1, every filemap in the directory. 0 or -errno with a text, and an
 * empty tree: -ENOENT without a master filemap, -EBADMSG if it is damaged. */
#define SCR_FILEMAP_MASTER "filemap.scriinfo"
int scr_filemap_names(int dir, int all, kvtree *names, kvtree_error *err);

/* Name of a path below its dataset's directory, which points into path; NULL if the path
 * is not of the form above. */
const char *scr_filemap_name_of(const char *path, const char *owner, int dset);

#endif
