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

/* The id is that of one launch: the next one in the same allocation has another. */
enum { SCR_IDENTITY_OF_LAUNCH = 1 };

/* The id of the allocation: from the environment of the batch system, which has none at
 * the top level of Flux; without one, derived from the prefix directory (its path without
 * links), so that only the next run of the same job finds its cache. 0;
 * SCR_IDENTITY_OF_LAUNCH; or -EINVAL with a text for an id that is too long. */
int scr_identity_job(const char *prefix, char job[SCR_JOB_ID_SIZE], kvtree_error *err);

/* The id that the environment has: 1, and job is set; 0: it has none; or as above. */
int scr_identity_find_job(char job[SCR_JOB_ID_SIZE], kvtree_error *err);

/* Writes an id of Flux in its form for ASCII, whatever the locale: "f" begins it. -EINVAL
 * if it is too long, or no id. */
int scr_identity_flux(const char *id, char job[SCR_JOB_ID_SIZE]);

/* A name that stands for a prefix directory: "prefix-<its CRC32>". */
void scr_identity_prefix(const char *prefix, char name[SCR_JOB_ID_SIZE]);

#endif
