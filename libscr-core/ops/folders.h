/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FOLDERS_H
#define SCR_FOLDERS_H

/* The folders of a run: the prefix folder, and on each node the control folder and those
 * of the stores. */

#include "ops/context.h"
#include <stdbool.h>

/* ---- ops/folders.c ---- */
int scr_folders_open(struct scr *scr);
void scr_folders_close(struct scr *scr);

/* 1 when somebody who tidied up has removed a folder of the run on this node, or what
 * keeps others away from it. Local. */
int scr_folders_gone(const struct scr *scr);

/* Makes it again, so that the run can go on; what was there is lost, which is said.
 * Collective, agreed; 0 or -errno with a text, and then nobody else's are touched. */
int scr_folders_renew(struct scr *scr, char *err);

/* Both; what fails is said, and will fail where it is needed. Collective. */
void scr_folders_ensure(struct scr *scr);

/* 1 when somebody has removed the open file or folder. */
int scr_is_removed(int fd);

/* The control folder of scr->job.owner on this node. Local; 0 or -errno with a text. */
int scr_control_open(struct scr *scr, char *err);
void scr_control_close(struct scr *scr);

/* Says that a file of it is damaged, and why. Not collective. */
void scr_control_warn(const struct scr *scr, const char *reason);

/* Removes it, and what is empty above it. Local. */
void scr_control_remove(const struct scr *scr);

/* 1 when this node has a control folder of that owner. Local. */
int scr_control_exists(const struct scr *scr, const char *owner);

/* ---- ops/job_lock.c ---- */

/* Finds out whether control and cache folder of this job are those of this calculation,
 * takes others if not, opens the control folder, and keeps other runs away. Agreed; 0 or
 * -errno with a text. */
int scr_claim(struct scr *scr, char *err);
void scr_unclaim(struct scr *scr);

/* What keeps others away is written once: gives it a new time, as cleanups go by age.
 * Local. */
void scr_claim_stay(const struct scr *scr);

/* Whether it was removed, or the files that keep others away. Local. */
bool scr_claim_is_lost(const struct scr *scr);

/* Takes the same control folder once more, where it was. Collective, agreed; 0 or -errno
 * with a text: after -EBUSY the run has no cache any more (estranged). */
int scr_claim_renew(struct scr *scr, char *err);

/* On the leader of a node, before that: removes what the run has left in the control
 * folder, and the folder. What fails stays. */
void scr_claim_remove(struct scr *scr);

/* ---- ops/store_dir.c ---- */

/* Likewise the folders of the stores. Local. */
int scr_stores_renew(struct scr *scr, char *err);

#endif
