/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_SCAVENGE_H
#define SIMULATION_SCAVENGE_H

/* The work of scr_copy and scr_index --add after they have read their options, as calls
 * of a simulated process. */

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SCAVENGE_TEXT = 1000 };

/* Copies this node's part of a dataset: application files, or redundancy files. 0 or
 * -errno with a text of up to SCAVENGE_TEXT bytes. */
int scavenge_play_copy(const char *control, int id, bool redundancy, char *text);

/* Commits the copied files of the dataset; complete: a run can restart from it. -ENOENT
 * if nothing was copied. */
int scavenge_play_add(const char *name, bool *complete, char *text);

#ifdef __cplusplus
}
#endif

#endif
