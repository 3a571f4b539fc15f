/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_IDENTITY_H
#define SCR_IDENTITY_H

/* User, node and allocation of this process, where no parameter gives them. */

#include <stdbool.h>

#include <sys/stat.h>

#define SCR_USER_SIZE 128
#define SCR_JOB_ID_SIZE 128
#define SCR_NODE_SIZE 256

/* The effective user; "uid-<number>" for one without a name. */
void scr_identity_user(char user[SCR_USER_SIZE]);

/* Whether users other than root and the effective user can write to a file or folder that
 * belongs to one of these two. A private group, which has the name of the user and no
 * members, counts as the user; the group of a file of root counts as root. */
bool scr_identity_others_write(const struct stat *st);

/* The host. */
void scr_identity_node(char node[SCR_NODE_SIZE]);

/* The id of the allocation: from the batch system; without one, derived from the prefix
 * folder (its path without links), so that only the next run of the same job finds its
 * cache. 0, or -EINVAL with a text for an id that is too long. */
int scr_identity_job(const char *prefix, char job[SCR_JOB_ID_SIZE], char *err);

/* A name that stands for a prefix folder: "prefix-<its CRC32>". */
void scr_identity_prefix(const char *prefix, char name[SCR_JOB_ID_SIZE]);

#endif
