/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_IDENTITY_H
#define SCR_IDENTITY_H

/* What is found out where no parameter tells it: who runs this, where, and in which
 * allocation. */

#define SCR_USER_SIZE 128
#define SCR_JOB_ID_SIZE 128
#define SCR_NODE_SIZE 256

/* The effective user; "uid-<number>" for one without a name. */
void scr_identity_user(char user[SCR_USER_SIZE]);

/* The host. */
void scr_identity_node(char node[SCR_NODE_SIZE]);

/* The allocation: from the batch system; without one, made from the prefix folder (its
 * path without links), so that the next run of the same job finds its cache, and no other
 * does. 0, or -EINVAL with a text for one that is too long. */
int scr_identity_job(const char *prefix, char job[SCR_JOB_ID_SIZE], char *err);

/* A name that stands for a prefix folder: "prefix-<its CRC32>". */
void scr_identity_prefix(const char *prefix, char name[SCR_JOB_ID_SIZE]);

#endif
