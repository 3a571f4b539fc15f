/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_VERSIONS_H
#define SCR_VERSIONS_H

/* Records of other versions of SCR, or of other programs. Such a record is not damaged.
 * It must not be replaced or removed, and a program that does not support its version
 * fails. */

#include <errno.h>
#include <kvtree/kvtree.h>

/* Records in the prefix directory. */
#define SCR_INDEX_NAME ".scr/index.scr"
#define SCR_INDEX_VERSION 1
#define SCR_FLUSH_FILE_NAME ".scr/flush.scr"
#define SCR_HALT_NAME ".scr/halt.scr"
#define SCR_NODES_NAME ".scr/nodes.scr"

/* The error of reading a record of another version, with a text. The functions of
 * kvtree.h return the same error for files of another kvtree version. */
#define SCR_OTHER_VERSION (-EPROTONOSUPPORT)

/* Compares VERSION in the tree of the record name. Returns 0, SCR_OTHER_VERSION, or
 * -EBADMSG if the record has no version. */
int scr_version_check(const kvtree *tree, int wanted, const char *name,
                      kvtree_error *err);

/* Checks the records in .scr of the open prefix directory, before anything there is
 * changed. Returns 0, or SCR_OTHER_VERSION if a record is of another version. Unreadable
 * records are skipped. */
int scr_versions_check(int prefix, kvtree_error *err);

#endif
