/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_SCAVENGE_H
#define SIMULATION_SCAVENGE_H

/* What scr_copy and scr_index --add do once their options are read, as calls of a
 * simulated process. */

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SCAVENGE_TEXT = 1000 };

/* Copies what this node has of a dataset: files of the application, or redundancy files.
 * 0 or -errno with a text of up to SCAVENGE_TEXT bytes. */
int scavenge_play_copy(const char *control, int id, bool redundancy, char *text);

/* Commits what was copied of the dataset; complete: it can be restarted from. -ENOENT if
 * nothing was copied. */
int scavenge_play_add(const char *name, bool *complete, char *text);

#ifdef __cplusplus
}
#endif

#endif
