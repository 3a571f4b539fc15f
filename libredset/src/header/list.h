/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_HEADER_LIST_H
#define REDSET_HEADER_LIST_H

/* The list of the files of one process:
 *
 *     RANK / <rank>
 *     FILES / <count>
 *     FILE / <index> / meta ..., FILE / <name>, SIZE / <bytes>, CRC / <checksum>
 *
 * Without checksums there is no CRC. */

#include <redset/redset.h>
#include <stdbool.h>

typedef struct redset_list {
    int rank; /* of the process */
    int count;
    redset_file *files;
    uint64_t size;  /* sum of their sizes, at most INT64_MAX */
    bool unchecked; /* without checksums: crc of each file is 0 */
} redset_list;

/* Checks name and meta of a file to protect: -EINVAL. */
int redset_file_check(const redset_file *file, redset_error *err);

/* Sets list->size; -EOVERFLOW. */
int redset_list_sum(redset_list *list, redset_error *err);

/* -EINVAL if a name is listed twice. */
int redset_list_check(const redset_list *list, redset_error *err);

/* NULL without memory. */
kvtree *redset_list_to_tree(const redset_list *list);

/* Checks tree and sets list, with checksums or without. Names and metas (which include
 * redset's own keys) stay owned by tree. -EBADMSG. */
int redset_list_from_tree(const kvtree *tree, bool unchecked, redset_list *list,
                          redset_error *err);

/* Frees the array only. */
void redset_list_done(redset_list *list);

/* ---- trees ---- */

/* -EBADMSG unless tree has that number of keys. After a check of all mandatory keys, this
 * excludes unknown ones. */
int redset_tree_check_size(const kvtree *tree, int keys, redset_error *err);

/* The tree under a number as key; NULL: none. Unlike kvtree_getf, takes no memory. */
kvtree *redset_tree_at(const kvtree *tree, int number);

/* Continues crc over the packed bytes of tree; -ENOMEM. */
int redset_tree_crc(const kvtree *tree, uint32_t *crc);

#endif
