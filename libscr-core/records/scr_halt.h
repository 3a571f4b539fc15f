/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_HALT_H
#define SCR_HALT_H

/* The halt file .scr/halt.scr: when a run should end (SCR Developer Guide 1.2,
 * section 2.20). */

#include <kvtree/kvtree.h>
#include <stdint.h>

#define SCR_HALT_NAME ".scr/halt.scr"
#define SCR_HALT_FINALIZED "SCR_FINALIZE_CALLED"

/* Reads the file below the open prefix folder into the empty tree halt; a missing file is
 * an empty one. */
int scr_halt_read(int prefix, kvtree *halt, char *err);
int scr_halt_write(int prefix, const kvtree *halt, char *err);

/* 1 when one of the conditions in halt holds at now (seconds since 1970); reason gets a
 * text of less than 128 bytes. A pure function. */
int scr_halt_check(const kvtree *halt, int64_t now, char reason[128]);

/* Records why the run ended; NULL removes the reason. */
int scr_halt_set_reason(kvtree *halt, const char *reason);

/* A checkpoint was completed: counts CheckpointsLeft down, where set. 1 if halt was
 * changed. */
int scr_halt_count_checkpoint(kvtree *halt);

#endif
