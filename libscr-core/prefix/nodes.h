/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_NODES_H
#define SCR_NODES_H

#include "base/versions.h"

/* The nodes file .scr/nodes.scr: the number of nodes of the last run, for scripts that
 * start the next one (SCR Developer Guide 1.2, section 2.21). */

/* Read and write the file below the open prefix directory. Return 0 or -errno: -ENOENT
 * without a file, -EBADMSG if it is damaged or has no number from 1 on. */
int scr_nodes_read(int prefix, int *nodes, kvtree_error *err);
int scr_nodes_write(int prefix, int nodes, kvtree_error *err);

#endif
