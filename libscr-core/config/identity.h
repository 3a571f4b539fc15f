/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_IDENTITY_H
#define SCR_IDENTITY_H

/* User, node and allocation of this process, for which no parameter is set. */

#include <kvtree/kvtree_error.h>

#define SCR_USER_SIZE 128
#define SCR_JOB_ID_SIZE 128
#define SCR_NODE_SIZE 256

/* Returns the effective user; "uid-<number>" for a user without a name. */
void scr_identity_user(char user[SCR_USER_SIZE]);

/* Returns the host name. */
void scr_identity_node(char node[SCR_NODE_SIZE]);

/* The id is that of one launch: the next launch in the same allocation has another id. */
enum { SCR_IDENTITY_OF_LAUNCH = 1 };

/* Returns the id of the allocation from the environment of the batch system. There is no
 * such id at the top level of Flux. If there is none, the id is derived from the prefix
 * directory (its path without links), so that only the next run of the same job finds its
 * cache. Returns 0; SCR_IDENTITY_OF_LAUNCH; or -EINVAL with a text for an id that is too
 * long. */
int scr_identity_job(const char *prefix, char job[SCR_JOB_ID_SIZE], kvtree_error *err);

/* Finds an id in the environment only. Returns 1 with job set; 0 if there is none; or a
 * negative error as above. */
int scr_identity_find_job(char job[SCR_JOB_ID_SIZE], kvtree_error *err);

/* Writes an id of Flux in its ASCII form, which begins with "f", whatever the locale.
 * Returns -EINVAL if the id is too long or invalid. */
int scr_identity_flux(const char *id, char job[SCR_JOB_ID_SIZE]);

/* Derives a name from a prefix directory: "prefix-<its CRC32>". */
void scr_identity_prefix(const char *prefix, char name[SCR_JOB_ID_SIZE]);

#endif
