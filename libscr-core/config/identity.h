/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_IDENTITY_H
#define SCR_IDENTITY_H

/* User, node and allocation of this process, where no parameter gives them. */

#include <kvtree/kvtree_error.h>

#define SCR_USER_SIZE 128
#define SCR_JOB_ID_SIZE 128
#define SCR_NODE_SIZE 256

/* The effective user; "uid-<number>" for one without a name. */
void scr_identity_user(char user[SCR_USER_SIZE]);

/* The host. */
void scr_identity_node(char node[SCR_NODE_SIZE]);

/* The id of the allocation: from the batch system; without one, derived from the prefix
 * directory (its path without links), so that only the next run of the same job finds its
 * cache. 0, or -EINVAL with a text for an id that is too long. */
int scr_identity_job(const char *prefix, char job[SCR_JOB_ID_SIZE], kvtree_error *err);

/* A name that stands for a prefix directory: "prefix-<its CRC32>". */
void scr_identity_prefix(const char *prefix, char name[SCR_JOB_ID_SIZE]);

#endif
