/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FOLDERS_H
#define SCR_FOLDERS_H

/* The directories of a run: the prefix directory, and on each node the control directory
 * and the directories of the stores. */

#include "ops/context.h"
#include <stdbool.h>

/* ---- ops/folders.c ---- */
int scr_folders_open(struct scr *scr);
void scr_folders_close(struct scr *scr);

/* Recreates directories of the run that a cleanup has removed on some node, so that the
 * run can continue. Their contents are lost, which is reported. Collective, agreed; 0 or
 * -errno with a text. -EBUSY: another run uses the directories now; this run has no cache
 * any more, and leaves the files of the other run alone. */
int scr_folders_renew(struct scr *scr, kvtree_error *err);

/* The same if directories are missing. Failures are reported; they occur again when the
 * directories are needed. Collective. */
void scr_folders_ensure(struct scr *scr);

#endif
